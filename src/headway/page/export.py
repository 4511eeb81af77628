"""A model as a page that translates in the browser alone (extra `web`): a folder for any static host, or one file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import headway
from headway.decoding import SearchOptions
from headway.decoding.faithful import check_faithful
from headway.errors import UserError
from headway.page.document import plain
from headway.page.exported import ON_IDS, folder_files, model_in, one_file, script
from headway.page.model_file import PRECISIONS, Precision, model_file, tokenizer_description
from headway.storage import Aligner
from headway.storage.atomic import write_directory, write_file
from headway.storage.steps import step_of
from headway.text.tokenizer import fingerprint

if TYPE_CHECKING:
    from headway.insight import WordOrder
    from headway.insight.analyses.head_importance import HeadImportance
    from headway.storage import StoredModel

FORMAT, FORMAT_VERSION = "headway-web", 1
MODEL_FILE, ONE_FILE_SUFFIX = "model.headway", ".html"
LARGEST = 100_000_000
"""Bytes of a model file: pages beyond it take too long to load, and too much of a phone's memory."""
DECODING = ("beam_size", "length_penalty", "max_length", "n_best", "no_repeat_ngram")
"""Search options that the page has."""


class JavaScriptModel:
    """A model file as the browser's engine runs it, by V8 within Python, on ids alone: those of the model; a source has
    no <eos>."""

    def __init__(self, file: bytes, *, bos_id: int, eos_id: int, kernel: bool = True) -> None:
        """kernel: whether WebAssembly multiplies. Raises UserError where V8 isn't installed."""
        try:
            from py_mini_racer import MiniRacer
        except ImportError:
            raise UserError("mini-racer is not installed: pip install 'headway[web]'") from None
        self._context: Any = MiniRacer()
        self._context.eval(script(ON_IDS))
        self._context.eval(f"globalThis.file = new Uint8Array({len(file)})")[:] = file
        self._eos, self._bos = [eos_id], [bos_id]
        self.kernel: bool = self._run("open", f"file, {json.dumps(kernel)}")
        """Whether the kernel does multiply."""

    def translate(self, source: list[int], max_length: int) -> list[int]:
        """Greedy search."""
        return self.call("greedy", [*source, *self._eos], max_length)["ids"]

    def score(self, source: list[int], target: list[int]) -> list[float]:
        """The log-probability of each token of the target, and of <eos> after it."""
        return self.call("score", [*source, *self._eos], [*self._bos, *target, *self._eos])

    def call(self, function: str, *arguments: Any) -> Any:
        """What a function of page/on_ids.js gives. Arguments and result are JSON."""
        return self._run(function, ", ".join(map(json.dumps, arguments)))

    def _run(self, function: str, arguments: str) -> Any:
        return json.loads(self._context.eval(f"JSON.stringify(onIds.{function}({arguments}))"))


def export_web(
    stored: StoredModel,
    output: Path,
    precision: Precision = "int8",
    examples: Sequence[str] = (),
    order: WordOrder | None = None,
    heads: HeadImportance | None = None,
) -> None:
    """Writes a folder, or one file where `output` ends in .html, whole or not at all. examples: sentences that the page
    offers; order: what its What if shows of the order of words; heads: what it shows of their importance. The check
    that the page's engine is the model is made in float32. Raises UserError."""
    about = _about(stored, examples, order, heads)
    file = _model_file(stored, about, precision)
    if len(file) > LARGEST:
        smaller = "" if precision == "int8" else "; --precision int8 takes a quarter of float32's bytes"
        raise UserError(
            f"the model takes {len(file) / 1e6:,.0f} MB in {precision}, a page can have {LARGEST / 1e6:,.0f}: it would "
            f"load too long, and a phone has no memory for it{smaller}"
        )
    exact = file if precision == "float32" else _model_file(stored, about, "float32")
    check_faithful(stored, _opened(stored, exact), "the page's engine")
    if output.suffix == ONE_FILE_SUFFIX:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_file(output, one_file(file).encode("utf-8"))
        return
    with write_directory(output, len(file)) as folder:
        for name, text in folder_files().items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        (folder / MODEL_FILE).write_bytes(file)
        (folder / "README.md").write_text(stored.card, encoding="utf-8")


def open_web(stored: StoredModel, output: Path) -> JavaScriptModel:
    """What was exported. Raises UserError."""
    if output.suffix == ONE_FILE_SUFFIX:
        return _opened(stored, model_in(output.read_text(encoding="utf-8")))
    return _opened(stored, (output / MODEL_FILE).read_bytes())


def as_precision(name: str | None) -> Precision:
    """The precision of that name; int8 where none is named. Raises UserError."""
    wanted = name or "int8"
    if wanted not in PRECISIONS:
        raise UserError(f"precision {wanted!r} is unknown; there are {', '.join(PRECISIONS)}")
    return cast(Precision, wanted)


def _model_file(stored: StoredModel, about: dict[str, Any], precision: Precision) -> bytes:
    return model_file(about, stored.weights(), precision)


def _opened(stored: StoredModel, file: bytes) -> JavaScriptModel:
    config = stored.model.config
    return JavaScriptModel(file, bos_id=config.bos_id, eos_id=config.eos_id)


def _about(
    stored: StoredModel, examples: Sequence[str], order: WordOrder | None, heads: HeadImportance | None
) -> dict[str, Any]:
    """The header of the model file, beside its tensors."""
    source, target = stored.source_tokenizer, stored.target_tokenizer
    joint = fingerprint(source) == fingerprint(target)
    options = asdict(SearchOptions(**stored.decoding))
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "headway": headway.__version__,
        "source_language": stored.source_language,
        "target_language": stored.target_language,
        "config": stored.model.config.to_dict(),
        "decoding": {name: options[name] for name in DECODING},
        "tokenizers": {
            "source": tokenizer_description(source),
            "target": None if joint else tokenizer_description(target),
        },
        "never_generated": target.never_generated,
        "alignment": vars(stored.aligner or Aligner()),
        "order": plain(order),
        "head_importance": None if heads is None else _measured(heads),
        "step": step_of(stored.name),
        "examples": list(examples),
        "card": stored.card,
    }


def _measured(heads: HeadImportance) -> dict[str, Any]:
    """The fields of the analysis, and its arrays by the ends of their names in a record."""
    return {"fields": plain(heads.document([])), "arrays": {name: array.tolist() for name, array in heads.arrays()}}
