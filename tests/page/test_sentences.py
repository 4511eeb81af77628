"""Every number and claim in the sentences of the glass box is that of the record's arrays, computed here by their own
definitions (docs/record.md), over fifty records."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.insight.maps import measure_heads
from headway.page import document as document_module
from headway.storage import Aligner
from headway.translator import Translator
from tests.page.decoding import decoded
from tests.page.scripts import Script, page
from tests.page.sentences import (
    NAMED_FROM,
    bits_of,
    chips,
    habit,
    label_of,
    names,
    needing,
    percents,
    shares_of,
    shown,
    weights,
)
from tests.page.test_inspecting import random_translator

INPUTS = 50
WORDS = ["the", "cat", "sat", "on", "mat", "a", "dog", "ran", "after"]
CLOSE = 2e-3  # what float16 may turn round


@pytest.fixture(scope="module")
def script(tmp_path_factory) -> Iterator[Script]:
    with page(Path(__file__).parent / "saying.js", tmp_path_factory.mktemp("saying")) as process:
        yield process


@pytest.fixture(scope="module")
def door() -> Translator:
    return random_translator()


@pytest.fixture(scope="module")
def told(door, script) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Records, half of them with heads and needs of known habits, and what the page says of each."""
    chance = np.random.default_rng(1)
    found = []
    for number in range(INPUTS):
        text = " ".join(chance.choice(WORDS, chance.integers(1, 9)))
        record = door.inspect(text, order=number < 3, analyses=["erasure", "contributions"])
        if number % 2:
            habits = {name: habit(chance, name, array) for name, array in record.arrays.items() if "weights" in name}
            record = replace(record, arrays={**record.arrays, **habits})
        document = record.to_dict()
        if number % 2:
            needing(chance, document)
        found.append((document, script.ask({"record": document, "language": "en"})))
    return found


def test_heads_are_called_by_what_they_do(told):
    seen, sure = set(), 0
    for document, said in told:
        cross = weights(document, "cross")
        for one in said["heads"]:
            kind, layer, head = one["kind"], one["layer"], one["head"]
            own = weights(document, kind)[layer][head]
            others = sum(layers.sum(axis=0) for layers in cross) - own if kind == "cross" else None
            shares = shares_of(kind, own, others)
            ordered = sorted(shares.values())
            bits = bits_of(own)
            close = ordered[-1] - ordered[-2] < CLOSE or abs(ordered[-1] - NAMED_FROM) < CLOSE or abs(bits - 1) < CLOSE
            if close:
                continue
            sure += 1
            keys = (
                [document["start"]["piece"], *names(document["target"])]
                if kind == "decoder"
                else names(document["source"])
            )
            best, wanted = label_of(kind, own, shares, keys)
            if best is None:
                assert [float(one["said"].split(" bits")[0].split("entropy ")[1])] == pytest.approx([bits], abs=0.011)
            else:
                assert percents(one["said"])[0] == pytest.approx(100 * shares[best], abs=0.11)
            assert one["label"] == wanted
            assert one["said"].startswith(f"{wanted}: ")
            assert percents(one["said"])[-1] == 100 * NAMED_FROM
            seen.add(wanted.split()[0])
    assert sure > 400
    assert {"previous", "next", "same", "aligned", "before", "after", "diagonal", "mostly", "spread", "by"} <= seen
    assert {"<eos>", "<sos>"} <= seen


def test_a_stripe_is_no_alignment():
    """A head that looks at one word in every row is called by it, though most rows are aligned with that word."""
    rows = np.array([[1, 1, 1, 2, 0]])[0]
    aligned, stripe = np.eye(4)[rows], np.eye(4)[np.full(5, 1)]
    [[_, _, head]] = measure_heads("cross", np.stack([aligned, aligned, stripe])[None].astype(np.float32))
    assert (head.aligned, head.favourite, head.favourite_key) == (pytest.approx(0.6), 1.0, 1)
    [[only]] = measure_heads("decoder", np.ones((1, 1, 2, 1), np.float32))
    assert (only.favourite, only.favourite_key, only.control) == (0.0, None, 1.0)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_measures_are_those_of_python(script, kind):
    chance = np.random.default_rng(3)
    for aligner in (Aligner(), Aligner(1, None, shifted=True, eos_is_nothing=True)):
        maps = chance.dirichlet(np.full(5, 0.3), (2, 3, 5 if kind != "cross" else 4)).astype(np.float32)
        question = {"kind": kind, "maps": maps.tolist(), "aligner": vars(aligner)}
        for found, wanted in zip(script.ask({"measure": question}), measure_heads(kind, maps, aligner), strict=True):
            for one, other in zip(found, wanted, strict=True):
                assert one == pytest.approx(vars(other), abs=1e-6)


def test_what_a_token_needs_is_what_it_loses_most_without(told):
    kinds = {"same": 0, "tie": 0, "other": 0, "none": 0}
    for document, said in told:
        looks = np.concatenate(weights(document, "cross")).mean(axis=0).argmax(axis=1)
        lost = np.maximum(0, 1 - np.exp(-decoded(document["arrays"], "analyses.erasure.effect").astype(np.float64)))
        source, target = names(document["source"]), names(document["target"])
        tally = {"need most": 0, "another": 0, "no single": 0}
        for step, (verdict, _) in enumerate(said["needs"]):
            losses = [shown(one) for one in lost[step]]
            token, look, *others = chips(verdict)
            assert token == target[step]
            assert look == source[looks[step]]
            most = shown(max(lost[step, looks[step]], lost[step, :-1].max(initial=0)))
            alike = [at for at, one in enumerate(losses) if one == most]
            own = losses[looks[step]]
            if "no single word" in verdict:
                kinds["none"] += 1
                tally["no single"] += 1
                assert lost[step, :-1].max(initial=0) < 0.1
                continue
            tally["need most" if looks[step] in alike else "another"] += 1
            if "as much as" in verdict:
                kinds["tie"] += 1
                assert others == [source[at] for at in alike if at != looks[step]]
                assert percents(verdict) == percents(most)
            elif "needs it" in verdict:
                kinds["same"] += 1
                assert alike == [looks[step]]
                assert percents(verdict) == percents(most)
            else:
                kinds["other"] += 1
                assert looks[step] not in alike
                assert others == [*(source[at] for at in alike), look]
                assert percents(verdict) == percents(f"{most} {own}")
        if said["needs"]:
            counts = list(map(int, re.findall(r"\d+", said["needs"][0][1])))
            assert counts == [len(target), *tally.values()]
    assert min(kinds.values()) >= 5


def test_the_picture_says_where_each_word_looked(told):
    rests = 0
    for document, said in told:
        mean = np.concatenate(weights(document, "cross")).mean(axis=0)
        groups = {}
        for side in ("source", "target"):
            groups[side] = {}
            for place, token in enumerate(document[side]["tokens"]):
                groups[side].setdefault(token["word"], []).append(place)
        rows, columns = (list(groups[side].values()) for side in ("target", "source"))
        joined = np.array([[mean[np.ix_(row, column)].sum() / len(row) for column in columns] for row in rows])
        for row, text, places in zip(joined, said["looking"]["target"], rows, strict=True):
            [looked, rest] = [*re.split(r"\. (?=\d|<)", text.partition("It is ")[0], maxsplit=1), ""][:2]
            words = sorted(row[:-1], reverse=True)[: len(percents(looked))]
            assert percents(looked) == pytest.approx([100 * one for one in words], abs=0.11)
            assert bool(rest) == (row[-1] >= 0.3) or abs(row[-1] - 0.3) < CLOSE
            if rest:
                rests += 1
                assert percents(rest)[0] == pytest.approx(100 * row[-1], abs=0.11)
            sure = math.exp(sum(document["steps"][place]["log_probability"] for place in places))
            assert f"It is {shown(sure)} sure of it" in text
            step = document["steps"][places[0]]
            others = [one for one in step["top"] if one["id"] != document["target"]["tokens"][places[0]]["id"]][:3]
            wanted = [math.exp(step["log_probability"]), *(one["probability"] for one in others)]
            assert percents(text)[-len(wanted) :] == percents(" ".join(map(shown, wanted)))
        for column, text in zip(joined.T, said["looking"]["source"], strict=True):
            wanted = sorted(column, reverse=True)[:3]
            assert percents(text)[: len(wanted)] == pytest.approx([100 * one for one in wanted], abs=0.11)
        words = joined[:-1, :-1]  # without <eos> of both
        if words.size:
            assert percents(said["looking"]["first"])[0] == pytest.approx(100 * words.max(), abs=0.11)
            assert "<eos>" not in chips(said["looking"]["first"])[:2]
    assert rests > 10


def test_steps_say_what_they_looked_at_and_how_likely_they_were(told):
    ranks = set()
    for document, said in told:
        source, target = names(document["source"]), names(document["target"])
        read = [document["start"]["piece"], *target]
        cross, own = (np.concatenate(weights(document, kind)).mean(axis=0) for kind in ("cross", "decoder"))
        for step, (looked, taken) in enumerate(said["steps"]):
            token, *others = chips(looked)
            assert token == target[step]
            best = np.argsort(-cross[step], kind="stable")[:2]
            again = np.argsort(-own[step, : step + 1], kind="stable")[:2]
            shares = [*cross[step, best], *own[step, again]]
            assert percents(looked) == pytest.approx([100 * one for one in shares], abs=0.11)
            if (
                min(abs(np.diff(np.sort(-row))[:2].min(initial=1)) for row in (cross[step], own[step, : step + 1]))
                > CLOSE
            ):
                assert others == [*(source[at] for at in best), *(read[at] for at in again)]
            one = document["steps"][step]
            assert percents(taken)[0] == percents(shown(math.exp(one["log_probability"])))[0]
            ranks.add(one["rank"])
            assert ("the likeliest" in taken) == (one["rank"] == 0)
            assert one["rank"] == 0 or f"number {one['rank'] + 1} of the list" in taken
    assert len(ranks) > 1


def test_an_unlikely_translation_is_called_so(told):
    warned = set()
    for document, said in told:
        mean = math.exp(sum(step["log_probability"] for step in document["steps"]) / len(document["steps"]))
        assert said["mean"] == pytest.approx(mean, rel=1e-4)
        assert ("unlikely" in said["warned"]) == (mean < 1 / 3)
        assert mean >= 1 / 3 or percents(said["warned"]) == percents(shown(mean))
        assert ("little to do with the text" in said["warned"]) == document["analyses"]["erasure"]["detached"]
        warned.add(mean < 1 / 3)
    assert warned == {True, False}


def test_the_tour_answers_by_the_arrays(told):
    sinks = set()
    for document, said in told:
        tokens, positions, query, scaling, mask, cross, heads, widened, following = said["tour"]
        arrays, source, target = document["arrays"], names(document["source"]), names(document["target"])
        assert tokens["answer"] == f"Into {len(source)}: {' | '.join(source)}."
        if order := document["order"]:
            texts = [
                *order["sentences"],
                *(one["text"] for kind in ("with", "without") for one in order[f"{kind}_positions"]),
            ]
            assert re.findall("“(.*?)”", positions["answer"]) == [text or "▁" for text in texts]
            for kind, name in (("With", "with"), ("Without", "without"), ("Even with", "with")):
                both = [one["text"] for one in order[f"{name}_positions"]]
                differ = f"{kind} positions, the translations differ" in positions["answer"]
                same = f"{kind} positions, both translations are the same" in positions["answer"]
                assert not (differ and both[0] == both[1])
                assert not (same and both[0] != both[1])
        else:
            assert positions["answer"] == "This was not tried when the page was made."
        layers = {"encoder": weights(document, "encoder"), "cross": weights(document, "cross")}
        for one, kind, rows in ((query, "encoder", source), (cross, "cross", target)):
            values = one["values"]
            row = one["chosen"]["source" if kind == "encoder" else "target"]
            own = layers[kind][values["layer"] - 1][values["head"] - 1][row]
            assert percents(one["answer"]) == pytest.approx([100 * own.max()], abs=0.11)
            assert re.findall("“(.*?)”", one["answer"]) == [rows[row], source[own.argmax()]]
        queries, keys = (
            decoded(arrays, f"encoder.layers.0.self_attention.{one}")[0].astype(float) for one in ("queries", "keys")
        )
        products = queries @ keys.T
        row = products[np.unravel_index(products.argmax(), products.shape)[0]]
        wanted = [100 / np.exp(one - one.max()).sum() for one in (row / math.sqrt(keys.shape[1]), row)]
        assert percents(scaling["answer"]) == pytest.approx(wanted, abs=0.6)  # float16 within the power of e
        hidden = ~decoded(arrays, "decoder.layers.0.self_attention.mask")
        assert mask["answer"].startswith(f"{hidden.sum()} of {hidden.size}: ")
        controls = {
            kind: [
                [own.mean(axis=0)[0 if kind == "decoder" else -1] for own in layer] for layer in weights(document, kind)
            ]
            for kind in ("encoder", "cross", "decoder")
        }
        most = np.array(controls[heads["kind"]])
        assert percents(heads["answer"]) == pytest.approx([100 * most.max()], abs=0.11)
        layer, head = (int(number) - 1 for number in (heads["values"]["layer"], heads["values"]["head"]))
        assert most[layer, head] == pytest.approx(most.max(), abs=1e-3)
        every = max(np.max(one) for one in controls.values())
        if abs(every - NAMED_FROM) > CLOSE:
            assert ("no head of this model looks mostly" in heads["answer"]) == (every < NAMED_FROM)
            sinks.add(every < NAMED_FROM)
        zeros = (decoded(arrays, "encoder.layers.0.feed_forward.hidden") == 0).mean()
        assert percents(widened["answer"]) == pytest.approx([100 * zeros], abs=0.06)
        top = document["steps"][min(1, len(target) - 1)]["top"][0]
        assert top["piece"].removeprefix("▁") in following["answer"]
        assert percents(following["answer"]) == percents(shown(top["probability"]))
    assert sinks == {True, False}


def test_what_is_said_of_another_model_is_true_of_that(door, script):
    """Of one with another activation, of one without scaling, of a source with a tag, of pieces that look alike, and of
    probabilities that aren't known."""
    document = door.inspect("the cat sat on the mat").to_dict()
    usual = script.ask({"record": document, "language": "en"})
    document["model"]["config"]["activation"] = "gelu"
    document["edits"] = [{"kind": "scaling_off"}]
    document["source"]["tokens"][0] |= {"piece": ">>ko<<", "start": 0, "end": 0}
    for at, piece in enumerate(["▁the", "the"]):
        document["steps"][1]["top"][at]["piece"] = piece
    document["steps"][0]["log_probability"] = None
    said = script.ask({"record": document, "language": "en"})
    widened = usual["tour"][7]["card"], said["tour"][7]["card"]
    assert ["those that it doesn't find are 0" in text for text in widened] == [True, False]
    assert "go through gelu" in widened[1]
    assert "Divided by" in usual["tour"][3]["answer"]
    assert said["tour"][3]["answer"].startswith("In this record the scaling is switched off")
    [right, *others] = said["tour"][8]["options"]
    assert right == "the"
    assert right not in others
    assert usual["followed"]["feedForward"].startswith(
        "Feed-forward: the row of ⟦the⟧ alone becomes wider, goes through relu"
    )
    assert "goes through gelu" in said["followed"]["feedForward"]
    assert usual["followed"]["tokens"].startswith("⟦the⟧")
    rests = ["The end symbol means little" in text for text in said["looking"]["source"]]
    assert rests == [False] * (len(rests) - 1) + [True]
    unknown = [word["probability"] is None for word in said["words"]]
    assert unknown == [True] + [False] * (len(unknown) - 1)


def test_zeros_by_rounding_are_no_zeros(door, script, monkeypatch):
    monkeypatch.setattr(document_module, "HALF_PRECISION_UP_TO", 0)
    record = door.inspect("the cat sat on the mat")
    [*_, widened, _] = script.ask({"record": record.to_dict(), "language": "en"})["tour"]
    zeros = (record.arrays["encoder.layers.0.feed_forward.hidden"] == 0).mean()
    assert widened["answer"].startswith("≤ ")
    assert percents(widened["answer"])[0] >= 100 * zeros - 0.05


def test_the_other_sentence_of_patching_is_another(script):
    for text in ("Sat, Feb 25, 1999", "a dog ran", "03/04", "고양이가 개를 봤다"):
        found = script.ask({"near": text})
        assert found
        assert text not in found
        assert len(set(found)) == len(found)
        assert all(len(other) == len(text) for other in found)
        assert all(other == text or sorted(other) == sorted(text) or re.search(r"\d", other) for other in found)
    assert script.ask({"near": "cat"}) == []


@pytest.mark.parametrize(
    ("problem", "count"),
    [
        ("patching: the model gives “a cat dog” the same translation", 2),
        ("the server is busy", 1),
        ("the server has stopped while it was patching: see its log", 1),
        ("", 1),
    ],
)
def test_a_next_sentence_of_patching_is_tried_only_after_one_that_does_not_do(script, problem, count):
    assert script.ask({"near": "a dog cat", "problem": problem}) == script.ask({"near": "a dog cat"})[:count]


def test_in_korean_the_numbers_are_the_same(told, script):
    for document, said in told[:10]:
        korean = script.ask({"record": document, "language": "ko"})
        for one, other in zip(said["heads"], korean["heads"], strict=True):
            assert sorted(percents(one["said"])) == sorted(percents(other["said"]))
        for name in ("needs", "steps"):
            for one, other in zip(said[name], korean[name], strict=True):
                assert sorted(percents(one[0])) == sorted(percents(other[0]))
        for one, other in zip(said["tour"], korean["tour"], strict=True):
            assert sorted(percents(one["answer"])) == sorted(percents(other["answer"]))


def test_blocks_say_what_their_numbers_are(told):
    for document, said in told:
        arrays, count = document["arrays"], 0
        for sublayer, text in said["blocks"].items():
            if sublayer.endswith("feed_forward"):
                zeros = (decoded(arrays, f"{sublayer}.hidden") == 0).mean()
                [said_zeros] = re.findall(r"Here (\S+) of them are 0", text)
                assert percents(said_zeros) == pytest.approx([100 * zeros], abs=0.06)
                continue
            numbers = re.search(r"mean (\S+) and standard deviation (\S+) before, (\S+) and (\S+) after", text)
            assert numbers
            before, after = (decoded(arrays, f"{sublayer}.{name}")[0].astype(float) for name in ("sum", "normalised"))
            wanted = [before.mean(), before.std(), after.mean(), after.std()]
            assert [float(one.replace("−", "-")) for one in numbers.groups()] == pytest.approx(wanted, abs=6e-3)
            count += 1
        assert count == 2 * 2 + 3 * 3


def test_an_edit_without_effect_names_the_word_that_lost_most(script):
    chance = np.random.default_rng(5)
    for _ in range(INPUTS):
        count = chance.integers(1, 6)
        before, now = chance.random((2, count)) if chance.random() < 0.7 else (np.full(count, 0.9),) * 2
        words = [{"text": f"w{at}", "probability": float(one)} for at, one in enumerate(before)]
        tried = {"before": {"text": "x", "words": words}, "now": [{"probability": float(one)} for one in now]}
        text = script.ask({"tried": {**tried, "after": {"text": "x"}}})
        lost = before - now
        if lost.max() < 0.01:
            assert "No word has lost as much as 1%" in text
            assert "the model makes nothing of positions" in text
        else:
            at = lost.argmax()
            assert "makes nothing of" not in text, "what it has lost shows that it does"
            assert f"most of all of w{at}: {shown(before[at])} before, {shown(now[at])} after" in text
        assert script.ask({"tried": {**tried, "after": {"text": "y"}}}) is None
