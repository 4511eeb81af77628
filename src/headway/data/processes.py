"""Encodes chunks of text in several processes: the same result, in the same order, as by one.

The processes load no torch. This process alone has seen all earlier pairs, so it says which hashes are new.
"""

import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing import get_context, parent_process
from threading import Thread

import numpy as np
from numpy.typing import NDArray

from headway.data.corpus import Chunk
from headway.data.encoding import ChunkEncoder, EncodedChunk, EncodingSettings, FilteredChunk
from headway.errors import UserError

FEW = 2
"""Chunks that aren't worth starting processes for."""
AHEAD = 2
"""Chunks per process that are filtered ahead of those that are tokenised, and tokenised ahead of the next in order."""
FirstOf = Callable[[NDArray[np.uint64]], NDArray[np.bool_]]
"""Says for each hash of a chunk, (kinds, pairs), whether it is new. It is called for the chunks in their order."""


def encode_chunks(
    chunks: Iterator[Chunk], settings: EncodingSettings, processes: int, first_of: FirstOf
) -> Generator[EncodedChunk]:
    """The chunks as ids, in their order. This process encodes them itself if `processes` is 1 or there are few chunks.
    Raises UserError."""
    few = list(islice(chunks, FEW + 1)) if processes > 1 else []
    chunks = chain(few, chunks)
    if len(few) <= FEW:
        encoder = ChunkEncoder(settings)
        for chunk in chunks:
            filtered = encoder.filtered(chunk)
            yield encoder.encode(filtered, first_of(filtered.hashes))
        return
    workers = ProcessPoolExecutor(processes, get_context("spawn"), _begin, (settings,))
    filtering, encoding = deque[Future[FilteredChunk]](), deque[Future[EncodedChunk]]()
    try:
        while True:
            for chunk in islice(chunks, AHEAD * processes - len(filtering)):
                filtering.append(workers.submit(_filtered, chunk))
            if filtering:
                filtered = filtering.popleft().result()
                encoding.append(workers.submit(_encoded, filtered, first_of(filtered.hashes)))
            if not encoding:
                return
            if not filtering or len(encoding) > AHEAD * processes:
                yield encoding.popleft().result()
    except BrokenProcessPool:
        raise UserError(
            "a process that prepares text was ended, perhaps because memory ran out; try again with fewer processes"
        ) from None
    finally:
        workers.shutdown(cancel_futures=True)


_encoder: ChunkEncoder
"""The encoder of a worker."""


def _begin(settings: EncodingSettings) -> None:
    """Prepares a process, which ends when its parent does, and leaves Ctrl-C to it."""
    global _encoder  # noqa: PLW0603
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _encoder = ChunkEncoder(settings)

    def end_with_parent() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    Thread(target=end_with_parent, daemon=True).start()


def _filtered(chunk: Chunk) -> FilteredChunk:
    return _encoder.filtered(chunk)


def _encoded(filtered: FilteredChunk, new: NDArray[np.bool_]) -> EncodedChunk:
    return _encoder.encode(filtered, new)
