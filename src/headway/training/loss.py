"""The training loss: cross-entropy of the next token with teacher forcing, without padding."""

from torch import Tensor, nn

from headway.kernels.cross_entropy import output_cross_entropy
from headway.model import Transformer
from headway.model.packing import Packed


class TranslationLoss(nn.Module):
    """A model with its loss, all in `forward`, because wrappers for many devices (DDP, FSDP2) see only that."""

    def __init__(self, model: Transformer, label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing

    def forward(
        self, source: Packed, target: Packed, labels: Tensor, weights: Tensor | None = None, risk: Tensor | None = None
    ) -> Tensor:
        """Sum of the losses of a batch, in nats. source: tokens with <eos>. target: <bos> and the tokens except the
        last. labels: the next token for each target token, (rows, target length), or padding. weights: of each label,
        (rows, target length), for a weighted sum of cross-entropies. risk: (), a value that replaces this sum's, but
        not its gradient.

        Label smoothing, like dropout, applies only in training mode, and only without weights.
        """
        output = self.model.output
        loss = output_cross_entropy(
            self.model.packed_hidden_states(source, target).flatten(0, 1),
            output.weight,
            output.bias,
            labels.flatten(),
            self.label_smoothing if self.training and weights is None else 0.0,
            ignore_index=self.model.config.pad_id,
            weights=None if weights is None else weights.flatten(),
        )
        return loss if risk is None else loss - loss.detach() + risk
