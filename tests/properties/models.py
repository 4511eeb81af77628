"""Small random models of every kind, drawn by hypothesis: a config and a seed, so that a failure can be read.

In double precision, so that what is equal is equal to ten digits, and what only looks equal is not.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Literal, TypeVar
from unittest.mock import patch

import torch
from hypothesis import strategies as st
from torch import Tensor

from headway.model import ModelConfig, Transformer, attend

VOCABULARY = 12
EXACT = {"atol": 1e-11, "rtol": 0.0}
"""For `torch.testing.assert_close`, of numbers in double precision."""
PAD, EOS, FIRST_WORD = 0, 3, 4
SEEDS = st.integers(0, 2**32 - 1)
LENGTHS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=3)
"""Words of the source and of the target of each pair."""

Body = Literal["readable", "fused", "plain"]
BODIES: st.SearchStrategy[Body] = st.sampled_from(["readable", "fused", "plain"])
"""The ways through `attend`: the lines to read, torch's fused kernel, and plain products around torch's softmax."""


@st.composite
def configs(draw: st.DrawFn, **fixed) -> ModelConfig:
    """Every field that changes what is computed; dropout is 0."""
    drawn = {
        "d_model": draw(st.sampled_from([8, 12])),
        "num_heads": draw(st.sampled_from([1, 2, 4])),
        "decoder_num_heads": draw(st.sampled_from([None, 1, 4])),
        "encoder_layers": draw(st.integers(0, 2)),
        "decoder_layers": draw(st.integers(1, 2)),
        "d_ff": draw(st.sampled_from([1, 9])),
        "activation": draw(st.sampled_from(["relu", "gelu", "swish"])),
        "norm": draw(st.sampled_from(["post", "pre"])),
        "positions": draw(st.sampled_from(["sinusoidal", "learned", "fairseq"])),
        "norm_embeddings": draw(st.booleans()),
        "share_embeddings": draw(st.sampled_from(["all", "decoder", "none"])),
        "output_bias": draw(st.booleans()),
        "bos_id": draw(st.sampled_from([0, 2])),
    }
    return ModelConfig(VOCABULARY, VOCABULARY, max_length=32, dropout=0.0, **{**drawn, **fixed})


def random_model(config: ModelConfig, seed: int) -> Transformer:
    """In double precision and ready for use; its biases and norms are random too."""
    torch.manual_seed(seed)
    return randomised(Transformer(config))


Module = TypeVar("Module", bound=torch.nn.Module)


@torch.no_grad()
def randomised(module: Module) -> Module:
    for parameter in module.parameters():
        if parameter.dim() == 1:
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module.double().eval()


@torch.no_grad()
def without_positions(model: Transformer) -> Transformer:
    """The model, whose positions must be learned ones."""
    model.source_positions.weight.zero_()
    model.target_positions.weight.zero_()
    return model


def random_batch(lengths: Sequence[tuple[int, int]], bos_id: int, more: int = 0) -> tuple[Tensor, Tensor]:
    """source + <eos> (batch, source length) and <bos> + target (batch, target length), padded with `more` places than
    the longest needs. From torch's random state."""
    pairs = [(random_words(source), random_words(target)) for source, target in lengths]
    sources = padded([[*source, EOS] for source, _ in pairs], more)
    return sources, padded([[bos_id, *target] for _, target in pairs], more)


def padded(rows: Sequence[Sequence[int]], more: int = 0) -> Tensor:
    width = max(map(len, rows)) + more
    return torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])


def random_words(count: int) -> list[int]:
    return torch.randint(FIRST_WORD, VOCABULARY, (count,)).tolist()


@contextmanager
def attention_by(body: Body) -> Iterator[None]:
    """Inside, attention whose weights nobody asks for goes by this body."""

    def readable(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
        return attend(query, key, value, mask, dropout=dropout, return_weights=True)[0]

    by_readable = patch("headway.model.attention.fused_attention", readable) if body == "readable" else nullcontext()
    with patch("headway.kernels.attention._plain_is_faster", lambda *_: body == "plain"), by_readable:
        yield
