"""What the page is asked of fifty records by computing.js."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.errors import UserError
from headway.insight.what_if import HeadOff
from headway.page import ShownRecord
from headway.translator import Translator
from tests.page.scripts import Script
from tests.page.test_sentences import INPUTS, WORDS

ANALYSES = ["erasure", "contributions", "contrast", "logit_lens", "decoder_lens", "faithfulness"]
BEAM = 4
KINDS = {"encoder": "Encoder self-attention", "decoder": "Decoder self-attention", "cross": "Cross-attention"}


@dataclass(frozen=True)
class Told:
    """A record, the question about it, and what the page says."""

    record: ShownRecord
    asked: dict[str, Any]
    said: dict[str, Any]


def ask_all(door: Translator, script: Script) -> list[Told]:
    """Fifty records and what the page says of each."""
    chance = np.random.default_rng(7)
    found = []
    for number in range(INPUTS):
        text = " ".join(chance.choice(WORDS, chance.integers(2, 8)))
        analyses: list[Any] = list(ANALYSES)
        if number % 5 == 0:
            analyses.append({"kind": "head_importance", "pairs": [[text, "a dog"], ["the mat", "the cat"]]})
        heads = [one_head(chance, door) for _ in range(3)]
        cases = [[HeadOff.model_validate(one)] for one in heads]
        patches = patched(chance, door, text) if number % 3 == 0 else []
        record = door.inspect(text, cases=cases, analyses=[*analyses, *patches], beam_size=BEAM)
        steps = len(record.target.tokens)
        cells = [one_cell(chance, record, kind, part) for kind in KINDS for part in ("scores", "output", "queries")]
        settings = (
            {"temperature": 0.5, "topK": 7, "topP": 0.85} if number % 2 else {"temperature": 1.5, "topK": 7, "topP": 1}
        )
        asked = {
            "record": record.to_dict(),
            "language": "en",
            "cells": cells,
            "heads": [{name: one[name] for name in ("kind", "layer", "head")} for one in cells[::3]],
            "settings": [{"step": int(chance.integers(steps)), **settings}],
        }
        found.append(Told(record, asked, script.ask(asked)))
    return found


def one_head(chance: np.random.Generator, door: Translator) -> dict[str, Any]:
    kind, config = chance.choice(list(KINDS)), door.model.config
    layers, heads = config.decoder_layers, config.decoder_num_heads
    if kind == "encoder":
        layers, heads = config.encoder_layers, config.num_heads
    layer, head = int(chance.integers(layers)), int(chance.integers(heads))
    return {"kind": "head_off", "attention": str(kind), "layer": layer, "head": head}


def one_cell(chance: np.random.Generator, record: ShownRecord, kind: str, part: str) -> dict[str, Any]:
    layers, heads, rows, columns = np.stack(record.attention[kind]).shape
    columns = {"scores": columns}.get(part, record.config.d_model // heads)
    sizes = {"layer": layers, "head": heads, "row": rows, "column": columns}
    return {"kind": kind, "part": part, **{name: int(chance.integers(size)) for name, size in sizes.items()}}


def patched(chance: np.random.Generator, door: Translator, text: str) -> list[Any]:
    """The analysis of another sentence of as many tokens, if one is found with which the model goes on otherwise."""
    words = text.split()
    for _ in range(6):
        other = " ".join(chance.permutation(words) if chance.random() < 0.5 else chance.choice(WORDS, len(words)))
        asked = {"kind": "patching", "other": other}
        try:
            door.inspect(text, analyses=[asked], beam_size=BEAM)
        except UserError:
            continue
        return [asked]
    return []
