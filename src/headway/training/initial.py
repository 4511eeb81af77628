"""Starting a run from a model that is there already: its weights and its tokenizers, and nothing else of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headway.errors import UserError
from headway.model import ModelConfig
from headway.storage import StoredModel, load_model
from headway.text.words import WordTokenizer
from headway.training.recipe import DECIDED_BY_TOKENIZER, Recipe

FREE_TO_CHANGE = ("dropout", "attention_dropout", "feedforward_dropout")
"""What a model may have otherwise than the one it starts from."""


def initial_sections(path: Path) -> dict[str, dict[str, Any]]:
    """The recipe's sections `model` and `tokenizer` as they describe the model at `path`. Raises UserError."""
    stored = load_model(path)
    config = stored.model.config.to_dict()
    return {
        "model": {name: value for name, value in config.items() if name not in DECIDED_BY_TOKENIZER},
        "tokenizer": tokenizer_section(stored),
    }


def tokenizer_section(stored: StoredModel) -> dict[str, Any]:
    """The recipe's section `tokenizer` as it describes a model's."""
    source, target = stored.source_tokenizer, stored.target_tokenizer
    section = {"kind": source.kind, "vocab_size": max(source.vocab_size, target.vocab_size), "joint": source is target}
    return {**section, "lowercase": source.lowercase} if isinstance(source, WordTokenizer) else section


def load_initial_model(recipe: Recipe, config: ModelConfig) -> StoredModel | None:
    """The model of `training.init_from`, if there is one. `config` is the recipe's own, vocabulary sizes aside.
    Raises UserError with the reason where the recipe asks for another kind of model."""
    if recipe.training.init_from is None:
        return None
    stored = load_model(recipe.training.init_from)
    wanted, found = config.to_dict(), stored.model.config.to_dict()
    sizes = ("source_vocab_size", "target_vocab_size")
    differing = [name for name in wanted if wanted[name] != found[name] and name not in (*sizes, *FREE_TO_CHANGE)]
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
