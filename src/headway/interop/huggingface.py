"""Models as Hugging Face Transformers has them, both ways (extra `huggingface`, which importing doesn't need).

Post-norm models are `MarianMTModel` there, pre-norm ones `PegasusForConditionalGeneration`, which is the same but for
the places of its norms; the tokenizer of both is `MarianTokenizer`. Their sinusoids are all sines, then all cosines,
where the paper's, and ours, alternate: every weight that reads or writes the residual stream has its channels in
another order. Ids are ours in what we export. What others have made, OPUS-MT above all, has its own, and comes with
other rows: our tokenizers begin with <pad>, <unk>, <sos> and <eos>.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from headway.decoding import SearchOptions
from headway.errors import UserError
from headway.interop.ctranslate2 import never_generated, pieces_of
from headway.interop.faithful import Exported, check_faithful
from headway.model import ModelConfig, Transformer
from headway.model.config import Activation
from headway.model.positions import sinusoidal_table
from headway.storage import StoredModel, save_model
from headway.storage.atomic import write_directory, write_json
from headway.storage.model_directory import load_named_weights
from headway.storage.tensors import TensorKind, load_tensors, read_header
from headway.storage.untrusted import clipped, parse_json, read_json, read_plain
from headway.text.sentencepiece_model import renumbered, text_pieces
from headway.text.tokenizer import BOS_ID, CONTROL_PIECES, EOS_ID, PAD_ID, UNK_ID, SubwordTokenizer, fingerprint, is_tag

CONFIG_FILE, GENERATION_FILE, TOKENIZER_FILE = "config.json", "generation_config.json", "tokenizer_config.json"
WEIGHTS_FILE, CARD_FILE = "model.safetensors", "README.md"
VOCABULARY_FILES = {"source": "vocab.json", "target": "target_vocab.json"}

ARCHITECTURES = {"marian": "MarianMTModel", "pegasus": "PegasusForConditionalGeneration"}
ACTIVATIONS: dict[str, Activation] = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
"""By their names."""
SAME_FIELDS = {
    "d_model": "d_model",
    "encoder_layers": "encoder_layers",
    "decoder_layers": "decoder_layers",
    "num_heads": "encoder_attention_heads",
    "d_ff": "encoder_ffn_dim",
    "max_length": "max_position_embeddings",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "feedforward_dropout": "activation_dropout",
}
"""Fields of ModelConfig that are fields of theirs."""
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
LENGTH_PENALTY_FACTOR = 0.8
"""Hugging Face divides a score by length^penalty, we by GNMT's ((5 + length) / 6)^alpha. With 0.8 alpha the one grows
as fast as the other at 20 tokens."""
IMPOSSIBLE = -1e4
"""The logits bias of a row that the other model has not: its probability is 0 exactly."""

SINUSOID_TOLERANCE = 1e-2
"""How far stored sinusoids may be from the paper's: they may be bf16."""


def export_huggingface(stored: StoredModel, output: Path) -> None:
    """Writes a directory that `AutoModelForSeq2SeqLM` and `AutoTokenizer` of transformers load, whole or not at all,
    and checks that it is the same model there. Raises UserError."""
    transformers = import_transformers()
    _check_exportable(stored)
    with write_directory(output) as folder:
        _save_tokenizer(stored, folder)
        write_json(folder / CONFIG_FILE, _their_config(stored))
        write_json(folder / GENERATION_FILE, _their_generation(stored))
        save_file(_their_weights(stored.model), folder / WEIGHTS_FILE, metadata={"format": "pt"})
        (folder / CARD_FILE).write_text(_card(stored), encoding="utf-8")
        with _quiet(transformers):
            check_faithful(stored, _Exported(stored, folder, transformers), "Hugging Face Transformers")
            _check_tokenizer(stored, folder, transformers)


def open_huggingface(stored: StoredModel, folder: Path) -> Exported:
    """What was exported. Raises UserError."""
    transformers = import_transformers()
    with _quiet(transformers):
        return _Exported(stored, folder, transformers)


def import_transformers() -> Any:
    """The package. Raises UserError where it isn't installed."""
    try:
        import transformers
    except ImportError:
        raise UserError("Hugging Face Transformers is not installed: pip install 'headway[huggingface]'") from None
    return transformers


def import_huggingface(folder: Path, output: Path) -> None:
    """Writes a Hugging Face Marian directory as a model directory of ours. Raises UserError."""
    save_model(output, read_huggingface(folder))


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


# ours -> theirs


def _check_exportable(stored: StoredModel) -> None:
    config = stored.model.config
    if "word" in (stored.source_tokenizer.kind, stored.target_tokenizer.kind):
        raise UserError(
            "Hugging Face's tokenizer for such models is made of sentencepiece models, this one splits words; train "
            "with tokenizer.kind=bpe or unigram"
        )
    if config.positions != "sinusoidal":
        raise UserError(
            f"Hugging Face has no such model with positions={config.positions}; train with model.positions=sinusoidal"
        )
    if config.norm == "pre" and config.share_embeddings != "all":
        raise UserError(
            "Hugging Face's pre-norm model (Pegasus) has one matrix for all embeddings, this model has "
            f"share_embeddings={config.share_embeddings}; train with model.share_embeddings=all, or norm=post"
        )


def _model_type(config: ModelConfig) -> str:
    return "marian" if config.norm == "post" else "pegasus"


def _their_config(stored: StoredModel) -> dict[str, Any]:
    config = stored.model.config
    return {
        "architectures": [ARCHITECTURES[_model_type(config)]],
        "model_type": _model_type(config),
        "vocab_size": config.source_vocab_size,
        "decoder_vocab_size": config.target_vocab_size,
        "share_encoder_decoder_embeddings": config.share_embeddings == "all",
        "tie_word_embeddings": config.share_embeddings != "none",
        **{theirs: getattr(config, ours) for ours, theirs in SAME_FIELDS.items()},
        "decoder_attention_heads": config.decoder_num_heads or config.num_heads,
        "decoder_ffn_dim": config.decoder_d_ff or config.d_ff,
        "activation_function": config.activation,
        "scale_embedding": True,
        "is_encoder_decoder": True,
        "dtype": "float32",
        **_control_ids(config),
    }


def _control_ids(config: ModelConfig) -> dict[str, int]:
    return {
        "pad_token_id": config.pad_id,
        "bos_token_id": config.bos_id,
        "eos_token_id": config.eos_id,
        "decoder_start_token_id": config.bos_id,
        "forced_eos_token_id": config.eos_id,
    }


def _their_generation(stored: StoredModel) -> dict[str, Any]:
    config, options = stored.model.config, SearchOptions(**stored.decoding)
    ids = {piece: id_ for id_, piece in enumerate(pieces_of(stored)[1])}
    longest = config.max_length - 1 if options.max_length is None else min(options.max_length, config.max_length - 1)
    return {
        **_control_ids(config),
        "suppress_tokens": [ids[piece] for piece in never_generated(stored)],
        "num_beams": options.beam_size,
        "length_penalty": LENGTH_PENALTY_FACTOR * options.length_penalty,
        "max_length": longest + 2,  # with the start symbol and <eos>
        "no_repeat_ngram_size": options.no_repeat_ngram,
    }


def _save_tokenizer(stored: StoredModel, folder: Path) -> None:
    joint = fingerprint(stored.source_tokenizer) == fingerprint(stored.target_tokenizer)
    tokenizers = {"source": stored.source_tokenizer, "target": stored.target_tokenizer}
    for (side, tokenizer), pieces in zip(tokenizers.items(), pieces_of(stored), strict=True):
        (folder / f"{side}.spm").write_bytes(tokenizer.to_bytes())
        if side == "source" or not joint:
            write_json(folder / VOCABULARY_FILES[side], {piece: id_ for id_, piece in enumerate(pieces)})
    pad, unk, bos, eos = CONTROL_PIECES
    write_json(
        folder / TOKENIZER_FILE,
        {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": stored.source_language,
            "target_lang": stored.target_language,
            "separate_vocabs": not joint,
            "pad_token": pad,
            "unk_token": unk,
            "bos_token": bos,
            "eos_token": eos,
            "model_max_length": stored.model.config.max_length,
            "split_special_tokens": True,  # a control symbol that stands in a text is text
            "clean_up_tokenization_spaces": False,
        },
    )


def _card(stored: StoredModel) -> str:
    config = stored.model.config
    return f"""---
library_name: transformers
pipeline_tag: translation
---

# Translation from {stored.source_language} to {stored.target_language}

A Transformer (Vaswani et al., 2017), exported by headway. When it was exported, it gave the same scores and the same
greedy translations as in headway.

    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    model = AutoModelForSeq2SeqLM.from_pretrained(FOLDER)
    batch = tokenizer([TEXT], return_tensors="pt", padding=True)
    print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))

Texts may have {config.max_length - 1} pieces. `length_penalty` has another formula here than in headway, so a beam
search may prefer a longer or a shorter translation; with `length_penalty=0` the two are equal.

## The card of the model

{stored.card}"""


class _Exported:
    """What was exported, as `check_faithful` asks it."""

    def __init__(self, stored: StoredModel, folder: Path, transformers: Any) -> None:
        self._model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, local_files_only=True).eval()
        self._start, self._end = stored.model.config.bos_id, stored.model.config.eos_id

    def translate(self, source: list[int], max_length: int) -> list[int]:
        options = {"num_beams": 1, "do_sample": False, "no_repeat_ngram_size": 0, "max_new_tokens": max_length + 1}
        [found] = self._model.generate(**self._inputs(source), **options).tolist()
        return found[1 : found.index(self._end, 1)]  # the last one is <eos>, by force where need be

    @torch.inference_mode()
    def score(self, source: list[int], target: list[int]) -> list[float]:
        read, given = torch.tensor([[self._start, *target]]), torch.tensor([*target, self._end])
        logits = self._model(**self._inputs(source), decoder_input_ids=read).logits[0]  # (target length + 1, vocab)
        return F.log_softmax(logits.float(), dim=-1).gather(1, given[:, None])[:, 0].tolist()

    def _inputs(self, source: list[int]) -> dict[str, Tensor]:
        ids = torch.tensor([[*source, self._end]])
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def _check_tokenizer(stored: StoredModel, folder: Path, transformers: Any) -> None:
    """Raises UserError unless texts of the vocabulary's own words have the same ids, and come back the same."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    for mine, side in ((stored.source_tokenizer, "text"), (stored.target_tokenizer, "text_target")):
        words = [word for piece in mine.vocabulary if (word := piece.removeprefix("▁")).isalnum()]
        words = [word for word in words if UNK_ID not in mine.encode(word)]
        for start in range(0, len(words), 100):
            text = " ".join(words[start : start + 100])
            wanted = mine.encode(text)
            found = tokenizer(**{side: text}, truncation=False)["input_ids"][:-1]
            if found != wanted or (side == "text_target" and tokenizer.decode(found) != mine.decode(wanted)):
                raise UserError(
                    f"Hugging Face's tokenizer splits {clipped(text)!r} otherwise than headway's; nothing was "
                    "exported. Is this a version that headway was tested with?"
                )


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """No progress bars of the package, and nothing on standard error that is not an error."""
    log = transformers.utils.logging
    verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity(logging.ERROR)
    log.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.set_verbosity(verbosity)
        if bars:
            log.enable_progress_bar()


# weights, both ways


class _Theirs(NamedTuple):
    """A weight as they have it."""

    name: str
    residual: int | None
    """The dimension that is a channel of the residual stream, if there is one."""


_MODULES = {
    "self_attention": "self_attn",
    "cross_attention": "encoder_attn",
    "self_residual.norm": "self_attn_layer_norm",
    "cross_residual.norm": "encoder_attn_layer_norm",
    "feed_forward_residual.norm": "final_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "out_proj",
}
_WRITERS = ("output", "outer")
"""Layers whose outputs are added to the residual stream; all others read it."""
_SHARED, _SOURCE, _TARGET, _OUTPUT, _BIAS = (
    "model.shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
    "final_logits_bias",
)
_DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
_POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")


def _layer_weights(model: Transformer) -> dict[str, _Theirs]:
    """Every weight of encoder and decoder, by our name."""
    found = {}
    for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        for name, module in stack.named_modules():
            if isinstance(module, (nn.Linear, nn.LayerNorm)):
                writes = isinstance(module, nn.LayerNorm) or name.endswith(_WRITERS)
                for kind, reads in (("weight", 1), ("bias", None)):
                    theirs = f"model.{side}.{_their_module(name)}.{kind}"
                    found[f"{side}.{name}.{kind}"] = _Theirs(theirs, 0 if writes else reads)
    return found


def _their_module(name: str) -> str:
    if name == "norm":
        return "layer_norm"
    _, index, inner = name.split(".", maxsplit=2)
    theirs = _MODULES.get(inner) or ".".join(_MODULES[part] for part in inner.split("."))
    return f"layers.{index}.{theirs}"


def _sines_first(d_model: int) -> Tensor:
    """For each channel of theirs the channel of ours. (d_model,)"""
    channels = torch.arange(d_model)
    return torch.cat([channels[0::2], channels[1::2]])


def _their_weights(model: Transformer) -> dict[str, Tensor]:
    config, order = model.config, _sines_first(model.config.d_model)
    ours = {name: parameter.detach().cpu() for name, parameter in model.named_parameters(remove_duplicate=False)}
    weights = {
        name: ours[mine] if residual is None else ours[mine].index_select(residual, order)
        for mine, (name, residual) in _layer_weights(model).items()
    }
    embeddings = {_SOURCE: model.source_embedding, _TARGET: model.target_embedding, _OUTPUT: model.output}
    for one in _matrices(config.share_embeddings == "all", config.share_embeddings != "none"):
        weights[one[0]] = embeddings[one[-1]].weight.detach().cpu()[:, order]
    if model.output.bias is not None:
        weights[_BIAS] = model.output.bias.detach().cpu()[None]
    return {name: weight.contiguous() for name, weight in weights.items()}


def _matrices(shared: bool, tied: bool) -> list[tuple[str, ...]]:
    """The names of each of the matrices of embeddings and output layer; those of one matrix together."""
    if shared:
        return [(_SHARED, _SOURCE, _TARGET, _OUTPUT)] if tied else [(_SHARED, _SOURCE, _TARGET), (_OUTPUT,)]
    return [(_SOURCE,), (_TARGET, _OUTPUT)] if tied else [(_SOURCE,), (_TARGET,), (_OUTPUT,)]


# theirs -> ours


_SPECIAL_TOKENS = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"}
"""Of MarianTokenizer, with its defaults."""


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
        raise UserError(f"{file}: has {len(ids)} pieces, but the model has {size}")
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
    shapes = {name: tuple(parameters[mine].shape) for mine, (name, _) in _layer_weights(model).items()}
    required = set(shapes)
    matrices = _matrices(theirs["share_encoder_decoder_embeddings"], theirs["tie_word_embeddings"])
    sizes = {_SHARED: "vocab_size", _SOURCE: "vocab_size", _TARGET: "decoder_vocab_size", _OUTPUT: "decoder_vocab_size"}
    shapes |= {name: (theirs[sizes[name]], config.d_model) for names in matrices for name in names}
    shapes |= dict.fromkeys(_POSITIONS, (config.max_length, config.d_model))
    shapes[_BIAS] = (1, theirs["decoder_vocab_size"])
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
    for name in weights.keys() & set(_POSITIONS):
        sinusoids = sinusoidal_table(config.max_length, config.d_model)[:, _sines_first(config.d_model)]
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
    order = _sines_first(model.config.d_model).argsort()
    weights = {
        mine: theirs[name] if residual is None else theirs[name].index_select(residual, order)
        for mine, (name, residual) in _layer_weights(model).items()
    }
    for mine, name, side in (
        ("source_embedding.weight", _SOURCE, source),
        ("target_embedding.weight", _TARGET, target),
        ("output.weight", _OUTPUT, target),
    ):
        weights[mine] = theirs[name][side.rows][:, order]
    if model.output.bias is not None:
        bias = theirs[_BIAS][0] if _BIAS in theirs else torch.zeros(len(theirs[_OUTPUT]))
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
