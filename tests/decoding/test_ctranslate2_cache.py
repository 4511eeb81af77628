"""Exports to CTranslate2 are made once, kept whole, and never stand in the way."""

import copy
import errno
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest
import torch

from headway.decoding import ctranslate2_cache
from headway.decoding.ctranslate2_cache import exported
from headway.errors import UserError
from headway.model import Transformer
from headway.storage import ModelDirectory, StoredModel, read_model, save_model
from headway.storage.checksums import find_damage
from tests.decoding.test_ctranslate2_model import stored, with_shortlist

pytestmark = pytest.mark.usefixtures("held_files_stay")

pytest.importorskip("ctranslate2")


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def made(monkeypatch) -> list[StoredModel]:
    """The models that were exported; without the check, which others test."""
    exports = []

    def export(one: StoredModel, output: Path) -> None:
        exports.append(one)
        output.mkdir()
        (output / "model.bin").write_bytes(bytes(one.model.output.weight.detach().numpy().tobytes()))

    monkeypatch.setattr(ctranslate2_cache.ctranslate2_model, "export_ctranslate2", export)
    return exports


def changed(one: StoredModel, amount: float) -> StoredModel:
    other = replace(one, model=copy.deepcopy(one.model))
    with torch.no_grad():
        other.model.output.weight[5, 5] += amount
    return other


def use(one: StoredModel | ModelDirectory, version: str = "1") -> bytes:
    with exported(one, version) as folder:
        return (folder / "model.bin").read_bytes()


def test_it_is_exported_once_and_again_where_the_copy_is_damaged(cache, made):
    one = stored()
    wanted = one.model.output.weight.detach().numpy().tobytes()
    assert use(one) == use(one) == wanted
    assert len(made) == 1
    [folder] = cache.iterdir()
    (folder / "model.bin").write_bytes(b"")
    assert use(one) == wanted
    assert len(made) == 2
    assert find_damage(folder) is None


def test_a_directory_finds_the_copy_without_reading_its_weights(cache, monkeypatch, tmp_path):
    one = stored()
    save_model(tmp_path / "model", one)
    directory = read_model(tmp_path / "model")
    use(one)
    monkeypatch.setattr(ModelDirectory, "weights", None)
    with exported(directory, "1") as found:
        assert found.parent == cache
        assert find_damage(found) is None
    assert len(list(cache.iterdir())) == 1


def test_weights_that_were_changed_after_they_were_verified_are_not_kept(cache, tmp_path):
    save_model(tmp_path / "model", stored())
    directory = read_model(tmp_path / "model")
    save_model(tmp_path / "other", changed(stored(), 1))
    shutil.copy(tmp_path / "other" / "model.safetensors", tmp_path / "model")
    with pytest.raises(UserError, match=r"model\.safetensors: was changed after it was verified"):
        use(directory)
    assert not cache.exists()


def test_without_any_folder_to_write_one_line_says_what_to_do(cache, made, monkeypatch):
    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    one = stored()
    kept = use(one)
    monkeypatch.setattr("tempfile.gettempdir", none)
    assert use(one) == kept
    with pytest.raises(UserError, match="no folder for temporary files can be written; let TMPDIR name one"):
        use(changed(one, 1))
    assert len(made) == 1


def test_another_model_another_package_and_another_exporter_are_another_copy(cache, made, monkeypatch, tmp_path):
    one = stored()
    use(one)
    assert use(changed(one, 1)) != use(one)
    use(one, "2")
    assert len(made) == len(list(cache.iterdir())) == 3
    module = ctranslate2_cache.ctranslate2_model
    other = Path(shutil.copy(module.__file__, tmp_path / "other.py"))
    with open(other, "a", encoding="utf-8") as file:
        file.write("# another version\n")
    monkeypatch.setattr(module, "__file__", str(other))
    use(one)
    assert len(made) == len(list(cache.iterdir())) == 4


def test_the_same_weights_in_a_model_of_another_config_are_another_copy(cache, made):
    one = stored()
    other = Transformer(replace(one.config, num_heads=1))
    for model in (one, replace(one, model=other)):
        with torch.no_grad():
            for parameter in model.model.parameters():
                parameter.fill_(0.5)
        use(model)
    assert len(made) == 2


def test_two_may_make_the_same_copy_at_the_same_time(cache, made, monkeypatch):
    both = Barrier(2)
    export = ctranslate2_cache.ctranslate2_model.export_ctranslate2

    def together(*given) -> None:
        both.wait(60)
        export(*given)
        both.wait(60)

    monkeypatch.setattr(ctranslate2_cache.ctranslate2_model, "export_ctranslate2", together)
    one = stored()
    for damaged in (False, True):
        with ThreadPoolExecutor(2) as pool:
            assert len(set(pool.map(use, [one, one]))) == 1
        [folder] = cache.iterdir()
        assert find_damage(folder) is None
        if not damaged:
            (folder / "model.bin").write_bytes(b"")
    assert len(made) == 4


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_cache_that_takes_nothing_is_told_of_and_done_without(reason, cache, made, monkeypatch, caplog):
    def copytree(*_):
        raise OSError(reason, os.strerror(reason), "model.bin")

    monkeypatch.setattr(ctranslate2_cache.shutil, "copytree", copytree)
    one = stored()
    assert use(one) == one.model.output.weight.detach().numpy().tobytes()
    [notice] = caplog.messages
    assert f"{cache}: " in notice
    assert f"({os.strerror(reason)})" in notice
    assert "HEADWAY_CACHE" in notice
    assert list(cache.iterdir()) == []


def test_another_shortlist_is_another_copy(cache, made):
    one = stored()
    for model in (one, with_shortlist(one), with_shortlist(one)):
        use(model)
    assert len(made) == 2


def test_a_cache_that_can_not_be_is_told_of_too(tmp_path, made, monkeypatch, caplog):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "file" / "cache"))
    assert use(stored())
    assert len(caplog.messages) == 1


def test_the_copies_that_were_not_used_for_longest_go(cache, made, monkeypatch):
    monkeypatch.setattr(ctranslate2_cache, "MOST_KEPT", 2)
    models = [changed(stored(), number) for number in range(3)]
    before = time.time() - 1000
    for number, one in enumerate(models[:2]):
        use(one)
        for folder in cache.iterdir():
            os.utime(folder, (before + number, before + number))
    use(models[0])  # so the other one is the oldest
    left, fresh, foreign = (cache / name for name in ("ctranslate2-x.partial", "ctranslate2-y.partial", "other"))
    for folder in (left, fresh, foreign):
        folder.mkdir()
    for folder in (left, foreign):
        os.utime(folder, (0, 0))
    use(models[2])
    assert sorted(path.name for path in cache.iterdir() if path in (left, fresh, foreign)) == [fresh.name, foreign.name]
    assert len(made) == 3
    use(models[0])
    assert len(made) == 3
    use(models[1])
    assert len(made) == 4
