"""How fast is a training step? headway against torch.nn.Transformer of the same size, on the same batches.

    python benchmarks/training.py [--rounds 5]

Alternating rounds in one process, medians, target tokens a second, and the ratio. Both run whole steps: forward, loss,
backward, clipping, Adam. The peer runs as its users run it (fp32, dropout by torch, batches pooled by length).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from headway.devices import keep_large_allocations, pick_device, training_dtype
from headway.model import ModelConfig, SinusoidalPositions, Transformer, padding_mask
from headway.training.loss import translation_loss
from headway.training.optim import make_optimizer

VOCABULARY = 8000
STEPS = 8


class PeerTransformer(nn.Module):
    """torch.nn.Transformer with embeddings, positions and a shared output layer."""

    def __init__(self, d_model: int, num_heads: int, layers: int, d_ff: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, d_model)
        self.positions = SinusoidalPositions(d_model)
        self.transformer = nn.Transformer(d_model, num_heads, layers, layers, d_ff, 0.1, batch_first=True)
        self.dropout = nn.Dropout(0.1)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        hidden_source, hidden_target = (
            self.dropout(self.embedding(ids) * self.embedding.embedding_dim**0.5 + self.positions(ids.size(1)))
            for ids in (source, target)
        )
        no_future = torch.ones(target.size(1), target.size(1), dtype=torch.bool).triu(1)
        padding = ~padding_mask(source, 0)[:, 0, 0]
        hidden = self.transformer(
            hidden_source,
            hidden_target,
            tgt_mask=no_future,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return F.linear(hidden, self.embedding.weight)


def batches() -> list[tuple[Tensor, Tensor]]:
    """Sentences of like length together, about 4,096 padded tokens on both sides, as in Multi30K."""
    random = torch.Generator().manual_seed(1)
    made = []
    for length in torch.randint(8, 24, (STEPS,), generator=random).tolist():
        rows = 4096 // (2 * length)
        source, target = (torch.randint(4, VOCABULARY, (rows, length), generator=random) for _ in range(2))
        target[:, 0] = 2
        made.append((source, target))
    return made


def stepper(model: nn.Module, loss_of: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], None]:
    optimizer = make_optimizer(model, beta2=0.98)  # type: ignore[arg-type]

    def step(source: Tensor, target: Tensor) -> None:
        (loss_of(source, target) / target[:, 1:].numel()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds: int = parser.parse_args().rounds
    device = pick_device("cpu")
    keep_large_allocations(device)
    dtype = training_dtype("auto", device)
    config = ModelConfig.preset("small", source_vocab_size=VOCABULARY, target_vocab_size=VOCABULARY)
    ours, peer = (
        Transformer(config),
        PeerTransformer(config.d_model, config.num_heads, config.encoder_layers, config.d_ff),
    )

    def our_loss(source: Tensor, target: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            return translation_loss(ours, source, target, 0.1)

    def peer_loss(source: Tensor, target: Tensor) -> Tensor:
        logits = peer(source, target[:, :-1])
        return F.cross_entropy(
            logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0, label_smoothing=0.1, reduction="sum"
        )

    steppers = {"headway": stepper(ours, our_loss), "torch.nn.Transformer": stepper(peer, peer_loss)}
    work = batches()
    tokens = sum(target[:, 1:].numel() for _, target in work)
    speeds: dict[str, list[float]] = {name: [] for name in steppers}
    for round_ in range(rounds + 1):
        for name, step in steppers.items():
            start = time.perf_counter()
            for source, target in work:
                step(source, target)
            if round_:  # the first warms up
                speeds[name].append(tokens / (time.perf_counter() - start))
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, preset small, {VOCABULARY} pieces, {dtype}")
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    for name, median in medians.items():
        print(f"{name:<22} {median:8,.0f} target tokens/s")
    print(f"ratio                  {medians['headway'] / medians['torch.nn.Transformer']:8.2f}")


if __name__ == "__main__":
    main()
