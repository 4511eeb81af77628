"""What the view of a training says of its moments is what their arrays say, over fifty trainings."""

from __future__ import annotations

import base64
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from headway.insight.maps import measure_heads
from tests.page.scripts import page
from tests.page.sentences import Matrix, bits_of, habit, label_of, names, percents, shares_of, shown
from tests.page.test_inspecting import random_translator
from tests.page.test_sentences import INPUTS, WORDS

KINDS = {"encoder": "Encoder self-attention", "decoder": "Decoder self-attention", "cross": "Cross-attention"}
MEASURES = {
    "previous": "previous token",
    "next": "next token",
    "same": "its own place",
    "aligned": "where the others look",
    "control": "end or start symbol",
    "diagonal": "diagonal",
    "favourite": "one token",
    "entropy": "entropy",
}
Maps = dict[str, list[Matrix]]
"""Of each kind the weights of each layer, (heads, query, key)."""
Told = dict[tuple[str, int, int], tuple[str | None, str, dict[str, float]]]
"""Of each head the measure of its label, the label, and all measures."""
CHANGE = re.compile(
    r"([A-Z][\w-]+(?: self-attention)?), layer (\d+), head (\d+): (.+?) → (.+?) "
    r"\(([^()]+): (\S+?)(?: bits)? → (\S+?)(?: bits)?\)"
)


def moment(document: dict[str, Any], maps: Maps, step: int, chance: np.random.Generator) -> dict[str, Any]:
    arrays, attention = {}, {}
    for kind, layers in maps.items():
        about = document["attention"][kind]
        measures = [[dict(vars(one)) for one in layer] for layer in measure_heads(kind, np.stack(layers))]
        attention[kind] = {**about, "measures": measures}
        for layer, one in enumerate(layers):
            data = base64.b64encode(one.astype("<f4").tobytes()).decode()
            name = f"{about['names'].replace('{layer}', str(layer))}.weights"
            arrays[name] = {"dtype": "float32", "shape": list(one.shape), "data": data}
    losses = {name: float(chance.uniform(0, 7)) for name in ("training_loss", "validation_loss")}
    score = float(-chance.exponential(2))
    return {"step": step, "translation": "a dog", "score": score, **losses, "attention": attention, "arrays": arrays}


def changed(chance: np.random.Generator, maps: Maps) -> Maps:
    """Some heads look at something else; or, where none does, all move a little."""
    found = {kind: [one.copy() for one in layers] for kind, layers in maps.items()}
    few = chance.choice([0.0, 0.2, 0.6])
    for kind, layers in found.items():
        for layer in layers:
            others = habit(chance, f"{kind}.self" if kind == "decoder" else kind, layer)
            for head in range(len(layer)):
                if chance.random() < few:
                    layer[head] = others[head]
            layer[:] = (0.999 * layer + 0.001 * others).astype(np.float32)
    return found


def told_of(maps: Maps, document: dict[str, Any]) -> Told:
    source, target = names(document["source"]), names(document["target"])
    keys = {"encoder": source, "decoder": [document["start"]["piece"], *target], "cross": source}
    found = {}
    for kind, layers in maps.items():
        every = sum(one.astype(float).sum(axis=0) for one in layers)
        for layer, one in enumerate(layers):
            for head, own in enumerate(one.astype(float)):
                shares = shares_of(kind, own, every - own if kind == "cross" else None)
                label = label_of(kind, own, shares, keys[kind])
                found[kind, layer, head] = (*label, {**shares, "entropy": bits_of(own)})
    return found


def test_what_changed_from_one_moment_to_the_next(tmp_path):
    chance, door = np.random.default_rng(11), random_translator()
    relabelled, same = 0, 0
    with page(Path(__file__).parent / "computing.js", tmp_path) as script:
        for _ in range(INPUTS):
            text = " ".join(chance.choice(WORDS, chance.integers(2, 7)))
            document = door.inspect(text, "the cat").to_dict("none")
            shapes = door.inspect(text, "the cat").attention
            first = {kind: [habit(chance, f"{kind}.self", one) for one in layers] for kind, layers in shapes.items()}
            first["cross"] = [habit(chance, "cross", one) for one in shapes["cross"]]
            first["encoder"] = [habit(chance, "encoder", one) for one in shapes["encoder"]]
            moments = [first, changed(chance, first)]
            steps = [0, int(chance.integers(1, 5000))]
            kept = [moment(document, *one, chance) for one in zip(moments, steps, strict=True)]
            document["training"] = {name: document[name] for name in ("source", "target", "start")} | {"moments": kept}
            start, end = script.ask({"record": document, "language": "en"})
            before, now = (told_of(one, document) for one in moments)
            spread = sum(label == "spread" for _, label, _ in before.values())
            assert f"Before the first step: {spread} of {len(before)} heads spread" in start["changes"]
            new = {head for head, (_, label, _) in now.items() if label != before[head][1]}
            between = f"step 0, at step {steps[1]:,}"
            if new:
                relabelled += 1
                assert f"Heads with a new label since {between}: {len(new)} of {len(now)}." in end["changes"]
                check_changes(end["changes"], new, before, now)
            else:
                same += 1
                moved = {
                    (kind, layer, head): np.abs(own - moments[0][kind][layer][head]).sum() / 2 / len(own)
                    for kind, layers in moments[1].items()
                    for layer, one in enumerate(layers)
                    for head, own in enumerate(one.astype(float))
                }
                most = max(moved, key=lambda head: moved[head])
                name = f"{KINDS[most[0]]}, layer {most[1] + 1}, head {most[2] + 1}"
                assert f"Most changed: {name}, where" in end["changes"]
                assert percents(end["changes"]) == percents(shown(moved[most]))
            check_figures([start, end], kept)
    assert relabelled > 20
    assert same > 5


def check_changes(text: str, new: set[tuple[str, int, int]], before: Told, now: Told) -> None:
    """Each head that is named, with its labels and its measure before and now."""
    found = CHANGE.findall(text)
    assert len(found) == min(5, len(new))
    assert ("more, in dashed frames" in text) == (len(new) > 5)
    sizes = []
    for kind, layer, head, was, is_, name, old, value in found:
        key = (next(one for one, title in KINDS.items() if title == kind), int(layer) - 1, int(head) - 1)
        assert key in new
        assert [was, is_] == [before[key][1], now[key][1]]
        measure = now[key][0] or before[key][0] or "entropy"
        wanted = [before[key][2][measure], now[key][2][measure]]
        if measure == "entropy":
            assert [float(old), float(value)] == [round(one, 2) for one in wanted]
        else:
            sizes.append(abs(wanted[1] - wanted[0]))
            assert percents(f"{old} {value}") == percents(" ".join(map(shown, wanted)))
        assert name.endswith(MEASURES[measure]) or key[0] == "cross"
    assert sizes == sorted(sizes, reverse=True)


def check_figures(said: list[dict[str, Any]], moments: list[dict[str, Any]]) -> None:
    for number, (one, figures) in enumerate(zip(said, moments, strict=True), start=1):
        assert one["where"] == f"Step {figures['step']:,}, moment {number} of 2"
        assert percents(one["moment"][2]) == percents(shown(math.exp(figures["score"])))
        assert one["moment"][3:] == [f"{figures['training_loss']:.3f}", f"{figures['validation_loss']:.3f}"]
        first, last = (f"{moment['validation_loss']:.3f}" for moment in moments)
        assert one["curves"] == f"Loss at each moment. Validation loss: {first} at first, {last} at last."
