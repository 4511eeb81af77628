"""Analyses that `headway inspect` is asked for: of a sentence, and of each line of a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from headway.cli import files
from headway.data.corpus import is_two_sided
from headway.data.lines import Layout
from headway.errors import UserError
from headway.text.characters import is_blank

if TYPE_CHECKING:
    from headway.insight.analyses.analysis import Request
    from headway.translator import Translator


def write_table(
    model: Path,
    load: Callable[[], Translator],
    asked: Sequence[str],
    source: str,
    target: str | None,
    output: Path | None,
    target_language: str | None,
) -> None:
    """Writes one JSON object per line of the source, as it is analysed. load: gives the translator of the model. A line
    that the model can't read has no analyses and makes the exit code 2. Raises UserError."""
    from headway.translator.lines import language_prefix

    if not asked:
        raise UserError("--source needs --analysis NAME, such as erasure")
    if any(one.partition("=")[0] == "head_importance" for one in asked):
        raise UserError("--analysis head_importance measures many pairs at once: give it a SENTENCE, not --source")
    if output is not None and ".jsonl" not in output.suffixes:
        raise UserError(f"{output}: a table needs a name that ends in .jsonl")
    sides = _sides(model, source, target, target_language)
    translator, failed = load(), False
    requests, prefix = requested(asked, model, translator), language_prefix(translator, target_language)
    with files.writer(output) as out:
        for number, (text, given) in enumerate(sides, start=1):
            row: dict[str, Any] = {"line": number, "source": text, "target": given}
            try:
                row |= {"analyses": None} if is_blank(text) else _analysed(translator, prefix + text, given, requests)
            except UserError as error:
                row["analyses"], failed = None, True
                files.tell(f"headway: line {number}: {error}")
            out.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
            out.flush()
    if failed:
        raise typer.Exit(2)


def _sides(
    model: Path, source: str, target: str | None, target_language: str | None
) -> Iterator[tuple[str, str | None]]:
    """Each source with its given translation, or None. Raises UserError."""
    if source == "-" and target is not None:
        raise UserError("--source - reads standard input, which takes no --target; give a file of pairs")
    if target is not None or is_two_sided(Path(source)):
        others = [] if target is None else [Path(target)]
        pairs = files.parallel_pairs([Path(source)], others, model, target_language)
        return ((pair.source, pair.target) for pair in pairs)
    return ((line.text, None) for line in files.input_lines(source, Layout()))


def _analysed(translator: Translator, text: str, target: str | None, requests: Sequence[Request]) -> dict[str, Any]:
    """The target, its score, the tokens of both sides, and the fields and arrays of each analysis."""
    from headway.page.document import plain

    record = translator.inspect(text, target, analyses=requests)
    found = {
        name: {**one.document(record.vocabulary), **{part: array.tolist() for part, array in one.arrays()}}
        for name, one in record.analyses.found().items()
    }
    tokens = {"source_tokens": record.source.pieces, "target_tokens": record.target.pieces}
    return plain({"target": record.target.text, "score": record.score, **tokens, "analyses": found})


def check_names(asked: Iterable[str]) -> None:
    """Raises UserError for an analysis that isn't there."""
    from headway.insight.analyses import NAMES

    for option in asked:
        if (name := option.partition("=")[0]) not in NAMES:
            raise UserError(f"--analysis {name}: unknown; choose one of {', '.join(NAMES)}")


def requested(asked: Sequence[str], run: Path, translator: Translator) -> list[Request]:
    """Requests from `NAME` or `NAME=TEXT` each. run: the folder of the translator. Raises UserError."""
    from headway.insight.analyses import request_class

    found: list[Request] = []
    for option in asked:
        name, given, text = option.partition("=")
        read_pairs = partial(_pairs, run=run, translator=translator)
        found.append(request_class(name).from_option(text if given else None, read_pairs))
    return found


def _pairs(file: str | None, run: Path, translator: Translator) -> list[tuple[str, str]]:
    """Pairs that the model can read, from a file with both sides or the run's validation text. Raises UserError."""
    from headway.insight.analyses.analysis import MOST_PAIRS, can_be_analysed

    pairs: Iterable[tuple[str, str]]
    if file is not None:
        pairs = ((pair.source, pair.target) for pair in files.parallel_pairs([Path(file)], [], run))
    elif not (pairs := files.validation_pairs(run)):
        raise UserError(
            f"--analysis head_importance: {run} has no validation pairs; name a file of pairs, "
            "--analysis head_importance=PAIRS.tsv"
        )
    usable = (pair for pair in pairs if can_be_analysed(translator, *pair, most=None))
    found = list(islice(usable, MOST_PAIRS))
    if not found:
        raise UserError(f"--analysis head_importance: {file or run} has no pair that the model can read")
    return found
