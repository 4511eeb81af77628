"""Greedy search over an `Engine`, on ids alone, and the loop that it shares with sampling."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from headway.decoding.constraints import Constraints
from headway.decoding.engine import Engine, rows_to_keep, without_end
from headway.decoding.searcher import Hypothesis
from headway.kernels.likeliest import likeliest


def greedy(
    engine: Engine, source: Tensor, max_lengths: Sequence[int], constraints: Constraints | None = None
) -> list[Hypothesis]:
    """Takes the most likely token at each step, until <eos> or until a sentence has reached its max_length. None is
    empty.

    source: (batch, source length), padded and with <eos>. A finished sentence leaves the batch.
    """
    return extend(
        engine, source, max_lengths, constraints, lambda log_probabilities, _: likeliest(log_probabilities, 1)[1][:, 0]
    )


def extend(
    engine: Engine,
    source: Tensor,
    max_lengths: Sequence[int],
    constraints: Constraints | None,
    choose: Callable[[Tensor, Sequence[int]], Tensor],
) -> list[Hypothesis]:
    """Adds to each row the token that `choose` takes from log-probabilities (rows, vocabulary) and sentences."""
    state = engine.start(source)
    hypotheses = [Hypothesis([], 0.0, "max_length") for _ in max_lengths]
    running = list(range(len(hypotheses)))  # the sentence of each row
    going_on = list(running)  # the rows that are not at their end
    tokens = torch.full((len(running), 1), engine.bos_id, device=source.device)  # (rows, length)
    while going_on:
        log_probabilities = engine.step(state, tokens[:, -1])  # (rows, vocabulary)
        if tokens.size(1) == 1:
            log_probabilities = without_end(log_probabilities, engine.eos_id)
        if constraints is not None:
            log_probabilities = constraints.apply(log_probabilities, tokens, running)
        chosen = choose(log_probabilities, running)[:, None]  # (rows, 1)
        scores = log_probabilities.gather(1, chosen)
        tokens = torch.cat([tokens, chosen], dim=1)
        chosen_tokens, chosen_scores = chosen[:, 0].tolist(), scores[:, 0].tolist()
        before, going_on = going_on, []
        for row in before:
            hypothesis, token, score = hypotheses[running[row]], chosen_tokens[row], chosen_scores[row]
            if token == engine.eos_id:
                hypothesis.score, hypothesis.stopped = hypothesis.score + score, "eos"
            elif len(hypothesis.ids) < max_lengths[running[row]]:
                hypothesis.score += score
                hypothesis.ids.append(token)
                going_on.append(row)
            else:
                hypothesis.score += log_probabilities[row, engine.eos_id].item()
        staying = rows_to_keep(going_on, len(running))
        if len(staying) < len(running):
            running = [running[row] for row in staying]
            rows = torch.tensor(staying, dtype=torch.long, device=source.device)
            tokens, going_on = tokens[rows], list(range(len(going_on)))
            engine.select(state, rows[:, None])
    return hypotheses
