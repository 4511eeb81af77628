"""Two heads or two sentences side by side, and links that open a sentence, a view and what was chosen in it."""

import json
import re
from urllib.parse import quote

import pytest

from headway.insight.what_if import read_edits
from headway.page.export import export_web
from tests.system.browsing import Window, open_live, wait_until

TEXT, OTHER = "the cat sat on the mat", "the mat sat"
EDITS = [{"kind": "positions_off"}]
HELD = """() => {
    const fetch = window.fetch;
    window.held = [];
    window.fetch = async (...given) => {
      const answer = await fetch(...given);
      if (JSON.parse(given[1].body).text === "a dog") await new Promise((go) => window.held.push(go));
      return answer;
    };
}"""
SLOW = """() => {
    const post = Worker.prototype.postMessage;
    Worker.prototype.postMessage = function (...given) {
      setTimeout(() => post.apply(this, given), 500);
    };
}"""


@pytest.fixture(scope="module")
def record(random):
    return random.inspect(TEXT)


def visible(text: str) -> str:
    """As the page shows it: a model of random weights writes characters that can't be seen."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "▯", text)


def shares(window: Window, side: int) -> list[str]:
    """The first measures of the head in a column."""
    return window.texts(f".compared > div >> nth={side} >> .measures .number")[:5]


def measures(record, layer: int, head: int) -> list[str]:
    one = record.heads["cross"][layer][head]
    found = [one.previous, one.aligned, one.next, one.diagonal, one.control]
    return [f"{100 * share:.1f}%" if share >= 0.001 or share == 0 else "<0.1%" for share in found]


@pytest.mark.parametrize(("language", "width"), [("en", 1280), ("ko", 390)])
def test_two_heads_side_by_side_and_the_link_to_them(opened, record, language, width):
    window = opened(record.to_dict(), language, "#view=heads&kind=cross&layer=2&head=1", width=width)
    window.count(".compared > div", 0)
    window.page.select_option(".beside select", "0.2")
    window.count(".compared > div", 2)
    for side, place in enumerate([(1, 0), (0, 2)]):
        assert shares(window, side) == measures(record, *place)
    assert window.page.evaluate("document.documentElement.scrollWidth") == width
    address = window.page.url
    window.page.goto("about:blank")
    window.page.goto(address)
    window.count(".compared > div", 2)
    assert shares(window, 1) == measures(record, 0, 2)
    window.page.select_option(".beside select", "")
    window.count(".compared > div", 0)
    window.asked = [url for url in window.asked if not url.startswith("about:")]


def test_two_sentences_side_by_side(browser, random, record):
    window = Window(browser)
    requests = open_live(window, random, TEXT)
    window.view("heads")
    window.page.click(".head >> nth=1")
    window.page.focus("#glass-beside")
    window.page.keyboard.type(OTHER)
    window.page.keyboard.press("Enter")
    window.count(".compared > div", 2)
    other = random.inspect(OTHER)
    lines = window.texts(".compared .sentence-line")
    assert lines == [f"{TEXT} → {visible(record.target.text)}", f"{OTHER} → {visible(other.target.text)}"]
    assert [one["text"] for one in requests].count(OTHER) == 1
    for side, one in enumerate([record, other]):
        assert shares(window, side) == measures(one, 0, 1)
        words = window.texts(f".compared > div >> nth={side} >> .words.source bdi")
        assert words == [*one.source.text.split(), "<eos>"]
    window.view("steps")  # the sentence of the box is the first one still
    window.contains(".step .source", "on")
    window.close(may_move=True)


BREAKS_OFF = """() => {
  const fetch = window.fetch;
  window.fetch = () => {
    window.fetch = fetch;
    return new Promise((_, fail) => (window.breakOff = () => fail(new Error("broken off"))));
  };
}"""


def test_a_comparison_that_was_broken_off_is_asked_again_when_the_box_is_drawn_next(browser, random):
    window = Window(browser)
    open_live(window, random, TEXT)
    page = window.page
    window.view("heads")
    page.evaluate(BREAKS_OFF)
    page.fill("#glass-beside", OTHER)
    page.press("#glass-beside", "Enter")
    wait_until(page, "Boolean(window.breakOff)")
    page.click(".tool-theme")
    page.evaluate("window.breakOff()")
    page.wait_for_timeout(200)
    page.click(".tool-theme")
    window.contains(".compared > div >> nth=1", OTHER)
    window.close(may_move=True)


def test_of_the_sentences_beside_the_last_is_shown_also_where_the_box_is_drawn_again(browser, random):
    window = Window(browser)
    open_live(window, random, TEXT)
    page = window.page
    window.view("heads")
    page.evaluate(HELD)
    page.fill("#glass-beside", "a dog")
    page.press("#glass-beside", "Enter")
    wait_until(page, "window.held.length === 1")
    page.fill("#glass-beside", OTHER)
    page.press("#glass-beside", "Enter")
    window.contains(".compared > div >> nth=1", OTHER)
    page.evaluate("window.held.pop()()")
    page.wait_for_timeout(200)
    window.contains(".compared > div >> nth=1", OTHER)
    page.fill("#glass-beside", "a dog")
    page.press("#glass-beside", "Enter")
    wait_until(page, "window.held.length === 1")
    page.click(".tool-theme")
    page.wait_for_timeout(200)
    assert page.evaluate("window.held.length") == 1  # nothing is asked again
    page.evaluate("window.held.forEach((go) => go())")
    window.contains(".compared > div >> nth=1", "a dog")
    window.close(may_move=True)


def test_a_link_holds_the_switches_of_what_if(opened, random):
    record = random.inspect(TEXT, cases="usual")
    window = opened(record.to_dict(), "en", "#view=whatIf")
    for box in window.page.locator(".switches input").all():
        box.set_checked(box.get_attribute("value") == "scaling_off")
    said = window.page.inner_text(".switches ~ .result")
    assert "off=scaling_off" in window.page.url
    address = window.page.url
    window.page.goto("about:blank")
    window.page.goto(address)
    window.page.wait_for_selector(".switches ~ .result .comparison")
    assert window.page.inner_text(".switches ~ .result") == said
    assert window.page.locator(".switches input:checked").count() == 1
    window.asked = [url for url in window.asked if not url.startswith("about:")]


def test_a_link_to_the_page_without_a_server_opens_a_sentence_with_its_edits(browser, random, tmp_path):
    page = tmp_path / "page.html"
    export_web(random.stored, page, "float32")
    wanted = random.inspect(OTHER, edits=read_edits(EDITS))
    window = Window(browser)
    window.page.goto(f"{page.as_uri()}#view=steps&step=2&text={quote(OTHER)}&edits={quote(json.dumps(EDITS))}")
    window.contains(".glass-head .sentence-line", OTHER)
    window.contains(".glass-head .sentence-line", visible(wanted.target.text))
    window.contains(".player output", f"step 2 of {len(wanted.steps)}")
    window.page.click("#glass-as-it-is")
    window.contains(".glass-head .sentence-line", visible(random.inspect(OTHER).target.text))
    window.count(".glass-head .edited", 0)
    assert "edits" not in window.page.url
    assert "text=the+mat+sat" in window.page.url
    window.asked = [url for url in window.asked if not url.startswith("blob:")]
    window.close(may_move=True)


def test_the_page_without_a_server_keeps_its_sentence_beside_another(browser, random, tmp_path):
    """Also where its address names a sentence that the model refuses: then it shows an example."""
    page = tmp_path / "page.html"
    export_web(random.stored, page, "float32")
    window = Window(browser)
    edits = json.dumps([{"kind": "head_off", "attention": "cross", "layer": 9, "head": 9}])
    window.page.goto(f"{page.as_uri()}#view=heads&kind=cross&layer=1&head=1&text={quote(TEXT)}&edits={quote(edits)}")
    window.page.wait_for_selector(".glass-head .sentence-line")
    first = window.texts(".glass-head .sentence-line")
    window.view("heads")
    window.page.click(".head >> nth=1")
    window.page.fill("#glass-beside", OTHER)
    window.page.keyboard.press("Enter")
    window.count(".compared > div", 2)
    window.page.click(".language")
    wait_until(window.page, "document.documentElement.lang === 'ko'")
    assert window.texts(".glass-head .sentence-line") == first
    window.view("translate")
    window.page.evaluate(SLOW)
    window.page.fill("#glass-sentence", OTHER)
    window.page.press("#glass-sentence", "Enter")
    window.page.click(".language")  # what was asked before it is still wanted
    window.contains(".glass-head .sentence-line", OTHER)
    window.asked = [url for url in window.asked if not url.startswith("blob:")]
    window.close(may_move=True)
