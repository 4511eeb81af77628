"""headway calibrate"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from headway.cli.loading import load_translator
from headway.cli.options import Device, Engine, Model, Source, TargetLanguage, Threads
from headway.errors import UserError


def calibrate(
    model: Model,
    output: Annotated[Path, typer.Option(metavar="MODEL", help="Model directory to make.")],
    source: Source,
    reference: Annotated[Path | None, typer.Option(help="Its translation, line for line.")] = None,
    target_language: TargetLanguage = None,
    device: Device = "auto",
    engine: Engine = "torch",
    threads: Threads = None,
) -> None:
    """Calibrate how likely a model's translations are acceptable.

    Translates text that the model wasn't trained on, such as the validation set, and learns to tell translations
    with a chrF of 60 or more from others. Writes the model with the calibration, which `translate --confidence`
    uses.

    \b
    headway calibrate runs/mine --source valid.de --reference valid.en --output models/mine-calibrated
    headway translate models/mine-calibrated input.de --confidence
    """
    from headway.cli.test_set import TestSet, refuse_endless
    from headway.storage import save_model
    from headway.threads import use_threads
    from headway.translator.confidence import learn_calibration

    if output.exists():
        raise UserError(f"{output}: is there already; choose another --output")
    use_threads(threads)
    test_set = TestSet.read(source, reference, [], model, target_language)
    translator = load_translator(model, device, engine=engine)
    refuse_endless(test_set.file, test_set.references, translator)
    translations = translator.translate(test_set.tagged(translator, target_language))
    found = learn_calibration(translator.stored, translations, test_set.references)
    save_model(output, replace(translator.stored, calibration=found))
    typer.echo(f"{output}: written, calibrated", err=True)
