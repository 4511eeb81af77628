"""Opening a run: a new one from its recipe, one that goes on from its last checkpoint."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import torch

from headway.data.prepare import Notice, Show, prepare, tell_changes
from headway.data.prepared import PreparedData, read_prepared_for
from headway.devices import keep_large_allocations, keep_matrix_kernels, pick_device, training_dtype
from headway.model import ModelConfig
from headway.recipe.recipe import Recipe
from headway.storage import StoredModel, load_model
from headway.storage.steps import step_folders
from headway.training.averaging import MovingAverage
from headway.training.checkpoint import (
    Progress,
    State,
    conditions,
    last_checkpoint,
    load_checkpoint,
    read_state,
    seed_rank,
)
from headway.training.initial import differences, load_initial_model, make_model, work_before
from headway.training.loss import TranslationLoss
from headway.training.minimum_risk import RiskSampler
from headway.training.optim import make_optimizers
from headway.training.ranks import Alone
from headway.training.reporter import check_tensorboard
from headway.training.run import Run, rate_jumps, take_back_models, tokenization_of, write_best
from headway.training.run_directory import RunStage, check_same_run, open_run, removed_where_refused, write_recipe
from headway.training.step import Batches, TeacherForcing
from headway.training.synthetic import check_synthetic, write_synthetic


def start(
    recipe: Recipe,
    folder: Path,
    notice: Notice,
    ranks: Alone,
    show: Show | None = None,
    earlier: Sequence[RunStage] | None = None,
) -> Run:
    """The run in the folder, ready for its next step. show: is told how the preparing of data comes on, where it is
    needed. earlier: the stages before this one, where it is one. Raises UserError for what the user can mend, and
    LeadFailed."""
    options = recipe.training
    device = torch.device(pick_device(options.device))
    dtype = training_dtype(options.precision, device)
    keep_large_allocations(device)
    keep_matrix_kernels(device)
    if options.tensorboard:
        check_tensorboard()
    with ranks.lead_first():
        checkpoint = open_run(folder, notice) if ranks.leads else last_checkpoint(folder / "checkpoints", notice)
        identity = folder.stat()
        state = read_state(checkpoint) if checkpoint is not None else None
        if state is not None:
            check_same_run(state, recipe, conditions(device, dtype, ranks.count), notice)
        if ranks.leads:
            write_recipe(folder, recipe)
        config = ModelConfig.preset(**recipe.model_options(), source_vocab_size=4, target_vocab_size=4)
        with removed_where_refused(folder) if ranks.leads else nullcontext():
            initial = load_initial_model(recipe, config) if state is None else None
            for difference in differences(recipe, config, initial) if initial else ():
                notice(difference)
            data = data_of_run(recipe, folder, config.max_length, notice, initial, state, show)
        if ranks.leads and (state is not None or recipe.data.prepared is not None):
            tell_changes(recipe.data, recipe.data.prepared or folder / "data", notice)
    model = make_model(config, data.source_tokenizer, data.target_tokenizer, initial, options.seed).to(device)
    loss_of = TranslationLoss(model, options.label_smoothing)
    optimizers = make_optimizers(model, options.optimizer, options.adam_beta2, dtype)
    average = MovingAverage(model, options.ema_decay) if options.ema_decay else None
    parameters = sum(parameter.numel() for parameter in model.parameters())
    together = f", {ranks.count} processes" if ranks.count > 1 else ""
    notice(f"model: {parameters:,} parameters, {device}, {str(dtype).removeprefix('torch.')}{together}")
    progress = state.progress if state is not None else progress_before(recipe, earlier or [])
    if checkpoint is not None:
        load_checkpoint(checkpoint, model, optimizers, average, ranks.number)
        if ranks.leads:
            write_best(folder, progress, options.best_by, earlier)
            take_back_models(folder, progress.step)
        notice(f"resuming after step {progress.step:,}")
    else:
        seed_rank(ranks.number)
    budget, shares = options.micro_batch_budget, recipe.data.shares_of(data.train.sizes)
    train = Batches(data.train, device, options.tokens_per_batch, budget, options.seed, shares)
    objective = TeacherForcing(train, model.config)
    if options.risk_samples:
        objective = RiskSampler(
            model=model,
            tokenizer=data.target_tokenizer,
            train=train,
            tokenize=tokenization_of(recipe),
            count=options.risk_samples,
            seed=options.seed,
            dtype=dtype,
        )
    run = Run(
        folder=folder,
        identity=identity,
        recipe=recipe,
        dtype=dtype,
        data=data,
        train=train,
        valid=Batches(data.valid, device, budget, budget),
        objective=objective,
        model=model,
        loss_of=loss_of,
        exchanging=ranks.exchanging(loss_of),
        optimizers=optimizers,
        average=average,
        progress=progress,
        ranks=ranks,
        earlier=earlier,
    )
    if state is not None and rate_jumps(state.recipe, options, run.steps_per_epoch, progress.step):
        notice("notice: the last step of the run is another one now, so the learning rate jumps")
    if run.last_step is not None and run.last_step <= options.warmup_steps:
        notice(
            f"notice: the run ends after {run.last_step} steps, within the warm-up of the learning rate "
            f"(training.warmup_steps={options.warmup_steps})"
        )
    return run


def data_of_run(
    recipe: Recipe,
    run: Path,
    max_length: int,
    notice: Notice,
    initial: StoredModel | None,
    state: State | None,
    show: Show | None,
) -> PreparedData:
    """The data that a run reads, from `data.prepared` or from its own folder, which is made where it is missing: with
    the vocabulary of the model that the run starts from, if there is one, or has come to already. Raises UserError."""
    prepared, expected = recipe.data.prepared, state and state.data
    models, options = step_folders(run / "models"), recipe.preparation(max_length)
    if state is not None and prepared is None and models and not (run / "data").exists():
        initial = load_model(models[-1])
    tokenizers = (initial.source_tokenizer, initial.target_tokenizer) if initial else None
    if prepared is None:
        cores, folder = torch.get_num_threads(), run / "data"
        return prepare(options, folder, notice, write_synthetic, tokenizers, expected, processes=cores, show=show)
    if state is None:
        check_synthetic(recipe.data, prepared)
    return read_prepared_for(options, prepared, tokenizers, expected)


def progress_before(recipe: Recipe, earlier: Sequence[RunStage]) -> Progress:
    """Where a run stands before its first step, after earlier stages where it has any."""
    minutes = read_state(step_folders(earlier[-1].folder / "checkpoints")[-1]).progress.all_minutes if earlier else 0.0
    return Progress(minutes_before=minutes, flops=work_before(recipe, [(one.folder, one.recipe) for one in earlier]))
