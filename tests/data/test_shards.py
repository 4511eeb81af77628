"""Shards: the ids that went in come out, however many shards there are and however often the writing was stopped."""

import os
from pathlib import Path

import numpy as np
import pytest

from headway.data import shards
from headway.data.encoding import EncodedChunk, PairCounts, ids_dtype
from headway.data.shards import ChunkEntry, ParallelIds, ShardsWriter
from headway.errors import UserError

RANDOM = np.random.default_rng(7)
CORPORA = 3


def chunk_of(corpus: int, pairs: list[tuple[list[int], list[int]]]) -> EncodedChunk:
    sides = [[pair[side] for pair in pairs] for side in (0, 1)]
    flat = [np.array([one for ids in side for one in ids], dtype="<u2") for side in sides]
    lengths = [np.array([len(ids) for ids in side], dtype=np.int64) for side in sides]
    counts = PairCounts(kept=len(pairs))
    return EncodedChunk(corpus, 1.0, counts, *flat, *lengths, [], np.empty((0, 0), dtype=np.uint64))


def random_pairs(count: int) -> list[tuple[list[int], list[int]]]:
    def ids() -> list[int]:
        return RANDOM.integers(4, 2**16, RANDOM.integers(1, 9)).tolist()

    return [(ids(), ids()) for _ in range(count)]


PAIRS = [(corpus, random_pairs(size)) for corpus, size in [(0, 4), (0, 0), (0, 7), (1, 1), (1, 5), (2, 2), (2, 9)]]
CHUNKS = [chunk_of(corpus, pairs) for corpus, pairs in PAIRS]
ALL = [pair for _, pairs in PAIRS for pair in pairs]


def write(folder: Path, chunks: list[EncodedChunk], before: list[tuple[int, ChunkEntry]] = ()) -> list:
    writer = ShardsWriter(folder, np.dtype("<u2"), before)
    entries = []
    for chunk in chunks:
        entries.append((chunk.corpus, writer.add(chunk)))
        writer.sync()
        writer.close_full()
    writer.close()
    return entries


def finish(folder: Path, before: list[tuple[int, ChunkEntry]]) -> None:
    ShardsWriter(folder, np.dtype("<u2"), before).finish(CORPORA)


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("size", [1, 5, 10, 1000])
def test_ids_come_back(size, tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "PAIRS", size)
    finish(tmp_path, write(tmp_path, CHUNKS))
    corpus = ParallelIds(tmp_path)
    assert [(corpus.source[pair].tolist(), corpus.target[pair].tolist()) for pair in range(len(corpus))] == ALL
    assert corpus.sizes == [11, 6, 11]
    lengths = [[len(pair[side]) for pair in ALL] for side in (0, 1)]
    order = RANDOM.permutation(len(ALL))
    assert [found.tolist() for found in corpus.lengths_of(order)] == [[side[one] for one in order] for side in lengths]
    assert corpus.mean_lengths == tuple(sum(side) / len(ALL) for side in lengths)
    tokens = [sum(pair) for pair in zip(*lengths, strict=True)]
    assert corpus.longest_pair() == tokens.index(max(tokens))
    assert len(list(tmp_path.iterdir())) == {1: 7, 5: 4, 10: 3, 1000: 2}[size]
    for outside in (-1, len(ALL)):
        with pytest.raises(IndexError):
            corpus.source[outside]


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize("stopped", range(len(CHUNKS) + 1))
def test_writing_goes_on_after_what_is_known_to_be_there(size, stopped, tmp_path, monkeypatch):
    """What was written after that, or renamed, makes no difference."""
    monkeypatch.setattr(shards, "PAIRS", size)
    finish(tmp_path / "whole", write(tmp_path / "whole", CHUNKS))
    for further in (0, 1, 2):
        folder = tmp_path / str(further)
        writer = ShardsWriter(folder, np.dtype("<u2"))
        known = []
        for number, chunk in enumerate(CHUNKS[: stopped + further]):
            if number >= stopped and writer.full:
                break  # a shard is never closed before the entries are kept
            entry = writer.add(chunk)
            writer.sync()
            if number < stopped:
                known.append((chunk.corpus, entry))
                if number < stopped - 1 or further != 1:
                    writer.close_full()
        writer.close()
        finish(folder, known + write(folder, CHUNKS[stopped:], known))
        assert files(folder) == files(tmp_path / "whole")


def test_what_was_lost_is_told(tmp_path):
    known = write(tmp_path / "train", CHUNKS[:3])
    os.truncate(tmp_path / "train" / "00000.partial" / "source.ids", 3)
    with pytest.raises(UserError, match=r"source\.ids: is shorter than it was; delete"):
        ShardsWriter(tmp_path / "train", np.dtype("<u2"), known)


def test_small_vocabularies_take_half_the_bytes():
    assert [ids_dtype(size).itemsize for size in (4, 2**16, 2**16 + 1)] == [2, 2, 4]
    assert np.array([2**16 - 1]).astype(ids_dtype(2**16)).tolist() == [2**16 - 1]


def test_a_corpus_takes_no_memory_that_grows_with_it(tmp_path, monkeypatch):
    """Ten million pairs, most of whose offsets are never written: the files are sparse."""
    count = 5_000_000
    for number in range(2):
        folder = tmp_path / f"0000{number}"
        folder.mkdir()
        for side in ("source", "target"):
            with open(folder / f"{side}.ids", "wb") as ids, open(folder / f"{side}.offsets", "wb") as offsets:
                ids.truncate(2)
                offsets.truncate(8 * (count + 1))
    described = {"dtype": "<u2", "sizes": [2 * count], "longest": 5, "shards": [{}, {}]}
    (tmp_path / "shards.json").write_text(str(described).replace("'", '"'))
    before = anonymous_bytes()
    corpus = ParallelIds(tmp_path)
    assert len(corpus) == 2 * count
    assert corpus.longest_pair() == 5
    assert corpus.lengths_of(np.arange(0, len(corpus), 100_000))[0].tolist() == [0] * 100
    assert corpus.mean_lengths == (0, 0)
    assert anonymous_bytes() - before < 2**21


def anonymous_bytes() -> int:
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        pytest.skip("no /proc here")
    return 1024 * int(next(line.split()[1] for line in text.splitlines() if line.startswith("RssAnon")))
