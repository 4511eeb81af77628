"""Encoding in one process and in several: the same ids, counts and order, by a plain loop over the pairs."""

import random
import subprocess
import sys
from multiprocessing import get_context

import numpy as np
import pytest

from headway.data import corpus as corpus_module
from headway.data.corpus import CorpusFiles, read_chunks
from headway.data.encoding import TOO_LONG, ChunkEncoder, EncodingSettings, PairCounts, SeenHashes
from headway.data.options import FiltersSection
from headway.data.processes import encode_chunks
from headway.errors import UserError
from headway.text.words import WordTokenizer

NAMES = ["ant", "bee", "cat", "dog", "elk"]
CHOOSER = random.Random(11)
PAIRS = [
    tuple(" ".join(CHOOSER.choice(NAMES) for _ in range(CHOOSER.randint(0, 4))) for _ in range(2)) for _ in range(300)
]
WORDS = WordTokenizer(NAMES)
NO_FILTERS = FiltersSection()


@pytest.fixture
def corpus(tmp_path, monkeypatch) -> CorpusFiles:
    monkeypatch.setattr(corpus_module, "LINES", 20)
    for side in (0, 1):
        (tmp_path / f"a.{side}").write_text("".join(f"{pair[side]}\n" for pair in PAIRS))
    return CorpusFiles((tmp_path / "a.0",), (tmp_path / "a.1",))


def settings(filters=NO_FILTERS, **changes) -> EncodingSettings:
    return EncodingSettings((WORDS, WORDS), 5, 8, (("", ("de", "en")),), filters, **changes)


def first_of_sets(kinds):
    """As a plain set says it."""
    seen = [set() for _ in range(kinds)]

    def first_of(hashes):
        firsts = np.ones(hashes.shape, dtype=bool)
        for kind, row in enumerate(hashes.tolist()):
            for place, one in enumerate(row):
                firsts[kind, place] = one not in seen[kind]
                seen[kind].add(one)
        return firsts

    return first_of


def encoded(corpus, processes, wanted, first_of=None):
    """Ids of all pairs, and what became of the others."""
    kinds = len(wanted.filters.duplicates)
    found, counts = [], PairCounts()
    parts = encode_chunks(read_chunks([corpus]), wanted, processes, first_of or first_of_sets(kinds))
    for part in parts:
        sides = [np.split(side.ids, np.cumsum(side.lengths)[:-1]) for side in (part.source, part.target)]
        if len(part.source.lengths):
            found += [(one.tolist(), other.tolist()) for one, other in zip(*sides, strict=True)]
        counts.add(part.counts)
    return found, counts


def by_hand(duplicates, words=range(1, 99)):
    found, reasons, seen = [], {}, {kind: set() for kind in duplicates}
    for line, (source, target) in enumerate(PAIRS, start=1):
        keys = {"pair": (source, target), "source": source, "target": target}
        if not source or not target:
            reason = "blank"
        elif any(len(text.split()) not in words for text in (source, target)):
            reason = "words"
        else:
            reason = "duplicates" if any(keys[kind] in seen[kind] for kind in duplicates) else None
            for kind in duplicates:
                seen[kind].add(keys[kind])
            if reason is None and len(source.split()) + len(target.split()) + 2 > 8:
                reason = "too long"
        if reason is None:
            found.append((WORDS.encode(source), WORDS.encode(target)))
        else:
            reasons.setdefault(reason, []).append(line)
    return found, reasons


@pytest.mark.parametrize("duplicates", [(), ("pair",), ("source",), ("target", "pair")])
@pytest.mark.parametrize("words", [None, (1, 3), (2, 4)])
def test_one_process_and_three_do_what_a_plain_loop_does(duplicates, words, corpus):
    wanted = settings(FiltersSection(words=words, duplicates=list(duplicates)))
    expected, reasons = by_hand(duplicates, range(words[0], words[1] + 1) if words else range(1, 99))
    assert len(reasons) == (1 if words == (1, 3) else 2) + bool(duplicates) + bool(words)
    for processes in (1, 3):
        found, counts = encoded(corpus, processes, wanted)
        assert found == expected
        assert counts.dropped == {reason: len(lines) for reason, lines in reasons.items()}
        assert counts.read == len(PAIRS)
        for reason, lines in reasons.items():
            shown = ["" if reason in ("blank", "too long") else "  " + " | ".join(PAIRS[line - 1]) for line in lines]
            named = [f"{corpus.sources[0]}:{line}{texts}" for line, texts in zip(lines, shown, strict=True)]
            assert counts.examples[reason] == named[:3]


def test_hashes_are_found_again_by_what_remembers_them(corpus):
    """`SeenHashes` in the place of plain sets."""
    wanted = settings(FiltersSection(duplicates=["pair"]))
    seen = SeenHashes()
    parts = encode_chunks(read_chunks([corpus]), wanted, 1, lambda hashes: np.stack([seen.first(hashes[0])]))
    assert sum(part.counts.kept for part in parts) == len(by_hand(("pair",))[0])


def test_validation_pairs_are_found_where_they_are_kept(corpus):
    held_out = tuple(dict.fromkeys(pair for pair in PAIRS if all(pair)))[:5]
    wanted = settings(valid=(*held_out, ("not", "there")))
    for processes in (1, 2):
        parts = encode_chunks(read_chunks([corpus]), wanted, processes, lambda hashes: hashes)
        assert {place for part in parts for place in part.valid} == set(range(5))
    dropped = settings(FiltersSection(overlap="pair"), valid=held_out, held_out=held_out)
    assert not [place for part in encode_chunks(read_chunks([corpus]), dropped, 1, np.copy) for place in part.valid]


def test_a_bad_line_is_the_error_of_several_processes_too(corpus):
    with open(corpus.sources[0], "rb+") as file:
        file.seek(len("".join(f"{pair[0]}\n" for pair in PAIRS[:150])))
        file.write(b"\xff")
    messages = set()
    for processes in (1, 3):
        with pytest.raises(UserError, match=r"line 15\d: byte 0xff") as error:
            encoded(corpus, processes, settings())
        messages.add(str(error.value))
    assert len(messages) == 1


def test_an_exception_ends_the_processes(corpus):
    def interrupted(_):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        encoded(corpus, 2, settings(), interrupted)
    assert not get_context("spawn").active_children()


def test_a_process_that_is_ended_is_told(corpus):
    def end_all(hashes):
        for process in get_context("spawn").active_children():
            process.kill()
        return np.ones(hashes.shape, dtype=bool)

    with pytest.raises(UserError, match="a process that prepares text was ended, perhaps because memory ran out"):
        encoded(corpus, 2, settings(), end_all)


def test_tags_stand_before_sources_and_filters_do_not_see_them(tmp_path):
    from headway.text.subwords import SubwordTokenizer

    tokenizer = SubwordTokenizer.train(NAMES * 9, "bpe", 290, ["de", "ko"])
    (tmp_path / "a.tsv").write_text("ant bee\tant bee\nant\tcat\n")
    filters = FiltersSection(copies=True, words=(1, 2))
    wanted = EncodingSettings((tokenizer, tokenizer), 99, 99, (("ko", ("en", "ko")),), filters)
    [chunk] = read_chunks([CorpusFiles((tmp_path / "a.tsv",), ())])
    encoder = ChunkEncoder(wanted)
    done = encoder.encode(encoder.filtered(chunk))
    assert done.counts.dropped == {"copies": 1}
    assert done.source.ids.tolist() == tokenizer.encode(">>ko<< ant", tagged=True)
    assert done.target.ids.tolist() == tokenizer.encode("cat")


def test_many_texts_have_the_ids_of_each():
    from headway.text.subwords import SubwordTokenizer

    texts = ["ant bee", "", " ", ">>ko<< ant", "하늘 ▁ x", "a\u0301", "ant" * 50]
    for tokenizer in (SubwordTokenizer.train(NAMES * 9, "bpe", 290, tags) for tags in ([], ["ko"])):
        for tagged in (False, True):
            assert tokenizer.encode_all(texts, tagged=tagged) == [tokenizer.encode(one, tagged=tagged) for one in texts]
    assert WORDS.encode_all(texts) == [WORDS.encode(text) for text in texts]
    assert WORDS.encode_all([]) == SubwordTokenizer.train(NAMES * 9, "bpe", 290).encode_all([]) == []


def test_the_processes_load_no_torch():
    script = "import sys, headway.data.processes; sys.exit('torch' in sys.modules or 'pydantic' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_line_without_end_is_counted_and_not_tokenised(tmp_path, monkeypatch):
    (tmp_path / "a.tsv").write_text(f"ant\tant\n{'a' * 1000}\tant\nant\t{'a' * 1000}\n")
    tokenised = []
    monkeypatch.setattr(
        "headway.text.words.split_words", lambda text, lowercase: tokenised.append(len(text)) or ["ant"]
    )
    [chunk] = read_chunks([CorpusFiles([tmp_path / "a.tsv"], [])])
    encoder = ChunkEncoder(settings())
    counts = encoder.encode(encoder.filtered(chunk)).counts
    assert (counts.kept, counts.dropped[TOO_LONG], max(tokenised)) == (1, 2, 3)
    assert "a.tsv:2" in counts.summary()
