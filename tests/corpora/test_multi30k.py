"""Laying out a corpus: names, checksums, one line for what is wrong. On small files of our own."""

import gzip
import hashlib
import urllib.error
import urllib.request

import pytest

from headway.corpora import multi30k
from headway.errors import UserError


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A folder as the corpus's authors publish it, and its checksums."""
    folder, sums = tmp_path / "published", {}
    for kind, name, file in (
        ("raw", "train.de", "train.de.gz"),
        ("raw", "train.en", "train.en.gz"),
        ("tok", "train.de", "tok/train.lc.norm.tok.de.gz"),
    ):
        data = f"{kind} {name}\n".encode()
        sums[f"{kind}/{name}"] = hashlib.sha256(data).hexdigest()
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(gzip.compress(data))
    monkeypatch.setattr(multi30k, "SHA256", sums)
    return folder


def test_files_are_laid_out_under_short_names(published, tmp_path):
    files = multi30k.lay_out(tmp_path / "out", published)
    assert sorted(str(file.relative_to(tmp_path / "out")) for file in files) == [
        "raw/train.de",
        "raw/train.en",
        "tok/train.de",
    ]
    assert (tmp_path / "out" / "tok" / "train.de").read_text() == "tok train.de\n"


def test_files_may_lie_unpacked_in_a_folder_raw(published, tmp_path):
    (published / "raw").mkdir()
    (published / "raw" / "train.de").write_bytes(gzip.decompress((published / "train.de.gz").read_bytes()))
    (published / "train.de.gz").unlink()
    assert len(multi30k.lay_out(tmp_path / "out", published)) == 3


def test_a_wrong_file_is_named_and_nothing_is_written(published, tmp_path):
    (published / "train.en.gz").write_bytes(gzip.compress(b"else\n"))
    with pytest.raises(UserError, match=r"raw/train\.en\.gz: checksum"):
        multi30k.lay_out(tmp_path / "out", published)
    (published / "train.en.gz").write_bytes(b"not gzip")
    with pytest.raises(UserError, match=r"train\.en\.gz: can't be read"):
        multi30k.lay_out(tmp_path / "out", published)
    (published / "train.en.gz").unlink()
    with pytest.raises(UserError, match=r"has no raw/train\.en\.gz"):
        multi30k.lay_out(tmp_path / "out", published)
    assert not (tmp_path / "out").exists()


def test_every_published_file_has_a_checksum():
    assert len(multi30k.SHA256) == 3 * (4 + 2)
    assert all(len(digest) == 64 for digest in multi30k.SHA256.values())


def test_without_a_network_the_remedy_is_told(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    with pytest.raises(UserError, match=r"can't be downloaded .*--from"):
        multi30k.lay_out(tmp_path / "out", None)
