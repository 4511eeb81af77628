"""The model of "Attention Is All You Need" (Vaswani et al., 2017), every block usable alone."""

from typing import TYPE_CHECKING

from headway.lazy import lazy_names

if TYPE_CHECKING:
    from headway.model.attention import MultiHeadAttention, ScaledDotProductAttention, attend
    from headway.model.config import ModelConfig
    from headway.model.layers import DecoderLayer, EncoderLayer, PositionwiseFeedForward, Residual
    from headway.model.masks import causal_mask, cross_mask, padding_mask, target_mask
    from headway.model.positions import LearnedPositions, SinusoidalPositions
    from headway.model.transformer import Decoder, Encoder, TokenEmbedding, Transformer

__all__ = [
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "LearnedPositions",
    "ModelConfig",
    "MultiHeadAttention",
    "PositionwiseFeedForward",
    "Residual",
    "ScaledDotProductAttention",
    "SinusoidalPositions",
    "TokenEmbedding",
    "Transformer",
    "attend",
    "causal_mask",
    "cross_mask",
    "padding_mask",
    "target_mask",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    attention="MultiHeadAttention ScaledDotProductAttention attend",
    config="ModelConfig",
    layers="DecoderLayer EncoderLayer PositionwiseFeedForward Residual",
    masks="causal_mask cross_mask padding_mask target_mask",
    positions="LearnedPositions SinusoidalPositions",
    transformer="Decoder Encoder TokenEmbedding Transformer",
)
