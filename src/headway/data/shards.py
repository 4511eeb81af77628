"""Writes ids to disk, and reads them memory-mapped: a corpus of any size is read as if it were in memory.

Ids on disk are a folder of shards `00000`, `00001`, ... with a description, `shards.json`. A shard is a folder of raw
little-endian arrays: `source.ids` and `target.ids` (all sentences, concatenated), `source.offsets` and `target.offsets`
(int64, the start of each sentence, and the end). Earlier versions wrote one shard alone, with a file `sizes` (int64,
the number of sentences of each corpus) and ids as int32.
"""

from __future__ import annotations

import json
import mmap
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from headway.data.encoding import IDS_DTYPE, EncodedChunk, PairCounts, SeenHashes
from headway.errors import UserError

OFFSETS_DTYPE = np.dtype("<i8")
SIDES = ("source", "target")
PAIRS = 2**23
"""A shard ends after the chunk that brings it to this many pairs. Files then have up to a gigabyte, and are few."""
DESCRIPTION = "shards.json"
FORMAT_VERSION = 1
UNFINISHED = ".partial"
ON_DISK_EVERY = 2.0
"""Seconds of work that a kill of a preparation may cost."""


class Sequences:
    """Memory-mapped sequences of ids, those of all shards in order."""

    def __init__(self, folders: Sequence[Path], side: str, dtype: np.dtype[Any]) -> None:
        self._ids = [_mapped(folder / f"{side}.ids", dtype, scattered=True) for folder in folders]
        self._offsets = [_mapped(folder / f"{side}.offsets", OFFSETS_DTYPE) for folder in folders]
        sizes = [len(offsets) - 1 for offsets in self._offsets]
        self._starts = np.array([0, *accumulate(sizes)])
        """The index of the first sequence of each shard, and the end."""

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, index: int) -> NDArray[Any]:
        if not 0 <= index < len(self):
            raise IndexError(index)
        shard = int(np.searchsorted(self._starts, index, side="right")) - 1 if len(self._ids) > 1 else 0
        offsets, place = self._offsets[shard], index - self._starts[shard]
        return self._ids[shard][offsets[place] : offsets[place + 1]]

    def lengths_of(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        shards = np.searchsorted(self._starts, indices, side="right") - 1
        lengths = np.empty(len(indices), dtype=np.int64)
        for shard in np.unique(shards):
            there = shards == shard
            places = indices[there] - self._starts[shard]
            lengths[there] = self._offsets[shard][places + 1] - self._offsets[shard][places]
        return lengths

    @property
    def total(self) -> int:
        return sum(int(offsets[-1]) for offsets in self._offsets)


class ParallelIds:
    """The ids of a parallel corpus, without control ids: `source[i]` and `target[i]` belong together. All versions of
    a pair are consecutive. Memory holds neither the corpus nor anything of its length."""

    def __init__(self, folder: Path) -> None:
        self.sizes: list[int]
        """The pairs of each corpus. The corpora follow each other."""
        self.versions = 1
        self._longest: int | None = None
        if (folder / DESCRIPTION).exists():
            described = json.loads((folder / DESCRIPTION).read_bytes())
            folders = [folder / shard_name(number) for number in range(len(described["shards"]))]
            dtype, self.sizes, self._longest = np.dtype(described["dtype"]), described["sizes"], described["longest"]
            self.versions = described.get("segmentations", 1)
        else:
            folders, dtype = [folder], IDS_DTYPE
            self.sizes = np.fromfile(folder / "sizes", dtype=OFFSETS_DTYPE).tolist()
        self.source, self.target = (Sequences(folders, side, dtype) for side in SIDES)

    def __len__(self) -> int:
        """The number of pairs, counting their versions."""
        return len(self.source)

    def lengths_of(self, pairs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The numbers of tokens of these pairs' sources and targets."""
        return self.source.lengths_of(pairs), self.target.lengths_of(pairs)

    def longest_pair(self) -> int:
        """The index of the pair with the most tokens."""
        if self._longest is None:  # in ids of an earlier version
            self._longest = int(np.add(*self.lengths_of(np.arange(len(self)))).argmax())
        return self._longest

    @property
    def mean_lengths(self) -> tuple[float, float]:
        """The mean number of tokens of a source and of a target."""
        return self.source.total / len(self), self.target.total / len(self)


def shard_name(number: int) -> str:
    return f"{number:05}"


@dataclass
class Shard:
    """The size of a shard."""

    pairs: int = 0
    source_tokens: int = 0
    target_tokens: int = 0


@dataclass
class ChunkEntry(Shard):
    """The size of a chunk."""

    longest: int = 0
    """The index, within the chunk, of the first pair with the most tokens."""
    longest_tokens: int = -1
    """The tokens of that pair; -1 in a chunk without pairs."""


class ShardsWriter:
    """Writes the shards of a folder in order. Each gets its name when it is full and on disk. A writer made with the
    entries of the chunks that are on disk, as from a `Journal`, continues after them and cuts off the rest."""

    def __init__(self, folder: Path, dtype: np.dtype[Any], before: Iterable[tuple[int, ChunkEntry]] = ()) -> None:
        """before: corpus and entry of each chunk that is on disk already."""
        self.folder, self._dtype = folder, dtype
        self._shards: list[Shard] = []
        self._sizes: list[int] = []
        """Pairs of each corpus so far."""
        self._longest, self._longest_tokens = 0, -1
        self._files: dict[str, IO[bytes]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        for corpus, entry in before:
            self._count(corpus, entry)
        for number, shard in enumerate(self._shards):
            if not (folder / shard_name(number)).exists():
                self._open(number, shard)
                self.close_full()

    def add(self, chunk: EncodedChunk) -> ChunkEntry:
        """Writes the pairs. They are on disk after the next `sync`."""
        tokens = chunk.source_lengths + chunk.target_lengths
        entry = ChunkEntry(len(tokens), len(chunk.source), len(chunk.target))
        if len(tokens):
            entry.longest, entry.longest_tokens = int(tokens.argmax()), int(tokens.max())
        before = len(self._shards)
        shard = self._count(chunk.corpus, entry)
        if len(self._shards) > before:
            self._open(before, Shard())
        for side in SIDES:
            ids, lengths = getattr(chunk, side), getattr(chunk, f"{side}_lengths")
            start = getattr(shard, f"{side}_tokens") - len(ids)
            self._files[f"{side}.ids"].write(ids.astype(self._dtype, copy=False).tobytes())
            self._files[f"{side}.offsets"].write((start + np.cumsum(lengths)).astype(OFFSETS_DTYPE).tobytes())
        return entry

    def _count(self, corpus: int, entry: ChunkEntry) -> Shard:
        """Adds the chunk to the sizes, and returns its shard."""
        if entry.longest_tokens > self._longest_tokens:
            self._longest, self._longest_tokens = sum(self._sizes) + entry.longest, entry.longest_tokens
        self._sizes += [0] * (corpus + 1 - len(self._sizes))
        self._sizes[corpus] += entry.pairs
        if not self._shards or self._shards[-1].pairs >= PAIRS:
            self._shards.append(Shard())
        shard = self._shards[-1]
        shard.pairs += entry.pairs
        shard.source_tokens += entry.source_tokens
        shard.target_tokens += entry.target_tokens
        return shard

    @property
    def full(self) -> bool:
        """Whether the open shard must be closed before the next `add`."""
        return bool(self._files) and self._shards[-1].pairs >= PAIRS

    def sync(self) -> None:
        """Returns when all pairs so far are on disk."""
        for file in self._files.values():
            _sync(file)

    def close_full(self) -> None:
        """Ends the open shard if it is full. Its pairs must be on disk, and their entries kept."""
        if self.full:
            self._end()

    def finish(self, corpora: int, versions: int = 1) -> None:
        """Ends the last shard and writes the description of all. versions: the number of times each pair was added."""
        self.sync()
        if self._files:
            self._end()
        document = {
            "format_version": FORMAT_VERSION,
            "dtype": self._dtype.str,
            "sizes": [size // versions for size in (*self._sizes, *[0] * (corpora - len(self._sizes)))],
            **({"segmentations": versions} if versions > 1 else {}),
            "longest": self._longest,
            "longest_tokens": self._longest_tokens,
            "shards": [asdict(shard) for shard in self._shards],
        }
        (self.folder / DESCRIPTION).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")

    def close(self) -> None:
        """Closes the files and leaves the open shard as it is."""
        for file in self._files.values():
            file.close()
        self._files = {}

    def _open(self, number: int, shard: Shard) -> None:
        """Opens the shard's files, cut to its size. Raises UserError if they are shorter."""
        folder = self.folder / f"{shard_name(number)}{UNFINISHED}"
        folder.mkdir(exist_ok=True)
        for side in SIDES:
            if not shard.pairs:
                (folder / f"{side}.ids").write_bytes(b"")
                (folder / f"{side}.offsets").write_bytes(np.zeros(1, dtype=OFFSETS_DTYPE).tobytes())
            ids = getattr(shard, f"{side}_tokens") * self._dtype.itemsize
            offsets = (shard.pairs + 1) * OFFSETS_DTYPE.itemsize
            for name, size in ((f"{side}.ids", ids), (f"{side}.offsets", offsets)):
                path = folder / name
                if not path.exists() or path.stat().st_size < size:
                    raise UserError(f"{path}: is shorter than it was; delete {self.folder.parent} and begin again")
                os.truncate(path, size)
                self._files[name] = open(path, "ab")  # noqa: SIM115 - open as long as the shard

    def _end(self) -> None:
        self.close()
        name = shard_name(len(self._shards) - 1)
        (self.folder / f"{name}{UNFINISHED}").rename(self.folder / name)


class Journal:
    """The finished chunks of a preparation. A killed preparation continues after those on disk: `chunks.jsonl` lists
    them, and for each kind of duplicates a file holds the hashes of their pairs."""

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
        first = [seen.first(of_kind) for seen, of_kind in zip(self._seen, hashes, strict=True)]
        return np.array(first, dtype=bool).reshape(hashes.shape)

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
            _sync(file)
        self._log.write(b"".join(self._unwritten))
        self._unwritten.clear()
        _sync(self._log)
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
        counts = PairCounts(**document["counts"])
        self.entries.append((document["corpus"], ChunkEntry(**document["entry"])))
        self.counts[document["corpus"]].add(counts)
        self.pairs += counts.read
        self.valid.update(document["valid"])


def _sync(file: IO[bytes]) -> None:
    """Returns when everything written to the file is on disk."""
    file.flush()
    os.fsync(file.fileno())


def _mapped(file: Path, dtype: np.dtype[Any], *, scattered: bool = False) -> NDArray[Any]:
    """The file as an array. scattered: reads are small and far apart, so the system shouldn't read their neighbourhood,
    too: of a file larger than memory that would be evicted before it is used."""
    if not file.stat().st_size:  # of a shard whose only chunk kept no pair; no empty file can be mapped
        return np.empty(0, dtype)
    with open(file, "rb") as opened:
        memory = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    if scattered and hasattr(mmap, "MADV_RANDOM"):
        memory.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(memory, dtype)
