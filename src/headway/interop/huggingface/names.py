"""What things are called there: the files of a directory, the fields of a config, every weight."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from headway.model import Transformer

CONFIG_FILE, GENERATION_FILE, TOKENIZER_FILE = "config.json", "generation_config.json", "tokenizer_config.json"
WEIGHTS_FILE, CARD_FILE = "model.safetensors", "README.md"
VOCABULARY_FILES = {"source": "vocab.json", "target": "target_vocab.json"}
SAME_FIELDS = {
    "d_model": "d_model",
    "encoder_layers": "encoder_layers",
    "decoder_layers": "decoder_layers",
    "num_heads": "encoder_attention_heads",
    "d_ff": "encoder_ffn_dim",
    "max_length": "max_position_embeddings",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "feedforward_dropout": "activation_dropout",
}
"""Fields of ModelConfig that are fields of theirs."""
LENGTH_PENALTY_FACTOR = 0.8
"""Hugging Face divides a score by length^penalty, we by GNMT's ((5 + length) / 6)^alpha. With 0.8 alpha the one grows
as fast as the other at 20 tokens."""
SHARED, SOURCE, TARGET, OUTPUT, BIAS = (
    "model.shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
    "final_logits_bias",
)
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")


class WeightName(NamedTuple):
    """A weight as they have it."""

    name: str
    residual: int | None
    """The dimension that is a channel of the residual stream, if there is one."""


_MODULES = {
    "self_attention": "self_attn",
    "cross_attention": "encoder_attn",
    "self_residual.norm": "self_attn_layer_norm",
    "cross_residual.norm": "encoder_attn_layer_norm",
    "feed_forward_residual.norm": "final_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "out_proj",
}
_WRITERS = ("output", "outer")
"""Layers whose outputs are added to the residual stream; all others read it."""


def layer_weights(model: Transformer) -> dict[str, WeightName]:
    """Every weight of encoder and decoder, by our name."""
    found = {}
    for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        for name, module in stack.named_modules():
            if isinstance(module, (nn.Linear, nn.LayerNorm)):
                writes = isinstance(module, nn.LayerNorm) or name.endswith(_WRITERS)
                for kind, reads in (("weight", 1), ("bias", None)):
                    theirs = f"model.{side}.{_their_module(name)}.{kind}"
                    found[f"{side}.{name}.{kind}"] = WeightName(theirs, 0 if writes else reads)
    return found


def _their_module(name: str) -> str:
    if name == "norm":
        return "layer_norm"
    _, index, inner = name.split(".", maxsplit=2)
    theirs = _MODULES.get(inner) or ".".join(_MODULES[part] for part in inner.split("."))
    return f"layers.{index}.{theirs}"


def sines_first(d_model: int) -> Tensor:
    """For each channel of theirs the channel of ours. (d_model,)"""
    channels = torch.arange(d_model)
    return torch.cat([channels[0::2], channels[1::2]])


def embedding_matrices(shared: bool, tied: bool) -> list[tuple[str, ...]]:
    """The names of each of the matrices of embeddings and output layer; those of one matrix together."""
    if shared:
        return [(SHARED, SOURCE, TARGET, OUTPUT)] if tied else [(SHARED, SOURCE, TARGET), (OUTPUT,)]
    return [(SOURCE,), (TARGET, OUTPUT)] if tied else [(SOURCE,), (TARGET,), (OUTPUT,)]
