"""Learns the tokenizers of a run from a sample of its training text."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import compress, count, repeat
from operator import itemgetter

import numpy as np

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
    """Pairs with the numbers of their corpora, in order: all, or a random `most` of them, shared among the corpora by
    `quotas`. Within a corpus all pairs are equally likely: those with the lowest random keys are drawn."""
    drawn: list[list[tuple[float, int, int, Chunk, bytes, bytes]]] = [[] for _ in corpora]
    """A heap for each corpus: negative key, numbers of chunk and line, chunk without its text, source and target."""
    sizes = [0] * len(corpora)
    for number, chunk in enumerate(read_chunks(corpora)):
        sizes[chunk.corpus] += chunk.lines
        quotas_so_far = quotas(sizes, most)
        heap, without_text = drawn[chunk.corpus], replace(chunk, source=b"", target=b"")
        keys = np.random.default_rng((SEED, number)).random(chunk.lines)
        bound = -heap[0][0] if heap and len(heap) >= quotas_so_far[chunk.corpus] else 1.0
        for key, (line, source, target) in compress(zip(keys.tolist(), _lines(chunk), strict=False), keys < bound):
            heappush(heap, (-key, number, line, without_text, source, target))
        for heap, quota in zip(drawn, quotas_so_far, strict=True):
            while len(heap) > quota:  # later text only lowers the quotas
                heappop(heap)
    for corpus, heap in enumerate(drawn):
        for _, _, line, chunk, source, target in sorted(heap, key=itemgetter(1, 2)):
            yield corpus, chunk.pair(line, source, target)


def _lines(chunk: Chunk) -> Iterator[tuple[int, bytes, bytes]]:
    """The number and the sides of each line."""
    targets = chunk.target.split(b"\n") if chunk.target_file is not None else repeat(b"")
    return zip(count(chunk.first), chunk.source.split(b"\n"), targets, strict=False)


def quotas(sizes: Sequence[int], most: int) -> list[int]:
    """The numbers of pairs to take from each corpus: `most` in total, shared equally, but from small corpora all."""
    taken = [0] * len(sizes)
    left = most
    for rank, index in enumerate(sorted(range(len(sizes)), key=lambda one: sizes[one])):
        taken[index] = min(sizes[index], left // (len(sizes) - rank))
        left -= taken[index]
    return taken
