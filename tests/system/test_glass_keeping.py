"""What the box keeps of the reader's choices, and what it asks again: beside a live model, in Chromium."""

import copy

import pytest

from headway.insight.analyses import AskHeadImportance
from tests.system.browsing import Window, open_live

TEXT = "the cat sat on the mat"
MOUNT = """async (record) => {
  const { mount } = await import("/glass/glass.js");
  await mount(document.getElementById("place"), { record, inspect: async () => record });
}"""


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
        window.page.click(f".head:has-text('{chosen}')")
        window.page.evaluate(MOUNT, document)
        window.view("heads")
        assert window.page.inner_text(pressed) != chosen
        window.count(measured, 0)
        window.contains(".importance button", "Measure")


def test_what_was_refused_is_asked_again_when_another_view_is_opened(window, random):
    requests = open_live(window, random, TEXT)

    def refuse(route) -> None:
        route.fulfill(status=503, body="busy")

    window.context.route("**/inspect", refuse)
    window.view("needs")
    window.contains("#glass-view .status >> nth=0", "busy")
    window.view("whatIf")
    window.contains("#glass-view", "busy")  # it looks for two sentences of the same words
    window.page.click(".tool-exact")
    with window.page.expect_response("**/inspect"):
        window.view("heads")
    window.context.unroute("**/inspect", refuse)
    del requests[:]
    window.view("needs")
    window.contains("#glass-looksAndNeeds .saying", "To write")
    with window.page.expect_request(lambda request: '"order":true' in (request.post_data or "")):
        window.view("whatIf")
    with window.page.expect_request(lambda request: '.weights"' in (request.post_data or "")):
        window.view("heads")
