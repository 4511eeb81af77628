"""What others train, to compare with, besides the peers of `headway bench`: the Transformer as a textbook writes it,
and the model of JoeyNMT. All have one vocabulary for both sides, and embeddings shared with the output layer."""

from __future__ import annotations

import importlib.util
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from headway.bench import peers as of_headway
from headway.bench.peers import PeerEmbedding
from headway.model import ModelConfig

PAD = 0


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
        self.embedding = PeerEmbedding(config)
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

    pad_index, unk_index, bos_index, eos_index, sep_index = PAD, 1, 2, 3, None
    specials, lang_tags = (), ()

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size


def peers() -> dict[str, type[nn.Module]]:
    """By name, those whose package is installed."""
    found: dict[str, type[nn.Module]] = {"textbook": Textbook, **of_headway.peers()}
    if importlib.util.find_spec("joeynmt"):
        found["JoeyNMT"] = JoeyNMT
    return found
