"""headway export"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.inputs import parallel_pairs
from headway.cli.options import Threads
from headway.cli.validation_pairs import validation_pairs
from headway.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from headway.decoding.faithful import Exported
    from headway.insight.analyses import HeadImportance
    from headway.storage import StoredModel
    from headway.text.corpus import Pair
    from headway.translator import Translator

TARGETS = ("huggingface", "ctranslate2", "onnx", "argos", "web")
QUANTIZED = ("ctranslate2", "argos")
FEW_SENTENCES, SENTENCES = 10, 50
"""Over which the heads of a page are measured."""
WORK = 2.2e10
"""Sentences times heads times parameters of that: 10 seconds on one core, unless FEW_SENTENCES are more than that."""


def export(
    model: Annotated[Path, typer.Argument(help="Model directory, or run directory (then its best model).")],
    to: Annotated[str, typer.Option(metavar="|".join(TARGETS), help="The tool that will run the model.")],
    output: Annotated[
        Path, typer.Option(metavar="PATH", help="Folder to make. For argos, a file X.argosmodel; for web, also X.html.")
    ],
    quantization: Annotated[
        str | None, typer.Option(metavar="TYPE", help="ctranslate2, argos: int8, int8_bfloat16, bfloat16, float16, ...")
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(metavar="TYPE", help="web: precision of the weights: int8 (default), float16 or float32."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(help="Test set (text, or a file with both sides), to report what the export costs in BLEU."),
    ] = None,
    reference: Annotated[Path | None, typer.Option(help="The reference translation, line for line.")] = None,
    target: Annotated[
        Path | None,
        typer.Option(help="ctranslate2: learn a vocabulary map from training text; --source is its other side."),
    ] = None,
    threads: Threads = None,
) -> None:
    """Export a model for another tool.

    Checks that the exported model is the same model.

    \b
    headway export runs/mine --to ctranslate2 --output mine-ct2 --quantization int8
    headway export runs/mine --to ctranslate2 --output mine-ct2 --quantization int8 --source test.de --reference test.en
    headway export runs/mine --to ctranslate2 --output mine-ct2 --source train.de --target train.en
    headway export runs/mine --to huggingface --output mine-hf
    headway export runs/mine --to onnx --output mine-onnx
    headway export runs/mine --to argos --output mine.argosmodel
    headway export runs/mine --to web --output mine.html
    """
    from headway.storage import load_model
    from headway.threads import use_threads

    if to not in TARGETS:
        raise UserError(f"--to {to!r} is unknown; there are {', '.join(TARGETS)}")
    if output.exists():
        raise UserError(f"{output}: is there already; choose another --output")
    if quantization is not None and to not in QUANTIZED:
        raise UserError(f"--quantization is of {' and '.join(QUANTIZED)} alone, not of {to}")
    if precision is not None and to != "web":
        raise UserError(f"--precision is of web alone, not of {to}")
    if target is not None and to != "ctranslate2":
        raise UserError(f"--target is of ctranslate2 alone, not of {to}")
    if target is not None and reference is not None:
        raise UserError(
            "--target makes --source training text, --reference a test set; write a model with `headway shortlist` "
            "first, and export that with --source and --reference"
        )
    pairs = _pairs(source, reference, model) if target is None else []
    use_threads(threads)
    stored = load_model(model)
    if target is not None:
        stored = _with_shortlist(stored, source, target)
    ours = _our_translations(stored, [pair.source for pair in pairs])
    typer.echo(f"{model}: exporting, and checking that the result translates as the model does", err=True)
    exported = (
        _export_web(stored, model, output, precision) if to == "web" else _export(stored, to, output, quantization)
    )
    typer.echo(f"{output}: written and checked", err=True)
    if pairs:
        _report_difference(stored, pairs, ours, exported())


def _with_shortlist(stored: StoredModel, source: Path | None, target: Path) -> StoredModel:
    """As `headway shortlist` writes it. Raises UserError."""
    from headway.text.shortlist import shortlist_of_pairs

    if source is None:
        raise UserError(f"--target {target}: needs the --source that it translates")
    sides = stored.source_tokenizer, stored.target_tokenizer
    return replace(
        stored, shortlist=shortlist_of_pairs(parallel_pairs([source], [target]), *sides, stored.model.config.max_length)
    )


def _pairs(source: Path | None, reference: Path | None, model: Path) -> list[Pair]:
    """Those of the test set, none where there is none. Raises UserError."""
    if source is None:
        if reference is not None:
            raise UserError(f"--reference {reference}: needs the --source that it translates")
        return []
    pairs = list(parallel_pairs([source], [reference] if reference else [], model))
    if not pairs:
        raise UserError(f"{source}: has no lines to translate")
    return pairs


def _export_web(stored: StoredModel, model: Path, output: Path, precision: str | None) -> Callable[[], Exported]:
    """As `_export`. model: where it lies, a run directory with its validation pairs, perhaps."""
    from headway.serving.pairs import examples_among
    from headway.text.tokenizer import language_tag
    from headway.translator import Translator
    from headway.web.export import as_precision, export_web, open_web

    pairs, translator = validation_pairs(model), Translator(stored, device="cpu")
    found = examples_among(pairs, stored.source_language, stored.target_language)
    tag = "" if pairs or not translator.target_languages else f"{language_tag(translator.target_languages[0])} "
    examples = [tag + source for source, _ in found]
    translator.domain = [source for source, _ in pairs] or examples
    order, heads = translator.word_order(examples[0]), _measured_heads(translator, pairs)
    export_web(stored, output, as_precision(precision), examples, order, heads)
    return lambda: open_web(stored, output)


def _measured_heads(translator: Translator, pairs: list[tuple[str, str]]) -> HeadImportance | None:
    """How much the model needs each of its heads, over some of the validation pairs; None where there are none."""
    from headway.insight.analyses import AskHeadImportance
    from headway.serving.pairs import can_be_analysed

    config = translator.model.config
    heads = config.encoder_layers * config.num_heads
    heads += 2 * config.decoder_layers * (config.decoder_num_heads or config.num_heads)
    usable = [pair for pair in pairs if can_be_analysed(translator, *pair)]
    if not heads or not usable:
        return None
    count = round(WORK / (heads * translator.stored.num_parameters))
    count = min(max(count, FEW_SENTENCES), SENTENCES)
    chosen = usable[:: max(1, len(usable) // count)][:count]  # of all target languages
    return translator.inspect(*chosen[0], analyses=[AskHeadImportance(pairs=chosen)]).analyses.head_importance


def _our_translations(stored: StoredModel, sources: list[str]) -> list[str]:
    from headway.translator import Translator

    translator = Translator(stored, device="cpu")
    return [translation.text for translation in translator.translate(sources, beam_size=1)]


def _export(stored: StoredModel, to: str, output: Path, quantization: str | None) -> Callable[[], Exported]:
    """Writes it; opens what was written when it is called."""
    if to == "huggingface":
        from headway.interop.huggingface import export_huggingface, open_huggingface

        export_huggingface(stored, output)
        return lambda: open_huggingface(stored, output)
    if to == "onnx":
        from headway.interop.onnx import export_onnx, open_onnx

        export_onnx(stored, output)
        return lambda: open_onnx(stored, output)
    if to == "argos":
        from headway.interop.argos import export_argos, open_argos

        export_argos(stored, output, quantization)
        return lambda: open_argos(stored, output)
    from headway.decoding.ctranslate2_model import export_ctranslate2, open_ctranslate2

    export_ctranslate2(stored, output, quantization)
    return lambda: open_ctranslate2(stored, output)


def _report_difference(stored: StoredModel, pairs: list[Pair], ours: list[str], exported: Exported) -> None:
    """Greedy search is the same everywhere; the tools' beams differ by their length penalties."""
    from headway.cli.test_set import tokenization_for
    from headway.evaluation import score_translations

    source, target, longest = stored.source_tokenizer, stored.target_tokenizer, stored.model.config.max_length - 1
    theirs = []
    for pair in pairs:
        ids = source.encode(pair.source, tagged=True)
        most = stored.decoding.get("max_length") or 2 * len(ids) + 50
        readable = 0 < len(ids) <= longest
        theirs.append(target.decode(exported.translate(ids, min(most, longest))) if readable else "")
    tokenize = tokenization_for(stored)
    references = [pair.target for pair in pairs]
    mine, found = (score_translations(texts, references, tokenize) for texts in (ours, theirs))
    same = sum(one == other for one, other in zip(ours, theirs, strict=True))
    typer.echo(
        f"BLEU {found.bleu:.2f} as exported, {mine.bleu:.2f} in headway: {found.bleu - mine.bleu:+.2f}, greedy; "
        f"{same} of {len(pairs)} lines are equal  {found.bleu_signature}"
    )
