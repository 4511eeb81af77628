"""Attention maps with what their rows and columns stand for, of a model of ours or of anyone's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from headway.model import ModelConfig, MultiHeadAttention, Transformer
from headway.text.tokenizer import CONTROL_PIECES

AttentionKind = Literal["encoder", "decoder", "cross"]
Floats = NDArray[np.float32]

SUBLAYERS: dict[AttentionKind, str] = {
    "encoder": "encoder.layers.{layer}.self_attention",
    "decoder": "decoder.layers.{layer}.self_attention",
    "cross": "decoder.layers.{layer}.cross_attention",
}
"""Below which names a record's arrays of each kind of attention are."""
KINDS: dict[AttentionKind, str] = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "encoder-decoder attention",
}


def attention_names(config: ModelConfig) -> dict[AttentionKind, list[str]]:
    """The names of each layer's weights, for each kind of attention."""
    layers = {"encoder": config.encoder_layers, "decoder": config.decoder_layers, "cross": config.decoder_layers}
    return {
        kind: [f"{name.format(layer=layer)}.weights" for layer in range(layers[kind])]
        for kind, name in SUBLAYERS.items()
    }


def attentions(model: Transformer) -> dict[AttentionKind, list[MultiHeadAttention]]:
    """The attention of each layer, for each kind."""
    return {
        kind: [cast(MultiHeadAttention, model.get_submodule(name.removesuffix(".weights"))) for name in names]
        for kind, names in attention_names(model.config).items()
    }


class AttentionMaps:
    """Every attention map of one pass, with the tokens of its queries and keys."""

    def __init__(
        self,
        source: Sequence[str],
        target: Sequence[str],
        attention: Mapping[AttentionKind, Any],
        *,
        read: Sequence[str] | None = None,
    ) -> None:
        """source: the tokens that the encoder reads. target: the tokens that the decoder produces, one per row; its
        keys are `read`, by default <sos> + target[:-1].

        attention: the weights of each kind, as one array (layers, heads, query, key), or as one array or tensor per
        layer, (heads, query, key) or, as Hugging Face's models return them, (1, heads, query, key). Raises ValueError
        if they don't fit the tokens.
        """
        self.source, self.target = list(source), list(target)
        self.read = ["<sos>", *self.target[:-1]] if read is None else list(read)
        self.attention: dict[AttentionKind, Floats] = {kind: _stacked(maps) for kind, maps in attention.items()}
        for kind, maps in self.attention.items():
            queries, keys = self.labels(kind)
            if maps.ndim != 4 or maps.shape[2:] != (len(queries), len(keys)):
                raise ValueError(
                    f"{kind} attention of shape {maps.shape} must be (layers, heads, {len(queries)}, {len(keys)}), "
                    "for its tokens"
                )

    def labels(self, kind: AttentionKind) -> tuple[list[str], list[str]]:
        """The names of the queries and of the keys of a kind of attention, the same in every picture: a query of the
        decoder is named by the token that it predicts, a key by the token at its position."""
        source, target = token_names(self.source), token_names(self.target)
        if kind == "encoder":
            return source, source
        return target, source if kind == "cross" else token_names(self.read)

    def of_layer(self, kind: AttentionKind, layer: int, heads: Sequence[int] | None = None) -> dict[str, Floats]:
        """Maps (query, key) of one layer by their titles: those of the given heads, or the mean of all heads. Layers
        and heads are numbered from 1. Raises ValueError for a number that doesn't exist."""
        layers = self.attention[kind]
        for what, numbers, count in (("layer", [layer], len(layers)), ("head", heads or [], layers.shape[1])):
            if missing := [number for number in numbers if not 1 <= number <= count]:
                raise ValueError(f"{kind} attention has no {what} {missing[0]}: they are numbered 1 to {count}")
        title = f"{KINDS[kind]}, layer {layer}"
        if heads is None:
            return {f"{title}, mean of its heads": layers[layer - 1].mean(axis=0)}
        return {f"{title}, head {head}": layers[layer - 1, head - 1] for head in heads}

    def words(self) -> AttentionMaps:
        """The same maps with tokens joined to words. Weights to the tokens of a word are added, and weights from its
        tokens averaged, so that rows still sum to 1."""
        source, target = (word_groups(pieces) for pieces in (self.source, self.target))
        read = [[0], *([place + 1 for place in group] for group in target[:-1])]
        groups = {"encoder": (source, source), "decoder": (target, read), "cross": (target, source)}
        return AttentionMaps(
            _joined(self.source, source),
            _joined(self.target, target),
            {kind: _merged(weights, *groups[kind]) for kind, weights in self.attention.items()},
            read=_joined(self.read, read),
        )


def word_groups(pieces: Sequence[str]) -> list[list[int]]:
    """The places of each word's pieces. A word begins at a piece with `▁`; a control symbol stands alone, and pieces of
    which none has `▁` are words already."""
    if not any(piece.startswith("▁") for piece in pieces):
        return [[place] for place in range(len(pieces))]
    groups: list[list[int]] = []
    for place, piece in enumerate(pieces):
        control = piece in CONTROL_PIECES
        if control or piece.startswith("▁") or not groups or pieces[groups[-1][-1]] in CONTROL_PIECES:
            groups.append([place])
        else:
            groups[-1].append(place)
    return groups


def token_names(pieces: Sequence[str]) -> list[str]:
    """Tokens as they are called in pictures and in the page: without the sign of a space, and what goes on with a word
    begins with a dot."""
    goes_on = {place for group in word_groups(pieces) for place in group[1:] if pieces[place] != "</s>"}  # Marian's end
    return [f"·{piece}" if place in goes_on else piece.removeprefix("▁") or "▁" for place, piece in enumerate(pieces)]


def _stacked(maps: Any) -> Floats:
    if isinstance(maps, (list, tuple)):
        layers = [_array(layer) for layer in maps]
        if not layers:
            raise ValueError("attention of no layers: leave its kind out")
        return np.stack([layer[0] if layer.ndim == 4 and len(layer) == 1 else layer for layer in layers])
    return _array(maps)


def _array(tensor: Any) -> Floats:
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().float().cpu()
    return np.asarray(tensor, dtype=np.float32)


def _joined(pieces: Sequence[str], groups: Sequence[Sequence[int]]) -> list[str]:
    return ["".join(pieces[place] for place in group).removeprefix("▁") or "▁" for group in groups]


def _merged(weights: Floats, queries: Sequence[Sequence[int]], keys: Sequence[Sequence[int]]) -> Floats:
    """weights: (..., query, key) -> (..., groups of queries, groups of keys)"""
    rows = np.stack([weights[..., list(group), :].mean(axis=-2) for group in queries], axis=-2)
    return np.stack([rows[..., list(group)].sum(axis=-1) for group in keys], axis=-1)
