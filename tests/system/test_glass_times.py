"""How soon the glass box is ready, and how soon it answers: these tests run by themselves, after all others."""

import dataclasses
import math

import pytest
import torch

from headway import Transformer, Translator
from headway.model import ModelConfig
from tests.system.browsing import VIEWS, Window, write_page

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
def large_page(random, tmp_path_factory):
    """6 + 6 layers, 8 heads, d_model 512, 60 tokens on either side; the weights are random."""
    torch.manual_seed(1)
    sizes = random.model.config
    config = ModelConfig.preset(
        "base", source_vocab_size=sizes.source_vocab_size, target_vocab_size=sizes.target_vocab_size
    )
    stored = dataclasses.replace(random.stored, model=Transformer(config).eval(), decoding={"max_length": 59})
    large = Translator(stored)
    words = ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen"]
    count = 1
    while len(stored.source_tokenizer.encode(text := " ".join(words[at % 8] for at in range(count)))) < 59:
        count += 1
    record = large.inspect(text).to_dict()
    assert len(record["source"]["tokens"]) >= 60
    assert len(record["target"]["tokens"]) == 60
    return write_page(record, tmp_path_factory.mktemp("large") / "page.html", "en")


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
