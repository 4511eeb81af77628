"""An engine that is a table, and the scores of every translation that it has."""

import itertools

import torch

BOS, EOS, SYMBOLS, STEPS = 0, 1, 5, 4


class TableEngine:
    """Next-token log-probabilities that depend on all tokens so far, drawn once for each history."""

    bos_id, eos_id = BOS, EOS

    def __init__(self, seed: int) -> None:
        self.seed, self.steps = seed, 0

    def log_probabilities(self, history: tuple[int, ...]) -> torch.Tensor:
        generator = torch.Generator().manual_seed(hash((self.seed, *history)) % 2**31)
        return (2 * torch.randn(SYMBOLS, generator=generator)).log_softmax(-1)

    def start(self, source):
        return {"histories": [()] * source.size(0)}

    def step(self, state, tokens):
        self.steps += 1
        state["histories"] = [
            (*history, token) for history, token in zip(state["histories"], tokens.tolist(), strict=True)
        ]
        return torch.stack([self.log_probabilities(history) for history in state["histories"]])

    def select(self, state, rows):
        state["histories"] = [state["histories"][row] for row in rows.flatten().tolist()]


def exhaustive(engine: TableEngine, cap: int) -> dict[tuple[int, ...], float]:
    """The score of every translation of 1 to `cap` tokens, <eos> included."""
    scores = {}
    for length in range(1, cap + 1):
        for ids in itertools.product([token for token in range(SYMBOLS) if token != EOS], repeat=length):
            history, score = (BOS,), 0.0
            for token in (*ids, EOS):
                score += engine.log_probabilities(history)[token].item()
                history = (*history, token)
            scores[ids] = score
    return scores
