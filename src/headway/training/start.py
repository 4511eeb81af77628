"""Opens a run, a new one or at its last checkpoint. A new run has random weights, or the weights and the tokenizers of
an existing model, whose training then counts as work of this run, too."""

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import torch
from torch.amp.grad_scaler import GradScaler

from headway.data.prepare import Notice, Show, prepare, tell_changes
from headway.data.prepared import PreparedData, read_prepared_for
from headway.devices import emulates_bf16, keep_large_allocations, keep_matrix_kernels, pick_device, training_dtype
from headway.errors import UserError
from headway.evaluation import bootstrap_seed
from headway.model import Transformer
from headway.model.config import IMPOSSIBLE
from headway.model.transformer import own_core
from headway.recipe.inherited import MAY_BE_FEWER, mismatches, tokenizer_section
from headway.recipe.recipe import Recipe
from headway.recipe.sizes import count
from headway.storage import ModelInfo, StoredModel, read_model
from headway.storage.model_directory import model_fingerprint, model_info, stage_of
from headway.storage.steps import step_folders
from headway.storage.stored_model import to_torch
from headway.text.subwords import Tokenizer
from headway.text.tokenizer import BOS_ID, EOS_ID, UNK_ID, language_tag
from headway.training.adapters import add_adapter, need_peft
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
from headway.training.optim import make_optimizers, trained_weights
from headway.training.ranks import SingleProcess
from headway.training.run import Run, loss_class, rate_jumps
from headway.training.run_directory import RunStage, check_same_run, open_run, remove_if_refused, write_recipe
from headway.training.saving import remove_models_after, write_best
from headway.training.synthetic import check_synthetic, write_synthetic


def start(
    recipe: Recipe,
    folder: Path,
    notice: Notice,
    ranks: SingleProcess,
    show: Show | None = None,
    earlier: Sequence[RunStage] | None = None,
) -> Run:
    """The run in the folder, ready for its next step. show: is told the progress of preparing data. earlier: the stages
    before this one, if it is a stage. Raises UserError for what the user can mend, and LeadFailed."""
    options = recipe.training
    device = torch.device(pick_device(options.device))
    dtype = training_dtype(options.precision, device)
    _prepare_process(device)
    with ranks.lead_first():
        checkpoint = open_run(folder, notice) if ranks.leads else last_checkpoint(folder / "checkpoints", notice)
        identity = folder.stat()
        state = read_state(checkpoint) if checkpoint is not None else None
        if state is not None:
            check_same_run(state, recipe, conditions(device, dtype, ranks.count), notice)
        if ranks.leads:
            write_recipe(folder, recipe)
        with remove_if_refused(folder) if ranks.leads else nullcontext():
            _check_own_classes(recipe)  # before data are prepared for hours
            base = base_of(recipe, state)
            initial = load_initial_model(recipe, notice) if state is None or base else None
            data = _data(recipe, folder, notice, initial, state, show)
        if ranks.leads and (state is not None or recipe.data.prepared is not None):
            tell_changes(recipe.data, recipe.data.prepared or folder / "data", notice)
    model = _new_model(recipe, data, initial, dtype).to(device)
    optimizers = make_optimizers(model, options.optimizer, options.adam_beta2, dtype)
    average = MovingAverage(model, options.ema_decay) if options.ema_decay else None
    scaler = GradScaler(device.type) if dtype == torch.float16 else None
    parameters = f"{count(model.parameters()):,} parameters"
    parameters += f", {count(trained_weights(model).values()):,} of them trained" if base else ""
    together = f", {ranks.count} processes" if ranks.count > 1 else ""
    notice(f"model: {parameters}, {device}, {str(dtype).removeprefix('torch.')}{together}")
    if emulates_bf16(device, dtype):
        notice(
            "warning: this device has no bf16 and emulates it slowly; use training.precision: auto, which is fp16 here"
        )
    if checkpoint is not None and state is not None:
        progress = state.progress
        if scaler and state.scaler:
            scaler.load_state_dict(state.scaler)
        load_checkpoint(checkpoint, model, optimizers, average, ranks.number)
        if ranks.leads:
            write_best(folder, progress, options.best_by, earlier)
            remove_models_after(folder, progress.step)
        notice(f"resuming after step {progress.step:,}")
    else:
        progress = Progress(flops=inherited_flops(recipe, earlier or []))
        if earlier:
            last = step_folders(earlier[-1].folder / "checkpoints")[-1]
            progress.minutes_before = read_state(last).progress.all_minutes
        seed_rank(ranks.number)
    run = Run(folder, identity, recipe, dtype, data, model, optimizers, average, progress, scaler, ranks, earlier, base)
    if state is not None and rate_jumps(state.recipe, options, run.steps_per_epoch, progress.step):
        notice("notice: the last step of the run is another one now, so the learning rate jumps")
    if run.last_step is not None and run.last_step <= options.warmup_steps:
        notice(
            f"notice: the run ends after {run.last_step} steps, within the warm-up of the learning rate "
            f"(training.warmup_steps={options.warmup_steps})"
        )
    return run


def _check_own_classes(recipe: Recipe) -> None:
    """Raises UserError if `training.loss` or `model.core` names none."""
    loss_class(recipe.training.loss)
    own_core(recipe.transformer_config())


def _prepare_process(device: torch.device) -> None:
    bootstrap_seed()  # which the end of the run needs
    if device.index is not None:  # such as cuda:1
        torch.cuda.set_device(device)  # a checkpoint takes the generator of the current device
    keep_large_allocations(device)
    keep_matrix_kernels(device)


def _data(
    recipe: Recipe,
    run: Path,
    notice: Notice,
    initial: ModelInfo | None,
    state: State | None,
    show: Show | None,
) -> PreparedData:
    """The data of a run, from `data.prepared` or from its own folder, where it is prepared if it is missing, with the
    vocabulary of the initial model or of the run's last model. Raises UserError."""
    prepared, own, expected = recipe.data.prepared, run / "data", state and state.data
    if state is not None and prepared is None and not own.exists() and (models := step_folders(run / "models")):
        initial = read_model(models[-1])
    tokenizers = (initial.source_tokenizer, initial.target_tokenizer) if initial else None
    options, cores = recipe.preparation(recipe.transformer_config().max_length), torch.get_num_threads()
    if prepared is None:
        return prepare(options, own, notice, write_synthetic, tokenizers, expected, processes=cores, show=show)
    if state is None:
        check_synthetic(recipe.data, prepared)
    return read_prepared_for(options, prepared, tokenizers, expected)


def _new_model(recipe: Recipe, data: PreparedData, initial: StoredModel | None, dtype: torch.dtype) -> Transformer:
    """A model for the data's vocabularies, with random weights or those of the first layers of `initial`, and perhaps
    an adapter. dtype: of products."""
    options = recipe.training
    torch.manual_seed(options.seed)
    sizes = data.source_tokenizer.vocab_size, data.target_tokenizer.vocab_size
    config = replace(recipe.transformer_config(sizes), bos_id=_bos_id(data.source_tokenizer))
    model = Transformer(config, own_core(config))
    if initial:
        weights = initial.model.state_dict()
        model.load_state_dict({name: weights[name] for name in model.state_dict()})
    if options.adapter:
        add_adapter(model, options.adapter.rank, dtype)
    return model


def load_initial_model(recipe: Recipe, notice: Notice = lambda _: None) -> StoredModel | None:
    """The model of `training.init_from`, if the recipe has one, with all of its layers. Raises UserError if the recipe
    asks for another kind of model, or for more layers."""
    path, config = recipe.training.init_from, recipe.transformer_config()
    if path is None:
        return None
    directory = read_model(path)
    stored = _trainable(to_torch(replace(directory, core=directory.config.core and config.core)))
    tokenizer = tokenizer_section(stored)
    del tokenizer["vocab_size"]
    if differing := mismatches(config.to_dict(), recipe.tokenizer, stored.model.config.to_dict(), tokenizer):
        raise UserError(f"{path}: can't start this run: {', '.join(differing)}")
    tokenizer = stored.source_tokenizer
    tags = {*recipe.data.tags, recipe.measured_tag or ""} - {""}
    if missing := [tag for tag in tags if not tokenizer.split_tag(language_tag(tag))[0]]:
        raise UserError(f"{path}: has no tag for the target language {min(missing)}")
    if tokenizer.many_sources and not recipe.data.tags:
        example = stored.example_tag.strip("<>")
        raise UserError(f"{path}: each corpus needs a tag with both of its languages, such as data.train.tag={example}")
    if tokenizer.many_sources and recipe.training.risk_samples:
        raise UserError(f"{path}: training.risk_samples doesn't work for models with language tokens")
    for name in MAY_BE_FEWER:
        wanted, found = getattr(config, name), getattr(stored.model.config, name)
        if wanted != found:
            notice(f"notice: {path}: {name.replace('_', ' ')} 1 to {wanted} of its {found} are taken")
    return stored


def base_of(recipe: Recipe, state: State | None) -> dict[str, str]:
    """The fingerprint of the model below the run's adapter, if it has one, as a part of `State.made_with`. Raises
    UserError if it isn't the one of the checkpoint, or if peft isn't installed."""
    path = recipe.training.init_from
    if path is None or not recipe.training.adapter:
        return {}
    need_peft()
    base = {"base": model_fingerprint(path)}
    if state is not None and state.made_with.get("base") != base["base"]:
        raise UserError(f"{path}: is another model than when the run began, whose adapter fits only that one")
    return base


def _trainable(stored: StoredModel) -> StoredModel:
    """The model, changed to what training needs. A decoder that starts with another symbol, as Marian's do with <pad>,
    starts with <sos>, which gets that symbol's embedding, unless it is the one of `_bos_id`. Pieces that an imported
    model can't generate, because its vocabulary lacks them, get the row of <unk> and its probability."""
    model, bos_id = stored.model, _bos_id(stored.source_tokenizer)
    with torch.no_grad():
        model.target_embedding.weight[bos_id] = model.target_embedding.weight[model.config.bos_id]
        if (bias := model.output.bias) is not None:
            impossible = bias < IMPOSSIBLE / 2
            impossible[BOS_ID] = False
            bias[impossible] = bias[UNK_ID]
    model.config = replace(model.config, bos_id=bos_id)
    return stored


def _bos_id(tokenizer: Tokenizer) -> int:
    """The start symbol in training. M2M-100, NLLB and mBART-50 start with <eos>, then comes the language's token."""
    return EOS_ID if tokenizer.many_sources else BOS_ID


def inherited_flops(recipe: Recipe, earlier: Sequence[RunStage] = ()) -> float | None:
    """FLOPs that training the other models has taken: the one that the run starts from, those that translated its text,
    and the earlier stages. None if unknown, or if a model is gone.

    Equal models count once. Two that start from the same third one, but aren't stages of one run, both count it.
    Translating isn't counted.
    """
    before = {path for stage in earlier for path in (stage.folder, *_made_with(stage.recipe))}
    paths = [*(path for path in _made_with(recipe) if path not in before), *(stage.folder for stage in earlier[-1:])]
    if not all(path.exists() for path in paths):
        return None
    work = {model_fingerprint(path): _flops_of(path) for path in paths}.values()
    return None if None in work else sum(filter(None, work))


def _made_with(recipe: Recipe) -> list[Path]:
    start = recipe.training.init_from
    return [*(synthesis.writer for synthesis in recipe.data.syntheses), *([start] if start else [])]


def _flops_of(path: Path) -> float | None:
    """FLOPs of a run's last checkpoint, which include the steps after its best model, or those that a model states."""
    for checkpoint in reversed(step_folders(stage_of(path) / "checkpoints")):
        with suppress(UserError):
            return read_state(checkpoint).progress.flops
    return model_info(path)["training_flops"]
