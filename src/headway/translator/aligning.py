"""Word alignments from encoder-decoder attention: each target token belongs to the source token that it looks at.

Layers and heads differ in what they look at, and so do the steps: the step that reads a token often aligns it better
than the step that gives it (Chen et al. 2020, "Accurate Word Alignment Induction from Neural Machine Translation").
`choose_aligner` finds the best attention of a model on pairs of text without known alignments.

A link (i, j) joins number i of the source with number j of the translation, words or pieces, both from 0. Pharaoh's
format writes the links of a pair as `0-0 1-2`, and is what fast_align, Marian, Moses and AER scripts read.
"""

import math
import unicodedata
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from headway.storage.model_info import Aligner
from headway.text.tokenizer import Piece
from headway.text.words import word_spans
from headway.translator.reading import Floats, Reader, Tokens, batches_of_pairs

WEIGHTS_AT_ONCE = 1 << 23
"""Attention weights that are computed together, at most, unless one pair has more."""
CLEARLY = 0.01
"""Lead that a single head needs over the best mean, because a mean depends less on the text of the choice."""
UNSEEN = 0.1
"""Added to each count of a target token or source token, so that pairs seen once have a probability, too."""

Links = list[tuple[int, int]]
MEAN = Aligner()
"""The mean of all layers and heads."""


def align(
    reader: Reader, aligner: Aligner, sources: Tokens, targets: Tokens, skipped: Sequence[int]
) -> list[list[int | None]]:
    """For each token of each target the number of the source token that it is aligned with; None: with nothing. No
    tokens are aligned by a model without a decoder layer.

    Ids are without <eos>, and no source is empty. skipped: the first tokens of each source with which nothing is
    aligned, such as its tag, unless there are no others.
    """
    found: dict[int, list[int | None]] = {}
    for number, weights in _cross_weights(reader, sources, targets):
        length = len(sources[number])
        first = skipped[number] if skipped[number] < length else 0
        found[number] = alignment(weights, aligner, first)[:-1]
    return [found.get(number, []) for number in range(len(sources))]


def alignment(cross: Floats, aligner: Aligner = MEAN, first: int = 0) -> list[int | None]:
    """The number of the source token, from `first` on, that each target token is aligned with; None: with nothing.

    cross: (layers, heads, target, source), <eos> last of both. No step reads the target's <eos>: where others are
    aligned by the step that reads them, it is by the one that gives it.
    """
    layers = cross if aligner.layer is None else cross[[aligner.layer]]
    mean = (layers if aligner.head is None else layers[:, [aligner.head]]).mean(axis=(0, 1))  # (target, source)
    if aligner.shifted:
        mean = np.concatenate([mean[1:], mean[-1:]])
    length = max(mean.shape[1] - 1, 1)  # a source of <eos> alone is aligned with it
    places = mean[:, first : length + aligner.eos_is_nothing].argmax(axis=1) + first
    return [place if place < length else None for place in places.tolist()]


def choose_aligner(reader: Reader, sources: Tokens, targets: Tokens) -> Aligner:
    """The best aligner of these pairs: the one by which a target token and its source token tell most of each other, by
    normalised mutual information. The means of all layers and of the heads of each layer compete with single heads,
    which must be clearly better.

    Ids are without <eos>; pairs with an empty side say nothing.
    """
    whole = [number for number, pair in enumerate(zip(sources, targets, strict=True)) if all(pair)]
    sources, targets = [sources[number] for number in whole], [targets[number] for number in whole]
    looked_at: dict[tuple[bool, bool], list[NDArray[np.int64]]] = {}
    tokens: list[int] = []
    for number, weights in _cross_weights(reader, sources, targets):
        source = np.array([*sources[number], reader.config.eos_id])
        tokens += targets[number]
        each = _of_each_place(weights)  # (place, step, key)
        for eos_is_nothing in (False, True):
            ids = source[each[:, :, : len(source) - 1 + eos_is_nothing].argmax(axis=2)]  # (place, step)
            for shifted in (False, True):
                looked_at.setdefault((shifted, eos_is_nothing), []).append(ids[:, 1:] if shifted else ids[:, :-1])
    best, most = Aligner(), 0.0
    joined = {flags: np.concatenate(ids, axis=1) for flags, ids in looked_at.items()}  # (place, token)
    for number, place in enumerate(_places(reader)):
        for flags, ids in joined.items():
            one = Aligner(*place, *flags)
            shared = _shared_information(ids[number], np.array(tokens))
            if shared > most + (CLEARLY if best.head is None and one.head is not None else 0.0):
                best, most = one, shared
    return best


def _places(reader: Reader) -> list[tuple[int | None, int | None]]:
    """Layer and head, or None for a mean: all layers, each layer, each head."""
    layers = range(reader.config.decoder_layers)
    heads = range(reader.config.decoder_num_heads or reader.config.num_heads)
    return [(None, None), *((layer, None) for layer in layers), *((layer, head) for layer in layers for head in heads)]


def _of_each_place(weights: Floats) -> Floats:
    """The attention of each of `_places`. weights: (layers, heads, step, key) -> (place, step, key)"""
    of_layers = weights.mean(axis=1)
    return np.concatenate([of_layers.mean(axis=0)[None], of_layers, weights.reshape(-1, *weights.shape[2:])])


def _shared_information(sources: NDArray[np.int64], targets: NDArray[np.int64]) -> float:
    """I(S; T) / H(S, T) of aligned tokens, from 0 to 1, each pair predicted by the counts of all others: what was seen
    once is no evidence. At most a little below 0 for tokens that tell nothing of each other. (tokens,) each"""
    of_source, of_target = _surprise(sources), _surprise(targets)
    target_given, source_given = _surprise(targets, sources), _surprise(sources, targets)
    shared = (of_source - source_given + of_target - target_given) / 2
    together = shared + source_given + target_given
    return shared / together if together > 0 else 0.0


def _surprise(tokens: NDArray[np.int64], given: NDArray[np.int64] | None = None) -> float:
    """Nats a token, each predicted by the counts of all others, of those with the same `given` token."""
    _, kind, counts = np.unique(tokens, return_inverse=True, return_counts=True)
    alone = (counts[kind] - 1 + UNSEEN) / (len(tokens) - 1 + UNSEEN * len(counts))  # (tokens,)
    if given is None:
        return float(-np.log(alone).mean())
    _, condition, conditions = np.unique(given, return_inverse=True, return_counts=True)
    _, pair, pairs = np.unique(kind + len(counts) * condition, return_inverse=True, return_counts=True)
    together = (pairs[pair] - 1 + alone) / conditions[condition]  # one token of all is spread as without the condition
    return float(-np.log(together).mean())


def _cross_weights(reader: Reader, sources: Tokens, targets: Tokens) -> Iterator[tuple[int, Floats]]:
    """Each pair's number with its attention (layers, heads, step, key), in any order. Step i reads token i - 1 of the
    target and gives token i; the last gives <eos>. The last key is <eos>."""
    config = reader.config
    maps = config.decoder_layers * (config.decoder_num_heads or config.num_heads)
    batches = batches_of_pairs(config, sources, targets, lambda *lengths: maps * math.prod(lengths), WEIGHTS_AT_ONCE)
    for batch, source, target in batches if maps else ():
        for number, weights in zip(batch, reader.cross_attention(source, target[:, :-1]), strict=True):
            yield number, weights[:, :, : len(targets[number]) + 1, : len(sources[number]) + 1]


def piece_links(alignment: Sequence[int | None]) -> Links:
    """alignment: for each piece of the translation the piece of the source, or None."""
    return sorted((source, target) for target, source in enumerate(alignment) if source is not None)


def word_links(
    source: str,
    source_pieces: Sequence[Piece],
    target: str,
    target_pieces: Sequence[Piece],
    alignment: Sequence[int | None],
) -> Links:
    """Two words are linked where any of their pieces are. Words are what stands between white space. The punctuation of
    a target word with letters or digits says nothing of the word. source: with spaces in place of its tag, which is no
    word."""
    source_words = _words_of(source, source_pieces)
    target_words = _without_punctuation(target, target_pieces, _words_of(target, target_pieces))
    return sorted(
        {(one, other) for i, j in piece_links(alignment) for one in source_words[i] for other in target_words[j]}
    )


def character_links(
    source_pieces: Sequence[Piece], target_pieces: Sequence[Piece], alignment: Sequence[int | None]
) -> list[tuple[int, int, int, int]]:
    """Start and end of each piece that is aligned, and of the piece of the source that it is aligned with."""
    pairs = [(target_pieces[target], source_pieces[source]) for source, target in piece_links(alignment)]
    return [(target.start, target.end, source.start, source.end) for target, source in pairs]


def to_pharaoh(links: Links) -> str:
    """`[(0, 0), (1, 2)]` -> `0-0 1-2`"""
    return " ".join(f"{source}-{target}" for source, target in links)


def _words_of(text: str, pieces: Sequence[Piece]) -> list[list[int]]:
    """The words that each piece has characters of: one, but for pieces that hold a space, and for blank ones."""
    words = word_spans(text)
    return [
        [number for number, (start, end) in enumerate(words) if start < piece.end and piece.start < end]
        for piece in pieces
    ]


def _without_punctuation(text: str, pieces: Sequence[Piece], words: Sequence[list[int]]) -> list[list[int]]:
    """The words of each piece; none for punctuation, unless the word is nothing else."""
    spoken = {number for number, (start, end) in enumerate(word_spans(text)) if not _is_punctuation(text[start:end])}
    return [
        [number for number in some if number not in spoken] if _is_punctuation(text[piece.start : piece.end]) else some
        for piece, some in zip(pieces, words, strict=True)
    ]


def _is_punctuation(text: str) -> bool:
    """Whether a text without white space is punctuation and symbols alone."""
    return all(unicodedata.category(character)[0] in "PS" for character in text if not character.isspace())
