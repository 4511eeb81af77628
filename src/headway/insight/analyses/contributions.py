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
from torch import Tensor

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
    """The result of a sub-layer, with residual connection and norm, as a sum: y_i = sum over j of T_i(x_j) + bias_i."""

    terms: Floats
    """T_i(x_j), (query, key, d_model). In encoder-decoder attention the last key is the residual connection."""
    bias: Floats
    """The biases of attention and norm, which no token gives, (query, d_model)."""
    result: Floats
    """y, (query, d_model). With `norm: pre` it is the sum, which isn't normalised."""
    own: NDArray[np.intp]
    """For each query the key whose term has the residual connection, (query,)."""


@torch.no_grad()
def contributions(model: Transformer, arrays: Arrays) -> Contributions:
    """arrays: the record of one pass through the model."""
    encoder, decoder, cross = [], [], []
    for name, layer in model.named_modules():
        if isinstance(layer, EncoderLayer):
            encoder.append(shares(self_attention_terms(layer, name, arrays)))
        elif isinstance(layer, DecoderLayer):
            decoder.append(shares(self_attention_terms(layer, name, arrays)))
            cross.append(shares(cross_attention_terms(layer, name, arrays)))
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


def self_attention_terms(layer: EncoderLayer | DecoderLayer, name: str, arrays: Arrays) -> Decomposition:
    """The self-attention of the layer of this name. Key i is token i, with the residual connection in its own term."""
    terms, bias = _attended(layer.self_attention, f"{name}.self_attention", arrays)
    own = np.arange(len(terms))
    terms[own, own] += arrays[f"{name}.input"]
    return _normalised(layer.self_residual, f"{name}.self_residual", terms, bias, own, arrays)


def cross_attention_terms(layer: DecoderLayer, name: str, arrays: Arrays) -> Decomposition:
    """The encoder-decoder attention of the layer of this name: a key for each of the encoder's outputs, and one for the
    residual connection."""
    terms, bias = _attended(layer.cross_attention, f"{name}.cross_attention", arrays)
    before = "sum" if layer.self_residual.norm_first else "normalised"
    residual = arrays[f"{name}.self_residual.{before}"]
    terms = np.concatenate([terms, residual[:, None]], axis=1)
    own = np.full(len(terms), terms.shape[1] - 1)
    return _normalised(layer.cross_residual, f"{name}.cross_residual", terms, bias, own, arrays)


def _attended(attention: MultiHeadAttention, name: str, arrays: Arrays) -> tuple[Floats, Floats]:
    """The term of each key for each query: sum over heads of A[i, j] v_j W_O, (query, key, d_model); and the bias,
    which includes that of the values, since a query's weights sum to 1, (d_model,)."""
    heads = attention.num_heads
    output = _array(attention.output.weight).T.reshape(heads, -1, attention.output.out_features)
    own = _array(attention.value.bias).reshape(heads, 1, -1)
    values = (arrays[f"{name}.values"] - own) @ output  # (heads, key, d_model)
    terms = np.einsum("hqk,hkd->qkd", arrays[f"{name}.weights"], values)
    return terms, _array(attention.output.bias) + (own @ output).sum(axis=(0, 1))


def _normalised(
    residual: Residual, name: str, terms: Floats, bias: Floats, own: NDArray[np.intp], arrays: Arrays
) -> Decomposition:
    """Post-norm, each term goes through the norm by itself: once its deviation is known, the norm is linear."""
    total = arrays[f"{name}.sum"]  # (query, d_model)
    rows = np.broadcast_to(bias, total.shape)
    if residual.norm_first:
        return Decomposition(terms, rows, total, own)
    norm = residual.norm
    deviation = np.sqrt(total.var(axis=-1, keepdims=True) + norm.eps)  # (query, 1)

    def linear(x: Floats, by: Floats) -> Floats:
        return _array(norm.weight) * (x - x.mean(axis=-1, keepdims=True)) / by

    result = arrays[f"{name}.normalised"]
    return Decomposition(linear(terms, deviation[:, None]), linear(rows, deviation) + _array(norm.bias), result, own)


def _array(parameter: Tensor) -> Floats:
    return parameter.detach().float().cpu().numpy()
