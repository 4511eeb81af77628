"""The analyses that `headway inspect` is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from headway.cli.inputs import parallel_pairs
from headway.cli.validation_pairs import validation_pairs
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.insight.analyses import AskedAnalysis
    from headway.translator import Translator


def asked_analyses(options: Sequence[str], run: Path, translator: Translator) -> list[AskedAnalysis]:
    """`NAME` or `NAME=TEXT` each. run: the folder that the translator is of. Raises UserError."""
    from headway.insight.analyses import NAMES, AskContrast, AskHeadImportance, AskPatching, read_analyses

    found: list[AskedAnalysis] = []
    for option in options:
        name, given, text = option.partition("=")
        if name not in NAMES:
            raise UserError(f"--analysis {name}: unknown; choose one of {', '.join(NAMES)}")
        if name == "contrast":
            found.append(AskContrast(instead=text if given else None))
        elif name == "patching":
            if not given:
                raise UserError("--analysis patching: needs another sentence, --analysis 'patching=OTHER SENTENCE'")
            found.append(AskPatching(other=text))
        elif name == "head_importance":
            found.append(AskHeadImportance(pairs=_pairs(Path(text) if given else None, run, translator)))
        elif given:
            raise UserError(f"--analysis {option}: {name} takes no text")
        else:
            found += read_analyses([name])
    return found


def _pairs(file: Path | None, run: Path, translator: Translator) -> list[tuple[str, str]]:
    """Of a file with both sides, or the validation pairs of the run; those that the model can read. Raises
    UserError."""
    from headway.insight.analyses import MOST_PAIRS
    from headway.text.characters import is_blank

    pairs: Iterable[tuple[str, str]]
    if file is not None:
        pairs = ((pair.source, pair.target) for pair in parallel_pairs([file], [], run))
    elif not (pairs := validation_pairs(run)):
        raise UserError(
            f"--analysis head_importance: {run} has no validation pairs; name a file of pairs, "
            "--analysis head_importance=PAIRS.tsv"
        )
    usable = ((one, other) for one, other in pairs if not is_blank(one) and translator.is_readable(one))
    found = [(one, other) for one, other in islice(usable, MOST_PAIRS)]
    if not found:
        raise UserError(f"--analysis head_importance: {file or run} has no pair that the model can read")
    return found
