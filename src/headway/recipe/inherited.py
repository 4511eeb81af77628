"""The values of a recipe that come from the model it starts from, where the recipe leaves them open."""

from pathlib import Path
from typing import Any

from headway.data.options import TokenizerSection
from headway.decoding.options import DefaultOptions
from headway.recipe.recipe import MODEL_KEYS
from headway.storage import ModelInfo, read_model
from headway.text.words import WordTokenizer

FREE_TO_CHANGE = ("core", "dropout", "attention_dropout", "feedforward_dropout")
"""Fields in which a model may differ from the one it starts from."""
MAY_BE_FEWER = ("encoder_layers", "decoder_layers")
"""Fields that may be smaller than in the model to start from, whose first layers are taken."""
UNKNOWN_LANGUAGES = ("und", "source", "target")


def initial_sections(path: Path) -> dict[str, dict[str, Any]]:
    """The values of a recipe's sections that describe the model at `path`. Raises UserError."""
    stored = read_model(path)
    config = stored.config.to_dict()
    languages = {"source_language": stored.source_language, "target_language": stored.target_language}
    return {
        "data": {key: language for key, language in languages.items() if language not in UNKNOWN_LANGUAGES},
        "decoding": {key: value for key, value in stored.decoding.items() if key in DefaultOptions.model_fields},
        "model": {name: value for name, value in config.items() if name in MODEL_KEYS and name != "core"},
        "tokenizer": tokenizer_section(stored),
    }


def tokenizer_section(stored: ModelInfo) -> dict[str, Any]:
    """The values of the section `tokenizer` that describe a model's tokenizers."""
    source, target = stored.source_tokenizer, stored.target_tokenizer
    section = {
        "kind": source.kind,
        "vocab_size": max(source.vocab_size, target.vocab_size),
        "joint": source.vocabulary == target.vocabulary,  # Marian's have two sentencepiece models of one vocabulary
    }
    return {**section, "lowercase": source.lowercase} if isinstance(source, WordTokenizer) else section


def mismatches(
    asked: dict[str, Any], asked_tokenizer: TokenizerSection, has: dict[str, Any], has_tokenizer: dict[str, Any]
) -> list[str]:
    """Impossible differences between a recipe and the model to start from: fields of models, keys of tokenizers."""
    fewer = [name for name in MAY_BE_FEWER if asked[name] < has[name]]
    free = ("preset", "source_vocab_size", "target_vocab_size", "bos_id", *FREE_TO_CHANGE, *fewer)
    values = [(f"model.{name}", has.get(name), asked.get(name)) for name in {**has, **asked} if name not in free]
    values += [(f"its tokenizer.{name}", had, getattr(asked_tokenizer, name)) for name, had in has_tokenizer.items()]
    return [f"{key} is {had}, the recipe has {wanted}" for key, had, wanted in values if had != wanted]
