"""The glass box with hostile text, on a phone, in light and dark: nothing breaks."""

import dataclasses
import re

import numpy as np
import pytest
import torch

from headway import Transformer, Translator
from headway.model import ModelConfig
from tests.page.decoding import decoded
from tests.system.browsing import VIEWS, Window, open_live, write_page

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "\u202eright to left\u202c \u2067isolated",
    "e" + "\u0301" * 1000,
    "{{constructor.constructor('alert(1)')()}}",
    "javascript:alert(1)",
    "x" * 500,
]
TEXTS = {"text", "piece", "source"}


@pytest.fixture(scope="module")
def translator(trained):
    return Translator.load(trained)


@pytest.fixture(scope="module")
def document(translator):
    text = "ant bee cat dog elk"
    return translator.inspect(text, cases="usual").to_dict()


def with_hostile_text(document: dict) -> dict:
    """The record with hostile text wherever text can come from a sentence or a vocabulary."""
    place = iter(HOSTILE * 1000)

    def changed(value):
        if isinstance(value, dict):
            return {
                key: next(place) if key in TEXTS and isinstance(one, str) else changed(one)
                for key, one in value.items()
            }
        return [changed(one) for one in value] if isinstance(value, list) else value

    arrays = document["arrays"]
    hostile = changed({key: value for key, value in document.items() if key != "arrays"})
    hostile["source"]["text"] = " ".join(HOSTILE)
    hostile["model"]["source_language"] = '"><script>alert(1)</script>'
    hostile["history"] = [{"name": HOSTILE[0], "score": -1.0}]
    return {**hostile, "arrays": arrays}


def every_place(window: Window) -> None:
    """Opens all that can be opened, in every view."""
    page = window.page
    for name in VIEWS:
        window.view(name)
        yield name
        if name == "machine":
            for number in range(page.locator(".block h4 button").count()):
                page.locator(".block h4 button").nth(number).click()
                yield "machine, open"
        if name == "steps":
            page.locator(".player button").last.click()
            yield "steps, at the end"


@pytest.mark.parametrize("language", ["en", "ko"])
def test_hostile_text_stays_text(browser, document, tmp_path, language):
    address = write_page(with_hostile_text(document), tmp_path / "page.html", language)
    window = Window(browser)
    window.page.goto(address)
    for place in every_place(window):
        tags = window.page.evaluate("[...document.querySelectorAll('.glass *')].map((one) => one.localName)")
        assert not {"img", "script", "iframe", "a"} & set(tags), place
        width = window.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert width <= 0, place
    window.view("translate")
    window.page.click(".words.source .word >> nth=1")
    assert "<img src=x onerror=alert(1)>" in window.page.inner_text(".glass")
    assert "\u202e" not in window.page.inner_text(".glass")
    heights = window.page.evaluate("[...document.querySelectorAll('.word')].map((one) => one.offsetHeight)")
    assert max(heights) < 200  # a thousand marks don't grow over the page
    window.close()


CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const paint = (text) => {
    if (!known.has(text)) known.set(text, painted(text));
    return known.get(text);
  };
  const painted = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = (front, back) => front.slice(0, 3).map((one, at) => one * front[3] + back[at] * (1 - front[3]));
  const background = (element) => {
    if (!element) return [255, 255, 255];
    const colour = paint(getComputedStyle(element).backgroundColor);
    return colour[3] === 1 ? colour.slice(0, 3) : over(colour, background(element.parentElement));
  };
  const luminance = (colour) => {
    const linear = (one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    const [red, green, blue] = colour.map((one) => linear(one / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const poor = [];
  const walker = document.createTreeWalker(document.querySelector(".glass"), NodeFilter.SHOW_TEXT);
  let count = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const style = getComputedStyle(element);
    const text = walker.currentNode.data.trim();
    if (!text || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const svg = element.closest("svg");
    const back = background(svg ? svg.parentElement : element);
    const front = over(paint(svg ? style.fill : style.color), back);
    const [high, low] = [luminance(front), luminance(back)].sort((one, other) => other - one);
    const ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) poor.push([text, ratio]);
    count++;
  }
  return [count, poor];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(browser, document, tmp_path, scheme):
    window = Window(browser, scheme=scheme, reduced_motion="reduce")
    window.page.goto(write_page(document, tmp_path / "page.html", "en"))
    for place in every_place(window):
        if place == "whatIf":
            window.page.click(".effect >> nth=1")
        count, poor = window.page.evaluate(CONTRAST)
        assert count > 20, place
        assert poor == [], place
    window.close()


@pytest.mark.parametrize("language", ["en", "ko"])
def test_on_a_phone_nothing_is_cut_off(browser, document, tmp_path, language):
    window = Window(browser, width=390, height=844, has_touch=True)
    window.page.goto(write_page(document, tmp_path / "page.html", language))
    beyond = """[...document.querySelectorAll(".glass *")].filter((one) =>
        !one.closest(".scroll, [role=tablist], svg, .unseen") && one.getBoundingClientRect().right > innerWidth + 1
    ).map((one) => one.className)"""
    for place in every_place(window):
        assert window.page.evaluate(beyond) == [], place
        assert window.page.evaluate("document.documentElement.scrollWidth") == 390, place
    window.close()


def test_who_wants_no_motion_has_none(browser, translator):
    moving = {}
    for motion in ("reduce", "no-preference"):
        window = Window(browser, reduced_motion=motion)
        open_live(window, translator, "ant bee")
        window.page.fill("#glass-sentence", "dog cat bee ant")
        with window.page.expect_response("**/inspect"):
            window.page.keyboard.press("Enter")
        window.contains(".sentence-line", "ant bee cat dog")
        moving[motion] = window.page.evaluate("getComputedStyle(document.querySelector('.target .word')).animationName")
        window.close(may_move=True)
    assert moving == {"reduce": "none", "no-preference": "glass-arrive"}


@pytest.mark.parametrize(
    "changes",
    [
        {"norm": "pre", "positions": "learned", "share_embeddings": "none"},
        {"encoder_layers": 1, "decoder_layers": 2, "decoder_num_heads": 2, "decoder_d_ff": 96, "activation": "gelu"},
    ],
)
def test_other_configurations_are_drawn_as_they_are(browser, translator, tmp_path, changes):
    torch.manual_seed(2)
    sizes = translator.model.config.to_dict() | {"d_model": 32, "num_heads": 4, "d_ff": 64, **changes}
    config = ModelConfig(**sizes)
    stored = dataclasses.replace(
        translator.stored, model=Transformer(config).eval(), decoding={"max_length": 5}, aligner=None
    )
    record = Translator(stored).inspect("ant bee", target="bee ant").to_dict()
    window = Window(browser)
    window.page.goto(write_page(record, tmp_path / "page.html", "en"))
    text = ""
    for place in every_place(window):
        if place == "machine":
            names = window.texts(".decoder .layer-blocks .name")
            assert names[0] == ("Layer norm" if config.norm == "pre" else "Masked self-attention")
            heads = config.decoder_num_heads or config.num_heads
            assert f"{heads} heads of {32 // heads}" in window.page.inner_text(".decoder")
        if place == "machine, open":
            text += window.page.inner_text("#glass-view")
    assert ("sine and cosine" in text) == (config.positions == "sinusoidal")
    assert ("gelu" in text) == (config.activation == "gelu")
    assert "without these numbers" not in text
    assert window.page.locator(".problem").count() == 1
    window.close()


def test_numbers_are_decoded_as_in_python(browser, document, tmp_path):
    """Every kind of entry: float16, int8 with factors, bool, a sum, the same, masked."""
    window = Window(browser)
    window.page.goto(write_page(document, tmp_path / "page.html", "en"))
    window.view("machine")
    window.page.click(".encoder [data-place=embedding]")
    values = decoded(document["arrays"], "source_embedding.embedded")
    window.page.locator(".panel canvas >> nth=0").focus()
    for _ in range(2):
        window.page.keyboard.press("Shift+ArrowRight")
    shown = window.page.inner_text(".panel .readout b >> nth=0")
    assert re.fullmatch(r"−?\d\.\d{3}", shown)
    assert float(shown.replace("−", "-")) == pytest.approx(float(np.asarray(values)[0, 8]), abs=6e-4)
    window.close()
