"""A directory of Hugging Face, anybody's, as a model of ours. Nothing of it is run, and the package isn't needed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from headway.decoding import SearchOptions
from headway.errors import UserError
from headway.interop.huggingface.names import (
    BIAS,
    CARD_FILE,
    CONFIG_FILE,
    GENERATION_FILE,
    LENGTH_PENALTY_FACTOR,
    OUTPUT,
    POSITIONS,
    SAME_FIELDS,
    SHARED,
    SOURCE,
    TARGET,
    TOKENIZER_FILE,
    VOCABULARY_FILES,
    WEIGHTS_FILE,
    embedding_matrices,
    layer_weights,
    sines_first,
)
from headway.model import ModelConfig, Transformer
from headway.model.config import IMPOSSIBLE, Activation
from headway.model.positions import sinusoidal_table
from headway.storage import StoredModel, save_model
from headway.storage.stored_model import load_named_weights
from headway.storage.tensors import TensorKind, load_tensors, read_header
from headway.storage.untrusted import clipped, parse_json, read_json, read_plain
from headway.text.sentencepiece_model import renumbered, text_pieces
from headway.text.subwords import SubwordTokenizer
from headway.text.tokenizer import BOS_ID, CONTROL_PIECES, EOS_ID, PAD_ID, UNK_ID, is_tag

MARIAN_DEFAULTS = {
    "vocab_size": 58101,
    "d_model": 1024,
    "encoder_layers": 12,
    "decoder_layers": 12,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "max_position_embeddings": 1024,
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "activation_function": "gelu",
    "scale_embedding": False,
    "share_encoder_decoder_embeddings": True,
    "tie_word_embeddings": True,
    "pad_token_id": 58100,
    "eos_token_id": 0,
    "decoder_start_token_id": 58100,
}
DEFAULTS = {
    "marian": MARIAN_DEFAULTS,
    "pegasus": {
        **MARIAN_DEFAULTS,
        "vocab_size": 50265,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "decoder_start_token_id": 0,
    },
}
"""What a config.json means where it says nothing."""
ACTIVATIONS: dict[str, Activation] = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
"""By their names."""
SINUSOID_TOLERANCE = 1e-2
"""How far stored sinusoids may be from the paper's: they may be bf16."""
_DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
_SPECIAL_TOKENS = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"}
"""Of MarianTokenizer, with its defaults."""


def read_huggingface(folder: Path) -> StoredModel:
    """The model in a Hugging Face directory, which may be anybody's: Marian's, or one that `export_huggingface` wrote.
    Nothing of it is run. Raises UserError."""
    theirs = _read_their_config(folder)
    options = _read_optional(folder / TOKENIZER_FILE)
    source, target = _read_sides(folder, theirs, options)
    kinds = _read_weight_kinds(folder)
    config = _our_config(theirs, source, target, "final_logits_bias" in kinds or bool(target.invented), folder)
    weights = _read_weights(folder / WEIGHTS_FILE, kinds, config, theirs)
    model = Transformer(config)
    load_named_weights(model, _our_weights(model, weights, source, target), str(folder / WEIGHTS_FILE))
    languages = [str(options.get(f"{side}_lang") or "und") for side in ("source", "target")]
    return StoredModel(
        model=model.eval(),
        source_tokenizer=source.tokenizer,
        target_tokenizer=target.tokenizer,
        source_language=languages[0],
        target_language=languages[1],
        decoding=_our_decoding({**theirs, **_read_optional(folder / GENERATION_FILE)}, config),
        card=_imported_card(folder, *languages),
    )


def import_huggingface(folder: Path, output: Path) -> None:
    """Writes a Hugging Face Marian directory as a model directory of ours. Raises UserError."""
    save_model(output, read_huggingface(folder))


class _Side(NamedTuple):
    """A tokenizer of ours, made of one of theirs."""

    tokenizer: SubwordTokenizer
    rows: list[int]
    """For each id of ours the id of theirs whose embedding it has."""
    invented: list[int]
    """Ids of ours that their vocabulary has not."""


class _Controls(NamedTuple):
    """Their ids of our control symbols."""

    pad: int
    unk: int
    sos: int | None
    """None where they have no such symbol: decoding starts at another one, or the side is the source."""
    eos: int


def _read_their_config(folder: Path) -> dict[str, Any]:
    file = folder / CONFIG_FILE
    document = read_json(file)
    kind = document.get("model_type")
    if not isinstance(kind, str) or kind not in DEFAULTS:
        raise UserError(
            f"{file}: is of model_type {clipped(repr(kind))}; what can be imported is {' and '.join(DEFAULTS)}"
        )
    theirs = {**DEFAULTS[kind], **document}
    if not theirs.get("decoder_vocab_size") or theirs["share_encoder_decoder_embeddings"]:
        theirs["decoder_vocab_size"] = theirs["vocab_size"]
    numbers = ("vocab_size", "decoder_vocab_size", "pad_token_id", "eos_token_id", "decoder_start_token_id")
    for name in numbers:
        if type(theirs[name]) is not int:
            raise UserError(f"{file}: {name} is {clipped(repr(theirs[name]))}, it should be one number")
    activation = theirs["activation_function"]
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise UserError(
            f"{file}: activation_function {clipped(repr(activation))} is none of ours: {', '.join(ACTIVATIONS)}"
        )
    if theirs["scale_embedding"] is not True:
        raise UserError(f"{file}: scale_embedding is not true, but our embeddings are scaled by sqrt(d_model)")
    return theirs


def _read_optional(file: Path) -> dict[str, Any]:
    """A JSON file that need not be there."""
    return read_json(file) if os.path.lexists(file) else {}


def _read_sides(folder: Path, theirs: Mapping[str, Any], options: Mapping[str, Any]) -> tuple[_Side, _Side]:
    """The source's and the target's."""
    models = [read_plain(folder / f"{side}.spm") for side in ("source", "target")]
    separate = options.get("separate_vocabs") is True
    files = [folder / VOCABULARY_FILES["source"], folder / VOCABULARY_FILES["target" if separate else "source"]]
    pieces = [
        _read_vocabulary(file, theirs[size])
        for file, size in zip(files, ("vocab_size", "decoder_vocab_size"), strict=True)
    ]
    names = [_token(options, name, default) for name, default in _SPECIAL_TOKENS.items()]
    for file, vocabulary in zip(files, pieces, strict=True):
        for name in names:
            if name not in vocabulary:
                raise UserError(f"{file}: lacks {clipped(repr(name))}, a token that tokenizer_config.json names")
    pad, unk, eos = (pieces[1].index(name) for name in names)
    if (pad, eos) != (theirs["pad_token_id"], theirs["eos_token_id"]):
        raise UserError(
            f"{folder}: pad_token_id and eos_token_id of config.json are not the tokenizer's, {pad} and {eos}"
        )
    start = theirs["decoder_start_token_id"]
    if not 0 <= start < len(pieces[1]):
        raise UserError(f"{folder / CONFIG_FILE}: decoder_start_token_id {start} is not in the vocabulary")
    controls = _Controls(pad, unk, None if start in (pad, eos) else start, eos)
    try:
        if not separate:
            source, target = _renumbered(models, pieces[1], controls)
        else:
            other_pad, other_unk, other_eos = (pieces[0].index(name) for name in names)
            [source] = _renumbered(models[:1], pieces[0], _Controls(other_pad, other_unk, None, other_eos))
            [target] = _renumbered(models[1:], pieces[1], controls)
    except UserError as error:
        raise UserError(f"{folder}: its tokenizer can't be imported: {error}") from None
    if theirs["share_encoder_decoder_embeddings"] and source.rows != target.rows:
        raise UserError(f"{folder}: its vocabularies are separate, but its embeddings are shared")
    return source, target


def _read_vocabulary(file: Path, size: int) -> list[str]:
    """The pieces by id. Raises UserError unless each id below `size` has one."""
    ids = parse_json(read_plain(file), file)
    if not all(type(id_) is int for id_ in ids.values()) or sorted(ids.values()) != list(range(len(ids))):
        raise UserError(f"{file}: its ids are not the numbers from 0 to {len(ids) - 1}")
    if len(ids) != size:
        raise UserError(f"{file}: has {len(ids)} tokens, but the model has {size}")
    try:
        "".join(ids).encode()
    except UnicodeEncodeError:
        raise UserError(f"{file}: holds half of a surrogate pair") from None
    return sorted(ids, key=lambda piece: ids[piece])


def _token(options: Mapping[str, Any], name: str, default: str) -> str:
    """A special token of the tokenizer, which stands there as text, or as an object with its text."""
    token = options.get(name, default)
    return str(token.get("content") if isinstance(token, dict) else token)


def _renumbered(models: Sequence[bytes], pieces: Sequence[str], controls: _Controls) -> list[_Side]:
    """The sides whose sentencepiece models share one vocabulary. Pieces that a model finds in text and their vocabulary
    lacks have the row of <unk>."""
    pad, unk, start, eos = controls
    ids = [id_ for id_ in controls if id_ is not None]
    if len(set(ids)) < len(ids):
        raise UserError("its <unk> is one of its other control symbols")
    ours = (pad, unk, eos) == (PAD_ID, UNK_ID, EOS_ID) and start in (None, BOS_ID)
    if ours and tuple(pieces[: len(CONTROL_PIECES)]) == CONTROL_PIECES:
        sides = [_Side(SubwordTokenizer(model), list(range(len(pieces))), []) for model in models]
        if all(side.tokenizer.vocabulary[len(CONTROL_PIECES) :] == pieces[len(CONTROL_PIECES) :] for side in sides):
            return sides
    others = [id_ for id_ in range(len(pieces)) if id_ not in controls]
    tags = [id_ for id_ in others if is_tag(pieces[id_])]
    rest = [id_ for id_ in others if not is_tag(pieces[id_])]
    known = set(pieces)
    lacking = list(dict.fromkeys(piece for model in models for piece in text_pieces(model) if piece not in known))
    rows = [pad if id_ is None else id_ for id_ in controls] + tags + rest + [unk] * len(lacking)
    symbols = [*CONTROL_PIECES, *(pieces[id_] for id_ in tags)]
    vocabulary = [*(pieces[id_] for id_ in rest), *lacking]
    invented = [*([BOS_ID] if start is None else []), *range(len(pieces) + (start is None), len(rows))]
    return [_Side(SubwordTokenizer(renumbered(model, symbols, vocabulary)), rows, invented) for model in models]


def _our_config(
    theirs: Mapping[str, Any], source: _Side, target: _Side, output_bias: bool, folder: Path
) -> ModelConfig:
    start = {theirs["pad_token_id"]: PAD_ID, theirs["eos_token_id"]: EOS_ID}
    shared, tied = theirs["share_encoder_decoder_embeddings"], theirs["tie_word_embeddings"]
    fields = {ours: theirs[name] for ours, name in SAME_FIELDS.items()}
    heads, d_ff = theirs["decoder_attention_heads"], theirs["decoder_ffn_dim"]
    try:
        return ModelConfig(
            source_vocab_size=source.tokenizer.vocab_size,
            target_vocab_size=target.tokenizer.vocab_size,
            **fields,
            decoder_num_heads=None if heads == fields["num_heads"] else heads,
            decoder_d_ff=None if d_ff == fields["d_ff"] else d_ff,
            activation=ACTIVATIONS[theirs["activation_function"]],
            norm="post" if theirs["model_type"] == "marian" else "pre",
            share_embeddings=("all" if shared else "decoder") if tied else "none",
            output_bias=output_bias,
            bos_id=start.get(theirs["decoder_start_token_id"], BOS_ID),
        )
    except ValueError as error:
        raise UserError(f"{folder / CONFIG_FILE}: {clipped(str(error))}") from None


def _read_weight_kinds(folder: Path) -> dict[str, TensorKind]:
    file = folder / WEIGHTS_FILE
    if not os.path.lexists(file) and os.path.lexists(folder / "pytorch_model.bin"):
        raise UserError(
            f"{folder / 'pytorch_model.bin'}: is a pickle, which runs the code of whoever wrote it; where you trust "
            "it, make model.safetensors of it: MarianMTModel.from_pretrained(DIR).save_pretrained(DIR) of transformers"
        )
    return read_header(file)


def _read_weights(
    file: Path, found: Mapping[str, TensorKind], config: ModelConfig, theirs: Mapping[str, Any]
) -> dict[str, Tensor]:
    """Their weights by their names, in fp32. A matrix of embeddings or output layer is there under all of its names;
    one of them in the file is enough."""
    with torch.device("meta"):
        model = Transformer(config)
    parameters = dict(model.named_parameters())
    shapes = {name: tuple(parameters[mine].shape) for mine, (name, _) in layer_weights(model).items()}
    required = set(shapes)
    matrices = embedding_matrices(theirs["share_encoder_decoder_embeddings"], theirs["tie_word_embeddings"])
    sizes = {SHARED: "vocab_size", SOURCE: "vocab_size", TARGET: "decoder_vocab_size", OUTPUT: "decoder_vocab_size"}
    shapes |= {name: (theirs[sizes[name]], config.d_model) for names in matrices for name in names}
    shapes |= dict.fromkeys(POSITIONS, (config.max_length, config.d_model))
    shapes[BIAS] = (1, theirs["decoder_vocab_size"])
    expected = {}
    for name, kind in found.items():
        if name not in shapes:
            raise UserError(f"{file}: has a weight {clipped(repr(name))}, which such a model has not")
        if kind.dtype not in _DTYPES or kind.shape != shapes[name]:
            raise UserError(f"{file}: {name} is {clipped(str(kind))}, the config wants {shapes[name]}")
        expected[name] = torch.empty(kind.shape, dtype=_DTYPES[kind.dtype], device="meta")
    if lacking := required - found.keys():
        raise UserError(f"{file}: lacks {min(lacking)} (one of {len(lacking)})")
    weights = {name: weight.float() for name, weight in load_tensors(file, expected).items()}
    for name in weights.keys() & set(POSITIONS):
        sinusoids = sinusoidal_table(config.max_length, config.d_model)[:, sines_first(config.d_model)]
        if not torch.allclose(weights[name], sinusoids, rtol=0, atol=SINUSOID_TOLERANCE):
            raise UserError(f"{file}: {name} are not the sinusoids of the paper, only these can be imported")
    for names in matrices:
        copies = [weights[name] for name in names if name in weights]
        if not copies:
            raise UserError(f"{file}: lacks {names[0]}")
        if not all(torch.equal(copies[0], copy) for copy in copies):
            raise UserError(f"{file}: {', '.join(names)} should be one matrix, but they differ")
        weights.update(dict.fromkeys(names, copies[0]))
    return weights


def _our_weights(model: Transformer, theirs: Mapping[str, Tensor], source: _Side, target: _Side) -> dict[str, Tensor]:
    order = sines_first(model.config.d_model).argsort()
    weights = {
        mine: theirs[name] if residual is None else theirs[name].index_select(residual, order)
        for mine, (name, residual) in layer_weights(model).items()
    }
    for mine, name, side in (
        ("source_embedding.weight", SOURCE, source),
        ("target_embedding.weight", TARGET, target),
        ("output.weight", OUTPUT, target),
    ):
        weights[mine] = theirs[name][side.rows][:, order]
    if model.output.bias is not None:
        bias = theirs[BIAS][0] if BIAS in theirs else torch.zeros(len(theirs[OUTPUT]))
        weights["output.bias"] = bias[target.rows]
        weights["output.bias"][target.invented] = IMPOSSIBLE
    return {name: weights[name] for name, _ in model.named_parameters()}


def _our_decoding(theirs: Mapping[str, Any], config: ModelConfig) -> dict[str, Any]:
    """Search options from their generation_config.json, or from config.json, where older versions have them."""
    found = {
        "beam_size": theirs.get("num_beams"),
        "length_penalty": theirs.get("length_penalty"),
        "max_length": theirs.get("max_length"),
        "no_repeat_ngram": theirs.get("no_repeat_ngram_size"),
    }
    options = {name: value for name, value in found.items() if value is not None}
    try:
        SearchOptions(**options)
        if "length_penalty" in options:
            options["length_penalty"] = round(options["length_penalty"] / LENGTH_PENALTY_FACTOR, 6)
        longest = options.pop("max_length", config.max_length)
        if longest < config.max_length:
            options["max_length"] = max(1, longest - 2)  # without the start symbol and <eos>
        SearchOptions(**options)
    except UserError as error:
        raise UserError(f"{GENERATION_FILE}: {clipped(str(error))}") from None
    return options


def _imported_card(folder: Path, source_language: str, target_language: str) -> str:
    file = folder / CARD_FILE
    card = read_plain(file).decode("utf-8", errors="replace") if os.path.lexists(file) else "It came without one.\n"
    return f"""# Translation from {source_language} to {target_language}

Imported by headway from a Hugging Face directory, whose card follows.

{card}"""
