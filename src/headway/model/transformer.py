"""The Transformer of section 3: embeddings times sqrt(d_model) (`TokenEmbedding`) plus positions, a stack of encoder
layers, a stack of decoder layers, the output layer. `forward` is one sentence: the output of decode(encode(source))."""

import math
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from headway.errors import UserError
from headway.kernels.dropout import Dropout
from headway.lazy import load_named
from headway.model.config import ModelConfig, Norm
from headway.model.layers import DecoderLayer, EncoderLayer
from headway.model.masks import causal_mask, cross_mask, padding_mask, target_mask
from headway.model.packing import Packed
from headway.model.positions import LearnedPositions, SinusoidalPositions, fairseq_table, sinusoidal_table


class Encoder(nn.Module):
    """A stack of encoder layers on plain floats; knows no vocabulary. `options` are those of `EncoderLayer`."""

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, num_layers: int, *, norm: Norm = "post", **options: Any
    ) -> None:
        super().__init__()
        layers = (EncoderLayer(d_model, num_heads, d_ff, norm=norm, **options) for _ in range(num_layers))
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x: (batch, length, d_model), mask: broadcastable to (batch, heads, length, length) -> as x."""
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class Decoder(nn.Module):
    """A stack of decoder layers on plain floats; knows no vocabulary. `options` are those of `DecoderLayer`."""

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, num_layers: int, *, norm: Norm = "post", **options: Any
    ) -> None:
        super().__init__()
        layers = (DecoderLayer(d_model, num_heads, d_ff, norm=norm, **options) for _ in range(num_layers))
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()

    def forward(
        self, x: Tensor, memory: Tensor, target_mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        """x: (batch, target length, d_model), memory: (batch, source length, d_model) -> as x."""
        for layer in self.layers:
            x = layer(x, memory, target_mask, memory_mask)
        return self.norm(x)


class TokenEmbedding(nn.Embedding):
    """Embeddings scaled by sqrt(d_model), section 3.4."""

    def reset_parameters(self) -> None:
        """Normally distributed, until the `Transformer` initialises all its matrices."""
        if not self.weight.is_meta:  # nothing is to be drawn there, and torch would load its compiler for it
            super().reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """ids (...) -> (..., d_model)"""
        return super().forward(input) * math.sqrt(self.embedding_dim)


class Transformer(nn.Module):
    """Encoder and decoder with embeddings and output layer, from source and target ids to logits.

    A source sequence ends in <eos>. The decoder reads <bos> + target and is trained to give target + <eos>.
    Padding is found by the config's pad id and stands at the end of a row.
    """

    def __init__(self, config: ModelConfig, core: type[nn.Module] | None = None) -> None:
        """core: the class that `config.core` names (`own_core`), called with the number of heads and the dropout of
        attention. Raises UserError if it is missing, or has weights."""
        super().__init__()
        if (core is None) != (config.core is None):
            raise UserError(f"model.core is {config.core}, but core is {core}: give the class that model.core names")
        self.config = config
        layer_options = {
            "dropout": config.dropout,
            "attention_dropout": config.attention_dropout,
            "feedforward_dropout": config.feedforward_dropout,
            "activation": config.activation,
            "norm": config.norm,
        }
        self.source_embedding = TokenEmbedding(config.source_vocab_size, config.d_model)
        self.target_embedding = TokenEmbedding(config.target_vocab_size, config.d_model)
        self.source_positions = _positions(config)
        self.target_positions = _positions(config)
        self.source_norm, self.target_norm = (
            nn.LayerNorm(config.d_model) if config.norm_embeddings else nn.Identity() for _ in range(2)
        )
        self.embedding_dropout = Dropout(config.dropout)
        self.encoder = Encoder(config.d_model, config.num_heads, config.d_ff, config.encoder_layers, **layer_options)
        self.decoder = Decoder(
            config.d_model,
            config.decoder_num_heads or config.num_heads,
            config.decoder_d_ff or config.d_ff,
            config.decoder_layers,
            **layer_options,
        )
        if core is not None:
            layers: list[Any] = [*self.encoder.layers, *self.decoder.layers]
            for attention in (layer.self_attention for layer in layers):
                attention.core = core(attention.num_heads, config.attention_dropout)
                if not isinstance(attention.core, nn.Module) or attention.core.state_dict():
                    wanted = "must be a torch.nn.Module without parameters and persistent buffers"
                    raise UserError(f"core {config.core}: {wanted}")
        self.output = nn.Linear(config.d_model, config.target_vocab_size, bias=config.output_bias)
        if config.share_embeddings != "none":
            self.output.weight = self.target_embedding.weight
        if config.share_embeddings == "all":
            self.source_embedding.weight = self.target_embedding.weight
        for parameter in self.parameters():  # Xavier for every matrix; the paper names no initialisation
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def extra_repr(self) -> str:
        """The number of parameters, in the module's `repr`."""
        return f"{sum(parameter.numel() for parameter in self.parameters()):,} parameters"

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """source: (batch, source length), target: (batch, target length) -> logits (batch, target length, vocab)"""
        return self.output(self.hidden_states(source, target))

    def hidden_states(self, source: Tensor, target: Tensor) -> Tensor:
        """The input of the output layer. source: (batch, source length), target: (batch, target length)
        -> (batch, target length, d_model)"""
        source_mask = padding_mask(source, self.config.pad_id)
        memory = self.encode(source, source_mask)
        return self.decode(target, memory, target_mask(target, self.config.pad_id), cross_mask(source_mask))

    def packed_hidden_states(self, source: Packed, target: Packed) -> Tensor:
        """`hidden_states` of a batch whose rows are shared by several sentences (`headway.model.packing`). source:
        (rows, source length), target: (rows, target length) -> (rows, target length, d_model)"""
        x = self.source_norm(_embed_packed(source, self.source_embedding, self.source_positions))
        memory = self.encoder(self.embedding_dropout(x), source.visible_to(source))

        y = self.target_norm(_embed_packed(target, self.target_embedding, self.target_positions))
        ahead = causal_mask(target.ids.size(1), target.ids.device)
        return self.decoder(
            self.embedding_dropout(y), memory, target.visible_to(target) & ahead, source.visible_to(target)
        )

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """source: (batch, source length) -> memory (batch, source length, d_model)"""
        return self.encoder(self.embed_source(source), source_mask)

    def decode(
        self, target: Tensor, memory: Tensor, target_mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        """target: (batch, target length), memory: (batch, source length, d_model)
        -> hidden states (batch, target length, d_model); `output` makes logits of them."""
        return self.decoder(self.embed_target(target), memory, target_mask, memory_mask)

    def embed_source(self, source: Tensor) -> Tensor:
        """The input of the encoder: embeddings plus positions. (batch, length) -> (batch, length, d_model)"""
        x = self.source_embedding(source) + self.source_positions(source.size(1))
        return self.embedding_dropout(self.source_norm(x))

    def embed_target(self, target: Tensor) -> Tensor:
        """The input of the decoder. (batch, length) -> (batch, length, d_model)"""
        y = self.target_embedding(target) + self.target_positions(target.size(1))
        return self.embedding_dropout(self.target_norm(y))


def own_core(config: ModelConfig) -> type[nn.Module] | None:
    """Imports the class that `config.core` names: only for a config of the user's own. Raises UserError."""
    return load_named(config.core, "core", "class") if config.core else None


def _embed_packed(side: Packed, embedding: nn.Module, positions: nn.Module) -> Tensor:
    """Embeddings plus positions. -> (rows, length, d_model)"""
    return embedding(side.ids) + F.embedding(side.positions, positions(side.longest))


def _positions(config: ModelConfig) -> nn.Module:
    if config.positions == "learned":
        return LearnedPositions(config.max_length, config.d_model)
    table = fairseq_table if config.positions == "fairseq" else sinusoidal_table
    return SinusoidalPositions(config.d_model, table)
