"""headway score"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from headway.cli.inputs import as_they_arrive, parallel_pairs
from headway.cli.loading import load_translator
from headway.cli.options import (
    Alignments,
    Device,
    Ensemble,
    JsonOutput,
    LinkedPieces,
    Model,
    Source,
    TargetLanguage,
    Threads,
)
from headway.errors import UserError


def score(
    model: Model,
    source: Source,
    target: Annotated[Path | None, typer.Option(help="Its translation, line for line.")] = None,
    target_language: TargetLanguage = None,
    ensemble: Ensemble = None,
    alignments: Alignments = False,
    pieces: LinkedPieces = False,
    as_json: JsonOutput = False,
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Score given translations by log-probability.

    Prints the total log-probability of each, in nats, one per line. In fp32 it equals the score of translate if the
    tokens are the same. A blank source scores 0 with a blank target and -inf with any other; nan means that a side is
    too long for the model, or that the source lacks its tag. In JSON, -inf and nan are null.

    \b
    headway score runs/multi30k-de-en --source test.de --target test.en
    headway score runs/multi30k-de-en --source test.de --target test.en --alignments
    """
    from headway.text.corpus import same_text
    from headway.text.lines import chunks
    from headway.threads import use_threads
    from headway.translator.alignments import to_pharaoh
    from headway.translator.lines import language_prefix, tag_fault

    if pieces and not alignments:
        raise UserError("--pieces says what --alignments join: give both")
    targets = [target] if target else []
    pairs = parallel_pairs([source], targets, model, target_language)
    use_threads(threads)
    translator = load_translator(model, device, ensemble=ensemble, alignments=alignments)
    tag = language_prefix(translator, target_language)
    number, failed, same = 0, False, True
    arriving = as_they_arrive(pairs, source, *targets)
    for chunk in chunks(arriving, lambda pair: len(pair.source) + len(pair.target)):
        same = same and same_text(chunk)
        faults = [tag_fault(translator, tag + pair.source) for pair in chunk]
        sources = ["" if fault else tag + pair.source for pair, fault in zip(chunk, faults, strict=True)]
        sides = sources, [pair.target for pair in chunk]
        found = translator.score(*sides)
        totals = [math.nan if fault else total for fault, total in zip(faults, found, strict=True)]
        every = translator.align(*sides, pieces=pieces) if alignments else [[] for _ in chunk]
        for pair, fault, total, links in zip(chunk, faults, totals, every, strict=True):
            number += 1
            if math.isnan(total):
                failed = True
                reason = fault or f"is longer than the model's {translator.longest_source} tokens"
                typer.echo(f"headway: line {number} {reason}", err=True)
            if as_json:
                # JSON knows no infinity: a score that is no number is null
                document = {
                    "score": total if math.isfinite(total) else None,
                    "source": pair.source,
                    "target": pair.target,
                    **({"alignments": links} if alignments else {}),
                }
                typer.echo(json.dumps(document, ensure_ascii=False))
            else:
                typer.echo(f"{total:.4f} ||| {to_pharaoh(links)}" if alignments else f"{total:.4f}")
    if number and same:
        typer.echo("headway: warning: source and target are the same text", err=True)
    raise typer.Exit(2 if failed else 0)
