"""Opening a run: a new one from its recipe, one that goes on from its last checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import torch

from headway.devices import keep_large_allocations, keep_matrix_kernels, pick_device, training_dtype
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel, load_model
from headway.storage.steps import step_folders
from headway.text.batches import CorpusShare
from headway.training.averaging import MovingAverage
from headway.training.batches import Batches
from headway.training.checkpoint import (
    Progress,
    State,
    conditions,
    last_checkpoint,
    load_checkpoint,
    read_state,
    seed_rank,
)
from headway.training.earlier_work import work_before
from headway.training.initial import differences, load_initial_model
from headway.training.journal import Show
from headway.training.keeping import take_back_models, write_best
from headway.training.limits import last_step, steps_between_validations
from headway.training.log import check_tensorboard
from headway.training.loss import TranslationLoss
from headway.training.minimum_risk import RiskSampler
from headway.training.optim import make_optimizers
from headway.training.prepare import changes_of_text, prepare
from headway.training.prepared import PreparedData, read_prepared_for
from headway.training.ranks import Alone
from headway.training.recipe import Recipe
from headway.training.recipe_data import DataSection
from headway.training.run import Run
from headway.training.run_directory import open_run, rate_will_jump, refuse_changes, removed_where_refused, write_recipe
from headway.training.synthetic import check_synthetic
from headway.training.validation import tokenization_of

Notice = Callable[[str], None]


def start(recipe: Recipe, folder: Path, notice: Notice, ranks: Alone, show: Show | None = None) -> Run:
    """The run in the folder, ready for its next step. show: is told how the preparing of data comes on, where it is
    needed. Raises UserError for what the user can mend, and LeadFailed."""
    options = recipe.training
    device = pick_device(options.device)
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
            _check_same_run(state, recipe, conditions(device, dtype, ranks.count), notice)
        if ranks.leads:
            write_recipe(folder, recipe)
        config = ModelConfig.preset(**recipe.model_options(), source_vocab_size=4, target_vocab_size=4)
        with removed_where_refused(folder) if ranks.leads else nullcontext():
            initial = load_initial_model(recipe, config) if state is None else None
            for difference in differences(recipe, config, initial) if initial else ():
                notice(difference)
            data = _prepare(recipe, folder, config, initial, state, notice, show)
        if ranks.leads and (state is not None or recipe.data.prepared is not None):
            _tell_changes(changes_of_text(recipe, recipe.data.prepared or folder / "data"), notice)
    model = _make_model(config, data, initial, options.seed).to(device)
    loss_of = TranslationLoss(model, options.label_smoothing)
    optimizers = make_optimizers(model, options.optimizer, options.adam_beta2, dtype)
    average = MovingAverage(model, options.ema_decay) if options.ema_decay else None

    train, valid = _batches(recipe, data, device)
    beginning, parts = train.plan.beginning()
    steps_per_epoch = len(beginning) * parts
    last = last_step(options, steps_per_epoch)
    if last is not None and last <= options.warmup_steps:
        notice(
            f"notice: the run ends after {last} steps, within the warm-up of the learning rate "
            f"(training.warmup_steps={options.warmup_steps})"
        )
    parameters = sum(parameter.numel() for parameter in model.parameters())
    together = f", {ranks.count} processes" if ranks.count > 1 else ""
    notice(f"model: {parameters:,} parameters, {device}, {str(dtype).removeprefix('torch.')}{together}")
    progress = state.progress if state is not None else Progress(flops=work_before(recipe))
    if checkpoint is not None:
        load_checkpoint(checkpoint, model, optimizers, average, ranks.number)
        if ranks.leads:
            write_best(folder, progress, options.best_by)
            take_back_models(folder, progress.step)
        notice(f"resuming after step {progress.step:,}")
    else:
        seed_rank(ranks.number)
    validate_every = steps_between_validations(options, steps_per_epoch)
    return Run(
        folder=folder,
        identity=identity,
        recipe=recipe,
        device=device,
        dtype=dtype,
        data=data,
        train=train,
        valid=valid,
        model=model,
        loss_of=loss_of,
        exchanging=ranks.exchanging(loss_of),
        sampler=_sampler(recipe, data, model, train, dtype) if options.risk_samples else None,
        optimizers=optimizers,
        average=average,
        largest=train.largest_of_run(beginning),
        last_step=last,
        validate_every=validate_every,
        save_every=options.save_every or validate_every,
        progress=progress,
        ranks=ranks,
    )


def _check_same_run(state: State, recipe: Recipe, now: dict[str, str | int], notice: Notice) -> None:
    """Raises UserError for a checkpoint of another run, and says what may make a difference in the last digits. Leaves
    out the rest of an epoch that was planned otherwise. now: the `conditions` of this process."""
    refuse_changes(state.recipe, recipe)
    if rate_will_jump(state.recipe, recipe):
        notice("notice: schedule: cosine ends at the last step, which is another one now, so the learning rate jumps")
    before = state.made_with
    if before.get("plan") != now["plan"]:
        notice("notice: another version of headway began this epoch, with other batches; the rest of it is left out")
        state.progress.epoch += state.progress.step_in_epoch > 0
        state.progress.step_in_epoch = 0
    changed = [name for name in now if name != "plan" and before.get(name) != now[name]]
    if changed:
        changes = ", ".join(f"{name} {before.get(name, 'unknown')} -> {now[name]}" for name in changed)
        notice(f"notice: resuming with {changes}: the last digits will differ")


def _tell_changes(changes: Sequence[str], notice: Notice) -> None:
    """Prints a notice if the text has changed since the run's data were prepared from it."""
    if changes:
        more = f" (and {len(changes) - 1} more like this)" if len(changes) > 1 else ""
        notice(f"notice: {changes[0]}{more}; training and validation use the text as it was prepared")


def _prepare(
    recipe: Recipe,
    folder: Path,
    config: ModelConfig,
    initial: StoredModel | None,
    state: State | None,
    notice: Notice,
    show: Show | None,
) -> PreparedData:
    """With the vocabulary of the model that the run starts from, if there is one, or has come to already."""
    if recipe.data.prepared is not None:
        tokenizers = (initial.source_tokenizer, initial.target_tokenizer) if initial else None
        expected = state.data if state is not None else None
        if state is None:
            check_synthetic(recipe.data, recipe.data.prepared)
        return read_prepared_for(recipe, recipe.data.prepared, config.max_length, tokenizers, expected)
    vocabulary_of = initial or (_last_model(folder) if state is not None else None)
    tokenizers = (vocabulary_of.source_tokenizer, vocabulary_of.target_tokenizer) if vocabulary_of else None
    fingerprint = state.data if state is not None else None
    return prepare(
        recipe,
        folder / "data",
        config.max_length,
        notice,
        tokenizers,
        fingerprint,
        processes=torch.get_num_threads(),
        show=show,
    )


def _last_model(folder: Path) -> StoredModel | None:
    """The last model that the run has kept; its vocabulary is the run's, should the prepared data be gone."""
    models = step_folders(folder / "models")
    return load_model(models[-1]) if models and not (folder / "data").exists() else None


def _make_model(config: ModelConfig, data: PreparedData, initial: StoredModel | None, seed: int) -> Transformer:
    """With the vocabularies of the data, and random weights or those of the first layers of `initial`."""
    torch.manual_seed(seed)
    sizes = {
        "source_vocab_size": data.source_tokenizer.vocab_size,
        "target_vocab_size": data.target_tokenizer.vocab_size,
    }
    model = Transformer(replace(config, **sizes))
    if initial:
        weights = initial.model.state_dict()
        model.load_state_dict({name: weights[name] for name in model.state_dict()})
    return model


def _batches(recipe: Recipe, data: PreparedData, device: torch.device) -> tuple[Batches, Batches]:
    """Of training and of validation, whose steps are single micro-batches."""
    options = recipe.training
    budget = options.micro_batch_budget
    shares = shares_of(recipe.data, data.train.sizes)
    return (
        Batches(data.train, device, options.tokens_per_batch, budget, options.seed, shares),
        Batches(data.valid, device, budget, budget),
    )


def _sampler(recipe: Recipe, data: PreparedData, model: Transformer, train: Batches, dtype: torch.dtype) -> RiskSampler:
    """Of minimum-risk training."""
    return RiskSampler(
        model=model,
        tokenizer=data.target_tokenizer,
        train=train,
        tokenize=tokenization_of(recipe),
        count=recipe.training.risk_samples,
        seed=recipe.training.seed,
        dtype=dtype,
    )


def shares_of(data: DataSection, sizes: Sequence[int]) -> list[CorpusShare]:
    """How often an epoch has the pairs of each corpus, by weights and temperature; sizes: their pairs."""
    weights = [corpus.weight for corpus in data.corpora]
    if data.temperature != 1:
        pairs = [size * weight for size, weight in zip(sizes, weights, strict=True)]
        tempered = [count ** (1 / data.temperature) for count in pairs]
        weights = [share / sum(tempered) * sum(pairs) / size for share, size in zip(tempered, sizes, strict=True)]
    return [CorpusShare(size, weight) for size, weight in zip(sizes, weights, strict=True)]
