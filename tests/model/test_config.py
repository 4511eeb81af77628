"""Impossible sizes are one clear ValueError that names the fields."""

import dataclasses

import pytest
import torch

from headway.model import ModelConfig, Transformer


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"d_model": 30, "num_heads": 4}, ["d_model=30", "num_heads=4"]),
        ({"decoder_num_heads": 3}, ["d_model=512", "decoder_num_heads=3"]),
        ({"d_model": 0}, ["d_model=0"]),
        ({"d_model": "512"}, ["d_model='512'", "int"]),
        ({"d_model": True}, ["d_model=True", "int"]),
        ({"d_ff": 0}, ["d_ff=0"]),
        ({"encoder_layers": -1}, ["encoder_layers=-1"]),
        ({"dropout": 1.0}, ["dropout=1.0"]),
        ({"dropout": float("nan")}, ["dropout=nan"]),
        ({"attention_dropout": -0.1}, ["attention_dropout=-0.1"]),
        ({"activation": "tanh"}, ["activation='tanh'", "relu"]),
        ({"norm": "middle"}, ["norm='middle'", "post"]),
        ({"positions": "none"}, ["positions='none'", "sinusoidal"]),
        ({"share_embeddings": "some"}, ["share_embeddings='some'", "decoder"]),
        ({"target_vocab_size": 90}, ["share_embeddings='all'", "source_vocab_size=100", "target_vocab_size=90"]),
        ({"eos_id": 100}, ["eos_id=100", "vocab_size=100"]),
        ({"eos_id": 0}, ["pad_id and eos_id are both 0"]),
        ({"pad_id": -1}, ["pad_id=-1"]),
        ({"max_length": 0}, ["max_length=0"]),
        ({"output_bias": 1}, ["output_bias=1", "bool"]),
        ({"colour": 1}, ["colour"]),
    ],
)
def test_impossible(changes, names):
    with pytest.raises(ValueError, match=r".") as error:
        ModelConfig(**{"source_vocab_size": 100, "target_vocab_size": 100, **changes})
    assert all(name in str(error.value) for name in names)
    assert "\n" not in str(error.value)


BOUNDS = {
    "source_vocab_size": (4, 2**24),
    "target_vocab_size": (4, 2**24),
    "d_model": (1, 2**16),
    "num_heads": (1, 512),
    "decoder_num_heads": (1, 512),
    "d_ff": (1, 2**20),
    "decoder_d_ff": (1, 2**20),
    "encoder_layers": (0, 256),
    "decoder_layers": (0, 256),
    "max_length": (1, 2**20),
}
"""The least and the most of each size; more heads than `d_model` can't divide it."""


@pytest.mark.parametrize("name", BOUNDS)
def test_the_least_and_the_most_of_each_size(name):
    """Files of strangers have sizes, which must not ask for all of the memory."""

    def config(size: int) -> ModelConfig:
        sizes = {"d_model": 512, "num_heads": 1, name: size}
        return ModelConfig(**{"source_vocab_size": 9, "target_vocab_size": 9, "share_embeddings": "none", **sizes})

    least, most = BOUNDS[name]
    assert getattr(config(least), name) == least
    assert getattr(config(most), name) == most
    for beyond in (least - 1, most + 1):
        with pytest.raises(ValueError, match=name):
            config(beyond)


def test_missing_vocabulary_size():
    with pytest.raises(ValueError, match="target_vocab_size"):
        ModelConfig(**{"source_vocab_size": 100})


def test_dictionary_round_trip():
    config = ModelConfig.preset("big", source_vocab_size=100, target_vocab_size=100, dropout=0.2)
    assert ModelConfig(**config.to_dict()) == config
    assert len(config.to_dict()) == len(dataclasses.fields(ModelConfig)) - 2  # no core of its own, no norm_embeddings
    own = dataclasses.replace(config, core="rope:Rotary", norm_embeddings=True)
    assert ModelConfig(**own.to_dict()) == own


def parameters(config: ModelConfig) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in Transformer(config).parameters())


@pytest.mark.parametrize(("preset", "count"), [("base", 63_082_496), ("big", 214_245_376)])
def test_sizes_of_the_paper(preset, count):
    assert parameters(ModelConfig.preset(preset, source_vocab_size=37_000, target_vocab_size=37_000)) == count


def test_size_of_the_textbook():
    assert parameters(ModelConfig.preset("textbook", source_vocab_size=7_853, target_vocab_size=5_893)) == 9_038_341


def test_table_3():
    big = ModelConfig.preset("big", source_vocab_size=10, target_vocab_size=10)
    assert (big.d_model, big.num_heads, big.d_ff, big.encoder_layers, big.dropout) == (1024, 16, 4096, 6, 0.3)


def test_unknown_preset():
    with pytest.raises(ValueError, match=r"'huge'.*textbook, tiny, small, base, big"):
        ModelConfig.preset("huge", source_vocab_size=10, target_vocab_size=10)


def test_text_is_no_number():
    with pytest.raises(ValueError, match="decoder_num_heads='4': must be a valid integer"):
        ModelConfig(10, 10, decoder_num_heads="4")
