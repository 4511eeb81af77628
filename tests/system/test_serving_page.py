"""The server's page in a real browser (Debian's Chromium), in both languages."""

import json
import math
import shlex
import shutil
from dataclasses import replace

import httpx
import pytest
from benchmarks.load import ServerProcess

from headway import Translator
from headway.insight.analyses import NAMES
from headway.storage import load_model, save_model
from tests.system.browsing import found_by_axe, unreached, wait_until

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium isn't installed")
KEY = "open-sesame"
ROUTES = ["/translate", "/inspect", "/detect"]
HOSTILE = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script> ant bee"
GLASS = """let mounts = 0;
export const sentenceOf = () => null;
export function mount(element, { record, inspect, language }) {
  element.textContent = [++mounts, typeof record, typeof inspect, language].join(" ");
}"""

MEASURING = """export const sentenceOf = () => null;
export async function mount(element, { inspect, analyses }) {
  element.textContent = analyses.join(" ");
  if (analyses.includes("head_importance")) await inspect("ant", { analyses: ["head_importance"] });
}"""


@pytest.fixture(scope="module")
def server(trained):
    with ServerProcess(trained) as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, server):
    """Opens the page as a person has it; whatever goes wrong in it fails the test."""
    contexts, said, asked = [], [], []

    def open_(locale="en-US", width=1100, height=800, scheme="light", at=server, glass=GLASS):
        context = browser.new_context(
            locale=locale, viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=False
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        if glass is not None:
            page.route("**/glass/glass.js", lambda route: route.fulfill(body=glass, content_type="text/javascript"))
        page.goto(f"http://127.0.0.1:{at.port}/")
        page.wait_for_selector("#target option", state="attached")
        return page

    open_.said, open_.asked = said, asked
    yield open_
    for context in contexts:
        for page in context.pages:
            page.unroute_all(behavior="ignoreErrors")
        context.close()
    assert said == []
    assert {url.split("/")[2].split(":")[0] for url in asked} == {"127.0.0.1"}


def translated(page, text, expected):
    page.fill("#text", text)
    sync_api.expect(page.locator("#translation")).to_have_text(expected)


@pytest.mark.parametrize(
    ("locale", "words"),
    [
        ("en-US", ["Clear", "Copy", "Other translations", "See inside", "History", "Detect language"]),
        ("ko-KR", ["지우기", "복사", "다른 번역", "속을 들여다보기", "기록", "언어 감지"]),
    ],
)
def test_type_and_read(open_page, locale, words):
    page = open_page(locale)
    translated(page, "ant bee cat", "cat bee ant")
    assert page.locator("#alternatives li").count() == 2
    content = page.locator("body").inner_text()
    assert all(word in content or page.locator("option", has_text=word).count() for word in words)
    assert page.locator("html").get_attribute("lang") == locale[:2]
    assert page.locator("#count").inner_text().startswith("11" if locale == "en-US" else "5,000자")
    page.click("#clear")
    sync_api.expect(page.locator("#translation")).to_have_text("")
    assert page.locator("#copy").is_disabled()


@pytest.mark.parametrize(
    ("locale", "word", "count"),
    [("en-US", "Translate a file", "3 of 4 sentences"), ("ko-KR", "파일 번역", "4문장 중 3문장")],
)
def test_a_file_is_chosen_or_dropped(open_page, server, locale, word, count):
    page, film = open_page(locale), "1\n00:00:01,000 --> 00:00:02,500\n{}\n"
    assert page.locator("#choose-file").inner_text() == word
    assert ".srt" in page.locator("#file-kinds").inner_text()
    assert ".srt" in page.locator("#file").get_attribute("accept").split(",")
    with page.expect_download(), page.expect_file_chooser() as chooser:
        page.click("#choose-file")
        file = {"name": "a b.srt", "mimeType": "text/plain", "buffer": film.format("ant bee").encode()}
        chooser.value.set_files(file)
    assert page.locator("#made").inner_text() == "a b.tgt.srt"
    assert httpx.get(page.locator("#made").evaluate("made => made.href")).text == film.format("bee ant")
    dropped = page.evaluate_handle(
        "text => { const all = new DataTransfer(); all.items.add(new File([text], 'c.srt')); return all; }",
        film.format("cat dog"),
    )
    with page.expect_download():
        page.dispatch_event("body", "dragover", {"dataTransfer": dropped})
        assert page.locator("body").get_attribute("class") == "dropping"
        page.dispatch_event("body", "drop", {"dataTransfer": dropped})
    assert page.locator("body").get_attribute("class") == ""
    assert httpx.get(page.locator("#made").evaluate("made => made.href")).text == film.format("dog cat")
    asked = []
    page.route("**/progress/*", lambda route: route.fulfill(json={"done": 3, "sentences": 4}))
    page.route("**/translate_file", lambda route: asked.append(route))  # noqa: PLW0108  # it marks the function
    page.set_input_files("#file", file)
    sync_api.expect(page.locator("#file-count")).to_have_text(count)
    assert page.locator("#file-progress").evaluate("bar => bar.position") == 0.75
    said = page.locator("#file-status").inner_text()
    page.click("#page-language")
    assert page.locator("#file-status").inner_text() not in ("", said)
    page.click("#page-language")
    assert page.locator("#file-status").inner_text() == said
    [route] = asked
    assert len(route.request.headers["x-request-id"]) >= 16
    route.abort()
    sync_api.expect(page.locator("#file-progress")).to_be_hidden()
    assert page.locator("#file-count").inner_text() == ""
    open_page.said.clear()
    page.route("**/translate_file", lambda route: route.fulfill(status=413, json={"error": "too large"}))
    page.set_input_files("#file", file)
    sync_api.expect(page.locator("#file-status")).to_contain_text("too large")
    assert "413" in open_page.said.pop()
    assert page.locator("#made").is_hidden()


@pytest.mark.parametrize(
    ("locale", "width", "line", "sure", "warning"),
    [
        (
            "en-US",
            1280,
            "src to tgt, {count} parameters",
            "The model is sure of every word",
            "little to do with the text",
        ),
        ("ko-KR", 390, "src에서 tgt로, 파라미터 {count}개", "모든 단어에 자신이 있습니다", "원문과 관계없는 번역"),
    ],
)
def test_front_doors(open_page, trained, corpus, locale, width, line, sure, warning):
    page = open_page(locale, width)
    assert line.split("{count}")[0] in page.locator("#models").inner_text()
    examples = page.locator("#examples button")
    assert examples.all_inner_texts() == corpus.file("valid.src").read_text().splitlines()[:5]
    words = examples.nth(1).inner_text().split()
    examples.nth(1).click()
    sync_api.expect(page.locator("#translation")).to_have_text(" ".join(reversed(words)))
    sync_api.expect(page.locator("#sureness")).to_contain_text(sure)
    [target, steps] = told(Translator.load(trained).inspect(" ".join(words)).to_dict("none"))
    shown = page.locator("#translation span[title]").evaluate_all("all => all.map(one => [one.textContent, one.title])")
    assert [word for word, _ in shown] == target
    assert [int(title.strip("%")) for _, title in shown] == [
        min(99, int(100 * step)) for step in steps
    ]  # never "sure: 100%"
    page.route("**/inspect", lambda route: route.fulfill(json=detached(route.fetch().json())))
    translated(page, "ant bee", "bee ant")
    sync_api.expect(page.locator("#detached")).to_contain_text(warning)
    page.unroute("**/inspect")
    translated(page, "cat dog", "dog cat")
    sync_api.expect(page.locator("#detached")).to_have_text("")
    with page.expect_request(is_look) as asked:
        page.click("#look-inside")
    assert asked.value.post_data_json["q"] == "cat dog"
    assert abs(page.locator("#inside").bounding_box()["y"]) < 20  # in view at once, before it is filled
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def told(record) -> tuple[list[str], list[float]]:
    """The words of a translation and how likely each is, where every word is one of white space."""
    words = record["target"]["text"].split()
    shares = [1.0] * len(words)
    for token, step in zip(record["target"]["tokens"], record["steps"], strict=True):
        if token["end"] > token["start"]:
            shares[len(record["target"]["text"][: token["end"]].split()) - 1] *= math.exp(step["log_probability"])
    return words, shares


def forget_refusals(said: list[str]) -> None:
    """The browser notes each refusal, also that of a sentence of too many tokens to say how sure the model is."""
    said[:] = [one for one in said if "status of 400" not in one]


def detached(record):
    if "erasure" in record["analyses"]:
        record["analyses"]["erasure"]["detached"] = True
    return record


def test_words_that_it_is_less_sure_of_are_named(open_page):
    """Also of several sentences, and where a character is two halves of a pair."""

    def answer(route) -> None:
        record = route.fetch().json()
        if "translation" in route.request.post_data_json:
            for step in record["steps"][:1]:
                step["log_probability"] = math.log(0.25)
        route.fulfill(json=record)

    page = open_page()
    page.route("**/inspect", answer)
    page.route("**/translate", lambda route: route.fulfill(json={"translatedText": "😀 bee ant. Dog cat!"}))
    page.fill("#text", "Ant bee 😀. Cat dog!")
    sync_api.expect(page.locator("#sureness")).to_contain_text("Least sure of:")
    shares = page.locator("#translation span[title]").evaluate_all(
        "all => all.map(one => [one.textContent, one.title])"
    )
    assert any(word == "Dog" and int(title.strip("<%")) <= 25 for word, title in shares)


@pytest.mark.parametrize(
    ("locale", "says"),
    [
        ("en-US", "Numbers missing from the translation: 20 · 30 Numbers that aren't in the text: 40"),
        ("ko-KR", "번역문에서 빠진 숫자: 20 · 30 원문에 없는 숫자: 40"),
    ],
)
def test_wrong_numbers_are_named(open_page, locale, says):
    numbers, answer = {"missing": ["20", "30"], "invented": ["40"]}, {"translatedText": "bee 40"}
    page = open_page(locale)
    page.route("**/translate", lambda route: route.fulfill(json={**answer, "numbers": numbers}))
    translated(page, "bee 20 30", "bee 40")
    sync_api.expect(page.locator("#numbers")).to_have_text(says)
    page.route("**/translate", lambda route: route.fulfill(json=answer))
    page.fill("#text", "bee 40")
    sync_api.expect(page.locator("#numbers")).to_be_hidden()


@pytest.mark.parametrize(("sentences", "says"), [(4, "sure of every word"), (5, "")])
def test_of_a_text_that_was_judged_in_part_not_every_word_is_said_to_be_sure(open_page, sentences, says):
    def sure(route) -> None:
        record = route.fetch().json()
        for step in record["steps"]:
            step["log_probability"] = 0.0
        route.fulfill(json=record)

    page = open_page()
    page.route("**/inspect", sure)
    page.route("**/translate", lambda route: route.fulfill(json={"translatedText": "Bee ant. " * sentences}))
    page.fill("#text", "Ant bee. " * sentences)
    page.wait_for_selector("#translation span[title]", state="attached", timeout=30_000)
    sync_api.expect(page.locator("#sureness")).to_contain_text(says)
    assert bool(says) == bool(page.locator("#sureness").inner_text())


def test_a_sentence_that_is_too_long_to_judge_leaves_the_others(open_page):
    def answer(route) -> None:
        if route.request.post_data_json["q"].startswith("Ant"):
            route.fulfill(status=400, json={"error": "the text is too long to look into"})
        else:
            route.continue_()

    page = open_page()
    page.route("**/inspect", answer)
    page.route("**/translate", lambda route: route.fulfill(json={"translatedText": "Bee ant. Dog cat."}))
    page.fill("#text", "Ant bee. Cat dog.")
    page.wait_for_selector("#translation span[title]", state="attached")
    named = page.locator("#translation span[title]").all_inner_texts()
    assert set(named) <= {"Dog", "cat"}
    forget_refusals(open_page.said)


def test_the_language_of_the_page_is_chosen_and_kept(open_page):
    page = open_page()
    page.click("text=한국어")
    sync_api.expect(page.locator("#clear")).to_have_text("지우기")
    page.reload()
    sync_api.expect(page.locator("#clear")).to_have_text("지우기")


def test_by_keyboard_alone(open_page):
    page = open_page()
    assert page.evaluate("() => document.activeElement.id") == "text"
    page.keyboard.type("dog elk")
    page.keyboard.press("Control+Enter")
    sync_api.expect(page.locator("#translation")).to_have_text("elk dog")
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("() => document.activeElement.id || document.activeElement.textContent"))
    assert {"clear", "copy", "See inside", "History"} <= set(reached)
    page.focus("#past summary")
    page.keyboard.press("Enter")
    assert page.locator("#past").get_attribute("open") is not None


def test_a_syllable_that_is_being_composed_is_waited_for_longer(open_page):
    page = open_page()
    page.evaluate(
        """() => {
          const text = document.getElementById("text");
          text.value = "ant ㅎ";
          text.dispatchEvent(new InputEvent("input", { isComposing: true }));
        }"""
    )
    page.wait_for_timeout(700)
    assert not [url for url in open_page.asked if url.endswith("/translate")]
    page.wait_for_selector("#translation:not(:empty)")


def test_history_stays_in_the_browser(open_page):
    page = open_page()
    translated(page, "fox gnu", "gnu fox")
    page.click("#past summary")
    sync_api.expect(page.locator("#history li")).to_have_count(1)
    page.reload()
    page.click("#past summary")
    page.click("#history button")
    sync_api.expect(page.locator("#translation")).to_have_text("gnu fox")
    assert page.context.cookies() == []
    page.click("#forget")
    sync_api.expect(page.locator("#history li")).to_have_count(0)
    assert json.loads(page.evaluate("() => localStorage.getItem('headway.history')")) == []


@pytest.mark.parametrize("text", [HOSTILE, "${window.hacked=1} {{hacked}} javascript:alert(1)", "\u202eant\u0000 bee"])
def test_hostile_text_is_inert(open_page, text):
    page = open_page()
    page.fill("#text", text)
    page.wait_for_selector("#translation:not(:empty)")
    page.click("#past summary")
    page.wait_for_selector("#history li")
    assert page.evaluate("() => window.hacked") is None
    assert page.locator("main img, main script").count() == 0
    forget_refusals(open_page.said)


@pytest.mark.parametrize("width", [320, 390])
def test_on_a_phone_nothing_is_cut(open_page, width):
    page = open_page("ko-KR", width, 700, "dark")
    page.fill("#text", "ant " + "x" * 200)
    page.wait_for_selector("#translation:not(:empty)")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert min(page.locator("button:visible").evaluate_all("all => all.map(one => one.offsetHeight)")) >= 40


def test_a_key_is_asked_for(open_page, trained, tmp_path):
    (tmp_path / "keys").write_text(KEY)
    with ServerProcess(trained, "--api-keys", tmp_path / "keys") as guarded:
        page = open_page(at=guarded, glass=MEASURING)
        page.fill("#text", "ant bee")
        sync_api.expect(page.locator("#status")).to_have_text("Type the API key above.")
        page.fill("#key", KEY[1:])
        page.press("#key", "Enter")
        sync_api.expect(page.locator("#status")).to_have_text("The server doesn't know this key.")
        page.fill("#key", KEY)
        page.press("#key", "Enter")
        sync_api.expect(page.locator("#translation")).to_have_text("bee ant")
        assert page.evaluate("() => JSON.stringify(localStorage)").find(KEY) == -1
        page.click("#inside summary")
        analyses = " ".join(NAMES).replace(" head_importance", "")  # the first look loads torch: 10 s on a busy machine
        sync_api.expect(page.locator("#glass")).to_have_text(analyses, timeout=60_000)
        open_page.said.clear()  # the browser notes each 403


def test_too_long_a_text_is_not_sent(open_page):
    page = open_page()
    page.fill("#text", "ant " * 1300)
    sync_api.expect(page.locator("#status")).to_have_text("The text is longer than 5000 characters.")
    assert not [url for url in open_page.asked if url.endswith("/translate")]


def test_a_server_that_is_busy_is_asked_again(open_page):
    page = open_page()
    answers = iter([503, 429])

    def refuse(route):
        status = next(answers, None)
        if status is None:
            route.continue_()
        else:
            route.fulfill(status=status, headers={"Retry-After": "1"}, json={"error": "busy"})

    page.route("**/translate", refuse)
    page.fill("#text", "ant bee")
    sync_api.expect(page.locator("#status")).to_have_text("The server is busy; trying again.")
    sync_api.expect(page.locator("#translation")).to_have_text("bee ant")
    open_page.said.clear()


def test_a_server_that_is_busy_for_long_is_not_waited_for(open_page):
    page = open_page()
    answer = {"status": 429, "headers": {"Retry-After": "3600"}, "json": {"error": "too many requests"}}
    page.route("**/translate", lambda route: route.fulfill(**answer))
    page.fill("#text", "ant bee")
    sync_api.expect(page.locator("#status")).to_have_text("The server is busy; try again later.")
    open_page.said.clear()


def test_the_glass_box_has_its_room(open_page):
    page = open_page("ko-KR")
    translated(page, "ant bee", "bee ant")
    page.click("#inside summary")
    sync_api.expect(page.locator("#glass")).to_have_text("1 object function ko")
    translated(page, "cat dog", "dog cat")
    sync_api.expect(page.locator("#glass")).to_have_text("2 object function ko")
    assert not page.locator("#sentences").is_visible()
    page.fill("#text", "Ant bee. Cat dog!\n\nElk fox")
    sync_api.expect(page.locator("#glass")).to_have_text("3 object function ko")
    assert page.locator("#sentence option").all_text_contents() == ["Ant bee.", "Cat dog!", "Elk fox"]
    with page.expect_request(is_look) as asked:
        page.select_option("#sentence", "Cat dog!")
    assert asked.value.post_data_json["q"] == "Cat dog!"
    sync_api.expect(page.locator("#glass")).to_have_text("4 object function ko")


@pytest.mark.parametrize(("locale", "scheme"), [("en-US", "light"), ("ko-KR", "dark")])
def test_axe_finds_nothing_in_page_and_box_and_the_tab_key_reaches_everything(open_page, locale, scheme):
    page = open_page(locale, scheme=scheme, glass=None)
    page.fill("#text", "Ant bee. Cat dog!")
    page.wait_for_selector("#translation:not(:empty)")
    page.click("#past summary")
    page.wait_for_selector("#history li")
    page.click("#inside summary")
    page.wait_for_selector("#glass [role=tabpanel]", timeout=60_000)  # the first look loads torch
    assert unreached(page) == {}
    assert open_page.said == []
    assert found_by_axe(page) == {}
    page.close()
    open_page.said.clear()  # the page's policy forbids axe its own styles


def test_a_link_opens_a_sentence_and_a_view(open_page):
    page = open_page(glass=None)
    page.evaluate("location.hash = 'view=heads&kind=cross&layer=2&head=1&text=ant+bee&from=src&to=tgt'")
    page.reload()
    sync_api.expect(page.locator("#text")).to_have_value("ant bee")
    sync_api.expect(page.locator("#translation")).to_have_text("bee ant")
    sync_api.expect(page.locator("#glass .heads > .large h3")).to_have_text("Layer 2, head 1")
    page.click("#glass-tab-steps")
    assert all(part in page.url for part in ("view=steps", "text=ant+bee", "from=src", "to=tgt"))
    translated(page, "cat dog", "dog cat")
    sync_api.expect(page.locator("#glass .sentence-line")).to_contain_text("dog cat")
    wait_until(page, "location.hash.includes('text=cat+dog')")


def test_numbers_are_written_as_the_page_is(open_page):
    sync_api.expect(open_page("de-DE").locator("#count")).to_have_text("0 of 5,000 characters")


def test_another_sentence_in_the_box_stays_when_the_page_changes_its_language(open_page):
    page = open_page(glass=None)
    translated(page, "ant bee", "bee ant")
    page.click("#inside summary")
    page.fill("#glass-sentence", "elk dog", timeout=60_000)  # the first look loads torch
    page.press("#glass-sentence", "Enter")
    sync_api.expect(page.locator("#glass .sentence-line")).to_contain_text("dog elk")
    page.fill("#glass-sentence", "being typed")
    page.click("#page-language")
    sync_api.expect(page.locator("#glass-translate")).to_have_text("번역하기")
    sync_api.expect(page.locator("#glass .sentence-line")).to_contain_text("dog elk")
    assert page.input_value("#glass-sentence") == "being typed"
    translated(page, "cat dog", "dog cat")
    sync_api.expect(page.locator("#glass .sentence-line")).to_contain_text("cat dog")


def test_what_was_asked_in_the_box_is_shown_when_the_page_has_changed_its_language(open_page):
    page, held = open_page(glass=None), []
    translated(page, "ant bee", "bee ant")
    page.click("#inside summary")
    page.click("#glass-tab-whatIf", timeout=60_000)  # the first look loads torch
    page.wait_for_selector("#glass .order .word-bar", timeout=60_000)
    page.route("**/inspect", lambda route: route.continue_() if held else held.append(route))
    page.click("#glass .effect >> nth=1")
    page.wait_for_timeout(200)
    page.click("#page-language")
    sync_api.expect(page.locator("#glass-tab-whatIf")).to_have_text("만약에")
    held[0].continue_()
    card = page.locator("#glass .card:has(.effects) .result h4")
    sync_api.expect(card).to_contain_text("헤드", timeout=60_000)


def test_a_link_in_the_same_tab_and_the_way_back_open_their_sentences(open_page):
    page = open_page(glass=None)
    line = page.locator("#glass .sentence-line")
    translated(page, "ant bee", "bee ant")
    page.click("#inside summary")
    sync_api.expect(line).to_contain_text("ant bee", timeout=60_000)  # the first look loads torch
    page.click("#glass-tab-steps")
    page.evaluate("location.hash = 'view=heads&text=elk+fox&from=src&to=tgt'")
    sync_api.expect(page.locator("#text")).to_have_value("elk fox")
    sync_api.expect(line).to_contain_text("fox elk")
    page.go_back()
    sync_api.expect(page.locator("#text")).to_have_value("ant bee")
    sync_api.expect(line).to_contain_text("ant bee")
    assert page.locator("#glass-tab-steps[aria-selected=true]").count() == 1


def test_the_page_asks_to_inspect_one_at_a_time(open_page):
    page, under_way, most = open_page(glass=None), set(), []

    def begun(request) -> None:
        if request.url.endswith("/inspect"):
            under_way.add(request)
            most.append(len(under_way))

    page.on("request", begun)
    page.on("requestfinished", lambda request: under_way.discard(request))  # noqa: PLW0108  # it marks the function
    page.on("requestfailed", lambda request: under_way.discard(request))  # noqa: PLW0108
    page.click("#inside summary")
    for words in ("ant bee", "cat dog"):  # by the second one, torch and the glass box are loaded
        translated(page, words, " ".join(reversed(words.split())))
        sync_api.expect(page.locator("#glass .sentence-line")).to_contain_text(words, timeout=60_000)
        sync_api.expect(page.locator("#sureness")).not_to_be_empty(timeout=60_000)
    assert len(most) > 3  # for the glass box and for the confidence in each word
    assert max(most) == 1


def test_letters_are_large_only_while_the_box_is_seen(open_page):
    page = open_page(glass=None)
    size = sync_api.expect(page.locator("html"))
    translated(page, "ant bee", "bee ant")
    page.click("#inside summary")
    page.click(".tool-present", timeout=60_000)
    size.to_have_css("font-size", "21.6px")
    page.click("#inside summary")
    size.to_have_css("font-size", "16px")
    page.click("#inside summary")
    size.to_have_css("font-size", "21.6px")
    page.click("#clear")
    size.to_have_css("font-size", "16px")


def is_look(request) -> bool:
    """Whether the glass box asks: the page itself asks what the model makes of a translation that it has."""
    return request.url.endswith("/inspect") and "translation" not in request.post_data_json


def test_where_a_busy_server_measures_no_heads_it_is_not_asked_again(open_page):
    page, refused = open_page(glass=MEASURING), []

    def busy(route) -> None:
        if "analyses" not in route.request.post_data_json or "translation" in route.request.post_data_json:
            route.continue_()
            return
        refused.append(route.request.post_data_json["analyses"])
        route.fulfill(status=503, headers={"Retry-After": "1"}, json={"error": "busy"})

    page.route("**/inspect", busy)
    translated(page, "ant bee", "bee ant")
    page.click("#inside summary")
    sync_api.expect(page.locator("#glass")).to_have_text(" ".join(NAMES))
    page.wait_for_timeout(2000)
    assert refused == [["head_importance"]]
    open_page.said.clear()


def test_a_view_of_the_text_before_is_asked_for_no_longer(open_page):
    page = open_page()
    page.route("**/inspect", lambda route: None if is_look(route.request) else route.fallback())  # no answer
    translated(page, "ant bee", "bee ant")
    with page.expect_request(is_look) as first:
        page.click("#inside summary")
    with page.expect_request(is_look) as second, page.expect_event("requestfailed", is_look) as given_up:
        translated(page, "cat dog", "dog cat")
    assert given_up.value == first.value
    with page.expect_event("requestfailed", is_look) as given_up:
        page.click("#inside summary")
    assert given_up.value == second.value


@pytest.mark.parametrize("missing", ["localStorage", "getItem", "setItem"])
def test_without_storage_it_works(browser, server, missing):
    """As where a browser is told to keep nothing, or has no room: every use of it throws. Each is tried."""
    context = browser.new_context(locale="en-US")
    holder = "window" if missing == "localStorage" else "Storage.prototype"
    context.add_init_script(
        f"""window.tried = [];
        Object.defineProperty({holder}, '{missing}', {{
          get() {{ window.tried.push('{missing}'); throw new DOMException('denied', 'SecurityError'); }},
        }});"""
    )
    page, said = context.new_page(), []
    page.set_default_timeout(10_000)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"http://127.0.0.1:{server.port}/")
    page.wait_for_selector("#target option", state="attached")
    translated(page, "ant bee", "bee ant")
    tried = "() => window.tried.length"
    page.wait_for_timeout(2000)  # what was translated is kept when nothing else has come for a moment
    after_translating = page.evaluate(tried)
    assert after_translating > 0
    page.click("text=한국어")
    sync_api.expect(page.locator("#clear")).to_have_text("지우기")
    if missing != "getItem":
        assert page.evaluate(tried) > after_translating
    context.close()
    assert said == []


@pytest.mark.parametrize(
    ("status", "source", "error", "said"),
    [
        (
            400,
            "auto",
            "source: no",
            "어느 언어인지 알 수 없거나 여기서 번역하지 않는 언어입니다. 위에서 언어를 고르세요.",
        ),
        (400, "auto", "more than 666 sentences", "서버가 받아들이지 않았습니다: more than 666 sentences"),
        (400, None, "source: no", "서버가 받아들이지 않았습니다: source: no"),
        (500, "auto", "no", "서버에 문제가 있습니다. 자세한 내용은 서버의 기록에 있습니다."),
        (503, "auto", "no", "서버가 바쁩니다. 잠시 뒤에 다시 시도하세요."),
    ],
)
def test_a_refusal_is_told_in_the_language_of_the_page(open_page, status, source, error, said):
    page = open_page()
    page.select_option("#source", source or page.locator("#source option").last.get_attribute("value"))
    page.route(
        "**/translate", lambda route: route.fulfill(status=status, headers={"Retry-After": "0"}, json={"error": error})
    )
    page.fill("#text", "ant bee")
    page.wait_for_selector("#status.wrong", timeout=10_000)
    page.click("text=한국어")  # what is told already, too
    sync_api.expect(page.locator("#status")).to_have_text(said)
    open_page.said.clear()  # the browser notes each refusal


def test_text_in_the_target_language_is_told_to_be(open_page):
    page = open_page("en-US")
    page.select_option("#source", "auto")
    found = {"confidence": 90, "language": page.locator("#target").input_value()}
    answer = {"translatedText": "ant bee", "alternatives": [], "detectedLanguage": found}
    page.route("**/translate", lambda route: route.fulfill(json=answer))
    translated(page, "ant bee", "ant bee")
    sync_api.expect(page.locator("#detected")).to_contain_text("is in this language already")
    page.click("text=한국어")
    sync_api.expect(page.locator("#detected")).to_contain_text("이미 대상 언어로 쓴 글입니다")
    found["confidence"] = 0  # as of a text without letters
    translated(page, "12", "ant bee")
    sync_api.expect(page.locator("#detected")).to_have_text("")
    open_page.said.clear()  # nothing can be judged then: the browser notes the refusal


def test_where_the_glass_box_fails_that_is_said(open_page):
    page = open_page(glass="throw new Error('broken')")
    translated(page, "ant bee", "bee ant")
    page.click("#inside summary")
    sync_api.expect(page.locator("#inside-notice")).to_have_text("This server has no view of the inside.")


@pytest.mark.parametrize(
    ("locale", "said"), [("en-US", "the server needs torch"), ("ko-KR", "서버에 torch를 설치해야 합니다")]
)
def test_where_torch_is_missing_the_page_says_so_and_asks_for_no_inspection(open_page, server, locale, said):
    settings = httpx.get(f"http://127.0.0.1:{server.port}/frontend/settings").json()
    settings["models"] = [{**model, "analyses": []} for model in settings["models"]]
    page = open_page(locale)
    page.route("**/frontend/settings", lambda route: route.fulfill(json=settings))
    page.reload()
    page.wait_for_selector("#target option", state="attached")
    translated(page, "ant bee", "bee ant")
    page.click("#inside summary")
    sync_api.expect(page.locator("#inside-notice")).to_contain_text(said)
    translated(page, "bee ant", "ant bee")
    assert not [url for url in open_page.asked if url.endswith("/inspect")]


def test_the_description_for_people(open_page):
    page = open_page()
    page.goto(page.url + "docs")
    page.wait_for_selector("table")
    assert "POST /translate" in page.locator("body").inner_text()
    assert "`" not in page.locator("body").inner_text()
    assert page.locator("p code, td code").count() > 0


@pytest.mark.parametrize(("locale", "width"), [("en-US", 1280), ("ko-KR", 390)])
def test_the_description_has_answers_in_both_languages(open_page, trained, corpus, locale, width):
    page = open_page(locale, width)
    page.goto(page.url + "docs")
    source, target = (corpus.file(f"valid.{side}").read_text().splitlines()[0] for side in ("src", "tgt"))
    answers = {path: page.locator(f"section:has(h2:text-is('POST {path}')) .answered") for path in [*ROUTES, "/align"]}
    sync_api.expect(answers["/translate"]).to_have_text(json.dumps({"translatedText": target}, indent=2))
    sync_api.expect(answers["/inspect"]).to_contain_text('"format": "headway-record"')
    [links] = Translator.load(trained).align([source], [target])
    sync_api.expect(answers["/align"]).to_contain_text('"links": [')
    assert json.loads(answers["/align"].inner_text()) == {"links": [list(link) for link in links]}
    assert ("번역합니다" in page.locator("main").inner_text()) == (locale == "ko-KR")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.click("#page-language")
    sync_api.expect(page.locator("html")).to_have_attribute("lang", "en" if locale == "ko-KR" else "ko")
    sync_api.expect(answers["/translate"]).to_contain_text(target)


def commands(page) -> dict[str, dict]:
    """The fields of the shell command that the description shows for each route, as a shell reads them."""
    page.wait_for_selector("pre")
    sections = {path: page.locator(f"section:has-text('POST {path}')") for path in ROUTES}
    found = {path: shlex.split(one.locator("pre").first.inner_text()) for path, one in sections.items()}
    assert all(words[1].endswith(path) for path, words in found.items())
    return {path: json.loads(words[words.index("-d") + 1]) for path, words in found.items()}


@pytest.mark.parametrize(
    ("source", "target", "text"), [("ko", "en", "개가 달립니다."), ("fr", "de", "Un chien court.")]
)
def test_the_description_has_examples_in_the_languages_of_the_server(
    open_page, trained, tmp_path, source, target, text
):
    stored = load_model(trained)
    save_model(tmp_path / "model", replace(stored, source_language=source, target_language=target))
    whole = {"q": text, "source": source, "target": target}
    with ServerProcess(tmp_path / "model") as server:
        page = open_page(at=server)
        page.goto(page.url + "docs")
        page.wait_for_load_state("networkidle")
        inspected = {**whole, "arrays": "none"}
        assert commands(page) == {"/translate": whole, "/inspect": inspected, "/detect": {"q": text}}


def test_examples_in_the_description_are_safe_to_paste(open_page, server):
    hostile = "l'\"8\" $(ls) \\ `ls` '; ls"
    settings = httpx.get(f"http://127.0.0.1:{server.port}/frontend/settings").json()
    settings["models"][0]["examples"][0]["source"] = hostile
    page = open_page()
    page.route("**/frontend/settings", lambda route: route.fulfill(json=settings))
    page.goto(page.url + "docs")
    assert {fields["q"] for fields in commands(page).values()} == {hostile}
