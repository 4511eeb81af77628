"""What others train, to compare with: the Transformer as a textbook writes it, torch.nn.Transformer, Marian of Hugging
Face Transformers, and the model of JoeyNMT. All have one vocabulary for both sides,
and embeddings shared with the output layer."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from headway.model import ModelConfig, SinusoidalPositions

PAD, BOS = 0, 2

LogitsOf = Callable[[Tensor, Tensor], Tensor]
"""(batch, source length) with <eos> and (batch, target length) that begins with <bos>, both padded
-> (batch, target length, vocabulary)"""


class Embedding(nn.Module):
    """Token embeddings times sqrt(d_model), positions, dropout."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.target_vocab_size, config.d_model, padding_idx=PAD)
        nn.init.normal_(self.tokens.weight, std=config.d_model**-0.5)
        self.positions = SinusoidalPositions(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) * math.sqrt(self.tokens.embedding_dim)
        return self.dropout(x + self.positions(ids.size(1)))


class TextbookAttention(nn.Module):
    """Four linear layers, scores, a mask, softmax: a line each."""

    def __init__(self, d_model: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query, self.key, self.value, self.output = (nn.Linear(d_model, d_model) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        batch, _, d_model = query.shape
        q, k, v = (
            layer(x).view(batch, -1, self.num_heads, d_model // self.num_heads).transpose(1, 2)
            for layer, x in ((self.query, query), (self.key, key), (self.value, value))
        )
        scores = (q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))).masked_fill(~mask, -1e9)
        heads = self.dropout(scores.softmax(dim=-1)) @ v
        return self.output(heads.transpose(1, 2).reshape(batch, -1, d_model))


class TextbookLayer(nn.Module):
    """Of the encoder, or of the decoder where it has cross-attention; post-norm."""

    def __init__(self, config: ModelConfig, *, cross: bool) -> None:
        super().__init__()
        d_model, dropout = config.d_model, config.dropout
        self.attention = TextbookAttention(d_model, config.num_heads, dropout)
        self.cross_attention = TextbookAttention(d_model, config.num_heads, dropout) if cross else None
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, config.d_ff), nn.ReLU(), nn.Dropout(dropout), nn.Linear(config.d_ff, d_model)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3 if cross else 2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor, memory: Tensor | None = None, memory_mask: Tensor | None = None):
        norms = iter(self.norms)
        x = next(norms)(x + self.dropout(self.attention(x, x, x, mask)))
        if self.cross_attention is not None:
            x = next(norms)(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)))
        return next(norms)(x + self.dropout(self.feed_forward(x)))


class Textbook(nn.Module):
    """The whole model in the way that courses write it: masks made anew, logits at every place."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embedding = Embedding(config)
        self.encoder = nn.ModuleList(TextbookLayer(config, cross=False) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(TextbookLayer(config, cross=True) for _ in range(config.decoder_layers))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, memory_mask = self.encode(source)
        return self.decode(target, memory, memory_mask)

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        mask = (source != PAD)[:, None, None]
        memory = self.embedding(source)
        for layer in self.encoder:
            memory = layer(memory, mask)
        return memory, mask

    def decode(self, target: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
        no_future = torch.ones(target.size(1), target.size(1), dtype=torch.bool).tril()
        mask = (target != PAD)[:, None, None] & no_future
        x = self.embedding(target)
        for layer in self.decoder:
            x = layer(x, mask, memory, memory_mask)
        return F.linear(x, self.embedding.tokens.weight)


class TorchTransformer(nn.Module):
    """torch.nn.Transformer with embeddings, positions and an output layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embedding = Embedding(config)
        self.transformer = nn.Transformer(
            config.d_model,
            config.num_heads,
            config.encoder_layers,
            config.decoder_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
        )

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        no_future = torch.ones(target.size(1), target.size(1), dtype=torch.bool).triu(1)
        padding = source == PAD
        hidden = self.transformer(
            self.embedding(source),
            self.embedding(target),
            tgt_mask=no_future,
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return F.linear(hidden, self.embedding.tokens.weight)


class HuggingFaceMarian(nn.Module):
    """transformers.MarianMTModel, made from its configuration."""

    def __init__(self, config: ModelConfig, size: int | None = None, pad: int = PAD, **others: Any) -> None:
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
                **{"decoder_start_token_id": BOS, **others},
            )
        )

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.model(
            input_ids=source, attention_mask=source != self.pad, decoder_input_ids=target, use_cache=False
        ).logits


class JoeyNMT(nn.Module):
    """The model of JoeyNMT, without what its trainer does beside: log-probabilities of their own for an accuracy."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        from joeynmt.model import build_model  # pyright: ignore[reportMissingImports]

        vocabulary = _Vocabulary(config.target_vocab_size)
        embeddings = {"embedding_dim": config.d_model, "scale": True}
        side = {
            "type": "transformer",
            "hidden_size": config.d_model,
            "ff_size": config.d_ff,
            "num_heads": config.num_heads,
            "dropout": config.dropout,
            "layer_norm": config.norm,
            "embeddings": embeddings,
        }
        self.model = build_model(
            {
                "encoder": {**side, "num_layers": config.encoder_layers},
                "decoder": {**side, "num_layers": config.decoder_layers},
                "tied_embeddings": True,
                "tied_softmax": True,
                "initializer": "xavier_uniform",
                "embed_initializer": "xavier_uniform",
                "bias_initializer": "zeros",
            },
            vocabulary,
            vocabulary,
        )

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        logits, *_ = self.model._encode_decode(
            src=source,
            trg_input=target,
            src_mask=(source != PAD).unsqueeze(1),
            src_length=(source != PAD).sum(dim=1),
            trg_mask=(target != PAD).unsqueeze(1),
        )
        return logits


class _Vocabulary:
    """What JoeyNMT's model asks of a vocabulary."""

    pad_index, unk_index, bos_index, eos_index, sep_index = PAD, 1, BOS, 3, None
    specials, lang_tags = (), ()

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size


def peers() -> dict[str, type[nn.Module]]:
    """By name, those whose package is installed."""
    found: dict[str, type[nn.Module]] = {"textbook": Textbook, "torch.nn.Transformer": TorchTransformer}
    if importlib.util.find_spec("transformers"):
        found["Hugging Face Marian"] = HuggingFaceMarian
    if importlib.util.find_spec("joeynmt"):
        found["JoeyNMT"] = JoeyNMT
    return found
