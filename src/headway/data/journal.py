"""The journal of an unfinished preparation, its folder `work`. A killed preparation continues from it.

`begun.json` says what the preparation was begun with, `chunks.jsonl` which chunks of the text are on disk. For each
kind of duplicates a file holds the hashes of their pairs.
"""

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from headway.data.encoding import EncodedChunk, PairCounts, SeenHashes
from headway.data.options import PreparationOptions
from headway.data.prepared import WORK, change_of_text, made_from, state_of_text
from headway.data.shards import ChunkEntry
from headway.errors import UserError
from headway.storage.atomic import write_json
from headway.storage.changes import first_change

Show = Callable[[int, float, float, float], None]
"""Shows progress: pairs so far, pairs per second, the share of the text that is done, minutes left."""
ON_DISK_EVERY = 2.0
"""Seconds of work that a kill may cost."""


def begin(folder: Path, options: PreparationOptions, files: Sequence[Path]) -> list[list[Any]]:
    """Writes down what the folder is made from, and returns the `state_of_text`. Raises UserError if it was begun from
    another recipe or other text."""
    now = {
        "made_from": made_from(options),
        "tokens_per_batch": options.tokens_per_batch,
        "init_from": str(options.init_from or ""),
    }
    begun = folder / WORK / "begun.json"
    if not begun.exists():
        begun.parent.mkdir(parents=True, exist_ok=True)
        text = state_of_text(files)
        write_json(begun, {**now, "text": text})
        return text
    before = json.loads(begun.read_bytes())
    keys = ("tokens_per_batch", "init_from")
    refuse_other_recipe(
        folder, *({**one["made_from"], "training": {key: one[key] for key in keys}} for one in (before, now))
    )
    refuse_other_text(folder, before["text"], files)
    return before["text"]


def refuse_other_recipe(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raises UserError if the two results of `made_from` differ."""
    if changed := first_change(before, now):
        raise UserError(f"{folder}: was begun with another recipe: {changed}; choose another --output, or delete it")


def refuse_other_text(folder: Path, before: list[list[Any]], files: Sequence[Path]) -> None:
    """Raises UserError unless the `state_of_text` of the files is what it was before."""
    remedy = f"put the text back as it was, choose another --output, or delete {folder}"
    if len(before) != len(files):
        raise UserError(f"{folder}: was begun with {len(before)} files of text, now there are {len(files)}; {remedy}")
    for file, then in zip(files, before, strict=True):
        if change := change_of_text(file, then):
            raise UserError(f"{file}: {change} since {folder} was begun; {remedy}")


class Journal:
    """The chunks that are done, in memory and on disk."""

    def __init__(self, work: Path, kinds: Sequence[str], corpora: int) -> None:
        """Reads what an earlier process has written."""
        self.entries: list[tuple[int, ChunkEntry]] = []
        """The corpus of each chunk, and what its shard must know of it."""
        self.counts = [PairCounts() for _ in range(corpora)]
        self.valid: set[int] = set()
        """The indices of the validation pairs that are also training pairs."""
        self.pairs = 0
        """Pairs read so far, including dropped ones."""
        self._seen = [SeenHashes() for _ in kinds]
        self._log = open(work / "chunks.jsonl", "a+b")  # noqa: SIM115 - open as long as this lives
        self._hashes: list[IO[bytes]] = [open(work / f"{kind}.hashes", "a+b") for kind in kinds]  # noqa: SIM115
        self._unwritten: list[bytes] = []
        self._read()

    def first_of(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """As `encode_chunks` asks."""
        return np.stack([seen.first(of_kind) for seen, of_kind in zip(self._seen, hashes, strict=True)])

    def add(self, chunk: EncodedChunk, entry: ChunkEntry) -> None:
        """Adds the next chunk. It is on disk after the next `write`."""
        document = {
            "corpus": chunk.corpus,
            "entry": asdict(entry),
            "counts": asdict(chunk.counts),
            "valid": chunk.valid,
            "hashes": chunk.hashes.shape[1],
        }
        self._count(document)
        self._unwritten.append(json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogateescape") + b"\n")
        for file, hashes in zip(self._hashes, chunk.hashes, strict=True):
            file.write(hashes.astype("<u8").tobytes())

    def write(self) -> None:
        """Puts all chunks on disk, the hashes before the log. The shards' own files must be on disk already."""
        for file in self._hashes:
            _sync(file)
        self._log.write(b"".join(self._unwritten))
        self._unwritten.clear()
        _sync(self._log)

    def close(self) -> None:
        for file in (self._log, *self._hashes):
            file.close()

    def _read(self) -> None:
        """Reads the whole lines of the log and their hashes, and cuts off whatever follows them."""
        self._log.seek(0)
        whole = self._log.read()
        whole = whole[: whole.rfind(b"\n") + 1]
        self._log.truncate(len(whole))
        hashes = 0
        for line in whole.splitlines():
            document = json.loads(line.decode("utf-8", "surrogateescape"))
            self._count(document)
            hashes += document["hashes"]
        for file, seen in zip(self._hashes, self._seen, strict=True):
            file.truncate(8 * hashes)
            file.seek(0)
            while part := file.read(2**23):
                seen.first(np.frombuffer(part, dtype="<u8").astype(np.uint64))

    def _count(self, document: dict[str, Any]) -> None:
        corpus, counts = document["corpus"], PairCounts(**document["counts"])
        self.entries.append((corpus, ChunkEntry(**document["entry"])))
        self.counts[corpus].add(counts)
        self.pairs += counts.read
        self.valid.update(document["valid"])


class Clock:
    """Says when the journal is due, and how fast this process works."""

    def __init__(self, pairs: int) -> None:
        """pairs: those that an earlier process has read."""
        self._pairs = pairs
        self._started = self._written = time.monotonic()
        self._done: float | None = None

    def due(self) -> bool:
        """Whether it is time to write the journal."""
        now = time.monotonic()
        if now - self._written < ON_DISK_EVERY:
            return False
        self._written = now
        return True

    def reading(self, pairs: int, done: float) -> tuple[int, float, float, float]:
        """The arguments of `Show`."""
        seconds = max(1e-9, time.monotonic() - self._started)
        if self._done is None:
            self._done = done if self._pairs else 0.0
        share = max(1e-9, done - self._done)
        return pairs, (pairs - self._pairs) / seconds, done, seconds * (1 - done) / share / 60


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
