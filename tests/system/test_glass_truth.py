"""What the glass box says of a record is so: equations, edits, given translations, what comes late."""

import math
import re

import numpy as np
import pytest

from headway.insight.pictures import heat_maps
from headway.insight.what_if import read_edits
from tests.page.decoding import decoded
from tests.system.browsing import Window, open_live, random_translator

TEXT = "the cat sat on the mat"
INVISIBLE = ["\u061c", "\u200b", "a\u200db", "\ufeff", "\u00ad", "\U000e0041", "\u3164", "\u2067", "\u034f"]
SEEN = ["👨‍👩‍👧", "❤️", "می‌خواهم", "é", "한국어"]


def open_all(window: Window) -> str:
    """Opens every block of the machine, one after the other. -> the text of all"""
    window.view("machine")
    texts = []
    for button in window.page.locator(".block h4 button").all():
        button.click()
        texts.append(window.page.inner_text(".panel"))
    return "\n".join(texts)


def test_a_given_translation_is_not_said_to_be_written(random, opened):
    document = random.inspect(TEXT, target="a dog").to_dict()
    document["target"]["given"] = True
    window = opened(document)
    window.page.click(".about summary")
    assert "was given" in window.page.inner_text(".glass-head")
    assert "wrote" not in window.page.inner_text(".glass-head")
    text = window.view("steps").inner_text()
    assert "was taken" not in text
    assert "was given" in text
    assert "chosen" not in window.view("machine").locator(".stack.decoder").inner_text().lower()


def test_what_is_not_known_is_a_dash(random, opened):
    document = random.inspect(TEXT).to_dict()
    document["target"]["score"] = None
    for step in document["steps"]:
        step["log_probability"] = None
    for candidates in document["beam"]["steps"]:
        for candidate in candidates:
            candidate["score"] = None
    window = opened(document, reduced_motion="reduce")
    assert set(window.texts(".words.target .confidence")) == {"–"}
    assert window.texts(".figure-number") == ["–"]
    assert "100%" not in window.view("steps").locator(".bars-place > p").inner_text()
    window.page.wait_for_selector(".tree .score")
    assert set(window.page.locator(".tree .score").all_text_contents()) == {"–"}


def test_equations_and_shapes_are_the_models_own(random, opened):
    config = random.model.config
    document = random.inspect(TEXT).to_dict()
    n, m = len(document["target"]["tokens"]), len(document["source"]["tokens"])
    assert n != m
    window = opened(document)
    text = open_all(window)
    assert "x + Sublayer(x)" in text
    assert "√(σ2 + ε)" in text
    assert "z = h WT + b" not in text
    window.page.click(".decoder [data-place=cross]")
    window.page.click(".panel .choice >> nth=1 >> label >> nth=1")  # Q, K, V
    cross = window.page.locator(".panel")
    width = config.d_model // config.num_heads
    shapes = cross.locator("h6 .shape").all_inner_texts()
    assert shapes == [f"{rows} × {config.d_model} → {rows} × {width}" for rows in (n, m, m)]
    assert "Q = x WQ + bQ" in cross.inner_text().replace("\n", "")
    hidden = decoded(document["arrays"], "decoder.output")
    window.page.click(".decoder [data-place=linear]")
    canvas = window.page.locator(".panel canvas[tabindex]")
    canvas.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        canvas.press(key)
    shown = window.page.inner_text(".panel .readout b").replace("−", "-")
    assert float(shown) == pytest.approx(float(hidden[1, 1]), abs=2e-3)

    other = random_translator(norm="pre", output_bias=True).inspect(TEXT).to_dict()
    text = open_all(opened(other))
    assert "x + Sublayer(LayerNorm(x))" in text
    assert "z = h WT + b" in text
    assert "mean" in text


def test_an_edited_record_says_what_its_model_does(random, opened):
    edits = [{"kind": "positions_off"}, {"kind": "look_ahead_off"}, {"kind": "scaling_off"}]
    document = random.inspect(TEXT, edits=read_edits(edits)).to_dict()
    window = opened(document)
    text = open_all(window)
    assert "PE = 0" in text
    assert "for a place with itself" not in text
    window.page.click(".decoder [data-place=self]")
    own = window.page.locator(".panel")
    own.locator(".choice >> nth=1").locator("label >> nth=1").click()
    assert "larger" in own.inner_text()  # Q, K, V: the Q of the equation is not that of the model
    own.locator(".choice >> nth=1").locator("label >> nth=4").click()
    assert "sees all places" in own.inner_text()
    assert own.locator("canvas[tabindex]").count() == 1
    assert "hides them" not in window.view("steps").inner_text()
    assert "edited model" in window.page.inner_text(".glass-head")

    swapped = random.inspect(TEXT, edits=read_edits([{"kind": "swap_words", "first": 0, "second": 1}])).to_dict()
    swapped["source"]["original"] = TEXT
    window = opened(swapped)
    assert "edited model" not in window.page.inner_text(".glass-head")
    assert "swapped words" in window.page.inner_text(".glass-head")
    assert "“the” and “cat” swapped" in window.view("whatIf").inner_text()


def test_the_unscaled_q_times_k_is_root_times_the_products_that_are_shown(random):
    """What the page says beside Q of such a record."""
    arrays = random.inspect(TEXT, edits=read_edits([{"kind": "scaling_off"}])).arrays
    name = "encoder.layers.0.self_attention"
    products = arrays[f"{name}.queries"] @ arrays[f"{name}.keys"].swapaxes(-1, -2)
    root = math.sqrt(arrays[f"{name}.keys"].shape[-1])
    np.testing.assert_allclose(products, root * arrays[f"{name}.scores"], atol=1e-4)


def test_history_has_steps_scores_and_a_measure(random, opened):
    record = random.inspect(TEXT)
    document = record.to_dict()
    document["inspected_step"] = 2400
    document["history"] = [{"name": f"step-{step}", "step": step, "score": -7.25} for step in (1200, 3600)]
    names = [name for name in document["arrays"] if name.endswith("attention.weights")]
    document["arrays"] |= {f"history.{at}.{name}": {"same_as": name} for name in names for at in (0, 1)}
    window = opened(document)
    window.view("heads")
    [past, now, later] = window.texts(".moments li")
    assert "this model" in now  # between an earlier and a later one
    assert "3,600" in later
    assert "1,200" in past
    assert "−7.25" in past
    weights = record.attention["cross"]
    layer, head = (int(part) - 1 for part in window.page.inner_text(".head[aria-pressed=true] b").split("·"))
    one = weights[layer, head]
    bits = -(one * np.log2(one)).sum(axis=-1).mean()
    assert float(re.search(r"([\d.]+) bits", now)[1]) == pytest.approx(float(bits), abs=0.011)
    assert f"{record.score:.2f}".replace("-", "−") in now
    assert "1,200" in window.page.get_attribute(".moments canvas >> nth=0", "aria-label")
    share = window.page.evaluate("document.querySelector('.measures li:last-child').style.getPropertyValue('--share')")
    entropy = document["attention"]["cross"]["measures"][layer][head]["entropy"]
    assert float(share) == pytest.approx(entropy / math.log2(len(record.source.tokens)), abs=2e-3)


def test_alternatives_stand_in_the_order_of_their_ranking(random, opened):
    document = random.inspect(TEXT).to_dict()
    document["alternatives"] = [{"text": "long", "score": -4.3}, {"text": "short", "score": -4.0}]
    finished = [{"step": 3, "number": 0, "text": "long", "score": -4.3, "ranking": -2.5}]
    finished += [{"step": 1, "number": 0, "text": "short", "score": -4.0, "ranking": -3.5}]
    document["beam"]["finished"] = finished
    window = opened(document)
    assert window.texts(".alternatives .number") == ["1.4% · ranked by −2.50", "1.8% · ranked by −3.50"]
    assert "length penalty" in window.page.inner_text("section:has(> .alternatives)")


def test_a_record_without_a_beam_says_no_more_than_is_known(random, opened):
    """CTranslate2 searches with a beam too, but doesn't tell."""
    document = random.inspect(TEXT).to_dict()
    document["beam"], document["alternatives"] = None, []
    window = opened(document)
    assert "finished" not in window.view("translate").inner_text()
    assert "CTranslate2" in window.view("steps").inner_text()


def test_the_search_is_shown_to_its_end(random, opened):
    """It may go on after the step at which the translation had ended."""
    document = random.inspect(TEXT).to_dict()
    beam, count = document["beam"], len(document["steps"])
    del beam["steps"][count:]
    late = {"parent": None, "id": 0, "piece": "late", "score": -9.0, "fate": "finished"}
    beam["steps"] += [[late], [late]]
    won = {"step": 0, "number": 0, "text": "an early one", "score": -2.0, "ranking": -1.5}
    beam["result"] = [0, 0]
    beam["finished"] = [won, {**won, "step": count + 1, "text": "a late one", "ranking": -7.5}]
    document["alternatives"] = [{"text": "a late one", "score": -2.0}]
    window = opened(document)
    assert "−1.50" in window.page.inner_text("section:has(> .alternatives)")
    text = window.view("steps").inner_text()
    assert "a late one" not in text
    assert "went on" not in text
    window.page.click("[aria-label='To the end']")
    assert window.texts(".tree-place .alternatives bdi") == [won["text"], "a late one"]
    assert f"went on to step {count + 2}" in window.page.inner_text(".tree-place")
    assert window.page.locator(".tree .heading").last.text_content() == f"step {count + 2}"


def test_a_model_of_several_languages_names_the_one_that_was_asked_for(random, opened):
    document = random.inspect(TEXT).to_dict()
    document["model"] |= {"source_language": "en", "target_language": "mul"}
    document["source"]["tokens"][0]["piece"] = ">>deu_Latn:kor_Hang<<"
    window = opened(document)
    assert window.texts(".words h3") == ["German (Latin)", "Korean (Hangul)"]
    assert window.page.get_attribute(".words.source .text", "lang") == "deu-Latn"
    document["source"]["tokens"][0]["piece"] = ">>fr<<"
    window = opened(document)
    assert window.texts(".words h3") == ["English", "French"]
    assert window.page.get_attribute(".words.target .text", "lang") == "fr"
    window.page.click(".about summary")
    assert "into French" in window.page.inner_text(".glass-head")
    assert "writes French" in window.view("machine").inner_text()


def test_on_a_phone_the_translation_and_the_measures_are_whole(random, opened):
    document = random.inspect(TEXT).to_dict()
    document["source"]["text"] = document["target"]["text"] = "word " * 28
    window = opened(document, width=390)
    window.view("heads")
    for selector in (".sentence-line", ".measures .piece"):
        shown = window.page.locator(selector)
        assert shown.count() > 0
        sizes = shown.evaluate_all("all => all.map(one => [one.scrollHeight, one.clientHeight])")
        assert all(whole <= seen + 1 for whole, seen in sizes), selector


def test_invisible_characters_are_seen(random, opened):
    document = random.inspect(TEXT).to_dict()
    document["alternatives"] = [{"text": text, "score": -1.0} for text in INVISIBLE + SEEN]
    shown = [text.replace("\n", "") for text in opened(document).texts(".alternatives bdi")]
    assert shown[: len(INVISIBLE)] == ["a▯b" if text[0] == "a" else "▯" for text in INVISIBLE]
    assert shown[len(INVISIBLE) :] == SEEN


def test_a_token_stands_out_everywhere(random, opened):
    document = random.inspect(TEXT).to_dict()
    window = opened(document)
    page = window.page
    window.view("machine")
    page.click(".decoder [data-place=linear]")
    page.select_option(".controls label:has-text('Step') select", "2")
    assert page.input_value(".panel select") == "2"
    frames = """(name) => document.querySelector(name).toDataURL()"""
    framed = page.evaluate(frames, ".panel canvas[tabindex]")
    window.view("steps")
    assert page.input_value("input[type=range]") == "2"
    page.click("[aria-label='One step forward']")
    page.click("text=See this step in the machine")
    assert page.input_value(".panel select") == "3"
    page.wait_for_timeout(100)
    assert page.evaluate(frames, ".panel canvas[tabindex]") != framed
    page.locator(".panel canvas[tabindex]").press("ArrowDown")  # the first number
    page.locator(".panel canvas[tabindex]").press("Enter")
    assert page.input_value(".panel select") == "0"


@pytest.mark.parametrize("act", ["language", "scheme"])
def test_focus_and_state_stay(random, opened, act):
    window = opened(random.inspect(TEXT).to_dict())
    page = window.page
    window.view("numbers")
    page.fill(".inputs textarea >> nth=1", "1 2\n3 4\n5 6\n7 8")
    window.view("machine")
    page.click(".encoder [data-place=self]")
    page.click(".encoder .layer > .choice label >> nth=1")
    page.click(".panel .choice >> nth=1 >> label >> nth=4")
    if act == "language":
        page.focus(".language")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.className") == "language"
    else:
        page.focus(".encoder [data-place=embedding]")
        page.emulate_media(color_scheme="dark")
        assert page.evaluate("document.activeElement.dataset.place") == "embedding"
    assert page.get_attribute(".encoder [data-place=self]", "aria-expanded") == "true"
    assert page.locator(".encoder .layer > .choice input >> nth=1").is_checked()
    assert page.locator(".panel .choice >> nth=1 >> input >> nth=4").is_checked()
    window.view("numbers")
    assert page.input_value(".inputs textarea >> nth=1") == "1 2\n3 4\n5 6\n7 8"


def wait_until_held(page) -> None:
    while page.evaluate("window.held.length") == 0:
        page.wait_for_timeout(20)


def test_a_late_answer_does_not_replace_a_newer_one(browser, random):
    window = Window(browser)
    open_live(window, random, TEXT)
    page = window.page
    page.evaluate("""() => {
        const fetch = window.fetch;
        window.held = [];
        window.fetch = async (...given) => {
          const answer = await fetch(...given);
          const body = JSON.parse(given[1].body);
          if (body.text === "a dog") await new Promise((go) => window.held.push(go));
          return answer;
        };
    }""")
    page.fill("#glass-sentence", "a dog")
    page.keyboard.press("Enter")
    wait_until_held(page)
    page.fill("#glass-sentence", "the mat")
    page.keyboard.press("Enter")
    window.contains(".sentence-line", "the mat")
    page.evaluate("window.held[0]()")
    page.wait_for_timeout(200)
    assert "the mat" in page.inner_text(".sentence-line")

    window.view("whatIf")  # the same beside one another: of two heads the later stays
    page.evaluate("window.held.length = 0")
    page.evaluate("""() => {
        const fetch = window.fetch;
        window.fetch = async (...given) => {
          const answer = await fetch(...given);
          if (given[1].body.includes('"head":0')) await new Promise((go) => window.held.push(go));
          return answer;
        };
    }""")
    page.click(".effect >> nth=0")
    wait_until_held(page)
    page.click(".effect >> nth=1")
    window.contains(".result h4", "Head 2 of layer 1")
    page.evaluate("window.held[0]()")
    page.wait_for_timeout(200)
    assert "Head 2 of layer 1" in page.inner_text(".result h4")
    window.close(may_move=True)


def test_large_scores_are_explained_with_numbers_that_can_be_read(random, opened):
    window = opened(random.inspect(TEXT).to_dict())
    window.view("numbers")
    page = window.page
    page.click(".view > .controls .choice label >> nth=1")
    for number, text in enumerate(("100 0", "100 0\n0 100", "1\n2")):
        page.fill(f".inputs textarea >> nth={number}", text)
    text = page.locator(".number-table >> nth=2").inner_text()
    assert "Infinity" not in text
    top = 100 * 100 / math.sqrt(2)
    assert f"e^({top:.4f} − {top:.4f}) / 1= 1" in text.replace("\n", "")


def test_rows_and_columns_have_the_same_names_in_every_view_as_in_pictures(random, opened):
    """Rows of the decoder by the token that is written, columns by the token that is read."""
    record = random.inspect(TEXT)
    window = opened(record.to_dict(), reduced_motion="reduce")
    page = window.page

    def seen(names) -> list[str]:
        return ["".join(one if one.isprintable() else "▯" for one in name) for name in names]

    for number, kind in enumerate(("encoder", "decoder", "cross")):
        rows, columns = map(seen, record.maps.labels(kind))
        [[chart]] = heat_maps(record.maps, kind, [1])
        assert [seen(chart.rows), seen(chart.columns)] == [rows, columns]
        window.view("heads")
        page.click(f".controls .choice label >> nth={number}")
        for side, names in enumerate((rows, columns)):
            page.click(f".lighting .choice label >> nth={side}")
            assert window.texts(".light") == names
        canvas = page.locator(".large figure.matrix:not(.lines) canvas[tabindex]")
        for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
            canvas.press(key)
        assert page.inner_text(".large figure.matrix:not(.lines) .readout bdi >> nth=0") == f"{rows[1]} → {columns[1]}"
    written, read = map(seen, record.maps.labels("decoder"))
    window.view("machine")
    assert window.texts(".decoder .row-name") == read  # of the tokens that come in
    page.click(".decoder [data-place=embedding]")
    canvas = page.locator(".panel canvas[tabindex] >> nth=0")
    canvas.press("ArrowDown")
    assert page.inner_text(".panel figure.matrix:not(.lines) .readout bdi >> nth=0").startswith(written[0])
    assert f"the row of {written[0]} is that of {read[0]}" in page.inner_text(".panel")


def test_a_block_says_figures_of_the_chosen_token(random, opened):
    record = random.inspect(TEXT)
    window = opened(record.to_dict())
    window.view("machine")
    choose, layer = ".controls label:has-text('Source token') select", "encoder.layers.0"
    window.page.select_option(choose, "2")
    first, token = (window.texts(f"{choose} option")[place].split()[1] for place in (1, 3))
    total, after = (record.arrays[f"{layer}.self_residual.{name}"][2] for name in ("sum", "normalised"))
    hidden = record.arrays[f"{layer}.feed_forward.hidden"][2]
    wanted = {
        "self addNorm": [(np.linalg.norm(total),), (total.mean(), total.std(), after.mean(), after.std())],
        "feed_forward": [((hidden > 0).sum(), len(hidden), 0)],
    }
    for place, lines in wanted.items():
        window.page.click(f".encoder [data-place='{place}']")
        said = window.texts(".panel p[data-rows=source]")
        assert all(line.startswith(f"{token}: ") for line in said)
        numbers = [re.findall(r"-?\d+\.?\d*", line.split(": ")[1].replace("−", "-")) for line in said]
        for found, figures in zip(numbers, lines, strict=True):
            np.testing.assert_allclose([float(one) for one in found], figures, atol=0.011)
            assert "-0.00" not in found
    window.page.select_option(choose, "0")
    assert window.texts(".panel p[data-rows=source]")[0].startswith(f"{first}: ")
