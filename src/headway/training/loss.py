"""The training loss: cross-entropy of the next token with teacher forcing, without padding. Optionally with SimCut's
term, which makes predictions depend less on single tokens (Gao et al. 2022, https://arxiv.org/abs/2206.02368).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headway.kernels.cross_entropy import output_cross_entropy
from headway.model import Transformer
from headway.model.packing import Packed


class TranslationLoss(nn.Module):
    """A model with its loss: ids in, loss out.

    Everything happens inside `forward`, because wrappers for many devices (DDP, FSDP2) see only that. A loss that runs
    the model more than once belongs here, too.
    """

    def __init__(
        self,
        model: Transformer,
        label_smoothing: float = 0.0,
        *,
        consistency: float = 0.0,
        cutoff_probability: float = 0.0,
    ) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.consistency = consistency
        self.cutoff_probability = cutoff_probability

    def forward(self, source: Packed, target: Packed, labels: Tensor, weights: Tensor | None = None) -> Tensor:
        """Sum of the losses of a batch, in nats. source: tokens with <eos>. target: <bos> and the tokens except the
        last. labels: for each target token the next one, (rows, target length), with padding where there is none.
        weights: of each label, (rows, target length), for a weighted sum of plain cross-entropies.

        Label smoothing and consistency, like dropout, apply only in training: in evaluation mode the loss is the plain
        cross-entropy. For consistency the rows go through the model twice, in one batch, the second time with random
        tokens cut off on both sides. The Kullback-Leibler divergence of the second predictions from the
        first, times `consistency`, is added to the loss of the first.
        """
        config, output = self.model.config, self.model.output
        smoothing, consistency = (
            (self.label_smoothing, self.consistency) if self.training and weights is None else (0.0, 0.0)
        )
        if consistency:
            source = self._twice(source, config.eos_id)
            target = self._twice(target, config.bos_id)
        hidden = self.model.packed_hidden_states(source, target)
        return output_cross_entropy(
            hidden.flatten(0, 1),
            output.weight,
            output.bias,
            labels.flatten(),
            smoothing,
            ignore_index=config.pad_id,
            consistency=consistency,
            weights=None if weights is None else weights.flatten(),
        )

    def _twice(self, side: Packed, never_cut: int) -> Packed:
        """The rows as they are, and once more with random tokens cut off, all but the control symbol `never_cut`."""
        cut = torch.rand(side.ids.shape, device=side.ids.device) < self.cutoff_probability  # (rows, length)
        cut &= side.ids != never_cut
        return Packed(
            ids=side.ids.repeat(2, 1),
            sentences=side.sentences.repeat(2, 1),
            positions=side.positions.repeat(2, 1),
            longest=side.longest,
            cut=torch.cat([torch.zeros_like(cut), cut]),
        )
