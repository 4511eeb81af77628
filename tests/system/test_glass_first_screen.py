"""The first screen of the glass box: the sentence large, lines that grow word by word, one sentence about each word."""

import numpy as np
import pytest

from tests.system.browsing import Window

TEXT = "the cat sat on the mat"
WATCHER = """
window.looks = [];
new MutationObserver(() => {
  const words = document.querySelectorAll(".words.target .word").length;
  if (!words) return;
  const later = document.querySelectorAll(".words.target .later").length;
  const lines = document.querySelectorAll(".threads .grows").length;
  window.looks.push(`${later} ${lines > 0}`);
}).observe(document, { subtree: true, childList: true, attributes: true });
"""
SENTENCES = {"en": "To write", "ko": "단어를 쓸 때 본 단어"}


@pytest.fixture
def document(random):
    return random.inspect(TEXT).to_dict()


def set_weights(document, weights) -> None:
    """Gives all heads of all layers these weights, (target, source)."""
    import base64

    about = document["attention"]["cross"]
    shape = [about["heads"], *weights.shape]
    data = base64.b64encode(np.broadcast_to(weights, shape).astype("<f2").tobytes()).decode()
    for layer in range(about["layers"]):
        name = about["names"].replace("{layer}", str(layer))
        document["arrays"][f"{name}.weights"] = {"dtype": "float16", "shape": shape, "data": data}


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_picture_is_at_the_top_and_plays_once(opened, document, language, width):
    window = opened(document, language, width=width)
    page = window.page
    top = page.evaluate("document.querySelector('.looking').getBoundingClientRect().top")
    assert top <= 200
    words = page.locator(".words.target .word").count()
    page.add_init_script(WATCHER)
    page.reload()
    window.count(".words.target .arriving", words)
    seen = page.evaluate("window.looks")
    assert {f"{later} true" for later in range(1, words)} <= set(seen)  # a word at a time, each with growing lines
    window.contains(".looking .detail", SENTENCES[language])
    window.count(".threads .grows", 0)  # at the end it rests on a word
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.click(".language")  # drawn anew, it doesn't play again
    assert page.locator(".words.target .later").count() == 0
    page.click(".looking .play")
    assert page.locator(".words.target .later").count() > 0
    page.hover(".words.target .word >> nth=0")  # who points at a word takes over
    assert page.locator(".words.target .later").count() == 0


def test_it_does_not_play_for_who_wants_no_motion(opened, document):
    window = opened(document, reduced_motion="reduce")
    window.page.wait_for_timeout(300)
    assert window.page.locator(".words.target .later").count() == 0
    assert window.page.locator(".threads path").count() > 0


def test_the_sentence_says_where_it_looked_and_what_rests_on_the_end(opened, document):
    rows, columns = len(document["target"]["tokens"]), len(document["source"]["tokens"])
    weights = np.zeros((rows, columns), np.float32)
    weights[:, 0], weights[:, -1] = 0.375, 0.625
    set_weights(document, weights)
    first = document["source"]["tokens"][0]
    word = TEXT[first["start"] : first["end"]]
    window = opened(document, reduced_motion="reduce")
    window.page.hover(".words.target .word >> nth=0")
    told = window.page.inner_text(".detail .saying")
    assert f"it looked at {word}" in told
    assert "37.5%." in told
    assert "62.5% rests on <eos>" in told
    assert window.page.locator(".threads .rests").count() == 1
    window.page.hover(".words.source .word.control")
    assert "sum to 1" in window.page.inner_text(".detail")

    weights[:, 0], weights[:, -1] = 0.875, 0.125
    set_weights(document, weights)
    window = opened(document, reduced_motion="reduce")
    window.page.hover(".words.target .word >> nth=0")
    assert "rests on" not in window.page.inner_text(".detail")


def test_punctuation_in_a_list_stands_in_a_frame(opened, document):
    document["steps"][0]["top"][0]["piece"] = ","
    document["steps"][0]["top"][1]["piece"] = "."
    window = opened(document, reduced_motion="reduce")
    window.page.hover(".words.target .word >> nth=0")
    framed = window.texts(".detail .others .chip")
    assert "," in framed or "." in framed
    borders = window.page.locator(".detail .others .chip").evaluate_all(
        "all => all.map((one) => getComputedStyle(one).borderTopWidth)"
    )
    assert set(borders) == {"1px"}


@pytest.mark.parametrize("language", ["en", "ko"])
def test_about_the_recording_stands_behind_an_i(opened, document, language):
    window = opened(document, language)
    said = str(document["model"]["config"]["d_model"])
    assert said not in window.page.inner_text(".glass-head")
    window.page.click(".about summary")
    assert said in window.page.inner_text(".glass-head")
    window.page.keyboard.press("Escape")
    assert said not in window.page.inner_text(".glass-head")


@pytest.mark.parametrize("language", ["en", "ko"])
def test_tabs_stand_in_one_row_that_scrolls(opened, document, language):
    window: Window = opened(document, language, width=390)
    tops = window.page.evaluate("[...document.querySelectorAll('[role=tab]')].map((o) => o.offsetTop)")
    assert len(set(tops)) == 1
    for name in ("numbers", "translate"):
        window.view(name)
        left, right = window.page.evaluate(
            "(name) => ['left', 'right'].map((side) => document.querySelector(name).getBoundingClientRect()[side])",
            f"#glass-tab-{name}",
        )
        assert left >= 0
        assert right <= 390
