"""headway evaluate"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from headway.errors import UserError


def evaluate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model directory, or run directory (then its best).")],
    source: Annotated[Path, typer.Option(help="Text to translate, one sentence a line.")],
    reference: Annotated[Path, typer.Option(help="Its translation by a person, line for line.")],
    output: Annotated[Path | None, typer.Option(help="Write the translations here.")] = None,
    beam_size: Annotated[int | None, typer.Option(min=1, help="Hypotheses side by side; 1 is greedy.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="GNMT's alpha; 0 favours short translations.")] = None,
    tokenize: Annotated[
        str | None,
        typer.Option(help="sacreBLEU's: 13a, none, intl, zh, char, ...; default 13a, none for a word-level model."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
) -> None:
    """Translate a text and score the translations against a reference: BLEU and chrF by sacreBLEU.

    \b
    headway evaluate runs/multi30k-de-en --source test.de --reference test.en
    """
    from headway.evaluation import check_tokenize, score_translations
    from headway.text.corpus import read_pairs
    from headway.text.tokenizer import WordTokenizer
    from headway.translator import Translator

    pairs = list(read_pairs([source], [reference]))
    if not pairs:
        raise UserError(f"{source}: has no lines to translate")
    if output is not None and not output.parent.is_dir():
        raise UserError(f"{output.parent}: no such folder")
    if tokenize is not None:
        check_tokenize(tokenize)
    translator = Translator.load(model, device=device)  # type: ignore[arg-type]
    sources = [pair.source for pair in pairs]
    translations = translator.translate(sources, beam_size=beam_size, length_penalty=length_penalty)
    hypotheses = [translation.text for translation in translations]
    for stopped, meaning in (("too_long", "too long for the model and left blank"), ("max_length", "cut off")):
        if count := sum(translation.stopped == stopped for translation in translations):
            typer.echo(f"headway: {count} of {len(pairs)} lines are {meaning}", err=True)
    if output is not None:
        output.write_text("".join(f"{line}\n" for line in hypotheses), encoding="utf-8", newline="\n")
    word_level = isinstance(translator.stored.target_tokenizer, WordTokenizer)
    scores = score_translations(
        hypotheses, [pair.target for pair in pairs], tokenize or ("none" if word_level else "13a")
    )
    if as_json:
        typer.echo(json.dumps({**asdict(scores), "lines": len(pairs)}, indent=2))
    else:
        typer.echo(f"BLEU {scores.bleu:.2f}  {scores.bleu_signature}")
        typer.echo(f"chrF {scores.chrf:.2f}  {scores.chrf_signature}")
