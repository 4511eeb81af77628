"""What int8 costs a model in quality: CTranslate2 translates validation text in fp32 and in int8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headway.errors import UserError
from headway.evaluation import compare_translations
from headway.storage import Int8Check, with_int8
from headway.translator.translator import Translator

if TYPE_CHECKING:
    from headway.storage import StoredModel

FEWEST, MOST = 100, 1000
"""Pairs that it takes, and that it translates of more; it draws these evenly."""


def judge_int8(
    stored: StoredModel, sources: Sequence[str], references: Sequence[str], tokenize: str, tell: Callable[[str], None]
) -> StoredModel:
    """The model with what `check_int8` finds; as it is where that isn't possible. Tells which."""
    try:
        check = check_int8(stored, sources, references, tokenize)
    except UserError as error:
        tell(f"notice: int8 isn't compared with fp32: {error}")
        return stored
    tell(str(check))
    return with_int8(stored, check)


def check_int8(stored: StoredModel, sources: Sequence[str], references: Sequence[str], tokenize: str) -> Int8Check:
    """Compares the translations, by the model's own search options, with the references; tokenize: sacreBLEU's, of
    BLEU. Raises UserError for too few pairs, and where CTranslate2 can't run the model, or not in int8."""
    if len(sources) < FEWEST:
        raise UserError(f"int8 needs {FEWEST} validation pairs or more to be compared with fp32, not {len(sources)}")
    count = min(len(sources), MOST)
    chosen = [i * len(sources) // count for i in range(count)]
    int8, fp32 = (
        [one.text for one in translator.translate([sources[i] for i in chosen])]
        for precision in ("int8", "fp32")
        for translator in [Translator(stored, device="cpu", engine="ctranslate2", precision=precision)]
    )
    bleu, chrf = compare_translations(int8, fp32, [references[i] for i in chosen], tokenize)
    assert bleu.p_value is not None
    assert chrf.p_value is not None
    return Int8Check(
        pairs=count,
        fp32_bleu=bleu.other,
        int8_bleu=bleu.score,
        bleu_p_value=bleu.p_value,
        fp32_chrf=chrf.other,
        int8_chrf=chrf.score,
        chrf_p_value=chrf.p_value,
    )
