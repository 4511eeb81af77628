"""Records of known habits for tests of the page's sentences, and what their arrays say by docs/record.md."""

from __future__ import annotations

import base64
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.page.decoding import decoded

Matrix = NDArray[np.float64]
NAMED_FROM = 0.5
"""A label's least share."""
ORDER = ["previous", "aligned", "same", "next", "diagonal", "control", "favourite"]
"""Of measures that are equal, the first names the head."""
LABELS = {
    "previous": {"encoder": "previous", "decoder": "previous", "cross": "before aligned"},
    "next": {"encoder": "next", "decoder": "next", "cross": "after aligned"},
}


def habit(chance: np.random.Generator, name: str, like: NDArray[Any]) -> NDArray[np.float32]:
    """Maps of heads that look at one thing each, more or less. like: (heads, query, key)"""
    _, rows, columns = like.shape
    places = np.arange(rows)
    aligned = (places * 7 + 3) % max(columns - 1, 1)
    aims = [places - 1, places, places + 1, places * 0, places * 0 + columns - 1, places * 0 + columns // 2, aligned]
    aims += [aligned, aligned, aligned - 1, aligned + 1, np.rint(places * (columns - 1) / max(rows - 1, 1))]
    maps = np.zeros(like.shape)
    for one in maps:
        aim = np.clip(aims[chance.integers(len(aims))], 0, columns - 1).astype(int)
        share = chance.choice([0.2, 0.46, 0.55, 0.9])
        one[:] = (1 - share) * chance.dirichlet(np.full(columns, chance.choice([0.05, 5.0])), rows)
        one[places, aim] += share
        if "decoder" in name and "self" in name:
            one[:] = np.tril(one)
            one[:] = np.where(one.sum(1, keepdims=True) > 0, one, np.eye(rows)) + 1e-9 * np.tril(np.ones_like(one))
    return (maps / maps.sum(axis=-1, keepdims=True)).astype(np.float32)


def needing(chance: np.random.Generator, document: dict[str, Any]) -> None:
    """Gives tokens needs of the source, many of them alike."""
    shape = decoded(document["arrays"], "analyses.erasure.effect").shape
    effect = chance.choice([-0.02, 0.02, 0.4, 3.0, 20.0], shape, p=[0.4, 0.3, 0.1, 0.1, 0.1]).astype("<f2")
    entry = {"dtype": "float16", "shape": list(shape), "data": base64.b64encode(effect.tobytes()).decode()}
    document["arrays"]["analyses.erasure.effect"] = entry
    words = effect[:, :-1]
    document["analyses"]["erasure"]["needs"] = [int(row.argmax()) if row.max() >= 0.1 else None for row in words]


def shown(share: float) -> str:
    """A share as the page writes it."""
    value = share * 100
    return f"{value:.0f}%" if value >= 99.95 else f"{value:.1f}%" if value >= 0.1 or value == 0 else "<0.1%"


def percents(text: str) -> list[float]:
    """Those in a text; <0.1% is 0.05."""
    return [0.05 if less else float(one) for less, one in re.findall(r"(<)?([\d.]+)%", text)]


def chips(text: str) -> list[str]:
    return re.findall("⟦(.*?)⟧", text)


def names(side: dict[str, Any]) -> list[str]:
    """Tokens as the page names them."""
    tokens = side["tokens"]
    joined = [at and one["word"] == tokens[at - 1]["word"] and one["piece"][0] != "▁" for at, one in enumerate(tokens)]
    found = [one["piece"].removeprefix("▁") or "▁" for one in tokens]
    return [f"·{name}" if goes_on else name for name, goes_on in zip(found, joined, strict=True)]


def weights(document: dict[str, Any], kind: str) -> list[Matrix]:
    """(heads, query, key) of each layer."""
    about = document["attention"][kind]
    every = (about["names"].replace("{layer}", str(layer)) for layer in range(about["layers"]))
    return [decoded(document["arrays"], f"{name}.weights").astype(np.float64) for name in every]


def shares_of(kind: str, head: Matrix, others: Matrix | None) -> dict[str, float]:
    """The measures that are shares, by their definitions. others: the sum of the other heads, of cross-attention."""
    rows, columns = head.shape
    centre = np.arange(rows) if others is None else others[:, : max(columns - 1, 1)].argmax(axis=1)

    def at(keys: NDArray[Any]) -> float:
        there = (keys >= 0) & (keys < columns)
        return float(head[np.arange(rows)[there], keys[there]].mean()) if there.any() else 0.0

    control = 0 if kind == "decoder" else columns - 1
    received = head.mean(axis=0)
    found = {"previous": at(centre - 1), "next": at(centre + 1), "control": float(received[control])}
    found["favourite"] = float(np.delete(received, control).max(initial=0.0))
    if others is None:
        return {**found, "same": at(centre)}
    diagonal = np.floor(np.arange(rows) * (columns - 1) / max(rows - 1, 1) + 0.5).astype(int)
    return {**found, "aligned": at(centre), "diagonal": at(diagonal)}


def bits_of(rows: Matrix) -> float:
    """The mean entropy of rows of sum 1."""
    return float(-(rows * np.log2(rows, out=np.zeros_like(rows), where=rows > 0)).sum(axis=-1).mean())


def label_of(kind: str, head: Matrix, shares: dict[str, float], keys: list[str]) -> tuple[str | None, str]:
    """The measure that names a head, or None, and its label. shares: of `shares_of`; keys: names of columns."""
    best = max((name for name in ORDER if name in shares), key=lambda name: shares[name])
    if shares[best] < NAMED_FROM:
        return None, "spread" if bits_of(head) >= 1 else "by no rule"
    control = 0 if kind == "decoder" else -1
    received = head.mean(axis=0)
    received[control] = -1
    tokens = {"control": f"{keys[control]} sink", "favourite": f"mostly {keys[received.argmax()]}"}
    return best, LABELS.get(best, {}).get(kind) or tokens.get(best, best)
