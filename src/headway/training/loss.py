"""The training loss: cross-entropy of the next token, teacher-forced, padding ignored."""

from __future__ import annotations

from collections.abc import Sequence

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

    def forward(self, sources: Sequence[Tensor], targets: Sequence[Tensor]) -> Tensor:
        """Sum of the losses of a batch, in nats. The batch is one bucket or several, each of sentences of like length:
        source ids (sentences, source length) with <eos>, and target ids (sentences, target length + 1) with <bos> and
        <eos>, of which the decoder reads all but the last place and is trained to give all but the first.

        Label smoothing, like dropout, is for training alone: in evaluation mode the loss is the plain cross-entropy.
        """
        pad_id, output = self.model.config.pad_id, self.model.output
        hidden, layout = self.model.ragged_hidden_states(sources, [target[:, :-1] for target in targets])
        given = layout.join([target[:, 1:] for target in targets], unused=pad_id)  # (rows,)
        smoothing = self.label_smoothing if self.training else 0.0
        return output_cross_entropy(hidden, output.weight, output.bias, given, smoothing, ignore_index=pad_id)
