"""Files that a run keeps: checkpoints, its best and its last models, each with its card, and `best.json`, which names
the best."""

import math
import os
from collections.abc import Sequence
from pathlib import Path

import torch

from headway.errors import UserError
from headway.evaluation import Scores
from headway.model import ModelConfig
from headway.recipe.recipe import BestBy, Recipe
from headway.storage import StoredModel, save_model
from headway.storage.atomic import remove_directory, write_json
from headway.storage.steps import step_folders, step_name, step_of
from headway.training.checkpoint import Progress, State, best_steps, conditions, save_checkpoint, states_of_ranks
from headway.training.run import Run
from headway.training.run_directory import RunStage
from headway.translator.aligning import choose_aligner
from headway.translator.reading import TorchReader

MODELS_KEPT = 5
"""The last few model directories, beside the best."""
PAIRS_ALIGNED = 500
"""Validation pairs by which the attention that aligns words is chosen."""
LEAST_BLEU = 1.0
"""A lower BLEU is noise: a few n-grams that are right by chance."""


def stored_model(run: Run) -> StoredModel:
    """The run's model with its present weights and all else that a model directory holds, except aligner and card."""
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


def sort_key(best_by: BestBy, loss: float, bleu: float) -> tuple[float, float]:
    """Sort key of a validation: the recipe's measure, then the loss, which decides alone where BLEU is noise."""
    score = -loss if best_by == "valid_loss" else bleu if bleu >= LEAST_BLEU else 0.0
    return score, -loss


def is_better(progress: Progress, loss: float, bleu: float, best_by: BestBy) -> bool:
    best_loss = math.inf if progress.best_loss is None else progress.best_loss
    best = progress.best_score
    return best is None or sort_key(best_by, loss, bleu) > sort_key(best_by, best_loss, best)


def keep_model(run: Run, stored: StoredModel, loss: float, scores: Scores) -> bool:
    """Saves the model that was validated; that of an adapter, which is mostly the frozen model, only if it is the best
    so far. Returns whether it is, and best.json then names it."""
    progress, best_by = run.progress, run.recipe.training.best_by
    better = is_better(progress, loss, scores.bleu, best_by)
    if run.ranks.leads and (better or not run.recipe.training.adapter):
        sides = (run.valid.corpus.source, run.valid.corpus.target)
        aligned = range(min(len(run.valid.corpus), PAIRS_ALIGNED))
        reader = TorchReader(run.model)
        stored.aligner = choose_aligner(reader, *([side[pair].tolist() for pair in aligned] for side in sides))
        stored.card = model_card(run.recipe, run.model.config, progress, loss, scores)
        save_model(run.folder / "models" / step_name(progress.step), stored)
    if better:
        progress.best_score = scores.bleu if best_by == "valid_bleu" else -loss
        progress.best_loss, progress.best_step, progress.validations_without_better = loss, progress.step, 0
        if run.ranks.leads:
            write_best(run.folder, progress, best_by, run.earlier)
    else:
        progress.validations_without_better += 1
    progress.validated_step = progress.step
    return better


def write_best(folder: Path, progress: Progress, best_by: BestBy, earlier: Sequence[RunStage] | None = None) -> None:
    """Names the best model in best.json, which is absent as long as there is none. The best.json of a run with stages
    names the last stage that has a model. earlier: as in `Run`."""
    if progress.best_score is None:
        (folder / "best.json").unlink(missing_ok=True)
    else:
        write_json(folder / "best.json", {"model": step_name(progress.best_step), best_by: abs(progress.best_score)})
    if earlier is not None:
        stages = [stage.folder.name for stage in earlier] + [folder.name] * (progress.best_score is not None)
        best = folder.parent.parent / "best.json"
        if stages:
            write_json(best, {"stage": stages[-1]})
        else:
            best.unlink(missing_ok=True)


def remove_models_after(folder: Path, step: int) -> None:
    """Removes the models of later steps, because a resumed run repeats these."""
    for path in step_folders(folder / "models"):
        if (step_of(path.name) or 0) > step:
            remove_directory(path)


def save_run(run: Run) -> None:
    """Writes a checkpoint, and then removes the models that no checkpoint needs."""
    check_fit_to_keep(run)
    random = states_of_ranks(run.ranks)
    if not run.ranks.leads:
        return
    run.progress.minutes = run.minutes()
    made_with = conditions(run.train.device, run.dtype, run.ranks.count) | run.base
    scaler = run.scaler.state_dict() if run.scaler else None
    state = State(run.progress, run.recipe.model_dump(mode="json"), run.data.fingerprint, made_with, scaler)
    save_checkpoint(run.folder / "checkpoints", run.model, run.optimizers, run.average, state, random)
    sweep_models(run.folder, 0 if run.recipe.training.adapter else MODELS_KEPT)


def sweep_models(folder: Path, kept: int = MODELS_KEPT) -> None:
    """Removes all models but the last few and the best of each checkpoint, because any checkpoint may be resumed."""
    best = {step_name(step) for step in best_steps(folder / "checkpoints")}
    models = step_folders(folder / "models")
    for path in models[: max(0, len(models) - kept)]:
        if path.name not in best:
            remove_directory(path)


def check_fit_to_keep(run: Run) -> None:
    """Raises UserError if the run directory was moved away, or if a weight is not finite."""
    if not run.folder.exists() or not os.path.samestat(run.folder.stat(), run.identity):
        raise UserError(f"{run.folder}: was moved or removed while it trained; go on with --resume where it is now")
    for name, parameter in run.model.named_parameters():
        if not torch.isfinite(parameter).all():
            raise UserError(
                f"step {run.progress.step}: weight {name!r} is not finite, nothing of it was saved; "
                "begin a new run with a lower training.learning_rate"
            )


def model_card(recipe: Recipe, config: ModelConfig, progress: Progress, valid_loss: float, scores: Scores) -> str:
    """README.md of a model directory: training data, training and quality, all measured in this run."""
    data, training = recipe.data, recipe.training
    files = (
        " / ".join(file.name for file in pair)
        for corpus in data.corpora
        for pair in (zip(corpus.source, corpus.target, strict=True) if corpus.target else zip(corpus.source))
    )
    objective = f"label smoothing {training.label_smoothing}"
    if training.risk_samples:
        objective = f"minimum-risk training, {training.risk_samples} samples a sentence"
    adapter = training.adapter and f"{training.adapter.kind}, rank {training.adapter.rank}, merged"
    average = f", moving average of the weights {training.ema_decay}" if training.ema_decay else ""
    earlier = f" (with earlier stages {progress.all_minutes:.1f})" if progress.minutes_before else ""
    work = "unknown" if progress.flops is None else f"{progress.flops / 1e15:.4g} PFLOP"
    rows = {
        "domain": data.domain,
        "starts from": "" if training.init_from is None else training.init_from.name,
        "adapter": adapter or "",
        "training data": ", ".join(files),
        "text translated by": ", ".join(dict.fromkeys(one.writer.name for one in data.syntheses)),
        "steps, epochs, minutes": f"{progress.step:,}, {progress.epoch + 1}, {progress.minutes:.1f}{earlier}",
        "matrix products in training, all stages": work,
        "validation loss": f"{valid_loss:.4f} nats a token",
        "validation BLEU": f"{scores.bleu:.2f} (`{scores.bleu_signature}`)",
        "validation chrF": f"{scores.chrf:.2f} (`{scores.chrf_signature}`)",
        "size": f"d_model {config.d_model}, {config.encoder_layers} + {config.decoder_layers} layers, "
        f"{config.num_heads} heads, d_ff {config.d_ff}",
        "vocabulary": f"{recipe.tokenizer.kind}, {config.source_vocab_size:,} source and "
        f"{config.target_vocab_size:,} target",
        "optimizer": f"{training.optimizer.capitalize()}, schedule {training.schedule}, "
        f"{training.tokens_per_batch:,} tokens a step, padding included, {objective}{average}",
    }
    return f"""# Translation from {data.source_language} to {data.target_language}

A Transformer (Vaswani et al., 2017) trained with headway.

{table_of_card(rows)}

To translate with the model in headway's own format:

    headway translate MODEL_DIRECTORY input.txt
"""


def table_of_card(rows: dict[str, str]) -> str:
    """A table in Markdown with a row for each name and its text, if it has any."""
    bar = r"\|"  # a plain one would end the cell, in code as well
    return "\n".join(
        ["| | |", "|---|---|", *(f"| {name} | {text.replace('|', bar)} |" for name, text in rows.items() if text)]
    )
