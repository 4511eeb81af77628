"""The next token by sampling: sliders and draws, of a page alone and beside a live model."""

import re

import numpy as np
import pytest

from tests.system.browsing import Window, open_live

TEXT = "the cat sat on the mat"
STEP = 1
ROW = ".draws tbody tr"


@pytest.fixture(scope="module")
def record(random):
    return random.inspect(TEXT)


def choose(window: Window, **values: float) -> None:
    """Moves the sliders to these values, by their text."""
    for name, value in values.items():
        slider = window.page.locator(f".sampling [data-name={name}]")
        slider.focus()
        slider.press("Home")
        while slider.get_attribute("aria-valuetext") != f"{value}":
            slider.press("ArrowRight")


def cells(window: Window) -> list[list[str]]:
    return window.page.locator(ROW).evaluate_all(
        "all => all.map((row) => [...row.cells].map((one) => one.textContent))"
    )


def share(text: str) -> float:
    return 0.0 if text in ("cut", "제외") else float(text.strip("<%")) / 100


def sampled(logits: np.ndarray, temperature: float, top_k: int, top_p: float) -> np.ndarray:
    weights = np.exp((logits - logits.max()).astype(np.float64) / temperature)
    weights /= weights.sum()
    order = weights.argsort()[::-1]
    kept = (weights[order].cumsum() - weights[order]) < top_p
    kept[top_k:] = False
    weights[order[~kept]] = 0
    return weights / weights.sum()


def check(window: Window, record, cut: str) -> None:
    """The table after these choices, against the logits in numpy; and draws, none of which is of a cut token."""
    choose(window, temperature=1.5, topK=7, topP=0.7)
    window.page.wait_for_selector(".draws .cut")
    wanted = sampled(record.arrays["logits"][STEP], 1.5, 7, 0.7)
    step = record.steps[STEP]
    found = cells(window)
    for (_, _, before, after, _), id_, probability in zip(found, step.ids, step.probabilities, strict=False):
        assert share(before) == pytest.approx(probability, abs=6e-4)
        assert share(after) == pytest.approx(wanted[id_], abs=6e-4)
        assert (after == cut) == (wanted[id_] == 0)
    numbers = re.findall(r"[\d.]+\d|\d", window.page.inner_text(".sampling-parts .quiet >> nth=0"))
    bits = -(wanted[wanted > 0] * np.log2(wanted[wanted > 0])).sum()
    assert {f"{(wanted > 0).sum()}", f"{len(wanted)}", f"{bits:.2f}"} <= set(numbers)
    window.page.click(".sampling .controls button >> nth=1")
    window.page.click(".sampling .controls button >> nth=0")
    window.contains(".sampling .status", "101")
    counts = {tuple(row[:-1]): int(row[-1]) for row in cells(window)}
    assert sum(counts.values()) == 101
    assert not [row for row, count in counts.items() if row[3] == cut and count]
    window.page.click(".sampling .settings button")
    assert [row[2] for row in cells(window)] == [row[3] for row in cells(window)]


@pytest.mark.parametrize(("language", "cut", "width"), [("en", "cut", 1280), ("ko", "제외", 390)])
def test_a_page_alone_samples_as_python_does(browser, record, tmp_path, language, cut, width):
    page = tmp_path / "own.html"
    page.write_text(record.to_page(language), encoding="utf-8")
    window = Window(browser, width=width)
    window.page.goto(f"{page.as_uri()}#view=steps&step={STEP + 1}")
    window.page.wait_for_selector(ROW)
    check(window, record, cut)
    assert window.page.evaluate("document.documentElement.scrollWidth") == width
    window.close()


def test_beside_a_live_model_the_logits_are_asked_for_once(browser, random, record):
    window = Window(browser)
    requests = open_live(window, random, TEXT)
    window.page.wait_for_selector("[role=tab]")
    window.view("steps")
    window.page.click(".player button >> nth=3")
    known = len(requests)
    check(window, record, "cut")
    assert [one.get("arrays") for one in requests[known:]] == [["logits"]]
    window.close(may_move=True)
