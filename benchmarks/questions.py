"""Forty questions about one translation of one model, each with one right answer, to be answered from a page that shows
the translation and from nothing else: how much of what a reader can ask does the page say?

    python benchmarks/questions.py RUN "A sentence" > questions.txt
    python benchmarks/questions.py RUN "A sentence" --answers answers.txt

Without `--answers` the questions, one a line. The answers are as many lines in the same order, as they were read: names
and numbers with commas between, "-" for what the page doesn't say. Printed are the share that is right, and each wrong
one with the truth, which comes from the model by Python alone. A number is right if the truth rounds to it; a name may
have a page's marks for spaces and parts of words.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headway.errors import UserError
from headway.insight.what_if import HeadOff, PositionsOff, ScalingOff, SwapWords
from headway.page import ShownRecord
from headway.translator import Translator

LAYER, HEAD, TOKEN, STEP = 2, 3, 3, 3
"""What the questions ask about, numbered from 1."""
Answer = Sequence[Any]
"""Names and numbers."""


def questions(translator: Translator, sentence: str) -> list[tuple[str, Answer]]:
    """Each with its answer."""
    wanted: list[str] = ["contributions", "erasure", "contrast", "logit_lens", "decoder_lens"]
    record = translator.inspect(sentence, cases="usual", analyses=wanted)
    source, target = record.source.pieces, record.target.pieces
    if min(len(source), len(target)) < 6 or min(record.config.encoder_layers, record.config.decoder_layers) < LAYER:
        raise UserError("the questions are about six tokens on either side and two layers at least")
    token, written = f"source token {TOKEN} ({_plain(source[TOKEN - 1])})", f"step {STEP} ({_plain(target[STEP - 1])})"
    parts = _inputs(translator, record, token), _attention(record, token, written), _output(record, written)
    return [*parts[0], *parts[1], *parts[2], *_analyses(record, token, written), *_changes(translator, record)]


def _inputs(translator: Translator, record: ShownRecord, token: str) -> list[tuple[str, Answer]]:
    arrays, at = record.arrays, TOKEN - 1
    first = "encoder.layers.0"
    width = record.config.d_model
    hidden, total = arrays[f"{first}.feed_forward.hidden"], arrays[f"{first}.feed_forward_residual.sum"][at]
    angle = 3 / 10000 ** (4 / width)
    before = arrays[f"{first}.self_residual.sum"][at]
    return [
        ("How many tokens does the encoder read, <eos> among them?", [len(record.source.tokens)]),
        (f"Which number (id) has {token}?", [record.source.ids[at]]),
        ("How many tokens are in the vocabulary of the target?", [record.config.target_vocab_size]),
        ("How many parameters does the model have?", [sum(one.numel() for one in translator.model.parameters())]),
        (f"What is the first number of the embedding of {token}, scaled?", [arrays["source_embedding.scaled"][at, 0]]),
        ("What is the fifth number of the positions' pattern of place 3, if the first place is 0?", [np.sin(angle)]),
        (f"In encoder layer 1, how large is the spread of {token} after self-attention was added?", [before.std()]),
        (f"How long (Euclidean norm) is {token} after encoder layer 1, before any norm?", [np.linalg.norm(total)]),
        ("Which share of all features of the feed-forward network of encoder layer 1 is 0?", [np.mean(hidden == 0)]),
        (f"How many features of that network are above 0 for {token}?", [(hidden[at] > 0).sum()]),
    ]


def _attention(record: ShownRecord, token: str, written: str) -> list[tuple[str, Answer]]:
    arrays, head, at, step = record.arrays, HEAD - 1, TOKEN - 1, STEP - 1
    source = record.source.pieces
    own = f"encoder.layers.{LAYER - 1}.self_attention"
    row, scores = arrays[f"{own}.weights"][head, at], arrays[f"{own}.scores"][head, at]
    keys = arrays[f"{own}.keys"].shape[-1]
    cross, decoder = record.attention["cross"], record.attention["decoder"]
    in_layer, everywhere = cross[LAYER - 1, :, step, at], cross[:, :, step, 0]
    most = divmod(int(everywhere.argmax()), everywhere.shape[1])
    spread = cross[LAYER - 1, head, step].astype(np.float64)
    where = f"encoder self-attention, layer {LAYER}, head {HEAD}"
    return [
        (f"In {where}: at which token does {token} look most, and how much?", [source[row.argmax()], row.max()]),
        (f"In {where}: what is the score, divided, of query {TOKEN} with key 1?", [scores[0]]),
        (
            f"In {where}: what would the largest share of {token} be without the division?",
            [_softmax(scores * keys**0.5).max()],
        ),
        (
            f"Which head of layer {LAYER}'s cross-attention looks most at {token} at {written}, and how much?",
            [int(in_layer.argmax()) + 1, in_layer.max()],
        ),
        (
            "Which head of all cross-attention looks most at source token 1 then, and how much (layer, head, share)?",
            [most[0] + 1, most[1] + 1, everywhere.max()],
        ),
        (
            f"How much does {written} look at <eos>, the mean of all heads of all layers?",
            [cross.mean((0, 1))[step, -1]],
        ),
        (
            f"What is the entropy (bits) of cross-attention layer {LAYER}, head {HEAD}, the mean of all rows?",
            [record.heads["cross"][LAYER - 1][head].entropy],
        ),
        (f"What is the entropy (bits) of its row of {written}?", [_bits(spread)]),
        (
            f"How much does {written} look at <sos> in decoder self-attention, layer 1, head 1?",
            [decoder[0, 0, step, 0]],
        ),
    ]


def _output(record: ShownRecord, written: str) -> list[tuple[str, Answer]]:
    step, vocabulary, logits = STEP - 1, record.vocabulary, record.arrays["logits"][STEP - 1].astype(np.float64)
    later, shares, best = record.steps[STEP], _softmax(logits), np.argsort(-logits)
    tree = record.beam
    assert tree is not None
    dropped = next(one for one in tree.steps[1] if one.fate == "dropped")
    sure = [found.log_probability for found in record.steps]
    other = record.alternatives[0]
    [ranking] = [one.ranking for one in tree.finished if one.text == other.text][:1]
    return [
        (
            f"Which token is the second likeliest at step {STEP + 1}, and how likely is it?",
            [vocabulary[later.ids[1]], later.probabilities[1]],
        ),
        (f"What is the logit of the token that was written at {written}?", [logits[record.target.ids[step]]]),
        (f"Which token is the tenth likeliest at {written}?", [vocabulary[best[9]]]),
        (f"How uncertain is the model at {written}: the entropy of all its probabilities, in bits?", [_bits(shares)]),
        (
            f"How likely would the likeliest token of {written} be at a temperature of 2?",
            [_softmax(logits / 2).max()],
        ),
        (
            "At which step is the model least sure of what it wrote, and how sure (step, probability)?",
            [int(np.argmin(sure)) + 1, float(np.exp(min(sure)))],
        ),
        ("What is the log-probability of the whole translation?", [record.score]),
        (
            "Which is the best candidate that the beam dropped at step 2, and its score?",
            [vocabulary[dropped.id], dropped.score],
        ),
        ("Which other translation is ranked next, and by what number?", [other.text, ranking]),
    ]


def _analyses(record: ShownRecord, token: str, written: str) -> list[tuple[str, Answer]]:
    found, step, at, vocabulary = record.analyses, STEP - 1, TOKEN - 1, record.vocabulary
    contributions, erasure, contrast = found.contributions, found.erasure, found.contrast
    assert contributions is not None
    assert erasure is not None
    assert contrast is not None
    assert found.logit_lens is not None
    assert found.decoder_lens is not None
    effect = erasure.effect[step]
    needed = int(effect[:-1].argmax())
    lens = found.logit_lens
    first = found.decoder_lens.translations[1]
    return [
        (
            f"Which source token does {written} need most, and what share of its probability is lost without it?",
            [record.source.pieces[needed], 1 - np.exp(-effect[needed])],
        ),
        (f"What share of {written} comes from {token} (contributions)?", [contributions.source[step, at]]),
        (f"What share of {written} comes from the whole source?", [contributions.source_share[step]]),
        (
            f"What would decoder layer 1 write at {written}, and how likely is it there?",
            [vocabulary[lens.ids[1][step][0]], lens.probabilities[1][step][0]],
        ),
        (
            "What does the decoder translate from encoder layer 1, and with what log-probability?",
            [first.text, first.score],
        ),
        (
            f"Against which token was that of {written} closest, and by how many nats was it likelier?",
            [vocabulary[contrast.foils[step]], contrast.difference[step]],
        ),
    ]


def _changes(translator: Translator, record: ShownRecord) -> list[tuple[str, Answer]]:
    by = {tuple(case.edits): case for case in record.cases}
    heads = {edits[0]: case.before.score for edits, case in by.items() if isinstance(edits[0], HeadOff)}
    worst = min(heads, key=lambda head: heads[head])
    one = heads[HeadOff(attention="cross", layer=0, head=0)]
    unscaled, swapped = by[(ScalingOff(),)], by[(SwapWords(first=0, second=1),)]
    two = [HeadOff(attention="cross", layer=0, head=head) for head in (0, 1)]
    both = translator.inspect(record.source.text, cases=[two]).cases[0].before.score
    kinds = {"encoder": "encoder", "decoder": "decoder", "cross": "cross"}
    return [
        (
            "How much of the translation's probability is left without cross-attention layer 1, head 1?",
            [np.exp(one - record.score)],
        ),
        (
            "Without which head is least left (encoder, decoder or cross; layer; head)?",
            [kinds[worst.attention], worst.layer + 1, worst.head + 1],
        ),
        (
            "How much is left without heads 1 and 2 of cross-attention layer 1, both off?",
            [np.exp(both - record.score)],
        ),
        ("What is the translation without positions?", [by[(PositionsOff(),)].after.text]),
        (
            "How likely is its first word to the model without the division of scores?",
            [unscaled.before.words[0].probability],
        ),
        ("What is the translation with the first two words swapped?", [swapped.after.text]),
    ]


def right(answer: str, truth: Answer) -> bool:
    """Whether an answer as it was read is the truth."""
    count = len(truth)
    if count == 1:
        parts = [answer]
    elif isinstance(truth[0], str):
        parts = answer.rsplit(",", count - 1)
    else:
        parts = answer.split(",")
    return len(parts) == count and all(map(_alike, parts, truth))


def _alike(read: str, truth: str | float) -> bool:
    read = read.strip()
    if isinstance(truth, str):
        return _plain(read) == _plain(truth)
    found = re.fullmatch(r"(<?)([-+]?[\d,]*\.?\d+)(%?)", read.replace("−", "-"))
    if not found:
        return False
    below, digits, percent = found.groups()
    number, decimals = float(digits.replace(",", "")), len(digits.partition(".")[2])
    value = float(truth) * (100 if percent else 1)
    return value < number if below else abs(value - number) <= 0.501 * 10**-decimals + 5e-4 * abs(value)


def _plain(text: str) -> str:
    """Without the marks of spaces and of parts of words."""
    return text.strip().strip("▁·").strip()


def _softmax(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    powers = np.exp(logits.astype(np.float64) - logits.max())
    return powers / powers.sum()


def _bits(shares: NDArray[np.float64]) -> float:
    some = shares[shares > 0]
    return float(-(some * np.log2(some)).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("sentence")
    parser.add_argument("--answers", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    asked = questions(Translator.load(options.model, device="cpu"), options.sentence)
    if options.answers is None:
        print("\n".join(f"{number} {question}" for number, (question, _) in enumerate(asked, start=1)))
        return
    answers = options.answers.read_text(encoding="utf-8").splitlines()
    if len(answers) != len(asked):
        raise UserError(f"{options.answers}: {len(answers)} lines, there are {len(asked)} questions")
    told = [right(answer, truth) for answer, (_, truth) in zip(answers, asked, strict=True)]
    for number, (good, answer, (question, truth)) in enumerate(zip(told, answers, asked, strict=True), start=1):
        if not good:
            truths = ", ".join(one if isinstance(one, str) else f"{float(one):.4g}" for one in truth)
            print(f"{number} {question}\n   read: {answer}\n   true: {truths}")
    print(f"{sum(told)} of {len(told)} right")


if __name__ == "__main__":
    main()
