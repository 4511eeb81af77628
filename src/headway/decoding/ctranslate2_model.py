"""Converts config and weights to CTranslate2's `TransformerSpec`.

CTranslate2 joins queries, keys and values of self-attention in one layer, and keys and values of the encoder-decoder
attention; it stores position tables, so both kinds of positions are exact. A shortlist becomes its vocabulary map.
"""

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headway.decoding.faithful import check_faithful, never_generated
from headway.errors import UserError
from headway.model.config import ModelConfig
from headway.plain import Floats, PlainTransformer
from headway.storage import AnyModel
from headway.storage.atomic import write_directory
from headway.storage.model_directory import save_tokenizers
from headway.storage.model_info import ModelInfo
from headway.text.shortlist import Shortlist
from headway.text.tokenizer import CONTROL_PIECES, UNK_ID

ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "swish": "SWISH"}
QUANTIZATIONS = ("int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16", "float32")
VOCABULARY_MAP = "vmap.txt"
"""The file in which CTranslate2 looks for a vocabulary map."""
LARGEST_TABLE = 2**24
"""Numbers in a side's table of positions, 64 MiB: with d_model=512 that of 32,768 positions."""


def why_not(config: ModelConfig) -> str | None:
    """The reason why CTranslate2 can't run a model of this config; None if it can."""
    if config.core:
        return f"CTranslate2 has no {config.core}, the model's core of attention"
    for name in ("encoder_layers", "decoder_layers"):
        if getattr(config, name) == 0:
            return f"CTranslate2 can't run a model without layers; model.{name} is 0"
    if config.max_length == 1:
        return "CTranslate2 can't run a model that reads nothing; model.max_length is 1"
    if config.positions != "learned" and config.max_length * config.d_model > LARGEST_TABLE:
        return f"CTranslate2 stores all positions, which are too many with max_length={config.max_length}"
    return None


def export_ctranslate2(model: AnyModel, output: Path, quantization: str | None = None) -> None:
    """Writes a directory that `ctranslate2.Translator` loads, with the tokenizers, whole or not at all. Sources are
    given to it as pieces with <eos> last. `quantization` is CTranslate2's, such as `int8`; the check that the model is
    the same one is made without it. Raises UserError."""
    if quantization not in (None, *QUANTIZATIONS):
        raise UserError(f"quantization {quantization!r} is unknown; there are {', '.join(QUANTIZATIONS)}")
    if reason := why_not(model.config):
        raise UserError(reason)
    with write_directory(output) as folder:
        exact = folder / "exact"
        _save(model, exact, None)
        check_faithful(model, lambda: CTranslate2Model(model, exact), "CTranslate2")
        if quantization is None:
            for file in exact.iterdir():
                file.rename(folder / file.name)
        else:
            _save(model, folder, quantization)
        shutil.rmtree(exact)
        save_tokenizers(folder, model.source_tokenizer, model.target_tokenizer)
        if model.shortlist is not None:
            map_ = "".join(f"{line}\n" for line in _vocabulary_map(model, model.shortlist))
            (folder / VOCABULARY_MAP).write_text(map_, encoding="utf-8", newline="\n")


def pieces_of(info: ModelInfo) -> tuple[list[str], list[str]]:
    """The source and the target vocabulary for other tools: by id, each piece once. A piece that is written like a
    control piece or an earlier one gets its id as a suffix."""

    def unique(vocabulary: Sequence[str]) -> list[str]:
        pieces: dict[str, None] = dict.fromkeys(CONTROL_PIECES)
        for id_, piece in enumerate(vocabulary[len(pieces) :], start=len(pieces)):
            name = piece
            while name in pieces:
                name += f"#{id_}"
            pieces[name] = None
        return list(pieces)

    return unique(info.source_tokenizer.vocabulary), unique(info.target_tokenizer.vocabulary)


class ModelPieces:
    """Source and target pieces, as CTranslate2 reads and writes them."""

    def __init__(self, model: AnyModel) -> None:
        self._source, self._target = pieces_of(model)
        self.ids = {piece: id_ for id_, piece in enumerate(self._target)}
        self.never = [self.of_target([id_]) for id_ in never_generated(model)]
        self.given = frozenset(model.target_tokenizer.never_generated) - {UNK_ID}
        """Ids of languages, which begin translations and aren't scored."""
        self.source_end, self.end = (side[model.config.eos_id] for side in (self._source, self._target))

    def of_source(self, ids: Sequence[int]) -> list[str]:
        return [self._source[id_] for id_ in ids]

    def of_target(self, ids: Sequence[int]) -> list[str]:
        return [self._target[id_] for id_ in ids]


def load_ctranslate2(folder: Path, **options: Any) -> Any:
    """A `ctranslate2.Translator`. Where it shares OpenMP with torch, torch's number of threads is restored."""
    import ctranslate2

    torch = sys.modules.get("torch")
    threads = torch and torch.get_num_threads()
    try:
        return ctranslate2.Translator(str(folder), intra_threads=1, **options)
    finally:
        if torch is not None:
            torch.set_num_threads(threads)


class CTranslate2Model:
    """An exported model. `adds_end`: the model itself adds <eos> to each source. Raises UserError."""

    def __init__(self, model: AnyModel, folder: Path, *, adds_end: bool = False) -> None:
        self._translator = load_ctranslate2(folder)
        self._pieces = ModelPieces(model)
        self._end = [] if adds_end else [self._pieces.source_end]

    def translate(self, source: list[int], max_length: int, opening: Sequence[int] = ()) -> list[int]:
        [result] = self._translator.translate_batch(
            [self._of_source(source)],
            target_prefix=[self._pieces.of_target(opening)],
            beam_size=1,
            min_decoding_length=1 + len(opening),
            max_decoding_length=max_length,
            max_input_length=0,
            suppress_sequences=self._pieces.never,
            use_vmap=True,  # nothing where there is none
        )
        return [self._pieces.ids[piece] for piece in result.hypotheses[0]]

    def score(self, source: list[int], target: list[int]) -> list[float]:
        pieces = [self._of_source(source)], [self._pieces.of_target(target)]
        [result] = self._translator.score_batch(*pieces, max_input_length=0)
        return list(result.log_probs)

    def _of_source(self, source: list[int]) -> list[str]:
        return [*self._pieces.of_source(source), *self._end]


def _save(model: AnyModel, folder: Path, quantization: str | None) -> None:
    from ctranslate2.specs import common_spec, transformer_spec

    config, weights = model.config, model.weights()
    for name in ("source_embedding.weight", "target_embedding.weight", "output.weight") if quantization else ():
        if name in weights:  # CTranslate2 multiplies and rounds a matrix in place, and this may be the model's own
            weights[name] = weights[name].copy()
    plain = PlainTransformer(config, weights)
    options = {
        "pre_norm": config.norm == "pre",
        "activation": common_spec.Activation[ACTIVATIONS[config.activation]],
        "layernorm_embedding": config.norm_embeddings,
    }
    spec: Any = transformer_spec.TransformerSpec(
        transformer_spec.TransformerEncoderSpec(config.encoder_layers, config.num_heads, **options),
        transformer_spec.TransformerDecoderSpec(
            config.decoder_layers, config.decoder_num_heads or config.num_heads, **options
        ),
    )
    for side, name, stack in ((spec.encoder, "source", "encoder"), (spec.decoder, "target", "decoder")):
        embeddings = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
        embeddings.weight = plain.embedding(name)
        side.scale_embeddings = True
        side.position_encodings.encodings = plain.positions(name, config.max_length)
        for number, layer in enumerate(side.layer):
            _set_layer(layer, f"{stack}.layers.{number}", weights, crosses=name == "target")
        if config.norm == "pre":
            _set_norm(side.layer_norm, weights, f"{stack}.norm")
        if config.norm_embeddings:
            _set_norm(side.layernorm_embedding, weights, f"{name}_norm")
    spec.decoder.projection.weight = plain.output_matrix()
    if config.output_bias:
        spec.decoder.projection.bias = weights["output.bias"]
    source, target = pieces_of(model)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    symbols = spec.config
    symbols.unk_token, symbols.eos_token = target[UNK_ID], target[config.eos_id]
    symbols.bos_token = symbols.decoder_start_token = target[config.bos_id]
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir(exist_ok=True)
    spec.save(str(folder))


def _vocabulary_map(model: AnyModel, shortlist: Shortlist) -> Iterator[str]:
    """Yields lines of a source piece, TAB and its possible target pieces; without a source piece those of every one."""
    source, target = pieces_of(model)
    never = set(never_generated(model))

    def listed(ids: Iterable[int]) -> str:
        return " ".join(target[id_] for id_ in ids if id_ >= 0 and id_ not in never)

    yield f"\t{listed(shortlist.always)}"
    for piece, ids in zip(source, shortlist.of_token, strict=True):
        if pieces := listed(ids):
            yield f"{piece}\t{pieces}"


def _set_layer(spec: Any, name: str, weights: dict[str, Any], *, crosses: bool) -> None:
    """Takes the layer's matrices out of the weights, so they aren't in memory twice."""
    linears = {
        "self_attention.query self_attention.key self_attention.value": spec.self_attention.linear[0],
        "self_attention.output": spec.self_attention.linear[1],
        "feed_forward.inner": spec.ffn.linear_0,
        "feed_forward.outer": spec.ffn.linear_1,
    }
    norms = {"self": spec.self_attention.layer_norm, "feed_forward": spec.ffn.layer_norm}
    if crosses:
        cross = ("cross_attention.query", "cross_attention.key cross_attention.value", "cross_attention.output")
        linears |= zip(cross, spec.attention.linear, strict=True)
        norms["cross"] = spec.attention.layer_norm
    for parts, linear in linears.items():  # a layer with the outputs of all, one after the other
        linear.weight, linear.bias = (
            np.concatenate([weights.pop(f"{name}.{part}.{kind}") for part in parts.split()])
            for kind in ("weight", "bias")
        )
    for part, norm in norms.items():
        _set_norm(norm, weights, f"{name}.{part}_residual.norm")


def _set_norm(spec: Any, weights: Mapping[str, Floats], name: str) -> None:
    spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]
