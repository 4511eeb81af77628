"""The pair that translates each text of a request: of the languages in the request, or by detection."""

from __future__ import annotations

from collections.abc import Sequence

from headway.documents import TextFormat
from headway.errors import UserError
from headway.languages import read_code, same_language
from headway.serving.pairs import Pair, Pairs
from headway.serving.refusals import refusal
from headway.serving.service import Service
from headway.text.detection import Detected

AUTO = "auto"
NEAR = 0.5
"""Share of the highest confidence that a translatable language needs to be preferred."""
UNDETERMINED = "und"
"""ISO 639's code for an undetermined language."""


async def choose(
    service: Service, texts: Sequence[str], source: str, target: str, format_: TextFormat = "text", *, is_list: bool
) -> tuple[list[Pair | None], list[Detected] | None]:
    """The pair for each text, None for one that stays as it is, and with `auto` the language detected in each. A single
    text in a language that isn't translated is refused; in a list it stays as it is, so that the others get their
    translations. Raises HTTPException."""
    pairs = service.pairs
    known = same_language(target, pairs.targets())
    if known is None:
        raise refusal(400, f"target: unknown; choose one of {', '.join(pairs.targets())}")
    target = known
    candidates = pairs.sources(target)
    if source.lower() != AUTO:
        pair = pairs.find(same_language(source, candidates) or source, target)
        if pair is None:
            raise refusal(400, f"source: into {target} there are {', '.join(candidates)}, and {AUTO}")
        return [pair] * len(texts), None
    chosen, detected = [], []
    for found in await service.detect(texts, pairs.codes, format_):
        try:
            best, pair = _judged(found, pairs, target)
        except UserError as error:
            if not is_list:
                raise refusal(400, f"source: {error}") from None
            best, pair = (found or [Detected(UNDETERMINED, 0.0)])[0], None
        chosen.append(pair)
        detected.append(best)
    return chosen, detected


def _judged(found: Sequence[Detected] | None, pairs: Pairs, target: str) -> tuple[Detected, Pair | None]:
    """The language of a text, from those that `detect` found, and the pair that translates it: the first one for text
    without letters, none for text in the target language. Raises UserError if the language is unclear or isn't
    translated."""
    candidates = pairs.sources(target)
    if found is None:
        return Detected(candidates[0], 0.0), pairs.find(candidates[0], target)
    if not found:
        raise UserError(f"the text is in none of the languages that are translated: {', '.join(candidates)}")
    possible = [one for one in found if one.language in candidates and one.confidence >= NEAR * found[0].confidence]
    equal = [one.language for one in possible if one.confidence == possible[0].confidence]
    if len(equal) > 1:
        raise UserError(f"the text's script doesn't tell {', '.join(equal)} apart; name the language")
    if possible:
        return possible[0], pairs.find(possible[0].language, target)
    if read_code(found[0].language).language == read_code(target).language:
        return found[0], None
    raise UserError(f"the text seems to be {found[0].language}; what is translated is {', '.join(candidates)}")
