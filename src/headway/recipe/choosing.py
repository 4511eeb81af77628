"""Chooses a recipe for a corpus and a number of minutes: vocabulary, model, batches, rate, stages and steps.

The rules come from the trainings in docs/tried.md. They depend on the number of pairs, their number of different
characters, and the number of tokens that this device can train on in the time, measured by real steps. A key that is
set by hand is left alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headway.data.corpus import CorpusFiles, Pair
from headway.errors import UserError
from headway.recipe.reading import make_recipe
from headway.recipe.recipe import Recipe
from headway.text.protected import Atom, split_protected

Document = dict[str, Any]
VOCABULARIES = ((2_500, 2_000), (10_000, 4_000), (500_000, 8_000), (3_000_000, 16_000))
"""Numbers of pairs and the size of the vocabulary up to each; MOST_TOKENS beyond."""
MOST_TOKENS = 32_000
BYTES_OF_TOKEN = 5
TOKENS_OF_CHARACTER = 2
"""Minimum of a vocabulary, for each different character of the text."""
SIZES = {"tiny": (2.3e6, 2e-3), "small": (6e6, 1e-3), "base": (48e6, 7e-4), "big": (185e6, 5e-4)}
"""Presets by size: approximate number of parameters, and the highest learning rate."""
TOKENS_OF_PARAMETER = 20
"""Minimum of training tokens for each parameter of a larger model."""
EPOCHS_OF_LARGER = 12
"""Maximum number of passes that count as such tokens. A larger model would learn more passes by heart."""
STEPS, STEPS_OF_EPOCH = 2_000, 400
"""Preferred numbers of a training and of an epoch. With fewer, steps are made smaller."""
FEWEST_TOKENS, MOST_TOKENS_OF_STEP = 1_024, 32_768
DROPOUTS = ((15, 0.1), (40, 0.2))
"""Dropout by the epochs of a training; HIGH_DROPOUT for more."""
HIGH_DROPOUT = 0.3
LONGEST_WARMUP = 800
EPOCHS_IN_BOTH = 12
"""Minimum of epochs for a stage that learns both directions, and the shares of the work."""
IN_BOTH = {"both": 0.25, "direction": 0.75}
EPOCHS_OF_RISK = 16
"""Minimum of epochs for a last stage of minimum-risk training."""
RISK_SAMPLES, RISK_RATE, RISK_DROPOUT = 8, 2e-4, 0.1
RISK_PASSES = 15
"""Time of a step of minimum risk, sampling included, by that of another step."""
FEWEST_RISK_STEPS, MOST_RISK_STEPS, SHARE_OF_RISK = 20, 300, 0.1
"""Approximate bounds. More steps lower the risk, and BLEU with it. The share is of the time."""
LEAST_PROTECTED = 0.1
"""Share of the pairs with tags, placeholders or code from which on a model is trained to keep them."""
NOISE = {"pairs": {"title": 0.03, "copy": 0.05, "tags": 0.12, "joined": 0.3}}
"""Noise of such text; `joined` is for its sentences alone."""
SHARE_OF_STUDENT = 0.4
LAYERS_OF_STUDENT, STEP_OF_STUDENT = 2, 0.8
"""A student's decoder layers, and the time of its step, by that of its teacher, which has more of them."""
VALIDATIONS, SHARE_OF_VALIDATIONS = 8, 0.05
"""Maximum of a stage, and the share of its time that all but the first may take."""
SHARE_TO_LOSE, SECONDS_TO_LOSE = 0.1, 180.0
"""Maximum of a stage's time between two checkpoints, which a killed run repeats."""
OF_A_NEW_MODEL = ("learning_rate", "optimizer")
"""Keys of section `training` that keep their defaults if the run starts from a model."""
LIMITS = ("max_steps", "max_epochs", "max_minutes", "patience")
ENDLESS = "training.max_steps=1000000000"
"""The limit of a training that is measured."""
PURPOSES = {
    "both": "which learn both directions",
    "direction": "which learn the direction",
    "risk": f"which make the better of {RISK_SAMPLES} translations likelier (minimum risk)",
    "student": "which teach a faster model what the last one translates",
}


@dataclass(frozen=True)
class TrainingText:
    """The properties of a training corpus that the choice depends on."""

    pairs: int
    characters: int
    """Different ones, on both sides."""
    tokens: float
    """Approximately, of both sides: a token has about five bytes of UTF-8 in alphabets and syllabaries alike."""
    protected: float = 0.0
    """The share of the sources with tags, placeholders, code or addresses."""

    @classmethod
    def of(cls, corpora: Sequence[CorpusFiles]) -> TrainingText:
        """Reads the whole corpora. Raises UserError."""
        pairs, size, characters = 0, 0, set[str]()
        for corpus in corpora:
            for pair in corpus.pairs():
                pairs += 1
                size += len(pair.source.encode()) + len(pair.target.encode())
                characters.update(pair.source, pair.target)
        return cls(pairs, len(characters), size / BYTES_OF_TOKEN + 2 * pairs)


def share_of_protected(pairs: Sequence[Pair]) -> float:
    """The share of the pairs whose source has tags, placeholders, code or addresses; percentages don't count."""
    have = sum(any(isinstance(one, Atom) for one in split_protected(pair.source)) for pair in pairs)
    return have / max(1, len(pairs))


@dataclass(frozen=True)
class TrainingSpeed:
    """The speed of a training, measured by a few steps."""

    seconds_of_step: float
    seconds_before: float
    """From the start to the first step, with preparing the text."""
    seconds_of_validation: float
    seconds_of_teaching: float
    """The time in which a teacher translates the training text."""
    steps_of_epoch: float
    parameters: int


@dataclass
class Choice:
    """A recipe that grows, key by key."""

    data: Document
    overrides: Sequence[str]
    """The keys set by hand, as `key.path=value`."""
    sections: dict[str, Document] = field(default_factory=lambda: defaultdict(dict))
    stages: list[Document] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)

    def has(self, key: str) -> bool:
        return any(one.partition("=")[0] == key for one in self.overrides)

    def set(self, key: str, value: Any, reason: str = "") -> None:
        """Chooses a value, unless the user or a model to start from does. reason: empty if it goes with another one."""
        section, _, name = key.partition(".")
        if self.has("training.init_from") and (section in ("model", "tokenizer") or name in OF_A_NEW_MODEL):
            return
        self.sections[section][name] = value
        if reason and not self.has(key):
            shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
            shown = shown.replace("'", "")  # as YAML has a mapping
            self.reasons[key] = f"{shown}, {reason}"

    def recipe(self, *limits: str) -> Recipe:
        """The recipe with what is chosen so far. Raises UserError."""
        sections = {**self.sections, "data": {**self.data, **self.sections.get("data", {})}}
        document = {**sections, **({"stages": self.stages} if self.stages else {})}
        return make_recipe(document, [*self.overrides, *limits], origin="command line")


def choose(
    data: Document,
    overrides: Sequence[str],
    text: TrainingText,
    seconds_left: Callable[[], float],
    measure: Callable[[Recipe], TrainingSpeed],
    *,
    fast: bool = False,
) -> Choice:
    """Chooses for a corpus. data: the recipe's section. seconds_left: the time left for training and translating.
    measure: trains for some steps; not called if a limit of training is set by hand. Raises UserError, also if the time
    is too short."""
    choice = Choice(data, overrides)
    if fast and choice.has("model.decoder_layers"):
        raise UserError("--fast halves the decoder's layers; leave out model.decoder_layers, or --fast")
    if fast and choice.has("training.init_from"):
        layers = choice.recipe(ENDLESS).model.decoder_layers or 0
        if layers <= LAYERS_OF_STUDENT:
            has = f"the faster model has {LAYERS_OF_STUDENT} decoder layers, and that of training.init_from {layers}"
            raise UserError(f"--fast: {has}; leave out --fast")
    vocabulary = next((size for most, size in VOCABULARIES if text.pairs <= most), MOST_TOKENS)
    while vocabulary < min(TOKENS_OF_CHARACTER * text.characters, MOST_TOKENS):
        vocabulary *= 2
    choice.set("tokenizer.vocab_size", vocabulary, f"for {text.pairs:,} pairs, {text.characters:,} kinds of characters")
    tokens_of_step = power_of_two(text.tokens / STEPS_OF_EPOCH)
    choice.set("training.tokens_per_batch", tokens_of_step, f"for an epoch of about {text.tokens:,.0f} tokens")
    choice.set("model.preset", "tiny")
    choice.set("model.norm", "pre", "which learns steadily at a high rate")
    choice.set("training.optimizer", "muon", "which learns faster than Adam")
    choice.set("training.finish", value=True)
    if text.protected >= LEAST_PROTECTED and not any(one.startswith("data.noise") for one in overrides):
        choice.set("data.noise", NOISE, f"for tags, placeholders and code in {text.protected:.0%} of the sources")
    if is_limited(overrides):
        _choose_rate(choice)
        choice.set("training.schedule", "inverse_sqrt", "which needs no last step")
    else:
        measured = _choose_sizes(choice, text, seconds_left, measure)
        _choose_stages(choice, measured, seconds_left(), fast=fast)
    return choice


def is_limited(overrides: Sequence[str]) -> bool:
    """Whether a limit of training is set by hand."""
    return any(one.startswith(f"training.{name}=") for one in overrides for name in LIMITS)


def power_of_two(tokens: float) -> int:
    """The tokens of a step: the power of two below, within bounds."""
    return min(max(2 ** int(math.log2(max(tokens, 1))), FEWEST_TOKENS), MOST_TOKENS_OF_STEP)


def _choose_sizes(
    choice: Choice, text: TrainingText, seconds_left: Callable[[], float], measure: Callable[[Recipe], TrainingSpeed]
) -> TrainingSpeed:
    """Chooses the sizes of the model and of a step by the number of tokens that fits into the time."""

    def trained() -> tuple[TrainingSpeed, float]:
        recipe = choice.recipe(ENDLESS)
        measured = measure(recipe)
        return measured, seconds_left() / measured.seconds_of_step * recipe.training.tokens_per_batch

    measured, tokens = trained()
    for preset, (parameters, _) in list(SIZES.items())[1:]:
        most = min(tokens * measured.parameters / parameters, EPOCHS_OF_LARGER * text.tokens)
        if choice.has("model.preset") or choice.has("training.init_from") or most < TOKENS_OF_PARAMETER * parameters:
            break
        choice.set("model.preset", preset)
        measured, tokens = trained()
    rounded = f"{tokens / 1e6:.3g} million" if tokens >= 1e6 else f"{tokens:,.0f}"
    choice.set("model.preset", choice.sections["model"].get("preset"), f"for {rounded} tokens in the time")
    _choose_rate(choice)
    tokens_of_step = power_of_two(tokens / STEPS)
    key = "training.tokens_per_batch"
    if tokens_of_step < choice.recipe(ENDLESS).training.tokens_per_batch and not choice.has(key):
        choice.set(key, tokens_of_step, "for more steps in the time")
        measured, _ = trained()
    return measured


def _choose_rate(choice: Choice) -> None:
    preset = choice.recipe(ENDLESS).model.preset
    if preset in SIZES:
        choice.set("training.learning_rate", SIZES[preset][1], "as a model of this size needs")


def _choose_stages(choice: Choice, measured: TrainingSpeed, seconds: float, *, fast: bool) -> None:
    epochs = seconds / measured.seconds_of_step / measured.steps_of_epoch
    share_of_student = SHARE_OF_STUDENT if fast else 0.0
    shares = {"direction": 1 - share_of_student}
    has_room = IN_BOTH["both"] * seconds > 4 * (measured.seconds_before + measured.seconds_of_validation)
    if epochs >= EPOCHS_IN_BOTH and has_room and not choice.has("training.init_from"):
        shares = {name: share * shares["direction"] for name, share in IN_BOTH.items()}
    step_of_risk = RISK_PASSES * measured.seconds_of_step
    before_risk = 2 * measured.seconds_before + measured.seconds_of_validation
    risk = min(SHARE_OF_RISK * (1 - share_of_student), (before_risk + MOST_RISK_STEPS * step_of_risk) / seconds)
    has_steps = risk * seconds >= before_risk + FEWEST_RISK_STEPS * step_of_risk
    may_sample = not choice.has("training.learning_rate") and not choice.has("training.deterministic")
    if epochs >= EPOCHS_OF_RISK and has_steps and may_sample:
        shares = {**shares, "direction": shares["direction"] - risk, "risk": risk}
    if fast:
        shares["student"] = share_of_student
    dropout = next((rate for most, rate in DROPOUTS if epochs < most), HIGH_DROPOUT)
    choice.set("model.dropout", dropout, f"for {epochs:.3g} epochs in the time")
    choice.set("training.schedule", "wsd", "which keeps a high rate for longest")
    before: str | None = None
    for name, share in shares.items():
        stage: Document = {"name": name, **({"start": before} if before else {})}
        before_it = measured.seconds_before + (measured.seconds_of_teaching if name == "student" else 0)
        if before_it > share * seconds / 2:
            missing = math.ceil((2 * before_it / share - seconds) / 6) / 10
            raise UserError(
                f"stage {name} has about {max(0.0, share * seconds):.0f} seconds, and starting it takes "
                f"{before_it:.0f}, more than half; give more --minutes, at least {missing:.1f} more"
            )
        passes = {"risk": RISK_PASSES, "student": STEP_OF_STUDENT}.get(name, 1.0)
        training = _steps_for(measured, share * seconds - before_it, passes)
        match name:
            case "both":
                stage["data"] = {"both_directions": True}
            case "risk":
                stage["model"] = {"dropout": RISK_DROPOUT}
                training |= {"risk_samples": RISK_SAMPLES, "learning_rate": RISK_RATE}
            case "student":
                stage["teacher"] = before
                stage["model"] = {"dropout": min(dropout, 0.2), "decoder_layers": LAYERS_OF_STUDENT}
                stage["decoding"] = {"beam_size": 1}
                training["best_by"] = "valid_loss"
        choice.reasons[f"stage {name}"] = f"{training['max_steps']:,} steps, {PURPOSES[name]}"
        choice.stages.append({**stage, "training": training})
        before = name
    for stage in choice.stages[:-1]:
        stage["training"]["finish"] = False
    if len(choice.stages) == 1:
        choice.sections["training"] |= choice.stages.pop()["training"]


def _steps_for(measured: TrainingSpeed, seconds: float, passes: float) -> Document:
    """Keys of `training` for so many seconds, validations included. passes: the time of a step, by a measured one's."""
    validations = int(SHARE_OF_VALIDATIONS * seconds / measured.seconds_of_validation)
    validations = min(max(validations, 1), VALIDATIONS)
    left = seconds - validations * measured.seconds_of_validation
    of_step = measured.seconds_of_step * passes
    steps = max(1, int(left / of_step))
    at_most = max(1.0, min(SHARE_TO_LOSE * left, SECONDS_TO_LOSE) / of_step)
    saves = math.ceil(steps / validations / at_most)  # up to a validation, which the last of them follows
    save_every = math.ceil(steps / validations / saves)
    return {
        "max_steps": steps,
        "warmup_steps": min(LONGEST_WARMUP, max(1, steps // 10)),
        "validate_every": saves * save_every,
        "save_every": save_every,
    }
