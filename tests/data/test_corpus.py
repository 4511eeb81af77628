"""Parallel files: the right pairing, or one line that names file and line."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.data.compressed import MAGIC, fault_of_line, unchanged
from headway.data.corpus import CorpusFiles, Pair, read_chunks, read_lines, same_text
from headway.errors import UserError


def write(path, data: bytes):
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def complaint(function) -> str:
    with pytest.raises(UserError) as error:
        list(function())
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_lines_end_at_newline_only(tmp_path, name):
    text = "one\u2028still one\ntwo\x85\x0b\x0c\x1cstill two\nthree\rstill three\n\n"
    assert list(read_lines(write(tmp_path / name, text.encode()))) == [*text.split("\n")[:3], ""]


@pytest.mark.parametrize("data", [b"a\nb", b"a\nb\n", b"a\r\nb\r\n", b"\xef\xbb\xbfa\r\nb\n"])
def test_line_ends_and_byte_order_mark_are_not_text(tmp_path, data):
    assert list(read_lines(write(tmp_path / "a.txt", data))) == ["a", "b"]


def test_a_byte_order_mark_later_on_is_text(tmp_path):
    assert list(read_lines(write(tmp_path / "a.txt", b"a\n\xef\xbb\xbfb\n"))) == ["a", "\ufeffb"]


@pytest.mark.parametrize("bad", [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xe2\x82"])
def test_invalid_utf8_names_file_and_line(tmp_path, bad):
    path = write(tmp_path / "a.txt", b"fine\nnot " + bad + b"\n")
    assert f"{path}, line 2" in complaint(lambda: read_lines(path))


@pytest.mark.parametrize("lenient", [False, True])
def test_utf16_is_told_before_lines_are_counted(tmp_path, lenient):
    (tmp_path / "a").write_text("Größe\nEin Hund.\n", encoding="utf-16")
    (tmp_path / "b").write_text("size\n")
    with pytest.raises(UserError, match="a, line 1: is UTF-16; convert the file"):
        list(CorpusFiles([tmp_path / "a"], [tmp_path / "b"]).pairs(lenient=lenient))


def test_bytes_that_are_not_utf8_differ_from_characters_that_were_lost(tmp_path):
    """To a lenient reader, in files of every kind; a surrogate that JSON spells is a fault all the same."""
    for name, line in (("a.tsv", b"x%s\ty"), ("a.jsonl", b'{"source": "x%s", "target": "y"}')):
        path = write(tmp_path / name, line % b"\xff" + b"\n" + line % b"\xef\xbf\xbd" + b"\n")
        assert [pair.source for pair in CorpusFiles([path], []).pairs(lenient=True)] == ["x\udcff", "x\ufffd"]
    path = write(tmp_path / "a.jsonl", b'{"source": "\\udcff", "target": "y"}\n')
    assert "half of a surrogate pair" in complaint(lambda: CorpusFiles([path], []).pairs(lenient=True))


def test_columns_of_a_file(tmp_path):
    (tmp_path / "a.tsv").write_text("\n1\tx\ty\n2\tx\n")
    (tmp_path / "a.de").write_text("1\tx\ty\n")
    files = [tmp_path / "a.tsv", tmp_path / "a.de", tmp_path / "absent.tsv"]
    assert list(CorpusFiles(files, []).notices()) == [
        f"{tmp_path}/a.tsv: has 3 columns; the third and later ones are left out"
    ]


def test_missing_file_folder_and_broken_gzip(tmp_path):
    assert "no such file" in complaint(lambda: read_lines(tmp_path / "absent"))
    assert "is a folder" in complaint(lambda: read_lines(tmp_path))
    broken = tmp_path / "a.gz"
    broken.write_bytes(gzip.compress(b"text\n" * 1000)[:-20])
    assert f"{broken}: can't be read after line " in complaint(lambda: read_lines(broken))
    assert "no name of a file" in complaint(lambda: read_lines(Path("a\0b")))


LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=8).filter(
    lambda line: fault_of_line(line.encode(), 2) is None
)
WAYS = st.fixed_dictionaries({"end": st.sampled_from([b"\n", b"\r\n"]), "final": st.booleans(), "gz": st.booleans()})


def written(path, lines, end, final, gz):
    """The lines as a file in one of the ways to write them: line ends, a final one or none, gzip."""
    data = b"\xef\xbb\xbf" + b"".join(line.encode() + end for line in lines)
    if lines and lines[-1] and not final:
        data = data.removesuffix(end)
    path = path.with_suffix(".gz" if gz else "")
    return write(path, data)


PAIRS = st.lists(st.tuples(LINES, LINES), max_size=6)


def check_any_lines(folder, pairs, source_way, target_way):
    """Two files, whatever their lines hold and however they are written, give the pairs that were written."""
    pairs = [(source.rstrip("\r"), target.rstrip("\r")) for source, target in pairs]
    source = written(folder / "source", [source for source, _ in pairs], **source_way)
    target = written(folder / "target", [target for _, target in pairs], **target_way)
    found = [(pair.source, pair.target) for pair in CorpusFiles([source], [target]).pairs()]
    assert found == pairs


@settings(max_examples=300, deadline=None)
@given(pairs=PAIRS, source_way=WAYS, target_way=WAYS)
def test_whatever_the_lines_hold_and_however_they_are_written_each_has_its_partner(
    tmp_path_factory, pairs, source_way, target_way
):
    check_any_lines(tmp_path_factory.getbasetemp(), pairs, source_way, target_way)


BYTES = st.lists(
    st.sampled_from(
        [b"a", b"\n", b"\r", b"\n\n", b" ", b"\x00", b"\xff", b"\xc0\xaf", b"\xef\xbb\xbf", b"\xc2\x85", b"\xe2"]
    )
    | st.binary(max_size=3),
    max_size=12,
).map(b"".join)


def decoded(data):
    """The lines of a file by the rules alone, and the number of the first that is no text."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    texts = []
    for line in lines if lines[-1] else lines[:-1]:
        if fault_of_line(line + b"\n", len(texts) + 1):  # tests/text/test_signatures.py
            return texts, len(texts) + 1
        try:
            texts.append(line.decode().removesuffix("\r"))
        except UnicodeDecodeError:
            return texts, len(texts) + 1
    return texts, None


def check_any_bytes(folder, source, target):
    """Any two files give exactly their pairs, or an error that names the place."""
    if source.startswith(tuple(MAGIC)) or target.startswith(tuple(MAGIC)):
        return
    files = [write(folder / "source", source), write(folder / "target", target)]
    (sources, bad_source), (targets, bad_target) = decoded(source), decoded(target)
    places = [f"{file}, line {bad}:" for file, bad in zip(files, (bad_source, bad_target), strict=True) if bad]
    if not places and len(sources) == len(targets):
        pairs = [(pair.source, pair.target, pair.line) for pair in CorpusFiles(files[:1], files[1:]).pairs()]
        assert pairs == [(*texts, line) for line, texts in enumerate(zip(sources, targets, strict=True), start=1)]
        return
    message = complaint(lambda: CorpusFiles(files[:1], files[1:]).pairs())
    uneven = f"{files[0]} has {len(sources)} lines but {files[1]} has {len(targets)}:"
    assert message.startswith(tuple(places) if places else uneven)


@settings(max_examples=300, deadline=None)
@given(source=BYTES, target=BYTES)
def test_any_bytes_are_paired_rightly_or_named(tmp_path_factory, source, target):
    check_any_bytes(tmp_path_factory.getbasetemp(), source, target)


def test_a_line_without_end_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("headway.data.compressed.LONGEST_LINE", 10)
    path = write(tmp_path / "a", b"123456789\n1234567890\n")
    told = f"{path}, line 2: is longer than 10 bytes"
    assert told in complaint(lambda: read_lines(path))
    assert told in complaint(lambda: read_chunks([CorpusFiles((path,), (path,))]))


def test_a_file_that_changes_while_it_is_read_is_told(tmp_path):
    path = write(tmp_path / "a", b"one\ntwo\n")
    lines = read_lines(path)
    assert next(lines) == "one"
    with open(path, "ab") as file:
        file.write(b"three\n")
    assert f"{path}: was changed while it was read" in complaint(lambda: lines)
    with unchanged([path]):
        assert list(read_lines(path)) == ["one", "two", "three"]
    with pytest.raises(UserError, match="was changed"), unchanged([path]):
        write(tmp_path / "b", b"one\ntwo\nthree\n").replace(path)
    with pytest.raises(UserError, match="was changed"), unchanged([path]):
        path.unlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_one_pipe_is_not_both_sides(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "can't be both sides" in complaint(lambda: CorpusFiles([tmp_path / "pipe"], [tmp_path / "pipe"]).pairs())


def test_the_same_text_on_both_sides():
    def pairs(*texts):
        return [Pair(source, target, Path("f"), line) for line, (source, target) in enumerate(texts, 1)]

    assert same_text(pairs(("a", "a"), ("", ""), ("b", "b")))
    assert not same_text(pairs(("a", "a"), ("b", "c")))
    assert not same_text(pairs(("", ""), (" ", " ")))


def test_blank_lines_never_shift_the_pairing(tmp_path):
    source = write(tmp_path / "a.de", b"eins\n\ndrei\n")
    target = write(tmp_path / "a.en", b"one\ntwo\nthree\n")
    pairs = list(CorpusFiles([source], [target]).pairs())
    assert [(pair.source, pair.target, pair.line) for pair in pairs] == [
        ("eins", "one", 1),
        ("", "two", 2),
        ("drei", "three", 3),
    ]


@pytest.mark.parametrize(("source_lines", "target_lines"), [(3, 5), (5, 3), (0, 2)])
def test_uneven_files_name_both_counts(tmp_path, source_lines, target_lines):
    source = write(tmp_path / "a.de", b"x\n" * source_lines)
    target = write(tmp_path / "a.en", b"y\n" * target_lines)
    message = complaint(lambda: CorpusFiles([source], [target]).pairs())
    assert f"{source} has {source_lines} lines" in message
    assert f"{target} has {target_lines}" in message


def test_a_missing_final_newline_is_no_difference(tmp_path):
    pairs = CorpusFiles([write(tmp_path / "a", b"x\ny")], [write(tmp_path / "b", b"1\n2\n")]).pairs()
    assert len(list(pairs)) == 2


def test_several_files_follow_each_other(tmp_path):
    files = [write(tmp_path / name, name.encode() + b"\n") for name in ("a.de", "b.de", "a.en", "b.en")]
    pairs = list(CorpusFiles(files[:2], files[2:]).pairs())
    assert [(pair.source, pair.target, pair.file) for pair in pairs] == [
        ("a.de", "a.en", files[0]),
        ("b.de", "b.en", files[1]),
    ]
    assert "2 source files but 1 target files" in complaint(lambda: CorpusFiles(files[:2], files[2:3]).pairs())


def test_files_that_hold_both_sides(tmp_path):
    table, lines = tmp_path / "a.tsv", tmp_path / "b.jsonl"
    table.write_text("Hallo\tHello\tby somebody\n\nnein \tno\t\n", encoding="utf-8")
    lines.write_text('{"source": "eins\\nzwei", "target": "one\\u00e9", "id": 7}\n', encoding="utf-8")
    pairs = list(CorpusFiles([table, lines], []).pairs())
    assert [(pair.source, pair.target, pair.line) for pair in pairs] == [
        ("Hallo", "Hello", 1),
        ("", "", 2),
        ("nein ", "no", 3),
        ("eins zwei", "oneé", 1),
    ]
    zipped = tmp_path / "c.tsv.gz"
    zipped.write_bytes(gzip.compress(b"x\ty\n"))
    assert [(pair.source, pair.target) for pair in CorpusFiles([zipped], []).pairs()] == [("x", "y")]


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("a.tsv", "no tab here", r"a\.tsv, line 2: has no TAB"),
        ("a.tsv", "a\tb\nc\td\te", r"a\.tsv, line 3: has 3 columns, but the lines before have 2; is there a TAB"),
        ("a.tsv", "a\tb\tc\nd\te", r"a\.tsv, line 3: has 2 columns, but the lines before have 3"),
        ("a.jsonl", "{", r"a\.jsonl, line 2: is not JSON"),
        ("a.jsonl", "[" * 100_000, r"a\.jsonl, line 2: is not JSON"),
        ("a.jsonl", '{"source": "x"}', r"line 2: is not an object with texts `source` and `target`"),
        ("a.jsonl", '{"source": 1, "target": "x"}', r"line 2: is not an object"),
        ("a.jsonl", '["source", "target"]', r"line 2: is not an object"),
        ("a.jsonl", '[["source", "x"], ["target", "y"]]', r"line 2: is not an object"),
        ("a.jsonl", '{"source": "x", "target": "y", "source": "z"}', r"line 2: has `source` or `target` twice"),
        ("a.jsonl", '{"source": "\\ud800", "target": "x"}', r"line 2: holds half of a surrogate pair"),
        ("a.txt", "x", r"a\.txt: target is missing; give its translation, or one file of both sides \(\.tsv, "),
    ],
)
def test_lines_that_do_not_hold_both_sides(tmp_path, name, line, message):
    (tmp_path / name).write_text(f"\n{line}\n")
    with pytest.raises(UserError, match=message):
        list(CorpusFiles([tmp_path / name], []).pairs())
