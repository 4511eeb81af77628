"""Chunks of text: together they are the pairs of the files, wherever they end."""

import gzip
import json
import lzma
import os
from pathlib import Path

import pytest

from headway.data import corpus as corpus_module
from headway.data.corpus import CorpusFiles, Pair, as_corpus, read_chunks
from headway.errors import UserError

SOURCES = ["eins", "", "zwei\u2028b", "drei \x0b\x0c", "\ufeffvier", "fünf\r", " ", "sechs" * 20, "sieben"]
TARGETS = ["one", "two", "", "three\x85c", "four", "five", "\u3000", "six", "seven"]


def written(folder: Path, kind: str) -> CorpusFiles:
    """The pairs as two files, or as one that holds both sides."""
    if kind == "tsv":
        rows = [f"{source}\t{target}\tmore".replace("\r", "") for source, target in zip(SOURCES, TARGETS, strict=True)]
        (folder / "a.tsv").write_text("".join(f"{row}\n" for row in ["", *rows]), encoding="utf-8", newline="")
        return CorpusFiles((folder / "a.tsv",), ())
    if kind == "jsonl":
        rows = [{"source": one, "target": other} for one, other in zip(SOURCES, TARGETS, strict=True)]
        (folder / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        return CorpusFiles((folder / "a.jsonl",), ())
    end = "\r\n" if kind == "crlf" else "\n"
    files = []
    for side, lines in (("de", SOURCES), ("en", TARGETS)):
        mark = "\ufeff" if kind == "mark" else ""
        text = (mark + end.join(lines) + ("" if kind == "no end" else end)).encode()
        if kind in ("gz", "xz"):
            text = {"gz": gzip, "xz": lzma}[kind].compress(text)
        files.append(folder / (f"a.{side}.{kind}" if kind in ("gz", "xz") else f"a.{side}"))
        files[-1].write_bytes(text)
    return CorpusFiles((files[0],), (files[1],))


KINDS = ["plain", "crlf", "mark", "no end", "gz", "xz", "tsv", "jsonl"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [("LINES", 1), ("LINES", 4), ("BYTES", 40), ("LINES", 100)])
def test_chunks_hold_the_pairs_in_order(kind, limit, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module, *limit)
    corpus = written(tmp_path, kind)
    both = [corpus, corpus]
    found = list(read_chunks(both))
    of_kind = {"crlf": SOURCES, "jsonl": [source.replace("\r", " ") for source in SOURCES]}
    sources = of_kind.get(kind, [source.removesuffix("\r") for source in SOURCES])
    texts = [*[("", "")] * (kind == "tsv"), *zip(sources, TARGETS, strict=True)]
    files = corpus.sources[0], corpus.targets[0] if corpus.targets else None
    wanted = [Pair(*text, files[0], line, files[1]) for line, text in enumerate(texts, 1)]
    assert list(CorpusFiles(corpus.sources, corpus.targets).pairs()) == wanted
    assert [pair for chunk in found for pair in chunk.pairs()] == wanted * 2
    assert [chunk.corpus for chunk in found] == sorted(chunk.corpus for chunk in found)
    assert {chunk.lines for chunk in found} == {1} or limit != ("LINES", 1)
    assert len(found) > 2 or limit == ("LINES", 100)
    done = [chunk.done for chunk in found]
    assert done == sorted(done)
    assert done[-1] == 1
    for skip in range(len(found) + 1):
        assert list(read_chunks(both, skip)) == found[skip:]


@pytest.mark.parametrize(
    ("source", "target"), [(b"a\nb\nc\n", b"x\n"), (b"a\n", b"x\ny\nz"), (b"\xef\xbb\xbf", b"x\n")]
)
def test_uneven_files_are_told_after_the_pairs_that_are_whole(source, target, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module, "LINES", 2)
    (tmp_path / "a").write_bytes(source)
    (tmp_path / "b").write_bytes(target)
    counts = [len(text.removeprefix(b"\xef\xbb\xbf").splitlines()) for text in (source, target)]
    pairs = CorpusFiles([tmp_path / "a"], [tmp_path / "b"]).pairs()
    assert len([next(pairs) for _ in range(min(counts))]) == min(counts)
    with pytest.raises(UserError, match=f"a has {counts[0]} lines but .*b has {counts[1]}: "):
        next(pairs)


@pytest.mark.parametrize("name", ["a.de", "a.tsv", "a.jsonl"])
def test_a_bad_line_of_a_later_chunk_has_its_number(name, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module, "LINES", 2)
    good = {"a.de": b"a\n", "a.tsv": b"a\tb\n", "a.jsonl": b'{"source": "a", "target": "b"}\n'}[name]
    (tmp_path / name).write_bytes(good * 4 + b"\xff" + good)
    targets = ()
    if name == "a.de":
        (tmp_path / "a.en").write_bytes(b"x\n" * 5)
        targets = (tmp_path / "a.en",)
    first, second, third = read_chunks([CorpusFiles((tmp_path / name,), targets)])
    list(first.pairs()), list(second.pairs())
    with pytest.raises(UserError, match=f"{name}, line 5: byte 0xff at column 1"):
        list(third.pairs())


def test_columns_of_a_tsv_are_counted_over_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module, "LINES", 1)
    (tmp_path / "a.tsv").write_text("\na\tb\nc\td\te\n")
    found = list(read_chunks([CorpusFiles((tmp_path / "a.tsv",), ())]))
    with pytest.raises(UserError, match="line 3: has 3 columns, but the lines before have 2"):
        list(found[2].pairs())


def test_a_file_that_changes_while_it_is_read_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module, "LINES", 1)
    corpus = written(tmp_path, "tsv")
    with pytest.raises(UserError, match=r"a\.tsv: was changed while it was read"):  # noqa: PT012
        for _ in read_chunks([corpus]):
            os.utime(corpus.sources[0], ns=(1, 1))


def test_patterns_are_files_in_sorted_order(tmp_path):
    for name in ("b", "a", "c"):
        for side in ("de", "en"):
            (tmp_path / f"{name}.{side}").write_text("x\n")
    (tmp_path / "d.de").mkdir()
    (tmp_path / "[1].de").write_text("x\n")
    names = [tmp_path / f"{name}.de" for name in "abc"]
    assert as_corpus([tmp_path / "[a-c].de"], [tmp_path / "[a-c].en"]).sources == tuple(names)
    assert as_corpus([tmp_path / "[1].de"], [tmp_path / "a.en"]).sources == (tmp_path / "[1].de",)
    (tmp_path / "[1]").mkdir()
    (tmp_path / "[1]" / "a.de").write_text("x\n")
    assert as_corpus([tmp_path / "[1]" / "*.de"], [tmp_path / "a.en"]).sources == (tmp_path / "[1]" / "a.de",)
    given = as_corpus([tmp_path / "c.de", tmp_path / "[ab].de"], [tmp_path / "c.en", tmp_path / "[ab].en"])
    assert [file.name for file in given.targets] == ["c.en", "a.en", "b.en"]
    with pytest.raises(UserError, match=r"no\*\.de: no file has a name of this pattern"):
        as_corpus([tmp_path / "no*.de"], [tmp_path / "*.en"])
    with pytest.raises(UserError, match=r"\[ab\]\.de is 2 files, but .*\.en is 3"):
        as_corpus([tmp_path / "[ab].de"], [tmp_path / "*.en"])
