"""What a run begins with: a new model, or an existing one with its weights and its tokenizers. Languages and search
options that the recipe doesn't set come from that model, too, and so does the work of training it."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch

from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.model.config import IMPOSSIBLE
from headway.recipe.inherited import MAY_BE_FEWER, mismatches, tokenizer_section
from headway.recipe.recipe import Recipe
from headway.storage import StoredModel, load_model
from headway.storage.model_directory import model_fingerprint, model_info, stage_of
from headway.storage.steps import step_folders
from headway.storage.stored_model import load_named_weights, named_weights
from headway.text.tokenizer import BOS_ID, UNK_ID, Tokenizer
from headway.training.checkpoint import read_state


def load_initial_model(recipe: Recipe, config: ModelConfig) -> StoredModel | None:
    """The model of `training.init_from`, if there is one, with all of its layers. `config` is the recipe's own,
    vocabulary sizes aside. Raises UserError with the reason where the recipe asks for another kind of model, or for
    more layers."""
    if recipe.training.init_from is None:
        return None
    stored = _trainable(load_model(recipe.training.init_from))
    tokenizer = tokenizer_section(stored)
    del tokenizer["vocab_size"]
    if differing := mismatches(config.to_dict(), recipe.tokenizer, stored.model.config.to_dict(), tokenizer):
        raise UserError(f"{recipe.training.init_from}: can't start this run: {', '.join(differing)}")
    if missing := set(recipe.data.tags) - set(stored.source_tokenizer.target_tags):
        raise UserError(f"{recipe.training.init_from}: has no tag for the target language {min(missing)}")
    return stored


def differences(recipe: Recipe, config: ModelConfig, initial: StoredModel) -> list[str]:
    """What to say where the recipe's model is smaller than the one it starts from."""
    layers = [(name, getattr(config, name), getattr(initial.model.config, name)) for name in MAY_BE_FEWER]
    return [
        f"notice: {recipe.training.init_from}: {name.replace('_', ' ')} 1 to {wanted} of its {found} are taken"
        for name, wanted, found in layers
        if wanted != found
    ]


def _trainable(stored: StoredModel) -> StoredModel:
    """The model as training needs it. A decoder that starts at another symbol, as Marian's do at <pad>, starts at
    <sos>, with that one's embedding. Pieces that an imported model could never give, because its vocabulary lacks them,
    have the row of <unk> and become as likely."""
    config = stored.model.config
    model = Transformer(replace(config, bos_id=BOS_ID))
    load_named_weights(model, named_weights(stored.model), "the model to start from")
    with torch.no_grad():
        model.target_embedding.weight[BOS_ID] = model.target_embedding.weight[config.bos_id]
        if (bias := model.output.bias) is not None:
            impossible = bias < IMPOSSIBLE / 2
            impossible[BOS_ID] = False
            bias[impossible] = bias[UNK_ID]
    return replace(stored, model=model.eval())


def make_model(
    config: ModelConfig, source: Tokenizer, target: Tokenizer, initial: StoredModel | None, seed: int
) -> Transformer:
    """With these vocabularies, and random weights or those of the first layers of `initial`."""
    torch.manual_seed(seed)
    model = Transformer(replace(config, source_vocab_size=source.vocab_size, target_vocab_size=target.vocab_size))
    if initial:
        weights = initial.model.state_dict()
        model.load_state_dict({name: weights[name] for name in model.state_dict()})
    return model


def work_before(recipe: Recipe, earlier: Sequence[tuple[Path, Recipe]] = ()) -> float | None:
    """The floating-point operations that training the other models has taken: the one that the run starts from, and
    those that translated its text; for a stage all earlier ones, each once. None where that is unknown, or a model is
    gone. earlier: folders and recipes of these.

    Equal models count once; two that start from the same third one, but aren't stages of one run, both count it.
    Translating isn't training, and isn't counted."""
    before = {path for folder, other in earlier for path in (folder, *made_with(other))}
    paths = [*(path for path in made_with(recipe) if path not in before), *(folder for folder, _ in earlier[-1:])]
    if not all(path.exists() for path in paths):
        return None
    work = {model_fingerprint(path): _work_of(path) for path in paths}
    known = [flops for flops in work.values() if flops is not None]
    return sum(known) if len(known) == len(work) else None


def made_with(recipe: Recipe) -> list[Path]:
    """The models that the recipe's run starts from, and that translate its text."""
    start = recipe.training.init_from
    return [*(synthesis.writer for synthesis in recipe.data.syntheses), *([start] if start else [])]


def _work_of(path: Path) -> float | None:
    """Of a run all steps count, also those after its best model."""
    for checkpoint in reversed(step_folders(stage_of(path) / "checkpoints")):
        with suppress(UserError):
            return read_state(checkpoint).progress.flops
    return model_info(path)["training_flops"]
