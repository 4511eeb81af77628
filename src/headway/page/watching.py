"""A watched training: one validation pair at ten moments of a run, from step 0 to the last, for the page's slider
(docs/record.md)."""

import json
import math
from typing import Any

from headway.insight.analyses.analysis import can_be_analysed
from headway.insight.maps import attention_names
from headway.insight.what_if import every_head
from headway.page.document import numbers_entry, record_document
from headway.page.inspecting import inspect
from headway.page.training_file import FORMAT, FORMAT_VERSION, TRAINING_FILE, read_training
from headway.storage.atomic import write_file
from headway.training.run import Run, mean_loss
from headway.training.saving import stored_model
from headway.translator import Translator

MOMENTS, FASTEST = 10, 40
"""The number of moments, and the share of the run, 1/40, at which the first after step 0 is."""
MOST_WEIGHTS = 50_000
"""Attention weights of a moment, of all heads: ten moments then take at most 1.5 MB."""
MOST_PAIRS = 500
"""Validation pairs among which the one is chosen."""
TRAINING_BATCHES = 2
"""Batches of training text by which its loss is measured."""


def moments(last_step: int) -> list[int]:
    """Step 0, and steps up to the last one, each later than the one before by the same factor."""
    count = MOMENTS - 2
    return sorted({0, *(max(1, round(last_step * FASTEST ** (at / count - 1))) for at in range(count + 1))})


class Watcher:
    """Records the moments of a run of one process and a known last step in its folder. `train` calls it."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._document: dict[str, Any] = {"format": FORMAT, "format_version": FORMAT_VERSION, "moments": []}

    def __call__(self, run: Run) -> None:
        """Records the present step if it is one of the moments. Raises UserError."""
        step = run.progress.step
        if run.last_step is None or run.ranks.count > 1 or step == self._step or step not in moments(run.last_step):
            return
        if self._step is None and step:
            self._document = read_training(run.folder) or self._document
        self._step = step
        with run.finished_model():
            about, moment = _record(run)
        kept = [one for one in self._document["moments"] if one["step"] < step]  # a resumed run repeats later ones
        self._document = {**self._document, **about, "moments": [*kept, moment]}
        text = json.dumps(self._document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        write_file(run.folder / TRAINING_FILE, text.encode("utf-8"))


def _record(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    """The pair, and what the model with its present weights makes of it."""
    training = mean_loss(run.loss_of, run.train, run.dtype, run.ranks, TRAINING_BATCHES)
    validation = mean_loss(run.loss_of, run.valid, run.dtype, run.ranks)
    translator = Translator(stored_model(run), device=run.valid.device)
    source, reference = _pair(translator, run.data.valid_texts[:MOST_PAIRS])
    record = inspect(translator, source, reference)
    [translation] = translator.translate([source], beam_size=1)
    document = record_document(record, "none")
    weights = {name: record.arrays[name] for names in attention_names(record.config).values() for name in names}
    return {name: document[name] for name in ("source", "target", "start")}, {
        "step": run.progress.step,
        "training_loss": training,
        "validation_loss": validation,
        "translation": translation.text,
        "score": record.score,
        "attention": document["attention"],
        "arrays": {name: numbers_entry(array, half=False) for name, array in weights.items()},
    }


def _pair(translator: Translator, pairs: list[tuple[str, str]]) -> tuple[str, str]:
    """The longest of the pairs of which all heads have at most MOST_WEIGHTS weights, else the shortest."""
    heads = len(every_head(translator.info.config))
    most = max(1, math.isqrt(MOST_WEIGHTS // max(1, heads)) - 1)  # without <eos>
    fitting = [pair for pair in pairs if can_be_analysed(translator, *pair, most=most)]
    return max(fitting, key=_length) if fitting else min(pairs, key=_length)


def _length(pair: tuple[str, str]) -> int:
    return len(pair[0]) + len(pair[1])
