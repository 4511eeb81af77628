"""The training loss: cross-entropy of the next token, teacher-forced, padding ignored."""

from __future__ import annotations

from torch import Tensor, nn

from headway.kernels.cross_entropy import output_cross_entropy
from headway.model import Transformer


class TranslationLoss(nn.Module):
    """A model with its loss: ids in, loss out.

    All of it happens inside `forward`, because that is what wrappers for many devices (DDP, FSDP2) see. A loss that
    runs the model more than once belongs here too.
    """

    def __init__(self, model: Transformer, label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Sum of the losses of a batch, in nats. source: (batch, source length) with <eos>; target:
        (batch, target length + 1) with <bos> and <eos>: the decoder reads all but the last place and is trained to
        give all but the first.

        Logits are computed only where the target isn't padding. Label smoothing, like dropout, is for training alone:
        in evaluation mode the loss is the plain cross-entropy.
        """
        read, given = target[:, :-1], target[:, 1:]
        hidden = self.model.hidden_states(source, read)  # (batch, target length, d_model)
        real = given != self.model.config.pad_id
        output, smoothing = self.model.output, self.label_smoothing if self.training else 0.0
        return output_cross_entropy(hidden[real], output.weight, output.bias, given[real], smoothing)
