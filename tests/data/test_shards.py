"""Shards: the ids that went in come out, however many shards there are and however often the writing was stopped."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headway.data import shards
from headway.data.encoding import EncodedChunk, PairCounts, ids_dtype
from headway.data.packing import Joined
from headway.data.shards import ParallelIds, ShardsWriter

RANDOM = np.random.default_rng(7)
CORPORA = 3


def chunk_of(corpus: int, pairs: list[tuple[list[int], list[int]]]) -> EncodedChunk:
    sides = [Joined.of([np.array(pair[side]) for pair in pairs]) for side in (0, 1)]
    return EncodedChunk(corpus, 1.0, PairCounts(kept=len(pairs)), *sides, [], np.empty((0, 0), dtype=np.uint64))


def random_pairs(count: int) -> list[tuple[list[int], list[int]]]:
    def ids() -> list[int]:
        return RANDOM.integers(4, 2**16, RANDOM.integers(1, 9)).tolist()

    return [(ids(), ids()) for _ in range(count)]


PAIRS = [(corpus, random_pairs(size)) for corpus, size in [(0, 4), (0, 0), (0, 7), (1, 1), (1, 5), (2, 2), (2, 9)]]
CHUNKS = [chunk_of(corpus, pairs) for corpus, pairs in PAIRS]
ALL = [pair for _, pairs in PAIRS for pair in pairs]


def writer_of(folder: Path) -> ShardsWriter:
    folder.mkdir(exist_ok=True)
    return ShardsWriter(folder / "ids", np.dtype("<u2"), CORPORA, folder)


def write(folder: Path, chunks: list[EncodedChunk]) -> None:
    writer = writer_of(folder)
    for chunk in chunks:
        writer.add(chunk)
    writer.finish()


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("tokens", [1, 40, 10_000])
@pytest.mark.parametrize("chunks", [1, 3, 1000])
def test_ids_come_back(tokens, chunks, tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "TOKENS", tokens)
    monkeypatch.setattr(shards, "CHUNKS", chunks)
    write(tmp_path, CHUNKS)
    corpus = ParallelIds(tmp_path / "ids")
    assert [(corpus.source[pair].tolist(), corpus.target[pair].tolist()) for pair in range(len(corpus))] == ALL
    assert corpus.sizes == [11, 6, 11]
    lengths = [[len(pair[side]) for pair in ALL] for side in (0, 1)]
    order = RANDOM.permutation(len(ALL))
    assert [found.tolist() for found in corpus.lengths_of(order)] == [[side[one] for one in order] for side in lengths]
    for side, found in enumerate((corpus.source.joined(order), corpus.target.joined(order))):
        assert found.ids.tolist() == [id_ for one in order for id_ in ALL[one][side]]
        assert found.lengths.tolist() == [lengths[side][one] for one in order]
    assert corpus.mean_lengths == tuple(sum(side) / len(ALL) for side in lengths)
    sums = [sum(pair) for pair in zip(*lengths, strict=True)]
    assert corpus.longest_pair() == sums.index(max(sums))
    made, held = 0, []
    for corpus_of_chunk in CHUNKS:
        held.append(len(corpus_of_chunk.source.ids) + len(corpus_of_chunk.target.ids))
        if sum(held) >= tokens or len(held) == chunks or corpus_of_chunk is CHUNKS[-1]:
            made, held = made + 1, []
    assert len(list((tmp_path / "ids").glob("0*"))) == made
    for outside in (-1, len(ALL)):
        with pytest.raises(IndexError):
            corpus.source[outside]


@pytest.mark.parametrize("stopped", range(len(CHUNKS) + 1))
def test_writing_goes_on_after_the_last_shard(stopped, tmp_path, monkeypatch):
    """Chunks of a shard that wasn't finished are written again."""
    monkeypatch.setattr(shards, "CHUNKS", 2)
    write(tmp_path / "whole", CHUNKS)
    first = writer_of(tmp_path / "stopped")
    for chunk in CHUNKS[:stopped]:
        first.add(chunk)
    second = writer_of(tmp_path / "stopped")
    assert second.written.chunks == stopped // 2 * 2
    assert second.written.pairs == sum(chunk.counts.read for chunk in CHUNKS[: second.written.chunks])
    write(tmp_path / "stopped", CHUNKS[second.written.chunks :])
    assert files(tmp_path / "stopped") == files(tmp_path / "whole")


def test_hashes_are_known_again(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "CHUNKS", 1)
    hashes = np.arange(6, dtype=np.uint64).reshape(2, 3)
    first = ShardsWriter(tmp_path / "ids", np.dtype("<u2"), CORPORA, tmp_path, ("pair", "source"))
    assert first.first_of(hashes).all()
    first.add(replace(CHUNKS[0], hashes=hashes))
    second = ShardsWriter(tmp_path / "ids", np.dtype("<u2"), CORPORA, tmp_path, ("pair", "source"))
    assert second.first_of(np.array([[2, 7, 0], [2, 5, 9]], dtype=np.uint64)).tolist() == [[0, 1, 0], [1, 0, 1]]


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
