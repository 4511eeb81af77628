"""The journal of an unfinished preparation, in its folder `work`. A killed preparation continues from it.

`chunks.jsonl` lists the chunks of the text that are on disk. For each kind of duplicates a file holds the hashes of
their pairs.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from headway.data.encoding import EncodedChunk, PairCounts, SeenHashes
from headway.data.shards import ChunkEntry, sync_file

ON_DISK_EVERY = 2.0
"""Seconds of work that a kill may cost."""


class Journal:
    """The chunks that are done, in memory and on disk."""

    def __init__(self, work: Path, kinds: Sequence[str], corpora: int) -> None:
        """Reads the journal of an earlier process."""
        self.entries: list[tuple[int, ChunkEntry]] = []
        """The corpus and the entry of each chunk."""
        self.counts = [PairCounts() for _ in range(corpora)]
        self.valid: set[int] = set()
        """The indices of the validation pairs that are also training pairs."""
        self.pairs = 0
        """Pairs read so far, including dropped ones."""
        self._seen = [SeenHashes() for _ in kinds]
        self._log = open(work / "chunks.jsonl", "a+b")  # noqa: SIM115 - open as long as this lives
        self._hashes: list[IO[bytes]] = [open(work / f"{kind}.hashes", "a+b") for kind in kinds]  # noqa: SIM115
        self._unwritten: list[bytes] = []
        self._written = time.monotonic()
        self._read()

    def first_of(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Whether each hash of the next chunk, (kinds, pairs), is new."""
        return np.stack([seen.first(of_kind) for seen, of_kind in zip(self._seen, hashes, strict=True)])

    def add(self, chunk: EncodedChunk, entry: ChunkEntry) -> None:
        """Adds the next chunk. It is on disk after the next `write`."""
        document = {
            "corpus": chunk.corpus,
            "entry": asdict(entry),
            "counts": asdict(chunk.counts),
            "valid": chunk.valid,
        }
        document["hashes"] = chunk.hashes.shape[1]
        self._count(document)
        self._unwritten.append(json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogateescape") + b"\n")
        for file, hashes in zip(self._hashes, chunk.hashes, strict=True):
            file.write(hashes.astype("<u8").tobytes())

    @property
    def is_due(self) -> bool:
        """Whether it is time to `write`."""
        return time.monotonic() - self._written >= ON_DISK_EVERY

    def write(self) -> None:
        """Puts all chunks on disk, the hashes before the log. The shards' own files must be on disk already."""
        for file in self._hashes:
            sync_file(file)
        self._log.write(b"".join(self._unwritten))
        self._unwritten.clear()
        sync_file(self._log)
        self._written = time.monotonic()

    def close(self) -> None:
        for file in (self._log, *self._hashes):
            file.close()

    def _read(self) -> None:
        """Reads the complete lines of the log and their hashes, and cuts off the rest."""
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
