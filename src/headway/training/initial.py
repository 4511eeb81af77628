"""Starting a run from an existing model: its weights and its tokenizers. Languages and search options that the recipe
doesn't set come from the model, too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.model.config import IMPOSSIBLE
from headway.storage import StoredModel, load_model
from headway.storage.stored_model import load_named_weights, named_weights
from headway.text.tokenizer import BOS_ID, UNK_ID
from headway.text.words import WordTokenizer
from headway.training.recipe import DECIDED_BY_TOKENIZER, DecodingSection, Recipe

FREE_TO_CHANGE = ("dropout", "attention_dropout", "feedforward_dropout")
"""What a model may have otherwise than the one it starts from."""
MAY_BE_FEWER = ("encoder_layers", "decoder_layers")
"""What may be smaller than in the model to start from; its first layers are taken."""
UNKNOWN_LANGUAGES = ("und", "source", "target")
"""What a model says where nobody has told its language."""


def initial_sections(path: Path) -> dict[str, dict[str, Any]]:
    """The recipe's sections as they describe the model at `path`, as far as they do. Raises UserError."""
    stored = load_model(path)
    config = stored.model.config.to_dict()
    languages = {"source_language": stored.source_language, "target_language": stored.target_language}
    return {
        "data": {key: language for key, language in languages.items() if language not in UNKNOWN_LANGUAGES},
        "decoding": {key: value for key, value in stored.decoding.items() if key in DecodingSection.model_fields},
        "model": {name: value for name, value in config.items() if name not in DECIDED_BY_TOKENIZER},
        "tokenizer": tokenizer_section(stored),
    }


def tokenizer_section(stored: StoredModel) -> dict[str, Any]:
    """The recipe's section `tokenizer` as it describes a model's."""
    source, target = stored.source_tokenizer, stored.target_tokenizer
    section = {
        "kind": source.kind,
        "vocab_size": max(source.vocab_size, target.vocab_size),
        "joint": source.vocabulary == target.vocabulary,  # Marian's have two sentencepiece models of one vocabulary
    }
    return {**section, "lowercase": source.lowercase} if isinstance(source, WordTokenizer) else section


def load_initial_model(recipe: Recipe, config: ModelConfig) -> StoredModel | None:
    """The model of `training.init_from`, if there is one, with all of its layers. `config` is the recipe's own,
    vocabulary sizes aside. Raises UserError with the reason where the recipe asks for another kind of model, or for
    more layers."""
    if recipe.training.init_from is None:
        return None
    stored = _trainable(load_model(recipe.training.init_from))
    wanted, found = config.to_dict(), stored.model.config.to_dict()
    free = ("source_vocab_size", "target_vocab_size", *FREE_TO_CHANGE)
    fewer = [name for name in MAY_BE_FEWER if wanted[name] < found[name]]
    differing = [name for name in wanted if wanted[name] != found[name] and name not in (*free, *fewer)]
    if differing:
        values = ", ".join(f"model.{name} is {found[name]}, the recipe has {wanted[name]}" for name in differing)
        raise UserError(f"{recipe.training.init_from}: can't start this run: {values}")
    for name, value in tokenizer_section(stored).items():
        wanted_value = getattr(recipe.tokenizer, name)
        if name != "vocab_size" and wanted_value != value:
            raise UserError(
                f"{recipe.training.init_from}: can't start this run: its tokenizer.{name} is {value}, "
                f"the recipe has {wanted_value}"
            )
    if missing := set(recipe.data.tags) - set(stored.source_tokenizer.target_tags):
        raise UserError(f"{recipe.training.init_from}: has no tag for the target language {min(missing)}")
    return stored


def differences(recipe: Recipe, config: ModelConfig, initial: StoredModel) -> list[str]:
    """What to say where the recipe's model is smaller than the one it starts from."""
    start, said = recipe.training.init_from, []
    for name in MAY_BE_FEWER:
        wanted, layers = getattr(config, name), getattr(initial.model.config, name)
        if wanted != layers:
            said.append(f"notice: {start}: {name.replace('_', ' ')} 1 to {wanted} of its {layers} are taken")
    return said


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
