"""A comparison of a model's translations in int8 and in fp32. config.json keeps it under `int8`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from headway.errors import UserError

SURE = 0.05
"""A p-value below this makes a difference certain, at 95%."""
NEGLIGIBLE = 0.3
"""BLEU that int8 may lose even where the loss is certain."""
OPENING = "On CPU in int8 "
"""The first words of the card's sentence."""


@dataclass(frozen=True)
class Int8Check:
    """Scores of CTranslate2's translations of the same text in fp32 and in int8, by the model's own search options."""

    pairs: int
    fp32_bleu: float
    int8_bleu: float
    bleu_p_value: float
    """How likely chance alone makes a difference as large, by a paired bootstrap."""
    fp32_chrf: float
    int8_chrf: float
    chrf_p_value: float

    @property
    def accepted(self) -> bool:
        """Whether int8 is certainly worse by neither score, or loses a negligible amount of BLEU."""
        bleu, chrf = self.int8_bleu - self.fp32_bleu, self.int8_chrf - self.fp32_chrf
        is_worse = (bleu < 0 and self.bleu_p_value < SURE) or (chrf < 0 and self.chrf_p_value < SURE)
        return not is_worse or bleu > -NEGLIGIBLE

    def __str__(self) -> str:
        return (
            f"{OPENING}it translates {'as well as' if self.accepted else 'worse than'} in fp32: BLEU "
            f"{self.int8_bleu:.2f} and {self.fp32_bleu:.2f} (p = {self.bleu_p_value:.2f}), chrF {self.int8_chrf:.2f} "
            f"and {self.fp32_chrf:.2f} (p = {self.chrf_p_value:.2f}), over {self.pairs:,} validation pairs."
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, document: Any) -> Int8Check:
        """Raises UserError."""
        if not isinstance(document, dict) or document.keys() != cls.__annotations__.keys():
            raise UserError(f"int8 must have the members {', '.join(cls.__annotations__)}")
        for name, value in document.items():
            kinds, least, most = (int, float), 0, 1 if name.endswith("p_value") else 100
            if name == "pairs":
                kinds, least, most = (int,), 1, 2**53
            if type(value) not in kinds or not least <= value <= most:
                raise UserError(
                    f"int8: {name} must be {'a whole' if most > 100 else 'a'} number from {least} to {most}"
                )
        return cls(**document)
