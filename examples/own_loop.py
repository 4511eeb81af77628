"""A training loop of your own on `Transformer`: the task is to reverse a sequence of numbers."""

import torch
from torch.nn import functional as F

from headway import ModelConfig, Transformer

NUMBERS, LENGTH = range(4, 14), 6


def batch(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sources with <eos>, 3, and their reversals. (size, LENGTH + 1), (size, LENGTH)"""
    numbers = torch.randint(NUMBERS.start, NUMBERS.stop, (size, LENGTH))
    return F.pad(numbers, (0, 1), value=3), numbers.flip(1)


@torch.inference_mode()
def greedy(model: Transformer, source: torch.Tensor) -> torch.Tensor:
    """The most probable token at each step. -> (batch, LENGTH)"""
    written = torch.full((len(source), 1), model.config.bos_id)
    for _ in range(LENGTH):
        written = torch.cat([written, model(source, written)[:, -1:].argmax(-1)], dim=1)
    return written[:, 1:]


def main(steps: int = 400) -> float:
    torch.manual_seed(1)
    model = Transformer(ModelConfig(NUMBERS.stop, NUMBERS.stop, 64, 4, 2, 2, 128, dropout=0.0, norm="pre"))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for source, target in (batch(64) for _ in range(steps)):
        logits = model(source, F.pad(target[:, :-1], (1, 0), value=model.config.bos_id))  # (64, LENGTH, vocabulary)
        model.zero_grad()
        F.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
        optimizer.step()
    source, target = batch(100)
    return float((greedy(model.eval(), source) == target).all(dim=1).float().mean())


if __name__ == "__main__":
    print(f"sequences reversed without a mistake: {main():.0%}")
