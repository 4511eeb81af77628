"""Peers to compare with: torch.nn.Transformer, and Marian of Hugging Face Transformers. Both have one vocabulary for
both sides, and embeddings shared with the output layer."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from headway.model import ModelConfig, SinusoidalPositions
from headway.text.tokenizer import BOS_ID, PAD_ID


class PeerEmbedding(nn.Module):
    """Token embeddings times sqrt(d_model), positions, dropout."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.target_vocab_size, config.d_model, padding_idx=PAD_ID)
        nn.init.normal_(self.tokens.weight, std=config.d_model**-0.5)
        self.positions = SinusoidalPositions(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) * math.sqrt(self.tokens.embedding_dim)
        return self.dropout(x + self.positions(ids.size(1)))


class TorchTransformer(nn.Module):
    """torch.nn.Transformer with embeddings, positions and an output layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embedding = PeerEmbedding(config)
        self.transformer = nn.Transformer(
            config.d_model,
            config.num_heads,
            config.encoder_layers,
            config.decoder_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
        )
        self.transformer.encoder.use_nested_tensor = False  # torch warns of them

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.logits(self.hidden(target, self.encode(source), source == PAD_ID))

    def encode(self, source: Tensor) -> Tensor:
        return self.transformer.encoder(self.embedding(source), src_key_padding_mask=source == PAD_ID)

    def hidden(self, target: Tensor, memory: Tensor, padding: Tensor) -> Tensor:
        """padding: where the source has it, (batch, source length)."""
        length = target.size(1)
        return self.transformer.decoder(
            self.embedding(target),
            memory,
            tgt_mask=torch.ones(length, length, dtype=torch.bool, device=target.device).triu(1),
            tgt_is_causal=True,
            memory_key_padding_mask=padding,
        )

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.embedding.tokens.weight)


class HuggingFaceMarian(nn.Module):
    """transformers.MarianMTModel, made from its configuration."""

    def __init__(self, config: ModelConfig, size: int | None = None, pad: int = PAD_ID, **others: Any) -> None:
        """size, pad, others: the vocabulary, its padding, and the other control symbols of MarianConfig, where they
        aren't headway's."""
        super().__init__()
        from transformers import MarianConfig, MarianMTModel  # pyright: ignore[reportMissingImports]

        self.pad = pad
        self.model = MarianMTModel(
            MarianConfig(
                vocab_size=size or config.target_vocab_size,
                d_model=config.d_model,
                encoder_layers=config.encoder_layers,
                decoder_layers=config.decoder_layers,
                encoder_attention_heads=config.num_heads,
                decoder_attention_heads=config.num_heads,
                encoder_ffn_dim=config.d_ff,
                decoder_ffn_dim=config.d_ff,
                activation_function="relu",
                dropout=config.dropout,
                attention_dropout=config.dropout,
                scale_embedding=True,
                pad_token_id=pad,
                **{"decoder_start_token_id": BOS_ID, **others},
            )
        )

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.model(
            input_ids=source, attention_mask=source != self.pad, decoder_input_ids=target, use_cache=False
        ).logits


def peers() -> dict[str, type[nn.Module]]:
    """By name, those whose package is installed: (batch, source length) with <eos> and (batch, target length) that
    begins with <bos>, both padded -> (batch, target length, vocabulary)."""
    found: dict[str, type[nn.Module]] = {"torch.nn.Transformer": TorchTransformer}
    if importlib.util.find_spec("transformers"):
        found["Hugging Face Marian"] = HuggingFaceMarian
    return found
