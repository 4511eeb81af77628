"""Members of compressed files, one after the other, are one file."""

from pathlib import Path

import pytest

from headway.text.compressed import compress, open_bytes

PARTS = [b"a\n", b"", b"b\n" * 5000]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_members_are_one_file(tmp_path, suffix):
    path = tmp_path / f"file{suffix}"
    members = [compress(path, part) for part in PARTS]
    path.write_bytes(b"".join(members))
    with open_bytes(path) as stream:
        assert stream.read() == b"".join(PARTS)
    assert [compress(Path(f"other{suffix}"), part) for part in PARTS] == members


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_a_file_is_written_as_another_name_says(tmp_path, suffix):
    with open_bytes(tmp_path / "file.partial", "wb", as_named=tmp_path / f"file{suffix}") as stream:
        stream.write(b"text\n")
    (tmp_path / "file.partial").rename(tmp_path / f"file{suffix}")
    with open_bytes(tmp_path / f"file{suffix}") as stream:
        assert stream.read() == b"text\n"
