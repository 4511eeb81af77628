"""The six views of the glass box in a browser: what they show is what the record holds."""

import math
import re

import numpy as np
import pytest

from headway import Translator
from headway.insight.what_if import read_edits
from tests.page.decoding import decoded
from tests.system.browsing import FOLDER, VIEWS, Window, open_live, read_page, wait_until, write_page
from tests.system.running import run_headway
from tests.system.test_glass_what_if import shares_in, words_in

TEXT = "ant bee cat dog elk"
LEADS = {
    "en": ["how sure", "Figure 1", "attention head", "Press play", "what it needs", "Switch off a part", "arithmetic"],
    "ko": ["확신", "그림 1", "어텐션 헤드", "재생", "무엇이 필요한지", "끄거나", "계산"],
}


@pytest.fixture(scope="module")
def page_file(trained, tmp_path_factory):
    """The page that the command line writes."""
    file = tmp_path_factory.mktemp("pages") / "page.html"
    outcome = run_headway("inspect", trained, TEXT, "--output", file)
    assert outcome.code == 0, outcome.err
    return file


@pytest.fixture(scope="module")
def record(page_file):
    return read_page(page_file)


@pytest.fixture(scope="module")
def translator(trained):
    return Translator.load(trained)


@pytest.fixture
def window(browser, page_file):
    window = Window(browser, locale="en-US", reduced_motion="reduce")
    window.page.goto(page_file.as_uri())
    yield window
    window.close()


def percent(share: float) -> str:
    return f"{share * 100:.1f}%".replace("100.0%", "100%") if share >= 0.001 else "<0.1%"


def cross_weights(record) -> np.ndarray:
    layers = range(record["attention"]["cross"]["layers"])
    names = [f"decoder.layers.{layer}.cross_attention.weights" for layer in layers]
    return np.stack([decoded(record["arrays"], name) for name in names])


@pytest.mark.parametrize(("language", "locale"), [("en", "en-US"), ("ko", "ko-KR")])
def test_every_view_in_the_readers_language(browser, page_file, record, language, locale):
    window = Window(browser, locale=locale)
    window.page.goto(page_file.as_uri())
    heading = window.page.text_content(".glass-head")
    assert record["source"]["text"] in heading
    assert record["target"]["text"] in heading
    for name, lead in zip(VIEWS, LEADS[language], strict=True):
        assert lead in window.view(name).inner_text()
    window.page.click(".language")
    other = "ko" if language == "en" else "en"
    assert window.page.get_attribute(".glass", "lang") == other
    assert LEADS[other][-1] in window.page.inner_text("#glass-view")  # the same view
    window.close()


def test_translate_shows_how_sure_of_each_word_and_what_it_looked_at(window, record):
    window.view("translate")
    groups: dict[int, list[int]] = {}
    for place, token in enumerate(record["target"]["tokens"]):
        groups.setdefault(token["word"], []).append(place)
    sums = [sum(record["steps"][place]["log_probability"] for place in places) for places in groups.values()]
    assert window.texts(".words.target .confidence") == [percent(np.exp(one)) for one in sums]
    assert " ".join(window.texts(".words.source .word bdi")[:-1]) == TEXT

    mean = cross_weights(record).mean(axis=(0, 1))
    source_words = [token["word"] for token in record["source"]["tokens"]]
    for word, places in list(groups.items())[:3]:
        shares = np.zeros(max(source_words) + 1)
        np.add.at(shares, source_words, mean[places].mean(axis=0))
        shares = shares[:-1]  # of <eos> it is said apart
        window.page.hover(f".words.target .word >> nth={word}")
        most = window.page.inner_text(".words.source .word bdi >> nth=" + str(int(shares.argmax())))
        assert window.texts(".detail .saying .named")[0].replace("\n", " ") == f"{most} {percent(shares.max())}"
        assert window.page.locator(".threads path").count() >= 1
    assert window.texts(".alternatives bdi") == [one["text"] for one in record["alternatives"]]


def test_the_machine_has_the_sizes_of_the_model_and_its_numbers(window, record):
    panel = window.view("machine")
    config = record["model"]["config"]
    assert window.texts(".encoder .layer > .choice label") == [str(n + 1) for n in range(config["encoder_layers"])]
    assert f"{config['d_model']} → {config['d_ff']} → {config['d_model']}" in panel.text_content()

    window.page.click(".decoder [data-place=self]")
    window.page.click(".decoder .layer > .choice label >> nth=1")
    open_ = window.page.locator(".panel:not([hidden])")
    open_.locator(".choice >> nth=0").locator("label >> nth=2").click()  # the third head
    open_.locator(".scene canvas[tabindex]").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):  # the first of them goes to the corner
        window.page.keyboard.press(key)
    name = "decoder.layers.1.self_attention"
    score, weight = (decoded(record["arrays"], f"{name}.{one}")[2, 1, 1] for one in ("scores", "weights"))
    chain = [score * np.sqrt(record["model"]["decoder_d_head"]), score, weight]
    shown = [float(text.replace("−", "-")) for text in window.texts(".chain .value")]
    assert shown == pytest.approx(chain, abs=6e-3, rel=6e-3)
    window.page.keyboard.press("ArrowRight")
    assert window.texts(".chain .value")[-2:] == ["−∞", "0.00"]  # what comes later
    for place in ("tokens", "embedding", "positions", "linear", "softmax", "cross", "feed_forward", "self addNorm"):
        window.page.click(f".decoder [data-place='{place}']")
        opened = window.page.locator(".panel")
        assert opened.locator(".stage").count() >= 1
        assert opened.locator(".equation, .pieces").count() >= 1
    assert window.page.locator(".wires .memory:not(.tip)").count() == 1


def test_heads_of_every_kind_large_and_sorted(window, record):
    window.view("heads")
    for number, kind in enumerate(("encoder", "decoder", "cross")):
        window.page.click(f".controls .choice label >> nth={number}")
        measures = record["attention"][kind]["measures"]
        window.count("canvas.thumbnail", np.size(measures))
        window.page.select_option(".controls select", "entropy")
        flat = [(one["entropy"], f"{layer + 1}·{head + 1}") for layer, heads in enumerate(measures)
                for head, one in enumerate(heads)]  # fmt: skip
        wanted = [name for _, name in sorted(flat, key=lambda pair: -pair[0])]
        assert window.texts(".head .caption b") == wanted
        assert f"{max(flat)[0]:.2f} bits" in window.page.inner_text(".large .bars")
        assert window.page.locator(".large canvas[tabindex]").count() == 2  # lines and matrix

    window.page.click(".head >> nth=2")
    layer, head = (int(part) - 1 for part in wanted[2].split("·"))
    row = cross_weights(record)[layer, head, 1]
    window.page.locator(".large .lines canvas").focus()
    window.page.keyboard.press("ArrowDown")
    window.page.keyboard.press("ArrowDown")
    assert percent(row.max()) in window.page.inner_text(".large .lines .readout")


def test_decoding_plays_step_by_step(browser, record, tmp_path):
    step, number = record["beam"]["result"]
    won = {"step": step, "number": number, "text": record["target"]["text"], "score": record["target"]["score"]}
    record = {**record, "beam": {**record["beam"], "finished": [{**won, "ranking": -0.125}]}}
    window = Window(browser, locale="en-US")
    window.page.goto(write_page(record, tmp_path / "page.html", "en"))
    window.view("steps")
    count = len(record["steps"])
    shown = ".growing bdi:not(.later)"
    assert window.page.locator(shown).count() == 2  # the start symbol and the first token
    top = record["steps"][0]["top"]
    assert window.texts(".bars-place .number") == [percent(one["probability"]) for one in top[:5]]
    fates = [one["fate"] for one in record["beam"]["steps"][0]]
    assert [
        window.page.locator(f".tree .node.{fate}").count() for fate in ("kept", "finished", "dropped")
    ] == [fates.count(fate) for fate in ("kept", "finished", "dropped")]  # fmt: skip

    window.page.click("[aria-label=Play]")
    window.count(shown, 4)
    window.page.click("[aria-label=Pause]")
    window.page.click("[aria-label='To the end']")
    assert window.page.locator(shown).count() == count + 1
    assert window.texts(".tree-place .alternatives .won bdi") == [record["target"]["text"]]
    assert "−0.13" in window.page.inner_text(".tree-place .alternatives .won")
    window.page.click(".tree-place summary")  # the tree as lists, for those who can't see it
    candidates = record["beam"]["steps"][step]
    window.count(".candidates >> nth=-1 >> li", len(candidates))
    window.page.locator(".player input[type=range]").focus()
    window.page.keyboard.press("Home")
    assert window.page.locator(shown).count() == 2
    window.close()


def test_what_if_shows_what_was_tried_beforehand(window, record):
    window.view("whatIf")
    window.page.click(".effect >> nth=5")
    heads = record["attention"]["encoder"]["heads"]
    edit = {"kind": "head_off", "attention": "encoder", "layer": 5 // heads, "head": 5 % heads}
    [case] = [one for one in record["cases"] if one["edits"] == [edit]]
    assert words_in(window.page.locator(".card:has(.effects) dd").last) == case["after"]["text"]
    window.page.click(".card .word >> nth=3")
    window.page.click(".card .word >> nth=0")
    [case] = [one for one in record["cases"] if one["edits"] == [{"kind": "swap_words", "first": 0, "second": 3}]]
    assert case["source"] == "dog bee cat ant elk"
    result = window.page.locator(".result:has(.quoted)")
    assert case["source"] in result.inner_text()
    assert words_in(result.locator("dd").last) == case["after"]["text"]
    order = record["order"]  # order is all that this model learned, and it is sure of it
    assert order["with_positions"][0]["text"] != order["with_positions"][1]["text"]
    assert order["without_positions"][0]["text"] == order["without_positions"][1]["text"]
    assert window.texts(".order thead th") == order["sentences"]


def numbers_of(window, table: int) -> list[list[float]]:
    rows = window.page.locator(f".numbers >> nth={table}").locator("tr").all_inner_texts()
    return [[float(cell.replace("−", "-").replace("∞", "inf")) for cell in row.split()] for row in rows]


def test_the_worked_example_and_numbers_of_ones_own(window):
    window.view("numbers")
    assert numbers_of(window, 3) == [[2, 4, 4], [4, 16, 12], [4, 12, 10]]  # scores, after Q, K and V
    weights = [[0.13613, 0.43194, 0.43194], [8.9045e-4, 0.90884, 0.090267], [7.4449e-3, 0.75471, 0.23785]]
    values = [[1.8639, 6.3194, 1.7042], [1.9991, 7.8141, 0.2735], [1.9926, 7.4796, 0.7359]]
    np.testing.assert_allclose(numbers_of(window, 5), weights, atol=1e-4)
    np.testing.assert_allclose(numbers_of(window, 6), values, atol=1e-4)

    window.page.click(".view > .controls .choice label >> nth=1")
    query, key, value = [[1.0, -2.0], [0.5, 0.0]], [[0.0, 1.0], [3.0, 1.0]], [[1.0], [-4.0]]
    for number, matrix in enumerate((query, key, value)):
        text = "\n".join(" ".join(map(str, row)) for row in matrix)
        window.page.fill(f".inputs textarea >> nth={number}", text)
    scores = np.array(query) @ np.array(key).T / np.sqrt(2)
    powers = np.exp(scores)
    wanted = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(numbers_of(window, 2), wanted, atol=1e-5)
    np.testing.assert_allclose(numbers_of(window, 3), wanted @ value, atol=1e-4)
    window.page.hover(".numbers >> nth=0 >> td >> nth=1")
    assert "1·3 + −2·1" in window.page.inner_text(".number-table >> nth=0")

    window.page.click(".check >> nth=1")  # the look-ahead mask: one table more
    assert numbers_of(window, 3)[0] == [1, 0]
    for bad, part in (
        ("1 x", "x"),
        ("-1e9 1", "up to 100,000,000"),
        ("1 2\n3", "row 2"),
        ("", "empty"),
        ("1 2 3\n1 2 3", "same length"),
    ):
        window.page.fill(".inputs textarea >> nth=0", bad)
        assert part in window.page.inner_text(".problem")
        assert numbers_of(window, 3)[0] == [1, 0]  # what stood there before
    window.page.click("text=Back to the example")
    assert numbers_of(window, 0) == [[2, 4, 4], [4, 16, 12], [4, 12, 10]]
    ticked = [one.is_checked() for one in window.page.locator(".check input").all()]
    assert ticked == [True, False]  # it is divided by the root, and nothing is hidden

    window.page.click(".view > .controls .choice label >> nth=2")  # a head: by the keyboard to another kind
    assert not window.page.is_visible("text=Back to the example")
    window.page.focus(".inputs select >> nth=0")
    for kind in ("decoder", "encoder"):
        window.page.keyboard.press("ArrowUp")
        assert window.page.evaluate("document.activeElement.value") == kind
        assert window.page.locator(".check input >> nth=1").is_checked() == (kind == "decoder")
    assert window.page.get_attribute(".scene canvas[tabindex]", "data-rows") == "source"


def latest(requests: list[dict]) -> dict:
    """The last one apart from those for the warning below the picture."""
    return [one for one in requests if one.get("analyses") != ["erasure"]][-1]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_beside_a_live_model(browser, translator, language):
    window = Window(browser)
    requests = open_live(window, translator, TEXT, language)
    page = window.page
    assert page.get_attribute(".glass", "lang") == language
    page.fill("#glass-sentence", "fox gnu hen")
    page.keyboard.press("Enter")
    window.contains(".sentence-line", "hen gnu fox")
    assert latest(requests) == {"text": "fox gnu hen"}
    assert page.evaluate("document.activeElement.id") == "glass-sentence"
    assert "hen gnu fox" in page.inner_text(".glass > [role=status]")  # said to those who don't see it

    window.view("whatIf")
    page.wait_for_selector(".order")
    page.check("[value=positions_off]")
    page.check("[value=scaling_off]")
    window.contains(
        ".result h4 >> nth=0", "Without positions · Without dividing" if language == "en" else "위치 없이 · "
    )
    edits = [{"kind": "positions_off"}, {"kind": "scaling_off"}]
    assert latest(requests) == {"text": "fox gnu hen", "cases": [edits], "arrays": "none"}
    page.click(".effect >> nth=0")
    window.count(".result .comparison", 2)
    off = {"kind": "head_off", "attention": "encoder", "layer": 0, "head": 0}
    assert latest(requests)["cases"] == [[off]]
    tried = translator.inspect("fox gnu hen", cases=[read_edits([off])])
    left = math.exp(tried.cases[0].before.score - tried.score)
    assert float(page.inner_text(".effect >> nth=0 >> .change").strip("%")) == pytest.approx(100 * left, abs=0.6)
    assert page.inner_text(".effect >> nth=1 >> .change") == ""  # not tried yet

    for number, text in enumerate(("ant bee", "bee ant")):  # without positions they are the same
        page.fill(f".pair-inputs input >> nth={number}", text)
    page.click(".pair-inputs .primary")
    window.contains(".order thead th >> nth=1", "bee ant")
    cells = [words_in(cell) for cell in page.locator(".order tbody td").all()]
    assert cells[:2] == ["bee ant", "ant bee"]
    assert cells[2] == cells[3]

    page.click(".result button")  # a look inside the edited model
    page.wait_for_selector(".edited")
    assert latest(requests) == {"text": "fox gnu hen", "edits": edits}
    edited = page.inner_text(".sentence-line b")
    assert page.is_checked("[value=positions_off]")
    page.click(".effect >> nth=0")  # one change more: before is the edited model's translation
    page.wait_for_selector(".result:has(h4) .comparison")
    assert latest(requests) == {"text": "fox gnu hen", "edits": edits, "cases": [[*edits, off]], "arrays": "none"}
    [wanted] = translator.inspect("fox gnu hen", cases=[read_edits([*edits, off])]).cases
    blank = " \u2581"  # a translation that was cut off may end in a token without letters
    shown = [words_in(line).rstrip(blank) for line in page.locator(".result:has(h4) dd").all()]
    assert shown == list(dict.fromkeys(text.rstrip(blank) for text in (edited, wanted.after.text)))
    bars = shares_in(page.locator(".result:has(h4) dd").last, "after")
    assert bars == pytest.approx([word.probability for word in wanted.after.words], abs=1e-3)
    page.click("#glass-as-it-is")
    window.count(".edited", 0)
    assert latest(requests) == {"text": "fox gnu hen"}
    assert page.evaluate("document.activeElement.id") == "glass-view"
    window.close(may_move=True)


def test_what_if_beside_a_live_model(browser, translator):
    window = Window(browser)
    requests = open_live(window, translator, "fox gnu hen")
    page = window.page
    window.view("whatIf")
    page.wait_for_selector(".order")  # a pair is looked for at once
    assert latest(requests) == {"text": "fox gnu hen", "order": True, "arrays": "none"}
    order = translator.word_order("fox gnu hen")
    assert [page.input_value(f".pair-inputs input >> nth={number}") for number in (0, 1)] == list(order.sentences)
    together, one = "Without positions · Without dividing by √dₖ", "Without dividing by √dₖ"
    page.check("[value=scaling_off]")
    page.check("[value=positions_off]")
    window.contains(".result h4 >> nth=0", together)
    page.uncheck("[value=positions_off]")  # what is shown is of the switches as they stand
    wait_until(page, "(text) => document.querySelector('.result h4')?.textContent === text", one)
    page.uncheck("[value=scaling_off]")
    window.count(".result h4", 0)
    page.evaluate("void (window.fetch = async () => { throw new Error('gone') })")
    page.check("[value=positions_off]")
    window.contains(".card:has(.switches) .status", "gone")
    window.count(".result h4", 0)
    window.close(may_move=True)


def test_a_live_model_that_fails_is_said(browser, translator):
    window = Window(browser)
    open_live(window, translator, TEXT)
    window.page.evaluate("void (window.fetch = async () => { throw new Error('<b>gone</b>') })")
    window.page.fill("#glass-sentence", "ant")
    window.page.click(".sentence .primary")
    window.contains(".sentence .status", "<b>gone</b>")
    window.close()


def test_by_keyboard_alone(window):
    page = window.page
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('role')") == "tab":
            break
    focused = "document.activeElement"
    seen = []
    for name in VIEWS[1:]:
        page.keyboard.press("ArrowRight")
        seen.append(page.evaluate(f"{focused}.id"))
        outline = page.evaluate(f"getComputedStyle({focused}).outlineStyle")
        assert outline == "solid", name
    assert seen == [f"glass-tab-{name}" for name in VIEWS[1:]]
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    for _ in range(8):  # past what explains, chooses and follows
        page.keyboard.press("Tab")
        if page.evaluate(f"{focused}.dataset.place"):
            break
    page.keyboard.press("Enter")  # the first block of the machine opens
    assert page.evaluate(f"{focused}.getAttribute('aria-expanded')") == "true"
    page.keyboard.press("Enter")
    assert page.evaluate(f"{focused}.getAttribute('aria-expanded')") == "false"


def words(language: str) -> dict[str, str]:
    text = "".join(file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob(f"words*_{language}.js")))
    return dict(re.findall(r'^  (\w+): "(.*)",$', text, re.MULTILINE))


def test_words_are_the_same_in_both_languages():
    english, korean = words("en"), words("ko")
    assert len(english) > 200
    assert english.keys() == korean.keys()
    fields = [{name: set(re.findall(r"\{(\w+)\}", one)) for name, one in table.items()} for table in (english, korean)]
    assert fields[0] == fields[1]
    plain = [re.sub(r"\{\w+\}", "", one) for one in korean.values()]
    assert all(re.search("[가-힣]|^[^a-zA-Z]*$", one) for one in plain)


def test_all_words_are_used_and_all_that_are_used_are_there():
    """A text is asked for by its name as a string, by a template that begins with a name, or as title and text of a
    stage."""
    modules = [
        one.read_text(encoding="utf-8") for one in FOLDER.iterdir() if re.fullmatch(r"(?!words_).*\.js", one.name)
    ]
    code = "\n".join(modules)
    names = set(re.findall(r'"(\w+)"', code))
    templates = set(re.findall(r"`((?:\w+_)(?:\$\{[^`}]*\})+\w*)`", code))
    patterns = [re.sub(r"\\\$\\\{.*?\\\}", r"\\w+", re.escape(one)) for one in templates]
    stages = {f"{name}{part}" for name in names for part in ("Title", "Text")}
    known = words("en")
    unused = [
        name
        for name in known
        if name not in names | stages and not any(re.fullmatch(pattern, name) for pattern in patterns)
    ]
    assert unused == []
    assert [name for name in re.findall(r'\bsay\("(\w+)"', code) if name not in known] == []
