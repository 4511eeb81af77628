"""The glass box under load, with hostile text, on a phone, in light and dark: nothing breaks, nothing is slow."""

import dataclasses
import math
import re

import numpy as np
import pytest
import torch

from headway import Transformer, Translator
from headway.model import ModelConfig
from tests.page.decoding import decoded
from tests.system.browsing import Window, open_live, write_page

VIEWS = ["translate", "machine", "heads", "steps", "needs", "whatIf", "numbers"]
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
READY_WITHIN = 1000  # milliseconds, on a machine that needs as many as `PACE_OF_BOUNDS` for what `PACE` does
ANSWERED_WITHIN = 50
ROUNDED = 4  # milliseconds at most, as the browser rounds durations of events to 8
PACE_OF_BOUNDS = 25
PLAIN_OF_BOUNDS = 32  # milliseconds in which that machine answers with a plain table
FILL = """(table) => {
    for (let row = 0; row < 60; row++)
      for (let column = 0, cells = table.insertRow(); column < 30; column++)
        cells.insertCell().textContent = Math.sin(row * column).toFixed(3);
    document.body.append(table);
  }"""
PACE = f"""() => {{
  const fill = {FILL};
  const laidOut = () => {{
    const start = performance.now();
    const table = document.createElement("table");
    fill(table);
    table.getBoundingClientRect();
    table.remove();
    return performance.now() - start;
  }};
  return Array.from({{ length: 5 }}, laidOut).sort((one, other) => one - other)[2];
}}"""
PLAIN_TABLE = f"""() => {{
  const button = document.createElement("button");
  button.id = "plain";
  button.style = "position: fixed; inset: 0 auto auto 0; z-index: 9";
  button.textContent = "a plain table";
  let table = null;
  button.onclick = () => {{
    table?.remove();
    table = document.createElement("table");
    table.style = "position: fixed; inset: 0 auto auto 0";
    ({FILL})(table);
  }};
  document.body.prepend(button);
}}"""


@pytest.fixture(scope="module")
def translator(trained):
    return Translator.load(trained)


@pytest.fixture(scope="module")
def document(translator):
    text = "ant bee cat dog elk"
    return translator.inspect(text, cases="usual").to_dict()


@pytest.fixture(scope="module")
def large_page(translator, tmp_path_factory):
    """6 + 6 layers, 8 heads, d_model 512, 60 tokens on either side; the weights are random."""
    torch.manual_seed(1)
    sizes = translator.model.config
    config = ModelConfig.preset(
        "base", source_vocab_size=sizes.source_vocab_size, target_vocab_size=sizes.target_vocab_size
    )
    stored = dataclasses.replace(translator.stored, model=Transformer(config).eval(), decoding={"max_length": 59})
    large = Translator(stored)
    words = ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen"]
    count = 1
    while len(stored.source_tokenizer.encode(text := " ".join(words[at % 8] for at in range(count)))) < 59:
        count += 1
    record = large.inspect(text).to_dict()
    assert len(record["source"]["tokens"]) >= 60
    assert len(record["target"]["tokens"]) == 60
    return write_page(record, tmp_path_factory.mktemp("large") / "page.html", "en")


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


def test_a_large_record_is_ready_and_answers_at_once(browser, large_page):
    window = Window(browser)
    page = window.page
    page.add_init_script("""
        window.events = [];
        new PerformanceObserver((list) => {
          for (const one of list.getEntries()) if (one.interactionId) window.events.push([one.name, one.duration]);
        }).observe({ type: "event", durationThreshold: 16, buffered: true });
    """)
    page.goto(large_page)
    page.wait_for_selector("[role=tabpanel] .word")
    entries = (
        "performance.getEntriesByType('navigation').concat(performance.getEntriesByName('first-contentful-paint'))"
    )
    times = page.evaluate(f"{entries}.map((one) => one.domContentLoadedEventEnd ?? one.startTime)")
    assert len(times) == 2
    assert max(times) < READY_WITHIN * max(1.0, page.evaluate(PACE) / PACE_OF_BOUNDS)

    tried: dict[str, list[float]] = {}

    def answer(act) -> float:
        """From the event to the next frame, as the browser itself has measured it; below 16 ms it tells nothing."""
        page.evaluate("window.events.length = 0")
        act()
        page.wait_for_timeout(80)
        return max(page.evaluate("window.events.map(([, duration]) => duration)"), default=0)

    def timed(what: str, act) -> None:
        tried.setdefault(what, []).append(answer(act))

    shares: dict[str, float] = {}  # of the time that each may take, in its best round
    for _ in range(8):
        page.reload()  # everything is seen for the first time again
        page.wait_for_timeout(300)
        slowness = max(1.0, page.evaluate(PACE) / PACE_OF_BOUNDS)
        tried.clear()
        for name in (*VIEWS[1:], VIEWS[0]):
            timed(f"view {name}", lambda name=name: page.click(f"#glass-tab-{name}"))
        window.view("machine")
        for place in ("embedding", "positions", "self", "self addNorm", "feed_forward", "output"):
            button = page.locator(f".encoder [data-place='{place}']")
            timed(f"block {place}", button.click)
            if place == "self":
                timed("stage", page.locator(".panel .choice >> nth=1").locator("label >> nth=4").click)
                timed("head of a block", page.locator(".panel .choice >> nth=0").locator("label >> nth=3").click)
                timed("layer", page.locator(".encoder .layer > .choice label >> nth=3").click)
            button.click()
        window.view("heads")
        for kind in range(3):
            timed("kind of heads", page.locator(f".controls .choice label >> nth={kind}").click)
            timed("head", page.locator(".head >> nth=11").click)
        timed("key in a matrix", lambda: page.locator(".large .matrix canvas >> nth=1").press("ArrowDown"))
        window.view("steps")
        for _ in range(3):
            timed("step", page.locator(".player button >> nth=3").click)
        window.view("translate")
        timed("word", page.locator(".words.target .word >> nth=40").click)
        # Other work takes the cores from the processes that draw, too: a plain table takes longer then.
        page.evaluate(PLAIN_TABLE)
        slowness = max(slowness, min(answer(lambda: page.click("#plain")) for _ in range(3)) / PLAIN_OF_BOUNDS)
        for what, times in tried.items():
            shares[what] = min(shares.get(what, math.inf), (min(times) - ROUNDED) / (ANSWERED_WITHIN * slowness))
        if max(shares.values()) <= 1:  # other work on the machine only ever adds
            break
    assert max(shares.values()) <= 1, shares
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
