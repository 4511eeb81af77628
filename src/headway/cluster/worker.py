"""A worker holds a model and translates shards, each into a file that appears when it is complete."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from headway.cluster.manifest import Manifest, TextShard
from headway.data.lines import Layout, SpanReader, chunks
from headway.errors import UserError
from headway.storage.atomic import TEMPORARY_SUFFIX, sync
from headway.storage.model_directory import model_fingerprint
from headway.translator import Translator
from headway.translator.lines import JobNotice, LineOptions, LineTranslator

MOST_DEATHS = 3
"""Workers that one shard may kill in a job before it is given up."""


@dataclass(frozen=True)
class Work:
    """Everything that decides how a line is translated."""

    model: Path
    ensemble: tuple[Path, ...]
    device: str
    precision: str
    engine: str
    layout: Layout
    options: LineOptions
    core: str | None = None

    def identity(self) -> dict[str, Any]:
        """The settings that must stay the same for a job to continue. Raises UserError."""
        return {
            "model": self.fingerprints(),
            "options": self.options.to_dict(),
            **{name: getattr(self, name) for name in ("engine", "precision", "device")},
            "column or field": [self.layout.column, self.layout.field],
        }

    def fingerprints(self) -> list[str]:
        return [model_fingerprint(path) for path in (self.model, *self.ensemble)]

    def load(self, device: str | None = None) -> LineTranslator:
        options: Any = {name: getattr(self, name) for name in ("device", "precision", "engine", "core")}
        options |= {"device": device or self.device}
        return LineTranslator(Translator.load(self.model, ensemble=self.ensemble, **options), self.options)


@dataclass(frozen=True)
class ShardOutcome:
    """The result of a shard."""

    name: str
    notices: Sequence[JobNotice] = ()
    error: str = ""
    """The reason if the shard wasn't translated."""
    for_user: bool = False
    """Whether the user can fix the error."""


class Worker:
    """Translates shards of a manifest."""

    def __init__(self, work: Work, manifest: Manifest) -> None:
        """Raises UserError if the model on this machine is not that of the manifest."""
        if work.fingerprints() != manifest.models:
            raise UserError(f"{work.model}: is a different model on this machine; put the same model on all machines")
        self._work, self._manifest = work, manifest
        self._translator, self._reader = work.load(), SpanReader()

    def translate(self, shard: TextShard) -> ShardOutcome:
        """Translates the shard unless its file exists or it has killed MOST_DEATHS workers. Never raises an error."""
        path = self._manifest.folder / f"{shard.name}.txt"
        begun = path.with_name(f"{shard.name}.begun{TEMPORARY_SUFFIX}")
        try:
            if path.exists():
                return ShardOutcome(shard.name)
            with open(begun, "ab") as file:
                if file.tell() == MOST_DEATHS:
                    return ShardOutcome(shard.name, error=f"killed its worker {MOST_DEATHS} times")
                file.write(b".")
            try:
                return self._write(shard, path)
            finally:
                begun.unlink(missing_ok=True)
        except UserError as error:
            self._reader.close()  # the user may replace the file
            return ShardOutcome(shard.name, error=str(error), for_user=True)
        except Exception as error:
            return ShardOutcome(shard.name, error=f"{type(error).__name__}: {' '.join(str(error).split())}")

    def _write(self, shard: TextShard, path: Path) -> ShardOutcome:
        """Puts the notices in place before the translations, so a finished shard always has them."""
        given = self._manifest.inputs[shard.file]
        file, expected = Path(given["path"]), given["size"]
        if file.stat().st_size != expected:
            raise UserError(f"{file}: no longer has the {expected:,} bytes that the manifest records; restore it")
        lines = self._work.layout.of_file(file).lines(self._reader.read(file, shard.span), shard.span.first)
        # A worker that was given up may still be alive, with the same shard, so no other may use these names.
        partial = path.with_name(f"{path.name}.{os.getpid()}-{uuid4().hex}{TEMPORARY_SUFFIX}")
        partial_notices = partial.with_name(f"notices.{partial.name}")
        notices: list[JobNotice] = []
        count = failed = 0
        try:
            with open(partial, "wb") as out:
                for chunk in chunks(lines, lambda line: len(line.text)):
                    written = self._translator.translate(chunk)
                    out.write(written.text.encode())
                    count += len(chunk)
                    failed += written.failed
                    notices += written.notices
            if count != shard.span.lines:
                raise UserError(f"{file}: no longer has the lines that the manifest records; restore it")
            sync(partial)
            if notices:
                document = {"failed": failed, "notices": [one.text for one in notices]}
                partial_notices.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
                sync(partial_notices)
                partial_notices.replace(path.with_suffix(".notices"))
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        sync(path.parent)
        return ShardOutcome(shard.name, [one._replace(text=f"{file}: {one.text}") for one in notices])
