"""The engines, and what each of them can do. `--help`, the docs and refusals read it here."""

from typing import NamedTuple

from headway.devices import EngineName

EVERY: tuple[EngineName, ...] = ("ctranslate2", "torch")
TORCH: tuple[EngineName, ...] = ("torch",)


class Ability(NamedTuple):
    """Something that translating may need."""

    what: str
    """A noun phrase."""
    engines: tuple[EngineName, ...]
    """The engines that have the ability."""


ABILITIES = {
    "beam_size": Ability("beam search", EVERY),
    "length_penalty": Ability("a length penalty", EVERY),
    "max_length": Ability("a maximum length", EVERY),
    "n_best": Ability("the n best translations", EVERY),
    "no_repeat_ngram": Ability("n-grams without repetition", EVERY),
    "prefix": Ability("a prefix", EVERY),
    "score": Ability("scores of given translations", EVERY),
    "sample": Ability("sampling", TORCH),
    "glossary": Ability("a glossary", TORCH),
    "ensemble": Ability("an ensemble", TORCH),
    "inspect": Ability("a look inside a model", TORCH),
}
ONLY_TORCH = [ability.what for ability in ABILITIES.values() if ability.engines == TORCH]
