"""Seen without scrolling: the whole machine, a score with its matrix, and on a phone a block where it was tapped."""

import pytest

from tests.system.browsing import random_translator, wait_until

TEXT = "the cat sat on the mat and the dog lay on the rug"
SIZES = [(1280, 800), (1440, 900)]
OUTSIDE = """(selector) => [...document.querySelectorAll(selector)].filter((one) => {
  const { left, right, top, bottom } = one.getBoundingClientRect();
  return left < 0 || top < 0 || right > innerWidth || bottom > innerHeight;
}).map((one) => one.textContent)"""
"""The texts of the elements that aren't wholly in the window."""
SQUEEZED = """() => [...document.querySelectorAll(".block .name")].filter((one) =>
  one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth || one.clientWidth < 30
).map((one) => one.textContent)"""
"""The names that their blocks have no room for."""


@pytest.fixture(scope="module", params=["post", "pre"])
def document(request):
    return random_translator(norm=request.param, encoder_layers=4, decoder_layers=4).inspect(TEXT).to_dict()


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_whole_machine_is_in_one_window_with_its_sentence(opened, document, language, width, height):
    window = opened(document, language, width=width, height=height)
    window.view("machine")
    assert window.page.evaluate(OUTSIDE, ".sentence-line, .follow, .follow-told, .block, .layer, .stack h3") == []
    assert window.page.evaluate(SQUEEZED) == []
    window.page.click(".follow")
    window.page.wait_for_selector(".block.positions.here")
    assert window.page.evaluate("scrollY") == 0
    assert window.page.evaluate(OUTSIDE, ".follow-told, .block") == []


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_score_and_its_matrix_are_seen_together(opened, document, language, width, height):
    window = opened(document, language, width=width, height=height)
    window.view("machine")
    window.page.click(".decoder [data-place=cross]")
    wait_until(window.page, "scrollY > 0")
    parts = ".panel > header, .panel > .controls, .told-numbers, .scene canvas, .block"
    assert window.page.evaluate(OUTSIDE, parts) == []


def test_on_a_phone_a_block_opens_where_it_is_tapped(opened, document):
    window = opened(document, width=390, height=844, has_touch=True)
    window.view("machine")
    for place in (".encoder [data-place=positions]", ".decoder [data-place=cross]", ".decoder [data-place=softmax]"):
        window.page.tap(place)
        window.page.wait_for_timeout(100)
        block, panel = (window.page.locator(one).bounding_box() for one in (place, ".panel"))
        assert 0 <= block["y"] < 422
        assert 0 <= panel["y"] - (block["y"] + block["height"]) < 30
        assert window.page.evaluate("document.documentElement.scrollWidth") == 390
    window.page.set_viewport_size({"width": 1280, "height": 800})
    window.page.wait_for_timeout(100)
    flow, panel = (window.page.locator(one).bounding_box() for one in (".flow", ".panel"))
    assert panel["width"] == flow["width"]
