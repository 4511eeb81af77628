"""A model in the browser alone: the page of one file and the folder, in Chromium and in Firefox, against the model in
Python."""

from __future__ import annotations

import base64
import json
import math
import re
import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.static_host import static_host

from headway import ModelConfig, Transformer, Translator
from headway.insight.what_if import read_edits
from headway.page.export import export_web
from headway.storage import Aligner, StoredModel
from headway.text.subwords import SubwordTokenizer
from headway.text.words import WordTokenizer
from tests.page.scripts import Script, running
from tests.system.browsing import VIEWS, Window, chromium, found_by_axe, unreached
from tests.system.conftest import ROOT, Corpus
from tests.system.running import complaint, run_headway
from tests.system.test_glass_sampling import check

FIREFOX = shutil.which("firefox-esr")
TEXT = "ant bee cat dog elk"
LINES = [f"Der {noun} {verb} im Haus." for noun in ("Hund", "Mann", "Ball") for verb in ("ruht", "läuft", "schläft")]
EDITS = [
    [{"kind": "head_off", "attention": "cross", "layer": 1, "head": 0}],
    [{"kind": "positions_off"}],
    [{"kind": "look_ahead_off"}],
    [{"kind": "scaling_off"}],
    [{"kind": "swap_words", "first": 0, "second": 2}],
]


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def firefox() -> Iterator[Script]:
    if FIREFOX is None or not (ROOT / "tests" / "node_modules" / "puppeteer-core").is_dir():
        pytest.skip("Firefox or puppeteer-core isn't installed")
    with running(Path(__file__).with_name("firefox.js"), FIREFOX) as script:
        yield script


@pytest.fixture(scope="module")
def translator(trained):
    return Translator.load(trained, engine="torch")


@pytest.fixture(scope="module")
def one_file(trained, tmp_path_factory) -> Path:
    return exported(trained, tmp_path_factory.mktemp("web") / "page.html", "--precision", "float32")


@pytest.fixture(scope="module")
def folder(trained, tmp_path_factory) -> Path:
    return exported(trained, tmp_path_factory.mktemp("web") / "page", "--precision", "float32")


@pytest.fixture(scope="module")
def host(folder) -> Iterator[str]:
    """The folder on a static host. -> its address"""
    (folder / "other.html").write_text('<!doctype html><link rel="icon" href="data:,"><title>other</title>')
    with static_host(folder) as address:
        yield address


def exported(run: Path, output: Path, *options: str) -> Path:
    outcome = run_headway("export", run, "--to", "web", "--output", output, *options)
    assert outcome.code == 0, outcome.err
    return output


def opened(browser: Any, address: str, **context: Any) -> Window:
    window = Window(browser, **{"locale": "en-US", **context})
    window.page.goto(address)
    window.page.wait_for_selector("[role=tabpanel]")
    return window


def closed(window: Window) -> None:
    """As `Window.close`; a worker from a blob is no other place."""
    window.asked = [url for url in window.asked if not url.startswith("blob:")]
    window.close(may_move=True)


@pytest.mark.parametrize(("locale", "scheme"), [("en-US", "dark"), ("ko-KR", "light")])
def test_axe_finds_nothing_in_any_view(browser, one_file, locale, scheme):
    window = opened(browser, one_file.as_uri(), locale=locale, scheme=scheme, reduced_motion="reduce")
    window.page.click("footer summary")
    assert found_by_axe(window.page) == {}
    closed(window)


def test_the_tab_key_reaches_everything(window):
    assert unreached(window.page) == {}


@pytest.fixture
def window(browser, one_file):
    window = opened(browser, one_file.as_uri())
    yield window
    closed(window)


@pytest.mark.parametrize("beam_size", [1, 5])
def test_from_a_disk_it_translates_as_python_does(window, translator, corpus, beam_size):
    check_translations(window.page.evaluate, translator, corpus, beam_size)


def test_n_best_and_length_penalty(window, translator):
    [wanted] = translator.translate([TEXT], beam_size=4, n_best=3, length_penalty=0.3)
    options = {"beamSize": 4, "nBest": 3, "lengthPenalty": 0.3}
    found = window.page.evaluate("([text, options]) => headway.translate(text, options)", [TEXT, options])
    assert [found["text"], *(one["text"] for one in found["alternatives"])] == [
        wanted.text,
        *(one.text for one in wanted.alternatives),
    ]


@pytest.mark.parametrize("edits", [[], *EDITS], ids=lambda edits: "+".join(one["kind"] for one in edits))
def test_records_say_what_pythons_say(window, translator, edits):
    cases = [read_edits(case) for case in EDITS]
    wanted = translator.inspect(TEXT, edits=read_edits(edits), cases=cases).to_dict("none")
    options = {"edits": edits, "cases": EDITS, "arrays": "none"}
    found = window.page.evaluate("([text, options]) => headway.inspect(text, options)", [TEXT, options])
    assert found.pop("inspected_step") == wanted.pop("inspected_step")
    assert_alike(found, wanted)


def test_a_given_translation(window, translator):
    wanted = translator.inspect(TEXT, "elk dog", edits=read_edits(EDITS[1])).to_dict("none")
    options = {"edits": EDITS[1], "translation": "elk dog", "arrays": "none"}
    assert_alike(window.page.evaluate("([text, options]) => headway.inspect(text, options)", [TEXT, options]), wanted)


def test_the_next_token_is_sampled_from_the_models_logits(window, translator):
    window.page.fill("#glass-sentence", TEXT)
    window.page.click("#glass-translate")
    window.contains(".glass-head .sentence-line", TEXT)
    window.view("steps")
    window.page.click(".player button >> nth=3")
    check(window, translator.inspect(TEXT), "cut")
    window.page.click(".language")  # the record that is shown keeps its arrays
    window.view("heads")
    window.page.wait_for_selector("canvas.thumbnail")


def test_what_is_refused_is_said(window):
    for call, said in (
        ("headway.inspect('')", "this text can't be inspected"),
        ("headway.translate('ant', {beamSize: 0})", "beamSize=0: must be a whole number from 1 to"),
        ("headway.translate('ant', {beams: 1})", "beams is not an option of searching"),
    ):
        problem = window.page.evaluate(f"{call}.then(() => null, (problem) => problem.message)")
        assert said in problem


def test_every_view_is_there_and_live(window, translator):
    window.page.fill("#glass-sentence", "cat dog")
    window.page.click("#glass-translate")
    [wanted] = translator.translate(["cat dog"])
    window.contains(".glass-head .sentence-line", wanted.text)
    for name in VIEWS:
        assert window.view(name).inner_text().strip()
    panel = window.view("whatIf")
    panel.locator(".switches input[value=positions_off]").check()
    [case] = translator.inspect("cat dog", cases=[read_edits(EDITS[1])]).cases
    window.contains(".switches ~ .result .comparison dd >> nth=-1", case.after.words[-1].text)
    panel.locator(".effects button >> nth=0").click()
    window.contains(".effects button >> nth=0", "%")
    panel.locator(".try-all").click()
    kinds = {kind: weights.shape[:2] for kind, weights in translator.inspect("cat dog").attention.items()}
    heads = [(kind, *head) for kind, (layers, count) in kinds.items() for head in product(range(layers), range(count))]
    names = ("attention", "layer", "head")
    cases = [read_edits([{"kind": "head_off", **dict(zip(names, head, strict=True))}]) for head in heads]
    window.count(".heads-off tbody tr", len(heads))
    written = [one.after.text for one in translator.inspect("cat dog", cases=cases).cases]
    changed = sorted(text for text in written if text != wanted.text)
    assert sorted(window.texts(".heads-off bdi")) == changed
    panel.locator(".check input").check()
    panel.locator(".effects button >> nth=1").click()
    result = ".card:has(.effects) .result"
    window.contains(f"{result} h4", "Head 2 of layer 1")
    assert "Head 1 of layer 1" in window.page.inner_text(f"{result} h4")  # as it was chosen before
    both = translator.inspect("cat dog", cases=[[cases[0][0], cases[1][0]]])
    left = math.exp(both.cases[0].before.score - both.score)
    share = f"{100 * left:.{0 if left >= 0.9995 else 1}f}%"
    assert window.page.inner_text(f"{result} .left") == f"{share} of the probability remains"
    window.view("heads")
    window.count(".large-pictures", 1)
    window.page.click(".importance summary")
    window.count(".importance .maps > div", 2)  # measured when the page was made
    window.view("needs")
    window.contains("#glass-looksAndNeeds .saying", "To write")
    window.count("#glass-maps .maps > div", 3)  # where it looks, what it needs, where it comes from
    window.count("#glass-sourceShare .bars > li", len(wanted.tokens) + 1)
    window.page.fill("#glass-other", "cat fox")
    window.page.click("#glass-patching form button")
    window.contains("#glass-patching .saying", "A state from cat fox makes")
    window.page.click("#glass-curves button")
    window.count("svg.curves", 1)
    assert "Not computed here" not in window.page.inner_text("#glass-view")


def test_examples_and_language(window):
    first = window.texts(".examples button")[1]
    window.page.click(".examples button >> nth=1")
    window.contains(".glass-head .sentence-line", first)
    window.page.click(".language")
    assert window.page.get_attribute("html", "lang") == "ko"
    assert window.page.get_attribute(".glass", "lang") == "ko"
    window.contains(".glass-head .sentence-line", first)
    assert first in window.page.title()


def test_the_card_is_a_text_with_a_table(window):
    window.page.click("footer summary")
    assert window.page.inner_text("footer .card h3").startswith("Translation from")
    [steps] = window.texts("footer .card tr:has(th:text-is('steps, epochs, minutes')) td")
    assert re.fullmatch(r"\d+, \d+, [\d.]+", steps)
    assert not re.search(r"^[|#]|`", window.page.inner_text("footer .card"), re.M)
    assert "headway translate" in window.page.inner_text("footer .card pre")


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_one_head_and_examples_are_above_the_fold(browser, one_file, width, height):
    window = opened(browser, one_file.as_uri(), width=width, height=height)
    seen = window.page.locator(".examples button").first.bounding_box()
    assert seen["y"] + seen["height"] < height / 2
    heads = window.page.locator("header").evaluate_all("all => all.filter((one) => one.clientHeight > 1).length")
    assert heads == 1
    window.page.fill("#glass-sentence", " ")
    window.page.click("#glass-translate")
    window.contains(".sentence .status", "Type a sentence")
    window.page.fill("#glass-sentence", "ant bee cat dog elk " * 8)
    window.page.click("#glass-translate")
    window.count(".looking .source .word:not(.control)", 40)
    assert window.page.evaluate("document.documentElement.scrollWidth") == width
    closed(window)


def test_page_and_box_have_one_language(browser, window, one_file):
    """Whether it comes from the address, from the button or from going back."""

    def shown(window):
        return [window.page.get_attribute(place, "lang") for place in ("html", ".glass")]

    window.page.click("[role=tab] >> nth=2")
    assert "lang=en" in window.page.url
    window.page.click(".language")
    assert (shown(window), "lang=ko" in window.page.url) == (["ko", "ko"], True)
    window.page.click("[role=tab] >> nth=3")
    window.page.click(".language")
    assert (shown(window), "lang=en" in window.page.url) == (["en", "en"], True)
    window.page.go_back()
    assert shown(window) == ["ko", "ko"]
    korean = opened(browser, f"{one_file.as_uri()}#view=heads&lang=ko")
    assert shown(korean) == ["ko", "ko"]
    closed(korean)


def test_page_and_box_have_one_theme(window):
    """The reader's own, which is another than the system's."""
    papers = "[...document.querySelectorAll('body, .glass')].map((one) => getComputedStyle(one).backgroundColor)"
    before = set(window.page.evaluate(papers))
    window.page.click(".tool-theme")
    after = set(window.page.evaluate(papers))
    assert len(before) == len(after) == 1
    assert before != after


def test_int8_is_the_default_and_a_quarter_of_the_bytes(browser, trained, one_file, tmp_path, translator, corpus):
    page = tmp_path / "page.html"
    test_set = ("--source", corpus.file("test.src"), "--reference", corpus.file("test.tgt"))
    outcome = run_headway("export", trained, "--to", "web", "--output", page, *test_set)
    told = re.search(r"BLEU [\d.]+ as exported, [\d.]+ in headway: [+-][\d.]+, greedy; (\d+) of 100 lines", outcome.out)
    assert told
    assert int(told[1]) >= 95
    scripts = len(one_file.read_text(encoding="utf-8").split('id="model">')[0])
    sizes = [file.stat().st_size - scripts for file in (page, one_file)]
    assert sizes[0] < 0.5 * sizes[1]  # the tokenizer stays as it is
    window = opened(browser, page.as_uri())
    texts = corpus.file("test.src").read_text().splitlines()
    found = window.page.evaluate("(texts) => Promise.all(texts.map((text) => headway.translate(text)))", texts)
    same = sum(one["text"] == other.text for one, other in zip(found, translator.translate(texts), strict=True))
    assert same >= 0.95 * len(texts)
    closed(window)


def stored_model(kind: str) -> StoredModel:
    """Untrained, with weights large enough that it has opinions. Its translations are short: long beams have ties."""
    torch.manual_seed(3)
    tags = ["en", "ko"] if kind == "tagged" else []
    source = target = SubwordTokenizer.train(LINES, "unigram" if kind == "unigram" else "bpe", 320, tags)
    if kind == "words":
        source, target = (WordTokenizer.train(LINES, 50, 1, lowercase) for lowercase in (True, False))
    if kind == "two":
        target = SubwordTokenizer.train([line.upper() for line in LINES], "bpe", 300)
    fields = {"d_model": 32, "num_heads": 4, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 2, "max_length": 40}
    fields |= {"norm": "pre", "positions": "learned", "share_embeddings": "none"} if kind in ("two", "words") else {}
    config = ModelConfig(source.vocab_size, target.vocab_size, **fields)
    model = Transformer(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2.0 if weight.dim() > 1 else 1.0)
    aligner = {"tagged": Aligner(1, 2, shifted=True), "two": Aligner(0, None, eos_is_nothing=True)}.get(kind)
    languages = "de", "mul" if tags else "en"
    return StoredModel(
        model=model,
        source_tokenizer=source,
        target_tokenizer=target,
        source_language=languages[0],
        target_language=languages[1],
        decoding={"beam_size": 3, "max_length": 8},
        aligner=aligner,
    )


@pytest.mark.parametrize("kind", ["tagged", "unigram", "two", "words"])
def test_models_of_every_kind(browser, tmp_path, kind):
    stored = stored_model(kind)
    translator = Translator(stored, device="cpu")
    tag = ">>ko<< " if kind == "tagged" else ""
    export_web(stored, tmp_path / "page.html", "float32", [f"{tag}{LINES[0]}"])
    window = opened(browser, (tmp_path / "page.html").as_uri())
    for text in (*LINES[:3], "Ein Zug fährt 🚂 nach Köln!"):
        wanted = translator.inspect(f"{tag}{text}", edits=read_edits(EDITS[3])).to_dict("none")
        options = {"arrays": "none", "edits": EDITS[3]}
        assert_alike(window.page.evaluate("(given) => headway.inspect(...given)", [f"{tag}{text}", options]), wanted)
    if tag:
        window.view("whatIf").locator(".switches input[value=positions_off]").check()
        [case] = translator.inspect(f"{tag}{LINES[0]}", cases=[read_edits(EDITS[1])]).cases
        window.contains(".switches ~ .result .comparison dd >> nth=-1", case.after.words[-1].text)
        problem = window.page.evaluate("headway.translate('Ein Hund').catch((problem) => problem.message)")
        assert "begin the text with one of >>en<< >>ko<<" in problem
    [long] = translator.translate([f"{tag}{'Haus ' * 60}"])
    found = window.page.evaluate("(text) => headway.translate(text)", f"{tag}{'Haus ' * 60}")
    assert found["stopped"] == long.stopped == "too_long"
    closed(window)


def test_the_folder_on_a_static_host_without_special_headers(browser, host, translator):
    window = opened(browser, f"{host}/")
    [wanted] = translator.translate([TEXT])
    assert window.page.evaluate("(text) => headway.translate(text)", TEXT)["text"] == wanted.text
    window.close(may_move=True)


def test_another_page_loads_the_model(browser, host, translator):
    window = Window(browser)
    window.page.goto(f"{host}/other.html")
    script = """async (text) => {
      const { load } = await import("./engine/load.js");
      const model = await load("model.headway");
      const found = await model.translate(text, { beamSize: 5 });
      const record = await model.inspect(text, { arrays: "attention" });
      model.close();
      const missing = await load("no.headway").catch((problem) => problem.message);
      const other = await load("index.html").catch((problem) => problem.message);
      return [found, record, missing, other];
    }"""
    found, record, missing, other = window.page.evaluate(script, TEXT)
    [wanted] = translator.translate([TEXT], beam_size=5)
    assert found["text"] == record["target"]["text"] == wanted.text
    length = len(record["source"]["tokens"])
    assert record["arrays"]["encoder.layers.0.self_attention.weights"]["shape"] == [4, length, length]
    assert "404" in missing
    assert other == "this is not a headway model for the web"
    window.context.close()


def test_the_folder_from_a_disk_says_what_it_needs(browser, folder):
    window = Window(browser)
    window.page.goto((folder / "index.html").as_uri())
    window.contains("main", "static host")
    window.contains("main", "웹 서버")
    window.context.close()


def test_a_damaged_page_says_so(browser, one_file, tmp_path):
    text = one_file.read_text(encoding="utf-8")
    [model] = re.findall(r'id="model">([^<]*)<', text)
    data = bytearray(base64.b64decode(model))
    data[len(data) // 2] ^= 64
    (tmp_path / "page.html").write_text(text.replace(model, base64.b64encode(data).decode()), encoding="utf-8")
    window = Window(browser, locale="en-US")
    window.page.goto((tmp_path / "page.html").as_uri())
    window.contains(".notice", "the model file is damaged")
    window.context.close()


def test_where_a_policy_forbids_webassembly(browser, one_file, tmp_path, translator):
    text = one_file.read_text(encoding="utf-8")
    (tmp_path / "page.html").write_text(text.replace(" 'wasm-unsafe-eval'", ""), encoding="utf-8")
    window = Window(browser, locale="en-US")
    window.page.goto((tmp_path / "page.html").as_uri())
    window.contains("footer", "WebAssembly isn't available")
    [wanted] = translator.translate([TEXT])
    assert window.page.evaluate("(text) => headway.translate(text)", TEXT)["text"] == wanted.text
    window.context.close()


def test_firefox_from_a_disk(firefox, one_file, translator, corpus):
    evaluate = opened_in_firefox(firefox, one_file.as_uri())
    for beam_size in (1, 5):
        check_translations(evaluate, translator, corpus, beam_size)
    cases = [read_edits(case) for case in EDITS]
    wanted = translator.inspect(TEXT, cases=cases).to_dict("none")
    options = {"cases": EDITS, "arrays": "none"}
    found = evaluate("([text, options]) => headway.inspect(text, options)", [TEXT, options])
    assert found.pop("inspected_step") == wanted.pop("inspected_step")
    assert_alike(found, wanted)
    assert not any("WebAssembly" in text for text in evaluate("() => [document.querySelector('footer').textContent]"))
    for name in VIEWS:
        evaluate("(name) => document.getElementById(`glass-tab-${name}`).click()", name)
        assert evaluate("() => document.getElementById('glass-view').innerText.trim()")
    end_in_firefox(firefox, "")


def test_firefox_from_a_static_host(firefox, host, translator):
    evaluate = opened_in_firefox(firefox, f"{host}/")
    [wanted] = translator.translate([TEXT])
    assert evaluate("(text) => headway.translate(text)", TEXT)["text"] == wanted.text
    end_in_firefox(firefox, host)


def test_firefox_says_that_the_folder_needs_a_host(firefox, folder):
    firefox.ask({"address": (folder / "index.html").as_uri()})
    firefox.ask({"selector": "#from-a-disk:not([hidden])"})
    assert "static host" in firefox.ask({"expression": "document.querySelector('main').innerText"})
    firefox.ask({"ending": True})


def test_one_line_for_what_can_be_mended(trained, tmp_path):
    (tmp_path / "there").mkdir()
    export = ("export", trained, "--output")
    assert "is there already" in complaint(*export, tmp_path / "there", "--to", "web")
    assert "--precision is of web alone" in complaint(*export, tmp_path / "a", "--to", "onnx", "--precision", "int8")
    assert "precision 'int4' is unknown" in complaint(*export, tmp_path / "a", "--to", "web", "--precision", "int4")
    assert list(tmp_path.iterdir()) == [tmp_path / "there"]


def check_translations(evaluate: Callable[[str, Any], Any], translator: Translator, corpus: Corpus, beam_size: int):
    """evaluate: of a page's function and its argument."""
    texts = [*corpus.file("test.src").read_text().splitlines(), "", "  ", "fox"]
    wanted = translator.translate(texts, beam_size=beam_size)
    ask = "([texts, beamSize]) => Promise.all(texts.map((text) => headway.translate(text, {beamSize})))"
    found = evaluate(ask, [texts, beam_size])
    assert [one["text"] for one in found] == [one.text for one in wanted]
    assert [one["stopped"] for one in found] == [one.stopped for one in wanted]
    assert [one["score"] for one in found] == pytest.approx([one.score for one in wanted], abs=1e-3)
    assert [[piece["id"] for piece in one["tokens"]] for one in found] == [
        translator.stored.target_tokenizer.encode(one.text) for one in wanted
    ]


def opened_in_firefox(firefox: Script, address: str) -> Callable[..., Any]:
    """Opens a page. -> a function that evaluates a function of JavaScript there"""
    firefox.ask({"address": address})
    firefox.ask({"selector": "[role=tabpanel]"})
    return lambda function, argument=None: firefox.ask({"expression": f"({function})({json.dumps(argument)})"})


def end_in_firefox(firefox: Script, origin: str) -> None:
    """Nothing was said, nothing fetched from elsewhere. Firefox asks for a font of its own by `data:`."""
    ending = firefox.ask({"ending": True})
    assert ending["said"] == []
    assert [url for url in ending["asked"] if not url.startswith(("data:", "blob:", origin or "file:"))] == []


def assert_alike(found: Any, wanted: Any, place: str = "record") -> None:
    """The same JSON; numbers to three digits."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), place
        for name, value in wanted.items():
            assert_alike(found[name], value, f"{place}.{name}")
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), f"{place}: {json.dumps(found)[:500]}"
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert_alike(one, other, f"{place}[{number}]")
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, abs=1e-3, rel=1e-3), place
    else:
        assert found == wanted, place
