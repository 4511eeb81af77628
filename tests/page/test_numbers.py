"""Every number that the glass box tells of an analysis, a search, a sampling or a changed model is that of the forward
pass in numpy (headway/plain.py), which knows nothing of torch and of the page, over fifty sentences."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.insight.what_if import HeadOff, read_edits
from headway.model import ModelConfig
from headway.model.shapes import weight_shapes
from headway.plain import Floats
from headway.translator import Translator
from tests.page.asking import KINDS, Told, ask_all
from tests.page.forward import logarithms, of_given
from tests.page.scripts import Script, page
from tests.page.sentences import names, percents, shares_of, shown, weights
from tests.page.test_inspecting import random_translator

ROUNDED = 0.0052
"""Of a number with two digits behind the point, computed in float32 here and in float16 there."""


@pytest.fixture(scope="module")
def door() -> Translator:
    return random_translator()


@pytest.fixture(scope="module")
def script(tmp_path_factory) -> Iterator[Script]:
    with page(Path(__file__).parent / "computing.js", tmp_path_factory.mktemp("computing")) as process:
        yield process


@pytest.fixture(scope="module")
def told(door, script) -> list[Told]:
    return ask_all(door, script)


def numbers(text: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+\.\d+", text.replace("−", "-"))]


def hypothesis(document: dict[str, Any], step: int, number: int | None) -> list[int]:
    """The ids of a candidate of the beam, from the first on."""
    ids: list[int] = []
    while step >= 0 and number is not None:
        one = document["beam"]["steps"][step][number]
        ids.insert(0, one["id"])
        step, number = step - 1, one["parent"]
    return ids


def test_how_likely_a_translation_is(told, door):
    others = 0
    for one in told:
        record, document = one.record, one.asked["record"]
        total = of_given(logarithms(door, record.source.ids, record.target.ids), record.target.ids).sum()
        figure, text = one.said["total"]
        assert percents(figure) == pytest.approx(percents(shown(math.exp(total))), abs=0.11)
        [score] = re.findall(r"as a logarithm (\S+)\. ", text)
        assert numbers(score) == pytest.approx([total], abs=ROUNDED)
        penalty = document["beam"]["length_penalty"]
        finished = {other["text"]: other for other in document["beam"]["finished"]}
        for said, other in zip(one.said["alternatives"], document["alternatives"], strict=True):
            found = finished[other["text"]]
            ids = hypothesis(document, found["step"], found["number"])
            score = of_given(logarithms(door, record.source.ids, ids), ids).sum()
            [share, ranked] = said.rsplit(" · ranked by ")
            assert percents(share)[-1:] == pytest.approx(percents(shown(math.exp(score))), abs=0.11)
            assert numbers(ranked) == pytest.approx([score / ((5 + len(ids)) / 6) ** penalty], abs=ROUNDED)
            others += 1
    assert others > 20


def test_the_beam_is_told_by_what_the_model_gives(told, door):
    seen, finished = set(), 0
    for one in [one for one in told if one.asked["record"]["beam"]["finished"]][:8]:
        record, document = one.record, one.asked["record"]
        beam, said = document["beam"], one.said["search"]
        assert f"The search keeps the {beam['beam_size']} best candidates" in said["about"]
        assert f"(strength {beam['length_penalty']:g})" in said["about"]
        for step, (candidates, listed) in enumerate(zip(beam["steps"], said["candidates"], strict=True)):
            for number, (candidate, text) in enumerate(zip(candidates, listed, strict=True)):
                ids = hypothesis(document, step, number)
                score = of_given(logarithms(door, record.source.ids, ids), ids).sum()
                [told_score] = (
                    re.findall(r": (−?[\d.]+), ", text)[-1:] if number else re.findall(r": (−?[\d.]+), ", text)[:1]
                )
                assert numbers(told_score) == pytest.approx([score], abs=ROUNDED)
                seen.add(candidate["fate"])
        for text, other in zip(said["finished"], beam["finished"], strict=True):
            ids = hypothesis(document, other["step"], other["number"])
            score = of_given(logarithms(door, record.source.ids, ids), ids).sum()
            wanted = [score, score / ((5 + len(ids)) / 6) ** beam["length_penalty"]]
            assert numbers(text)[-2:] == pytest.approx(wanted, abs=ROUNDED)
            finished += 1
        if len(beam["steps"]) > len(record.target.tokens):
            assert f"the search went on to step {len(beam['steps'])}." in said["about"]
    assert seen == {"kept", "finished", "dropped"}
    assert finished > 5


def test_why_this_token_and_not_that_one(told, door):
    for one in told:
        source, target, vocabulary = one.record.source.ids, one.record.target.ids, one.record.vocabulary
        each = np.eye(len(source), dtype=bool)
        found = logarithms(door, source, target, erased=np.concatenate([np.zeros_like(each[:1]), each]))
        steps = np.arange(len(target))
        others = found[0].copy()
        others[steps, target] = -np.inf
        foils = others.argmax(axis=1)
        difference = found[:, steps, target] - found[:, steps, foils]  # (1 + source, target)
        for step, (text, bars) in enumerate(one.said["contrast"]):
            assert f" minus that of ⟦{vocabulary[foils[step]].removeprefix('▁')}⟧ is " in text
            assert numbers(text)[-1:] == pytest.approx([difference[0, step]], abs=ROUNDED)
            lost = difference[0, step] - difference[1:, step]
            np.testing.assert_allclose([numbers(bar)[0] for bar in bars], lost, rtol=1e-3, atol=ROUNDED)


def test_which_method_to_believe(told, door):
    """The curve of each method, the mean over the steps of what its own first tokens take, and the area below it."""
    titles = {"attention, mean of all heads": "attention", "contrast, erasure": "contrast_erasure"}
    for one in told[::2]:
        record, source, target = one.record, one.record.source.ids, one.record.target.ids
        found, words = record.analyses, len(source) - 1
        counts = sorted({0, words, *(1 << power for power in range(words.bit_length()) if 1 << power < words)})
        orders = {
            "attention": np.concatenate(record.attention["cross"]).mean(axis=0),
            "contributions": found.contributions.source,
            "erasure": found.erasure.effect,
            "contrast_erasure": found.contrast.erasure,
        }
        said = one.said["analyses"]["curves"]
        [_, *rows] = said["rows"]
        areas = [float(area) for _, area in rows]
        assert areas == sorted(areas)
        for (title, area), line in zip(rows, said["lines"], strict=True):
            heights = np.array([float(point.split(",")[1]) for point in line.split()])
            drawn = 1 - (heights - 8) / 178
            assert float(area) == pytest.approx(drawn[1:].mean(), abs=6e-4)
            name = titles.get(title, title)
            if name == "random order":
                continue
            order = np.argsort(-orders[name][:, :words], axis=1, kind="stable")
            curve = []
            for count in counts:
                erased = np.zeros((len(target), len(source)), dtype=bool)
                np.put_along_axis(erased, order[:, :count], True, axis=1)
                rows_of_steps = of_given(logarithms(door, source, target, erased=erased), target)
                curve.append(np.exp(np.diagonal(rows_of_steps)).mean())
            assert drawn == pytest.approx(curve, abs=1e-4)
            assert float(area) == pytest.approx(np.mean(curve[1:]), abs=6e-4)


def test_how_much_comes_from_the_source(told, door):
    detached = set()
    for one in told:
        source, target = one.record.source.ids, one.record.target.ids
        part = one.said["analyses"]["sourceShare"]
        rest = one.record.analyses.contributions.target.sum(axis=1)
        assert percents(" ".join(part["numbers"])) == pytest.approx(100 * (1 - rest), abs=0.11)
        nothing = np.array([[True] * (len(source) - 1) + [False]])
        given, without = (of_given(logarithms(door, source, target, erased=one), target)[0] for one in (None, nothing))
        gain = given - without
        mean = (gain[:-1] if len(gain) > 1 else gain).mean()
        [nats] = re.findall(r"by (\S+) nats on average", part["text"])
        assert numbers(nats) == pytest.approx([mean], abs=ROUNDED)
        assert ("below 2 nats" in part["text"]) == (mean < 2)
        detached.add(bool(mean < 2))
    assert detached == {True, False}


def test_what_each_layer_would_write(told, door):
    config = door.model.config
    for one in told:
        record, source, target = one.record, one.record.source.ids, one.record.target.ids
        [_, *rows] = one.said["analyses"]["logitLens"]["rows"]
        assert len(rows) == config.decoder_layers + 1
        for layer, (_, *cells) in enumerate(rows):
            found = np.exp(logarithms(door, source, target, decoder_layers=layer)[0])
            assert [percents(cell)[-1] for cell in cells] == pytest.approx(100 * found.max(axis=1), abs=0.11)
        scores = [outcome.score for outcome in record.analyses.decoder_lens.translations]
        numbers_told = one.said["analyses"]["decoderLens"]["numbers"]
        assert [numbers(text)[0] for text in numbers_told] == pytest.approx(scores, abs=ROUNDED)
        given = record.analyses.decoder_lens.log_probability
        for layer, row in enumerate(given):
            wanted = of_given(logarithms(door, source, target, encoder_layers=layer), target)[0]
            np.testing.assert_allclose(row, wanted, atol=1e-4)


def test_which_state_carries_the_word(told, door):
    count = 0
    for one in told:
        found = one.record.analyses.patching
        if found is None:
            continue
        count += 1
        text = one.said["analyses"]["patching"]["text"]
        target, pair = one.record.target.ids, [found.word, found.other_word]
        ids = [one.record.source.ids, door.inspect(found.other).source.ids]
        own, other = (np.diff(logarithms(door, source, target)[0, found.step, pair])[0] for source in ids)
        assert own < 0 < other
        assert percents(text) == pytest.approx([100 * own / (own - other)], abs=0.11)
    assert count >= 3


def test_what_is_left_without_a_head(told, door):
    for one in told:
        record, target = one.record, one.record.target.ids
        total = of_given(logarithms(door, record.source.ids, target), target).sum()
        left = {}
        for case in record.cases:
            [edit] = case.edits
            assert isinstance(edit, HeadOff)
            without = of_given(logarithms(door, record.source.ids, target, off=edit), target).sum()
            left[edit] = 100 * math.exp(without - total)
            end = f"Head {edit.head + 1} of layer {edit.layer + 1} off ({KINDS[edit.attention]})"
            [(tile, unseen)] = [(tile, unseen) for tile, unseen in one.said["heads"]["tiles"] if unseen.endswith(end)]
            assert percents(unseen) == pytest.approx(percents(shown(left[edit] / 100)), rel=1e-3, abs=0.11)
            assert float(tile.strip("%")) == pytest.approx(left[edit], rel=1e-3, abs=0.51)
        rows = one.said["heads"]["table"]
        assert [percents(row[1])[0] for row in rows] == pytest.approx(
            [percents(shown(share / 100))[0] for share in sorted(left.values())], rel=1e-3, abs=0.11
        )


def test_a_cell_of_an_attention_says_how_it_came_to_be(told):
    for one in told:
        for cell, text in zip(one.asked["cells"], one.said["cells"], strict=True):
            stack, name = ("encoder", "self") if cell["kind"] == "encoder" else ("decoder", "self")
            name = "cross" if cell["kind"] == "cross" else name
            at = f"{stack}.layers.{cell['layer']}.{name}_attention"
            array = {
                part: one.record.arrays[f"{at}.{part}"][cell["head"]].astype(float)
                for part in ("queries", "keys", "values", "weights")
            }
            row, column = cell["row"], cell["column"]
            if cell["part"] == "queries":
                wanted = [array["queries"][row, column]]
            elif cell["part"] == "output":
                wanted = [(array["weights"] @ array["values"])[row, column]]
            else:
                product = array["queries"][row] @ array["keys"][column]
                wanted = [product, product / math.sqrt(array["keys"].shape[1]), array["weights"][row, column]]
            found = re.findall(r"= (−∞|[−<]?[\d.]+)(?= |÷|mask|softmax|$)", text) or re.findall(
                r": (−?[\d.]+)$|(\S+)$", text
            )
            told_numbers = [one if isinstance(one, str) else one[1] or one[0] for one in found if one != "−∞"]
            assert len(told_numbers) == len(wanted), text
            for told_number, number in zip(told_numbers, wanted, strict=True):
                if told_number.startswith("<"):
                    assert 0 < number < 0.0051
                else:
                    value = float(told_number.replace("−", "-"))
                    digits = len(told_number.partition(".")[2])
                    assert value == pytest.approx(number, abs=0.51 * 10**-digits + 2e-3 * abs(number) + 2e-3)


def test_numbers_are_written_as_the_page_is_and_not_as_the_browser_is(door, tmp_path, monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    document = door.inspect("the cat").to_dict()
    document["model"]["config"]["source_vocab_size"] = 8000
    asked = {"record": document, "language": "en", "cells": [], "heads": [], "settings": []}
    with page(Path(__file__).parent / "computing.js", tmp_path) as german:
        assert "for each of 8,000 tokens" in german.ask(asked)["blocks"]["embedding"]


def test_without_the_mask_rows_of_the_decoder_are_said_to_see_all_places(door, script):
    document = door.inspect("the cat", edits=read_edits([{"kind": "look_ahead_off"}])).to_dict()
    heads = [{"kind": kind, "layer": 0, "head": 0} for kind in ("encoder", "decoder")]
    asked = {"record": document, "language": "en", "cells": [], "heads": heads, "settings": []}
    [_, encoder], [_, decoder] = script.ask(asked)["measures"]
    assert "Each row is a token of the source" in encoder
    assert "each row sees all places" in decoder
    assert "up to its own place" not in decoder


def test_blocks_say_the_sizes_of_the_model(told, door):
    config = door.model.config
    for one in told:
        said, record = one.said["blocks"], one.record
        assert f"for each of {config.source_vocab_size} tokens" in said["embedding"]
        assert f"the square root of {config.d_model}, which is {math.sqrt(config.d_model):.2f}." in said["embedding"]
        places = len(record.target.tokens)
        waves = np.array(
            [
                [
                    (np.cos if at % 2 else np.sin)(pos / 10000 ** ((at - at % 2) / config.d_model))
                    for at in range(config.d_model)
                ]
                for pos in range(places)
            ]
        )
        [half] = re.findall(r"It is (\d+) for a place with itself", said["positions"])
        assert np.diagonal(waves @ waves.T) == pytest.approx([float(half)] * places)
        width = config.d_model // config.decoder_num_heads
        assert f"a sum of {width} products" in said["attention"]
        assert f"√{width} = {math.sqrt(width):.3f} keeps" in said["attention"]
        step = (places - 1) // 2
        shares = logarithms(door, record.source.ids, record.target.ids)[0, step]
        given = shares[record.target.ids[step]]
        [(rank, share)] = re.findall(r"number (\d+) of the list, with a probability of (\S+)\.", said["softmax"])
        assert int(rank) == 1 + (shares > given + 1e-9).sum()
        assert percents(share) == pytest.approx(percents(shown(math.exp(given))), abs=0.11)


def test_sampling_tells_how_many_can_be_drawn_and_how_unsure_it_is(told, door):
    def bits(shares: Floats) -> float:
        some = shares[shares > 0]
        return float(-(some * np.log2(some)).sum())

    for one in told:
        [settings], [said] = one.asked["settings"], one.said["sampling"]
        found = np.sort(logarithms(door, one.record.source.ids, one.record.target.ids)[0, settings["step"]])[::-1]
        shares = np.exp(found / settings["temperature"])
        shares /= shares.sum()
        kept = (np.arange(len(shares)) < settings["topK"]) & (np.cumsum(shares) - shares < settings["topP"])
        drawn = np.where(kept, shares, 0) / shares[kept].sum()
        counted, own = re.findall(r"(\d+) of (\d+) tokens can be drawn", said["told"])[0]
        if abs(np.cumsum(shares)[: settings["topK"]] - settings["topP"]).min() > 1e-4:
            assert [int(counted), int(own)] == [kept.sum(), len(shares)]
            assert numbers(said["told"])[:2] == pytest.approx([bits(drawn), bits(np.exp(found))], abs=0.011)
            after = [row[3] for row in said["rows"][:-1]]
            wanted = [shown(share) if share else "cut" for share in drawn[:10]]
            for text, share in zip(after, wanted, strict=True):
                assert text == share or abs(percents(text)[0] - percents(share)[0]) < 0.11
        assert percents(" ".join(row[2] for row in said["rows"][:-1])) == pytest.approx(
            100 * np.exp(found[:10]), abs=0.11
        )


def test_bars_of_a_head_are_its_measures(told):
    for one in told:
        document = one.asked["record"]
        for asked, (bars, text) in zip(one.asked["heads"], one.said["measures"], strict=True):
            kind = asked["kind"]
            own = weights(document, kind)[asked["layer"]][asked["head"]]
            others = sum(layers.sum(axis=0) for layers in weights(document, "cross")) - own if kind == "cross" else None
            shares = shares_of(kind, own, others)
            order = ["previous", "same", "next", "control", "favourite"]
            if kind == "cross":
                order = ["previous", "aligned", "next", "diagonal", "control", "favourite"]
            *told_shares, bits = bars
            assert [percents(bar)[-1] for bar in told_shares] == pytest.approx(
                [100 * shares[name] for name in order], abs=0.2
            )
            entropy = -(own * np.log2(own, out=np.zeros_like(own), where=own > 0)).sum(axis=1).mean()
            assert numbers(bits) == pytest.approx([entropy], abs=0.011)
            keys = len(names(document["target"] if kind == "decoder" else document["source"]))
            assert f"{math.log2(max(2, keys)):.2f} bits is all {keys} alike" in text


def test_importance_says_over_what_it_was_measured(told, door):
    for one in told[::5]:
        pairs = [(one.record.source.text, "a dog"), ("the mat", "the cat")]
        eos = door.model.config.eos_id
        tokens, total = 0, 0.0
        for source, target in pairs:
            ids = [*door.stored.target_tokenizer.encode(target), eos]
            tokens += len(ids)
            total += of_given(logarithms(door, [*door.stored.source_tokenizer.encode(source), eos], ids), ids).sum()
        text = one.said["importance"]
        assert f"Over {len(pairs)} sentences of {tokens} tokens in all." in text
        [score] = re.findall(r"a log-probability of (\S+) nats", text)
        assert numbers(score) == pytest.approx([total / tokens], abs=ROUNDED)


def test_in_korean_the_numbers_are_the_same(told, script):
    def fractions(said: dict[str, Any]) -> set[str]:
        parts = ("alternatives", "contrast", "heads", "cells", "sampling", "measures")
        return set(re.findall(r"\d+\.\d+", json.dumps([said[part] for part in parts], ensure_ascii=False)))

    for one in told[:5]:
        assert fractions(script.ask({**one.asked, "language": "ko"})) == fractions(one.said)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("shared", ["all", "decoder", "none"])
def test_blocks_have_the_parameters_of_the_model(script, norm, shared):
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 12, "decoder_d_ff": 20, "encoder_layers": 2, "decoder_layers": 3}
    target = 11 if shared == "all" else 13
    for positions, has in (("learned", True), ("sinusoidal", False), ("fairseq", True)):
        more = {"norm": norm, "share_embeddings": shared, "positions": positions} | dict.fromkeys(
            ("output_bias", "norm_embeddings"), has
        )
        config = ModelConfig(11, target, max_length=17, **sizes, **more)
        counts = {name: math.prod(shape) for name, shape in weight_shapes(config).items()}
        found = script.ask({"config": {**config.to_dict(), "decoder_d_ff": 20}})
        assert found["all"] == sum(counts.values())
        parts = {
            "attention": "decoder.layers.0.cross_attention",
            "feedForward": "decoder.layers.0.feed_forward.",
            "norm": "decoder.layers.0.self_residual",
            "output": "decoder.norm",
            "positions": ("target_positions", "target_norm"),
            "linear": "output.",
        }
        for kind, start in parts.items():
            assert found["decoder"][kind] == sum(count for name, count in counts.items() if name.startswith(start))
        assert found["decoder"]["embedding"] == target * 8
