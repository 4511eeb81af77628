"""Translates many sources with torch, in batches of similar length. On CPU each core works on batches of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from headway.decoding.beam import BeamWatch, beam_search
from headway.decoding.constrained_beams import ConstrainedBeams
from headway.decoding.constraints import Constraints
from headway.decoding.engine import Engine, TorchEngine, padded
from headway.decoding.greedy_search import greedy
from headway.decoding.hypothesis import Hypothesis
from headway.decoding.options import Sampling, SearchOptions
from headway.decoding.phrases import Demands
from headway.decoding.sampling import sample
from headway.decoding.shortlist import ShortlistEngine
from headway.devices import return_freed_memory
from headway.text.by_length import batches_by_length

SENTENCES_PER_BATCH, ROWS_PER_BATCH = 128, 320
"""Sentences that are translated together, at most, and hypotheses of theirs (see docs/tried.md)."""
TOKENS_PER_BATCH = 4096
"""Padded source tokens that are translated together, at most."""
LENGTHS = 4
"""Sources are padded to a multiple of this length: oneDNN compiles its products for each shape, and keeps them."""
GROWTH = 192 * 2**20
"""Bytes that a process may grow by before `FreedMemory` gives back what is free."""

Allowed = Callable[[np.ndarray], np.ndarray]
"""Which target ids the translation of each source may have: source ids (sentences, length), padded -> bool (sentences,
target vocabulary)."""


class FreedMemory:
    """Gives free memory back whenever the process has grown. Batches differ in their sizes, so free blocks rarely fit
    the next ones, and without this the heap would grow for hours. Only Linux tells how large a process is."""

    def __init__(self) -> None:
        self._after = _resident()

    def bound(self) -> None:
        """To be called after each batch: costs some microseconds, and some 30 ms where memory is given back."""
        if _resident() > self._after + GROWTH:
            return_freed_memory()
            self._after = _resident()


class TorchSearcher:
    """A `Searcher` over a torch engine."""

    default_length_penalty = None

    def __init__(
        self,
        engine: Engine,
        pad_id: int,
        device: torch.device,
        after_batch: Callable[[], None] = lambda: None,
        allowed: Allowed | None = None,
    ) -> None:
        """after_batch: is called after the search of each batch, by any thread. allowed: of a `TorchEngine`, what
        greedy and beam search may generate; sampling may generate everything."""
        self._engine, self._pad_id, self._device = engine, pad_id, device
        self._allowed = allowed
        self._after_batch = after_batch

    def search(
        self,
        sources: Sequence[list[int]],
        options: SearchOptions,
        caps: Sequence[int],
        prefixes: Sequence[list[int]],
        watch: BeamWatch | None = None,
    ) -> list[list[Hypothesis]]:
        """`watch` is called with the steps of beam search; it needs a single source."""
        width = options.n_best if options.sample is not None else options.beam_size
        batches = _batches(range(len(sources)), lambda i: len(sources[i]), ROWS_PER_BATCH // width)

        def search_batch(batch: list[int]) -> list[list[Hypothesis]]:
            work = [sources[i] for i in batch], [caps[i] for i in batch], [prefixes[i] for i in batch]
            return self._search_batch(*work, options, watch=watch)

        found = self._map(search_batch, batches)
        return [found[i] for i in range(len(sources))]

    def search_with_phrases(
        self,
        sources: Sequence[list[int]],
        options: SearchOptions,
        caps: Sequence[int],
        prefixes: Sequence[list[int]],
        demands: Demands,
    ) -> list[list[Hypothesis]]:
        widths = [max(options.beam_size, len(phrases) + 1) for phrases in demands.phrases]
        batches: list[list[int]] = []
        for width in sorted(set(widths)):
            alike = [i for i, other in enumerate(widths) if other == width]
            batches += _batches(alike, lambda i: len(sources[i]), ROWS_PER_BATCH // width)

        def search_batch(batch: list[int]) -> list[list[Hypothesis]]:
            work = [sources[i] for i in batch], [caps[i] for i in batch], [prefixes[i] for i in batch]
            return self._search_batch(*work, replace(options, beam_size=widths[batch[0]]), demands.of(batch))

        found = self._map(search_batch, batches)
        left = [i for i, hypotheses in found.items() if not hypotheses]
        without = self.search([sources[i] for i in left], options, [caps[i] for i in left], [prefixes[i] for i in left])
        found.update(zip(left, without, strict=True))
        return [found[i] for i in range(len(sources))]

    def score(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[float]:
        engine = self._engine
        scores: dict[int, float] = {}
        for batch in _batches(range(len(sources)), lambda i: len(sources[i]) + len(targets[i]), SENTENCES_PER_BATCH):
            source = padded([[*sources[i], engine.eos_id] for i in batch], self._pad_id)
            target = padded([[engine.bos_id, *targets[i], engine.eos_id] for i in batch], self._pad_id)
            totals = engine.score(source, target).sum(dim=1)  # (batch,)
            scores.update(zip(batch, totals.tolist(), strict=True))
        return [scores[i] for i in range(len(sources))]

    def _search_batch(
        self,
        sources: list[list[int]],
        caps: list[int],
        prefixes: list[list[int]],
        options: SearchOptions,
        demands: Demands | None = None,
        watch: BeamWatch | None = None,
    ) -> list[list[Hypothesis]]:
        engine = self._engine
        on_cpu = padded([[*source, engine.eos_id] for source in sources], self._pad_id, LENGTHS)
        if self._allowed is not None and options.sample is None and watch is None:
            return self._search_shortlist(on_cpu, self._allowed(on_cpu.numpy()), caps, prefixes, options, demands)
        rows = on_cpu.to(self._device)  # (batch, source length)
        if options.sample is not None:
            count = options.n_best
            constraints = _constraints([one for one in prefixes for _ in range(count)], options.no_repeat_ngram)
            drawn = sample(
                engine,
                rows.repeat_interleave(count, dim=0),
                [cap for cap in caps for _ in range(count)],
                options.sample,
                [one for source in sources for one in _generators(options.sample, source, count)],
                constraints,
            )
            of_source = (drawn[start : start + count] for start in range(0, len(drawn), count))
            return [sorted(some, key=lambda one: -one.score) for some in of_source]
        constraints = _constraints(prefixes, options.no_repeat_ngram)
        return _search(engine, rows, caps, constraints, options, demands, watch)

    def _search_shortlist(
        self,
        sources: Tensor,
        allowed: np.ndarray,
        caps: list[int],
        prefixes: list[list[int]],
        options: SearchOptions,
        demands: Demands | None,
    ) -> list[list[Hypothesis]]:
        """sources: (batch, source length); allowed: (batch, target vocabulary)"""
        for row, prefix in zip(allowed, prefixes, strict=True):
            row[prefix] = True
        if demands is not None:
            for row, phrases in zip(allowed, demands.phrases, strict=True):
                row[[id_ for phrase in phrases for id_ in (*phrase.ids, *phrase.initial)]] = True
        assert isinstance(self._engine, TorchEngine)
        engine = ShortlistEngine(self._engine, allowed)
        constraints = _constraints([engine.places(prefix) for prefix in prefixes], options.no_repeat_ngram)
        demands = None if demands is None else engine.demands(demands)
        found = _search(engine, sources.to(self._device), caps, constraints, options, demands)
        for hypotheses in found:
            engine.restore(hypotheses)
        return found

    def _map(
        self, search: Callable[[list[int]], list[list[Hypothesis]]], batches: list[list[int]]
    ) -> dict[int, list[Hypothesis]]:
        """What the search of each batch finds, by the number of the source. On CPU each core has batches of its own:
        the operations of a step are too small to be shared."""

        def search_batch(batch: list[int]) -> list[list[Hypothesis]]:
            hypotheses = search(batch)
            self._after_batch()
            return hypotheses

        cores = torch.get_num_threads() if self._device.type == "cpu" else 1
        workers = min(cores, len(batches))
        if workers < 2:
            results = [search_batch(batch) for batch in batches]
        else:
            try:
                with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                    results = list(pool.map(search_batch, batches))
            finally:
                torch.set_num_threads(cores)  # what the workers set is in part set for the whole process
        return {
            i: one for batch, found in zip(batches, results, strict=True) for i, one in zip(batch, found, strict=True)
        }


def _search(
    engine: Engine,
    sources: Tensor,
    caps: list[int],
    constraints: Constraints | None,
    options: SearchOptions,
    demands: Demands | None = None,
    watch: BeamWatch | None = None,
) -> list[list[Hypothesis]]:
    """Greedy or beam search."""
    if options.beam_size == 1:
        return [[hypothesis] for hypothesis in greedy(engine, sources, caps, constraints)]
    beams = None if demands is None else ConstrainedBeams.start(engine.bos_id, engine.eos_id, demands, caps)
    return beam_search(
        engine,
        sources,
        caps,
        beam_size=options.beam_size,
        n_best=options.n_best,
        alpha=options.length_penalty,
        constraints=constraints,
        beams=beams,
        watch=watch,
    )


def _constraints(prefixes: Sequence[Sequence[int]], no_repeat_ngram: int) -> Constraints | None:
    """None where nothing is constrained."""
    prefixes = prefixes if any(prefixes) else ()
    return Constraints(prefixes, no_repeat_ngram) if prefixes or no_repeat_ngram else None


def _batches(numbers: Sequence[int], length_of: Callable[[int], int], most: int) -> list[list[int]]:
    """The numbers in batches, longest first, at most so many in one."""
    most = min(most, SENTENCES_PER_BATCH)
    return batches_by_length(
        numbers,
        lambda i: (length_of(i) + 1,),
        lambda count, longest: count <= most and count * longest[0] <= TOKENS_PER_BATCH,
        longest_first=True,
    )


def _generators(sampling: Sampling, source: list[int], count: int) -> list[np.random.Generator]:
    """One for each sample, from the source's ids: the same text with the same seed gives the same samples wherever it
    stands."""
    return [np.random.default_rng([sampling.seed, number, *source]) for number in range(count)]


def _resident() -> int:
    """Bytes of this process in memory; 0 where nobody tells."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0
