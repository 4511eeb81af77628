"""Learns the tokenizers of a run from a sample of its training text."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from random import Random

from headway.data.corpus import CorpusFiles, read_chunks
from headway.data.encoding import Texts, rejection_reason
from headway.data.filters import filter_tests
from headway.data.options import FiltersSection, PreparationOptions
from headway.data.two_sided import Sides
from headway.errors import UserError
from headway.text.characters import CHARACTERS_PER_PIECE
from headway.text.subwords import SubwordTokenizer, Tokenizer
from headway.text.tokenizer import CONTROL_PIECES
from headway.text.words import WordTokenizer

SEED = 1
"""Seed of the sample. It doesn't depend on the seed of the training, so runs can share one prepared folder."""
SAMPLE_PAIRS = 1_000_000
"""Maximum number of training pairs that a tokenizer is learned from."""
Tokenizers = tuple[Tokenizer, Tokenizer]
"""The tokenizers of source and target: the same object if the vocabulary is joint."""


def learn_tokenizers(options: PreparationOptions, texts: Texts) -> tuple[Tokenizers, list[str]]:
    """The tokenizers learned from these texts, with noise as in training, and lines to show. Raises UserError."""
    tokenizer, data = options.tokenizer, options.data
    if not texts:
        most = CHARACTERS_PER_PIECE * options.max_length
        raise UserError(
            f"{data.corpora[0].source[0]}: holds no pair with text on both sides, of at most {most:,} "
            f"characters{', that data.filters leaves' if data.filters != FiltersSection() else ''}"
        )
    if data.noise:  # so that capitals, for instance, get tokens of their own
        texts = [data.noise.applied_to_pair(pair, 0, {}, ()) for pair in texts]
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


def sampled_texts(
    options: PreparationOptions, corpora: Sequence[CorpusFiles], held_out: Texts, most: int = SAMPLE_PAIRS
) -> Texts:
    """A sample of up to `most` training pairs in the order of the text, without those that are blank or far too long or
    that a filter drops. The filter of duplicates isn't applied. Raises UserError."""
    data = options.data
    tests = [filter_tests(data.filters, languages, held_out) for languages in data.languages]
    return [
        (source, target)
        for corpus, (source, target) in sample(corpora, most)
        if rejection_reason(source, target, options.max_length, tests[corpus]) is None
    ]


def sample(corpora: Sequence[CorpusFiles], most: int) -> Iterator[tuple[int, Sides]]:
    """Pairs with the numbers of their corpora, in order: all, or at random `most` of them, shared by `quotas`."""
    sizes, before = [0] * len(corpora), [0] * len(corpora)
    for chunk in read_chunks(corpora):
        sizes[chunk.corpus] += chunk.lines
    random = Random(SEED)
    drawn = [sorted(random.sample(range(size), quota)) for size, quota in zip(sizes, quotas(sizes, most), strict=True)]
    for chunk in read_chunks(corpora):
        numbers, start = drawn[chunk.corpus], before[chunk.corpus]
        end = before[chunk.corpus] = start + chunk.lines
        if of_chunk := numbers[bisect_left(numbers, start) : bisect_left(numbers, end)]:
            pairs = list(chunk.pairs())
            found = (pairs[number - start] for number in of_chunk)
            yield from ((chunk.corpus, (pair.source, pair.target)) for pair in found)


def quotas(sizes: Sequence[int], most: int) -> list[int]:
    """The numbers of pairs to take from each corpus: `most` in total, shared equally, but from small corpora all."""
    taken = [0] * len(sizes)
    left = most
    for rank, index in enumerate(sorted(range(len(sizes)), key=lambda one: sizes[one])):
        taken[index] = min(sizes[index], left // (len(sizes) - rank))
        left -= taken[index]
    return taken
