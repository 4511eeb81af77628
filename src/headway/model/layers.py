"""The layers of section 3.1 and 3.3: position-wise feed-forward, residual connection with layer normalisation,
encoder layer and decoder layer. Post-norm is the paper's; pre-norm is an option."""

from collections.abc import Callable
from typing import get_args

from torch import Tensor, nn
from torch.nn import functional as F

from headway.kernels.dropout import Dropout
from headway.model.attention import MultiHeadAttention
from headway.model.config import Activation, Norm

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "swish": F.silu}


class PositionwiseFeedForward(nn.Module):
    """FFN(x) = max(0, x W1 + b1) W2 + b2, equation 2: the same small network at every position."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0, activation: Activation = "relu") -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation={activation!r} must be one of {', '.join(ACTIVATIONS)}")
        self.activation = ACTIVATIONS[activation]
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_model) -> (..., d_model)"""
        hidden = self.activation(self.inner(x))  # (..., d_ff)
        return self.outer(self.dropout(hidden))


class Residual(nn.Module):
    """A sub-layer's surroundings: dropout on its output, the residual connection, layer normalisation (section 5.4)."""

    def __init__(self, d_model: int, dropout: float, norm: Norm) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)
        if norm not in get_args(Norm):
            raise ValueError(f"norm={norm!r} must be one of {', '.join(get_args(Norm))}")
        self.norm_first = norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """x: (..., d_model), sublayer: (..., d_model) -> the same shape -> as x."""
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        *,
        attention_dropout: float = 0.0,
        feedforward_dropout: float = 0.0,
        activation: Activation = "relu",
        norm: Norm = "post",
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads, attention_dropout)
        self.self_residual = Residual(d_model, dropout, norm)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, feedforward_dropout, activation)
        self.feed_forward_residual = Residual(d_model, dropout, norm)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x: (batch, length, d_model), mask: broadcastable to (batch, heads, length, length) -> as x."""
        x = self.self_residual(x, lambda y: self.self_attention(y, y, y, mask)[0])  # of (output, weights)
        return self.feed_forward_residual(x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output (`memory`), then feed-forward."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.1,
        *,
        attention_dropout: float = 0.0,
        feedforward_dropout: float = 0.0,
        activation: Activation = "relu",
        norm: Norm = "post",
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads, attention_dropout)
        self.self_residual = Residual(d_model, dropout, norm)
        self.cross_attention = MultiHeadAttention(d_model, num_heads, attention_dropout)
        self.cross_residual = Residual(d_model, dropout, norm)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, feedforward_dropout, activation)
        self.feed_forward_residual = Residual(d_model, dropout, norm)

    def forward(
        self, x: Tensor, memory: Tensor, target_mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        """x: (batch, target length, d_model), memory: (batch, source length, d_model) -> as x.

        Queries of the encoder-decoder attention come from x, its keys and values from `memory`.
        """
        x = self.self_residual(x, lambda y: self.self_attention(y, y, y, target_mask)[0])
        x = self.cross_residual(x, lambda y: self.cross_attention(y, memory, memory, memory_mask)[0])
        return self.feed_forward_residual(x, self.feed_forward)
