"""Hugging Face's names, for both directions: the files of a directory, the fields of a config, every weight."""

from typing import Any

import torch
from torch import Tensor

from headway.model.config import Activation, ModelConfig
from headway.model.shapes import weight_shapes

CONFIG_FILE, GENERATION_FILE, TOKENIZER_FILE = "config.json", "generation_config.json", "tokenizer_config.json"
WEIGHTS_FILE, CARD_FILE = "model.safetensors", "README.md"
VOCABULARY_FILES = {"source": "vocab.json", "target": "target_vocab.json"}
MODELS: dict[str, dict[str, Any]] = {
    "marian": {"norm": "post", "positions": "sinusoidal", "norm_embeddings": False},
    "pegasus": {"norm": "pre", "positions": "sinusoidal", "norm_embeddings": False},
    "m2m_100": {"norm": "pre", "positions": "fairseq", "norm_embeddings": False},
    "mbart": {"norm": "pre", "positions": "learned", "norm_embeddings": True},
}
"""Fields of ModelConfig that a model_type has."""
LEARNED_OFFSET = 2
"""Rows of mBART's learned positions that no token has."""
SENTENCEPIECE_FILE = "sentencepiece.bpe.model"
ACTIVATIONS: dict[str, Activation] = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
"""`ModelConfig.activation` of each activation_function."""
SAME_FIELDS = {
    **{name: name for name in ("d_model", "encoder_layers", "decoder_layers")},
    **{"num_heads": "encoder_attention_heads", "d_ff": "encoder_ffn_dim", "max_length": "max_position_embeddings"},
    **{"dropout": "dropout", "attention_dropout": "attention_dropout", "feedforward_dropout": "activation_dropout"},
}
"""Hugging Face's fields for those of ModelConfig."""
DECODER_FIELDS = {"num_heads": "decoder_attention_heads", "d_ff": "decoder_ffn_dim"}
"""Hugging Face's fields for `decoder_num_heads` and `decoder_d_ff`, which are None if equal to the encoder's."""
LENGTH_PENALTY_FACTOR = 0.8
"""Hugging Face divides a score by length^penalty, headway by GNMT's ((5 + length) / 6)^alpha. With 0.8 alpha both grow
equally fast at 20 tokens."""
SHARED, BIAS = "model.shared.weight", "final_logits_bias"
SOURCE, TARGET = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
OUTPUT = "lm_head.weight"
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
_MODULES = {
    **{"self_attention": "self_attn", "cross_attention": "encoder_attn"},
    **{"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"},
    **{"self_residual.norm": "self_attn_layer_norm", "cross_residual.norm": "encoder_attn_layer_norm"},
    **{"feed_forward_residual.norm": "final_layer_norm", "feed_forward.inner": "fc1", "feed_forward.outer": "fc2"},
}
_BEFORE_LAYERS = {
    **{"source_norm": "encoder.layernorm_embedding", "target_norm": "decoder.layernorm_embedding"},
    **{"source_positions": "encoder.embed_positions", "target_positions": "decoder.embed_positions"},
}
_WRITERS = ("norm", "output", "outer")
"""Layers whose outputs are channels of the residual stream, or added to it; all others read it."""


def weight_names(config: ModelConfig) -> dict[str, tuple[str, int | None]]:
    """Hugging Face's name of each weight, by headway's, and the dimension that is a channel of the residual stream, if
    there is one. A shared weight has all of its names."""
    alternates = config.positions == "sinusoidal"
    matrices = {"source_embedding.weight": SOURCE, "target_embedding.weight": TARGET, "output.weight": OUTPUT}
    found = {own: (name, 1 if alternates else None) for own, name in matrices.items()}
    if config.output_bias:
        found["output.bias"] = (BIAS, None)
    for weight in weight_shapes(config):
        side, *inner, kind = weight.split(".")
        if side in ("encoder", "decoder"):
            layer, parts = inner[:2], inner[2:]  # of the last norm: norm
            module = _MODULES.get(".".join(parts)) or ".".join(_MODULES[part] for part in parts)
            path = ".".join([*layer, module]) if parts else "layer_norm"
            residual = 0 if inner[-1] in _WRITERS else 1 if kind == "weight" else None
            found[weight] = (f"model.{side}.{path}.{kind}", residual if alternates else None)
        elif side in _BEFORE_LAYERS:
            found[weight] = (f"model.{_BEFORE_LAYERS[side]}.{kind}", None)
    return found


def embedding_matrices(shared: bool, tied: bool) -> list[tuple[str, ...]]:
    """The names of each matrix of embeddings and output layer; those of one matrix together."""
    if shared:
        return [(SHARED, SOURCE, TARGET, OUTPUT)] if tied else [(SHARED, SOURCE, TARGET), (OUTPUT,)]
    return [(SOURCE,), (TARGET, OUTPUT)] if tied else [(SOURCE,), (TARGET,), (OUTPUT,)]


def sines_first(d_model: int) -> Tensor:
    """Headway's channel for each of Hugging Face's. (d_model,)"""
    channels = torch.arange(d_model)
    return torch.cat([channels[0::2], channels[1::2]])
