"""A shortlist: the few target tokens that a translation of a source may have. CTranslate2 computes no others.

It has the target tokens that each source token becomes most often, by the word translation probabilities of Brown et
al. (1993), model 1, and the most frequent target tokens for all sources.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.text.subwords import Tokenizer

OF_TOKEN, ALWAYS = 30, 300
"""Target tokens for each source token, and for all (measured in docs/results.md)."""
MOST_LINKS = 20_000_000
"""Maximum pairs of tokens to learn from: those of some 100,000 sentences, in 1.5 GB of memory."""
ROUNDS = 4
"""Rounds of expectation maximisation."""


@dataclass(frozen=True)
class Shortlist:
    """The tables of one model; ids are those of its tokenizers."""

    of_token: NDArray[np.int32]
    """For each source id the target ids that it becomes most often, filled up with -1. (source vocabulary, count)"""
    always: NDArray[np.int32]
    """The target ids that every translation may have."""


def learn_shortlist(
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]], source: Tokenizer, target: Tokenizer
) -> Shortlist:
    """Learns from pairs of source and target ids up to MOST_LINKS, without pairs that have an empty side. A source
    token may also stay as it is, if the target side has it: names do. Raises UserError if there are no pairs."""
    links, widths, read = [], [], 0
    frequency = np.zeros(target.vocab_size, dtype=np.int64)
    for source_ids, target_ids in pairs:
        sources, targets = np.array(source_ids, dtype=np.int64), np.array(target_ids, dtype=np.int64)
        if not sources.size or not targets.size:
            continue
        frequency += np.bincount(targets, minlength=target.vocab_size)
        links.append((sources * target.vocab_size + targets[:, None]).ravel())  # the links of a target token in a row
        widths.append(np.full(targets.size, sources.size))
        read += links[-1].size
        if read > MOST_LINKS:
            break
    if not links:
        raise UserError("the training text has no pair with text on both sides")
    probabilities, ids = _translation_probabilities(np.concatenate(links), np.concatenate(widths), target.vocab_size)
    sources, targets = np.divmod(ids, target.vocab_size)
    order = np.lexsort((-probabilities, sources))
    sources, targets = sources[order], targets[order]
    rank = np.arange(len(order)) - np.searchsorted(sources, sources)  # among those of its source
    table = np.full((source.vocab_size, OF_TOKEN + 1), -1, dtype=np.int32)
    kept = rank < OF_TOKEN
    table[sources[kept], rank[kept]] = targets[kept]
    same = {piece: id_ for id_, piece in enumerate(target.vocabulary)}
    table[:, -1] = [same.get(piece, -1) for piece in source.vocabulary]
    always = np.sort(np.argsort(-frequency, kind="stable")[:ALWAYS])
    return Shortlist(table, always.astype(np.int32))


def _translation_probabilities(
    links: NDArray[np.int64], widths: NDArray[np.int64], target_vocabulary: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The probability of the target token given the source token, for each link, and the link that it is of.

    links: source id * target_vocabulary + target id for each pair of tokens in one pair of sentences, those of one
    target token side by side; widths: the number of links of each target token.
    """
    ids, link = np.unique(links, return_inverse=True)
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    probabilities = np.ones(len(ids))
    for _ in range(ROUNDS):
        weights = probabilities[link]
        weights /= np.repeat(np.add.reduceat(weights, starts), widths)
        counts = np.bincount(link, weights)
        totals = np.bincount(ids // target_vocabulary, counts)
        probabilities = counts / totals[ids // target_vocabulary]
    return probabilities, ids
