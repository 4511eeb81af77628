"""The machine flows: strips of data in closed blocks, wires from block to block, one token followed through all."""

import numpy as np
import pytest

from tests.page.decoding import decoded

TEXT = "the cat sat on the mat"


@pytest.fixture(scope="module")
def record(random):
    return random.inspect(TEXT)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_closed_block_shows_its_data(opened, record, language):
    """As many rows as tokens, and in each the colours of that token's numbers: alike only where numbers are alike."""
    document = record.to_dict()
    window = opened(document, language)
    window.view("machine")
    blocks = window.page.locator(".block:not(.tokens)").count()
    window.count(".block:has(.data)", blocks)
    for stack, side in (("encoder", "source"), ("decoder", "target")):
        heights = window.page.locator(f".{stack} .data").evaluate_all("all => all.map((one) => one.height)")
        assert set(heights) == {len(document[side]["tokens"])}
    rows = window.page.locator(".encoder .embedding .data").evaluate("""(canvas) => {
        const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const rowAt = (row) => [...data.subarray(4 * width * row, 4 * width * (row + 1))].join();
        return Array.from({ length: height }, (_, row) => rowAt(row));
    }""")
    numbers = decoded(document["arrays"], "source_embedding.scaled")
    for one in range(len(rows)):
        for other in range(one):
            assert (rows[one] == rows[other]) == np.array_equal(numbers[one], numbers[other])


def test_wires_begin_and_end_at_blocks(opened, record):
    window = opened(record.to_dict())
    window.view("machine")
    loose = window.page.evaluate("""() => {
        const frame = document.querySelector(".flow").getBoundingClientRect();
        const blocks = [...document.querySelectorAll(".flow .block")].map((one) => one.getBoundingClientRect());
        const touches = ({ x, y }) => blocks.some(({ left, right, top, bottom }) =>
            x + frame.left > left - 7 && x + frame.left < right + 7 &&
            y + frame.top > top - 7 && y + frame.top < bottom + 7);
        const wires = [...document.querySelectorAll(".wires path:not(.tip)")];
        const ends = (one) => [0, one.getTotalLength()].map((at) => one.getPointAtLength(at));
        const loose = wires.filter((one) => !ends(one).every(touches));
        return [wires.length, document.querySelectorAll(".wires .tip").length, loose.length];
    }""")
    count, tips, loose_ends = loose
    assert count == tips  # an arrowhead each
    assert count > 15
    assert loose_ends == 0


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_one_token_is_followed_through_all_blocks(opened, record, language, width):
    window = opened(record.to_dict(), language, width=width)
    window.view("machine")
    size = window.page.locator(".encoder .row-name").first.evaluate("one => getComputedStyle(one).fontSize")
    assert float(size.removesuffix("px")) >= 10, "a reader can read it"
    window.page.click(".encoder .row-name >> nth=2")
    assert window.page.input_value(".controls select >> nth=0") == "2"
    veil = """getComputedStyle(document.querySelector(".encoder .embedding .strips"), "::before").height"""
    strips = window.page.locator(".encoder .embedding .strips").evaluate("one => one.getBoundingClientRect().height")
    row = strips / window.page.locator(".encoder .row-name").count()
    assert float(window.page.evaluate(veil).removesuffix("px")) == pytest.approx(2 * row, abs=2)
    window.page.click(".follow")
    window.page.wait_for_selector(".block.positions.here")
    said = window.page.inner_text(".follow-told")
    assert record.source.tokens[2].piece.lstrip("▁") in said
    assert window.page.locator(".block.reached").count() == 3
    window.page.click(".follow")
    assert window.page.locator(".reached").count() == 0
    assert window.page.evaluate("document.documentElement.scrollWidth") == width


def test_an_open_block_is_wide_and_both_stacks_stay_in_sight(opened, record):
    window = opened(record.to_dict())
    window.view("machine")
    window.page.click(".decoder [data-place=cross]")
    panel = window.page.locator(".panel").bounding_box()
    assert panel["width"] >= 1200
    window.page.mouse.wheel(0, 500)
    window.page.wait_for_timeout(100)
    for stack in ("encoder", "decoder"):
        box = window.page.locator(f".stack.{stack} .tiles").bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 900 / 2
    window.page.click(".panel .tools button >> nth=1")  # the next block
    assert window.page.get_attribute(".decoder [data-place='cross addNorm']", "aria-expanded") == "true"
    window.page.click(".panel .tools button >> nth=2")
    assert window.page.locator(".panel:not([hidden])").count() == 0


def test_another_layer_has_other_data(opened, record):
    window = opened(record.to_dict())
    window.view("machine")
    window.count(".block:has(.data)", window.page.locator(".block:not(.tokens)").count())
    pixels = "document.querySelector('.encoder .block.encoder .data').toDataURL()"
    before = window.page.evaluate(pixels)
    window.page.click(".encoder .layer > .choice label >> nth=1")
    window.page.wait_for_timeout(800)
    assert window.page.evaluate(pixels) != before


def test_blocks_and_the_whole_say_how_many_parameters_they_have(opened, record, random):
    window = opened(record.to_dict())
    window.view("machine")
    counts = {name: one.numel() for name, one in random.model.named_parameters()}
    assert f"({sum(counts.values()):,} parameters)" in window.page.inner_text(".follow-told")
    for place, part in (("self", "self_attention"), ("feed_forward", "feed_forward.")):
        window.page.click(f".encoder [data-place={place}]")
        wanted = sum(count for name, count in counts.items() if name.startswith(f"encoder.layers.0.{part}"))
        assert f"· {wanted:,} parameters" in window.page.inner_text(".panel header")
