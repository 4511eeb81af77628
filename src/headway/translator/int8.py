"""Measures what int8 costs a model in quality: CTranslate2 translates validation text in fp32 and in int8."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from headway.errors import UserError
from headway.evaluation import compare_translations, evenly
from headway.storage import AnyModel, Int8Check, with_int8
from headway.translator.translator import Translator

FEWEST, MOST = 100, 1000
"""Validation pairs that are needed, and that are used, drawn evenly, where there are more."""


Model = TypeVar("Model", bound=AnyModel)


def judge_int8(
    model: Model, sources: Sequence[str], references: Sequence[str], tokenize: str, tell: Callable[[str], None]
) -> Model:
    """The model with the result of `check_int8`, or unchanged where that isn't possible. Tells which."""
    try:
        check = check_int8(model, sources, references, tokenize)
    except UserError as error:
        tell(f"notice: int8 isn't compared with fp32: {error}")
        return model
    tell(str(check))
    return with_int8(model, check)


def check_int8(model: AnyModel, sources: Sequence[str], references: Sequence[str], tokenize: str) -> Int8Check:
    """Scores the translations, by the model's own search options, against the references. tokenize: sacreBLEU's
    tokenisation for BLEU. Raises UserError for too few pairs, and where CTranslate2 can't run the model in int8."""
    if len(sources) < FEWEST:
        raise UserError(f"int8 needs {FEWEST} validation pairs or more to be compared with fp32, not {len(sources)}")
    texts, chosen = evenly(sources, MOST), evenly(references, MOST)
    int8, fp32 = (
        Translator(model, device="cpu", engine="ctranslate2", precision=precision).translate(texts)
        for precision in ("int8", "fp32")
    )
    systems = [one.text for one in int8], [one.text for one in fp32]
    found = compare_translations(*systems, chosen, tokenize)
    bleu, chrf = ([one.other, one.score, one.p_value or 0.0] for one in found)
    return Int8Check(
        len(texts), *(round(value, 6) for value in (*bleu, *chrf))
    )  # sacreBLEU's best is 100.00000000000004
