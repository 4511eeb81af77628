"""What if: switches, heads, words and order, word by word, and what is said where nothing changes."""

import math
import re

import pytest

from headway.insight.what_if import read_edits
from tests.system.browsing import Window, open_live, random_translator, wait_until

TEXT = "the cat sat on the mat"
HELD = """() => {
    const fetch = window.fetch;
    window.held = [];
    window.fetch = async (...given) => {
      const answer = await fetch(...given);
      if (JSON.parse(given[1].body).cases?.length) await new Promise((go) => window.held.push(go));
      return answer;
    };
}"""
SHARES = "(bars) => bars.map((bar) => Number(bar.style.getPropertyValue('--share')))"
SAME = {"en": "Both translations are the same, word for word.", "ko": "두 번역이 완전히 같습니다."}
ORDER_SAYS = {
    "en": {
        "with": {True: "Even with positions, both translations are the same", False: "With positions, the trans"},
        "without": {True: "Without positions, both translations are the same", False: "Without positions, the trans"},
        "chosen": {True: "This pair was chosen among 7", False: "Of 7 reorderings"},
    },
    "ko": {
        "with": {True: "위치가 있어도 두 번역이 같습니다", False: "위치가 있으면 두 번역이 다릅니다"},
        "without": {True: "위치가 없으면 두 번역이 같습니다", False: "위치가 없으면 두 번역이 다릅니다"},
        "chosen": {True: "7가지를 해 보고 고른", False: "7가지를 해 보았지만"},
    },
}


@pytest.fixture(scope="module")
def document(random):
    return random.inspect(TEXT, cases="usual").to_dict()


def shown(words: list[dict]) -> str:
    """As the page shows them, with a sign for characters that nobody sees."""
    return "".join(one if one.isprintable() else "▯" for one in " ".join(word["text"] for word in words))


def words_in(place) -> str:
    return " ".join(place.locator("bdi").all_inner_texts())


def shares_in(place, kind: str) -> list[float]:
    return place.locator(f".bar.{kind}").evaluate_all(SHARES)


def told(text: str, probability: float = 0.5) -> dict:
    return {"text": text, "score": -1.0, "words": [{"text": word, "probability": probability} for word in text.split()]}


def test_switches_are_tried_together_and_show_what_they_say(document, opened):
    window = opened(document)
    window.view("whatIf")
    boxes = ["positions_off", "look_ahead_off", "scaling_off"]
    chosen = {"positions_off"}  # at first
    card = window.page.locator(".card:has(.switches)")
    for toggled in (None, "scaling_off", "positions_off", "look_ahead_off", "positions_off"):
        if toggled:
            window.page.click(f"[value={toggled}]")
            chosen ^= {toggled}
        assert [window.page.is_checked(f"[value={box}]") for box in boxes] == [box in chosen for box in boxes]
        wanted = [{"kind": box} for box in boxes if box in chosen]
        [case] = [one for one in document["cases"] if one["edits"] == wanted]
        assert len(card.locator("h4").inner_text().split(" · ")) == len(chosen)
        before, after = card.locator("dd").nth(0), card.locator("dd").last
        assert words_in(before) == shown(case["before"]["words"])
        assert words_in(after) == shown(case["after"]["words"])
        steps = document["steps"]
        total = math.prod(shares_in(before, "before")) * math.exp(steps[-1]["log_probability"])
        assert math.log(total) == pytest.approx(document["target"]["score"], abs=0.1)  # shares have four digits
        held = case["after" if case["after"]["text"] == document["target"]["text"] else "before"]["words"]
        assert shares_in(before, "after") == pytest.approx([word["probability"] for word in held], abs=1e-4)
        probabilities = [word["probability"] for word in case["after"]["words"]]
        assert shares_in(after, "after") == pytest.approx(probabilities, abs=1e-4)
    for one in list(chosen):
        window.page.click(f"[value={one}]")
    assert card.locator("h4, dl").count() == 0  # the model as it is has nothing to be compared with


def test_heads_say_what_is_left_and_only_much_has_the_strongest_colour(document, opened):
    cases = [one for one in document["cases"] if one["edits"][0]["kind"] == "head_off"]
    for number, case in enumerate(cases):  # all of them lose little
        case["before"]["score"] = document["target"]["score"] - 0.01 * number
    window = opened(document)
    window.view("whatIf")
    tiles = window.page.locator(".effect")
    assert window.texts(".effect .change") == [f"{100 * math.exp(-0.01 * at):.0f}%" for at in range(len(cases))]
    shares = tiles.evaluate_all(SHARES)
    assert shares == pytest.approx([0.01 * at / 0.5 for at in range(len(cases))], abs=1e-3)
    cases[1]["before"]["score"] -= 20
    window = opened(document)
    window.view("whatIf")
    window.page.click(".try-all")
    rows = window.page.locator(".heads-off tbody tr")
    assert rows.count() == len(cases)
    assert rows.nth(0).locator("td").first.inner_text() == "<0.1%"  # the largest loss first
    left = [100 * math.exp(-0.01 * at) for at in range(len(cases)) if at != 1]
    percents = [float(one.strip("%")) for one in rows.locator("td:nth-child(2)").all_inner_texts()[1:]]
    assert percents == pytest.approx(left[::-1], abs=0.06)
    written = [case["after"]["text"] for case in [cases[1], *(cases[:1] + cases[2:])[::-1]]]
    own = document["target"]["text"]
    wanted = ["the same" if text == own else re.sub(r"[^\w ]", "", text).strip() for text in written]
    texts = rows.locator("td:nth-child(3)").all_inner_texts()
    assert [re.sub(r"[^\w ]", "", text).strip() for text in texts] == wanted
    assert max(window.page.locator(".effect").evaluate_all(SHARES)) == 1.0
    assert window.texts(".effect .change")[1] == "0%"


@pytest.mark.parametrize("width", [390, 1280])
def test_sixteen_heads_have_room(opened, width):
    wide = random_translator(d_model=64, num_heads=16)
    edits = [{"kind": "head_off", "attention": "encoder", "layer": 1, "head": head} for head in range(16)]
    window = opened(wide.inspect(TEXT, cases=[read_edits([edit]) for edit in edits]).to_dict(), width=width)
    crowded = """[...document.querySelectorAll("#glass-view .head")].filter((one) => one.scrollWidth > one.clientWidth
        || [...one.children].some((part) => part.getBoundingClientRect().width > one.getBoundingClientRect().width))
        .map((one) => one.textContent)"""
    for name in ("heads", "whatIf"):
        window.view(name)
        window.page.wait_for_timeout(100)
        assert window.page.evaluate(crowded) == []
        assert (
            window.page.evaluate("Math.min(...[...document.querySelectorAll('.head')].map((o) => o.offsetWidth))") > 24
        )
    window.view("heads")
    window.page.select_option(".controls select", "entropy")
    assert window.page.evaluate(crowded) == []


def test_a_head_of_what_if_can_be_seen_large(random, opened):
    edit = {"kind": "head_off", "attention": "decoder", "layer": 1, "head": 2}
    window = opened(random.inspect(TEXT, cases=[read_edits([edit])]).to_dict())
    window.view("whatIf")
    window.page.click("text=See this head large")
    assert window.page.inner_text(".large h3") == "Layer 2, head 3"
    assert window.page.inner_text(".controls .choice label:has(:checked)") == "Decoder self-attention"


def test_answers_that_come_after_the_box_was_drawn_again_are_shown(browser, random):
    window = Window(browser)
    open_live(window, random, TEXT)
    page = window.page
    window.view("whatIf")
    page.click("[value=positions_off]")
    window.count(".card:has(.switches) h4", 1)
    page.wait_for_selector(".order mark, .order .word-bar")
    page.evaluate(HELD)
    page.click(".effect >> nth=1")
    page.click("[value=positions_off]")
    page.click("[value=scaling_off]")
    wait_until(page, "window.held.length === 2")
    page.click(".tool-theme")
    window.count(".card:has(.switches) h4", 0)  # that was of another switch
    page.fill(".pair-inputs input >> nth=1", "onthe mat")
    page.evaluate("document.activeElement.setSelectionRange(2, 2)")
    page.evaluate("window.held.forEach((go) => go())")
    window.contains(".card:has(.effects) .result h4", "Head 2 of layer 1")
    window.contains(".card:has(.switches) h4", "Without dividing")
    assert page.evaluate("window.held.length") == 2
    assert page.is_checked("[value=scaling_off]")
    assert not page.is_checked("[value=positions_off]")
    page.keyboard.type(" ")  # the cursor is where it was
    assert page.input_value(".pair-inputs input >> nth=1") == "on the mat"
    window.close(may_move=True)


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("alike_with", [True, False])
@pytest.mark.parametrize("alike_without", [True, False])
def test_of_two_orders_only_what_was_seen_is_said(random, opened, language, alike_with, alike_without):
    def pair(alike):
        return [told(text) for text in ("one two", "one two" if alike else "two one")]

    found = random.inspect(TEXT).to_dict()
    both = {"with_positions": pair(alike_with), "without_positions": pair(alike_without)}
    found["order"] = {"sentences": ["a b", "b a"], "tried": 7, **both}
    card = opened(found, language).view("whatIf").locator(".card:has(.order)")
    assert [words_in(cell) for cell in card.locator("td:has(.bar)").all()][:2] == [
        one["text"] for one in pair(alike_with)
    ]
    assert card.locator("mark").count() == 2 - alike_with - alike_without
    says = ORDER_SAYS[language]
    proves = not alike_with and alike_without
    for row, is_so in (("with", alike_with), ("without", alike_without), ("chosen", proves)):
        assert says[row][is_so] in card.inner_text()
        assert says[row][not is_so] not in card.inner_text()


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_translation_that_stays_the_same_is_said_to_and_why(random, opened, language):
    cases = [[{"kind": "positions_off"}], [{"kind": "scaling_off"}], [{"kind": "swap_words", "first": 0, "second": 1}]]
    found = random.inspect(TEXT, cases=[read_edits(case) for case in cases]).to_dict()
    before = [dict(word) for word in found["cases"][0]["before"]["words"]]
    for word in before:
        word["probability"] = 1e-6
    same, other, swap = found["cases"]
    for case in (same, swap):
        case["after"] = {"text": found["target"]["text"], "score": -1.0, "words": before}
    same["before"] = same["after"]
    other["after"] = told("something else")
    window = opened(found, language)
    card = window.view("whatIf").locator(".card:has(.switches)")
    said = card.locator(".seen").inner_text()
    assert SAME[language] in said
    assert "<0.1%" in said  # what is left of the word that lost most
    assert len(said) > len(SAME[language]) + 60  # and why
    window.page.click("[value=positions_off]")
    window.page.click("[value=scaling_off]")
    assert card.locator(".seen").count() == 0
    assert window.texts(".card:has(.switches) mark") == ["something", "else"]
    for word in (0, 1):
        window.page.click(f".card .word >> nth={word}")
    assert SAME[language] in window.page.locator(".result:has(.quoted)").inner_text()

    edited = random.inspect(TEXT, edits=read_edits(cases[2])).to_dict()
    words = edited["before"]["words"]
    for text, given, is_same in (
        (edited["target"]["text"], False, True),
        ("something else", False, False),
        (edited["target"]["text"], True, False),  # whoever gave it knows
    ):
        edited["before"] = {"text": text, "score": -1.0, "words": words}
        edited["target"]["given"] = given
        view = opened(edited, language).view("whatIf")
        assert (SAME[language] in view.locator(".card >> nth=0").inner_text()) == is_same


@pytest.mark.parametrize(("language", "width"), [("en", 1280), ("ko", 390)])
def test_a_long_translation_stays_in_its_card(document, opened, language, width):
    long = told(" ".join(f"word{'y' * (at % 17)}" for at in range(60)))
    for case in document["cases"]:
        case["after"] = long
    document["order"] = {
        "sentences": ["a b", "b a"],
        "tried": 7,
        "with_positions": [long] * 2,
        "without_positions": [long] * 2,
    }
    window = opened(document, language, width=width)
    window.view("whatIf")
    wide = """[...document.querySelectorAll(".glass *")].filter((one) => !one.closest(".scroll, [role=tablist]")
        && !one.closest(".unseen") && one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.className)"""
    assert window.page.evaluate(wide) == []
