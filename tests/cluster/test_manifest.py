"""Shards are the inputs, in order, and a folder knows what it is a translation of."""

import gzip
import json

import pytest

from headway.cluster import manifest as manifest_module
from headway.cluster.manifest import open_manifest
from headway.data.lines import LINES_AT_ONCE
from headway.errors import UserError
from headway.storage.atomic import remove_leftovers
from tests.cluster.conftest import texts

IDENTITY = {"model": ["m"], "options": {"beam_size": 1}}


def silent(_):
    pass


@pytest.fixture
def inputs(tmp_path):
    """Two files of several chunks, one compressed, and an empty one."""
    contents = [texts(3 * LINES_AT_ONCE + 5, 1), [], texts(LINES_AT_ONCE, 2)]
    paths = [tmp_path / name for name in ("a.txt", "empty.txt", "b.gz")]
    for path, lines in zip(paths, contents, strict=True):
        data = "".join(f"{line}\n" for line in lines).encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return paths, [line for lines in contents for line in lines]


@pytest.mark.parametrize("most", [10_000, 3, 1])
def test_shards_in_order_are_the_inputs(inputs, tmp_path, monkeypatch, most):
    monkeypatch.setattr(manifest_module, "MOST_SHARDS", most)
    paths, lines = inputs
    made = open_manifest(tmp_path / "out", paths, IDENTITY, silent)
    assert [line for shard in made.shards for line in shard.span.read(paths[shard.file])] == lines
    assert made.lines == len(lines)
    names = [f"{shard.name}.txt" for shard in made.shards]
    assert names == sorted(names)
    assert len(names) == {10_000: 5, 3: 3, 1: 2}[most]
    assert made.missing() == made.shards
    assert open_manifest(tmp_path / "out", paths, IDENTITY, silent) == made


def test_what_is_there_is_not_missing(inputs, tmp_path):
    made = open_manifest(tmp_path / "out", inputs[0], IDENTITY, silent)
    first, second, *others = made.shards
    (made.folder / f"{second.name}.txt").touch()
    (made.folder / f"{first.name}.txt.1-a.partial").touch()
    (made.folder / f"{first.name}.notices").write_text(json.dumps({"failed": 3, "notices": []}))
    assert made.missing() == [first, *others]
    assert made.failed() == 3
    remove_leftovers(made.folder)
    assert sorted(file.name for file in made.folder.iterdir()) == [
        "manifest.json",
        f"{first.name}.notices",
        f"{second.name}.txt",
    ]


def test_another_job_is_refused(inputs, tmp_path):
    paths, _ = inputs
    folder = tmp_path / "out"
    open_manifest(folder, paths, IDENTITY, silent)
    with pytest.raises(UserError, match=r"other settings: options"):
        open_manifest(folder, paths, {**IDENTITY, "options": {"beam_size": 2}}, silent)
    with pytest.raises(UserError, match=r"other settings: inputs"):
        open_manifest(folder, paths[:2], IDENTITY, silent)
    text = paths[0].read_bytes()
    for other in (text + b"more\n", text[:-2] + b"x\n"):
        paths[0].write_bytes(other)
        with pytest.raises(UserError, match=r"other settings: inputs"):
            open_manifest(folder, paths, IDENTITY, silent)
    paths[0].write_bytes(text)
    open_manifest(folder, paths, IDENTITY, silent)
    document = json.loads((folder / "manifest.json").read_text())
    for one in document["inputs"]:
        del one["sha256"]  # as version 1
    (folder / "manifest.json").write_text(json.dumps({**document, "format_version": 1}))
    with pytest.raises(UserError, match="was begun by another version of headway; use the same as before, or choose"):
        open_manifest(folder, paths, IDENTITY, silent)
    (folder / "manifest.json").write_text("{}")
    with pytest.raises(UserError, match="isn't a manifest of this version"):
        open_manifest(folder, paths, IDENTITY, silent)


def test_folders_of_others_and_text_that_is_none(inputs, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine").touch()
    with pytest.raises(UserError, match="is not empty and holds no translations"):
        open_manifest(other, inputs[0], IDENTITY, silent)
    bad = tmp_path / "bad"
    bad.write_bytes(b"a\n\xff\n")
    with pytest.raises(UserError, match="bad, line 2: byte 0xff"):
        open_manifest(tmp_path / "new", [bad], IDENTITY, silent)
    assert not (tmp_path / "new").exists()
