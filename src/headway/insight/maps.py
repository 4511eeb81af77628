"""Attention maps with names for their rows and columns, of any model, and measures of heads: where they look, and how
sharply (docs/record.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headway.model import ModelConfig
from headway.storage.model_info import Aligner
from headway.text.tokenizer import CONTROL_PIECES
from headway.translator.aligning import MEAN, alignment

AttentionKind = Literal["encoder", "decoder", "cross"]
Floats = NDArray[np.float32]

SUBLAYERS: dict[AttentionKind, str] = {
    "encoder": "encoder.layers.{layer}.self_attention",
    "decoder": "decoder.layers.{layer}.self_attention",
    "cross": "decoder.layers.{layer}.cross_attention",
}
"""Prefixes of the names of a record's arrays, for each kind of attention."""
ALONE = {*CONTROL_PIECES, "<s>", "</s>"}
"""Pieces that no word takes in: control symbols, headway's and those of Hugging Face's models."""
KINDS: dict[AttentionKind, str] = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "encoder-decoder attention",
}


def attention_names(config: ModelConfig) -> dict[AttentionKind, list[str]]:
    """The names of each layer's weights, for each kind of attention."""
    return {
        kind: [
            f"{name.format(layer=layer)}.weights"
            for layer in range(config.encoder_layers if kind == "encoder" else config.decoder_layers)
        ]
        for kind, name in SUBLAYERS.items()
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

    def words(self) -> "AttentionMaps":
        """The same maps with tokens joined to words. Weights to the tokens of a word are added, and weights from its
        tokens averaged, so that rows still sum to 1."""
        source, target, read = map(word_groups, (self.source, self.target, self.read))
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
        if piece in ALONE or piece.startswith("▁") or not groups or pieces[groups[-1][-1]] in ALONE:
            groups.append([place])
        else:
            groups[-1].append(place)
    return groups


def token_names(pieces: Sequence[str]) -> list[str]:
    """Names of tokens in pictures and in the page: without the sign of a space, a dot before the rest of a word."""
    goes_on = {place for group in word_groups(pieces) for place in group[1:]}
    return [f"·{piece}" if place in goes_on else piece.removeprefix("▁") or "▁" for place, piece in enumerate(pieces)]


def _stacked(maps: Any) -> Floats:
    if not isinstance(maps, (list, tuple)):
        return np.asarray(maps.detach().float().cpu() if hasattr(maps, "detach") else maps, dtype=np.float32)
    if not maps:
        raise ValueError("attention of no layers: leave its kind out")
    layers = [_stacked(layer) for layer in maps]
    return np.stack([layer[0] if layer.ndim == 4 and len(layer) == 1 else layer for layer in layers])


def _joined(pieces: Sequence[str], groups: Sequence[Sequence[int]]) -> list[str]:
    return ["".join(pieces[place] for place in group).removeprefix("▁") or "▁" for group in groups]


def _merged(weights: Floats, queries: Sequence[list[int]], keys: Sequence[list[int]]) -> Floats:
    """weights: (..., query, key) -> (..., groups of queries, groups of keys)"""
    rows = np.stack([weights[..., group, :].mean(axis=-2) for group in queries], axis=-2)
    return np.stack([rows[..., group].sum(axis=-1) for group in keys], axis=-1)


@dataclass(frozen=True)
class HeadMeasures:
    """Shares of the attention, from 0 to 1, and the entropy in bits. `same` belongs to self-attention, `aligned` and
    `diagonal` to encoder-decoder attention. `favourite` is the share of one key, the one that gets most apart from the
    control symbol: number `favourite_key`."""

    previous: float
    next: float
    control: float
    entropy: float
    favourite: float
    favourite_key: int | None
    same: float | None = None
    aligned: float | None = None
    diagonal: float | None = None


def measure_heads(kind: AttentionKind, maps: Floats, aligner: Aligner = MEAN) -> list[list[HeadMeasures]]:
    """The measures of each layer and head. A head of encoder-decoder attention is measured by the alignment of the
    others, so that it doesn't define its own measure. maps: (layers, heads, query, key)"""
    return [
        [_measured(kind, head, _centre(kind, maps, aligner, layer, number)) for number, head in enumerate(heads)]
        for layer, heads in enumerate(maps)
    ]


def _centre(kind: AttentionKind, maps: Floats, aligner: Aligner, layer: int, head: int) -> list[int | None]:
    """The key that each query of a head is measured by."""
    if kind != "cross":
        return list(range(maps.shape[-2]))
    others = maps.copy()
    others[layer, head] = 0.0
    chosen = others if aligner.layer is None else others[[aligner.layer]]
    if not (chosen if aligner.head is None else chosen[:, [aligner.head]]).any():
        aligner = replace(aligner, layer=None, head=None)
    return alignment(others if others.any() else maps, aligner)  # a head without others by itself


def _measured(kind: AttentionKind, head: Floats, centre: list[int | None]) -> HeadMeasures:
    """head: (query, key)"""
    queries = np.array([query for query, key in enumerate(centre) if key is not None], dtype=np.intp)
    keys = np.array([key for key in centre if key is not None], dtype=np.intp)

    def mean_at(queries: NDArray[np.intp], keys: NDArray[np.intp]) -> float:
        """The mean weight that each query gives to its key, over those whose key exists."""
        there = (keys >= 0) & (keys < head.shape[1])
        return float(head[queries[there], keys[there]].mean()) if there.any() else 0.0

    own = {"aligned" if kind == "cross" else "same": mean_at(queries, keys)}
    if kind == "cross":
        places, slope = np.arange(len(head)), (head.shape[1] - 1) / max(len(head) - 1, 1)
        own["diagonal"] = mean_at(places, np.floor(places * slope + 0.5).astype(np.intp))
    received, control = head.mean(axis=0), 0 if kind == "decoder" else head.shape[1] - 1
    others = np.delete(received, control)  # from the first key on, or from the second on
    favourite = int(others.argmax()) + (control == 0) if others.size else None
    weights = head.astype(np.float64)
    logarithms = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
    return HeadMeasures(
        previous=mean_at(queries, keys - 1),
        next=mean_at(queries, keys + 1),
        control=float(received[control]),
        entropy=float(-(weights * logarithms).sum(axis=-1).mean()) + 0.0,  # no negative zero
        favourite=0.0 if favourite is None else float(received[favourite]),
        favourite_key=favourite,
        **own,
    )
