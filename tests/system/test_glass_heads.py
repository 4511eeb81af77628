"""The heads: pictures large enough, a colour for each, labels by a rule that is said, tokens that are lit in all."""

import base64

import numpy as np
import pytest

from tests.system.browsing import wait_until

TEXT = "the cat sat on the mat"
LABELS = {
    "en": ["previous", "next", "same", "<eos> sink", "spread"],
    "ko": ["이전", "다음", "같은 자리", "<eos>에 쏠림", "흩어짐"],
}


@pytest.fixture(scope="module")
def record(random):
    return random.inspect(TEXT)


def with_known_heads(document, maps: np.ndarray) -> None:
    """Gives the first layer of the encoder these maps, (heads, query, key), and the measures that they have."""
    from headway.insight.maps import measure_heads

    data = base64.b64encode(maps.astype("<f2").tobytes()).decode()
    name = "encoder.layers.0.self_attention.weights"
    document["arrays"][name] = {"dtype": "float16", "shape": list(maps.shape), "data": data}
    [measures] = measure_heads("encoder", maps[None])
    document["attention"]["encoder"]["measures"][0] = [dict(vars(one)) for one in measures]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_labels_are_by_a_rule_that_is_said(opened, random, language):
    document = random.inspect(TEXT).to_dict()
    size = len(document["source"]["tokens"])
    places = np.arange(size)
    before, after, itself, end = (
        np.eye(size)[np.clip(at, 0, size - 1)] for at in (places - 1, places + 1, places, places * 0 + size)
    )
    with_known_heads(document, np.stack([before, after, itself, end]))
    window = opened(document, language)
    window.view("heads")
    window.page.click(".controls .choice label >> nth=0")
    assert window.texts(".head .label")[:4] == LABELS[language][:4]
    window.page.click(".head >> nth=0")
    assert "50.0%" in window.page.inner_text(".large")  # from where on it is called so
    assert window.texts(".head .label")[4] in LABELS[language]


def test_pictures_are_large_and_keep_their_shape(opened, record):
    for width in (1280, 390):
        window = opened(record.to_dict(), width=width)
        window.view("heads")
        window.page.wait_for_selector("canvas.thumbnail")
        window.page.wait_for_timeout(200)
        rows, columns = len(record.target.tokens), len(record.source.tokens)
        sizes = window.page.evaluate(
            "[...document.querySelectorAll('canvas.thumbnail')].map((o) => [o.clientWidth, o.clientHeight])"
        )
        assert len(sizes) == 8
        for wide, high in sizes:
            assert wide >= 92  # 96 with its frame
            assert high / wide == pytest.approx(rows / columns, rel=0.05)
        boxes = window.page.evaluate("[...document.querySelectorAll('.head')].map((o) => o.offsetWidth)")
        assert min(boxes) >= 96


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_pointing_at_a_token_lights_it_in_all_heads(opened, record, language, width):
    window = opened(record.to_dict(), language, width=width)
    window.view("heads")
    veil = """([picture, side, size]) => parseFloat(
        getComputedStyle(document.querySelectorAll(".small-picture")[picture], side)[size])"""
    window.page.hover(".light >> nth=2")
    rows, columns = len(record.target.tokens), len(record.source.tokens)
    for picture in (0, 7):
        high = window.page.locator(".small-picture").nth(picture).evaluate("one => one.clientHeight")
        above, below = (window.page.evaluate(veil, [picture, side, "height"]) for side in ("::before", "::after"))
        assert above / high == pytest.approx(2 / rows, abs=0.02)
        assert below / high == pytest.approx((rows - 3) / rows, abs=0.02)
    window.page.click(".lighting .choice label >> nth=1")
    window.page.hover(".light >> nth=0")
    assert window.texts(".light")[0] == record.source.tokens[0].piece.lstrip("▁")
    wide = window.page.locator(".small-picture").nth(0).evaluate("one => one.clientWidth")
    assert window.page.evaluate(veil, [0, "::after", "width"]) / wide == pytest.approx(
        (columns - 1) / columns, abs=0.02
    )


def test_a_head_has_one_colour_in_all_views(opened, record):
    window = opened(record.to_dict())
    window.view("heads")
    colours = window.page.locator(".head").evaluate_all("all => all.map((one) => one.style.getPropertyValue('--head'))")
    assert len(set(colours[:4])) == 4
    assert colours[:4] == colours[4:]
    window.view("machine")
    window.page.click(".decoder [data-place=cross]")
    swatches = window.page.locator(".panel .swatch").evaluate_all(
        "all => all.map((one) => one.style.getPropertyValue('--head'))"
    )
    assert swatches == colours[:4]


def test_a_row_of_attention_has_its_entropy(opened, record):
    window = opened(record.to_dict())
    window.view("heads")
    layer, head = (int(part) - 1 for part in window.page.inner_text(".head[aria-pressed=true] b").split("·"))
    lines = window.page.locator(".large .lines canvas")
    for row, weights in enumerate(record.attention["cross"][layer, head][:3].astype(float)):
        lines.press("ArrowDown")
        bits = -(weights * np.log2(weights)).sum()
        told = window.page.inner_text(".large .lines .readout")
        assert f"entropy {bits:.2f} bits" in told or f"entropy {bits + 0.001:.2f} bits" in told, row


def test_what_is_left_early_is_drawn_when_the_reader_is_back(opened, record):
    window = opened(record.to_dict())
    for name, pictures in (("heads", ".head .small-picture"), ("machine", ".block:not(.tokens) .strips")):
        window.page.evaluate(
            """(name) => document.getElementById(`glass-tab-${name}`).addEventListener(
              "click", () => document.getElementById("glass-tab-needs").click(), { once: true })""",
            name,
        )
        window.page.click(f"#glass-tab-{name}")
        window.page.wait_for_timeout(300)  # frames of another view
        window.page.click(f"#glass-tab-{name}")
        drawn = f"[...document.querySelectorAll('{pictures}')].map((one) => one.childElementCount > 0)"
        wait_until(window.page, f"{drawn}.length > 0 && {drawn}.every((one) => one)")
