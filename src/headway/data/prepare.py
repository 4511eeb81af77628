"""From the recipe's text files to tokenizers and ids on disk: in a run's own folder `data/`, or beforehand in a folder
that runs share (`headway prepare`).

The result depends on recipe and text alone, not on the number of processes or on how often the work was stopped.
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any, TypeVar

from headway.data.compressed import is_plain, unchanged
from headway.data.corpus import CorpusFiles, read_chunks, read_lines, same_text
from headway.data.encoding import ChunkEncoder, CorpusKind, EncodingSettings, PairCounts, Texts, total
from headway.data.filters import HeldOut
from headway.data.journal import Clock, Journal, Show, begin, refuse_other_recipe, refuse_other_text
from headway.data.options import DataSection, ParallelFiles, PreparationOptions
from headway.data.prepared import (
    REPORT,
    VALID_TEXTS,
    WORK,
    PreparedData,
    change_of_text,
    find_tokenizer,
    fingerprint_of,
    made_from,
    read_manifest,
    read_prepared,
    undamaged_sums,
    write_manifest,
)
from headway.data.processes import LOOK_AROUND_EVERY, encode_chunks
from headway.data.shards import ShardsWriter
from headway.data.vocabulary import Tokenizers, learn_tokenizers, sampled_texts
from headway.errors import UserError
from headway.storage.atomic import write_directory, write_file, write_json

Notice = Callable[[str], None]
Synthesize = Callable[[DataSection, Notice, Callable[[], None]], None]
"""Writes the translations of `data.syntheses` that don't exist yet; its last argument is called between pieces of work,
and may raise."""
Result = TypeVar("Result")


def prepare(
    options: PreparationOptions,
    folder: Path,
    notice: Notice,
    synthesize: Synthesize,
    tokenizers: Tokenizers | None = None,
    expected: str | None = None,
    *,
    processes: int = 1,
    show: Show | None = None,
) -> PreparedData:
    """Reads the prepared data in `folder`, and makes it first if it isn't there: with the given tokenizers, or with
    ones learned from the training text. Raises UserError, also if the data don't have the `expected` fingerprint."""
    if not folder.exists():
        with write_directory(folder) as temporary:
            _Preparing(options, temporary, notice, synthesize, processes, show).finish(tokenizers)
    fingerprint = fingerprint_of(folder)
    if expected is not None and fingerprint != expected:
        raise UserError(
            f"{folder}: this isn't the data that the run began with; put its text back as it was and delete {folder}, "
            "or start a new run with another --output"
        )
    return read_prepared(folder, fingerprint)


def prepare_folder(
    options: PreparationOptions,
    folder: Path,
    notice: Notice,
    synthesize: Synthesize,
    tokenizers: Tokenizers | None,
    *,
    processes: int,
    show: Show | None = None,
    look_around: Callable[[], None] = lambda: None,
) -> None:
    """Makes the folder, or continues an unfinished one. look_around: called several times a second, and may raise.
    Raises UserError for a folder that holds something else, or was begun from another recipe or other text."""
    manifest = read_manifest(folder)
    if manifest is None and folder.is_dir() and any(folder.iterdir()) and not (folder / WORK).is_dir():
        raise UserError(f"{folder}: is not empty and holds no prepared data; choose another --output")
    if manifest is not None:
        refuse_other_recipe(folder, manifest["made_from"], made_from(options))
        undamaged_sums(folder, manifest)
        files = _text_of(options.data)
        if files and all(file.exists() for file in files):  # a finished folder doesn't need its text any more
            refuse_other_text(folder, manifest["text"], files)
        shutil.rmtree(folder / WORK, ignore_errors=True)
        notice(f"{folder}: is prepared already")
        return
    _Preparing(options, folder, notice, synthesize, processes, show, look_around).finish(tokenizers)


def _all_files(corpora: Sequence[CorpusFiles]) -> list[Path]:
    return [file for corpus in corpora for file in (*corpus.sources, *corpus.targets)]


def _text_of(data: DataSection) -> list[Path]:
    """All files that the recipe reads; none for a pattern that no longer matches."""
    try:
        return _all_files([data.files_of(corpus) for corpus in (*data.corpora, *data.validation, *data.held_out)])
    except UserError:
        return []


def tell_changes(data: DataSection, folder: Path, notice: Notice) -> None:
    """Prints a notice if the recipe's text differs from what the folder was prepared from, as far as it is there."""
    manifest, files = read_manifest(folder), _text_of(data)
    if manifest is None or not files:  # an earlier version prepared the folder, or its text is gone
        return
    then, changes = manifest["text"], []
    if len(files) != len(then):
        changes.append(f"{folder}: was prepared from {len(then)} files of text, now there are {len(files)}")
    for file, state in zip(files, then, strict=True) if not changes else ():
        with suppress(OSError):
            if change := change_of_text(file, state):
                changes.append(f"{file}: {change} since {folder} was prepared from it")
    if changes:
        more = f" (and {len(changes) - 1} more like this)" if len(changes) > 1 else ""
        notice(f"notice: {changes[0]}{more}; training and validation use the text as it was prepared")


@dataclass
class _Preparing:
    """The work on one folder, from the beginning or from where a killed process left it."""

    options: PreparationOptions
    folder: Path
    notice: Notice
    synthesize: Synthesize
    processes: int
    show: Show | None = None
    look_around: Callable[[], None] = lambda: None
    train: list[CorpusFiles] = field(init=False)
    valid: list[CorpusFiles] = field(init=False)
    held_out: list[CorpusFiles] = field(init=False)
    work: Path = field(init=False)

    def __post_init__(self) -> None:
        data, self.work = self.options.data, self.folder / WORK
        self.train, self.valid, self.held_out = (
            [data.files_of(corpus) for corpus in corpora] for corpora in (data.corpora, data.validation, data.held_out)
        )

    def finish(self, tokenizers: Tokenizers | None) -> None:
        """Makes everything that isn't there yet. Raises UserError."""
        data = self.options.data
        to_translate = [CorpusFiles(tuple(synthesis.given), ()) for synthesis in data.syntheses]
        given = self.train[: len(self.train) - len(to_translate)]
        _check_files([*given, *to_translate, *self.valid, *self.held_out])
        self.synthesize(data, self.notice, self.look_around)
        files = _all_files([*self.train, *self.valid, *self.held_out])
        text = begin(self.folder, self.options, files)
        with unchanged(files):
            for corpus in (*self.train, *self.valid, *self.held_out):
                for line in corpus.notices():
                    self.notice(f"notice: {line}")
            self._warn_of_same_text()
            overlap = data.filters.overlap
            texts = [  # read before the work begins, which a mistake in them would make vain
                (pair.source, pair.target)
                for corpus in (*self.valid, *(self.held_out if overlap else ()))
                for pair in corpus.pairs()
            ]
            held_out = texts if overlap else []
            tokenizers = self._tokenizers(tokenizers, held_out)
            valid, valid_texts = self._encode_valid(tokenizers)
            self._encode_train(tokenizers, valid_texts, held_out)
        self.notice(f"valid: {valid.summary()}")
        write_manifest(self.folder, made_from(self.options), text)
        shutil.rmtree(self.work)

    def _warn_of_same_text(self) -> None:
        """Compares what the files hold, whatever their names are. With noise the same text is a task: correcting it."""
        train = [] if self.options.data.noise else self.train
        for split, corpora in (("training", train), ("validation", self.valid)):
            for corpus in corpora:
                if same_text(corpus.pairs()):
                    self.notice(f"warning: source and target of the {split} text are the same ({corpus.sources[0]})")

    def _tokenizers(self, tokenizers: Tokenizers | None, held_out: Texts) -> Tokenizers:
        """The folder's tokenizers. If it has none yet, writes the given ones or learns them from the training text."""

        def learned() -> tuple[Tokenizers, list[str]]:
            texts = sampled_texts(self.options, self.train, HeldOut.of(held_out))
            return learn_tokenizers(self.options, texts)

        done = self.work / "tokenizers"
        if not done.exists():
            if tokenizers is None:
                tokenizers, notices = _in_thread(learned, self.look_around)
                for line in notices:
                    self.notice(line)
            for side, tokenizer in zip(("source", "target"), tokenizers, strict=True):
                write_file(self.folder / f"{side}{tokenizer.suffix}", tokenizer.to_bytes())
            write_file(done, b"")
        return find_tokenizer(self.folder, "source"), find_tokenizer(self.folder, "target")

    def _encode_valid(self, tokenizers: Tokenizers) -> tuple[PairCounts, Texts]:
        """Writes the ids, and the texts that have both sides, with their tags. Returns the texts, too."""
        shutil.rmtree(self.folder / "valid", ignore_errors=True)  # of a killed process
        settings = self._settings(tokenizers, self.options.data.validation)
        encoder, texts, counts = ChunkEncoder(settings), [], [PairCounts() for _ in self.valid]
        with closing(ShardsWriter(self.folder / "valid", settings.dtype)) as shards:
            for chunk in read_chunks(self.valid):
                texts += encoder.passed(chunk, {})[1]
                shards.add(encoded := encoder.encode(chunk))
                shards.close_full()
                counts[chunk.corpus].add(encoded.counts)
            _check_usable(self.valid, counts, settings)
            shards.finish(len(self.valid))
        write_json(self.folder / VALID_TEXTS, texts)
        return total(counts), texts

    def _encode_train(self, tokenizers: Tokenizers, valid_texts: Texts, held_out: Texts) -> None:
        data, valid = self.options.data, tuple(dict.fromkeys(valid_texts))
        settings = replace(
            self._settings(tokenizers, data.corpora),
            filters=data.filters.chosen(),
            held_out=tuple(held_out),
            valid=valid,
            noise=data.noise.chosen() if data.noise else None,
        )
        with (
            closing(Journal(self.work, settings.filters.duplicates, len(self.train))) as journal,
            closing(ShardsWriter(self.folder / "train", settings.dtype, journal.entries)) as shards,
        ):
            self._write_shards(shards, journal, settings)
        if len(journal.valid) == len(valid):
            self.notice("warning: every validation pair is a training pair too, so the scores below mean nothing")
        counts = total(journal.counts)
        for line in (f"train: {counts.summary()}", *counts.filter_lines()):
            self.notice(line)
        write_json(self.folder / REPORT, _report(self.train, journal.counts))

    def _settings(self, tokenizers: Tokenizers, corpora: Sequence[ParallelFiles]) -> EncodingSettings:
        return EncodingSettings(
            tokenizers,
            self.options.max_length,
            self.options.tokens_per_batch,
            tuple(CorpusKind(one.tag, *self.options.data.languages_of(one)) for one in corpora),
        )

    def _write_shards(self, shards: ShardsWriter, journal: Journal, settings: EncodingSettings) -> None:
        """Encodes the chunks that the journal doesn't have yet. Raises UserError for a corpus without a usable pair."""
        if journal.entries:
            self.notice(f"going on after {journal.pairs:,} pairs")
        clock = Clock(journal.pairs)
        chunks = read_chunks(self.train, skip=len(journal.entries))
        with closing(encode_chunks(chunks, settings, self.processes, journal.first_of, self.look_around)) as encoded:
            for chunk in encoded:
                _check_usable(self.train[: chunk.corpus], journal.counts[: chunk.corpus], settings)
                journal.add(chunk, shards.add(chunk))
                if shards.full or clock.due():
                    shards.sync()
                    journal.write()
                    shards.close_full()
                if self.show is not None:
                    self.show(*clock.reading(journal.pairs, chunk.done))
        shards.sync()
        journal.write()
        _check_usable(self.train, journal.counts, settings)
        shards.finish(len(self.train), self.options.data.versions)


def _check_usable(corpora: Sequence[CorpusFiles], counts: Sequence[PairCounts], settings: EncodingSettings) -> None:
    """Raises UserError for a corpus without a usable pair."""
    for corpus, found in zip(corpora, counts, strict=True):
        if not found.kept:
            filtered = found.read - found.blank - found.too_long
            raise UserError(
                f"{corpus.sources[-1]}: holds no usable pair ({found.blank} blank, {found.too_long} longer than "
                f"model.max_length={settings.max_length} or {settings.max_tokens} tokens on both sides"
                f"{f', {filtered} dropped by data.filters' if filtered else ''})"
            )


def _report(corpora: Sequence[CorpusFiles], counts: Sequence[PairCounts]) -> dict[str, Any]:
    """The content of report.json: what became of the pairs of each corpus."""
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
    """Raises UserError for a file that can't be opened, before hours are spent on the others."""
    for corpus in corpora:
        for files in (corpus.sources, corpus.targets):
            found = [_has_lines(file) for file in files]  # opens every file
            if found and not any(found):
                if corpus.targets:
                    for _ in corpus.pairs():
                        pass  # if the other side has lines, this error names both counts
                raise UserError(f"{files[0]}: is empty; give a file with one sentence per line")


def _has_lines(file: Path) -> bool:
    if not is_plain(file):
        raise UserError(f"{file}: is a pipe or device, but training reads its text several times; give a file")
    with closing(read_lines(file)) as lines:
        return next(lines, None) is not None


def _in_thread(work: Callable[[], Result], look_around: Callable[[], None]) -> Result:
    """Does the work in a thread and returns its result, so that signals are noticed meanwhile: sentencepiece may be
    busy for minutes. If `look_around` raises, the thread runs on until the process ends."""
    pool = ThreadPool(1)
    result = pool.apply_async(work)
    pool.close()
    while not result.ready():
        result.wait(LOOK_AROUND_EVERY)
        look_around()
    return result.get()
