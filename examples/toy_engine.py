"""Beam search on a model of your own: an `Engine` needs the methods start, step and select."""

import torch
from torch import Tensor

from headway.decoding import beam_search

WORDS = ["<bos>", "<eos>", "the", "cat", "dog", "sleeps", "barks"]
FOLLOWS = torch.tensor(  # probability of the column's word after the row's
    [
        [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.6, 0.4, 0.0, 0.0],
        [0.0, 0.4, 0.0, 0.0, 0.0, 0.5, 0.1],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.9],
        *2 * [[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]],
    ]
)


class Bigrams:
    """A language model of word pairs. It ignores its source and needs no state."""

    bos_id, eos_id = 0, 1

    def start(self, source: Tensor) -> None: ...

    def step(self, state: None, tokens: Tensor) -> Tensor:
        return FOLLOWS[tokens].log()  # (rows, vocabulary)

    def select(self, state: None, rows: Tensor) -> None: ...


def main(beam_size: int) -> str:
    [[best, *_]] = beam_search(Bigrams(), torch.zeros(1, 1), [5], beam_size=beam_size)
    return f"{' '.join(WORDS[word] for word in best.ids)} ({best.score:.2f})"


if __name__ == "__main__":
    print(f"greedy: {main(1)}; beam of 2: {main(2)}")
