"""The size and shape of a Transformer: one frozen record, checked when it is made, and the named presets.

Table 3 of "Attention Is All You Need" (Vaswani et al., 2017) gives `base` and `big`; others are for less text.
"""

import dataclasses
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from headway.errors import raises_user_error

Activation = Literal["relu", "gelu", "swish"]
Norm = Literal["post", "pre"]
PositionKind = Literal["sinusoidal", "learned", "fairseq"]
Sharing = Literal["all", "decoder", "none"]
PresetName = Literal["textbook", "tiny", "small", "base", "big"]

PRESETS: dict[PresetName, dict[str, Any]] = {
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


VocabSize = Annotated[int, Field(ge=1, le=2**24)]
Width = Annotated[int, Field(ge=1, le=2**16)]
InnerWidth = Annotated[int, Field(ge=1, le=2**20)]
Heads = Annotated[int, Field(ge=1)]
Layers = Annotated[int, Field(ge=0, le=256)]
MaxLength = Annotated[int, Field(ge=1, le=2**20)]
Dropout = Annotated[float, Field(ge=0, lt=1)]
ControlId = Annotated[int, Field(ge=0)]
_CONTROL_IDS = [(name, "target") for name in ("pad_id", "unk_id", "bos_id", "eos_id")]
_CONTROL_IDS += [(name, "source") for name in ("pad_id", "unk_id", "eos_id")]


@raises_user_error
@dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class ModelConfig:
    """The sizes and options of a `Transformer`. An impossible combination raises one UserError that names the fields.

    Sizes have limits far beyond any Transformer that was ever trained, so that a config from an untrusted source can't
    ask for absurd amounts of memory. Dropouts are probabilities in [0, 1). `None` for a decoder field means "as the
    encoder".
    """

    source_vocab_size: VocabSize
    """Number of tokens in the source vocabulary, control symbols included."""
    target_vocab_size: VocabSize
    """Number of tokens in the target vocabulary; equal to the source's if embeddings are shared."""
    d_model: Width = 512
    """Width of every hidden state."""
    num_heads: Heads = 8
    """Number of attention heads; must divide `d_model`."""
    encoder_layers: Layers = 6
    """Number of layers in the encoder."""
    decoder_layers: Layers = 6
    """Number of layers in the decoder."""
    d_ff: InnerWidth = 2048
    """Inner width of the position-wise feed-forward network."""
    decoder_num_heads: Heads | None = None
    """Attention heads in the decoder; by default as many as in the encoder."""
    decoder_d_ff: InnerWidth | None = None
    """Inner width of the decoder's feed-forward networks; by default that of the encoder's."""
    dropout: Dropout = 0.1
    """Dropout on the output of every sub-layer, and on the sum of embedding and position (section 5.4)."""
    attention_dropout: Dropout = 0.0
    """Dropout on the attention weights; the paper has none."""
    feedforward_dropout: Dropout = 0.0
    """Dropout inside the feed-forward network, after its activation; the paper has none."""
    activation: Activation = "relu"
    """Activation in the feed-forward network: `relu` (the paper's), `gelu` or `swish`."""
    norm: Norm = "post"
    """Place of layer normalisation. `post` is the paper's LayerNorm(x + Sublayer(x)), `pre` is x +
    Sublayer(LayerNorm(x))."""
    positions: PositionKind = "sinusoidal"
    """Positional encoding: `sinusoidal` (the paper's, section 3.5), `learned` vectors, or `fairseq`, as in M2M-100 and
    NLLB: the sinusoids of the authors' own code, all sines before all cosines, counted from 2."""
    norm_embeddings: bool = False
    """Whether the sum of embedding and position is normalised before the first layer, as in mBART; the paper's
    isn't."""
    max_length: MaxLength = 1024
    """Maximum length of a sequence on either side, in tokens, the start or end symbol included."""
    share_embeddings: Sharing = "all"
    """Matrices that are shared (section 3.4): `all` three of source embedding, target embedding and output layer, those
    of the `decoder`, or `none`."""
    output_bias: bool = False
    """Whether the output layer adds a bias to its logits."""
    pad_id: ControlId = 0
    """Id of the padding at the end of rows; it is never attended to and never trained on."""
    unk_id: ControlId = 1
    """Id of a word that isn't in the vocabulary."""
    bos_id: ControlId = 2
    """Id that the decoder reads first; may be the pad id, as in Marian's models."""
    eos_id: ControlId = 3
    """Id at the end of every source and every target."""
    core: str | None = None
    """Class of your own, `module:Class`, that computes self-attention in place of `ScaledDotProductAttention`. Its code
    is not part of the model."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for name in ("num_heads", "decoder_num_heads"):
            heads = getattr(self, name)
            if heads is not None and self.d_model % heads:
                raise ValueError(f"d_model={self.d_model} is not divisible by {name}={heads}")
        for name, side in _CONTROL_IDS:
            size = getattr(self, f"{side}_vocab_size")
            if getattr(self, name) >= size:
                raise ValueError(f"{name}={getattr(self, name)}: must be an id below {side}_vocab_size={size}")
        if self.pad_id == self.eos_id:
            raise ValueError(f"pad_id and eos_id are both {self.pad_id}: a sentence could never be trained to end")
        if self.share_embeddings == "all" and self.source_vocab_size != self.target_vocab_size:
            raise ValueError(
                f"share_embeddings='all' needs one vocabulary, but source_vocab_size={self.source_vocab_size} and "
                f"target_vocab_size={self.target_vocab_size} differ; use 'decoder' or 'none', or a joint tokenizer"
            )
        return self

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """The named preset with some fields changed; both vocabulary sizes are always among them."""
        if name not in PRESETS:
            raise ValueError(f"preset {name!r} is unknown; there are {', '.join(PRESETS)}")
        return cls(**{**PRESETS[name], **changes})

    def to_dict(self) -> dict[str, Any]:
        """All fields, for `ModelConfig(**fields)`; `core` and `norm_embeddings` only where a model has them."""
        rare = [name for name in ("core", "norm_embeddings") if not getattr(self, name)]
        return {name: value for name, value in dataclasses.asdict(self).items() if name not in rare}
