"""The size and shape of a Transformer: one frozen record, checked when it is made, and the named presets.

Table 3 of "Attention Is All You Need" (Vaswani et al., 2017) gives `base` and `big`; the other presets are ours.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, get_args

Activation = Literal["relu", "gelu", "swish"]
Norm = Literal["post", "pre"]
PositionKind = Literal["sinusoidal", "learned"]
Sharing = Literal["all", "decoder", "none"]

PRESETS: dict[str, dict[str, Any]] = {
    "textbook": {
        "d_model": 256,
        "num_heads": 8,
        "encoder_layers": 3,
        "decoder_layers": 3,
        "d_ff": 512,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "feedforward_dropout": 0.1,
        "positions": "learned",
        "max_length": 100,
        "share_embeddings": "none",
        "output_bias": True,
    },
    "tiny": {"d_model": 128, "num_heads": 4, "encoder_layers": 4, "decoder_layers": 4, "d_ff": 256},
    "small": {"d_model": 256, "num_heads": 8, "encoder_layers": 3, "decoder_layers": 3, "d_ff": 512},
    "base": {},
    "big": {"d_model": 1024, "num_heads": 16, "d_ff": 4096, "dropout": 0.3},
}

IMPOSSIBLE = -1e4
"""Output bias of a token that an imported model doesn't have: its probability is 0 exactly."""


@dataclass(frozen=True)
class ModelConfig:
    """The sizes and options of a `Transformer`. An impossible combination raises one ValueError that names the fields.

    Sizes have limits far beyond any Transformer that was ever trained, so that a config from an untrusted source can't
    ask for absurd amounts of memory. Dropouts are probabilities in [0, 1). `None` for a decoder field means "as the
    encoder".
    """

    source_vocab_size: int
    """Number of tokens in the source vocabulary, control symbols included."""
    target_vocab_size: int
    """Number of tokens in the target vocabulary; equal to the source's if embeddings are shared."""
    d_model: int = 512
    """Width of every hidden state."""
    num_heads: int = 8
    """Number of attention heads; must divide `d_model`."""
    encoder_layers: int = 6
    """Number of layers in the encoder."""
    decoder_layers: int = 6
    """Number of layers in the decoder."""
    d_ff: int = 2048
    """Inner width of the position-wise feed-forward network."""
    decoder_num_heads: int | None = None
    """Attention heads in the decoder; by default as many as in the encoder."""
    decoder_d_ff: int | None = None
    """Inner width of the decoder's feed-forward networks; by default that of the encoder's."""
    dropout: float = 0.1
    """Dropout on the output of every sub-layer, and on the sum of embedding and position (section 5.4)."""
    attention_dropout: float = 0.0
    """Dropout on the attention weights; the paper has none."""
    feedforward_dropout: float = 0.0
    """Dropout inside the feed-forward network, after its activation; the paper has none."""
    activation: Activation = "relu"
    """Activation in the feed-forward network: `relu` (the paper's), `gelu` or `swish`."""
    norm: Norm = "post"
    """Place of layer normalisation. `post` is the paper's LayerNorm(x + Sublayer(x)), `pre` is x +
    Sublayer(LayerNorm(x))."""
    positions: PositionKind = "sinusoidal"
    """Positional encoding: `sinusoidal` (the paper's, section 3.5) or `learned` vectors."""
    max_length: int = 1024
    """Maximum length of a sequence on either side, in tokens, the start or end symbol included."""
    share_embeddings: Sharing = "all"
    """Matrices that are shared (section 3.4): `all` three of source embedding, target embedding and output layer, those
    of the `decoder`, or `none`."""
    output_bias: bool = False
    """Whether the output layer adds a bias to its logits."""
    pad_id: int = 0
    """Id of the padding at the end of rows; it is never attended to and never trained on."""
    unk_id: int = 1
    """Id of a word that isn't in the vocabulary."""
    bos_id: int = 2
    """Id that the decoder reads first; may be the pad id, as in Marian's models."""
    eos_id: int = 3
    """Id at the end of every source and every target."""

    def __post_init__(self) -> None:
        self._check_types()
        self._check_ranges()

    def _check_types(self) -> None:
        for name, kinds in _FIELD_KINDS.items():
            value = getattr(self, name)
            if (isinstance(value, bool) and bool not in kinds) or not isinstance(value, kinds):
                wanted = " or ".join("none" if kind is type(None) else kind.__name__ for kind in kinds)
                raise ValueError(f"{name}={value!r}: must be of type {wanted}")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name}={getattr(self, name)!r}: must be one of {', '.join(choices)}")

    def _check_ranges(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name}={value}: must be at least {least}")
        for name, most in _MOST.items():
            value = getattr(self, name)
            if value is not None and value > most:
                raise ValueError(f"{name}={value}: must be at most {most}")
        for name in ("num_heads", "decoder_num_heads"):
            heads = getattr(self, name)
            if heads is not None and self.d_model % heads:
                raise ValueError(f"d_model={self.d_model} is not divisible by {name}={heads}")
        for name in ("dropout", "attention_dropout", "feedforward_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(f"{name}={getattr(self, name)}: must be at least 0 and less than 1")
        for name, side in _CONTROL_IDS:
            size = getattr(self, f"{side}_vocab_size")
            if not 0 <= getattr(self, name) < size:
                raise ValueError(f"{name}={getattr(self, name)}: must be an id below {side}_vocab_size={size}")
        if self.pad_id == self.eos_id:
            raise ValueError(f"pad_id and eos_id are both {self.pad_id}: a sentence could never be trained to end")
        if self.share_embeddings == "all" and self.source_vocab_size != self.target_vocab_size:
            raise ValueError(
                f"share_embeddings='all' needs one vocabulary, but source_vocab_size={self.source_vocab_size} and "
                f"target_vocab_size={self.target_vocab_size} differ; use 'decoder' or 'none', or a joint tokenizer"
            )

    @classmethod
    def preset(cls, name: str, **changes: Any) -> ModelConfig:
        """The named preset with some fields changed; both vocabulary sizes are always among them."""
        if name not in PRESETS:
            raise ValueError(f"preset {name!r} is unknown; there are {', '.join(PRESETS)}")
        return cls.from_dict({**PRESETS[name], **changes})

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> ModelConfig:
        """The inverse of `to_dict`; an unknown or missing field is a ValueError."""
        unknown = sorted(set(fields) - {field.name for field in dataclasses.fields(cls)})
        if unknown:
            raise ValueError(f"unknown model field {unknown[0]!r}")
        missing = [name for name in ("source_vocab_size", "target_vocab_size") if name not in fields]
        if missing:
            raise ValueError(f"model field {missing[0]!r} is missing")
        return cls(**fields)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


_LEAST = {
    "source_vocab_size": 1,
    "target_vocab_size": 1,
    "d_model": 1,
    "num_heads": 1,
    "decoder_num_heads": 1,
    "d_ff": 1,
    "decoder_d_ff": 1,
    "encoder_layers": 0,
    "decoder_layers": 0,
    "max_length": 1,
}
_MOST = {
    "source_vocab_size": 2**24,
    "target_vocab_size": 2**24,
    "d_model": 2**16,
    "d_ff": 2**20,
    "decoder_d_ff": 2**20,
    "encoder_layers": 256,
    "decoder_layers": 256,
    "max_length": 2**20,
}
_CONTROL_IDS = [(name, "target") for name in ("pad_id", "unk_id", "bos_id", "eos_id")]
_CONTROL_IDS += [(name, "source") for name in ("pad_id", "unk_id", "eos_id")]
_OPTIONAL = ("decoder_num_heads", "decoder_d_ff")
_CHOICES: dict[str, tuple[str, ...]] = {
    "activation": get_args(Activation),
    "norm": get_args(Norm),
    "positions": get_args(PositionKind),
    "share_embeddings": get_args(Sharing),
}


def _kinds_of(field: dataclasses.Field[Any]) -> tuple[type, ...]:
    if field.name in _OPTIONAL:
        return (int, type(None))
    if field.name in _CHOICES:
        return (str,)
    if isinstance(field.default, bool):
        return (bool,)
    if isinstance(field.default, float):
        return (int, float)
    return (int,)


_FIELD_KINDS = {field.name: _kinds_of(field) for field in dataclasses.fields(ModelConfig)}
