"""The picture that is shown as a file: readable without the page, light, with its sentence and a legend."""

import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from tests.system.browsing import Window

TEXT = "the cat sat on the mat"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def record(random):
    return random.inspect(TEXT)


def saved(window: Window, kind: str) -> bytes:
    window.page.click(".saving summary")
    with window.page.expect_download() as download:
        window.page.click(f".saving button:text-is('{kind.upper()}')")
    assert download.value.suggested_filename.endswith(f".{kind}")
    return download.value.path().read_bytes()


@pytest.mark.parametrize("view", ["translate", "heads", "steps", "machine", "needs", "whatIf", "numbers"])
@pytest.mark.parametrize(("scheme", "language", "width"), [("light", "en", 1280), ("dark", "ko", 390)])
def test_a_saved_picture_is_whole_and_light(browser, opened, record, view, scheme, language, width):
    window = opened(record.to_dict(), language, f"#view={view}", width=width, scheme=scheme, reduced_motion="reduce")
    window.page.wait_for_timeout(500)
    window.page.evaluate("window.shifts.length = 0")  # of opening the page, which other tests are about
    before = window.page.evaluate("getComputedStyle(document.querySelector('.glass')).backgroundColor")
    svg = saved(window, "svg")
    root = ElementTree.fromstring(svg)
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert " ".join(texts).count(f"{TEXT} →") == 1  # in as many lines as it needs
    named = {"translate": ".looking .source bdi", "steps": ".step .source .token", "heads": ".large h3"}
    if view in named:
        assert set(window.texts(named[view])) <= set(texts)
    for one in root.iter():
        assert one.tag.removeprefix(SVG) in {"svg", "g", "rect", "path", "text", "image"}
        assert not {"class", "style"} & one.attrib.keys()
        for name in ("fill", "stroke"):
            assert re.fullmatch("none|#[0-9a-f]{6}", one.attrib.get(name, "none"))
        assert one.attrib.get("href", "data:image/png").startswith("data:image/png")

    png = Image.open(io.BytesIO(saved(window, "png"))).convert("L")
    wide, high = (int(root.attrib[name]) for name in ("width", "height"))
    assert png.size == (2 * wide, 2 * high)
    pixels = np.asarray(png)
    assert pixels[:8].min() == pixels[-8:].min() == pixels[:, :8].min() == 255  # a white margin
    assert 200 < pixels.mean() < 255
    assert window.page.evaluate("getComputedStyle(document.querySelector('.glass')).backgroundColor") == before

    context = browser.new_context(viewport={"width": wide, "height": high}, device_scale_factor=2)
    page = context.new_page()
    page.set_content("<!doctype html><style>body { margin: 0 }</style>" + svg.decode())
    shown = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("L").resize(png.size))
    context.close()
    assert np.abs(shown.astype(float) - pixels).mean() < 4  # of 255: both files are one picture


def test_a_long_sentence_without_spaces_is_broken_into_lines(opened, record):
    document = record.to_dict()
    document["source"]["text"] = "猫がマットに" * 40
    window = opened(document, "en", "#view=heads")
    root = ElementTree.fromstring(saved(window, "svg"))
    lines = [one for one in root.iter(f"{SVG}text") if "猫が" in one.text]
    assert "".join(one.text.strip() for one in lines).startswith(document["source"]["text"])
    assert all(float(one.attrib["x"]) + 14 * len(one.text) < 1.1 * int(root.attrib["width"]) for one in lines)


def test_both_sides_of_a_comparison_are_in_its_picture(opened, record):
    window = opened(record.to_dict(), "en", "#view=heads&kind=cross&layer=2&head=1&beside=1.3")
    window.count(".compared > div", 2)
    names = window.texts(".compared h3")
    assert len(set(names)) == 2
    texts = {one.text for one in ElementTree.fromstring(saved(window, "svg")).iter(f"{SVG}text")}
    assert set(names) <= texts
