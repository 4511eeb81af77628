"""A run in progress, as one record; when it ends; its validations, on text that it is never trained on; and what it
keeps: checkpoints, its best and its last models, each with its card, and `best.json`, which names the best."""

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from headway.data.batches import MicroBatch
from headway.data.prepared import PreparedData
from headway.devices import autocast
from headway.errors import UserError
from headway.evaluation import Scores, score_translations, tokenization
from headway.model import ModelConfig, Transformer
from headway.recipe.recipe import BestBy, Recipe, TrainingSection
from headway.storage import StoredModel, save_model
from headway.storage.atomic import remove_directory, write_json
from headway.storage.steps import step_folders, step_name, step_of
from headway.training.averaging import MovingAverage
from headway.training.checkpoint import Progress, State, best_steps, conditions, save_checkpoint, states_of_ranks
from headway.training.minimum_risk import RiskSampler
from headway.training.ranks import Alone
from headway.training.rates import rate_of_step
from headway.training.run_directory import RunStage, name_best_stage
from headway.training.step import Batches, TeacherForcing, naming_batch, naming_memory
from headway.translator import Translator
from headway.translator.aligning import choose_aligner
from headway.translator.reading import TorchReader

MODELS_KEPT = 5
"""The last few model directories, beside the best."""
PAIRS_ALIGNED = 500
"""Validation pairs by which the attention that aligns words is chosen."""
EPOCH_LIMITS = (100, 2000)
"""By default validation comes once an epoch, but not before and not after so many steps."""
LEAST_BLEU = 1.0
"""A lower BLEU is noise: a few n-grams that are right by chance."""


@dataclass
class Run:
    """What `start` makes, and the loop goes on with."""

    folder: Path
    identity: os.stat_result
    """Of the folder, when training began."""
    recipe: Recipe
    dtype: torch.dtype
    """Of matrix products."""
    data: PreparedData
    train: Batches
    valid: Batches
    objective: TeacherForcing | RiskSampler
    """What a step trains on."""
    model: Transformer
    loss_of: nn.Module
    """The model and its loss: a micro-batch's tensors -> the sum of its losses."""
    exchanging: nn.Module
    """The same as a step takes it: its gradients are the means of all ranks'."""
    optimizers: list[torch.optim.Optimizer]
    """Each of some of the weights."""
    average: MovingAverage | None
    """What is validated and kept in place of the weights themselves."""
    progress: Progress
    ranks: Alone
    earlier: Sequence[RunStage] | None = None
    """The stages before this one; None for a run without stages."""
    largest: MicroBatch = field(init=False)
    """The training micro-batch that takes the most memory."""
    steps_per_epoch: int = field(init=False)
    last_step: int | None = field(init=False)
    """Where the recipe's steps and epochs end the run."""
    validate_every: int = field(init=False)
    """In steps, as is `save_every`."""
    save_every: int = field(init=False)
    started: float = field(init=False)

    def __post_init__(self) -> None:
        options = self.recipe.training
        beginning, parts = self.train.plan.beginning()
        self.steps_per_epoch = len(beginning) * parts
        self.largest = self.train.largest_of_run(beginning)
        self.last_step = last_step(options, self.steps_per_epoch)
        self.validate_every = steps_between_validations(options, self.steps_per_epoch)
        self.save_every = options.save_every or self.validate_every
        self.started = time.monotonic() - 60 * self.progress.minutes

    def minutes(self) -> float:
        """Spent so far, over all resumes."""
        return (time.monotonic() - self.started) / 60


class Validation(NamedTuple):
    """Result of a validation."""

    loss: float
    """Cross-entropy a target token in nats, without label smoothing."""
    scores: Scores
    """Of greedy translations."""


def steps_between_validations(options: TrainingSection, steps_per_epoch: int) -> int:
    """As the recipe says, or once an epoch."""
    return options.validate_every or min(max(steps_per_epoch, EPOCH_LIMITS[0]), EPOCH_LIMITS[1])


def last_step(options: TrainingSection, steps_per_epoch: int) -> int | None:
    """By the recipe's steps and epochs. Each epoch has its own plan, so that of epochs is a good estimate."""
    by_epochs = options.max_epochs and options.max_epochs * steps_per_epoch
    return min((limit for limit in (options.max_steps, by_epochs) if limit), default=None)


def rate_jumps(before: dict[str, Any], options: TrainingSection, steps_per_epoch: int, step: int) -> bool:
    """Whether the learning rate that a resumed run had at this step isn't the one from which it goes on, because its
    last step has changed. before: the recipe as it was."""
    limits = {name: before["training"].get(name) for name in ("max_steps", "max_epochs", "decay_steps")}
    old, new = (
        rate_of_step(max(1, step), one, 1, last_step(one, steps_per_epoch))  # their ratio doesn't depend on d_model
        for one in (options.model_copy(update=limits), options)
    )
    return not math.isclose(old, new, rel_tol=0.05)


def standing(best_by: BestBy, loss: float, bleu: float) -> tuple[float, float]:
    """Sort key of a validation, the highest for the best: the recipe's measure, then the loss. The loss alone decides
    between validations whose BLEU is noise."""
    score = -loss if best_by == "valid_loss" else bleu if bleu >= LEAST_BLEU else 0.0
    return score, -loss


def reached(options: TrainingSection, progress: Progress, minutes: float, *, epoch_over: bool) -> str | None:
    """The recipe's limit that ends the run, such as `training.max_steps=800`, if one is reached. epoch_over: the
    epoch that the run is in has no step left."""
    spent = {
        "max_steps": progress.step,
        "max_epochs": progress.epoch + epoch_over,
        "max_minutes": minutes,
        "patience": progress.validations_without_better,
    }
    for name, value in spent.items():
        limit = getattr(options, name)
        if limit is not None and value >= limit:
            return f"training.{name}={limit:g}"
    return None


def outlook(options: TrainingSection, progress: Progress, last_step: int | None) -> tuple[float | None, float | None]:
    """The share of the run that is done, 0 to 1, and the minutes left, by the steps and the minutes that it may have;
    None where neither has a limit."""
    limits = ((progress.step, last_step), (progress.minutes, options.max_minutes))
    shares = [spent / limit for spent, limit in limits if limit is not None]
    if not shares:
        return None, None
    done = min(1.0, max(shares))
    return done, progress.minutes * (1 - done) / done


def tokenization_of(recipe: Recipe) -> str:
    """sacreBLEU's tokenisation of the text that is translated into; of both directions, that of the first."""
    languages = recipe.data.tags or [recipe.data.languages[0][1]]
    return tokenization(*languages, tokenized=recipe.tokenizer.kind == "word")


def validate(run: Run, stored: StoredModel) -> Validation:
    """The loss of the run's model, with the weights that it has now, and the scores of its translations. Ranks share
    the work, and find the same. stored: the model. Raises UserError where memory runs out."""
    batches, ranks = run.valid, run.ranks
    loss = mean_loss(run.loss_of, batches, run.dtype, ranks)
    translator = Translator(stored, device=batches.device)
    longest, _ = batches.longest(batches.plan.alone(batches.corpus.longest_pair()))
    remedy = "begin a new run with a lower decoding.max_length, or without the longest pairs of data.valid"
    with naming_memory(lambda: f"translating data.valid, a pair of {longest} source tokens among them; {remedy}"):
        scores = score(translator, run.data.valid_texts, tokenization_of(run.recipe), ranks)
    return Validation(loss, scores)


@torch.inference_mode()
def mean_loss(loss_of: nn.Module, batches: Batches, dtype: torch.dtype, ranks: Alone) -> float:
    """Cross-entropy a target token in nats, without label smoothing."""
    loss_of.eval()
    plan = [one for step in batches.plan.steps(0) for one in step]
    with naming_batch(batches, plan), autocast(batches.device, dtype):
        losses = [loss_of(*batches.tensors(one)).item() for one in ranks.part(plan)]
    return sum(ranks.joined(losses)) / batches.target_tokens(plan)


def score(translator: Translator, texts: Sequence[tuple[str, str]], tokenize: str, ranks: Alone) -> Scores:
    """Of greedy translations, by the translator that everybody uses."""
    sources, references = zip(*texts, strict=True)
    mine = [translation.text for translation in translator.translate(ranks.part(sources), beam_size=1)]
    return score_translations(ranks.joined(mine), references, tokenize)


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


def keep_model(run: Run, stored: StoredModel, validation: Validation) -> bool:
    """Saves the model that was validated. Returns whether it is better than those before; best.json names it then."""
    progress, best_by = run.progress, run.recipe.training.best_by
    better = is_better(progress, validation, best_by)
    if run.ranks.leads:
        sides = (run.valid.corpus.source, run.valid.corpus.target)
        aligned = range(min(len(run.valid.corpus), PAIRS_ALIGNED))
        reader = TorchReader(run.model)
        stored.aligner = choose_aligner(reader, *([side[pair].tolist() for pair in aligned] for side in sides))
        stored.card = model_card(run.recipe, run.model.config, progress, validation.loss, validation.scores)
        save_model(run.folder / "models" / step_name(progress.step), stored)
    if better:
        progress.best_score = validation.scores.bleu if best_by == "valid_bleu" else -validation.loss
        progress.best_loss = validation.loss
        progress.best_step, progress.validations_without_better = progress.step, 0
        if run.ranks.leads:
            write_best(run.folder, progress, best_by, run.earlier)
    else:
        progress.validations_without_better += 1
    progress.validated_step = progress.step
    return better


def write_best(folder: Path, progress: Progress, best_by: BestBy, earlier: Sequence[RunStage] | None = None) -> None:
    """best.json names the best model, and is absent where there is none yet. earlier: as in `Run`."""
    if progress.best_score is None:
        (folder / "best.json").unlink(missing_ok=True)
    else:
        write_json(folder / "best.json", {"model": step_name(progress.best_step), best_by: abs(progress.best_score)})
    if earlier is not None:
        name_best_stage(folder, earlier)


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
        conditions(run.train.device, run.dtype, run.ranks.count),
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
    try:
        in_place = os.path.samestat(run.folder.stat(), run.identity)
    except OSError:
        in_place = False
    if not in_place:
        raise UserError(f"{run.folder}: was moved or removed while it trained; go on with --resume where it is now")
    for name, parameter in run.model.named_parameters():
        if not torch.isfinite(parameter).all():
            raise UserError(
                f"step {run.progress.step}: weight {name!r} is not finite, nothing of it was saved; "
                "begin a new run with a lower training.learning_rate"
            )


def model_card(recipe: Recipe, config: ModelConfig, progress: Progress, valid_loss: float, scores: Scores) -> str:
    """README.md of a model directory: what the model was trained on, how, and how good it is. Every figure was measured
    in this run."""
    data, training = recipe.data, recipe.training
    files = (
        " / ".join(file.name for file in pair)
        for corpus in data.corpora
        for pair in (zip(corpus.source, corpus.target, strict=True) if corpus.target else zip(corpus.source))
    )
    objective = (
        f"minimum-risk training, {training.risk_samples} samples a sentence"
        if training.risk_samples
        else f"label smoothing {training.label_smoothing}"
    )
    average = f", moving average of the weights {training.ema_decay}" if training.ema_decay else ""
    rows = {
        "domain": data.domain,
        "starts from": "" if training.init_from is None else training.init_from.name,
        "training data": ", ".join(files),
        "text translated by": ", ".join(dict.fromkeys(one.writer.name for one in data.syntheses)),
        "steps, epochs, minutes": f"{progress.step:,}, {progress.epoch + 1}, {progress.minutes:.1f}"
        + (f" (with earlier stages {progress.all_minutes:.1f})" if progress.minutes_before else ""),
        "matrix products in training, all stages": (
            "unknown" if progress.flops is None else f"{progress.flops / 1e15:.4g} PFLOP"
        ),
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
    bar = r"\|"  # a plain one would end the cell, in code as well
    table = "\n".join(f"| {name} | {text.replace('|', bar)} |" for name, text in rows.items() if text)
    return f"""# Translation from {data.source_language} to {data.target_language}

A Transformer (Vaswani et al., 2017) trained with headway.

| | |
|---|---|
{table}

Use it:

    headway translate THIS_FOLDER input.txt
"""
