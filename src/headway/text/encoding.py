"""From chunks of text to ids: filtering and tokenising, in this process or in several, with the same result in the same
order. The processes load no torch.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.text.chunks import Chunk
from headway.text.corpus import is_blank
from headway.text.duplicates import hash_of
from headway.text.filters import DuplicateOf, Filters, HeldOut, filter_tests
from headway.text.tokenizer import Tokenizer, is_too_long, language_tag
from headway.text.tokenizer_files import parse_tokenizer

IDS_DTYPE = np.dtype("<i4")
SMALL_IDS_DTYPE = np.dtype("<u2")
"""Of vocabularies that it is large enough for: half the bytes."""
BLANK, TOO_LONG = "blank", "too long"
"""Why pairs are dropped that no model can learn from."""
NAMED = 3
"""Dropped pairs that are named, of each reason."""
FEW = 2
"""Chunks that aren't worth the start of other processes."""
WITH_EACH = 2
"""Chunks that a process has: the one that it works on, and the next."""
AHEAD = 4
"""Chunks for each process that may be done before their turn."""
LOOK_AROUND_EVERY = 0.2
"""Seconds."""


Texts = list[tuple[str, str]]
"""Sources and targets."""


@dataclass
class PairCounts:
    """What became of the pairs of a corpus."""

    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    """By the reason: `BLANK`, `TOO_LONG` or the key of a filter."""
    examples: dict[str, list[str]] = field(default_factory=dict)
    """Where the first few are, as "file:line"."""

    @property
    def read(self) -> int:
        return self.kept + sum(self.dropped.values())

    @property
    def blank(self) -> int:
        return self.dropped.get(BLANK, 0)

    @property
    def too_long(self) -> int:
        return self.dropped.get(TOO_LONG, 0)

    def drop(self, reason: str, file: Path, line: int) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
        places = self.examples.setdefault(reason, [])
        if len(places) < NAMED:
            places.append(f"{file}:{line}")

    def add(self, others: PairCounts) -> None:
        """Those of text that comes after."""
        self.kept += others.kept
        for reason, count in others.dropped.items():
            self.dropped[reason] = self.dropped.get(reason, 0) + count
            places = self.examples.setdefault(reason, [])
            places += others.examples[reason][: NAMED - len(places)]

    def summary(self) -> str:
        """Filters aside, which have `filter_lines`."""
        text = f"{self.kept:,} pairs"
        if self.blank:
            text += f", {self.blank:,} dropped because a side is blank"
        if self.too_long:
            text += (
                f", {self.too_long:,} dropped because they are too long (first: {', '.join(self.examples[TOO_LONG])})"
            )
        return text

    def filter_lines(self) -> list[str]:
        """A line for each filter that dropped pairs."""
        return [
            f"filter {reason}: {count:,} pairs dropped (first: {', '.join(self.examples[reason])})"
            for reason, count in self.dropped.items()
            if reason not in (BLANK, TOO_LONG)
        ]


@dataclass(frozen=True)
class CorpusKind:
    """What encoding must know of a corpus, files aside."""

    tag: str
    source_language: str
    target_language: str


@dataclass(frozen=True)
class EncodingSettings:
    """Everything that decides the ids of a text. It can be sent to other processes."""

    tokenizers: tuple[tuple[str, bytes], tuple[str, bytes]]
    """Name and bytes of the file of each side's."""
    max_length: int
    max_tokens: int
    corpora: tuple[CorpusKind, ...]
    filters: Filters = field(default_factory=Filters)
    held_out: tuple[tuple[str, str], ...] = ()
    """What the filter `overlap` compares with, without tags."""
    valid: tuple[tuple[str, str], ...] = ()
    """What is looked for among the pairs that are kept, with tags."""


@dataclass
class EncodedChunk:
    """The pairs of a chunk that were kept, as ids without control symbols."""

    corpus: int
    done: float
    counts: PairCounts
    source: NDArray[Any]
    """The ids of all pairs, one after the other."""
    target: NDArray[Any]
    source_lengths: NDArray[np.int64]
    target_lengths: NDArray[np.int64]
    valid: list[int]
    """The places of the validation pairs that are in the chunk; each is told once by each process."""
    hashes: NDArray[np.uint64]
    """(kinds of duplicates, pairs that passed the filters); by them duplicates were found."""


FirstOf = Callable[[NDArray[np.uint64]], NDArray[np.bool_]]
"""From the hashes of a chunk (kinds, pairs) to whether each comes in for the first time, of the same shape. It is asked
for one chunk after the other, in their order."""


class Encoder:
    """Filters and tokenises chunks."""

    def __init__(self, settings: EncodingSettings) -> None:
        self.settings = settings
        self._source, self._target = tokenizers_of(settings)
        largest = max(self._source.vocab_size, self._target.vocab_size)
        self.dtype = ids_dtype(largest)
        held_out = HeldOut.of(settings.held_out)
        languages = [(kind.source_language, kind.target_language) for kind in settings.corpora]
        tests = {pair: filter_tests(settings.filters, pair, held_out) for pair in dict.fromkeys(languages)}
        self._tests = [tests[pair] for pair in languages]
        self._prefixes = [f"{language_tag(kind.tag)} " if kind.tag else "" for kind in settings.corpora]
        self._valid = {pair: place for place, pair in enumerate(settings.valid)}

    def encode(self, chunk: Chunk, first_of: FirstOf) -> EncodedChunk:
        """Raises UserError for what is wrong in the text."""
        dropped: dict[int, str] = {}
        lines, texts = self._passed(chunk, dropped)
        kinds = self.settings.filters.duplicates
        hashes = np.array([[hash_of(_compared(pair, kind)) for pair in texts] for kind in kinds], dtype=np.uint64)
        hashes = hashes.reshape(len(kinds), len(texts))
        if kinds:
            repeats = [not all(first) for first in first_of(hashes).T.tolist()]
            dropped |= {line: "duplicates" for line, repeated in zip(lines, repeats, strict=True) if repeated}
            lines = [line for line, repeated in zip(lines, repeats, strict=True) if not repeated]
            texts = [pair for pair, repeated in zip(texts, repeats, strict=True) if not repeated]
        found = (self._valid.pop(pair, None) for pair in texts) if self._valid else ()
        valid = [place for place in found if place is not None]
        sources = self._source.encode_all([source for source, _ in texts], tagged=True)
        targets = self._target.encode_all([target for _, target in texts])
        reasons = [self._unfit(source, target) for source, target in zip(sources, targets, strict=True)]
        if any(reasons):
            dropped |= {line: reason for line, reason in zip(lines, reasons, strict=True) if reason}
            sources = [ids for ids, reason in zip(sources, reasons, strict=True) if not reason]
            targets = [ids for ids, reason in zip(targets, reasons, strict=True) if not reason]
        counts = PairCounts(kept=len(sources))
        for line in sorted(dropped):
            counts.drop(dropped[line], chunk.source_file, line)
        return EncodedChunk(
            corpus=chunk.corpus,
            done=chunk.done,
            counts=counts,
            source=self._flat(sources),
            target=self._flat(targets),
            source_lengths=np.fromiter(map(len, sources), dtype=np.int64, count=len(sources)),
            target_lengths=np.fromiter(map(len, targets), dtype=np.int64, count=len(targets)),
            valid=valid,
            hashes=hashes,
        )

    def _passed(self, chunk: Chunk, dropped: dict[int, str]) -> tuple[list[int], Texts]:
        """The lines that are neither blank nor far too long, and that no filter drops, and their texts, with tags."""
        tests, prefix, max_length = self._tests[chunk.corpus], self._prefixes[chunk.corpus], self.settings.max_length
        lines: list[int] = []
        texts: Texts = []
        for line, (source, target) in enumerate(zip(*chunk.texts(), strict=True), start=chunk.first):
            reason = unusable(source, target, max_length)
            if reason is None and tests:
                reason = next((name for name, test in tests if test(source, target)), None)
            if reason is None:
                lines.append(line)
                texts.append((prefix + source if prefix else source, target))
            else:
                dropped[line] = reason
        return lines, texts

    def _unfit(self, source: list[int], target: list[int]) -> str | None:
        return unfit(source, target, self.settings.max_length, self.settings.max_tokens)

    def _flat(self, sentences: list[list[int]]) -> NDArray[Any]:
        return np.fromiter(chain.from_iterable(sentences), dtype=self.dtype, count=sum(map(len, sentences)))


def ids_dtype(vocab_size: int) -> np.dtype[Any]:
    """What ids of the vocabulary are kept in."""
    return SMALL_IDS_DTYPE if vocab_size <= 2**16 else IDS_DTYPE


def tokenizers_of(settings: EncodingSettings) -> tuple[Tokenizer, Tokenizer]:
    """Of source and target; one and the same where their bytes are."""
    source, target = settings.tokenizers
    first = parse_tokenizer(source[1], Path(source[0]))
    return first, first if source[1] == target[1] else parse_tokenizer(target[1], Path(target[0]))


def unusable(source: str, target: str, max_length: int) -> str | None:
    """Why the pair is dropped before anything is done with it, if it is."""
    if is_blank(source) or is_blank(target):
        return BLANK
    if is_too_long(source, max_length) or is_too_long(target, max_length):
        return TOO_LONG
    return None


def unfit(source: Sequence[int], target: Sequence[int], max_length: int, max_tokens: int) -> str | None:
    """Why the pair of ids is dropped, if it is: a side has more than `max_length` tokens, both sides more than
    `max_tokens`, start or end symbol included."""
    if not source or not target:  # nothing but characters that normalisation removes
        return BLANK
    if max(len(source), len(target)) >= max_length or len(source) + len(target) + 2 > max_tokens:
        return TOO_LONG
    return None


def encode_chunks(
    chunks: Iterator[Chunk],
    settings: EncodingSettings,
    processes: int,
    first_of: FirstOf,
    look_around: Callable[[], None] = lambda: None,
) -> Generator[EncodedChunk]:
    """The chunks as ids, in their order. A few chunks are done here, more by `processes` others, if that is more than
    one. look_around: is called several times a second, and may raise. Raises UserError."""
    few = list(islice(chunks, FEW + 1)) if processes > 1 else []
    if len(few) <= FEW:
        encoder = Encoder(settings)
        for chunk in chain(few, chunks):
            look_around()
            yield encoder.encode(chunk, first_of)
        return
    workers = _Workers(settings, processes)
    try:
        yield from workers.encode(chain(few, chunks), first_of, look_around)
    finally:
        workers.end()


class _Workers:
    """Other processes. Each works on one chunk and has the next with it, so that it never waits for the disk."""

    def __init__(self, settings: EncodingSettings, count: int) -> None:
        """They start at the same time: what starting a process sends, it must have read before the next one starts."""
        context = get_context("spawn")
        self._chunks: dict[Any, Any] = {}
        """Where each gets its chunks, by where it answers."""
        self._processes: dict[Any, Any] = {}
        for _ in range(count):
            (given, chunks), (answers, theirs) = context.Pipe(duplex=False), context.Pipe()
            process = context.Process(target=_work, args=(given, theirs), daemon=True)
            process.start()
            given.close()
            theirs.close()  # so that the end of its process ends the pipe
            self._chunks[answers], self._processes[answers] = chunks, process
        for worker, chunks in self._chunks.items():
            self._send(worker, chunks, settings)

    def encode(
        self, chunks: Iterator[Chunk], first_of: FirstOf, look_around: Callable[[], None]
    ) -> Iterator[EncodedChunk]:
        at_work = {worker: deque[int]() for worker in self._processes}  # the chunks that each has
        asking: dict[int, tuple[Any, NDArray[np.uint64]]] = {}
        results: dict[int, EncodedChunk | UserError] = {}
        given = answered = turn = 0
        upcoming = next(chunks, None)
        while upcoming is not None or turn < given:
            look_around()
            while upcoming is not None and given < turn + AHEAD * len(at_work):
                worker = min(at_work, key=lambda one: len(at_work[one]))
                if len(at_work[worker]) == WITH_EACH:
                    break
                self._send(worker, self._chunks[worker], upcoming)
                at_work[worker].append(given)
                given += 1
                upcoming = next(chunks, None)
            for worker in wait([one for one, its in at_work.items() if its], timeout=LOOK_AROUND_EVERY):
                message = self._received(worker)
                if isinstance(message, np.ndarray):
                    asking[at_work[worker][0]] = worker, message
                else:
                    results[at_work[worker].popleft()] = message
            while answered in asking:
                worker, hashes = asking.pop(answered)
                self._send(worker, worker, first_of(hashes))
                answered += 1
            while turn in results:
                result = results.pop(turn)
                if isinstance(result, UserError):
                    raise result
                turn += 1
                yield result

    def end(self) -> None:
        for connection, process in self._processes.items():
            connection.close()
            self._chunks[connection].close()
            process.kill()
        for process in self._processes.values():
            process.join()

    def _send(self, worker: Any, connection: Any, message: Any) -> None:
        try:
            connection.send(message)
        except OSError:
            raise self._gone(worker) from None

    def _received(self, worker: Any) -> Any:
        try:
            return worker.recv()
        except (EOFError, OSError):
            raise self._gone(worker) from None

    def _gone(self, worker: Any) -> UserError:
        process = self._processes[worker]
        process.join(1)
        return UserError(
            f"a process that prepares text was ended (exit code {process.exitcode}), perhaps because memory ran out; "
            "try again with fewer processes"
        )


def _work(chunks: Connection, answers: Connection) -> None:
    """What each process does, until its connections close; the settings come before the chunks. Signals are for the
    process that started it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    received: Queue[Chunk | None] = Queue(1)

    def receive() -> None:
        with suppress(EOFError, OSError):
            while True:
                received.put(chunks.recv())
        received.put(None)

    def first_of(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        answers.send(hashes)
        return answers.recv()

    with suppress(EOFError, OSError):
        encoder = Encoder(chunks.recv())
        Thread(target=receive, daemon=True).start()
        while (chunk := received.get()) is not None:
            try:
                answers.send(encoder.encode(chunk, first_of))
            except UserError as error:
                answers.send(error)


def _compared(pair: tuple[str, str], kind: DuplicateOf) -> str:
    """What is hashed; no text has a line end in it."""
    source, target = pair[0].strip(), pair[1].strip()
    return f"{source}\n{target}" if kind == "pair" else source if kind == "source" else target
