"""Averages of weights: over the steps of a run (`MovingAverage`), or of finished models (`average_models`).

The mean of nearby weights is often a better model than each of them (Polyak and Juditsky, 1992; section 6.1 of the
paper averages the last checkpoints).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from headway.errors import UserError
from headway.model import Transformer
from headway.storage import load_model, save_model, with_int8
from headway.storage.stored_model import made_of, named_weights
from headway.text.subwords import fingerprint
from headway.training.optim import trained_weights


class MovingAverage:
    """average <- decay * average + (1 - decay) * weights after each step; the decay is smaller in the first steps."""

    def __init__(self, model: Transformer, decay: float) -> None:
        self._decay = decay
        self._pairs = {name: (weight, weight.detach().clone()) for name, weight in trained_weights(model).items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Includes the weights after this step, counted from 1."""
        decay = min(self._decay, step / (step + 9))  # so that the random start is soon forgotten
        weights, averages = zip(*self._pairs.values(), strict=True)
        torch._foreach_lerp_(averages, weights, 1.0 - decay)  # pyright: ignore[reportPrivateImportUsage]

    def named_tensors(self) -> dict[str, Tensor]:
        return {name: average for name, (_, average) in self._pairs.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        for name, average in self.named_tensors().items():
            average.copy_(tensors[name])

    @contextmanager
    def in_model(self) -> Iterator[None]:
        """Inside this context the model has the average as its weights."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for weight, average in self._pairs.values():
            weight.data, average.data = average.data, weight.data


def average_models(folders: Sequence[Path], output: Path) -> None:
    """Writes the model with the mean of these models' weights. Raises UserError if configs or vocabularies differ."""
    first = with_int8(load_model(folders[0]), None)
    sums = {name: tensor.double() for name, tensor in named_weights(first.model).items()}
    tokenizers = [fingerprint(one) for one in (first.source_tokenizer, first.target_tokenizer)]
    for folder in folders[1:]:
        other = load_model(folder)
        same_vocabulary = tokenizers == [fingerprint(one) for one in (other.source_tokenizer, other.target_tokenizer)]
        for name, is_same in (("model config", first.config == other.config), ("vocabulary", same_vocabulary)):
            if not is_same:
                raise UserError(f"{folder}: its {name} differs from that of {folders[0]}, so they can't be averaged")
        if first.training_flops is not None and other.training_flops is not None:
            first.training_flops = max(first.training_flops, other.training_flops)  # the work of a run includes all
        for name, tensor in named_weights(other.model).items():
            sums[name] += tensor
    means = {name: (total / len(folders)).float() for name, total in sums.items()}
    first.model = made_of(means, first.config)
    names = ", ".join(folder.name for folder in folders)
    note = f"The weights are the mean of those of {len(folders)} models ({names}); the scores above are of the first."
    first.calibration = None  # it knows the first model's probabilities
    first.card = f"{first.card.rstrip()}\n\n{note}\n"
    save_model(output, first)
