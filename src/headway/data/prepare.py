"""Makes tokenizers and ids on disk of the recipe's text files, in a run's own folder `data/`, or beforehand in a folder
that runs share (`headway prepare`).

The result depends on recipe and text alone, not on the number of processes or on how often the work was stopped.
"""

import json
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any, TypeVar

from headway.data.compressed import is_plain, unchanged
from headway.data.corpus import CorpusFiles, is_two_sided, read_chunks, read_lines, same_text
from headway.data.encoding import BLANK, TOO_LONG, ChunkEncoder, EncodingSettings, PairCounts, Texts, total
from headway.data.options import DataSection, FiltersSection, ParallelFiles, PreparationOptions
from headway.data.pair_noise import DICTIONARY_PAIRS, dictionary_of
from headway.data.prepared import (
    REPORT,
    VALID_TEXTS,
    WORK,
    PreparedData,
    changes_of_text,
    find_tokenizer,
    made_from,
    read_manifest,
    read_prepared,
    refuse_damage,
    state_of_text,
    write_manifest,
)
from headway.data.processes import encode_chunks
from headway.data.shards import SIDES, ShardsWriter
from headway.data.vocabulary import Tokenizers, learn_tokenizers, sampled_texts
from headway.errors import UserError
from headway.storage.atomic import write_directory, write_file, write_json
from headway.storage.changes import first_change

Notice = Callable[[str], None]
Show = Callable[[int, float, float, float], None]
"""Shows progress: pairs so far, pairs per second, the share of the text that is done, minutes left."""
Synthesize = Callable[[DataSection, Notice], None]
"""Writes the translations of `data.syntheses` that don't exist yet."""
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
    """Reads the prepared data in `folder`, and makes it first if it doesn't exist: with the given tokenizers, or with
    ones learned from the training text. Raises UserError, also if the data don't have the `expected` fingerprint."""
    if not folder.exists():
        with write_directory(folder) as temporary:
            _Preparation(options, temporary, notice, processes, show).finish(synthesize, tokenizers)
    remedy = f"put its text back as it was and delete {folder}, or start a new run with another --output"
    return read_prepared(folder, expected, remedy)


def prepare_folder(
    options: PreparationOptions,
    folder: Path,
    notice: Notice,
    synthesize: Synthesize,
    tokenizers: Tokenizers | None,
    *,
    processes: int,
    show: Show | None = None,
) -> None:
    """Makes the folder, or continues an unfinished one. Raises UserError for a folder that holds something else, or was
    begun from another recipe or other text."""
    manifest = read_manifest(folder)
    if manifest is None:
        if folder.is_dir() and any(folder.iterdir()) and not (folder / WORK).is_dir():
            raise UserError(f"{folder}: is not empty and holds no prepared data; choose another --output")
        _Preparation(options, folder, notice, processes, show).finish(synthesize, tokenizers)
        return
    _refuse_changes(folder, manifest["made_from"], made_from(options), manifest["text"], _text_of(options.data))
    refuse_damage(folder, manifest)
    shutil.rmtree(folder / WORK, ignore_errors=True)
    notice(f"{folder}: is prepared already")


def tell_changes(data: DataSection, folder: Path, notice: Notice) -> None:
    """Prints a notice if the recipe's text, as far as it still exists, was changed since the folder was prepared."""
    manifest, files = read_manifest(folder), _text_of(data)
    if manifest is None or not files:  # an earlier version prepared the folder, or its text is gone
        return
    if changes := list(changes_of_text(folder, manifest["text"], files)):
        more = f" (and {len(changes) - 1} more like this)" if len(changes) > 1 else ""
        notice(f"notice: {changes[0]}{more}; training and validation use the text as it was prepared")


def _refuse_changes(
    folder: Path, before: dict[str, Any], now: dict[str, Any], text: list[list[Any]], files: Sequence[Path]
) -> None:
    """Raises UserError if the recipe (`made_from`) or the text, as far as it is still there, differs from that before.
    text: its `state_of_text`."""
    if changed := first_change(before, now):
        raise UserError(f"{folder}: was begun with another recipe: {changed}; choose another --output, or delete it")
    for change in changes_of_text(folder, text, files) if files else ():
        raise UserError(f"{change}; put the text back as it was, choose another --output, or delete {folder}")


def _all_files(corpora: Sequence[CorpusFiles]) -> list[Path]:
    return [file for corpus in corpora for file in (*corpus.sources, *corpus.targets)]


def _text_of(data: DataSection) -> list[Path]:
    """All text files of the recipe; none if a pattern no longer matches."""
    try:
        return _all_files([data.files_of(corpus) for corpus in (*data.corpora, *data.validation, *data.held_out)])
    except UserError:
        return []


@dataclass
class _Preparation:
    """The work on one folder, from the beginning or from where a killed process left it."""

    options: PreparationOptions
    folder: Path
    notice: Notice
    processes: int
    show: Show | None = None

    def __post_init__(self) -> None:
        data, self.work = self.options.data, self.folder / WORK
        self.train, self.valid, self.held_out = (
            [data.files_of(corpus) for corpus in corpora] for corpora in (data.corpora, data.validation, data.held_out)
        )

    def finish(self, synthesize: Synthesize, tokenizers: Tokenizers | None) -> None:
        """Makes everything that doesn't exist yet. Raises UserError."""
        data = self.options.data
        to_translate = [CorpusFiles(tuple(synthesis.given), ()) for synthesis in data.syntheses]
        given = self.train[: len(self.train) - len(to_translate)]
        _check_files([*given, *to_translate, *self.valid, *self.held_out])
        synthesize(data, self.notice)
        corpora = [*self.train, *self.valid, *self.held_out]
        text = self._begin(_all_files(corpora))
        with unchanged(_all_files(corpora)):
            for corpus in corpora:
                for line in corpus.notices():
                    self.notice(f"notice: {line}")
            # Whatever the names of the files are. With noise the same text is a task: correcting it.
            corrected = data.noise is not None and data.noise.share > 0
            for split, compared in (("training", [] if corrected else self.train), ("validation", self.valid)):
                for corpus in compared:
                    if same_text(corpus.pairs()):
                        file = corpus.sources[0]
                        self.notice(f"warning: source and target of the {split} text are the same ({file})")
            overlap = data.filters.overlap
            texts = [  # read before the work begins, so that a fault in them is found early
                (pair.source, pair.target)
                for corpus in (*self.valid, *(self.held_out if overlap else ()))
                for pair in corpus.pairs()
            ]
            held_out = texts if overlap else []
            if data.both_directions:
                held_out = [*held_out, *((target, source) for source, target in held_out)]
            tokenizers = self._tokenizers(tokenizers, held_out)
            valid, valid_texts = self._encode_valid(tokenizers)
            self._encode_train(tokenizers, valid_texts, held_out)
        self.notice(f"valid: {valid.summary()}")
        write_manifest(self.folder, made_from(self.options), text)
        shutil.rmtree(self.work)

    def _begin(self, files: Sequence[Path]) -> list[list[Any]]:
        """Records recipe and text, and returns the `state_of_text`. Raises UserError if these were others before."""
        training = {"tokens_per_batch": self.options.tokens_per_batch, "init_from": str(self.options.init_from or "")}
        made, begun = made_from(self.options), self.work / "begun.json"
        if not begun.exists():
            self.work.mkdir(parents=True, exist_ok=True)
            text = state_of_text(files)
            write_json(begun, {"made_from": made, **training, "text": text})
            return text
        before = json.loads(begun.read_bytes())
        recipe = {**before["made_from"], "training": {key: before[key] for key in training}}
        _refuse_changes(self.folder, recipe, {**made, "training": training}, before["text"], files)
        return before["text"]

    def _tokenizers(self, tokenizers: Tokenizers | None, held_out: Texts) -> Tokenizers:
        """The folder's tokenizers. If it has none yet, writes the given ones or learns them from the training text."""
        done = self.work / "tokenizers"
        if not done.exists():
            if tokenizers is None:
                sampled = partial(sampled_texts, self.options, self.train, held_out)
                tokenizers, notices = _in_thread(lambda: learn_tokenizers(self.options, sampled()))
                for line in notices:
                    self.notice(line)
            for side, tokenizer in zip(SIDES, tokenizers, strict=True):
                write_file(self.folder / f"{side}{tokenizer.suffix}", tokenizer.to_bytes())
            write_file(done, b"")
        return find_tokenizer(self.folder, "source"), find_tokenizer(self.folder, "target")

    def _settings(self, tokenizers: Tokenizers, corpora: Sequence[ParallelFiles]) -> EncodingSettings:
        options = self.options
        kinds = tuple((one.tag, options.data.languages_of(one)) for one in corpora)
        return EncodingSettings(tokenizers, options.max_length, options.tokens_per_batch, kinds, FiltersSection())

    def _encode_valid(self, tokenizers: Tokenizers) -> tuple[PairCounts, Texts]:
        """Writes the ids, and the texts that have both sides, with their tags. Returns the texts, too."""
        settings = self._settings(tokenizers, self.options.data.validation)
        encoder, texts = ChunkEncoder(settings), list[tuple[str, str]]()
        shards = ShardsWriter(self.folder / "valid", settings.dtype, len(self.valid))
        for chunk in read_chunks(self.valid):
            filtered = encoder.filtered(chunk)
            texts += filtered.texts
            shards.add(encoder.encode(filtered))
        counts = shards.written.counts
        _check_usable(self.valid, counts, settings)
        shards.finish()
        write_json(self.folder / VALID_TEXTS, texts)
        return total(counts), texts

    def _encode_train(self, tokenizers: Tokenizers, valid_texts: Texts, held_out: Texts) -> None:
        data, valid = self.options.data, tuple(dict.fromkeys(valid_texts))
        dictionary = {}
        if data.noise and "tags" in data.noise.pairs:
            dictionary = dictionary_of(sampled_texts(self.options, self.train, held_out, DICTIONARY_PAIRS))
        settings = replace(
            self._settings(tokenizers, data.corpora),
            filters=data.filters,
            held_out=tuple(held_out),
            valid=valid,
            noise=data.noise,
            dictionary=dictionary,
        )
        kinds = settings.filters.duplicates
        shards = ShardsWriter(self.folder / "train", settings.dtype, len(self.train), self.work, kinds)
        self._write_shards(shards, settings)
        written = shards.written
        if len(set(written.valid)) == len(valid):
            self.notice("warning: every validation pair is a training pair too, so the scores below mean nothing")
        counts = total(written.counts)
        for line in (f"train: {counts.summary()}", *counts.filter_lines()):
            self.notice(line)
        corpora = [
            {
                "source": [str(file) for file in corpus.sources],
                "target": [str(file) for file in corpus.targets],
                "pairs": one.read,
                "kept": one.kept,
                "dropped": {
                    reason: {"pairs": count, "first": one.examples[reason]} for reason, count in one.dropped.items()
                },
            }
            for corpus, one in zip(self.train, written.counts, strict=True)
        ]
        write_json(self.folder / REPORT, {"pairs": counts.read, "kept": counts.kept, "corpora": corpora})

    def _write_shards(self, shards: ShardsWriter, settings: EncodingSettings) -> None:
        """Encodes the chunks that aren't written yet. Raises UserError for a corpus without a usable pair."""
        written = shards.written
        pairs_before, done_before = written.pairs, None if written.pairs else 0.0
        if pairs_before:
            self.notice(f"going on after {pairs_before:,} pairs")
        began = time.monotonic()
        chunks = read_chunks(self.train, skip=written.chunks)
        with closing(encode_chunks(chunks, settings, self.processes, shards.first_of)) as encoded:
            for chunk in encoded:
                _check_usable(self.train[: chunk.corpus], written.counts[: chunk.corpus], settings)
                shards.add(chunk)
                if self.show is not None:
                    seconds = max(1e-9, time.monotonic() - began)
                    done_before = chunk.done if done_before is None else done_before
                    minutes_left = seconds * (1 - chunk.done) / max(1e-9, chunk.done - done_before) / 60
                    self.show(written.pairs, (written.pairs - pairs_before) / seconds, chunk.done, minutes_left)
        _check_usable(self.train, written.counts, settings)
        shards.finish(self.options.data.versions)


def _check_usable(corpora: Sequence[CorpusFiles], counts: Sequence[PairCounts], settings: EncodingSettings) -> None:
    for corpus, found in zip(corpora, counts, strict=True):
        if not found.kept:
            blank, too_long = (found.dropped.get(reason, 0) for reason in (BLANK, TOO_LONG))
            filters = "".join(f", {count} dropped by data.filters.{name}" for name, count in found.by_filters.items())
            raise UserError(
                f"{corpus.sources[-1]}: holds no usable pair ({blank} blank, {too_long} longer than "
                f"model.max_length={settings.max_length} or, both sides together, "
                f"training.tokens_per_batch={settings.max_tokens}{filters}){'; raise these' * bool(too_long)}"
            )


def _check_files(corpora: Sequence[CorpusFiles]) -> None:
    """Raises UserError for a file that can't be opened, before hours are spent on the others."""
    for corpus in corpora:
        for files in filter(None, (corpus.sources, corpus.targets)):
            if pipes := [file for file in files if not is_plain(file)]:
                raise UserError(
                    f"{pipes[0]}: is a pipe or device, but training reads its text several times; give a file"
                )
            firsts = [  # opens every file
                next(replace(corpus, sources=[file]).pairs() if is_two_sided(file) else read_lines(file), None)
                for file in files
            ]
            if firsts.count(None) == len(files):
                if corpus.targets:
                    for _ in corpus.pairs():
                        pass  # if the other side has lines, this error names both counts
                raise UserError(f"{files[0]}: is empty; give a file with one sentence per line")


def _in_thread(work: Callable[[], Result]) -> Result:
    """Does the work in a thread and returns its result, so that signals are noticed meanwhile: sentencepiece may be
    busy for minutes. If a signal raises, the thread runs on until the process ends."""
    pool = ThreadPool(1)
    result = pool.apply_async(work)
    pool.close()
    while not result.ready():
        result.wait(0.2)  # on Windows a wait without an end notices no signal
    return result.get()
