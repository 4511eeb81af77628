"""Metrics of one's own, such as learned ones: a Python function that is named as `module:function`."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from headway.errors import UserError

MetricFunction = Callable[[list[str], list[str], list[str]], float | Sequence[float]]
"""Takes sources, translations and references, line for line. Returns one score of them all, or a score for each
line."""


@dataclass(frozen=True)
class Measured:
    """What a metric says of the translations of a test set."""

    metric: str
    """Its name, `module:function`."""
    score: float
    """Of all lines: where each line has a score, their mean."""
    line_scores: tuple[float, ...] | None
    """None where the metric gives one score of all lines."""


@dataclass(frozen=True)
class NamedMetric:
    """A metric and the name that it was loaded by."""

    name: str
    function: MetricFunction

    def measure(self, sources: Sequence[str], translations: Sequence[str], references: Sequence[str]) -> Measured:
        """Raises UserError where the function fails, or returns neither a finite number nor one for each line."""
        try:
            with redirect_stdout(sys.stderr):
                result = self.function(list(sources), list(translations), list(references))
        except (Exception, SystemExit) as error:
            raise UserError(f"metric {self.name}: fails: {_told(error)}") from None
        scores = _numbers(result)
        if scores is None or scores.shape not in ((), (len(sources),)):
            raise UserError(
                f"metric {self.name}: returned {_described(result)}; it must return a number, or a list of "
                f"{len(sources)} numbers, one for each line"
            )
        if not np.isfinite(scores).all():
            place = "" if scores.ndim == 0 else f" for line {int(np.argmin(np.isfinite(scores))) + 1}"
            raise UserError(f"metric {self.name}: returned a score that is not finite{place}")
        return Measured(self.name, float(scores.mean()), tuple(scores.tolist()) if scores.ndim else None)


def load_metric(name: str) -> NamedMetric:
    """Imports a metric by its name, `module:function`; the module is looked for in the current folder first, then among
    the installed packages. Raises UserError."""
    module_name, _, function_name = name.partition(":")
    if not all(part.isidentifier() for part in (function_name, *module_name.split("."))):
        raise UserError(f"metric {name!r}: must be module:function, such as my_metrics:exact")
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, folder)
    try:
        with redirect_stdout(sys.stderr):
            module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        problem = f"module {module_name} can't be imported: {_told(error)}"
        if absent and f"{module_name}.".startswith(f"{absent}."):
            problem = f"there is no module {absent} in {folder} or among the installed packages"
        raise UserError(f"metric {name}: {problem}") from None
    function = getattr(module, function_name, None)
    if not callable(function):
        problem = "has no function" if function is None else "has no function, but a value, of the name"
        raise UserError(f"metric {name}: module {module_name} {problem} {function_name}")
    return NamedMetric(name, cast("MetricFunction", function))


def _numbers(result: Any) -> np.ndarray | None:
    """As float64, or None for what isn't numbers."""
    try:
        if hasattr(result, "is_floating_point") and result.is_floating_point():  # a tensor, with gradients or without
            result = result.detach().cpu().double()
        array = np.asarray(result)
    except (ValueError, TypeError, RuntimeError):  # lists of several lengths, or of tensors that numpy doesn't take
        return None
    return array.astype(np.float64) if array.dtype.kind in "biuf" else None


def _described(result: Any) -> str:
    """In a few words."""
    if hasattr(result, "__len__") and not isinstance(result, (str, bytes, dict)):
        return f"a {type(result).__name__} of {len(result)}"
    return "None" if result is None else f"a {type(result).__name__}"


def _told(error: BaseException) -> str:
    """Kind and text of an error, and the file and line that raised it."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is ours
    places = [frame for frame in frames if not frame.filename.startswith("<frozen importlib")]
    if not places or isinstance(error, SyntaxError):  # whose text has the place
        return text
    return f"{text} ({Path(places[-1].filename).name}, line {places[-1].lineno})"
