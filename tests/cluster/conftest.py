"""A model that translates nonsense, fast, and texts for it."""

import random
from pathlib import Path

import pytest
import torch

from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel, save_model
from headway.text.subwords import SubwordTokenizer

WORDS = ["the", "cat", "sat", "on", "mat", "a", "dog", "ran", "after"]


def texts(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choice(WORDS) for _ in range(chance.randint(0, 9))) for _ in range(count)]


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> Path:
    torch.manual_seed(0)
    tokenizer = SubwordTokenizer.train(["the cat sat on the mat", "a dog ran after"] * 20, "bpe", 290)
    size = tokenizer.vocab_size
    sizes = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1, "max_length": 40}
    transformer = Transformer(ModelConfig(source_vocab_size=size, target_vocab_size=size, **sizes))
    path = tmp_path_factory.mktemp("models") / "model"
    save_model(
        path,
        StoredModel(
            model=transformer,
            source_tokenizer=tokenizer,
            target_tokenizer=tokenizer,
            source_language="en",
            target_language="en",
        ),
    )
    return path
