"""Search over an `Engine`, on ids alone: from source ids to the ids of a translation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from headway.decoding.engine import Engine

Stopped = Literal["eos", "max_length"]


@dataclass
class Hypothesis:
    """A translation as ids, without control ids."""

    ids: list[int]
    score: float
    """Total log-probability, that of <eos> included where the translation ended by it."""
    stopped: Stopped


def greedy(engine: Engine, source: Tensor, max_lengths: list[int]) -> list[Hypothesis]:
    """Takes the likeliest token at each step until <eos>, or until a sentence has its max_length of tokens.

    source: (batch, source length), padded and with <eos>. A finished sentence leaves the batch.
    """
    state = engine.start(source)
    hypotheses = [Hypothesis([], 0.0, "max_length") for _ in max_lengths]
    running = list(range(len(hypotheses)))  # the sentence of each row
    tokens = torch.full((len(running),), engine.bos_id, device=source.device)
    while running:
        best = engine.step(state, tokens).max(dim=-1)  # (rows,) values and indices
        going_on = []
        for row, (sentence, token, score) in enumerate(
            zip(running, best.indices.tolist(), best.values.tolist(), strict=True)
        ):
            hypothesis = hypotheses[sentence]
            hypothesis.score += score
            if token == engine.eos_id:
                hypothesis.stopped = "eos"
                continue
            hypothesis.ids.append(token)
            if len(hypothesis.ids) < max_lengths[sentence]:
                going_on.append(row)
        tokens = best.indices
        if len(going_on) < len(running):
            running = [running[row] for row in going_on]
            rows = torch.tensor(going_on, dtype=torch.long, device=source.device)
            tokens = tokens[rows]
            engine.select(state, rows)
    return hypotheses
