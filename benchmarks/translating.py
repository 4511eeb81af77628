"""How fast is greedy search? The cached decoder against the textbook's loop, which runs the whole model for each token.

    python benchmarks/translating.py [--sentences 100]

One untrained model of preset small, the same sentences and the same number of tokens for both; sentences a second, and
whether both gave the same ids.
"""

from __future__ import annotations

import argparse
import time

import torch

from headway.decoding import TorchEngine, greedy
from headway.model import ModelConfig, Transformer

VOCABULARY = 8000
LENGTH = 14


@torch.inference_mode()
def textbook(model: Transformer, source: torch.Tensor) -> list[int]:
    """One sentence: memory once, then the whole target through the decoder for each token."""
    memory = model.encode(source)
    target = torch.tensor([[model.config.bos_id]])
    for _ in range(LENGTH):
        hidden = model.decode(target, memory, torch.ones(1, 1, target.size(1), target.size(1), dtype=torch.bool).tril())
        token = model.output(hidden[:, -1:]).argmax(-1)
        target = torch.cat([target, token], dim=1)
    return target[0, 1:].tolist()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=100)
    count: int = parser.parse_args().sentences
    torch.manual_seed(1)
    config = ModelConfig.preset("small", source_vocab_size=VOCABULARY, target_vocab_size=VOCABULARY, output_bias=True)
    model = Transformer(config).eval()
    with torch.no_grad():
        model.output.bias.zero_()
        model.output.bias[config.eos_id] = -1e9  # so that every translation has LENGTH tokens
    sources = torch.randint(4, VOCABULARY, (count, LENGTH))
    engine = TorchEngine(model)

    start = time.perf_counter()
    slow = [textbook(model, source[None]) for source in sources]
    middle = time.perf_counter()
    fast = [
        hypothesis.ids
        for first in range(0, count, 64)
        for hypothesis in greedy(engine, sources[first : first + 64], [LENGTH] * len(sources[first : first + 64]))
    ]
    end = time.perf_counter()
    same = sum(a == b for a, b in zip(slow, fast, strict=True))
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, preset small, {LENGTH} tokens a sentence, fp32"
    )
    print(f"textbook loop          {count / (middle - start):8.1f} sentences/s")
    print(f"headway, batches of 64 {count / (end - middle):8.1f} sentences/s")
    print(f"ratio                  {(middle - start) / (end - middle):8.1f}   same ids: {same} of {count}")


if __name__ == "__main__":
    main()
