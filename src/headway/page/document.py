"""The JSON form of a record (docs/record.md): small things as plain JSON, numbers as base64 of little-endian arrays,
each of which can be decoded by itself."""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

import headway
from headway.errors import UserError
from headway.insight.analyses.analysis import token
from headway.insight.maps import SUBLAYERS, word_groups

if TYPE_CHECKING:
    from headway.insight.record import Text, TranslationRecord

FORMAT, FORMAT_VERSION = "headway-record", 1
HALF_PRECISION_UP_TO = 3_000_000
"""Size of a record up to which all numbers are float16; in a larger one, all but scores and weights are int8."""
HALF_LOGITS_UP_TO = 1_000_000
"""The same for the logits of a page."""
LARGEST_HALF = 65504.0

ArraysKind = Literal["all", "layers", "attention", "none"]
"""The arrays of a document: `layers` are all but the logits, `attention` the weights of every head."""
Arrays = ArraysKind | Sequence[str]
"""Or their names: these come in float32, as the model has them."""


def record_document(record: TranslationRecord, arrays: Arrays = "all") -> dict[str, Any]:
    """The record as JSON; numbers that are not finite are None. Raises UserError for an array that it doesn't have."""
    config, vocabulary, beam = record.config, record.vocabulary, record.beam
    decoder_heads, decoder_d_ff = config.decoder_num_heads or config.num_heads, config.decoder_d_ff or config.d_ff
    steps = [
        {
            "log_probability": step.log_probability,
            "rank": step.rank,
            "top": [
                {**token(id_, vocabulary), "logit": logit, "probability": probability}
                for id_, logit, probability in zip(step.ids, step.logits, step.probabilities, strict=True)
            ],
        }
        for step in record.steps
    ]
    tree = beam and {
        "beam_size": beam.beam_size,
        "length_penalty": beam.length_penalty,
        "steps": [[{**vars(one), "piece": vocabulary[one.id]} for one in step] for step in beam.steps],
        "result": beam.result,
        "finished": beam.finished,
    }
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "headway": headway.__version__,
        "model": {
            "source_language": record.source_language,
            "target_language": record.target_language,
            "domain": record.domain,
            "config": {**config.to_dict(), "decoder_num_heads": decoder_heads, "decoder_d_ff": decoder_d_ff},
            "d_head": config.d_model // config.num_heads,
            "decoder_d_head": config.d_model // decoder_heads,
        },
        "source": {**_text(record.source), "original": record.original_text},
        "target": {**_text(record.target), "score": record.score, "given": record.target_given},
        "start": {"id": config.bos_id, "piece": record.maps.read[0]},
        "alternatives": record.alternatives,
        "steps": steps,
        "beam": tree,
        "attention": {
            kind: {
                "layers": len(maps),
                "heads": maps.shape[1],
                "names": SUBLAYERS[kind],
                "measures": record.heads[kind],
            }
            for kind, maps in record.attention.items()
        },
        "alignment": record.alignment,
        "edits": record.edits,
        "before": record.before,
        "cases": record.cases,
        "order": record.order,
        "inspected_step": record.step,
        "history": record.history,
        "analyses": {name: one.document(vocabulary) for name, one in record.analyses.found().items()},
    }
    training = record.training if arrays in ("all", "layers") else None
    return {**plain(document), "training": training, "arrays": dict(_entries(record, arrays))}


def plain(value: Any) -> Any:
    """A value as JSON: records as objects without their arrays, numbers with six digits; None if not finite."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, BaseModel):
        return value.model_dump()
    if dataclasses.is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items() if not isinstance(one, np.ndarray)}
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def _text(text: Text) -> dict[str, Any]:
    words = {place: number for number, group in enumerate(word_groups(text.pieces)) for place in group}
    tokens = [{**dataclasses.asdict(one), "word": words[place]} for place, one in enumerate(text.tokens)]
    return {"text": text.text, "tokens": tokens}


def _entries(record: TranslationRecord, wanted: Arrays) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(wanted, str):
        for name in wanted:
            if name not in record.arrays:
                raise UserError(f"arrays: the record has no {name!r}")
            yield name, _entry("float32", record.arrays[name].astype("<f4"))
        return
    analyses, sums = dict(record.analyses.arrays()), dict(_sums(record))
    arrays = {
        name: array
        for name, array in record.arrays.items()
        if wanted == "all"
        or name in analyses
        or (wanted == "layers" and name != "logits")
        or (wanted == "attention" and name.endswith(".weights"))
    }
    half = sum(array.size for array in arrays.values()) <= HALF_PRECISION_UP_TO
    first: dict[int, str] = {}
    for name, array in arrays.items():
        known = first.setdefault(id(array), name)
        if known != name:
            yield name, {"same_as": known}
        elif name in sums:
            yield name, {"sum_of": sums[name]}
        elif name.endswith(".masked_scores"):
            stem = name.removesuffix("masked_scores")
            yield name, {"masked": [f"{stem}scores", f"{stem}mask"]}
        elif array.dtype == bool:
            yield name, _entry("bool", array.astype(np.uint8))
        else:
            yield name, numbers_entry(array, half or name in analyses or name.endswith((".scores", ".weights")))


def logits_entry(record: TranslationRecord) -> dict[str, Any]:
    """The logits of a page, each row shifted to log-probabilities: likely tokens, near 0, keep the most digits."""
    from headway.insight.record import log_probabilities  # a server loads it with the first record

    logits = log_probabilities(record.arrays["logits"]).astype(np.float32)
    return numbers_entry(logits, half=logits.size <= HALF_LOGITS_UP_TO)


def _sums(record: TranslationRecord) -> Iterator[tuple[str, list[str]]]:
    """The arrays that are the sum of two others: the input of each stack, and every residual sum."""
    config = record.config
    for side, stack, layers, sublayers in (
        ("source", "encoder", config.encoder_layers, ("self", "feed_forward")),
        ("target", "decoder", config.decoder_layers, ("self", "cross", "feed_forward")),
    ):
        before = f"{stack}.input"
        if not config.norm_embeddings:
            yield before, [f"{side}_embedding.scaled", f"{side}_positions"]
        for layer in range(layers):
            for sublayer in sublayers:
                name = f"{stack}.layers.{layer}.{sublayer}"
                output = f"{name if sublayer == 'feed_forward' else f'{name}_attention'}.output"
                yield f"{name}_residual.sum", [before, output]
                before = f"{name}_residual.{'sum' if config.norm == 'pre' else 'normalised'}"


def numbers_entry(array: NDArray[np.float32], half: bool) -> dict[str, Any]:
    """The entry of an array, in int8 if it may not be in float16."""
    largest = np.abs(array).max(initial=0.0)
    if (half and largest <= LARGEST_HALF) or not np.isfinite(largest):
        return _entry("float16", array.astype("<f2"))
    numbers, scales = quantized(array)
    return {**_entry("int8", numbers), "scales": _base64(scales)}


def quantized(array: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """(..., columns) -> the same in int8, and the scale of each row, so that its largest number is 127 of them."""
    largest = np.abs(array).max(axis=-1, initial=0.0)
    scales = np.where(largest > 0.0, largest / 127.0, 1.0).astype("<f4")
    return np.rint(array / scales[..., None]).astype(np.int8), scales


def _entry(dtype: str, array: NDArray[Any]) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(array.shape), "data": _base64(array)}


def _base64(array: NDArray[Any]) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")
