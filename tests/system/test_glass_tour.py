"""The tour, links that hold the view, presenter mode, and terms that explain themselves."""

import re

import numpy as np
import pytest

TEXT = "the cat sat on the mat"
STOPS = 9
PREDICT = {"en": "Predict first", "ko": "먼저 예상해 보세요"}
SUBJECTS = [".pieces", ".stage canvas", *[".scene canvas"] * 4, ".grid", ".stage canvas", ".step-bars"]
"""For each stop what it speaks of."""
COVERED = """(subject) => {
  const [card, other] = [".tour", subject].map((one) => document.querySelector(one).getBoundingClientRect());
  return other.bottom > card.top && other.top < card.bottom;
}"""
TERM = {"en": "token", "ko": "토큰"}


@pytest.fixture(scope="module")
def record(random):
    return random.inspect(TEXT, cases="usual")


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1440, 900), (390, 844)])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_stop_asks_first_and_answers_from_the_model(opened, record, language, width, height):
    window = opened(record.to_dict(), language, width=width, height=height)
    page = window.page
    page.click(".tool-tour")
    titles = set()
    for stop in range(STOPS):
        titles.add(page.inner_text(".tour header b"))
        assert PREDICT[language] in page.inner_text(".tour .predict")
        assert page.inner_text(".tour .tour-answer") == ""
        page.wait_for_timeout(100)  # until what it speaks of is in sight
        assert not page.evaluate(COVERED, SUBJECTS[stop]), stop
        page.click(".tour .reveal button >> nth=0")
        assert page.inner_text(".tour .tour-answer")
        assert not page.evaluate(COVERED, SUBJECTS[stop]), stop
        if width > 390:  # seen whole beside the card; on a phone it is below the card
            assert page.evaluate(
                """(one) => {
                const { top, bottom } = document.querySelector(one).getBoundingClientRect();
                return top > -1 && bottom <= innerHeight;
            }""",
                SUBJECTS[stop],
            ), stop
        assert page.evaluate("document.documentElement.scrollWidth") == width
        if stop + 1 < STOPS:
            page.keyboard.press("ArrowRight")
    assert len(titles) == STOPS
    page.keyboard.press("ArrowLeft")
    assert page.inner_text(".tour header b") in titles
    page.keyboard.press("Escape")
    assert page.locator(".tour").count() == 0


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_it_ends_with_what_was_seen_and_three_questions(opened, record, language, width):
    window = opened(record.to_dict(), language, width=width)
    page = window.page
    page.click(".tool-tour")
    for _ in range(STOPS):
        page.keyboard.press("ArrowRight")
    assert page.locator(".tour li").count() == 4
    assert page.locator(".tour .tools button:disabled").count() == 1  # nothing comes after
    for number in range(3):
        answer = page.locator(".tour details p").nth(number)
        assert not answer.is_visible()
        page.focus(f".tour summary >> nth={number}")
        page.keyboard.press("Enter")
        assert answer.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.click(".tour .reveal button >> nth=1")
    assert page.get_attribute("#glass-tab-whatIf", "aria-selected") == "true"
    assert page.locator(".tour").count() == 0


def test_only_the_tours_arrows_are_there_while_it_lasts(opened, record):
    window = opened(record.to_dict())
    window.page.click(".tool-tour")
    for _ in range(STOPS):
        assert window.page.locator("button:visible").filter(has_text=re.compile("^[←→]|→$")).count() == 2
        window.page.click(".tour .tools button >> nth=1")
    window.page.keyboard.press("Escape")
    window.view("machine")
    assert window.page.locator(".panel header button:visible").count() == 3


STOP = {"query": 2, "cross": 5, "heads": 6}
WORD = re.compile(r"\w")


def answered(opened, document, stop: str):
    """The box at a stop of the tour, its answer shown. -> the window and the answer"""
    window = opened(document)
    window.page.click(".tool-tour")
    for _ in range(STOP[stop]):
        window.page.keyboard.press("ArrowRight")
    window.page.click(".tour .reveal button >> nth=0")
    return window, window.page.inner_text(".tour .tour-answer")


def most_looked(weights, queries, keys, *, others: bool) -> dict[tuple[int, int], tuple[float, str, str]]:
    """For each head and row of words that look most at a word: the share, and both. weights: (heads, query, key)"""
    found = {}
    for head, rows in enumerate(weights):
        for number, (query, row) in enumerate(zip(queries, rows, strict=True)):
            key = int(row.argmax())
            words = all(one.end > one.start and WORD.search(one.piece) for one in (query, keys[key]))
            if words and not (others and key == number):
                found[head, number] = row[key] * 100, query.piece.lstrip("▁"), keys[key].piece.lstrip("▁")
    return found


def test_the_query_is_one_that_looks_at_another_word(opened, record):
    weights, words = record.arrays["encoder.layers.0.self_attention.weights"], record.source.tokens
    looked = most_looked(weights, words, words, others=True)
    (head, row), (share, query, key) = max(looked.items(), key=lambda one: one[1])
    window, answer = answered(opened, record.to_dict(), "query")
    assert percents_in(answer) == pytest.approx([share], abs=0.11)
    assert f"“{query}”" in answer
    assert f"“{key}”" in answer
    assert f"“{query}”" in window.page.inner_text(".tour .predict")
    assert window.page.locator(".panel .controls input:checked >> nth=0").input_value() == f"{head}"
    assert window.page.locator(".view > .controls select >> nth=0").input_value() == f"{row}"


@pytest.mark.parametrize("aligned", [None, (1, 2)])
def test_source_and_target_meet_in_an_aligned_head_where_there_is_one(opened, record, aligned):
    document, weights = record.to_dict(), record.attention["cross"]
    for layer, heads in enumerate(document["attention"]["cross"]["measures"]):
        for head, measures in enumerate(heads):
            measures.update(dict.fromkeys(measures, 0.1))
            measures["aligned"] = 0.9 if (layer, head) == aligned else 0.3
    heads = [(layer, head) for layer in range(2) for head in range(weights.shape[1])] if aligned is None else [aligned]
    looked = most_looked([weights[place] for place in heads], record.target.tokens, record.source.tokens, others=False)
    (number, _), (share, query, key) = max(looked.items(), key=lambda one: one[1])
    window, answer = answered(opened, document, "cross")
    assert percents_in(answer) == pytest.approx([share], abs=0.11)
    assert f"“{query}”" in answer
    assert f"“{key}”" in answer
    layer, head = heads[number]
    assert f"head {head + 1} of layer {layer + 1}" in window.page.inner_text(".tour .predict")
    assert window.page.locator(".decoder .layer > .choice input:checked").input_value() == f"{layer}"
    assert window.page.locator(".panel .controls input:checked >> nth=0").input_value() == f"{head}"


@pytest.mark.parametrize(
    ("kind", "name", "token"),
    [("encoder", "Encoder self-attention", "<eos>"), ("cross", "Cross-attention", "<eos>"), (None, "", "<sos>")],
)
def test_the_head_that_leaves_its_attention_is_of_the_kind_that_has_one(opened, record, kind, name, token):
    document = record.to_dict()
    for one, about in document["attention"].items():
        for layer, heads in enumerate(about["measures"]):
            for head, measures in enumerate(heads):
                shares = [name for name, value in measures.items() if isinstance(value, float)]
                measures.update(dict.fromkeys(shares, 0.1))
                if (layer, head) == (1, 2):
                    measures["control"] = 0.8 if one == kind else 0.3 if one == "decoder" else 0.2
    window, answer = answered(opened, document, "heads")
    shown = "decoder" if kind is None else kind
    assert window.page.locator("#glass-view .controls input:checked").first.input_value() == shown
    assert name in window.page.inner_text(".tour .predict")
    assert token in window.page.inner_text(".tour .predict")
    assert answer.startswith("Head 3 of layer 2")
    assert percents_in(answer) == [30.0 if kind is None else 80.0]
    assert ("no head of this model" in answer) == (kind is None)


def percents_in(text: str) -> list[float]:
    return [float(one) for one in re.findall(r"([\d.]+)%", text)]


def test_the_answers_are_the_models_own(opened, record):
    """Against the record's arrays, computed here."""
    window = opened(record.to_dict())
    page = window.page
    page.click(".tool-tour")
    answers = []
    for _ in range(STOPS):
        page.click(".tour .reveal button >> nth=0")
        answers.append(page.inner_text(".tour .tour-answer"))
        page.keyboard.press("ArrowRight")
    count, rows = len(record.source.tokens), len(record.target.tokens)
    assert f"Into {count}:" in answers[0]
    assert all(f"“{one}”" in answers[1] for one in record.order.sentences)
    name = "encoder.layers.0.self_attention"
    query, key = (record.arrays[f"{name}.{one}"][0].astype(np.float64) for one in ("queries", "keys"))
    products = query @ key.T
    row = products.max(axis=1).argmax()
    for numbers, shown in ((products[row] / np.sqrt(query.shape[1]), -2), (products[row], -1)):
        share = 1 / np.exp(numbers - numbers.max()).sum() * 100
        assert percents_in(answers[3])[shown] == pytest.approx(share, abs=0.3)
    assert f"{rows * (rows - 1) // 2} of {rows * rows}" in answers[4]
    zeros = (record.arrays["encoder.layers.0.feed_forward.hidden"] == 0).mean()
    assert f"{zeros * 100:.1f}%" in answers[7]
    assert f"{record.steps[1].probabilities[0] * 100:.1f}%" in answers[8]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_link_holds_the_view_and_back_works(opened, record, language):
    other = "en" if language == "ko" else "ko"
    window = opened(record.to_dict(), other, address=f"#view=heads&kind=encoder&layer=2&head=3&lang={language}")
    page = window.page
    assert page.get_attribute(".glass", "lang") == language
    assert page.inner_text(".head[aria-pressed=true] b") == "2·3"
    assert page.get_attribute("#glass-tab-heads", "aria-selected") == "true"
    page.click(".head >> nth=1")
    assert "layer=1" in page.url
    assert "head=2" in page.url
    page.click("#glass-tab-machine")
    page.click(".decoder .layer > .choice label >> nth=1")
    page.click(".decoder [data-place=cross]")
    link = page.url
    page.click("#glass-tab-steps")
    page.go_back()
    window.contains("#glass-tab-machine[aria-selected=true]", "")
    assert page.get_attribute(".decoder [data-place=cross]", "aria-expanded") == "true"
    page.go_back()
    window.contains(".head[aria-pressed=true]", "1·2")
    plain = opened(record.to_dict())
    plain.page.click("#glass-tab-steps")
    plain.page.go_back()
    plain.contains("#glass-tab-translate[aria-selected=true]", "")
    again = opened(record.to_dict(), other, address=f"#{link.split('#')[1]}")
    assert again.page.get_attribute(".decoder [data-place=cross]", "aria-expanded") == "true"
    assert again.page.locator(".decoder .layer > .choice input >> nth=1").is_checked()
    assert opened(record.to_dict(), other, address=f"#lang={language}").page.get_attribute(".glass", "lang") == language


@pytest.mark.parametrize(
    "address", ["#view=nowhere", "#view=heads&layer=99&head=-1&kind=x", "#view=machine&block=%3Cb%3E"]
)
def test_a_link_to_nothing_does_no_harm(opened, record, address):
    window = opened(record.to_dict(), address=address)
    assert window.page.locator("[role=tabpanel] .view").count() == 1


def test_a_block_that_there_is_not_isnt_written_to_the_address(opened, record):
    for block in ("toString%20x", "encoder%20nothing"):
        window = opened(record.to_dict(), address=f"#view=machine&block={block}&layer=1")
        window.page.click("#glass-tab-machine")
        assert "view=machine" in window.page.url
        assert not any(part in window.page.url for part in ("NaN", "block=", "layer="))


def test_presenter_mode_is_large_and_the_theme_can_be_turned(opened, record):
    window = opened(record.to_dict(), scheme="light")
    page = window.page
    size = "parseFloat(getComputedStyle(document.querySelector('[role=tab]')).fontSize)"
    before = page.evaluate(size)
    page.click(".tool-present")
    assert page.evaluate(size) > 1.3 * before
    assert page.evaluate("document.documentElement.scrollWidth") == 1280
    luminance = """getComputedStyle(document.body).backgroundColor
        .match(/[\\d.]+/g).slice(0, 3).reduce((sum, one) => sum + Number(one), 0)"""
    bright = page.evaluate(luminance)
    page.click(".tool-theme")
    assert page.evaluate(luminance) < bright / 3
    page.click(".tool-theme")
    assert page.evaluate(luminance) == bright


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_terms_explain_themselves(opened, record, language, width):
    window = opened(record.to_dict(), language, width=width)
    window.view("heads")
    term = window.page.locator(f".lead .term:has-text('{TERM[language]}')").last
    tip = term.locator(".explained")
    assert not tip.is_visible()
    term.focus()
    assert tip.is_visible()
    box = tip.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
