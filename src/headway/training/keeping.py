"""What a run keeps: checkpoints, its best and its last models, and `best.json`, which names the best."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from headway.errors import UserError
from headway.model import Transformer
from headway.storage import Aligner, StoredModel, save_model
from headway.storage.atomic import remove_directory, write_json
from headway.storage.steps import step_folders, step_name, step_of
from headway.training.card import model_card
from headway.training.checkpoint import Progress, State, best_steps, conditions, save_checkpoint, states_of_ranks
from headway.training.limits import standing
from headway.training.recipe import BestBy
from headway.training.run import Run
from headway.training.run_directory import check_in_place
from headway.training.validation import Validation
from headway.translator.aligning import choose_aligner

MODELS_KEPT = 5
"""The last few model directories, beside the best."""
PAIRS_ALIGNED = 500
"""Validation pairs by which the attention that aligns words is chosen."""


def stored_model(run: Run) -> StoredModel:
    """The run's model with all that a model directory holds, but for its card."""
    return StoredModel(
        model=run.model,
        source_tokenizer=run.data.source_tokenizer,
        target_tokenizer=run.data.target_tokenizer,
        source_language=run.recipe.data.source_language,
        target_language=run.recipe.data.target_language,
        decoding=run.recipe.decoding.model_dump(exclude_none=True),
        training_flops=run.progress.flops,
        domain=run.recipe.data.domain,
    )


def is_better(progress: Progress, validation: Validation, best_by: BestBy) -> bool:
    """Whether a model is better than the best before it, by its `standing`."""
    if progress.best_score is None:
        return True
    best_loss = math.inf if progress.best_loss is None else progress.best_loss
    before = standing(best_by, best_loss, bleu=progress.best_score)
    return standing(best_by, validation.loss, validation.scores.bleu) > before


def keep_model(run: Run, stored: StoredModel, validation: Validation, *, better: bool) -> None:
    """Saves the model that was validated; where it is better than those before, best.json names it."""
    progress, best_by = run.progress, run.recipe.training.best_by
    if run.ranks.leads:
        stored.aligner = _aligner(run)
        stored.card = model_card(run.recipe, run.model.config, progress, validation.loss, validation.scores)
        save_model(run.folder / "models" / step_name(progress.step), stored)
    if better:
        progress.best_score = validation.scores.bleu if best_by == "valid_bleu" else -validation.loss
        progress.best_loss = validation.loss
        progress.best_step, progress.validations_without_better = progress.step, 0
        if run.ranks.leads:
            write_best(run.folder, progress, best_by)
    else:
        progress.validations_without_better += 1
    progress.validated_step = progress.step


def _aligner(run: Run) -> Aligner:
    ids = run.valid.corpus
    pairs = range(min(len(ids), PAIRS_ALIGNED))
    return choose_aligner(run.model, *([side[pair].tolist() for pair in pairs] for side in (ids.source, ids.target)))


def write_best(folder: Path, progress: Progress, best_by: BestBy) -> None:
    """best.json names the best model, and is absent where there is none yet."""
    if progress.best_score is None:
        (folder / "best.json").unlink(missing_ok=True)
    else:
        best = {"model": step_name(progress.best_step), best_by: abs(progress.best_score)}
        write_json(folder / "best.json", best)


def take_back_models(folder: Path, step: int) -> None:
    """Removes the models of later steps, which come again."""
    for path in step_folders(folder / "models"):
        if (step_of(path.name) or 0) > step:
            remove_directory(path)


def save_run(run: Run) -> None:
    """Saves where the run stands; models that no checkpoint needs any more go after that."""
    check_fit_to_keep(run)
    random = states_of_ranks(run.ranks)
    if not run.ranks.leads:
        return
    run.progress.minutes = run.minutes()
    state = State(
        run.progress,
        run.recipe.model_dump(mode="json"),
        run.data.fingerprint,
        conditions(run.device, run.dtype, run.ranks.count),
    )
    save_checkpoint(run.folder / "checkpoints", run.model, run.optimizers, run.average, state, random)
    sweep_models(run.folder)


def sweep_models(folder: Path) -> None:
    """Removes all models but the last few and those that a checkpoint, any of which may be resumed, has as its best."""
    models = step_folders(folder / "models")
    best = {step_name(step) for step in best_steps(folder / "checkpoints")}
    for path in models[:-MODELS_KEPT]:
        if path.name not in best:
            remove_directory(path)


def check_fit_to_keep(run: Run) -> None:
    """Raises UserError where the run's folder was moved away, or where a weight is not finite: such a model is never
    saved."""
    check_in_place(run.folder, run.identity)
    refuse_broken_weights(run.model, run.progress.step)


def refuse_broken_weights(model: Transformer, step: int) -> None:
    """Raises UserError where a weight is not finite."""
    for name, parameter in model.named_parameters():
        if not torch.isfinite(parameter).all():
            raise UserError(
                f"step {step}: weight {name!r} is not finite, nothing of it was saved; "
                "begin a new run with a lower training.learning_rate"
            )
