"""headway export"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.options import Threads
from headway.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from headway.interop.faithful import Exported
    from headway.storage import StoredModel
    from headway.text.corpus import Pair

TARGETS = ("huggingface", "ctranslate2", "onnx", "argos")
QUANTIZED = ("ctranslate2", "argos")


def export(
    model: Annotated[Path, typer.Argument(help="Model directory, or run directory: its best model.")],
    to: Annotated[str, typer.Option(metavar="|".join(TARGETS), help="The tool that shall run it.")],
    output: Annotated[Path, typer.Option(metavar="PATH", help="Folder to make; for argos a file, X.argosmodel.")],
    quantization: Annotated[
        str | None, typer.Option(metavar="TYPE", help="ctranslate2, argos: int8, int8_bfloat16, bfloat16, float16, ...")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(help="Text of a test set, or a file of both sides: tells what the export costs in BLEU."),
    ] = None,
    reference: Annotated[Path | None, typer.Option(help="Its translation by a person, line for line.")] = None,
    threads: Threads = None,
) -> None:
    """Write a model for another tool.

    Checks that it is the same model there.

    \b
    headway export runs/mine --to ctranslate2 --output mine-ct2 --quantization int8
    headway export runs/mine --to ctranslate2 --output mine-ct2 --quantization int8 --source test.de --reference test.en
    headway export runs/mine --to huggingface --output mine-hf
    headway export runs/mine --to onnx --output mine-onnx
    headway export runs/mine --to argos --output mine.argosmodel
    """
    from headway.storage import load_model
    from headway.threads import use_threads

    if to not in TARGETS:
        raise UserError(f"--to {to!r} is unknown; there are {', '.join(TARGETS)}")
    if output.exists():
        raise UserError(f"{output}: is there already; choose another --output")
    if quantization is not None and to not in QUANTIZED:
        raise UserError(f"--quantization is of {' and '.join(QUANTIZED)} alone, not of {to}")
    pairs = _pairs(source, reference)
    use_threads(threads)
    stored = load_model(model)
    ours = _our_translations(stored, [pair.source for pair in pairs])
    exported = _export(stored, to, output, quantization)
    typer.echo(f"{output}: written and checked", err=True)
    if pairs:
        _report_difference(stored, pairs, ours, exported())


def _pairs(source: Path | None, reference: Path | None) -> list[Pair]:
    """Those of the test set, none where there is none. Raises UserError."""
    from headway.text.corpus import read_pairs

    if source is None:
        if reference is not None:
            raise UserError(f"--reference {reference}: needs the --source that it translates")
        return []
    pairs = list(read_pairs([source], [reference] if reference else []))
    if not pairs:
        raise UserError(f"{source}: has no lines to translate")
    return pairs


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
    from headway.interop.ctranslate2 import export_ctranslate2, open_ctranslate2

    export_ctranslate2(stored, output, quantization)
    return lambda: open_ctranslate2(stored, output)


def _report_difference(stored: StoredModel, pairs: list[Pair], ours: list[str], exported: Exported) -> None:
    """Greedy search is the same everywhere; the tools' beams differ by their length penalties."""
    from headway.evaluation import score_translations, tokenization

    source, target, longest = stored.source_tokenizer, stored.target_tokenizer, stored.model.config.max_length - 1
    theirs = []
    for pair in pairs:
        ids = source.encode(pair.source, tagged=True)
        most = stored.decoding.get("max_length") or 2 * len(ids) + 50
        readable = 0 < len(ids) <= longest
        theirs.append(target.decode(exported.translate(ids, min(most, longest))) if readable else "")
    tokenize = tokenization(stored.target_language, tokenized=target.kind == "word")
    references = [pair.target for pair in pairs]
    mine, found = (score_translations(texts, references, tokenize) for texts in (ours, theirs))
    same = sum(one == other for one, other in zip(ours, theirs, strict=True))
    typer.echo(
        f"BLEU {found.bleu:.2f} as exported, {mine.bleu:.2f} in headway: {found.bleu - mine.bleu:+.2f}, greedy; "
        f"{same} of {len(pairs)} lines are equal  {found.bleu_signature}"
    )
