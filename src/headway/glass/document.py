"""The JSON form of a record (docs/record.md): small things as plain JSON, numbers as base64 of little-endian arrays,
each to be decoded by itself."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import headway
from headway.errors import UserError
from headway.glass.analyses import analyses_document
from headway.glass.plain import plain, rounded
from headway.insight import BeamTree, Text, TranslationRecord, Tried, WordOrder
from headway.insight.maps import SUBLAYERS, word_groups

FORMAT, FORMAT_VERSION = "headway-record", 1
HALF_PRECISION_UP_TO = 3_000_000
"""Numbers of a record that are all given in float16; of a larger one, all but scores and weights are int8."""
LARGEST_HALF = 65504.0
_FLOATS = {"float16": "<f2", "float32": "<f4"}

ArraysKind = Literal["all", "layers", "attention", "none"]
"""Which arrays a document has: `layers` are all but the logits, `attention` the weights of every head."""
Arrays = ArraysKind | Sequence[str]
"""Or their names: these come in float32, as the model has them."""


def record_document(record: TranslationRecord, arrays: Arrays = "all") -> dict[str, Any]:
    """The record as JSON; numbers that are not finite are None. Raises UserError for an array that it doesn't have."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "headway": headway.__version__,
        "model": _model(record),
        "source": {**_text(record.source), "original": record.original_text},
        "target": {**_text(record.target), "score": rounded(record.score), "given": record.target_given},
        "start": {"id": record.config.bos_id, "piece": record.maps.read[0]},
        "alternatives": [plain(one) for one in record.alternatives],
        "steps": [_step(record, number) for number in range(len(record.steps))],
        "beam": None if record.beam is None else _beam(record, record.beam),
        "attention": {
            kind: {
                "layers": maps.shape[0],
                "heads": maps.shape[1],
                "names": SUBLAYERS[kind],
                "measures": [[plain(head) for head in layer] for layer in record.heads[kind]],
            }
            for kind, maps in record.attention.items()
        },
        "alignment": record.alignment,
        "edits": [edit.model_dump() for edit in record.edits],
        "before": None if record.before is None else tried_document(record.before),
        "cases": [
            {
                "edits": [edit.model_dump() for edit in case.edits],
                "source": case.source,
                "after": tried_document(case.after),
                "before": tried_document(case.before),
            }
            for case in record.cases
        ],
        "order": None if record.order is None else order_document(record.order),
        "inspected_step": record.step,
        "history": [plain(moment) for moment in record.history],
        "analyses": analyses_document(record.analyses, record.vocabulary),
        "arrays": dict(_entries(record, arrays)),
    }


def decoded(entries: dict[str, Any], name: str) -> NDArray[Any]:
    """An array of a document's `arrays`, in float32 or bool. Raises KeyError for one that isn't there."""
    entry = entries[name]
    if "same_as" in entry:
        return decoded(entries, entry["same_as"])
    if "sum_of" in entry:
        one, other = (decoded(entries, part) for part in entry["sum_of"])
        return one + other
    if "masked" in entry:
        scores, mask = (decoded(entries, part) for part in entry["masked"])
        return np.where(mask, scores, np.finfo(np.float32).min)
    shape, data = entry["shape"], base64.b64decode(entry["data"])
    if entry["dtype"] == "bool":
        return np.frombuffer(data, np.uint8).reshape(shape).astype(bool)
    if entry["dtype"] in ("float16", "float32"):
        return np.frombuffer(data, _FLOATS[entry["dtype"]]).reshape(shape).astype(np.float32)
    scales = np.frombuffer(base64.b64decode(entry["scales"]), "<f4").reshape(*shape[:-1], 1)
    return np.frombuffer(data, np.int8).reshape(shape) * scales


def _model(record: TranslationRecord) -> dict[str, Any]:
    config = record.config
    decoder_heads = config.decoder_num_heads or config.num_heads
    return {
        "source_language": record.source_language,
        "target_language": record.target_language,
        "config": {
            **config.to_dict(),
            "decoder_num_heads": decoder_heads,
            "decoder_d_ff": config.decoder_d_ff or config.d_ff,
        },
        "d_head": config.d_model // config.num_heads,
        "decoder_d_head": config.d_model // decoder_heads,
    }


def order_document(order: WordOrder) -> dict[str, Any]:
    """As a record has it."""
    return {
        "sentences": list(order.sentences),
        "with_positions": [tried_document(one) for one in order.with_positions],
        "without_positions": [tried_document(one) for one in order.without_positions],
        "tried": order.tried,
    }


def tried_document(tried: Tried) -> dict[str, Any]:
    """As a record has it."""
    return {"text": tried.text, "score": rounded(tried.score), "words": [plain(word) for word in tried.words]}


def _text(text: Text) -> dict[str, Any]:
    groups = word_groups(text.pieces)
    words = {place: number for number, group in enumerate(groups) for place in group}
    tokens = [{**dataclasses.asdict(token), "word": words[place]} for place, token in enumerate(text.tokens)]
    return {"text": text.text, "tokens": tokens}


def _step(record: TranslationRecord, number: int) -> dict[str, Any]:
    step = record.steps[number]
    return {
        "log_probability": rounded(step.log_probability),
        "rank": step.rank,
        "top": [
            {"id": id_, "piece": record.vocabulary[id_], "logit": rounded(logit), "probability": rounded(probability)}
            for id_, logit, probability in zip(step.ids, step.logits, step.probabilities, strict=True)
        ],
    }


def _beam(record: TranslationRecord, beam: BeamTree) -> dict[str, Any]:
    steps = [
        [{**plain(candidate), "piece": record.vocabulary[candidate.id]} for candidate in step] for step in beam.steps
    ]
    return {
        "beam_size": beam.beam_size,
        "length_penalty": beam.length_penalty,
        "steps": steps,
        "result": None if beam.result is None else list(beam.result),
        "finished": [plain(one) for one in beam.finished],
    }


def _entries(record: TranslationRecord, wanted: Arrays) -> Iterator[tuple[str, dict[str, Any]]]:
    analyses = dict(record.analyses.arrays())
    arrays = record.arrays
    if not isinstance(wanted, str):
        yield from _exact(record, wanted)
        return
    sums = dict(_sums(record))
    if wanted == "layers":
        arrays = {name: array for name, array in arrays.items() if name != "logits"}
    if wanted == "attention":
        arrays = {name: array for name, array in arrays.items() if name.endswith(".weights") or name in analyses}
    if wanted == "none":
        arrays = analyses
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
            yield name, {"dtype": "bool", "shape": list(array.shape), "data": _base64(array.astype(np.uint8))}
        else:
            yield name, _numbers(array, half or name in analyses or name.endswith((".scores", ".weights")))


def _exact(record: TranslationRecord, names: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Arrays by their names, in float32. Raises UserError."""
    for name in names:
        if name not in record.arrays:
            raise UserError(f"arrays: the record has no {name!r}")
        array = record.arrays[name]
        yield name, {"dtype": "float32", "shape": list(array.shape), "data": _base64(array.astype("<f4"))}


def _sums(record: TranslationRecord) -> Iterator[tuple[str, list[str]]]:
    """What is the sum of two other arrays: the input of each stack, and every residual sum."""
    for side, stack, sublayers in (
        ("source", "encoder", ("self", "feed_forward")),
        ("target", "decoder", ("self", "cross", "feed_forward")),
    ):
        before = f"{stack}.input"
        yield before, [f"{side}_embedding.scaled", f"{side}_positions"]
        for layer in range(record.config.encoder_layers if stack == "encoder" else record.config.decoder_layers):
            for sublayer in sublayers:
                name = f"{stack}.layers.{layer}.{sublayer}"
                output = f"{name if sublayer == 'feed_forward' else f'{name}_attention'}.output"
                yield f"{name}_residual.sum", [before, output]
                before = f"{name}_residual.{'sum' if record.config.norm == 'pre' else 'normalised'}"


def _numbers(array: NDArray[np.float32], half: bool) -> dict[str, Any]:
    shape = list(array.shape)
    largest = np.abs(array).max(axis=-1, keepdims=True, initial=0.0)
    if (half and largest.max(initial=0.0) <= LARGEST_HALF) or not np.isfinite(largest).all():
        return {"dtype": "float16", "shape": shape, "data": _base64(array.astype("<f2"))}
    scales = np.where(largest > 0.0, largest / 127.0, 1.0).astype("<f4")
    data = np.rint(array / scales).astype(np.int8)
    return {"dtype": "int8", "shape": shape, "data": _base64(data), "scales": _base64(scales)}


def _base64(array: NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
