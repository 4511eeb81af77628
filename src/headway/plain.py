"""The Transformer of "Attention Is All You Need", from ids to logits, in numpy: the forward pass alone.

It computes what `model/transformer.py` does, apart from it and without torch, so that each checks the other. Weights go
by the names of `model/shapes.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.model.config import Activation, ModelConfig

Floats = NDArray[np.floating[Any]]
Ids = NDArray[np.integer[Any]]
Mask = NDArray[np.bool_]
"""True = may attend; broadcastable to (batch, heads, query, key)."""


@dataclass(frozen=True)
class PlainTransformer:
    """Section 3. A source ends in <eos>, a target begins with <bos>, and padding stands at the end of a row."""

    config: ModelConfig
    weights: Mapping[str, Floats]

    def logits(self, source: Ids, target: Ids) -> Floats:
        """source: (batch, source length), target: (batch, target length) -> (batch, target length, vocabulary)"""
        logits = _product(self.hidden_states(source, target)[0], self.output_matrix())
        return logits + self.weights["output.bias"] if self.config.output_bias else logits

    def hidden_states(self, source: Ids, target: Ids) -> tuple[Floats, list[Floats]]:
        """Figure 1 without the output layer: (batch, target length, d_model), and of each decoder layer the attention
        to the source (batch, heads, target length, source length)."""
        config, length = self.config, target.shape[1]
        source_mask = (source != config.pad_id)[:, None, None]  # (batch, 1, 1, source length)
        real = (target != config.pad_id) | (np.arange(length) == 0)  # the start symbol may be the pad id
        target_mask = real[:, None, None] & np.tri(length, dtype=bool)  # (batch, 1, target length, target length)

        memory = self.embed("source", source)  # (batch, source length, d_model)
        for layer in range(config.encoder_layers):
            memory = self._self_attention(f"encoder.layers.{layer}", memory, source_mask, config.num_heads)
            memory = self._feed_forward(f"encoder.layers.{layer}", memory)
        memory = self._norm("encoder.norm", memory) if config.norm == "pre" else memory

        heads, seen = config.decoder_num_heads or config.num_heads, []
        x = self.embed("target", target)  # (batch, target length, d_model)
        for layer in range(config.decoder_layers):
            name = f"decoder.layers.{layer}"
            x = self._self_attention(name, x, target_mask, heads)
            asking = self._before(f"{name}.cross_residual", x)
            answer, weights = self._attention(f"{name}.cross_attention", asking, memory, source_mask, heads)
            x = self._after(f"{name}.cross_residual", x, answer)
            x = self._feed_forward(name, x)
            seen.append(weights)
        return self._norm("decoder.norm", x) if config.norm == "pre" else x, seen

    def embed(self, side: str, ids: Ids) -> Floats:
        """Section 3.4: embeddings times sqrt(d_model), plus positions. (batch, length) -> (batch, length, d_model)"""
        x = self.embedding(side)[ids] * self.config.d_model**0.5 + self.positions(side, ids.shape[1])
        return self._norm(f"{side}_norm", x) if self.config.norm_embeddings else x

    def embedding(self, side: str) -> Floats:
        """The matrix of `source` or `target`, which may be one (section 3.4). (vocabulary, d_model)"""
        return self.weights[f"{'source' if self.config.share_embeddings == 'all' else side}_embedding.weight"]

    def output_matrix(self) -> Floats:
        """The matrix of the output layer, which may be the target's embeddings. (vocabulary, d_model)"""
        return self.weights["output.weight"] if self.config.share_embeddings == "none" else self.embedding("target")

    def positions(self, side: str, length: int) -> Floats:
        """Section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos of the same; fairseq's:
        all sines, then all cosines, of (pos + 2) / 10000^(i / (d_model / 2 - 1)); or learned vectors. (length, d_model)
        """
        place, d_model = np.arange(length), self.config.d_model
        if self.config.positions == "learned":
            return self.weights[f"{side}_positions.weight"][place]
        if self.config.positions == "fairseq":
            half = d_model // 2
            frequencies = np.exp(np.arange(half, dtype=np.float32) * np.float32(-np.log(10000.0) / max(half - 1, 1)))
            angles = (place + 2).astype(np.float32)[:, None] * frequencies  # (length, half)
            return np.pad(np.hstack([np.sin(angles), np.cos(angles)]), ((0, 0), (0, d_model % 2)))
        angles = place[:, None] / 10000.0 ** (np.arange(0, d_model, 2) / d_model)  # (length, ceil(d_model / 2))
        waves = np.stack([np.sin(angles), np.cos(angles)], axis=-1)  # (length, ceil(d_model / 2), 2)
        return waves.reshape(length, -1)[:, :d_model].astype(np.float32)

    def _self_attention(self, name: str, x: Floats, mask: Mask, heads: int) -> Floats:
        """Each position attends to those of its own sequence. (batch, length, d_model) -> the same shape"""
        y = self._before(f"{name}.self_residual", x)
        return self._after(f"{name}.self_residual", x, self._attention(f"{name}.self_attention", y, y, mask, heads)[0])

    def _attention(self, name: str, x: Floats, memory: Floats, mask: Mask, heads: int) -> tuple[Floats, Floats]:
        """Section 3.2.2, multi-head attention, around equation 1: softmax(Q K^T / sqrt(d_k)) V.

        x: (batch, query, d_model), memory: (batch, key, d_model) -> as x, and the weights (batch, heads, query, key)
        """

        def projected(part: str, rows: Floats) -> Floats:  # (batch, heads, length, d_k)
            return self._linear(f"{name}.{part}", rows).reshape(*rows.shape[:2], heads, -1).swapaxes(1, 2)

        query, key, value = projected("query", x), projected("key", memory), projected("value", memory)
        scores = query @ key.swapaxes(-2, -1) / query.shape[-1] ** 0.5  # (batch, heads, query, key)
        scores = np.where(mask, scores, -np.inf)
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = powers / powers.sum(axis=-1, keepdims=True)
        joined = (weights @ value).swapaxes(1, 2).reshape(x.shape)  # the heads side by side
        return self._linear(f"{name}.output", joined), weights

    def _feed_forward(self, name: str, x: Floats) -> Floats:
        """Equation 2: FFN(x) = max(0, x W1 + b1) W2 + b2, or with another activation. (..., d_model) -> the same"""
        inner = self._linear(f"{name}.feed_forward.inner", self._before(f"{name}.feed_forward_residual", x))
        outer = self._linear(f"{name}.feed_forward.outer", ACTIVATIONS[self.config.activation](inner))
        return self._after(f"{name}.feed_forward_residual", x, outer)

    def _before(self, name: str, x: Floats) -> Floats:
        """The input of a sub-layer: x, or with pre-norm LayerNorm(x)."""
        return self._norm(f"{name}.norm", x) if self.config.norm == "pre" else x

    def _after(self, name: str, x: Floats, sublayer: Floats) -> Floats:
        """Section 3.1: LayerNorm(x + Sublayer(x)), or with pre-norm the sum alone."""
        return x + sublayer if self.config.norm == "pre" else self._norm(f"{name}.norm", x + sublayer)

    def _norm(self, name: str, x: Floats) -> Floats:
        """Mean 0 and variance 1 at each position, then a scale and a bias. (..., d_model) -> the same"""
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + 1e-5)
        return centred / deviation * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def _linear(self, name: str, x: Floats) -> Floats:
        """(..., in) -> (..., out)"""
        return _product(x, self.weights[f"{name}.weight"]) + self.weights[f"{name}.bias"]


def _product(x: Floats, matrix: Floats) -> Floats:
    """x: (..., in), matrix: (out, in) -> (..., out); all rows at once are faster than one batch after the other."""
    return (x.reshape(-1, x.shape[-1]) @ matrix.T).reshape(*x.shape[:-1], -1)


def _gelu(x: Floats) -> Floats:
    """x times the share of a normal distribution below x, within 1.5e-7 (Abramowitz and Stegun, 7.1.26)."""
    t = 1 / (1 + 0.3275911 / 2**0.5 * np.abs(x))
    tail = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    beyond = tail * np.exp(-x * x / 2) / 2  # the share on the other side of 0 from |x| on
    return x * np.where(x < 0, beyond, 1 - beyond)


ACTIVATIONS: dict[Activation, Callable[[Floats], Floats]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": _gelu,
    "swish": lambda x: x * (1 + np.tanh(x / 2)) / 2,
}
