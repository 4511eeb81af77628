"""Members of compressed files, one after the other, are one file."""

from pathlib import Path

import pytest

from headway.data.compressed import compress, open_bytes
from headway.data.corpus import read_lines
from headway.data.lines import span_of_shard
from headway.errors import UserError

PARTS = [b"a\n", b"", b"b\n" * 5000]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_members_are_one_file(tmp_path, suffix):
    path = tmp_path / f"file{suffix}"
    members = [compress(path, part) for part in PARTS]
    path.write_bytes(b"".join(members))
    with open_bytes(path) as stream:
        assert stream.read() == b"".join(PARTS)
    assert [compress(Path(f"other{suffix}"), part) for part in PARTS] == members


def test_a_gzip_file_says_no_time():
    """RFC 1952: MTIME 0 means that no time is given."""
    assert compress(Path("file.gz"), b"a\n")[4:8] == bytes(4)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_a_file_is_written_as_another_name_says(tmp_path, suffix):
    with open_bytes(tmp_path / "file.partial", "wb", as_named=tmp_path / f"file{suffix}") as stream:
        stream.write(b"text\n")
    (tmp_path / "file.partial").rename(tmp_path / f"file{suffix}")
    with open_bytes(tmp_path / f"file{suffix}") as stream:
        assert stream.read() == b"text\n"


@pytest.mark.parametrize("name", ["file", "file.de", "file.gz", "file.xz"])
@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_a_file_is_read_as_its_bytes_say(tmp_path, name, suffix):
    path = tmp_path / name
    path.write_bytes(compress(Path(f"other{suffix}"), "".join(f"Zeile {i}\n" for i in range(1000)).encode()))
    lines = [f"Zeile {i}" for i in range(1000)]
    assert list(read_lines(path)) == lines
    spans = [span_of_shard(path, number, 3) for number in (1, 2, 3)]
    assert [line for span in spans for line in span.read(path)] == lines


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_file_that_is_cut_off_is_told_whatever_its_name(tmp_path, suffix):
    path = tmp_path / "file"
    path.write_bytes(compress(Path(f"other{suffix}"), b"".join(b"Zeile %d\n" % i for i in range(1000)))[:-5])
    with pytest.raises(UserError, match="file: can't be read after line"):
        list(read_lines(path))
