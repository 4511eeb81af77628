"""The end of a run: the quality of its best model in int8 and, with `training.finish`, its search options, its
calibration and its scores on text by which nothing was chosen, all in the model card. Also the limits by which a run
without an end is finished (`cooldown`)."""

import json
import math
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from headway.data.prepared import VALID_TEXTS
from headway.decoding.options import DefaultOptions
from headway.decoding.searcher import length_penalty
from headway.errors import UserError
from headway.evaluation import evenly, score_margins, score_translations
from headway.recipe.recipe import Recipe
from headway.storage import find_model, load_model, read_model, save_model
from headway.storage.checksums import find_damage
from headway.storage.model_directory import write_model
from headway.storage.steps import step_folders
from headway.text.tokenizer import language_tag
from headway.threads import current_threads
from headway.training.checkpoint import read_state
from headway.training.rates import rate_of_step
from headway.training.reporter import read_log
from headway.training.run import tokenization_of
from headway.training.saving import table_of_card
from headway.translator import Translation, Translator
from headway.translator.confidence import learn_calibration
from headway.translator.int8 import FEWEST, MOST, judge_int8
from headway.translator.reading import TorchReader

HEADING = "## Measured at the end of the run"
BEAMS = (1, 2, 4)
PENALTIES = (0.0, 0.5, 1.0, 1.5, 2.0)
LEAST_GAIN = 0.2
"""BLEU on validation that a beam must gain over one of half its size, which is nearly twice as fast."""
WORTH_SPEED = 0.3
"""BLEU on validation that a student, which is made for speed, may be worse than its teacher."""
EXAMPLES = 10
SIDES = ("source", "translation", "reference")
TRIED = 32
"""Pairs by which the speed of translating is measured."""
SCORING = 0.01
"""Seconds for all scores of a validation pair."""
SHARE_OF_END = 0.04
"""Share of the training time that the end of a run may take."""
SECONDS_TO_START = 5.0
"""Time to load torch, the data and the model."""
LATEST = 500
"""The last steps of the log, whose mean is the time of a step."""
Tell = Callable[[str], None]


class UnseenText(NamedTuple):
    """Text that the model has not learned from, with references and sacreBLEU's tokenisation for them."""

    sources: Sequence[str]
    references: Sequence[str]
    tokenize: str

    def some(self, count: int) -> "UnseenText":
        return UnseenText(evenly(self.sources, count), evenly(self.references, count), self.tokenize)


def validation_pairs(recipe: Recipe, run: Path) -> UnseenText:
    texts = json.loads(((recipe.data.prepared or run / "data") / VALID_TEXTS).read_bytes())
    sources, references = zip(*texts, strict=True)
    return UnseenText(sources, references, tokenization_of(recipe))


def held_out_pairs(recipe: Recipe) -> tuple[list[str], list[str]]:
    """The sources and the references of the first corpus of `data.held_out`, with its tag, as a model with tags needs
    it."""
    pairs = [
        (f"{language_tag(corpus.tag)} {pair.source}" if corpus.tag else pair.source, pair.target)
        for corpus in recipe.data.held_out[:1]
        for pair in recipe.data.files_of(corpus).pairs()
    ]
    return [source for source, _ in pairs], [target for _, target in pairs]


def end_run(recipe: Recipe, run: Path, minutes: float, tell: Tell) -> None:
    """Finishes the run, or only adds int8's cost to its best model. minutes: of the training, for a share of them."""
    if recipe.training.finish:
        finish(recipe, run, tell, SHARE_OF_END * minutes)
    elif (best := read_model(folder := find_model(run), recipe.model.core)).int8 is None:
        judged = judge_int8(best, *validation_pairs(recipe, run), tell)
        if judged.int8 is not None:
            write_model(folder, judged, judged.config, judged.weights())


def finish(recipe: Recipe, run: Path, tell: Tell, minutes: float) -> None:
    """Measures the best model of a run and saves it in place with the results, once. Tells them, and the next commands.
    With few minutes it uses fewer validation pairs. The scores are those of `data.held_out`, else of the validation
    text; the search of a student is compared with that of its teacher."""
    folder = find_model(run)
    stored = load_model(folder, recipe.model.core)
    if HEADING in stored.card:
        return
    valid = validation_pairs(recipe, run)
    part, measured = "validation", valid
    if (held_out := held_out_pairs(recipe))[0]:
        part, measured = "test", UnseenText(*held_out, valid.tokenize)
    translator = Translator(stored, engine="auto")
    rows: dict[str, str] = {}
    if len(valid.sources) >= FEWEST:
        valid = valid.some(_affordable_pairs(translator, valid, 60 * minutes, max(BEAMS) * len(measured.sources)))
        enough = math.inf
        if recipe.data.distilled and (teacher := recipe.data.distilled[0].teacher).exists():
            taught = [one.text for one in Translator.load(teacher).translate(valid.sources)]
            enough = score_translations(taught, *valid[1:]).bleu - WORTH_SPEED
        options, rows["search"] = choose_search(translator, valid, BEAMS, enough)
        tell(f"search: {rows['search']}")
        stored = replace(stored, decoding={**stored.decoding, **options})
    else:
        tell(f"notice: {len(valid.sources)} validation pairs are too few to choose a search by, {FEWEST} are enough")
    stored = judge_int8(stored, *valid, tell)
    translator = Translator(stored, engine="auto")  # in the precision that it has from now on
    try:
        translations = translator.translate(valid.sources)
        calibration = learn_calibration(TorchReader(translator.model), stored, translations, valid.references)
        stored = replace(stored, calibration=calibration)
    except UserError as error:
        tell(f"notice: confidence isn't calibrated: {error}")
    figures, texts = _figures(translator, stored.num_parameters, measured, part)
    for name, text in figures.items():
        tell(f"{name}: {text}")
    examples = [
        [f"{name:<13}{' '.join(text.split())}" for name, text in zip(SIDES, one, strict=True)]
        for one in evenly(list(zip(measured.sources, texts, measured.references, strict=True)), EXAMPLES)
    ]
    save_model(folder, replace(stored, card=f"{stored.card.rstrip()}\n\n{_section({**rows, **figures}, examples)}"))
    place = shlex.quote(str(run.parents[1] if run.parent.name == "stages" else run))
    commands = (f"translate {place} input.txt", f"serve {place}", f"export {place} --to ctranslate2 --output exported")
    for line in (*(line for one in examples for line in (*one, "")), *(f"next: headway {one}" for one in commands)):
        tell(line)


def _affordable_pairs(translator: Translator, pairs: UnseenText, seconds: float, others: int) -> int:
    """The validation pairs that there is time for. others: other sentences, in greedy ones; a beam of 2 takes two."""
    few = pairs.some(TRIED).sources
    translator.translate(few, beam_size=1)
    began = time.monotonic()
    translator.translate(few, beam_size=1)
    each = (time.monotonic() - began) / len(few)
    of_pair = each * (sum(BEAMS) + 3 * max(BEAMS)) + SCORING  # the searches, then int8, fp32, and for confidence
    return int(min(MOST, max(FEWEST, (seconds - each * others) / of_pair)))


def choose_search(
    translator: Translator, pairs: UnseenText, beams: Sequence[int], enough: float = math.inf
) -> tuple[dict[str, Any], str]:
    """The beam size and length penalty with the highest BLEU, as options and in words. Each beam is searched once, and
    its hypotheses are ranked by each penalty. A beam must gain LEAST_GAIN over a smaller one; after one that has
    `enough` BLEU no larger one is tried."""
    default = DefaultOptions().length_penalty
    best, beam, alpha, scores = -math.inf, 1, default, []
    for size in beams:
        found = translator.translate(pairs.sources, beam_size=size, n_best=size, length_penalty=0)
        bleu = {
            penalty: score_translations([_best_text(penalty, one) for one in found], *pairs[1:]).bleu
            for penalty in (PENALTIES if size > 1 else [default])
        }
        penalty = max(bleu, key=lambda one: (bleu[one], -abs(one - default)))
        scores.append(f"{bleu[penalty]:.2f} with {size}")
        if bleu[penalty] >= best + LEAST_GAIN:
            best, beam, alpha = bleu[penalty], size, penalty
        if best >= enough:
            scores[-1] += f", where {enough:.2f} is enough beside its teacher"
            break
    why = f"validation BLEU by beam size {', '.join(scores)}, over {len(pairs.sources):,} pairs"
    return {"beam_size": beam, "length_penalty": alpha}, f"beam {beam}, length penalty {alpha:g}: {why}"


def _best_text(penalty: float, translation: Translation) -> str:
    """The text with the best score by this length penalty, among the translation and its alternatives."""

    def score(one: Translation) -> float:
        ids = one._pieces.ids[1]
        return -math.inf if one.score is None else one.score / length_penalty(len(ids) + 1, penalty)

    return max((translation, *translation.alternatives), key=score).text


def _figures(translator: Translator, parameters: int, pairs: UnseenText, part: str) -> tuple[dict[str, str], list[str]]:
    """Scores, size and speed of the model by name, and its translations. part: the name of the text."""
    began = time.monotonic()
    texts = [one.text for one in translator.translate(pairs.sources)]
    seconds = time.monotonic() - began
    scores, (bleu, chrf) = score_translations(texts, *pairs[1:]), score_margins(texts, *pairs[1:])
    conditions = f"{translator.engine}, {translator.engines.precision}, threads: {current_threads()}"
    score = "{:.2f} ± {:.2f} (95%, {:,} pairs, `{}`)".format
    return {
        f"{part} BLEU": score(scores.bleu, bleu, len(texts), scores.bleu_signature),
        f"{part} chrF": score(scores.chrf, chrf, len(texts), scores.chrf_signature),
        "size": f"{4 * parameters / 1e6:.1f} MB, {parameters:,} parameters",
        "speed": f"{len(texts) / seconds:,.0f} sentences a second ({conditions})",
    }, texts


def _section(rows: dict[str, str], examples: Sequence[Sequence[str]]) -> str:
    blocks = "\n\n".join("\n".join(f"    {line}" for line in one) for one in examples)
    return f"""{HEADING}

{table_of_card(rows)}

Translations taken from that text at even distances, not by their quality:

{blocks}
"""


def cooldown(run: Path, recipe: Recipe, minutes: float) -> dict[str, Any]:
    """The keys of `training` that end the run in so many minutes, last validation included. Raises UserError."""
    if recipe.training.schedule == "cosine":
        raise UserError(f"{run}: schedule: cosine ends at its own last step; --finish is for the other schedules")
    checkpoint = next((one for one in reversed(step_folders(run / "checkpoints")) if find_damage(one) is None), None)
    if checkpoint is None:
        raise UserError(f"{run}: has no checkpoint yet; train on without --finish")
    step = read_state(checkpoint).progress.step
    entries = [one for _, _, one in read_log(run / "log.jsonl") if one and "seconds" in one]
    steps = [entry for entry in entries if "loss" in entry]
    validations = [entry for entry in entries if "valid_loss" in entry]
    if not steps or not validations:
        raise UserError(f"{run}: its log has no time of a step and of a validation yet; train on without --finish")
    of_step = fmean(entry["seconds"] for entry in steps[-LATEST:])
    of_validation = validations[-1]["seconds"]
    left = 60 * minutes - SECONDS_TO_START - 2 * of_validation  # the last one, and as long for int8
    more = int(left / (of_step + of_validation * len(validations) / steps[-1]["step"]))
    if more < 1:
        least = (60 * minutes - left + of_step) / 60
        raise UserError(f"{run}: {minutes:g} minutes are too few to finish; {least:.1f} are the least")
    full = rate_of_step(step, recipe.training, recipe.transformer_config().d_model, last_step=None)
    rate = next((entry["learning_rate"] for entry in steps if entry["step"] == step), full)
    done = (1 - rate / full) ** 2  # the share of its decay, if the rate falls already
    if done >= 1:
        raise UserError(f"{run}: is finished: its learning rate has reached zero")
    decay_steps = round(more / (1 - done)) if done else min(more, max(1, (step + more) // 5))
    no_others = dict.fromkeys(("max_epochs", "max_minutes", "patience"))
    return {"max_steps": step + more, "decay_steps": decay_steps, **no_others}
