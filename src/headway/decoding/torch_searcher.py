"""Translates many sources with torch, in batches of similar length. On CPU each core works on batches of its own."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from threading import Barrier, Lock
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from headway.decoding.beam import BeamWatch, beam_search
from headway.decoding.constrained_beams import ConstrainedBeams
from headway.decoding.constraints import Constraints
from headway.decoding.engine import Engine, EnsembleEngine, TorchEngine, padded, tensor_on
from headway.decoding.greedy_search import greedy, sample
from headway.decoding.options import Sampling, SearchOptions
from headway.decoding.searcher import Hypothesis, RequiredPhrases, search_batches
from headway.devices import return_freed_memory

SENTENCES_PER_BATCH, ROWS_PER_BATCH = 128, 320
"""Maximum batch size, in sentences and in hypotheses (see docs/tried.md)."""
CARD, MOST_CARDS = 8 * 2**30, 8
"""Bytes of a CUDA card for each such batch that a batch there is as large as, and the most of them."""
LENGTHS = 4
"""Sources are padded to a multiple of this length: oneDNN compiles its products for each shape, and keeps them."""
GROWTH = 192 * 2**20
"""Bytes that a process may grow by before `FreedMemory` returns free memory to the system."""
_STARTING = Lock()
"""Held while `_workers` changes the number of threads."""


class FreedMemory:
    """Returns free memory to the system whenever the process has grown. Batches differ in size, so free blocks rarely
    fit the next ones, and without this the heap would grow for hours. Does nothing outside of Linux."""

    def __init__(self) -> None:
        self._after = _resident()

    def bound(self) -> None:
        """Call this after each batch. It takes some microseconds, and some 30 ms where memory is returned."""
        if _resident() > self._after + GROWTH:
            return_freed_memory()
            self._after = _resident()


class _Work(NamedTuple):
    """Sources and the other arguments of a `Searcher` for each of them."""

    sources: Sequence[list[int]]
    caps: Sequence[int]
    prefixes: Sequence[list[int]]
    required: RequiredPhrases | None = None

    def of(self, batch: list[int]) -> "_Work":
        sources, caps = [self.sources[i] for i in batch], [self.caps[i] for i in batch]
        return _Work(sources, caps, [self.prefixes[i] for i in batch], self.required and self.required.of(batch))

    def constraints(self, options: SearchOptions, count: int = 1) -> Constraints | None:
        """For `count` rows of each source in succession; None without constraints."""
        if not any(self.prefixes) and not options.no_repeat_ngram:
            return None
        return Constraints([one for one in self.prefixes for _ in range(count)], options.no_repeat_ngram)


class TorchSearcher:
    """A `Searcher` over a torch engine."""

    takes_phrases = True

    def __init__(
        self, engine: Engine, pad_id: int, device: torch.device, after_batch: Callable[[], None] = lambda: None
    ) -> None:
        """after_batch: is called after the search of each batch, by any thread."""
        self._engine, self._pad_id, self._device, self._after_batch = engine, pad_id, device, after_batch

    def search(
        self,
        sources: Sequence[list[int]],
        options: SearchOptions,
        caps: Sequence[int],
        prefixes: Sequence[list[int]],
        required: RequiredPhrases | None = None,
        watch: BeamWatch | None = None,
    ) -> list[list[Hypothesis]]:
        """`watch` is called with the steps of beam search; it needs a single source. On CPU each core has batches of
        its own: the operations of a step are too small to be shared."""
        work = _Work(sources, caps, prefixes, required)
        width = options.beam_size if options.sample is None else options.n_best
        widths = [width] * len(sources)  # hypotheses of each source
        if required is not None:
            widths = [max(width, len(phrases) + 1) for phrases in required.phrases]
        batches: list[list[int]] = []
        scale = 1
        if self._device.type == "cuda":  # a step takes about as long for many rows as for few
            memory = torch.cuda.get_device_properties(self._device).total_memory
            scale = min(max(memory // CARD, 1), MOST_CARDS)
        for width in sorted(set(widths)):
            alike = [i for i, other in enumerate(widths) if other == width]
            most = min(ROWS_PER_BATCH // width, SENTENCES_PER_BATCH)
            batches += search_batches(alike, lambda i: len(sources[i]), most, scale)

        def search_batch(batch: list[int]) -> list[list[Hypothesis]]:
            wide = options if required is None else options.model_copy(update={"beam_size": widths[batch[0]]})
            hypotheses = self._search_batch(work.of(batch), wide, watch)
            self._after_batch()
            return hypotheses

        with _STARTING:
            workers = min(torch.get_num_threads() if self._device.type == "cpu" else 1, len(batches))
            pool = _workers(workers) if workers > 1 else None
        if pool is None:
            results = [search_batch(batch) for batch in batches]
        else:
            with pool:
                results = list(pool.map(search_batch, batches))
        found = dict(zip(chain(*batches), chain(*results), strict=True))
        if required is not None:
            left = [i for i, hypotheses in found.items() if not hypotheses]  # no room for their phrases
            rest = work.of(left)
            found.update(zip(left, self.search(rest.sources, options, rest.caps, rest.prefixes), strict=True))
        return [found[i] for i in range(len(sources))]

    def score(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[float]:
        """Waits for the device once, at the end."""
        engine, order, totals = self._engine, list[int](), list[Tensor]()
        assert isinstance(engine, (TorchEngine, EnsembleEngine))  # others only search
        lengths = [len(source) + len(target) for source, target in zip(sources, targets, strict=True)]
        for batch in search_batches(range(len(sources)), lengths.__getitem__, SENTENCES_PER_BATCH):
            source = padded([[*sources[i], engine.eos_id] for i in batch], self._pad_id)
            target = padded([[engine.bos_id, *targets[i], engine.eos_id] for i in batch], self._pad_id)
            order += batch
            totals.append(engine.score(source, target).sum(dim=1))
        scores = dict(zip(order, torch.cat(totals).tolist() if totals else [], strict=True))
        return [scores[i] for i in range(len(sources))]

    def _search_batch(self, work: _Work, options: SearchOptions, watch: BeamWatch | None) -> list[list[Hypothesis]]:
        engine = self._engine
        sources = padded([[*source, engine.eos_id] for source in work.sources], self._pad_id, LENGTHS)
        rows = tensor_on(self._device, sources.numpy())
        if options.sample is not None:
            return self._sample(rows, work, options, options.sample)
        constraints = work.constraints(options)
        if options.beam_size == 1:
            return [[hypothesis] for hypothesis in greedy(engine, rows, work.caps, constraints)]
        beams = work.required and ConstrainedBeams.start(engine.bos_id, engine.eos_id, work.required, work.caps)
        return beam_search(
            engine,
            rows,
            work.caps,
            beam_size=options.beam_size,
            n_best=options.n_best,
            alpha=options.length_penalty,
            constraints=constraints,
            beams=beams,
            watch=watch,
        )

    def _sample(self, rows: Tensor, work: _Work, options: SearchOptions, sampling: Sampling) -> list[list[Hypothesis]]:
        """rows: the sources, (batch, source length). Each sample has its own generator, seeded by the source's ids:
        the same text with the same seed gives the same samples wherever it stands."""
        count = options.n_best
        drawn = sample(
            self._engine,
            rows.repeat_interleave(count, dim=0),
            [cap for cap in work.caps for _ in range(count)],
            sampling,
            [np.random.default_rng([sampling.seed, number, *one]) for one in work.sources for number in range(count)],
            work.constraints(options, count),
        )
        of_source = (drawn[start : start + count] for start in range(0, len(drawn), count))
        return [sorted(some, key=lambda one: -one.score) for some in of_source]


def _workers(count: int) -> ThreadPoolExecutor:
    """A pool of threads that compute with one core each. Their setting is that of the whole process too, which a thread
    takes when it uses torch for the first time, so it is set back as soon as all have it."""
    before, pool, all_set = torch.get_num_threads(), ThreadPoolExecutor(count), Barrier(count)

    def use_one_core(_: int) -> None:
        torch.get_num_threads()  # the first use
        torch.set_num_threads(1)
        all_set.wait()

    try:
        list(pool.map(use_one_core, range(count)))
    finally:
        all_set.abort()  # where one can't be started, the others don't wait for it
        torch.set_num_threads(before)
    return pool


def _resident() -> int:
    """Bytes of this process in memory; 0 if unknown."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0
