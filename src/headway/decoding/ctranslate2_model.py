"""A model as CTranslate2 runs it, by a converter of our own on its `TransformerSpec` (extra `ctranslate2`).

CTranslate2 joins queries, keys and values of self-attention in one layer, and keys and values of the encoder-decoder
attention; position tables are stored, so both kinds of ours are exact. Its length penalty is length^alpha, not GNMT's.
A shortlist becomes its vocabulary map.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from headway.decoding.faithful import check_faithful
from headway.errors import UserError
from headway.model.layers import DecoderLayer, EncoderLayer, PositionwiseFeedForward
from headway.storage import StoredModel
from headway.storage.atomic import write_directory
from headway.text.shortlist import Shortlist
from headway.text.tokenizer import CONTROL_PIECES, UNK_ID

ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "swish": "SWISH"}
QUANTIZATIONS = ("int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16", "float32")
VOCABULARY_MAP = "vmap.txt"
"""The file in which CTranslate2 looks for a vocabulary map."""


def export_ctranslate2(stored: StoredModel, output: Path, quantization: str | None = None) -> None:
    """Writes a directory that `ctranslate2.Translator` loads, whole or not at all. Sources are given to it as pieces
    with <eos> last. `quantization` is CTranslate2's, such as `int8`; the check that the model is the same one is made
    without it. Raises UserError."""
    import_ctranslate2()
    if quantization not in (None, *QUANTIZATIONS):
        raise UserError(f"quantization {quantization!r} is unknown; there are {', '.join(QUANTIZATIONS)}")
    config = stored.model.config
    if config.decoder_num_heads not in (None, config.num_heads):
        differs = "model.decoder_num_heads differs"
        raise UserError(f"CTranslate2 needs as many heads in the decoder as in the encoder; {differs}")
    for name in ("encoder_layers", "decoder_layers"):
        if getattr(config, name) == 0:
            raise UserError(f"CTranslate2 can't run a model without layers; model.{name} is 0")
    with write_directory(output) as folder:
        exact = folder / "exact"
        _save(stored, exact, None)
        check_faithful(stored, CTranslate2Model(stored, exact), "CTranslate2")
        if quantization is None:
            for file in exact.iterdir():
                file.rename(folder / file.name)
            exact.rmdir()
        else:
            shutil.rmtree(exact)
            _save(stored, folder, quantization)
        if stored.shortlist is not None:
            map_ = "".join(f"{line}\n" for line in _vocabulary_map(stored, stored.shortlist))
            (folder / VOCABULARY_MAP).write_text(map_, encoding="utf-8", newline="\n")


def pieces_of(stored: StoredModel) -> tuple[list[str], list[str]]:
    """The source and the target vocabulary as other tools get them: by id, each piece once."""
    source, target = (list(side.vocabulary) for side in (stored.source_tokenizer, stored.target_tokenizer))
    for vocabulary in (source, target):
        vocabulary[: len(CONTROL_PIECES)] = CONTROL_PIECES
    return source, target


def never_generated(stored: StoredModel) -> list[int]:
    """The target ids that no translation may have."""
    config = stored.model.config
    return sorted({config.pad_id, config.bos_id, *stored.target_tokenizer.never_generated} - {config.eos_id})


def import_ctranslate2() -> Any:
    """The package. Raises UserError where it isn't installed."""
    try:
        import ctranslate2
    except ImportError:
        raise UserError("CTranslate2 is not installed: pip install 'headway[ctranslate2]'") from None
    return ctranslate2


def load_ctranslate2(folder: Path, **options: Any) -> Any:
    """A `ctranslate2.Translator`. Its threads aren't torch's: where both have one OpenMP, loading it would leave torch
    as many as it gets itself. Raises UserError."""
    ctranslate2 = import_ctranslate2()
    threads = torch.get_num_threads()
    try:
        return ctranslate2.Translator(str(folder), intra_threads=1, **options)
    finally:
        torch.set_num_threads(threads)


class CTranslate2Model:
    """What was exported. `adds_end`: it gives each source its <eos> by itself. Raises UserError."""

    def __init__(self, stored: StoredModel, folder: Path, *, adds_end: bool = False) -> None:
        self._translator = load_ctranslate2(folder)
        self._source, self._target = pieces_of(stored)
        self._ids = {piece: id_ for id_, piece in enumerate(self._target)}
        self._never = [[self._target[id_]] for id_ in never_generated(stored)]
        self._end = [] if adds_end else [self._source[stored.model.config.eos_id]]

    def translate(self, source: list[int], max_length: int) -> list[int]:
        [result] = self._translator.translate_batch(
            [self._pieces(source)],
            beam_size=1,
            max_decoding_length=max_length,
            max_input_length=0,
            suppress_sequences=self._never,
            use_vmap=True,  # nothing where there is none
        )
        return [self._ids[piece] for piece in result.hypotheses[0]]

    def score(self, source: list[int], target: list[int]) -> list[float]:
        pieces = [self._target[id_] for id_ in target]
        [result] = self._translator.score_batch([self._pieces(source)], [pieces], max_input_length=0)
        return list(result.log_probs)

    def _pieces(self, source: list[int]) -> list[str]:
        return [*(self._source[id_] for id_ in source), *self._end]


def _save(stored: StoredModel, folder: Path, quantization: str | None) -> None:
    from ctranslate2.specs import common_spec, transformer_spec

    model, config = stored.model, stored.model.config
    spec = transformer_spec.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.num_heads,
        pre_norm=config.norm == "pre",
        activation=common_spec.Activation[ACTIVATIONS[config.activation]],
    )
    for side, embedding, table in (
        (spec.encoder, model.source_embedding, model.source_positions),
        (spec.decoder, model.target_embedding, model.target_positions),
    ):
        embeddings = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
        embeddings.weight = _array(embedding.weight)
        side.scale_embeddings = True
        side.position_encodings.encodings = _array(table(config.max_length))
    for layer_spec, layer in zip(spec.encoder.layer, cast(Iterable[EncoderLayer], model.encoder.layers), strict=True):
        _set_encoder_layer(layer_spec, layer)
    for layer_spec, layer in zip(spec.decoder.layer, cast(Iterable[DecoderLayer], model.decoder.layers), strict=True):
        _set_encoder_layer(layer_spec, layer)
        cross = layer.cross_attention
        _set_linear(layer_spec.attention.linear[0], cross.query)
        _set_linear(layer_spec.attention.linear[1], cross.key, cross.value)
        _set_linear(layer_spec.attention.linear[2], cross.output)
        _set_norm(layer_spec.attention.layer_norm, layer.cross_residual.norm)
    if config.norm == "pre":
        _set_norm(spec.encoder.layer_norm, model.encoder.norm)
        _set_norm(spec.decoder.layer_norm, model.decoder.norm)
    _set_linear(spec.decoder.projection, model.output)
    source, target = pieces_of(stored)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    symbols: Any = spec.config
    symbols.unk_token, symbols.eos_token = target[UNK_ID], target[config.eos_id]
    symbols.bos_token = symbols.decoder_start_token = target[config.bos_id]
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir(exist_ok=True)
    spec.save(str(folder))


def _vocabulary_map(stored: StoredModel, shortlist: Shortlist) -> Iterator[str]:
    """Its lines: a source piece, TAB, the target pieces that it may become; without a source piece those for all."""
    source, target = pieces_of(stored)
    never = set(never_generated(stored))

    def listed(ids: Iterable[int]) -> str:
        return " ".join(target[id_] for id_ in ids if id_ >= 0 and id_ not in never)

    yield f"\t{listed(shortlist.always)}"
    for piece, ids in zip(source, shortlist.of_token, strict=True):
        if pieces := listed(ids):
            yield f"{piece}\t{pieces}"


def _set_encoder_layer(spec: Any, layer: EncoderLayer | DecoderLayer) -> None:
    """What layers of both stacks have: self-attention and feed-forward."""
    own, feed_forward = layer.self_attention, cast(PositionwiseFeedForward, layer.feed_forward)
    _set_linear(spec.self_attention.linear[0], own.query, own.key, own.value)
    _set_linear(spec.self_attention.linear[1], own.output)
    _set_norm(spec.self_attention.layer_norm, layer.self_residual.norm)
    _set_linear(spec.ffn.linear_0, feed_forward.inner)
    _set_linear(spec.ffn.linear_1, feed_forward.outer)
    _set_norm(spec.ffn.layer_norm, layer.feed_forward_residual.norm)


def _set_linear(spec: Any, *modules: nn.Linear) -> None:
    """One layer that gives the outputs of all, one after the other."""
    spec.weight = _array(torch.cat([module.weight for module in modules]))
    if modules[0].bias is not None:
        spec.bias = _array(torch.cat([module.bias for module in modules]))


def _set_norm(spec: Any, module: nn.Module) -> None:
    assert isinstance(module, nn.LayerNorm)
    spec.gamma, spec.beta = _array(module.weight), _array(module.bias)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().float().cpu().numpy()
