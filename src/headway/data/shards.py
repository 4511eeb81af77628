"""Writes ids to disk, and reads them memory-mapped: a corpus of any size is read as if it were in memory.

Ids on disk are a folder of shards `00000`, `00001`, ... with a description, `shards.json`. A shard is a folder of raw
little-endian arrays: `source.ids` and `target.ids` (all sentences, concatenated), `source.offsets` and `target.offsets`
(int64, the start of each sentence, and the end). Earlier versions wrote one shard alone, with a file `sizes` (int64,
the number of sentences of each corpus) and ids as int32.
"""

import json
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from headway.data.encoding import IDS_DTYPE, EncodedChunk, PairCounts, SeenHashes
from headway.data.packing import Joined, ranges
from headway.storage.atomic import write_directory, write_file, write_json

OFFSETS_DTYPE = np.dtype("<i8")
SIDES = ("source", "target")
TOKENS, CHUNKS = 2**25, 64
"""A shard ends after the chunk that brings it to so many tokens, or after so many chunks, about a million lines. Memory
holds it until then, and a killed preparation repeats it."""
DESCRIPTION = "shards.json"
FORMAT_VERSION = 1


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
        lengths = np.empty(len(indices), dtype=np.int64)
        for _, there, starts, ends in self._by_shard(indices):
            lengths[there] = ends - starts
        return lengths

    def joined(self, indices: NDArray[np.int64]) -> Joined:
        """The sequences with these indices."""
        lengths = self.lengths_of(indices)
        ids, starts_of = np.empty(lengths.sum(), dtype=np.int32), np.cumsum(lengths) - lengths
        for shard, there, starts, _ in self._by_shard(indices):
            ids[ranges(starts_of[there], lengths[there])] = self._ids[shard][ranges(starts, lengths[there])]
        return Joined(ids, lengths)

    def _by_shard(self, indices: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.bool_], Any, Any]]:
        """For each shard which of the indices are there, and the offsets of their starts and ends."""
        shards = np.searchsorted(self._starts, indices, side="right") - 1
        for shard in np.unique(shards):
            there = shards == shard
            places = indices[there] - self._starts[shard]
            yield shard, there, self._offsets[shard][places], self._offsets[shard][places + 1]

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
class WrittenShards:
    """The shards on disk, and counts of the text that they were made from."""

    sizes: list[int]
    """The pairs of each corpus, counting their versions."""
    counts: list[PairCounts]
    """The kept and dropped pairs of each corpus."""
    chunks: int = 0
    valid: list[int] = field(default_factory=list)
    """The indices of the validation pairs that are also training pairs, perhaps more than once."""
    longest: int = 0
    """The index of the first pair with the most tokens."""
    longest_tokens: int = -1
    shards: list[dict[str, int]] = field(default_factory=list)
    """The pairs and the tokens of each."""

    @property
    def pairs(self) -> int:
        """Pairs read so far, including dropped ones."""
        return sum(count.read for count in self.counts)

    def count(self, chunk: EncodedChunk) -> None:
        """Adds the next chunk."""
        tokens = chunk.source.lengths + chunk.target.lengths
        if len(tokens) and tokens.max() > self.longest_tokens:
            self.longest, self.longest_tokens = sum(self.sizes) + int(tokens.argmax()), int(tokens.max())
        self.sizes[chunk.corpus] += len(tokens)
        self.counts[chunk.corpus].add(chunk.counts)
        self.chunks += 1
        self.valid += chunk.valid


class ShardsWriter:
    """Writes the shards of a folder in order, each whole or not at all. With a folder `work`, a killed preparation
    continues after the last shard: `shards.json` there records what is written, and a file for each shard holds the
    hashes of its pairs."""

    def __init__(
        self, folder: Path, dtype: np.dtype[Any], corpora: int, work: Path | None = None, kinds: Sequence[str] = ()
    ) -> None:
        """kinds: of duplicates."""
        self._folder, self._dtype, self._work = folder, dtype, work
        self._chunks: list[EncodedChunk] = []
        """The chunks of the next shard."""
        self._seen = [SeenHashes() for _ in kinds]
        self.written = WrittenShards([0] * corpora, [PairCounts() for _ in range(corpora)])
        if work is not None and (work / DESCRIPTION).exists():
            self.written = TypeAdapter(WrittenShards).validate_json((work / DESCRIPTION).read_bytes())
            for number in range(len(self.written.shards) if kinds else 0):
                hashes = np.fromfile(work / f"{shard_name(number)}.hashes", dtype="<u8").astype(np.uint64)
                self.first_of(hashes.reshape(len(kinds), -1))

    def first_of(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Whether each hash of the next chunk, (kinds, pairs), is new."""
        first = [seen.first(of_kind) for seen, of_kind in zip(self._seen, hashes, strict=True)]
        return np.array(first, dtype=bool).reshape(hashes.shape)

    def add(self, chunk: EncodedChunk) -> None:
        """Adds the next chunk, and writes a shard if there is enough for one."""
        self._chunks.append(chunk)
        self.written.count(chunk)
        tokens = sum(len(one.source.ids) + len(one.target.ids) for one in self._chunks)
        if tokens >= TOKENS or len(self._chunks) == CHUNKS:
            self._write()

    def _write(self) -> None:
        chunks, number = self._chunks, len(self.written.shards)
        pairs = sum(len(one.source.lengths) for one in chunks)
        ids = {side: np.concatenate([getattr(one, side).ids for one in chunks]).astype(self._dtype) for side in SIDES}
        with write_directory(self._folder / shard_name(number), sum(one.nbytes for one in ids.values())) as shard:
            for side in SIDES:
                lengths = np.concatenate([[0], *(getattr(one, side).lengths for one in chunks)])
                ids[side].tofile(shard / f"{side}.ids")
                lengths.cumsum(dtype=OFFSETS_DTYPE).tofile(shard / f"{side}.offsets")
        self.written.shards.append({"pairs": pairs, **{f"{side}_tokens": len(ids[side]) for side in SIDES}})
        if self._work is not None:
            hashes = np.concatenate([one.hashes for one in chunks], axis=1)
            write_file(self._work / f"{shard_name(number)}.hashes", hashes.astype("<u8").tobytes())
            write_json(self._work / DESCRIPTION, asdict(self.written))
        self._chunks = []

    def finish(self, versions: int = 1) -> None:
        """Writes the last shard and the description of all. versions: the number of times each pair was added."""
        if self._chunks:
            self._write()
        written = self.written
        document = {
            "format_version": FORMAT_VERSION,
            "dtype": self._dtype.str,
            "sizes": [size // versions for size in written.sizes],
            **({"segmentations": versions} if versions > 1 else {}),
            "longest": written.longest,
            "longest_tokens": written.longest_tokens,
            "shards": written.shards,
        }
        write_json(self._folder / DESCRIPTION, document)


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
