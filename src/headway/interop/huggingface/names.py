"""What things are called there, for both directions: the files of a directory, the fields of a config, every weight."""

from __future__ import annotations

import torch
from torch import Tensor

from headway.model.config import Activation, ModelConfig, Norm
from headway.model.shapes import weight_shapes

CONFIG_FILE, GENERATION_FILE, TOKENIZER_FILE = "config.json", "generation_config.json", "tokenizer_config.json"
WEIGHTS_FILE, CARD_FILE = "model.safetensors", "README.md"
VOCABULARY_FILES = {"source": "vocab.json", "target": "target_vocab.json"}
NORMS: dict[str, Norm] = {"marian": "post", "pegasus": "pre"}
"""`ModelConfig.norm` of each model_type."""
ACTIVATIONS: dict[str, Activation] = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
"""Ours by theirs."""
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
DECODER_FIELDS = {"num_heads": "decoder_attention_heads", "d_ff": "decoder_ffn_dim"}
"""Theirs of the decoder, where ours has `decoder_num_heads` and `decoder_d_ff` if it differs from the encoder."""
SEARCH_OPTIONS = {
    "beam_size": "num_beams",
    "length_penalty": "length_penalty",
    "max_length": "max_length",
    "no_repeat_ngram": "no_repeat_ngram_size",
}
"""Theirs of ours."""
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
_WRITERS = ("norm", "output", "outer")
"""Layers whose outputs are channels of the residual stream, or added to it; all others read it."""


def weight_names(config: ModelConfig) -> dict[str, tuple[str, int | None]]:
    """Every weight by our name, one that several modules share by each of its names: their name, and the dimension that
    is a channel of the residual stream, if there is one."""
    found: dict[str, tuple[str, int | None]] = {
        "source_embedding.weight": (SOURCE, 1),
        "target_embedding.weight": (TARGET, 1),
        "output.weight": (OUTPUT, 1),
    }
    if config.output_bias:
        found["output.bias"] = (BIAS, None)
    for mine in weight_shapes(config):
        side, name = mine.split(".", maxsplit=1)
        if side in ("encoder", "decoder"):
            name, kind = name.rsplit(".", maxsplit=1)
            reads = 1 if kind == "weight" else None
            residual = 0 if name.endswith(_WRITERS) else reads
            found[mine] = (f"model.{side}.{_their_module(name)}.{kind}", residual)
    return found


def _their_module(name: str) -> str:
    if name == "norm":
        return "layer_norm"
    _, index, inner = name.split(".", maxsplit=2)
    theirs = _MODULES.get(inner) or ".".join(_MODULES[part] for part in inner.split("."))
    return f"layers.{index}.{theirs}"


def embedding_matrices(shared: bool, tied: bool) -> list[tuple[str, ...]]:
    """The names of each of the matrices of embeddings and output layer; those of one matrix together."""
    if shared:
        return [(SHARED, SOURCE, TARGET, OUTPUT)] if tied else [(SHARED, SOURCE, TARGET), (OUTPUT,)]
    return [(SOURCE,), (TARGET, OUTPUT)] if tied else [(SOURCE,), (TARGET,), (OUTPUT,)]


def sines_first(d_model: int) -> Tensor:
    """For each channel of theirs the channel of ours. (d_model,)"""
    channels = torch.arange(d_model)
    return torch.cat([channels[0::2], channels[1::2]])
