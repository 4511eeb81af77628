"""What the box keeps of the reader's choices, and what it asks again: beside a live model, in Chromium."""

import copy
import json

import pytest

from headway.insight.analyses import NAMES
from headway.insight.analyses.head_importance import AskHeadImportance
from headway.insight.what_if import read_edits
from tests.system.browsing import Window, open_live, wait_until

TEXT = "the cat sat on the mat"
MOUNT = """async (record) => {
  const { mount } = await import("/glass/glass.js");
  await mount(document.getElementById("place"), { record, inspect: async () => record, analyses: ANALYSES });
}""".replace("ANALYSES", json.dumps(NAMES))

BUSY = """async (record) => {
  Object.assign(window, { asked: [], busy: true });
  const inspect = async (text, options) => {
    window.asked.push(JSON.stringify(options));
    if (window.busy) throw new Error("busy");
    return record;
  };
  const { mount } = await import("/glass/glass.js");
  await mount(document.getElementById("place"), { record, inspect, analyses: ANALYSES });
}""".replace("ANALYSES", json.dumps(NAMES))

WAITING = """async (record) => {
  const { mount } = await import("/glass/glass.js");
  window.held = [];
  const inspect = (text, options) => new Promise((answer, fail) => window.held.push({ options, answer, fail }));
  const options = { record, inspect, analyses: ["faithfulness"], address: {} };
  window.turnTo = (language) => mount(document.getElementById("place"), { ...options, language });
  await window.turnTo("en");
}"""
ASKING = {
    "switch": ("whatIf", ".card:has(.switches)", "[value=scaling_off]"),
    "head": ("whatIf", ".card:has(.effects)", ".effect >> nth=1"),
    "orders": ("whatIf", ".card:has(.pair-inputs)", ".pair-inputs button"),
    "comparison": ("heads", ".beside", "button"),
    "analysis": ("needs", "#glass-curves", "button"),
    "sentence": ("translate", ".sentence", "#glass-translate"),
}
"""What can be asked for: its view, the part of it that says how it goes, and what to click there."""


@pytest.fixture
def window(browser):
    window = Window(browser)
    yield window
    window.context.close()


def test_choices_stay_with_the_model_and_its_target_language(window, random):
    open_live(window, random, "a dog")
    pairs = AskHeadImportance(pairs=[("the cat", "a dog")])
    first = random.inspect(TEXT, analyses=[pairs]).to_dict("attention")
    window.page.evaluate(MOUNT, first)
    pressed = ".head[aria-pressed=true] b"
    window.view("heads")
    default = window.page.inner_text(pressed)
    chosen = next(name for name in ("1·2", "2·1") if name != default)
    window.page.click(f".head:has-text('{chosen}')")
    window.page.click(".importance summary")
    measured = ".importance .maps > div"
    window.count(measured, 2)
    window.view("translate")
    window.page.fill("#glass-sentence", "being typed")
    window.page.evaluate(MOUNT, first)
    assert window.page.input_value("#glass-sentence") == "being typed"

    other = random.inspect("a dog", analyses=[]).to_dict("attention")
    window.page.evaluate(MOUNT, other)
    assert window.page.input_value("#glass-sentence") == "a dog"
    window.view("heads")
    assert window.page.inner_text(pressed) == chosen
    window.count(measured, 2)

    tagged, larger = copy.deepcopy(other), copy.deepcopy(other)
    tagged["source"]["tokens"][0] |= {"piece": ">>ko<<", "start": 0, "end": 0}
    larger["model"]["config"]["d_ff"] += 1
    for document in (tagged, larger):
        window.page.evaluate(MOUNT, other)
        window.view("needs")
        window.page.fill("#glass-instead", "of this model")
        window.view("heads")
        window.page.click(f".head:has-text('{chosen}')")
        window.page.evaluate(MOUNT, document)
        window.view("heads")
        assert window.page.inner_text(pressed) != chosen
        window.count(measured, 0)
        window.contains(".importance button", "Measure")
        window.view("needs")
        assert window.page.input_value("#glass-instead") != "of this model"


def test_another_translation_is_offered_to_compare_with(window, random):
    open_live(window, random, "a dog")
    record = random.inspect(TEXT).to_dict("layers")
    others = [{"text": text, "score": -9.0} for text in ("the best of them", "another")]
    window.page.evaluate(MOUNT, record | {"alternatives": others})
    window.view("needs")
    assert window.page.input_value("#glass-instead") == "the best of them"


def test_switches_that_stand_as_in_the_record_ask_for_nothing(window, random):
    open_live(window, random, "a dog")
    head = {"kind": "head_off", "attention": "cross", "layer": 0, "head": 0}
    edits = read_edits([{"kind": "positions_off"}, head])
    window.page.evaluate(BUSY, random.inspect(TEXT, edits=edits).to_dict("layers"))
    window.view("whatIf")
    window.page.check("[value=scaling_off]")
    window.page.uncheck("[value=scaling_off]")
    window.page.wait_for_timeout(200)
    tried = [one for one in window.page.evaluate("window.asked") if "cases" in one]
    assert len(tried) == 1


def test_what_was_refused_is_asked_again_when_another_view_is_opened(window, random):
    open_live(window, random, "a dog")
    window.page.evaluate(BUSY, random.inspect(TEXT).to_dict("layers"))
    asked = "(part) => window.asked.filter((options) => options.includes(part)).length"

    def wait_for(part: str, count: int) -> None:
        wait_until(window.page, f"([part, count]) => ({asked})(part) === count", [part, count])

    window.view("needs")
    window.contains("#glass-view .status >> nth=0", "busy")
    window.view("whatIf")
    window.contains("#glass-view", "busy")  # it looks for two sentences of the same words
    window.page.click(".tool-exact")
    window.view("heads")
    wait_for('.weights"', 1)
    before = {part: window.page.evaluate(asked, part) for part in ("erasure", '"order":true', '.weights"')}
    window.page.evaluate("window.busy = false")
    for view, part in (("needs", "erasure"), ("whatIf", '"order":true')):
        window.view(view)
        wait_for(part, before[part] + 1)
    window.view("heads")
    wait_until(window.page, f"(count) => ({asked})('.weights\"') > count", before['.weights"'])


@pytest.mark.parametrize("name", ASKING)
def test_what_waits_or_fails_says_so_also_where_the_box_is_drawn_again(window, random, name):
    view, part, click = ASKING[name]
    page = window.page
    open_live(window, random, TEXT)
    page.evaluate(WAITING, random.inspect(TEXT).to_dict("layers"))
    window.view(view)
    if name == "comparison":
        page.fill("#glass-beside", "a dog")
    before = page.evaluate("window.held.length")
    page.click(f"{part} {click}")
    page.click(".tool-theme")
    status = f"{part} > .status >> nth=-1"
    window.contains(status, "The model is working")
    page.evaluate("window.turnTo('ko')")
    window.contains(status, "모델이 계산하고 있습니다")
    page.evaluate("(at) => window.held[at].fail(new Error('no reply'))", before)
    window.contains(status, "no reply")
    page.click(".tool-theme")
    page.evaluate("window.turnTo('en')")
    if name in ("orders", "head", "analysis"):  # what isn't asked again
        window.contains(status, "That didn't work: no reply")


def test_all_heads_are_tried_also_where_the_box_is_drawn_again(window, random):
    open_live(window, random, TEXT)
    page = window.page
    page.evaluate(WAITING, random.inspect(TEXT).to_dict("layers"))
    window.view("whatIf")
    heads = page.locator(".effect").count()
    page.click(".try-all")
    for at in range(0, heads, 4):
        page.click(".tool-theme")
        page.click(".try-all")  # it is at work already
        held = "window.held.filter(({ options }) => options.cases)"
        wait_until(page, f"(count) => {held}.length >= count", at // 4 + 1)
        asked = page.evaluate(f"{held}.at(-1).options.cases")
        cases = random.inspect(TEXT, cases=[read_edits(one) for one in asked]).to_dict("layers")["cases"]
        page.evaluate(f"(cases) => {held}.at(-1).answer({{ cases }})", cases)
    window.count(".heads-off tbody tr", heads)
    assert page.evaluate(f"{held}.length") == -(-heads // 4)
    assert "" not in window.texts(".effect .change")


def test_choices_stay_where_the_box_is_drawn_again(window, random):
    """Which side of the pictures is lit, the tokens that were drawn, and whether heads are switched off together."""
    open_live(window, random, TEXT)
    page = window.page
    window.view("heads")
    page.check(".lighting [value=column]", force=True)
    window.view("steps")
    page.click(".sampling .controls button >> nth=1")
    window.contains(".sampling .status", "100")
    drawn = window.texts(".draws tbody td:last-child")
    window.view("whatIf")
    page.check(".check:has-text('Also without') input")
    page.click(".tool-theme")
    assert page.is_checked(".check:has-text('Also without') input")
    window.view("steps")
    assert window.texts(".draws tbody td:last-child") == drawn
    assert sum(map(int, drawn)) == 100
    window.view("heads")
    assert page.is_checked(".lighting [value=column]")


def test_switches_are_not_asked_for_again_in_another_language(window, random):
    open_live(window, random, TEXT)
    record = random.inspect(TEXT, cases=[read_edits([{"kind": "scaling_off"}])]).to_dict("layers")
    [case] = record["cases"]
    page = window.page
    page.evaluate(WAITING, record | {"cases": []})
    window.view("whatIf")
    page.click("[value=scaling_off]")
    tried = "window.held.filter(({ options }) => options.cases)"
    page.evaluate(f"(one) => {tried}[0].answer({{ cases: [one] }})", case)
    window.count(".card:has(.switches) h4", 1)
    assert "off=scaling_off" in page.url
    page.evaluate("window.turnTo('ko')")
    assert page.locator(".card:has(.switches) h4").count() == 1
    assert page.evaluate(f"{tried}.length") == 1
