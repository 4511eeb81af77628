"""Learns the tokenizers of a run from a sample of its training text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from headway.data.corpus import Chunk, CorpusFiles, Pair, read_chunks
from headway.data.encoding import Texts, rejection_reason
from headway.data.filters import HeldOut, filter_tests
from headway.data.options import FiltersSection, PreparationOptions
from headway.errors import UserError
from headway.text.characters import CHARACTERS_PER_PIECE
from headway.text.subwords import SubwordTokenizer
from headway.text.tokenizer import CONTROL_PIECES, Tokenizer
from headway.text.words import WordTokenizer

SEED = 1
"""Seed of the sample. It doesn't depend on the seed of the training, so runs can share one prepared folder."""
Tokenizers = tuple[Tokenizer, Tokenizer]
"""The tokenizers of source and target: the same object if the vocabulary is joint."""


def learn_tokenizers(options: PreparationOptions, texts: Texts) -> tuple[Tokenizers, list[str]]:
    """The tokenizers learned from these texts, and lines to show about them. Raises UserError."""
    tokenizer, data = options.tokenizer, options.data
    if not texts:
        most = CHARACTERS_PER_PIECE * options.max_length
        raise UserError(
            f"{data.corpora[0].source[0]}: holds no pair with text on both sides, of at most {most:,} "
            f"characters{', that data.filters leaves' if data.filters != FiltersSection() else ''}"
        )

    learned: list[Tokenizer] = []
    for sides in ((0, 1),) if tokenizer.joint else ((0,), (1,)):
        lines = [pair[side] for pair in texts for side in sides]
        if tokenizer.kind == "word":
            words = WordTokenizer.train(lines, tokenizer.vocab_size, tokenizer.min_frequency, tokenizer.lowercase)
            if words.vocab_size == len(CONTROL_PIECES):
                raise UserError(
                    f"no word is left in the vocabulary; lower tokenizer.min_frequency={tokenizer.min_frequency} "
                    f"or raise tokenizer.vocab_size={tokenizer.vocab_size}"
                )
            learned.append(words)
        else:
            tags = data.tags if 0 in sides else []
            learned.append(SubwordTokenizer.train(lines, tokenizer.kind, tokenizer.vocab_size, tags))
    sizes = [one.vocab_size for one in learned]
    pieces = " and ".join(f"{size:,}" for size in sizes)
    notices = [f"tokenizer: {tokenizer.kind}, {pieces} {'words' if tokenizer.kind == 'word' else 'tokens'}"]
    if tokenizer.kind != "word" and min(sizes) < tokenizer.vocab_size:
        notices.append(
            f"tokenizer: the text doesn't give tokenizer.vocab_size={tokenizer.vocab_size} tokens, "
            "so the vocabulary is smaller"
        )
    elif tokenizer.kind != "word" and tokenizer.vocab_size > len(texts):
        notices.append(
            f"tokenizer: {tokenizer.vocab_size:,} tokens are many for {len(texts):,} pairs; a smaller "
            "tokenizer.vocab_size may give better translations"
        )
    return (learned[0], learned[-1]), notices


def sampled_texts(options: PreparationOptions, corpora: Sequence[CorpusFiles], held_out: HeldOut) -> Texts:
    """A sample of up to `tokenizer.sample_pairs` training pairs in the order of the text, without those that are blank
    or far too long or that a filter drops. The filter of duplicates isn't applied. Sources have the noise of the
    training text, so that capitals, for instance, get tokens of their own. Raises UserError."""
    data = options.data
    tests = [filter_tests(data.filters, languages, held_out) for languages in data.languages]
    return [
        (data.noise.applied(pair.source, version=0) if data.noise else pair.source, pair.target)
        for corpus, pair in sample(corpora, options.tokenizer.sample_pairs)
        if rejection_reason(pair.source, pair.target, options.max_length, tests[corpus]) is None
    ]


def sample(corpora: Sequence[CorpusFiles], most: int) -> Iterator[tuple[int, Pair]]:
    """Pairs with the numbers of their corpora, in order: all, or a random `most` of them, shared among the corpora as
    `quotas` says. Within a corpus all pairs are equally likely. At most three times as many are in memory."""
    drawn = [_Drawn() for _ in corpora]
    sizes = [0] * len(corpora)
    last = 0
    for number, chunk in enumerate(read_chunks(corpora)):
        if chunk.corpus != last:
            last = chunk.corpus
            for one, quota in zip(drawn, quotas(sizes[:last], most), strict=False):
                one.keep(quota)
        keys = np.random.default_rng((SEED, number)).random(chunk.lines)
        sizes[last] += chunk.lines
        drawn[last].add(chunk, keys, most)
    for one, quota in zip(drawn, quotas(sizes, most), strict=True):
        one.keep(quota)
    for corpus, one in enumerate(drawn):
        for chunk, line, source, target in one.lines:
            yield corpus, chunk.pair(line, source, target)


def quotas(sizes: Sequence[int], most: int) -> list[int]:
    """The numbers of pairs to take from each corpus: `most` in total, shared equally, but from small corpora all."""
    taken = [0] * len(sizes)
    left = most
    for rank, index in enumerate(sorted(range(len(sizes)), key=lambda one: sizes[one])):
        taken[index] = min(sizes[index], left // (len(sizes) - rank))
        left -= taken[index]
    return taken


@dataclass
class _Drawn:
    """The lines of a corpus with the lowest random keys, in the order of the text."""

    keys: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    lines: list[tuple[Chunk, int, bytes, bytes]] = field(default_factory=list)
    """Chunk without its text, line number, source and target."""
    below: float = np.inf
    """Lines with a key that isn't lower can no longer be drawn."""

    def add(self, chunk: Chunk, keys: NDArray[np.float64], most: int) -> None:
        chosen = np.flatnonzero(keys < self.below)
        if not len(chosen):
            return
        without_text = replace(chunk, source=b"", target=b"")
        sources, targets = chunk.source.split(b"\n"), chunk.target.split(b"\n")
        for place in chosen.tolist():
            target = targets[place] if chunk.target_file is not None else b""
            self.lines.append((without_text, chunk.first + place, sources[place], target))
        self.keys = np.concatenate([self.keys, keys[chosen]])
        if len(self.keys) >= 2 * most:
            self.keep(most)

    def keep(self, count: int) -> None:
        if len(self.keys) <= count:
            return
        chosen = np.sort(np.argpartition(self.keys, max(0, count - 1))[:count])
        self.keys, self.lines = self.keys[chosen], [self.lines[place] for place in chosen.tolist()]
        self.below = float(self.keys.max()) if count else 0.0
