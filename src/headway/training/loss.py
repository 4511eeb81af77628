"""The training loss: cross-entropy of the next token, teacher-forced, padding ignored."""

from __future__ import annotations

from torch import Tensor, nn

from headway.kernels.cross_entropy import output_cross_entropy
from headway.model import Transformer
from headway.model.packing import Packed


class TranslationLoss(nn.Module):
    """A model with its loss: ids in, loss out.

    All of it happens inside `forward`, because that is what wrappers for many devices (DDP, FSDP2) see. A loss that
    runs the model more than once belongs here too.
    """

    def __init__(self, model: Transformer, label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing

    def forward(self, source: Packed, target: Packed, labels: Tensor) -> Tensor:
        """Sum of the losses of a batch, in nats. source: tokens with <eos>, target: <bos> with the tokens before the
        last, labels: the token after each of the target's, (rows, target length), padding where there is none.

        Label smoothing, like dropout, is for training alone: in evaluation mode the loss is the plain cross-entropy.
        """
        output = self.model.output
        hidden = self.model.packed_hidden_states(source, target)
        smoothing = self.label_smoothing if self.training else 0.0
        return output_cross_entropy(
            hidden.flatten(0, 1),
            output.weight,
            output.bias,
            labels.flatten(),
            smoothing,
            ignore_index=self.model.config.pad_id,
        )
