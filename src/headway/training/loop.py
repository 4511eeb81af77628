"""The training loop: batches, steps, validation, the best and the last model, until the recipe says stop."""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.devices import keep_large_allocations, keep_matrix_kernels, pick_device, training_dtype
from headway.errors import UserError
from headway.evaluation import Scores, score_translations, tokenization
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel, load_model, save_model
from headway.storage.atomic import remove_directory, write_json
from headway.storage.steps import step_folders, step_name
from headway.text.batches import CorpusShare, MicroBatch, collate, padded_tokens, plan_epoch
from headway.text.shards import ParallelIds
from headway.training.averaging import MovingAverage
from headway.training.card import model_card
from headway.training.checkpoint import (
    Progress,
    State,
    best_steps,
    conditions,
    load_checkpoint,
    random_states,
    read_state,
    restore_random_states,
    save_checkpoint,
)
from headway.training.initial import load_initial_model
from headway.training.log import RunLog, check_tensorboard
from headway.training.loss import translation_loss
from headway.training.memory import naming_memory
from headway.training.optim import learning_rate, make_optimizer, paper_peak
from headway.training.prepare import PreparedData, prepare
from headway.training.recipe import Recipe
from headway.training.reporter import Reporter
from headway.training.run_directory import (
    check_in_place,
    only_trainer,
    open_run,
    rate_will_jump,
    refuse_changes,
    write_recipe,
)
from headway.training.stopping import Interrupted, StopRequests
from headway.translator import Translator

MODELS_KEPT = 5
"""The last few model directories, beside the best."""
EPOCH_LIMITS = (100, 2000)
"""By default validation comes once an epoch, but not before and not after so many steps."""
Lengths = tuple[NDArray[np.int64], NDArray[np.int64]]
"""The tokens of each pair of a corpus, of both sides, with their <eos>."""


def train(recipe: Recipe, run: Path, reporter: Reporter) -> Progress:
    """Trains as the recipe says and keeps everything in the folder `run`; goes on from its last checkpoint.

    Raises UserError for what the user can mend, and Interrupted after SIGINT or SIGTERM, when all is saved.
    """
    with reporter, only_trainer(run):
        trainer = Trainer(recipe, run, reporter)
        stop = StopRequests()
        with stop.listening():
            return trainer.train(stop)


class Trainer:
    """One run: its model, its data, and where it stands."""

    def __init__(self, recipe: Recipe, run: Path, reporter: Reporter) -> None:
        self.recipe, self.run, self.reporter = recipe, run, reporter
        self.options = recipe.training
        self.device = pick_device(self.options.device)
        self.dtype = training_dtype(self.options.precision, self.device)
        keep_large_allocations(self.device)
        keep_matrix_kernels(self.device)
        if self.options.tensorboard:
            check_tensorboard()
        checkpoint = open_run(run, reporter.line)
        self.identity = run.stat()
        state = read_state(checkpoint) if checkpoint is not None else None
        if state is not None:
            self._check_same_run(state)
        write_recipe(run, recipe)

        config = ModelConfig.preset(**recipe.model_options(), source_vocab_size=4, target_vocab_size=4)
        initial = load_initial_model(recipe, config) if checkpoint is None else None
        vocabulary_of = initial or (self._last_model() if checkpoint is not None else None)
        tokenizers = (vocabulary_of.source_tokenizer, vocabulary_of.target_tokenizer) if vocabulary_of else None
        self.data: PreparedData = prepare(
            recipe,
            run / "data",
            config.max_length,
            reporter.line,
            tokenizers,
            state.data if state is not None else None,
        )
        torch.manual_seed(self.options.seed)
        self.model = Transformer(
            replace(
                config,
                source_vocab_size=self.data.source_tokenizer.vocab_size,
                target_vocab_size=self.data.target_tokenizer.vocab_size,
            )
        ).to(self.device)
        if initial:
            self.model.load_state_dict(initial.model.state_dict())
        self.optimizer = make_optimizer(self.model, self.options.adam_beta2)
        self.average = MovingAverage(self.model, self.options.ema_decay) if self.options.ema_decay else None
        self.shares = [
            CorpusShare(size, corpus.weight)
            for size, corpus in zip(self.data.train.sizes, recipe.data.train, strict=True)
        ]
        self.lengths: Lengths = self.data.train.source.lengths + 1, self.data.train.target.lengths + 1
        self.plan = self._plan(epoch=0)
        self.last_step = self._last_step(len(self.plan))
        if self.last_step is not None and self.last_step <= self.options.warmup_steps:
            reporter.line(
                f"notice: the run ends after {self.last_step} steps, within the warm-up of the learning rate "
                f"(training.warmup_steps={self.options.warmup_steps})"
            )
        self.validate_every = self.options.validate_every or min(max(len(self.plan), EPOCH_LIMITS[0]), EPOCH_LIMITS[1])
        self.save_every = self.options.save_every or self.validate_every
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        reporter.line(f"model: {parameters:,} parameters, {self.device}, {str(self.dtype).removeprefix('torch.')}")
        self.progress = state.progress if state is not None else Progress()
        self.unsaved = False
        if checkpoint is not None:
            self._resume(checkpoint)
        self.clock = time.monotonic() - 60 * self.progress.minutes

    def train(self, stop: StopRequests) -> Progress:
        """Steps until a limit of the recipe is reached. A stop request ends it after the step, saved."""
        with stop.at_once():
            self._try_largest_batch()
        progress, notice = self.progress, self.reporter.line
        self.plan = self._plan(progress.epoch)
        with RunLog(
            self.run, progress.step, progress.validated_step, notice, tensorboard=self.options.tensorboard
        ) as self.log:
            while True:
                finished = self._finished()
                due = finished or progress.step % self.validate_every == 0
                if due and progress.validated_step < progress.step:
                    if not step_folders(self.run / "checkpoints"):
                        self._save_checkpoint()  # no model without a checkpoint, whatever a validation may meet
                    self._validate(stop)
                    finished = self._finished()
                signal_number = stop()
                if signal_number is not None:
                    notice("stopping: saving what was done; again to stop at once, unsaved")
                ending = finished or signal_number is not None
                if self.unsaved and (ending or progress.step % self.save_every == 0):
                    self._save_checkpoint()
                if signal_number is not None:
                    raise Interrupted(signal_number)
                if finished:
                    notice(f"ended by {finished}")
                    return progress
                if progress.step_in_epoch == len(self.plan):
                    progress.epoch, progress.step_in_epoch = progress.epoch + 1, 0
                    self.plan = self._plan(progress.epoch)
                self._step(self.plan[progress.step_in_epoch])

    def _plan(self, epoch: int) -> list[list[MicroBatch]]:
        return plan_epoch(
            *self.lengths,
            tokens_per_batch=self.options.tokens_per_batch,
            tokens_per_micro_batch=self.options.micro_batch_budget,
            seed=self.options.seed,
            epoch=epoch,
            shares=self.shares,
        )

    def _last_step(self, steps_per_epoch: int) -> int | None:
        """By the recipe's steps and epochs. Each epoch has its own plan, so that of epochs is a good estimate."""
        by_epochs = self.options.max_epochs and self.options.max_epochs * steps_per_epoch
        return min((limit for limit in (self.options.max_steps, by_epochs) if limit), default=None)

    def _last_model(self) -> StoredModel | None:
        """The last model that the run has kept; its vocabulary is the run's, should the prepared data be gone."""
        models = step_folders(self.run / "models")
        return load_model(models[-1]) if models and not (self.run / "data").exists() else None

    def _check_same_run(self, state: State) -> None:
        """Raises UserError for a checkpoint of another run, and says what may make a difference in the last digits."""
        refuse_changes(state.recipe, self.recipe)
        if rate_will_jump(state.recipe, self.recipe):
            self.reporter.line(
                "notice: schedule: cosine ends at the last step, which is another one now, so the learning rate jumps"
            )
        before, now = state.made_with, conditions(self.device, self.dtype)
        changed = [name for name in now if before.get(name) != now[name]]
        if changed:
            changes = ", ".join(f"{name} {before.get(name, 'unknown')} -> {now[name]}" for name in changed)
            self.reporter.line(f"notice: resuming with {changes}: the last digits will differ")

    def _resume(self, checkpoint: Path) -> None:
        """Goes back to the checkpoint; what came after it will come again, so its models go."""
        load_checkpoint(checkpoint, self.model, self.optimizer, self.average)
        self._write_best(self.progress)
        for folder in step_folders(self.run / "models"):
            if folder.name > step_name(self.progress.step):
                remove_directory(folder)
        self.reporter.line(f"resuming after step {self.progress.step:,}")

    def _finished(self) -> str | None:
        """The recipe's limit that ends the run, if one is reached."""
        options, progress = self.options, self.progress
        reached = {
            "max_steps": progress.step,
            "max_epochs": progress.epoch + (progress.step_in_epoch == len(self.plan)),
            "max_minutes": self._minutes(),
            "patience": progress.validations_without_better,
        }
        for name, value in reached.items():
            limit = getattr(options, name)
            if limit is not None and value >= limit:
                return f"training.{name}={limit:g}"
        return None

    def _minutes(self) -> float:
        return (time.monotonic() - self.clock) / 60

    def _autocast(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, dtype=self.dtype, enabled=self.dtype != torch.float32)

    def _rate(self, step: int) -> float:
        options = self.options
        if options.schedule == "paper":
            peak = paper_peak(self.model.config.d_model, options.warmup_steps)
        else:
            peak = options.learning_rate or 0.0
        return learning_rate(step, options.schedule, peak, options.warmup_steps, self.last_step)

    def _step(self, micro_batches: list[MicroBatch]) -> None:
        """One optimizer step: the losses of all micro-batches summed, divided once by all their target tokens."""
        start = time.monotonic()
        progress = self.progress
        step, rate = progress.step + 1, self._rate(progress.step + 1)
        self.model.train()
        with self._naming_batch(micro_batches, self.lengths):
            loss_sum, tokens = self._accumulate(micro_batches)
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.options.max_gradient_norm or math.inf)
        loss = loss_sum / tokens
        if not (math.isfinite(loss) and math.isfinite(norm.item())):
            raise UserError(
                f"step {step}, epoch {progress.epoch + 1}, batch {progress.step_in_epoch + 1}: "
                f"{'the loss' if not math.isfinite(loss) else 'a gradient'} is not finite; nothing of it was used or "
                "saved. Begin a new run with a lower training.learning_rate, or training.precision: fp32"
            )
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with self._naming_batch(micro_batches, self.lengths):
            self.optimizer.step()
            if self.average is not None:
                self.average.update(step)
        self.optimizer.zero_grad()
        progress.step, progress.step_in_epoch = step, progress.step_in_epoch + 1
        progress.minutes, self.unsaved = self._minutes(), True
        speed = tokens / (time.monotonic() - start)
        self.log.write(
            {
                "step": step,
                "epoch": progress.epoch + 1,
                "loss": loss,
                "learning_rate": rate,
                "tokens_per_second": round(speed),
            }
        )
        self.reporter.step(step, loss, speed, *self._outlook())

    def _accumulate(self, micro_batches: list[MicroBatch]) -> tuple[float, int]:
        """Forward and backward of all micro-batches; the gradients are those of the mean loss of their tokens."""
        tokens = sum(int(self.lengths[1][batch].sum()) for batch in micro_batches)
        loss_sum = 0.0
        for batch in micro_batches:
            source, target = self._tensors(self.data.train, batch)
            with self._autocast():
                loss = translation_loss(self.model, source, target, self.options.label_smoothing)
            (loss / tokens).backward()
            loss_sum += loss.item()
        return loss_sum, tokens

    def _tensors(self, corpus: ParallelIds, batch: MicroBatch) -> tuple[Tensor, Tensor]:
        source, target = collate(corpus, batch)
        return torch.from_numpy(source).to(self.device), torch.from_numpy(target).to(self.device)

    def _try_largest_batch(self) -> None:
        """So that running out of memory comes at once. Changes neither weights nor random generators."""
        largest = _largest([batch for step in self.plan for batch in step], self.lengths)
        before = random_states()
        with self._naming_batch([largest], self.lengths):
            self._accumulate([largest])
        self.optimizer.zero_grad()
        restore_random_states(before)

    def _naming_batch(self, batches: list[MicroBatch], lengths: Lengths) -> AbstractContextManager[None]:
        """Raises UserError where memory runs out, with the shape of the largest batch and the key that lowers it."""

        def what() -> str:
            largest = _largest(batches, lengths)
            source, target = (int(side[largest].max()) for side in lengths)
            return (
                f"with {len(largest)} sentences of up to {source} source and {target} target tokens; "
                f"begin a new run with a lower training.tokens_per_micro_batch (now {self.options.micro_batch_budget})"
            )

        return naming_memory(what)

    def _outlook(self) -> tuple[float | None, float | None]:
        """The share of the run that is done, and the minutes left, by the nearest limit."""
        progress, shares = self.progress, []
        if self.last_step is not None:
            shares.append(progress.step / self.last_step)
        if self.options.max_minutes is not None:
            shares.append(progress.minutes / self.options.max_minutes)
        if not shares:
            return None, None
        done = min(1.0, max(shares))
        return done, progress.minutes * (1 - done) / done

    def _validate(self, stop: StopRequests) -> None:
        """Loss and BLEU of the validation set; a better model than before becomes the best. A stop request leaves it
        for the next time."""
        check_in_place(self.run, self.identity)
        self._refuse_broken_weights()
        with self.average.in_model() if self.average is not None else nullcontext():
            try:
                with stop.at_once():
                    loss = self._validation_loss()
                    stored = self._stored_model()
                    scores = self._validation_scores(Translator(stored, device=self.device))
            except Interrupted:
                return
            self._keep_model(stored, loss, scores)

    def _keep_model(self, stored: StoredModel, loss: float, scores: Scores) -> None:
        progress, options = self.progress, self.options
        if not math.isfinite(loss):
            raise UserError(
                f"step {progress.step}: the validation loss is not finite; begin a new run with a lower "
                "training.learning_rate, or with training.precision: fp32"
            )
        score = scores.bleu if options.best_by == "valid_bleu" else -loss
        before = progress.best_score, -(progress.best_loss or math.inf)
        better = before[0] is None or (score, -loss) > before
        self.log.write({"step": progress.step, "valid_loss": loss, "valid_bleu": round(scores.bleu, 2)})
        self.reporter.line(
            f"step {progress.step:,}  epoch {progress.epoch + 1}  valid loss {loss:.3f}  BLEU {scores.bleu:.2f}"
            f"{'  best' if better else ''}  {self._minutes():.1f} min"
        )
        stored.card = model_card(self.recipe, self.model.config, progress, loss, scores)
        save_model(self.run / "models" / step_name(progress.step), stored)
        if better:
            progress.best_score, progress.best_loss, progress.best_step = score, loss, progress.step
            progress.validations_without_better = 0
            self._write_best(progress)
        else:
            progress.validations_without_better += 1
        progress.validated_step, self.unsaved = progress.step, True

    def _refuse_broken_weights(self) -> None:
        """Raises UserError where a weight is not finite, so that such a model is never saved."""
        for name, parameter in self.model.named_parameters():
            if not torch.isfinite(parameter).all():
                raise UserError(
                    f"step {self.progress.step}: weight {name!r} is not finite, nothing of it was saved; "
                    "begin a new run with a lower training.learning_rate"
                )

    def _write_best(self, progress: Progress) -> None:
        """best.json names the best model, and is absent where there is none yet."""
        if progress.best_score is None:
            (self.run / "best.json").unlink(missing_ok=True)
        else:
            best = {"model": step_name(progress.best_step), self.options.best_by: abs(progress.best_score)}
            write_json(self.run / "best.json", best)

    @torch.inference_mode()
    def _validation_loss(self) -> float:
        """Cross-entropy a token in nats, without label smoothing."""
        self.model.eval()
        corpus = self.data.valid
        lengths = corpus.source.lengths + 1, corpus.target.lengths + 1
        budget = self.options.micro_batch_budget
        plan = plan_epoch(*lengths, tokens_per_batch=budget, tokens_per_micro_batch=budget, seed=0, epoch=0)
        batches = [batch for step in plan for batch in step]
        with self._naming_batch(batches, lengths), self._autocast():
            total = sum(translation_loss(self.model, *self._tensors(corpus, batch)).item() for batch in batches)
        return total / int(lengths[1].sum())

    def _validation_scores(self, translator: Translator) -> Scores:
        """Of greedy translations, by the translator that everybody uses."""
        sources, references = zip(*self.data.valid_texts, strict=True)
        longest = int(self.data.valid.source.lengths.max()) + 1
        remedy = "begin a new run with a lower decoding.max_length, or without the longest pairs of data.valid"
        with naming_memory(lambda: f"translating data.valid, sentences of up to {longest} source tokens; {remedy}"):
            translations = translator.translate(sources, beam_size=1)
        return score_translations(
            [translation.text for translation in translations],
            references,
            tokenization(self.recipe.data.target_language, tokenized=self.recipe.tokenizer.kind == "word"),
        )

    def _stored_model(self) -> StoredModel:
        return StoredModel(
            model=self.model,
            source_tokenizer=self.data.source_tokenizer,
            target_tokenizer=self.data.target_tokenizer,
            source_language=self.recipe.data.source_language,
            target_language=self.recipe.data.target_language,
            decoding=self.recipe.decoding.model_dump(exclude_none=True),
        )

    def _save_checkpoint(self) -> None:
        """Saves where the run stands; models that no checkpoint needs any more go after that."""
        check_in_place(self.run, self.identity)
        self._refuse_broken_weights()
        self.progress.minutes = self._minutes()
        self.log.settle()
        made_with = conditions(self.device, self.dtype)
        state = State(self.progress, self.recipe.model_dump(mode="json"), self.data.fingerprint, made_with)
        save_checkpoint(self.run / "checkpoints", self.model, self.optimizer, self.average, state)
        self.unsaved = False
        models = step_folders(self.run / "models")
        kept = {step_name(step) for step in best_steps(self.run / "checkpoints")}  # any of them may be resumed
        kept |= {path.name for path in models[-MODELS_KEPT:]}
        for folder in models:
            if folder.name not in kept:
                remove_directory(folder)


def _largest(batches: list[MicroBatch], lengths: Lengths) -> MicroBatch:
    return max(batches, key=lambda batch: padded_tokens(batch, *lengths))
