"""The training loss: cross-entropy of the next token, teacher-forced, padding ignored."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from headway.model import Transformer


def cross_entropy(logits: Tensor, targets: Tensor, pad_id: int, label_smoothing: float = 0.0) -> Tensor:
    """Sum over all tokens that aren't padding, in nats. logits: (..., vocabulary), targets: (...) -> scalar.

    Label smoothing mixes the one-hot target with the uniform distribution over the vocabulary: epsilon / V each
    (section 5.4).
    """
    return F.cross_entropy(
        logits.flatten(0, -2).float(),
        targets.flatten(),
        ignore_index=pad_id,
        reduction="sum",
        label_smoothing=label_smoothing,
    )


def translation_loss(model: Transformer, source: Tensor, target: Tensor, label_smoothing: float = 0.0) -> Tensor:
    """Sum of the losses of a batch. source: (batch, source length) with <eos>; target: (batch, target length + 1) with
    <bos> and <eos>: the decoder reads all but the last place and is trained to give all but the first.

    Logits are computed only where the target isn't padding.
    """
    pad_id = model.config.pad_id
    read, given = target[:, :-1], target[:, 1:]
    hidden = model.hidden_states(source, read)
    real = given != pad_id
    return cross_entropy(model.output(hidden[real]), given[real], pad_id, label_smoothing)
