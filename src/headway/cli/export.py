"""headway export"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from headway.cli import options
from headway.cli.evaluate import TestSet, tokenization_for
from headway.cli.files import tell, validation_pairs
from headway.decoding.options import SearchOptions
from headway.errors import UserError
from headway.threads import use_threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from headway.decoding.faithful import Exported
    from headway.insight.analyses.head_importance import HeadImportance
    from headway.storage import AnyModel
    from headway.translator import Translator

    Tool = tuple[Callable[[Any, Path], None], Callable[[Any, Path], Exported]]
    """Functions that write an exported model and open it, given the model: for ctranslate2 on disk, else in memory."""

TARGETS = ("huggingface", "ctranslate2", "onnx", "argos", "web")
QUANTIZED = ("ctranslate2", "argos")
FEW_SENTENCES, SENTENCES = 10, 50
"""Bounds of the sentences over which the heads of a page are measured."""
WORK = 2.2e10
"""Sentences times heads times parameters, about 10 seconds on one core, unless FEW_SENTENCES take longer."""


def export(
    model: Annotated[Path, Argument(help="Model directory, or run directory (then its best model).")],
    to: Annotated[str, Option(metavar="|".join(TARGETS), help="The tool that will run the model.")],
    output: Annotated[Path, options.output("Folder; for argos a file X.argosmodel, for web also X.html.", "PATH")],
    quantization: Annotated[
        str | None, Option(metavar="TYPE", help="ctranslate2, argos: int8, int8_bfloat16, bfloat16, float16, ...")
    ] = None,
    precision: Annotated[str | None, Option(metavar="TYPE", help="web: int8 (default), float16 or float32.")] = None,
    source: Annotated[Path | None, Option(help="Test set, to report what the export costs in BLEU.")] = None,
    reference: options.Reference = None,
    target_language: options.TargetLanguage = None,
    threads: options.Threads = None,
) -> None:
    """Export a model for another tool.

    Checks that the exported model is the same model.

    \b
    headway export runs/mine --to ctranslate2 --output mine-ct2 --quantization int8
    headway export runs/mine --to ctranslate2 --output mine-ct2 --quantization int8 --source test.de --reference test.en
    headway export runs/mine --to huggingface --output mine-hf
    headway export runs/mine --to onnx --output mine-onnx
    headway export runs/mine --to argos --output mine.argosmodel
    headway export runs/mine --to web --output mine.html
    """
    from headway.storage import load_model, read_model
    from headway.translator import Translator
    from headway.translator.int8 import judge_int8

    if to not in TARGETS:
        raise UserError(f"--to {to!r} is unknown; there are {', '.join(TARGETS)}")
    options.check_new(output)
    for flag, value, tools in (
        ("--quantization", quantization, QUANTIZED),
        ("--precision", precision, ("web",)),
    ):
        if value is not None and to not in tools:
            raise UserError(f"{flag} is of {' and '.join(tools)} alone, not of {to}")
    if reference is not None and source is None:
        raise UserError(f"--reference {reference}: needs the --source that it translates")
    test_set = None if source is None else TestSet(source, reference, None, model, target_language)
    use_threads(threads)
    stored = read_model(model) if to == "ctranslate2" else load_model(model)
    if to in QUANTIZED:
        SearchOptions(**stored.decoding).warn_of_lost(to)
    translator = Translator(stored, device="cpu", engine="torch") if test_set or to == "web" else None
    sources = test_set.tagged(translator) if translator and test_set else []
    greedy = SearchOptions(beam_size=1, max_length=stored.decoding.get("max_length"))  # as `_report_difference` does
    texts = [one.text for one in translator.translate(sources, greedy)] if translator else []
    tell(f"{model}: exporting, and checking that the result translates as the model does")
    page = page_export(translator, model, precision) if translator and to == "web" else None
    write, opened = page or _tool(to, quantization)
    translator = None  # with its copies of the weights
    write(stored, output)
    tell(f"{output}: written and checked")
    if (quantization or {"argos": "int8"}.get(to, "")).startswith("int8"):
        if stored.int8 is not None:
            tell(str(stored.int8))
        elif validated := validation_pairs(model):
            given, references = zip(*validated, strict=True)
            judge_int8(stored, given, references, tokenization_for(stored), tell)
    if test_set is not None:
        _report_difference(stored, test_set, sources, texts, opened(stored, output))


def _tool(to: str, quantization: str | None) -> Tool:
    if to == "huggingface":
        from headway.interop.huggingface import HuggingFaceModel, export_huggingface

        return export_huggingface, HuggingFaceModel
    if to == "onnx":
        from headway.interop.onnx import OnnxModel, export_onnx

        return export_onnx, lambda _, folder: OnnxModel(folder)
    if to == "argos":
        from headway.interop.argos import export_argos, open_argos

        return partial(export_argos, quantization=quantization), open_argos
    from headway.decoding.ctranslate2_model import CTranslate2Model, export_ctranslate2

    return partial(export_ctranslate2, quantization=quantization), CTranslate2Model


def page_export(translator: Translator, model: Path, precision: str | None = None) -> Tool:
    """Functions that write and open the page. model: its folder, which may have validation pairs."""
    from headway.page.export import as_precision, check_for_page, export_web, open_web
    from headway.page.training_file import training_of
    from headway.serving.pairs import examples_among
    from headway.storage import find_model

    weights, pairs, stored = as_precision(precision), validation_pairs(model), translator.stored
    check_for_page(stored)
    found = examples_among(pairs, stored.source_language, stored.target_language)
    examples = [f"{stored.example_tag} {one}" if translator.lacks_tag(one) else one for one, _ in found]
    translator.domain = [source for source, _ in pairs] or examples
    order, heads = translator.word_order(examples[0]), _measured_heads(translator, pairs)
    shown = {"order": order, "heads": heads, "training": training_of(find_model(model))}
    return partial(export_web, precision=weights, examples=examples, **shown), open_web


def _measured_heads(translator: Translator, pairs: list[tuple[str, str]]) -> HeadImportance | None:
    """The importance of each head over some of the validation pairs; None without pairs or heads."""
    from headway.evaluation import evenly
    from headway.insight.analyses.analysis import can_be_analysed
    from headway.insight.analyses.head_importance import AskHeadImportance
    from headway.insight.what_if import every_head

    heads = len(every_head(translator.model.config))
    usable = [pair for pair in pairs if can_be_analysed(translator, *pair)]
    if not heads or not usable:
        return None
    count = min(max(round(WORK / (heads * translator.stored.num_parameters)), FEW_SENTENCES), SENTENCES)
    chosen = evenly(usable, count)  # of all target languages
    return translator.inspect(*chosen[0], analyses=[AskHeadImportance(pairs=chosen)]).analyses.head_importance


def _report_difference(
    stored: AnyModel, test_set: TestSet, sources: list[str], texts: list[str], exported: Exported
) -> None:
    """Compares BLEU by greedy search; the tools' beams differ by their length penalties."""
    from headway.evaluation import score_translations

    source, target, longest = stored.source_tokenizer, stored.target_tokenizer, stored.config.max_length - 1
    exported_texts = []
    for text in sources:
        ids = source.encode(text, tagged=True)
        most = min(stored.decoding.get("max_length") or 2 * len(ids) + 50, longest)
        readable = 0 < len(ids) <= longest
        exported_texts.append(target.decode(exported.translate(ids, most, source.opening(text))) if readable else "")
    tokenize = test_set.tokenization(stored)
    before, after = (score_translations(each, test_set.references, tokenize) for each in (texts, exported_texts))
    same = sum(one == other for one, other in zip(texts, exported_texts, strict=True))
    cost = f"{after.bleu:.2f} as exported, {before.bleu:.2f} in headway: {after.bleu - before.bleu:+.2f}, greedy"
    typer.echo(f"BLEU {cost}; {same} of {len(texts)} lines are equal  {after.bleu_signature}")
