"""A loss of your own: focal loss (Lin et al., 2017) gives less weight to tokens that the model predicts well.

In this folder: headway train RECIPE training.loss=own_loss:FocalLoss
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from headway import ModelConfig, Transformer
from headway.model.packing import Packed
from headway.training.loss import TranslationLoss

GAMMA = 2.0


class FocalLoss(TranslationLoss):
    """Sum of -(1 - p)^GAMMA log p over the labels; in evaluation mode cross-entropy, so that runs can be compared."""

    def forward(self, source: Packed, target: Packed, labels: Tensor, *weighted: Tensor) -> Tensor:
        if not self.training:
            return super().forward(source, target, labels, *weighted)
        logits = self.model.output(self.model.packed_hidden_states(source, target))  # (rows, length, vocabulary)
        padding = self.model.config.pad_id
        surprise = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=padding, reduction="none")
        return ((1 - torch.exp(-surprise)) ** GAMMA * surprise).sum()


def main() -> tuple[float, float]:
    """Focal loss and cross-entropy of the same two tokens, by an untrained model."""
    torch.manual_seed(1)
    model = Transformer(ModelConfig.preset("tiny", source_vocab_size=100, target_vocab_size=100, dropout=0.0))
    sides = (torch.tensor([ids]) for ids in ([5, 6, 3], [2, 8]))  # of one sentence in a row of its own
    source, target = (Packed(ids, torch.ones_like(ids), torch.arange(ids.size(1))[None], ids.size(1)) for ids in sides)
    loss, labels = FocalLoss(model), torch.tensor([[8, 3]])
    return loss(source, target, labels).item(), loss.eval()(source, target, labels).item()


if __name__ == "__main__":
    print("focal loss {:.3f}, cross-entropy {:.3f}".format(*main()))
