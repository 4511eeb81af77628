"""Imports a Hugging Face directory, without running any of its code or needing the package."""

import os
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import safe_open
from torch import Tensor

from headway.decoding.options import SearchOptions, names_in
from headway.errors import UserError
from headway.interop.huggingface import names
from headway.interop.huggingface.multilingual import TOKENIZERS, read_ids, read_vocabulary
from headway.interop.huggingface.names import BIAS, OUTPUT, POSITIONS, SHARED, SOURCE, TARGET
from headway.model import ModelConfig
from headway.model.config import IMPOSSIBLE
from headway.model.positions import sinusoidal_table
from headway.model.shapes import weight_shapes
from headway.storage.model_directory import write_model
from headway.storage.model_info import ModelInfo
from headway.storage.stored_model import check_finite
from headway.storage.tensors import TensorKind, read_header
from headway.storage.untrusted import clipped, read_json, read_plain
from headway.text.domain import LONGEST_DOMAIN
from headway.text.sentencepiece_model import renumbered, text_pieces
from headway.text.subwords import SubwordTokenizer
from headway.text.tokenizer import BOS_ID, CONTROL_PIECES, EOS_ID, PAD_ID, UNK_ID, is_tag

DEFAULTS = {"share_encoder_decoder_embeddings": True, "tie_word_embeddings": True}
"""Fields that an older config.json may lack."""
SINUSOID_TOLERANCE = 1e-2
"""Maximum difference between stored sinusoids and the paper's: they may be bf16."""
_SPECIAL_TOKENS = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"}
"""Defaults of MarianTokenizer."""


def import_huggingface(folder: Path, output: Path) -> None:
    """Writes a Hugging Face directory, Marian's or an export of headway's, trusted or not, as a model directory, in
    little more memory than its weights take. Raises UserError."""
    hf = _read_config(folder)
    options = _read_optional(folder / names.TOKENIZER_FILE)
    weights_file, pickle = folder / names.WEIGHTS_FILE, folder / "pytorch_model.bin"
    if not os.path.lexists(weights_file) and os.path.lexists(pickle):
        raise UserError(
            f"{pickle}: is a pickle, which runs its author's code; if you trust it, make "
            "model.safetensors of it: AutoModelForSeq2SeqLM.from_pretrained(DIR).save_pretrained(DIR) of transformers"
        )
    kinds = read_header(weights_file)
    if hf["vocab_size"] > max((kind.shape[0] for kind in kinds.values() if kind.shape), default=0):
        raise UserError(f"{weights_file}: has no matrix with vocab_size={hf['vocab_size']} rows")
    source, target = _read_sides(folder, hf, options)
    config = _model_config(hf, source, target, BIAS in kinds or bool(target.invented), folder)
    rows = {SHARED: target.rows, SOURCE: source.rows, TARGET: target.rows, OUTPUT: target.rows}
    weights = _renamed_weights(config, _read_weights(weights_file, kinds, config, hf, rows), target)
    check_finite(weights, str(weights_file))
    if source.tokenizer.many_sources:
        languages = [source.tokenizer.target_tags[0], "mul"]
        if (own := str(options.get("src_lang"))) in source.tokenizer.target_tags:
            languages[0] = own
    else:
        languages = [str(options.get(f"{side}_lang") or "und") for side in ("source", "target")]
    for language in languages:
        if not language.isprintable() or " " in language or len(language) > LONGEST_DOMAIN:
            raise UserError(f"{folder / names.TOKENIZER_FILE}: {clipped(repr(language))} is no language")
    card = folder / names.CARD_FILE
    text = read_plain(card).decode("utf-8", errors="replace") if os.path.lexists(card) else "It came without one.\n"
    title = f"# Translation from {languages[0]} to {languages[1]}"
    origin = "Imported by headway from a Hugging Face directory, whose card follows."
    info = ModelInfo(
        source_tokenizer=source.tokenizer,
        target_tokenizer=target.tokenizer,
        source_language=languages[0],
        target_language=languages[1],
        decoding=_decoding_options({**hf, **_read_optional(folder / names.GENERATION_FILE)}, config),
        card=f"{title}\n\n{origin}\n\n{text}",
    )
    write_model(output, info, config, {name: weight.numpy() for name, weight in weights.items()})


class _Side(NamedTuple):
    """The tokenizer of one side, with headway's ids."""

    tokenizer: SubwordTokenizer
    rows: list[int]
    """For each id Hugging Face's id whose embedding it has."""
    invented: list[int]
    """Ids that Hugging Face's vocabulary lacks."""


def _read_config(folder: Path) -> dict[str, Any]:
    file = folder / names.CONFIG_FILE
    hf = {**DEFAULTS, **read_json(file)}
    if not hf.get("decoder_vocab_size") or hf["share_encoder_decoder_embeddings"]:
        hf["decoder_vocab_size"] = hf.get("vocab_size")
    for name, known in {"model_type": names.MODELS, "activation_function": names.ACTIVATIONS}.items():
        if hf.get(name) not in list(known):
            raise UserError(f"{file}: {name} {clipped(repr(hf.get(name)))} is none of headway's: {', '.join(known)}")
    for name in ("vocab_size", "decoder_vocab_size", "pad_token_id", "eos_token_id", "decoder_start_token_id"):
        if type(hf.get(name)) is not int:
            raise UserError(f"{file}: {name} is {clipped(repr(hf.get(name)))}, it should be one number")
    if hf.get("scale_embedding") is not True:
        raise UserError(f"{file}: scale_embedding is not true, but headway scales embeddings by sqrt(d_model)")
    if lacking := {*names.SAME_FIELDS.values(), *names.DECODER_FIELDS.values()} - hf.keys():
        raise UserError(f"{file}: lacks {min(lacking)}")
    return hf


def _read_optional(file: Path) -> dict[str, Any]:
    """A JSON file that may be missing."""
    return read_json(file) if os.path.lexists(file) else {}


def _read_sides(folder: Path, hf: Mapping[str, Any], options: Mapping[str, Any]) -> list[_Side]:
    """Reads the tokenizers of source and target. options: tokenizer_config.json."""
    if hf["model_type"] in TOKENIZERS:
        if (hf["pad_token_id"], hf["eos_token_id"], hf["decoder_start_token_id"]) != (1, 2, 2):
            raise UserError(f"{folder}: <pad>, </s> and the decoder's first id are not 1, 2 and 2, as such models have")
        return [_Side(*read_vocabulary(folder, hf, options), [])] * 2
    models = [read_plain(folder / f"{side}.spm") for side in ("source", "target")]
    given = [options.get(name, default) for name, default in _SPECIAL_TOKENS.items()]
    tokens = [str(token.get("content") if isinstance(token, dict) else token) for token in given]
    separate = options.get("separate_vocabs") is True
    files = [names.VOCABULARY_FILES[side] for side in ("source", "target" if separate else "source")]
    source, target = (
        _read_vocabulary(folder / file, hf[size], tokens)
        for file, size in zip(files, ("vocab_size", "decoder_vocab_size"), strict=True)
    )
    pad, unk, eos = map(target.index, tokens)
    if (pad, eos) != (hf["pad_token_id"], hf["eos_token_id"]):
        raise UserError(f"{folder}: pad_token_id and eos_token_id are not the tokenizer's, {pad} and {eos}")
    start = hf["decoder_start_token_id"]
    if not 0 <= start < len(target):
        raise UserError(f"{folder / names.CONFIG_FILE}: decoder_start_token_id {start} is not in the vocabulary")
    controls = pad, unk, None if start in (pad, eos) else start, eos
    try:
        if separate:
            pad, unk, eos = map(source.index, tokens)
            sides = _renumbered(models[:1], source, (pad, unk, None, eos)) + _renumbered(models[1:], target, controls)
        else:
            sides = _renumbered(models, target, controls)
    except UserError as error:
        raise UserError(f"{folder}: its tokenizer can't be imported: {error}") from None
    if hf["share_encoder_decoder_embeddings"] and sides[0].rows != sides[1].rows:
        raise UserError(f"{folder}: its vocabularies are separate, but its embeddings are shared")
    return sides


def _read_vocabulary(file: Path, size: int, tokens: Sequence[str]) -> list[str]:
    """The pieces by id. Raises UserError unless each id below `size` has one, and the special tokens are among them."""
    ids = read_ids(file)
    if len(ids) != size:
        raise UserError(f"{file}: has {len(ids)} tokens, but the model has {size}")
    if lacking := [token for token in tokens if token not in ids]:
        raise UserError(f"{file}: lacks {clipped(repr(lacking[0]))}, a token that tokenizer_config.json names")
    return sorted(ids, key=ids.__getitem__)


def _renumbered(
    models: Sequence[bytes], pieces: Sequence[str], controls: tuple[int, int, int | None, int]
) -> list[_Side]:
    """The sides whose sentencepiece models share one vocabulary. Pieces of a model that the vocabulary lacks have the
    row of <unk>. controls: the ids of <pad>, <unk>, <sos> and <eos> in the vocabulary. <sos> is None if decoding starts
    with another one, and for the source."""
    pad, unk, start, eos = controls
    given = [id_ for id_ in controls if id_ is not None]
    if len(set(given)) < len(given):
        raise UserError("its <unk> is one of its other control symbols")
    same_ids = (pad, unk, eos) == (PAD_ID, UNK_ID, EOS_ID) and start in (None, BOS_ID)
    if same_ids and tuple(pieces[: len(CONTROL_PIECES)]) == CONTROL_PIECES:
        sides = [_Side(SubwordTokenizer(model), list(range(len(pieces))), []) for model in models]
        if all(side.tokenizer.vocabulary[len(CONTROL_PIECES) :] == pieces[len(CONTROL_PIECES) :] for side in sides):
            return sides
    others = [id_ for id_ in range(len(pieces)) if id_ not in given]
    tags = [id_ for id_ in others if is_tag(pieces[id_])]
    rest = [id_ for id_ in others if not is_tag(pieces[id_])]
    known = set(pieces)
    lacking = list(dict.fromkeys(piece for model in models for piece in text_pieces(model) if piece not in known))
    rows = [pad if id_ is None else id_ for id_ in controls] + tags + rest + [unk] * len(lacking)
    symbols = [*CONTROL_PIECES, *(pieces[id_] for id_ in tags)]
    vocabulary = [*(pieces[id_] for id_ in rest), *lacking]
    invented = [*([BOS_ID] if start is None else []), *range(len(rows) - len(lacking), len(rows))]
    return [_Side(SubwordTokenizer(renumbered(model, symbols, vocabulary)), rows, invented) for model in models]


def _model_config(hf: Mapping[str, Any], source: _Side, target: _Side, output_bias: bool, folder: Path) -> ModelConfig:
    fields = {field: hf[name] for field, name in names.SAME_FIELDS.items()}
    for field, name in names.DECODER_FIELDS.items():
        fields[f"decoder_{field}"] = None if hf[name] == fields[field] else hf[name]
    shared, tied = hf["share_encoder_decoder_embeddings"], hf["tie_word_embeddings"]
    start = {hf["pad_token_id"]: PAD_ID, hf["eos_token_id"]: EOS_ID}
    try:
        return ModelConfig(
            source_vocab_size=source.tokenizer.vocab_size,
            target_vocab_size=target.tokenizer.vocab_size,
            **fields,
            activation=names.ACTIVATIONS[hf["activation_function"]],
            **names.MODELS[hf["model_type"]],
            share_embeddings=("all" if shared else "decoder") if tied else "none",
            output_bias=output_bias,
            bos_id=start.get(hf["decoder_start_token_id"], BOS_ID),
        )
    except ValueError as error:
        raise UserError(f"{folder / names.CONFIG_FILE}: {clipped(str(error))}") from None


def _read_weights(
    file: Path,
    found: Mapping[str, TensorKind],
    config: ModelConfig,
    hf: Mapping[str, Any],
    rows: Mapping[str, list[int]],
) -> dict[str, Tensor]:
    """The weights by Hugging Face's names, in fp32. A shared matrix has all of its names, in the file at least one.
    rows: of the matrices of embeddings, for each of headway's ids."""
    known = weight_shapes(config)
    shapes = {name: known[own] for own, (name, _) in names.weight_names(config).items() if own in known}
    if config.positions == "learned":
        shapes |= dict.fromkeys(POSITIONS, (config.max_length + names.LEARNED_OFFSET, config.d_model))
    sizes = {SHARED: "vocab_size", SOURCE: "vocab_size", TARGET: "decoder_vocab_size", OUTPUT: "decoder_vocab_size"}
    matrices = names.embedding_matrices(hf["share_encoder_decoder_embeddings"], hf["tie_word_embeddings"])
    optional = {name: (hf[sizes[name]], config.d_model) for name in chain(*matrices)}
    optional |= {BIAS: (1, hf["decoder_vocab_size"])}
    if config.positions == "sinusoidal":
        optional |= dict.fromkeys(POSITIONS, (config.max_length, config.d_model))
    shapes |= optional
    for name, kind in found.items():
        if name not in shapes:
            raise UserError(f"{file}: has a weight {clipped(repr(name))}, which such a model lacks")
        if kind.dtype not in ("F32", "F16", "BF16") or kind.shape != shapes[name]:
            raise UserError(f"{file}: {name} is {clipped(str(kind))}, the config wants {shapes[name]}")
    if lacking := shapes.keys() - optional.keys() - found.keys():
        raise UserError(f"{file}: lacks {min(lacking)} (one of {len(lacking)})")
    weights: dict[str, Tensor] = {}
    with safe_open(file, framework="pt", backend="pread") as opened:  # a mapped file would stay in memory, too
        for name in sorted(found, key=rows.keys().__contains__, reverse=True):  # while little else is in memory
            weight = opened.get_tensor(name).float()
            weights[name] = weight[rows[name]] if name in rows else weight
    for name in weights.keys() & set(POSITIONS) & optional.keys():
        sinusoids = sinusoidal_table(config.max_length, config.d_model)[:, names.sines_first(config.d_model)]
        if not torch.allclose(weights[name], sinusoids, rtol=0, atol=SINUSOID_TOLERANCE):
            raise UserError(f"{file}: {name} are not the sinusoids of the paper, only these can be imported")
    for same in matrices:
        copies = [weights[name] for name in same if name in weights]
        if not copies:
            raise UserError(f"{file}: lacks {same[0]}")
        if not all(torch.equal(copies[0], copy) for copy in copies):
            raise UserError(f"{file}: {', '.join(same)} should be one matrix, but they differ")
        weights |= dict.fromkeys(same, copies[0])
    return weights


def _renamed_weights(config: ModelConfig, hf_weights: Mapping[str, Tensor], target: _Side) -> dict[str, Tensor]:
    """The weights by headway's names, each once, with channels in headway's order."""
    order = names.sines_first(config.d_model).argsort()
    weights = dict(hf_weights)
    if config.positions == "learned":
        weights |= {name: hf_weights[name][names.LEARNED_OFFSET :] for name in POSITIONS}
    if config.output_bias:
        weights[BIAS] = hf_weights[BIAS][0][target.rows] if BIAS in hf_weights else torch.zeros(len(target.rows))
        weights[BIAS][target.invented] = IMPOSSIBLE
    found = names.weight_names(config)
    return {
        own: (weights[name] if residual is None else weights[name].index_select(residual, order)).contiguous()
        for own, (name, residual) in ((own, found[own]) for own in weight_shapes(config))
    }


def _decoding_options(hf: Mapping[str, Any], config: ModelConfig) -> dict[str, Any]:
    """Search options from generation_config.json, or from config.json, where older versions have them."""
    options = {option: hf[name] for option, name in names_in("huggingface").items() if hf.get(name) is not None}
    try:
        SearchOptions(**options)
        if "length_penalty" in options:
            options["length_penalty"] = round(options["length_penalty"] / names.LENGTH_PENALTY_FACTOR, 6)
        longest = options.pop("max_length", config.max_length)
        if longest < config.max_length:
            options["max_length"] = max(1, longest - 2)  # without the start symbol and <eos>
        SearchOptions(**options)
    except UserError as error:
        raise UserError(f"{names.GENERATION_FILE}: {clipped(str(error))}") from None
    return options
