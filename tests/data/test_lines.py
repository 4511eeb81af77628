"""Texts out of lines, parts of files that are the file again, and bounds on what is worked on together."""

import gzip
import json
import lzma
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.cli.files import input_lines
from headway.data import lines as lines_module
from headway.data.compressed import compress, open_bytes
from headway.data.corpus import decode_lines, read_lines
from headway.data.lines import (
    CHARACTERS_AT_ONCE,
    LINES_AT_ONCE,
    Layout,
    Line,
    Span,
    SpanReader,
    chunks,
    span_of_shard,
    with_pauses,
)
from headway.errors import UserError


def test_chunks_keep_the_order_and_both_bounds():
    lines = ["a"] * 5000 + ["b" * (CHARACTERS_AT_ONCE // 2)] * 5 + ["c"]
    found = list(chunks(lines, len))
    assert [line for chunk in found for line in chunk] == lines
    assert [len(chunk) for chunk in found[:2]] == [LINES_AT_ONCE] * 2
    assert max(sum(map(len, chunk)) for chunk in found) < 1.6 * CHARACTERS_AT_ONCE
    assert list(chunks([], len)) == []


@pytest.fixture
def pipe():
    """The chunks of what is written to a pipe, and the end to write to."""
    read, write = os.pipe()
    with os.fdopen(read, "rb") as stream, os.fdopen(write, "wb", buffering=0) as file:
        yield chunks(with_pauses(decode_lines(stream, "pipe")), len), file


def test_what_has_come_before_a_pause_waits_for_no_more(pipe):
    found, file = pipe
    file.write(b"one\ntwo\nthr")
    assert next(found) == ["one", "two"]
    file.write(b"ee\n\nfour")
    assert next(found) == ["three", ""]
    file.close()
    assert list(found) == [["four"]]


def test_what_comes_without_a_pause_comes_in_whole_chunks(pipe, monkeypatch):
    monkeypatch.setattr(lines_module, "PAUSE", 5.0)
    found, file = pipe
    file.write(b"a\n" * 5000)
    assert [len(next(found)) for _ in range(2)] == [LINES_AT_ONCE] * 2
    file.close()
    assert list(map(len, found)) == [5000 - 2 * LINES_AT_ONCE]


def test_an_error_comes_after_the_lines_before_it(pipe):
    found, file = pipe
    file.write(b"one\n")
    assert next(found) == ["one"]
    file.write(b"\xff\n")
    with pytest.raises(UserError, match="pipe, line 2: byte 0xff"):
        next(found)


def test_a_column_of_each_line():
    lines = ["a\tb\tc", "", "a", "\tb", " \t "]
    found = list(Layout(column=2).lines(lines, first=7))
    assert [line.number for line in found] == [7, 8, 9, 10, 11]
    assert [line.text for line in found] == ["b", "", "", "b", " \t "]
    assert [line.fault for line in found] == ["", "", "has only 1 column", "", ""]
    assert [line.text for line in Layout(column=1).lines(lines)] == ["a", "", "a", "", " \t "]


def test_a_field_of_each_line():
    lines = [
        '{"text": "a\\nb\\rc", "other": 1}',
        "  ",
        '{"other": "a"}',
        '{"text": 3}',
        "[]",
        "{",
        '{"text": "\\ud800"}',
        "[" * 100_000,
        '{"text": "한글"}',
        '\ufeff{"text": "joined"}',
        '{"id": 1, "translation": {"text": "within"}}',
    ]
    found = list(Layout(field="text").lines(lines))
    assert [line.text for line in found] == ["a b c", "  ", "", "", "", "", "", "", "한글", "joined", "within"]
    assert [bool(line.fault) for line in found] == [False, False, *[True] * 6, False, False, False]
    assert all("\n" not in line.text for line in found)


def test_quoted_columns_of_a_file(tmp_path):
    quoted, plain = tmp_path / "a.tsv", tmp_path / "b.tsv"
    plain.write_text('1\t"Ja", sagte er.\n')
    assert [line.text for line in Layout(2).of_file(plain).lines(read_lines(plain))] == ['"Ja", sagte er.']
    quoted.write_text('"1"\t"Er sagt ""ja""."\n"2"\t"a\tb"\n')
    assert [line.text for line in Layout(2).of_file(quoted).lines(read_lines(quoted))] == ['Er sagt "ja".', "a\tb"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes with names")
def test_no_line_of_a_pipe_is_lost(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    Thread(target=(tmp_path / "pipe").write_text, args=("1\tone\n2\ttwo\n",), daemon=True).start()
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(lambda: [line.text for line in input_lines(str(tmp_path / "pipe"), Layout(2))])
        try:
            assert reading.result(30) == ["one", "two"]
        finally:
            if not reading.done():  # it waits for another writer
                (tmp_path / "pipe").write_text("")


def test_a_whole_line_is_its_own_text():
    assert list(Layout().lines(["a\tb", "{}"])) == [Line(1, "a\tb"), Line(2, "{}")]


CONTENTS = st.lists(st.sampled_from(["", "a", "é" * 3, "x" * 9, "b\r"]), max_size=12).flatmap(
    lambda lines: st.sampled_from(["\n".join(lines), "".join(f"{line}\n" for line in lines)])
)


@given(CONTENTS, st.integers(1, 9), st.sampled_from([".txt", ".gz", ".xz"]))
def test_shards_one_after_the_other_are_the_file(tmp_path_factory, content, count, suffix):
    path = tmp_path_factory.mktemp("shards") / f"file{suffix}"
    data = content.encode()
    path.write_bytes({".txt": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[suffix](data))
    spans = [span_of_shard(path, number, count) for number in range(1, count + 1)]
    whole = list(read_lines(path))
    assert [line for span in spans for line in span.read(path)] == whole
    numbers = [span.first + i for span in spans for i in range(span.lines)]
    assert numbers == list(range(1, len(whole) + 1))


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_spans_in_any_order_from_one_open_file(tmp_path, monkeypatch, suffix):
    path, other = tmp_path / f"file{suffix}", tmp_path / "other"
    lines = [f"line {i} {'x' * (i % 50)}" for i in range(20_000)]
    path.write_bytes(compress(path, "".join(f"{line}\n" for line in lines).encode()))
    other.write_text("a\nb\n")
    spans = [span_of_shard(path, number, 5) for number in range(1, 6)]
    opened = []
    monkeypatch.setattr(lines_module, "open_bytes", lambda file: opened.append(file) or open_bytes(file))
    reader = SpanReader()
    for number in (0, 1, 3, 2, 4):
        first = spans[number].first - 1
        assert list(reader.read(path, spans[number])) == lines[first : first + spans[number].lines]
    assert opened == [path]
    assert list(reader.read(other, Span(2, 2, 1))) == ["b"]
    assert list(reader.read(path, spans[4]))[-1] == lines[-1]
    assert opened == [path, other, path]
    reader.close()


def test_shards_are_of_like_size(tmp_path):
    path = tmp_path / "file"
    path.write_text("".join(f"line {i}\n" for i in range(10_000)))
    lines = [span_of_shard(path, number, 7).lines for number in range(1, 8)]
    assert sum(lines) == 10_000
    assert max(lines) - min(lines) < 0.1 * min(lines)


def test_shards_need_a_file_that_is_whole(tmp_path):
    with pytest.raises(UserError, match="isn't a regular file; shards are parts of a file"):
        span_of_shard(Path("/dev/null"), 1, 2)
    damaged = tmp_path / "file.gz"
    damaged.write_bytes(gzip.compress(b"a\n" * 1000)[:-9])
    with pytest.raises(UserError, match=r"file\.gz: can't be read .*; is it complete"):
        span_of_shard(damaged, 1, 2)


def test_an_error_in_a_part_names_the_line_of_the_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"a\n" * 10 + b"\xff\n" + b"a\n" * 2)
    span = span_of_shard(path, 2, 2)
    with pytest.raises(UserError, match="line 11: byte 0xff at column 1"):
        list(span.read(path))


def test_a_mark_in_the_middle_of_a_file_is_text(tmp_path):
    path = tmp_path / "file"
    path.write_text("\ufeffa\n\ufeffb\n")
    assert [line for number in (1, 2) for line in span_of_shard(path, number, 2).read(path)] == ["a", "\ufeffb"]


def test_a_field_is_found_as_json_finds_it():
    document = {"text": 'quoted "text" \t and \\', "n": [1, {"text": "inner"}]}
    [line] = Layout(field="text").lines([json.dumps(document)])
    assert line == Line(1, document["text"])
