"""Step by step: what a step looks at on both sides, what it may not see yet, and the hypotheses of the beam as text."""

import numpy as np
import pytest

TEXT = "the cat sat on the mat"


@pytest.fixture(scope="module")
def record(random):
    return random.inspect(TEXT)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_step_shows_where_it_looks_and_what_is_hidden(opened, record, language, width):
    window = opened(record.to_dict(), language, width=width)
    window.view("steps")
    for _ in range(2):
        window.page.click(".player button >> nth=3")
    step = 2
    tokens = window.page.locator(".step .target .token")
    looks = tokens.evaluate_all("all => all.map((one) => one.className.split(' ').at(-1))")
    assert looks == ["done"] * (step + 1) + ["next"] + ["later"] * (len(looks) - step - 2)
    hatched = tokens.last.evaluate("one => getComputedStyle(one).backgroundImage")
    assert "gradient" in hatched

    cross = record.attention["cross"].mean(axis=(0, 1))[step]
    own = record.attention["decoder"].mean(axis=(0, 1))[step, : step + 1]
    lines = window.page.locator(".step .threads path:not(.arc)").count()
    assert lines == (cross >= 0.03).sum()
    assert window.page.locator(".step .threads .arc").count() == (own >= 0.03).sum()
    named = window.texts(".step-looking .named")
    assert f"{cross.max() * 100:.1f}%" in named[0]
    assert f"{own.max() * 100:.1f}%" in named[2]
    assert window.page.evaluate("document.documentElement.scrollWidth") == width


def test_the_likeliest_five_and_the_one_that_was_taken(opened, record):
    document = record.to_dict()
    document["steps"][0]["top"][8]["id"] = document["target"]["tokens"][0]["id"]
    for one in document["steps"][0]["top"][:8]:
        one["id"] += 1000
    window = opened(document)
    window.view("steps")
    pieces = window.page.locator(".bars-place li")
    assert pieces.count() == 6  # five, and the ninth, which was taken
    assert "taken" in pieces.last.get_attribute("class")


def test_it_plays_faster_when_asked(opened, record):
    window = opened(record.to_dict())
    window.view("steps")
    window.page.select_option(".player select", label="4×")
    window.page.click(".player .primary")
    window.page.wait_for_timeout(1000)  # at a step in 1.2 seconds it would still stand at the first
    assert int(window.page.input_value(".player input[type=range]")) >= 2


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_hypothesis_is_text(opened, record, language):
    document = record.to_dict()
    names = iter(["▁one", "▁two", "▁three", "four"])
    beam = document["beam"]
    number, path = 0, []
    beam["steps"] = beam["steps"][:4]
    for step in beam["steps"]:
        step[0]["piece"], step[0]["parent"] = next(names), None if not path else number
        path.append(step[0]["piece"])
    beam["finished"], beam["result"] = [], None
    window = opened(document, language)
    window.view("steps")
    window.page.click(".player button >> nth=4")
    node = window.page.locator(".tree .node.kept, .tree .node.finished, .tree .node.dropped").nth(
        sum(len(step) for step in beam["steps"][:3])
    )
    node.hover()
    assert window.page.inner_text(".hypothesis bdi") == "one two threefour"
    assert "one two threefour" in node.locator("title").text_content()
    assert np.isfinite(float(window.page.inner_text(".hypothesis .number").replace("−", "-")))
