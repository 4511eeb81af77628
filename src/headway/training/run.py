"""A run in progress as one record, its limits, and its validations on text that it is never trained on."""

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.amp.grad_scaler import GradScaler

from headway.data.prepared import PreparedData
from headway.devices import autocast
from headway.errors import UserError
from headway.evaluation import Scores, score_translations, tokenization
from headway.lazy import load_named
from headway.model import Transformer
from headway.recipe.recipe import Recipe, TrainingSection
from headway.storage import StoredModel
from headway.training.adapters import merged
from headway.training.averaging import MovingAverage
from headway.training.checkpoint import Progress
from headway.training.loss import TranslationLoss
from headway.training.minimum_risk import RiskSampler
from headway.training.ranks import SingleProcess
from headway.training.rates import rate_of_step
from headway.training.run_directory import RunStage
from headway.training.step import Batches, TeacherForcing, naming_batch, naming_memory
from headway.translator import Translator

EPOCH_LIMITS = (100, 2000)
"""Bounds of the default interval between validations, in steps. Within them it is an epoch."""


@dataclass
class Run:
    """A run that `start` has opened. The loop advances it."""

    folder: Path
    identity: os.stat_result
    """`stat` of the folder when training began."""
    recipe: Recipe
    dtype: torch.dtype
    data: PreparedData
    model: Transformer
    optimizers: list[torch.optim.Optimizer]
    average: MovingAverage | None
    """Validated and saved in place of the weights."""
    progress: Progress
    scaler: GradScaler | None
    """Scaler of the loss, for fp16."""
    ranks: SingleProcess
    earlier: Sequence[RunStage] | None
    """The stages before this one; None for a run without stages."""
    base: dict[str, str]
    """Fingerprint of the frozen model below an adapter, for checkpoints; empty without an adapter."""

    def __post_init__(self) -> None:
        options, data, device = self.recipe.training, self.data, next(self.model.parameters()).device
        budget, shares = options.micro_batch_budget, self.recipe.data.shares_of(data.train.sizes)
        bos_id = self.model.config.bos_id
        self.train = Batches(data.train, device, options.tokens_per_batch, budget, options.seed, shares, bos_id)
        self.valid = Batches(data.valid, device, budget, budget, bos_id=bos_id)
        self.loss_of = loss_class(options.loss)(self.model, options.label_smoothing)
        self.ddp_loss = self.ranks.wrap_ddp(self.loss_of)
        self.objective: TeacherForcing | RiskSampler = TeacherForcing(
            self.train, self.model.config, options.adapter_rank
        )
        if options.risk_samples:
            samples = tokenization_of(self.recipe), options.risk_samples, options.seed, self.dtype
            self.objective = RiskSampler(self.model, data.target_tokenizer, self.train, *samples)
        beginning, parts = self.train.plan.beginning()
        self.largest = self.train.largest_of_run(beginning)
        self.steps_per_epoch = len(beginning) * parts
        self.last_step = last_step(options, self.steps_per_epoch)
        self.validate_every = steps_between_validations(options, self.steps_per_epoch)
        self.save_every = options.save_every or self.validate_every
        self.skipped = 0  # latest steps in a row without a finite gradient
        self.started = time.monotonic() - 60 * self.progress.minutes

    @contextmanager
    def finished_model(self) -> Iterator[None]:
        """Inside this context the run has the model that is validated and saved: with averaged weights, if it has them,
        and an adapter merged."""
        trained = self.model
        with self.average.in_model() if self.average is not None else nullcontext():
            if self.recipe.training.adapter:
                self.model = self.loss_of.model = merged(trained)
            try:
                yield
            finally:
                self.model = self.loss_of.model = trained

    def minutes(self) -> float:
        """Minutes of training so far, over all resumes."""
        return (time.monotonic() - self.started) / 60


def loss_class(name: str | None) -> type[TranslationLoss]:
    """The class that `training.loss` names. Raises UserError."""
    found = TranslationLoss if name is None else load_named(name, "loss", "class")
    if not issubclass(found, TranslationLoss):
        raise UserError(f"loss {name}: must be a subclass of headway.training.loss.TranslationLoss")
    return found


def steps_between_validations(options: TrainingSection, steps_per_epoch: int) -> int:
    """`training.validate_every`, or about an epoch."""
    return options.validate_every or min(max(steps_per_epoch, EPOCH_LIMITS[0]), EPOCH_LIMITS[1])


def last_step(options: TrainingSection, steps_per_epoch: int) -> int | None:
    """The last step by `max_steps` and `max_epochs`. Each epoch has its own plan, so that of epochs is an estimate."""
    by_epochs = options.max_epochs and options.max_epochs * steps_per_epoch
    return min((limit for limit in (options.max_steps, by_epochs) if limit), default=None)


def rate_jumps(before: dict[str, Any], options: TrainingSection, steps_per_epoch: int, step: int) -> bool:
    """Whether a new last step changes the learning rate of a resumed run. before: the recipe before."""
    limits = {name: before["training"].get(name) for name in ("max_steps", "max_epochs", "decay_steps")}
    old, new = (
        rate_of_step(max(1, step), one, 1, last_step(one, steps_per_epoch))  # their ratio doesn't depend on d_model
        for one in (options.model_copy(update=limits), options)
    )
    return not math.isclose(old, new, rel_tol=0.05)


def limit_reached(options: TrainingSection, progress: Progress, minutes: float, *, epoch_over: bool) -> str | None:
    """The limit that is reached, such as `training.max_steps=800`. epoch_over: the epoch has no step left."""
    spent = {
        "max_steps": progress.step,
        "max_epochs": progress.epoch + epoch_over,
        "max_minutes": minutes,
        "patience": progress.validations_without_better,
    }
    for name, value in spent.items():
        limit = getattr(options, name)
        if limit is not None and value >= limit:
            return f"training.{name}={limit:.15g}"
    return None


def share_done_and_minutes_left(
    options: TrainingSection, progress: Progress, last_step: int | None
) -> tuple[float | None, float | None]:
    """The finished share of the run, 0 to 1, by its limits on steps and minutes; None without such a limit."""
    limits = ((progress.step, last_step), (progress.minutes, options.max_minutes))
    shares = [spent / limit for spent, limit in limits if limit is not None]
    if not shares:
        return None, None
    done = min(1.0, max(shares))
    return done, progress.minutes * (1 - done) / done


def tokenization_of(recipe: Recipe) -> str:
    """sacreBLEU's tokenisation for the target language; for both directions, that of the first."""
    languages = [tag.rpartition(":")[2] for tag in recipe.data.tags] or [recipe.data.languages[0][1]]
    return tokenization(*languages, tokenized=recipe.tokenizer.kind == "word")


def validate(run: Run, stored: StoredModel) -> tuple[float, Scores]:
    """The `mean_loss` of the model with its present weights, and the scores of its greedy translations. Ranks share the
    work and get the same result. stored: the model. Raises UserError if memory runs out."""
    batches, ranks = run.valid, run.ranks
    loss = mean_loss(run.loss_of, batches, run.dtype, ranks)
    translator = Translator(stored, device=batches.device)
    longest, _ = batches.longest(batches.plan.alone(batches.corpus.longest_pair()))
    remedy = "begin a new run with a lower decoding.max_length, or without the longest pairs of data.valid"
    with naming_memory(lambda: f"translating data.valid, a pair of {longest} source tokens among them; {remedy}"):
        scores = score(translator, run.data.valid_texts, tokenization_of(run.recipe), ranks)
    return loss, scores


@torch.inference_mode()
def mean_loss(
    loss_of: nn.Module, batches: Batches, dtype: torch.dtype, ranks: SingleProcess, steps: int | None = None
) -> float:
    """Cross-entropy in nats per target token, without label smoothing, over the first so many steps' batches or all."""
    loss_of.eval()
    plan = [one for step in islice(batches.plan.steps(0), steps) for one in step]
    with naming_batch(batches, plan), autocast(batches.device, dtype):
        losses = [loss_of(*batches.tensors(one)) for one in ranks.part(plan)]
    return sum(ranks.all_gather(torch.stack(losses).tolist() if losses else [])) / batches.target_tokens(plan)


def score(translator: Translator, texts: Sequence[tuple[str, str]], tokenize: str, ranks: SingleProcess) -> Scores:
    sources, references = zip(*texts, strict=True)
    own = [translation.text for translation in translator.translate(ranks.part(sources), beam_size=1)]
    return score_translations(ranks.all_gather(own), references, tokenize)
