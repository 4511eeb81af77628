"""Which attention of a model aligns words: what config.json says of it under `alignment`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from headway.errors import UserError
from headway.model.config import ModelConfig


@dataclass(frozen=True)
class Aligner:
    """The encoder-decoder attention that aligns target tokens with source tokens. By default the mean of all layers
    and heads."""

    layer: int | None = None
    """Of the decoder, from 0; None: the mean of all."""
    head: int | None = None
    """From 0; None: the mean of all."""
    shifted: bool = False
    """Whether a target token is aligned by the step that reads it, not by the step before, which gives it."""
    eos_is_nothing: bool = False
    """Whether a target token that looks at <eos> most is aligned with nothing. Otherwise <eos> is left out."""

    def __str__(self) -> str:
        heads = "the mean of its heads" if self.head is None else f"head {self.head}"
        where = "the mean of all layers and heads" if self.layer is None else f"layer {self.layer}, {heads}"
        when = "the step that reads a token" if self.shifted else "the step that gives a token"
        return f"{where}, in {when}" + (", <eos> is nothing" if self.eos_is_nothing else "")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, document: Any, config: ModelConfig) -> Aligner:
        """Of a model of this config. Raises UserError."""
        limits = {"layer": config.decoder_layers, "head": config.decoder_num_heads or config.num_heads}
        if not isinstance(document, dict) or document.keys() != asdict(cls()).keys():
            raise UserError(f"alignment must have the members {', '.join(asdict(cls()))}")
        for name, value in document.items():
            if name not in limits:
                if not isinstance(value, bool):
                    raise UserError(f"alignment: {name} must be true or false")
            elif value is not None and (type(value) is not int or not 0 <= value < limits[name]):
                raise UserError(f"alignment: {name} must be null or 0 to {limits[name] - 1}")
        return cls(**document)
