"""What it needs: analyses beside attention, of a page and beside a live model."""

import base64

import numpy as np
import pytest

from headway.insight.analyses.head_importance import AskHeadImportance
from tests.system.browsing import Window, open_live, wait_until

TEXT = "the cat sat on the mat"
PLAIN = ["contributions", "erasure", "contrast", "logit_lens", "decoder_lens", "faithfulness"]
CASES = {
    "en": {"same": "and needs it", "other": "but needs", "none": "no single word"},
    "ko": {"same": "그것이 필요합니다", "other": "필요한 것은", "none": "꼭 필요한 원문 단어는 없습니다"},
}


@pytest.fixture(scope="module")
def record(random):
    pairs = AskHeadImportance(pairs=[("the cat sat", "a b"), ("on the mat", "b a")])
    return random.inspect(TEXT, analyses=[*PLAIN, pairs])


def case_of(record, step: int) -> str:
    look = int(record.attention["cross"].mean(axis=(0, 1))[step].argmax())
    need = record.analyses.erasure.needs[step]
    return "none" if need is None else "same" if need == look else "other"


@pytest.mark.parametrize(("language", "width"), [("en", 1280), ("ko", 390), ("en", 390)])
def test_what_a_token_looks_at_and_what_it_needs(opened, record, language, width):
    window = opened(record.to_dict(), language, width=width)
    view = window.view("needs")
    steps = range(len(record.target.tokens))
    cases = [case_of(record, step) for step in steps]
    said = view.locator("#glass-looksAndNeeds .saying")
    for step in steps:
        view.locator(".tokens-chosen button").nth(step).click()
        assert CASES[language][cases[step]] in said.inner_text()
        assert said.locator(".chip:empty").count() == 0
    shares = [
        record.attention["cross"].mean(axis=(0, 1))[steps[-1]],
        record.analyses.contributions.source[steps[-1]],
        1 - np.exp(-record.analyses.erasure.effect[steps[-1]]),
    ]
    rows = view.locator(".compare tbody tr")
    for place in range(len(record.source.tokens)):
        found = [percentage(text) for text in rows.nth(place).locator(".number").all_inner_texts()]
        assert found == pytest.approx([max(0, share[place]) for share in shares], abs=0.0015)
    counts = [f"{cases.count(case)}" for case in ("same", "other", "none")]
    tally = view.locator("h4 + p").first.inner_text()
    assert all(count in tally for count in counts)
    assert window.page.evaluate("document.documentElement.scrollWidth") == width


def percentage(text: str) -> float:
    """Nothing is said of less than a thousandth, nor of how much likelier a token becomes."""
    return 0 if text[0] in "<−" else float(text.strip("%")) / 100


def test_the_other_analyses_say_what_the_record_says(opened, record):
    window = opened(record.to_dict())
    view = window.view("needs")
    found = record.analyses
    shares = [percentage(text) for text in view.locator("#glass-sourceShare .number").all_inner_texts()]
    assert shares == pytest.approx(list(found.contributions.source_share), abs=0.001)
    foil = record.vocabulary[found.contrast.foils[0]].removeprefix("▁")
    assert foil in view.locator("#glass-contrast .saying").inner_text()
    best = [[record.vocabulary[step[0]].removeprefix("▁") for step in layer] for layer in found.logit_lens.ids]
    lens = view.locator("#glass-logitLens tbody tr")
    assert [lens.nth(at).locator("td bdi").count() for at in range(len(best))] == [len(best[0])] * len(best)
    assert lens.last.locator("td bdi").first.inner_text()[:11] == best[-1][0][:11]
    for outcome, row in zip(
        found.decoder_lens.translations, view.locator("#glass-decoderLens tr").all_inner_texts(), strict=True
    ):
        assert outcome.text in row
    areas = sorted(f"{area:.3f}" for area in found.faithfulness.probability.areas.values())
    assert view.locator("#glass-curves .areas td").all_inner_texts() == areas
    assert not view.locator("#glass-patching").is_visible()
    assert "Not in this page: patching." in view.inner_text()


def test_a_page_without_analyses_says_where_they_are(opened, random):
    window = opened(random.inspect(TEXT).to_dict(), "ko", width=390)
    text = window.view("needs").inner_text()
    assert "headway serve" in text
    assert "--analysis" in text
    assert not window.page.locator("#glass-looksAndNeeds").is_visible()


def test_the_importance_of_heads_stands_in_their_view(opened, record):
    window = opened(record.to_dict())
    view = window.view("heads")
    ablation = record.analyses.head_importance.ablation["cross"]
    view.locator(".importance summary").click()
    picture = view.locator(".importance canvas").first
    assert f"({ablation.shape[0]} × {ablation.shape[1]})" in picture.get_attribute("aria-label")
    picture.press("ArrowRight")
    read = view.locator(".importance output b").first.inner_text().replace("−", "-")
    assert float(read) == pytest.approx(float(ablation[0, 0]), abs=1e-3)


def test_patching_says_which_word_becomes_which(opened, record):
    document = record.to_dict()
    token, other = document["target"]["tokens"][1], {"id": 9, "piece": "▁dog"}
    fields = {"word": token, "other_word": other, "other": "another sentence", "flips_above": 0.25, "step": 1}
    document["analyses"]["patching"] = fields
    for stack, columns in (("encoder", len(record.source.tokens)), ("decoder", 2)):
        data = base64.b64encode(np.full((3, columns), 0.5, "<f2").tobytes()).decode()
        document["arrays"][f"analyses.patching.{stack}"] = {"dtype": "float16", "shape": [3, columns], "data": data}
    window = opened(document, width=390)
    place = window.view("needs").locator("#glass-patching")
    said = place.locator(".saying").inner_text()
    assert all(text in said for text in ("another sentence", "dog", "25.0%"))
    place.locator("canvas[tabindex]").last.press("ArrowRight")
    assert "0.5" in place.locator("output b").last.inner_text()


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_live_model_is_asked_when_the_reader_looks(browser, random, language):
    window = Window(browser)
    requests = open_live(window, random, TEXT, language)
    window.page.wait_for_timeout(500)
    assert [one["analyses"] for one in requests if "analyses" in one] == [["erasure"]]  # for the warning
    view = window.view("needs")
    window.count("#glass-looksAndNeeds .compare", 1)
    window.page.focus("#glass-curves button")
    window.page.keyboard.press("Enter")
    window.count("svg.curves", 1)
    assert window.page.evaluate("document.activeElement.id") == "glass-curves"
    window.page.fill("#glass-other", "the dog sat on the mat")
    window.page.click(".tool-theme")  # drawn again, it has what was typed
    window.count("#glass-looksAndNeeds .compare", 1)
    assert window.page.input_value("#glass-other") == "the dog sat on the mat"
    window.page.click("#glass-patching form button")
    window.contains("#glass-patching .status", "the same translation")  # of this random model, whatever it reads
    window.said.clear()  # the browser notes the refusal
    asked = [one["analyses"] for one in requests if "analyses" in one]
    assert asked[1] == [name for name in PLAIN[:-1] if name != "erasure"]
    assert asked[2:] == [["faithfulness"], [{"kind": "patching", "other": "the dog sat on the mat"}]]
    view.locator(".tokens-chosen button").last.click()
    window.view("translate")
    window.view("needs")
    assert len([one for one in requests if "analyses" in one]) == len(asked)  # what is known isn't asked for again
    window.close(may_move=True)


def test_another_translation_can_be_compared_with(browser, random):
    window = Window(browser)
    found = random.inspect(TEXT).target.text
    open_live(window, random, TEXT)
    window.view("needs")
    window.count("#glass-contrast form", 1)
    window.count("#glass-looksAndNeeds .compare", 1)
    other = f"the {found}"
    wanted = random.inspect(TEXT, analyses=[{"kind": "contrast", "instead": other}])
    usual = random.inspect(TEXT, analyses=["contrast"]).analyses.contrast
    pairs = zip(wanted.analyses.contrast.foils, usual.foils, strict=True)
    step = next(at for at, (one, before) in enumerate(pairs) if one != before)
    window.page.fill("#glass-instead", other)
    window.page.click(".tool-theme")
    window.count("#glass-contrast form", 1)
    assert window.page.input_value("#glass-instead") == other
    window.page.click("#glass-contrast form button")
    window.contains("#glass-contrast .saying", f"{wanted.analyses.contrast.difference[step]:.2f}".replace("-", "−"))
    window.close(may_move=True)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_beside_a_live_model_numbers_are_its_own(browser, random, language):
    window = Window(browser)
    requests = open_live(window, random, TEXT, language)
    window.view("machine")
    window.page.click(".block h4 button >> nth=0")
    before = len(requests)
    window.page.click(".tool-exact")
    wait_until(window.page, "document.querySelector('.tool-exact').getAttribute('aria-pressed') === 'true'")
    window.view("heads")
    picture = window.page.locator(".large-pictures .matrix:not(.lines) canvas[tabindex]")
    wanted = random.inspect(TEXT).attention["cross"]
    window.page.wait_for_timeout(1500)  # asked for, and drawn again
    layer, head = (int(part) - 1 for part in window.page.inner_text(".heads [aria-pressed=true] b").split("·"))
    picture.press("ArrowRight")
    read = window.page.inner_text(".large-pictures output b")
    assert read == f"{wanted[layer, head, 0, 0]:.3f}"
    names = [name for one in requests[before:] for name in one["arrays"]]
    assert len(names) == len(set(names)) > 0
    assert all(len(one["arrays"]) <= 32 for one in requests[before:])
    window.close(may_move=True)


def test_an_analysis_without_a_part_of_its_own_is_shown(opened, random):
    document = random.inspect(TEXT, analyses=["erasure"]).to_dict()
    document["analyses"]["novelty"] = {"surprise": 0.25}
    document["arrays"]["analyses.novelty.effect"] = document["arrays"]["analyses.erasure.effect"]
    section = opened(document).view("needs").locator("#glass-novelty")
    assert section.locator("h3").inner_text() == "novelty"
    assert section.locator("h4").all_inner_texts() == ["effect"]
    assert section.locator("canvas").first.is_visible()
    assert '"surprise": 0.25' in section.locator("pre").inner_text()


def test_the_verdict_is_seen_first_and_the_rest_is_below_more(opened, record):
    window = opened(record.to_dict(), height=800)
    page = window.page
    page.click("#glass-tab-needs")
    verdict = page.locator("#glass-looksAndNeeds .saying").bounding_box()
    assert verdict["y"] + verdict["height"] < 500
    assert page.evaluate("document.documentElement.scrollHeight") < 1200
    assert not page.locator("#glass-maps").is_visible()
    page.focus(".more > summary")
    page.keyboard.press("Enter")
    assert page.locator("#glass-maps").is_visible()


HOLDS_PATCHING = """() => {
  window.held = [];
  const fetch = window.fetch;
  window.fetch = (path, options) => {
    const [one] = JSON.parse(options.body).analyses ?? [];
    if (one?.kind !== "patching") return fetch(path, options);
    const refusal = { ok: false, text: async () => "patching: gives the same translation" };
    return new Promise((answer) => window.held.push({ other: one.other, refuse: () => answer(refusal) }));
  };
}"""


def test_a_sentence_of_the_readers_own_for_patching_is_not_replaced_by_a_near_one(browser, random):
    window = Window(browser)
    open_live(window, random, TEXT)
    page, own = window.page, "the dog sat on the mat"
    window.view("needs")
    page.evaluate("document.querySelectorAll('#glass-view details').forEach((one) => (one.open = true))")
    page.evaluate(HOLDS_PATCHING)
    page.click("#glass-patching form button")
    wait_until(page, "window.held.length === 1")
    page.fill("#glass-other", own)
    page.press("#glass-other", "Enter")
    wait_until(page, "window.held.length === 2")
    page.evaluate("window.held[0].refuse()")
    page.wait_for_timeout(200)
    assert page.evaluate("window.held.map(({ other }) => other)")[1:] == [own]
    assert page.input_value("#glass-other") == own
    page.evaluate("window.held[1].refuse()")
    window.contains("#glass-patching .status", "the same translation")
    window.close(may_move=True)
