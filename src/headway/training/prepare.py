"""From the recipe's text files to tokenizers and ids on disk: in a run's own folder `data/`, or beforehand in a folder
that runs share (`headway prepare`).

Whatever is made depends on recipe and text alone, not on the number of processes or on how often the work was stopped.
The folder `work` in an unfinished one says what it was begun with (`begun.json`) and which chunks of the text are on
disk (`chunks.jsonl`; for each kind of duplicates, the hashes of their pairs).
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from headway.errors import UserError
from headway.storage.atomic import write_directory, write_file, write_json
from headway.text.chunks import CorpusFiles, read_chunks
from headway.text.corpus import Pair, is_blank, is_plain, read_lines, read_pairs, same_text, unchanged, version
from headway.text.duplicates import SeenHashes
from headway.text.encoding import (
    LOOK_AROUND_EVERY,
    CorpusKind,
    EncodedChunk,
    EncodingSettings,
    PairCounts,
    Texts,
    encode_chunks,
    ids_dtype,
    unusable,
)
from headway.text.filters import HeldOut
from headway.text.shards import ChunkEntry, ShardsWriter, no_usable_pair, write_ids
from headway.text.tokenizer import language_tag
from headway.training.prepared import (
    REPORT,
    VALID_TEXTS,
    WORK,
    PreparedData,
    difference,
    find_tokenizer,
    fingerprint_of,
    made_from,
    read_manifest,
    read_prepared,
    write_manifest,
)
from headway.training.recipe import ParallelFiles, Recipe
from headway.training.vocabulary import Tokenizers, learn_tokenizers, sampled_texts

Notice = Callable[[str], None]
Show = Callable[[int, float, float, float], None]
"""Is told of progress: pairs so far, pairs a second, the share of the text that is done, minutes left."""
Result = TypeVar("Result")
ON_DISK_EVERY = 2.0
"""Seconds: what is lost when the work is killed."""


def prepare(
    recipe: Recipe,
    folder: Path,
    max_length: int,
    notice: Notice,
    tokenizers: Tokenizers | None = None,
    expected: str | None = None,
    *,
    processes: int = 1,
    show: Show | None = None,
) -> PreparedData:
    """Reads the prepared data in `folder`, making it first where it isn't there: with the given tokenizers, or with
    ones learned from the training text. Raises UserError, also where it hasn't the `expected` fingerprint."""
    if not folder.exists():
        with write_directory(folder) as temporary:
            _Preparing(recipe, temporary, max_length, notice, processes, show).finish(tokenizers)
    fingerprint = fingerprint_of(folder)
    if expected is not None and fingerprint != expected:
        raise UserError(
            f"{folder}: this isn't the data that the run began with; put its text back as it was and delete {folder}, "
            "or start a new run with another --out"
        )
    return read_prepared(folder, fingerprint)


def prepare_folder(
    recipe: Recipe,
    folder: Path,
    max_length: int,
    notice: Notice,
    tokenizers: Tokenizers | None,
    *,
    processes: int,
    show: Show | None = None,
    look_around: Callable[[], None] = lambda: None,
) -> None:
    """Makes the folder, or goes on with it where it was. look_around: is called several times a second, and may raise.
    Raises UserError for a folder that holds something else, or was begun from another recipe or other text."""
    manifest = read_manifest(folder)
    if manifest is None and folder.is_dir() and any(folder.iterdir()) and not (folder / WORK).is_dir():
        raise UserError(f"{folder}: is not empty and holds no prepared data; choose another --output")
    if manifest is not None:
        _refuse_change(folder, manifest["made_from"], made_from(recipe, max_length))
        shutil.rmtree(folder / WORK, ignore_errors=True)
        notice(f"{folder}: is prepared already")
        return
    _Preparing(recipe, folder, max_length, notice, processes, show, look_around).finish(tokenizers)


@dataclass
class _Preparing:
    """The work on a folder, from its beginning or from where it was left."""

    recipe: Recipe
    folder: Path
    max_length: int
    notice: Notice
    processes: int
    show: Show | None = None
    look_around: Callable[[], None] = lambda: None
    train: list[CorpusFiles] = field(init=False)
    valid: list[CorpusFiles] = field(init=False)
    held_out: list[CorpusFiles] = field(init=False)

    def __post_init__(self) -> None:
        data = self.recipe.data
        self.train, self.valid, self.held_out = (
            [corpus.files() for corpus in corpora] for corpora in (data.train, data.valid, data.held_out)
        )

    @property
    def work(self) -> Path:
        return self.folder / WORK

    def finish(self, tokenizers: Tokenizers | None) -> None:
        """Makes all that isn't there yet. Raises UserError."""
        corpora = [*self.train, *self.valid, *self.held_out]
        _check_files(corpora)
        self._begin(corpora)
        with unchanged(file for corpus in corpora for file in (*corpus.sources, *corpus.targets)):
            self._warn_of_same_text()
            valid_texts = list(dict.fromkeys(_texts(self.recipe.data.valid, self.max_length)))
            held_out = [
                (pair.source, pair.target)
                for corpus in (self.valid + self.held_out if self.recipe.data.filters.overlap else [])
                for pair in read_pairs(corpus.sources, corpus.targets)
            ]
            tokenizers = self._tokenizers(tokenizers, held_out)
            valid = self._encode_valid(tokenizers)
            self._encode_train(tokenizers, valid_texts, held_out)
        self.notice(f"valid: {valid.summary()}")
        write_manifest(self.folder, made_from(self.recipe, self.max_length))
        shutil.rmtree(self.work)

    def _begin(self, corpora: Sequence[CorpusFiles]) -> None:
        """Raises UserError where it was begun with something else."""
        files = [file for corpus in corpora for file in (*corpus.sources, *corpus.targets)]
        now = {
            "made_from": made_from(self.recipe, self.max_length),
            "tokens_per_batch": self.recipe.training.tokens_per_batch,
            "init_from": str(self.recipe.training.init_from or ""),
            "files": {str(file): list(version(file.stat())) for file in files},
        }
        begun = self.work / "begun.json"
        if not begun.exists():
            self.work.mkdir(parents=True, exist_ok=True)
            write_json(begun, now)
            return
        before = json.loads(begun.read_bytes())
        _refuse_change(self.folder, before["made_from"], now["made_from"])
        keys = {f"training.{key}": (before[key], now[key]) for key in ("tokens_per_batch", "init_from")}
        for key, (old, new) in keys.items():
            if old != new:
                raise _other_recipe(self.folder, f"{key} ({old} -> {new})")
        for file in sorted(before["files"].keys() | now["files"].keys()):
            if before["files"].get(file) != now["files"].get(file):
                raise UserError(
                    f"{file}: was changed since {self.folder} was begun; put it back as it was, or delete the folder"
                )

    def _warn_of_same_text(self) -> None:
        """By what is in the files, whatever their names are."""
        for split, corpora in (("training", self.train), ("validation", self.valid)):
            for corpus in corpora:
                if same_text(read_pairs(corpus.sources, corpus.targets)):
                    self.notice(f"warning: source and target of the {split} text are the same ({corpus.sources[0]})")

    def _tokenizers(self, tokenizers: Tokenizers | None, held_out: Texts) -> Tokenizers:
        """Those in the folder; where they aren't there yet, the given ones, or ones learned from the training text."""
        done = self.work / "tokenizers"
        if not done.exists():
            if tokenizers is None:
                tokenizers, notices = _beside(lambda: self._learned(held_out), self.look_around)
                for line in notices:
                    self.notice(line)
            for side, tokenizer in zip(("source", "target"), tokenizers, strict=True):
                write_file(self.folder / f"{side}{tokenizer.suffix}", tokenizer.to_bytes())
            write_file(done, b"")
        return find_tokenizer(self.folder, "source"), find_tokenizer(self.folder, "target")

    def _learned(self, held_out: Texts) -> tuple[Tokenizers, list[str]]:
        texts = sampled_texts(self.recipe, self.train, HeldOut.of(held_out), self.max_length)
        return learn_tokenizers(self.recipe, texts, self.max_length)

    def _encode_valid(self, tokenizers: Tokenizers) -> PairCounts:
        counts = write_ids(
            self.folder / "valid",
            [tagged_pairs(corpus) for corpus in self.recipe.data.valid],
            *tokenizers,
            max_length=self.max_length,
            max_tokens=self.recipe.training.tokens_per_batch,
        )
        write_json(self.folder / VALID_TEXTS, list(_texts(self.recipe.data.valid, self.max_length)))
        return counts

    def _encode_train(self, tokenizers: Tokenizers, valid_texts: Texts, held_out: Texts) -> None:
        data, max_tokens = self.recipe.data, self.recipe.training.tokens_per_batch
        source, target = tokenizers
        settings = EncodingSettings(
            tokenizers=((source.suffix, source.to_bytes()), (target.suffix, target.to_bytes())),
            max_length=self.max_length,
            max_tokens=max_tokens,
            corpora=tuple(
                CorpusKind(corpus.tag, *languages) for corpus, languages in zip(data.train, data.languages, strict=True)
            ),
            filters=data.filters.chosen(),
            held_out=tuple(held_out),
            valid=tuple(valid_texts),
        )
        dtype = ids_dtype(max(source.vocab_size, target.vocab_size))
        kinds = settings.filters.duplicates
        with closing(_Progress(self.work, kinds, len(self.train))) as progress:
            shards = ShardsWriter(self.folder / "train", dtype, progress.entries)
            with closing(shards):
                if progress.entries:
                    self.notice(f"going on after {progress.pairs:,} pairs")
                clock = _Clock(progress.pairs)
                chunks = read_chunks(self.train, skip=len(progress.entries))
                encoded = encode_chunks(chunks, settings, self.processes, progress.first_of, self.look_around)
                with closing(encoded):
                    for chunk in encoded:
                        for corpus in range(progress.corpus, chunk.corpus):
                            self._check_corpus(progress, corpus)
                        progress.add(chunk, shards.add(chunk))
                        if shards.full or clock.due():
                            shards.sync()
                            progress.write()
                            shards.close_full()
                        if self.show is not None:
                            self.show(*clock.reading(progress.pairs, chunk.done))
                shards.sync()
                progress.write()
                for corpus in range(len(self.train)):
                    self._check_corpus(progress, corpus)
                shards.finish(len(self.train))
        if valid_texts and len(progress.valid) == len(valid_texts):
            self.notice("warning: every validation pair is a training pair too, so the scores below mean nothing")
        total = progress.total()
        self.notice(f"train: {total.summary()}")
        for line in total.filter_lines():
            self.notice(line)
        write_json(self.folder / REPORT, _report(self.train, progress.counts))

    def _check_corpus(self, progress: _Progress, corpus: int) -> None:
        if not progress.counts[corpus].kept:
            place = self.train[corpus].sources[-1]
            limits = self.max_length, self.recipe.training.tokens_per_batch
            raise no_usable_pair(place, progress.counts[corpus], *limits)


class _Progress:
    """The chunks that are done, in memory and in the folder `work`."""

    def __init__(self, work: Path, kinds: Sequence[str], corpora: int) -> None:
        self.entries: list[tuple[int, ChunkEntry]] = []
        """Corpus of each chunk, and what its shard must know of it."""
        self.counts = [PairCounts() for _ in range(corpora)]
        self.valid: set[int] = set()
        """The places of the validation pairs that are training pairs, too."""
        self.pairs = 0
        """That were read, dropped ones included."""
        self.corpus = 0
        """That of the last chunk."""
        self._seen = [SeenHashes() for _ in kinds]
        self._log = open(work / "chunks.jsonl", "a+b")  # noqa: SIM115 - open as long as this lives
        self._hashes: list[IO[bytes]] = [open(work / f"{kind}.hashes", "a+b") for kind in kinds]  # noqa: SIM115
        self._unwritten: list[bytes] = []
        self._take_up()

    def first_of(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """As `encode_chunks` asks."""
        return np.stack([seen.first(of_kind) for seen, of_kind in zip(self._seen, hashes, strict=True)])

    def add(self, chunk: EncodedChunk, entry: ChunkEntry) -> None:
        """The next chunk; it is on disk after the next `write`."""
        counts = chunk.counts
        document = {
            "corpus": chunk.corpus,
            "entry": asdict(entry),
            "counts": asdict(counts),
            "valid": chunk.valid,
            "hashes": chunk.hashes.shape[1],
        }
        self._count(document)
        self._unwritten.append(json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogateescape") + b"\n")
        for file, hashes in zip(self._hashes, chunk.hashes, strict=True):
            file.write(hashes.astype("<u8").tobytes())

    def write(self) -> None:
        """All chunks are on disk, the log after the hashes. The shards' own files must be before."""
        for file in self._hashes:
            _sync(file)
        self._log.write(b"".join(self._unwritten))
        self._unwritten.clear()
        _sync(self._log)

    def total(self) -> PairCounts:
        """Of all corpora."""
        total = PairCounts()
        for counts in self.counts:
            total.add(counts)
        return total

    def close(self) -> None:
        for file in (self._log, *self._hashes):
            file.close()

    def _take_up(self) -> None:
        """What was done before; whatever came after the last whole line of the log goes."""
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
        self.corpus = document["corpus"]
        self.entries.append((self.corpus, ChunkEntry(**document["entry"])))
        counts = PairCounts(**document["counts"])
        self.counts[self.corpus].add(counts)
        self.pairs += counts.read
        self.valid.update(document["valid"])


class _Clock:
    """Measures the speed since the work was begun or taken up."""

    def __init__(self, pairs: int) -> None:
        self._pairs = pairs
        self._started = self._written = time.monotonic()
        self._done: float | None = None

    def due(self) -> bool:
        """Whether enough time has passed to write down what was done."""
        now = time.monotonic()
        if now - self._written < ON_DISK_EVERY:
            return False
        self._written = now
        return True

    def reading(self, pairs: int, done: float) -> tuple[int, float, float, float]:
        """As `Show` takes it."""
        seconds = max(1e-9, time.monotonic() - self._started)
        if self._done is None:
            self._done = done if self._pairs else 0.0
        share = max(1e-9, done - self._done)
        return pairs, (pairs - self._pairs) / seconds, done, seconds * (1 - done) / share / 60


def tagged_pairs(corpus: ParallelFiles) -> Iterator[Pair]:
    """The pairs of a corpus; where it has a tag, the source texts begin with it."""
    prefix = f"{language_tag(corpus.tag)} " if corpus.tag else ""
    files = corpus.files()
    for pair in read_pairs(files.sources, files.targets):
        yield pair if is_blank(pair.source) else replace(pair, source=prefix + pair.source)


def _report(corpora: Sequence[CorpusFiles], counts: Sequence[PairCounts]) -> dict[str, Any]:
    """What became of the pairs of each corpus, as report.json has it."""
    return {
        "pairs": sum(one.read for one in counts),
        "kept": sum(one.kept for one in counts),
        "corpora": [
            {
                "source": [str(file) for file in corpus.sources],
                "target": [str(file) for file in corpus.targets],
                "pairs": one.read,
                "kept": one.kept,
                "dropped": {
                    reason: {"pairs": count, "first": one.examples[reason]} for reason, count in one.dropped.items()
                },
            }
            for corpus, one in zip(corpora, counts, strict=True)
        ],
    }


def _check_files(corpora: Sequence[CorpusFiles]) -> None:
    """Raises UserError for a file that can't be opened, before hours may be spent on the others."""
    for corpus in corpora:
        for files in (corpus.sources, corpus.targets):
            found = [_has_lines(file) for file in files]  # of each, so that each is opened
            if found and not any(found):
                for _ in read_pairs(corpus.sources, corpus.targets):
                    pass  # names both counts where the other side has lines
                raise UserError(f"{files[0]}: is empty; give a file with a sentence a line")


def _has_lines(file: Path) -> bool:
    if not is_plain(file):
        raise UserError(f"{file}: is a pipe or device, but training reads its text several times; give a file")
    with closing(read_lines(file)) as lines:
        return next(lines, None) is not None


def _texts(corpora: Sequence[ParallelFiles], max_length: int) -> Iterator[tuple[str, str]]:
    """The pairs that have text on both sides, with their tags."""
    for corpus in corpora:
        for pair in tagged_pairs(corpus):
            if unusable(pair.source, pair.target, max_length) is None:
                yield pair.source, pair.target


def _refuse_change(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    if changed := difference(before, now):
        raise _other_recipe(folder, changed)


def _other_recipe(folder: Path, changed: str) -> UserError:
    return UserError(f"{folder}: was begun with another recipe: {changed}; choose another --output, or delete it")


def _beside(work: Callable[[], Result], look_around: Callable[[], None]) -> Result:
    """What the work returns, which is done in a thread, so that signals are noticed meanwhile: sentencepiece may be
    busy for minutes. If looking around ends it, the thread goes on for as long as the process lives."""
    done: list[Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK_AROUND_EVERY)
        look_around()
    if failed:
        raise failed[0]
    return done[0]


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
