"""ALTI+: the contribution of each token of the source, and of the target so far, to each token of the translation.

Ferrando et al. 2022, "Towards Opening the Black Box of Neural Machine Translation: Source and Target Interpretations of
the Transformer"; the measure of a layer is that of Ferrando et al. 2022, "Measuring the Mixing of Contextual
Information in the Transformer". A sub-layer's result y_i is a sum of vectors T_i(x_j), one for each token j that it
reads, the residual connection with the token's own; the nearer one is to the whole, the more it contributes. Layers are
joined by multiplying their contributions. The feed-forward networks are left out: they mix no tokens.

A low share of the source is a warning of hallucination (Voita et al. 2021, "Analyzing the Source and Target
Contributions to Predictions in Neural Machine Translation", who compute the share by relevance propagation).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headway.errors import UserError
from headway.insight.analyses.analysis import Analysis, Analyst, Request, TokenNames
from headway.insight.maps import Floats
from headway.insight.terminal import draw_map, draw_table, shown
from headway.model import DecoderLayer, EncoderLayer, MultiHeadAttention, Residual, Transformer

Arrays = Mapping[str, NDArray[Any]]
"""Arrays of a record, by name."""


@dataclass(frozen=True)
class Contributions(Analysis):
    """Shares of 1. Row i is the step that gives token i of the translation."""

    source: Floats
    """Shares of the source's tokens, (target, source)."""
    target: Floats
    """Shares of the tokens that the decoder reads: the start symbol and the target without its last, (target, target).
    A row of both sums to 1."""
    encoder: Floats
    """Shares of the tokens that each encoder layer reads, for each layer by itself, (layers, source, source)."""
    decoder: Floats
    """The same for each decoder layer's self-attention, (layers, target, target)."""
    cross: Floats
    """Shares of the encoder's outputs in each decoder layer's encoder-decoder attention, (layers, target, source). The
    rest of each row, up to 1, belongs to the residual connection."""
    source_share: list[float]
    """The source's part of each step."""

    def text(self, names: TokenNames) -> Iterator[str]:
        yield f"contributions of the source (ALTI+)\n\n{draw_map(self.source, names.target, names.source)}"
        rows = [[shown(piece), f"{share:.0%}"] for piece, share in zip(names.target, self.source_share, strict=True)]
        yield f"the source's share of the contributions to each token\n\n{draw_table(rows)}"


class AskContributions(Request):
    """The contribution of each token to each token of the translation."""

    kind: Literal["contributions"] = "contributions"

    def compute(self, analyst: Analyst) -> Contributions:
        return contributions(analyst.model, analyst.arrays)


class Decomposition(NamedTuple):
    """The result of a sub-layer, with residual connection and norm, as a sum: y_i = sum over j of T_i(x_j) + bias_i. In
    encoder-decoder attention the last key is the residual connection. With `norm: pre` y isn't normalised."""

    terms: Floats  # T_i(x_j), (query, key, d_model)
    bias: Floats  # of attention and norm, which no token gives, (query, d_model)
    result: Floats  # y, (query, d_model)
    own: NDArray[np.intp]  # for each query the key whose term has the residual connection, (query,)


@torch.no_grad()
def contributions(model: Transformer, arrays: Arrays) -> Contributions:
    """arrays: the record of one pass through the model."""
    encoder, decoder, cross = [], [], []
    for name, layer in model.named_modules():
        if isinstance(layer, EncoderLayer):
            encoder.append(shares(decomposed(layer, name, "self", arrays)))
        elif isinstance(layer, DecoderLayer):
            decoder.append(shares(decomposed(layer, name, "self", arrays)))
            cross.append(shares(decomposed(layer, name, "cross", arrays)))
    count, length = len(arrays["encoder.input"]), len(arrays["decoder.input"])
    memory = np.eye(count, dtype=np.float32)
    for one in encoder:
        memory = one @ memory
    source, target = np.zeros((length, count), np.float32), np.eye(length, dtype=np.float32)
    for own, other in zip(decoder, cross, strict=True):
        residual = other[:, -1:] * own  # (target, target)
        source, target = other[:, :-1] @ memory + residual @ source, residual @ target
    return Contributions(
        source,
        target,
        encoder=np.array(encoder, np.float32).reshape(-1, count, count),
        decoder=np.array(decoder, np.float32).reshape(-1, length, length),
        cross=np.array([one[:, :-1] for one in cross], np.float32).reshape(-1, length, count),
        source_share=source.sum(axis=1).tolist(),
    )


def shares(parts: Decomposition) -> Floats:
    """max(0, |y_i| - |y_i - T_i(x_j)|), by the sum of absolute values, divided by its sum over j. If no term comes
    near, all is the residual connection's. -> (query, key)"""
    result = parts.result[:, None]  # (query, 1, d_model)
    nearness = np.abs(result).sum(-1) - np.abs(result - parts.terms).sum(-1)  # (query, key)
    found = np.maximum(nearness, 0.0)
    total = found.sum(axis=1, keepdims=True)
    residual = np.eye(found.shape[1])[parts.own]
    return np.where(total > 0.0, found / np.where(total > 0.0, total, 1.0), residual).astype(np.float32)


def decomposed(layer: nn.Module, name: str, kind: Literal["self", "cross"], arrays: Arrays) -> Decomposition:
    """The self-attention or the encoder-decoder attention of the layer of this name. Raises UserError for a core of the
    user's own that gives something else than its weights times its values."""
    attention: MultiHeadAttention = getattr(layer, f"{kind}_attention")
    residual: Residual = getattr(layer, f"{kind}_residual")
    if f"{name}.{kind}_attention.values" not in arrays:
        core = type(attention.core).__name__
        raise UserError(
            f"contributions: core {core} isn't a sum of its values by its weights, so they can't be told apart"
        )
    output = _array(attention.output.weight).T.reshape(attention.num_heads, -1, attention.output.out_features)
    value_bias = _array(attention.value.bias).reshape(attention.num_heads, 1, -1)
    values = (arrays[f"{name}.{kind}_attention.values"] - value_bias) @ output  # (heads, key, d_model)
    terms = np.einsum("hqk,hkd->qkd", arrays[f"{name}.{kind}_attention.weights"], values)
    bias = _array(attention.output.bias) + (value_bias @ output).sum(axis=(0, 1))  # a query's weights sum to 1
    if kind == "self":
        own = np.arange(len(terms))
        terms[own, own] += arrays[f"{name}.input"]
    else:
        before = arrays[f"{name}.self_residual.{'sum' if residual.norm_first else 'normalised'}"]
        terms = np.concatenate([terms, before[:, None]], axis=1)
        own = np.full(len(terms), terms.shape[1] - 1)
    total = arrays[f"{name}.{kind}_residual.sum"]  # (query, d_model)
    bias = np.broadcast_to(bias, total.shape)
    if residual.norm_first:
        return Decomposition(terms, bias, total, own)
    norm = residual.norm
    deviation = np.sqrt(total.var(axis=-1, keepdims=True) + norm.eps)  # (query, 1)

    def linear(x: Floats, by: Floats) -> Floats:
        """The norm of one term: once the deviation of the sum is known, the norm is linear."""
        return _array(norm.weight) * (x - x.mean(axis=-1, keepdims=True)) / by

    result = arrays[f"{name}.{kind}_residual.normalised"]
    return Decomposition(linear(terms, deviation[:, None]), linear(bias, deviation) + _array(norm.bias), result, own)


def _array(parameter: Tensor) -> Floats:
    return parameter.detach().float().cpu().numpy()
