"""The training loop: steps, validations and checkpoints, until a limit of the recipe or a signal ends the run."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import NamedTuple

import torch

from headway.data.batches import MicroBatch
from headway.devices import fixed_order, pick_device
from headway.errors import UserError
from headway.recipe.recipe import Recipe
from headway.recipe.sizes import work_of_update
from headway.training.checkpoint import Progress
from headway.training.finishing import end_run
from headway.training.processes import Interrupted, StopRequests
from headway.training.ranks import SingleProcess, join_ranks
from headway.training.rates import rate_of_step
from headway.training.reporter import Reporter, RunLog
from headway.training.run import Run, limit_reached, share_done_and_minutes_left, validate
from headway.training.run_directory import RunStage, open_stages, remove_if_refused, training_lock
from headway.training.saving import check_fit_to_keep, keep_model, save_run, stored_model
from headway.training.start import start
from headway.training.step import StepResult, naming_batch, train_step, try_batch

Watch = Callable[[Run], None]
MOST_SKIPPED = 20
"""Steps in a row that fp16 may leave out, because a gradient is beyond its range; each halves the scale of the loss."""
SECONDS_UNREAD, MOST_UNREAD = 1.0, 50
"""Steps whose results an accelerator still computes, in seconds and in number, before the loop waits for them."""


def train(recipe: Recipe, folder: Path, reporter: Reporter, watch: Watch | None = None) -> Progress:
    """Trains by the recipe, with stages one after another, and writes everything to the folder. Continues from the last
    checkpoint, if there is one. Returns the progress of the last stage. watch: as in `run_loop`.

    Raises UserError for mistakes that the user can fix, and Interrupted after SIGINT or SIGTERM, once all is saved.
    """
    ranks = join_ranks(pick_device(recipe.training.device))
    with reporter, ranks.watching(folder), ExitStack() as held:
        recipe = ranks.all_gather([recipe])[0]  # another rank may have read one that the first has replaced since
        if not recipe.stages:
            return _train_one(recipe, folder, reporter, ranks, watch=watch)
        if ranks.leads:
            held.enter_context(training_lock(folder))
            held.enter_context(remove_if_refused(folder))
        with ranks.lead_first():
            stages = open_stages(recipe, folder, reporter.line) if ranks.leads else []
        stages, progress = ranks.all_gather([stages])[0], Progress()
        translating = {recipe.stages[-1].name, *(stage.teacher for stage in recipe.stages)}
        for place, stage in enumerate(stages):
            if not stage.is_done:
                name = stage.folder.name
                reporter.line(f"stage {name}, {place + 1} of {len(stages)}")
                arguments = stage.recipe, stage.folder, reporter, ranks, stages[:place]
                progress = _train_one(*arguments, translates=name in translating)
        return progress


def _train_one(
    recipe: Recipe,
    folder: Path,
    reporter: Reporter,
    ranks: SingleProcess,
    earlier: Sequence[RunStage] | None = None,
    *,
    translates: bool = True,
    watch: Watch | None = None,
) -> Progress:
    """Trains a run without stages, or a stage. translates: its model isn't only used to start the next stage."""
    with training_lock(folder) if ranks.leads else nullcontext():
        run = start(recipe, folder, reporter.line, ranks, reporter.preparing, earlier)
        stop = StopRequests(alone=ranks.count == 1)
        with stop.listening():
            with fixed_order(asked=recipe.training.deterministic):
                progress = run_loop(run, stop, reporter, watch)
            if ranks.leads and translates:
                with stop.interruptible():
                    end_run(recipe, folder, progress.all_minutes, reporter.line)
            return progress


def run_loop(run: Run, stop: StopRequests, reporter: Reporter, watch: Watch | None = None) -> Progress:
    """Trains until a limit of the recipe is reached. A stop request ends the run after its step, saved. watch: is
    called with the run before its first step, and after each, perhaps twice; it must leave the run as it was.

    On an accelerator the loop runs ahead of the device: it reads results, requests and the clock about once a second,
    and before it validates or saves.
    """
    progress, options = run.progress, run.recipe.training
    with stop.interruptible():
        for one in run.ranks.local_micro_batches([run.largest]):
            try_batch(run.loss_of, run.train, one, run.dtype)
    steps = run.train.plan.steps(progress.epoch, progress.step_in_epoch)
    upcoming = next(steps, None)
    saved = progress.step, progress.validated_step  # as of the last checkpoint; (0, 0): there is none
    unread, read_at, ahead, minutes = list[TakenStep](), progress.step, 1, 0.0
    with RunLog(run.folder, *saved, reporter.line) if run.ranks.leads else nullcontext() as log:
        while True:
            if watch is not None:
                watch(run)
            at_interval = not (progress.step % run.validate_every and progress.step % run.save_every)
            over = limit_reached(options, progress, minutes, epoch_over=upcoming is None)
            if at_interval or over or upcoming is None or progress.step >= read_at:
                read_steps(run, unread, log, reporter)
                before = minutes
                asked, minutes = run.ranks.all_reduce_max(stop() or 0, run.minutes())
                if unread:
                    ahead = steps_to_leave_unread(run, len(unread), minutes - before)
                read_at = progress.step + ahead
                unread.clear()
                signal_number = int(asked)
                ended_by = limit_reached(options, progress, minutes, epoch_over=upcoming is None)
                at_validation = ended_by or progress.step % run.validate_every == 0
                if at_validation and progress.validated_step < progress.step and not signal_number:
                    if saved == (0, 0):  # a model needs a checkpoint, even if its validation fails
                        saved = _save(run, log)
                    validate_and_keep(run, stop, log, reporter)
                    continue
                if signal_number:
                    reporter.line("stopping: saving what was done; again to stop at once, unsaved")
                at_saving = signal_number or ended_by or progress.step % run.save_every == 0
                if at_saving and saved != (progress.step, progress.validated_step):
                    saved = _save(run, log)
                if signal_number:
                    raise Interrupted(signal_number)
                if ended_by:
                    reporter.line(f"ended by {ended_by}")
                    return progress
                if upcoming is None:
                    progress.epoch, progress.step_in_epoch = progress.epoch + 1, 0
                    steps = run.train.plan.steps(progress.epoch)
                    upcoming = next(steps)
            unread.append(take_step(run, upcoming))
            upcoming = next(steps, None)


class TakenStep(NamedTuple):
    """A step whose result wasn't read."""

    step: int
    place: str
    """Its epoch and batch, for a message."""
    began: float
    rate: float
    result: StepResult
    divisor: int
    target_tokens: int


def take_step(run: Run, micro_batches: list[MicroBatch]) -> TakenStep:
    """Makes an optimizer step. Raises UserError if memory runs out."""
    began = time.monotonic()
    progress, options, config = run.progress, run.recipe.training, run.model.config
    step, place = progress.step + 1, f"epoch {progress.epoch + 1}, batch {progress.step_in_epoch + 1}"
    rate = rate_of_step(step, options, config.d_model, run.last_step)
    with naming_batch(run.train, micro_batches):
        given = run.objective.step(micro_batches, step, run.ranks)
        result = train_step(
            run.ddp_loss,
            run.optimizers,
            given.batches,
            divisor=given.divisor / run.ranks.count,
            rate=rate,
            max_gradient_norm=options.max_gradient_norm,
            dtype=run.dtype,
            all_reduce_sum=run.ranks.all_reduce_sum,
            scaler=run.scaler,
        )
        if run.average is not None:
            run.average.update(step)
    progress.step, progress.step_in_epoch = step, progress.step_in_epoch + 1
    if progress.flops is not None:
        progress.flops += given.work + work_of_update(config, options.optimizer)
    progress.minutes = run.minutes()
    return TakenStep(step, place, began, rate, result, given.divisor, run.train.target_tokens(micro_batches))


def read_steps(run: Run, taken: Sequence[TakenStep], log: RunLog | None, reporter: Reporter) -> None:
    """Waits for the results of these steps, and logs them. Raises UserError if a number is not finite."""
    if not taken:
        return
    options, progress = run.recipe.training, run.progress
    found = iter(torch.cat([part.view(-1) for one in taken for part in one.result]).tolist())
    seconds = (time.monotonic() - taken[0].began) / len(taken)
    speed = sum(one.target_tokens for one in taken) / len(taken) / seconds
    smoothed = "smoothed " if options.label_smoothing and not options.risk_samples else ""  # a validation's loss isn't
    for one in taken:
        loss, norm = sum(next(found) for _ in one.result.losses) / one.divisor, next(found)
        run.skipped = 0 if math.isfinite(norm) else run.skipped + 1
        may_skip = run.scaler is not None and run.skipped <= MOST_SKIPPED
        for name, is_bad in (("the loss", not math.isfinite(loss)), ("a gradient", run.skipped and not may_skip)):
            if is_bad:
                raise UserError(
                    f"step {one.step}, {one.place}: {name} is not finite; nothing of it was used or saved. Begin a new "
                    "run with a lower training.learning_rate, or training.precision: fp32"
                )
        if log is not None:
            figures = {
                "loss": loss,
                "gradient_norm": None if run.skipped else round(norm, 4),
                "learning_rate": one.rate,
                "tokens_per_second": round(speed),
                "seconds": round(seconds, 4),
            }
            log.write({"step": one.step, "epoch": progress.epoch + 1, **figures})
        left = share_done_and_minutes_left(options, progress, run.last_step)
        reporter.step(one.step, f"{smoothed}loss {loss:.3f}", speed, *left)


def steps_to_leave_unread(run: Run, steps: int, minutes: float) -> int:
    """The number of steps before results are read again, the same on all ranks. steps, minutes: since the last time."""
    if run.train.device.type == "cpu":
        return 1
    return max(1, min(MOST_UNREAD, int(SECONDS_UNREAD * steps / max(60 * minutes, 1e-9))))


def validate_and_keep(run: Run, stop: StopRequests, log: RunLog | None, reporter: Reporter) -> None:
    """Validates and saves the model, with averaged weights if it has them. A stop request leaves that for later."""
    check_fit_to_keep(run)
    began, progress = time.monotonic(), run.progress
    with run.finished_model():
        stored = stored_model(run)
        try:
            with stop.interruptible():
                loss, scores = validate(run, stored)
        except Interrupted:
            return
        if not math.isfinite(loss):
            raise UserError(
                f"step {progress.step}: the validation loss is not finite; begin a new run with a lower "
                "training.learning_rate, or with training.precision: fp32"
            )
        better, bleu = keep_model(run, stored, loss, scores), scores.bleu
        if log is not None:
            work = {} if progress.flops is None else {"petaflop": round(progress.flops / 1e15, 6)}
            seconds = round(time.monotonic() - began, 4)
            figures = {"valid_loss": loss, "valid_bleu": round(bleu, 2), **work, "seconds": seconds}
            log.write({"step": progress.step, **figures})
        reporter.line(
            f"step {progress.step:,}  epoch {progress.epoch + 1}  valid loss {loss:.3f}  BLEU {bleu:.2f}"
            f"{'  best' if better else ''}  {run.minutes():.1f} min"
        )


def _save(run: Run, log: RunLog | None) -> tuple[int, int]:
    """Saves the run after its log. Returns its step and its last validated step."""
    if log is not None:
        log.sync()
    save_run(run)
    return run.progress.step, run.progress.validated_step
