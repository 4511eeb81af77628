"""The cache of models exported to CTranslate2, in `$HEADWAY_CACHE` or else `headway` in the user's cache folder.

Processes may share it; where it can't be written, the model is exported each time.
"""

import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headway.decoding import ctranslate2_model
from headway.errors import UserError
from headway.storage import AnyModel
from headway.storage.atomic import TEMPORARY_SUFFIX
from headway.storage.checksums import find_damage, write_checksums

PREFIX = "ctranslate2-"
MOST_KEPT = 16
"""Exports in the cache; of more, the least recently used are removed."""
ABANDONED = 24 * 3600
"""Seconds after which an unfinished export is taken for that of a killed process."""


@contextmanager
def exported(model: AnyModel, version: str) -> Iterator[Path]:
    """The folder of the exported model, from the cache if it is there and undamaged. `version` is CTranslate2's. Raises
    UserError for a model that can't be exported."""
    cache = _folder()
    folder = cache / f"{PREFIX}{_fingerprint(model, version)}"
    if find_damage(folder) is None:
        with suppress(OSError):
            os.utime(folder)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="headway-", dir=_temporary_folder()) as temporary:
        made = Path(temporary, "model")
        ctranslate2_model.export_ctranslate2(model, made)
        try:
            _keep(made, folder)
        except OSError as error:
            logging.getLogger(__name__).warning(
                "headway: %s: the model's form for CTranslate2 can't be kept there (%s) and is made each time; "
                "HEADWAY_CACHE may name another folder",
                cache,
                error.strerror or error,
            )
        yield made


def _folder() -> Path:
    for name, below in (("HEADWAY_CACHE", ""), ("XDG_CACHE_HOME", "headway")):
        if found := os.environ.get(name):
            return Path(found, below)
    try:
        return Path.home() / ".cache" / "headway"
    except RuntimeError:  # the user has no home
        return Path(_temporary_folder(), "headway")


def _temporary_folder() -> str:
    """The folder for temporary files. Raises UserError where none can be written."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        raise UserError("no folder for temporary files can be written; let TMPDIR name one that can") from None


def _fingerprint(model: AnyModel, version: str) -> str:
    """A hash of everything that is exported, and of the code and the version that export it."""
    found = hashlib.sha256(version.encode())
    found.update(Path(ctranslate2_model.__file__).read_bytes())
    found.update(json.dumps(model.config.to_dict(), sort_keys=True).encode())
    for tokenizer in (model.source_tokenizer, model.target_tokenizer):
        found.update(tokenizer.to_bytes())
    found.update(model.weights_checksum.encode())
    if model.shortlist is not None:
        for table in (model.shortlist.of_token, model.shortlist.always):
            found.update(table.tobytes())
    return found.hexdigest()[:32]


def _keep(made: Path, folder: Path) -> None:
    """Puts a copy of the export into the cache, whole or not at all. Another process may do the same."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=PREFIX, suffix=TEMPORARY_SUFFIX) as temporary:
        copy = Path(shutil.copytree(made, Path(temporary, "model")))
        write_checksums(copy)
        if find_damage(folder) is None:  # the other process was faster
            return
        with suppress(FileNotFoundError):
            folder.rename(Path(temporary, "damaged"))
        try:
            copy.rename(folder)
        except OSError:
            if find_damage(folder) is not None:
                raise
    _forget_old(folder.parent)


def _forget_old(cache: Path) -> None:
    """Removes the exports that are too many, and unfinished ones of killed processes."""
    used: dict[Path, float] = {}
    for folder in cache.glob(f"{PREFIX}*"):
        with suppress(FileNotFoundError):  # another process forgets, too
            used[folder] = folder.stat().st_mtime
    whole = [folder for folder in used if folder.suffix != TEMPORARY_SUFFIX]
    old = sorted(whole, key=lambda folder: used[folder], reverse=True)[MOST_KEPT:]
    left = [folder for folder in used.keys() - set(whole) if used[folder] < time.time() - ABANDONED]
    for folder in (*old, *left):
        shutil.rmtree(folder, ignore_errors=True)
