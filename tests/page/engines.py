"""Small random models, and the page's engine that runs them."""

from __future__ import annotations

from typing import Any

import torch

from headway.model import ModelConfig, Transformer
from headway.page.export import JavaScriptModel
from headway.page.model_file import Precision, model_file
from headway.storage.stored_model import named_weights
from tests.properties.models import randomised

VOCABULARY = 40
NEVER = [1]
"""Ids that no translation may have: <unk>."""
SIZES = {"d_model": 32, "num_heads": 4, "encoder_layers": 2, "decoder_layers": 2, "d_ff": 48, "max_length": 64}


def random_model(seed: int = 1, **fields: Any) -> Transformer:
    """In float32 and ready for use; biases and norms are random too. <eos> is likely, so that some translations end."""
    torch.manual_seed(seed)
    config = ModelConfig(VOCABULARY, VOCABULARY, dropout=0.0, **{**SIZES, **fields})
    model = randomised(Transformer(config)).float().eval()
    with torch.no_grad():
        norm = model.decoder.norm if config.norm == "pre" else model.decoder.layers[-1].feed_forward_residual.norm
        model.output.weight[config.eos_id] += norm.bias
    return model


def file_of(model: Transformer, precision: Precision = "float32") -> bytes:
    about = {"config": model.config.to_dict(), "never_generated": NEVER}
    return model_file(about, {name: weight.numpy() for name, weight in named_weights(model).items()}, precision)


def engine_of(model: Transformer, precision: Precision = "float32", *, kernel: bool = True) -> JavaScriptModel:
    config = model.config
    file = file_of(model, precision)
    return JavaScriptModel(file, bos_id=config.bos_id, eos_id=config.eos_id, kernel=kernel)


def sources(count: int, longest: int = 12) -> list[list[int]]:
    """Random ids of words, with <eos>."""
    generator = torch.Generator().manual_seed(7)
    lengths = torch.randint(1, longest, (count,), generator=generator).tolist()
    return [[*torch.randint(4, VOCABULARY, (length,), generator=generator).tolist(), 3] for length in lengths]
