"""Attention as one scene: a score lights its row and column and says how it came to be; masks are hatched."""

import re

import numpy as np
import pytest

from tests.system.browsing import Window, open_live, random_translator

TEXT = "the cat sat on the mat"


@pytest.fixture(scope="module")
def record(random):
    return random.inspect(TEXT)


def open_block(window, place: str, head: int, layer: int = 0) -> None:
    """An attention of the decoder: "self" or "cross"."""
    window.view("machine")
    window.page.click(f".decoder [data-place={place}]")
    if layer:
        window.page.click(f".decoder .layer > .choice label >> nth={layer}")
    window.page.click(f".panel .choice >> nth=0 >> label >> nth={head}")


def go_to(window, row: int, column: int) -> None:
    """A score, by keyboard."""
    window.page.mouse.move(0, 0)  # nothing is pointed at where the page scrolls
    window.page.focus(".scene canvas")
    for key, times in (("ArrowDown", row + 1), ("ArrowRight", column)):
        for _ in range(times):
            window.page.keyboard.press(key)


def numbers(text: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+\.?\d*", text.replace("−", "-"))]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_score_says_how_it_came_to_be(opened, record, language, width):
    """The chain of numbers against the record's own arrays, multiplied by numpy."""
    window = opened(record.to_dict(), language, width=width)
    open_block(window, "cross", head=1)
    row, column = 2, 3
    go_to(window, row, column)
    name = "decoder.layers.0.cross_attention"
    query, key = (record.arrays[f"{name}.{one}"][1] for one in ("queries", "keys"))
    product = float(query[row] @ key[column])
    weights = np.exp(query @ key.T / np.sqrt(query.shape[1]))
    share = weights[row, column] / weights[row].sum()

    chips = window.texts(".told-numbers .chip")
    assert chips == [record.target.tokens[row].piece.lstrip("▁"), record.source.tokens[column].piece.lstrip("▁")]
    written = window.texts(".chain .value")
    assert numbers(" ".join(written)) == pytest.approx([product, product / np.sqrt(query.shape[1]), share], abs=0.012)
    factors = numbers(window.page.inner_text(".chain .sum"))
    assert factors[:2] == pytest.approx([query[row, 0], key[column, 0]], abs=0.006)
    assert factors[-2:] == pytest.approx([query[row, -1], key[column, -1]], abs=0.006)
    assert window.page.evaluate("document.documentElement.scrollWidth") == width


def test_the_output_is_the_shares_times_the_values(opened, record):
    window = opened(record.to_dict())
    open_block(window, "self", head=0, layer=1)
    places = window.page.evaluate("""() => {
        const canvas = document.querySelector(".scene canvas");
        canvas.scrollIntoView({ block: "end" });
        const { right, bottom } = canvas.getBoundingClientRect();
        return [right - 6, bottom - 40];
    }""")
    window.page.mouse.move(*places)  # the last number of the last row
    name = "decoder.layers.1.self_attention"
    weights, values = record.arrays[f"{name}.weights"][0], record.arrays[f"{name}.values"][0]
    assert numbers(window.page.inner_text(".chain .value"))[0] == pytest.approx((weights @ values)[-1, -1], abs=0.006)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_what_the_mask_hides_is_hatched_and_said(opened, record, language):
    window = opened(record.to_dict(), language)
    open_block(window, "self", head=0)
    window.page.click(".panel .choice >> nth=1 >> label >> nth=4")  # the mask
    go_to(window, 1, 3)
    assert "−∞" in window.page.inner_text(".chain")
    assert window.texts(".chain .value")[-1] == "0.00"


def test_hidden_cells_are_hatched(browser):
    """Grey lines in a hidden cell of the scores, none in one that is seen."""
    model = random_translator(d_model=64)  # too wide for numbers to be written in the cells
    window = Window(browser)
    open_live(window, model, TEXT)
    record = model.inspect(TEXT)
    open_block(window, "self", head=0)
    rows, width = len(record.target.tokens), record.arrays["decoder.layers.0.self_attention.keys"].shape[-1]
    names = [[token.piece.lstrip("▁") for token in record.target.tokens], record.maps.read]
    grey = window.page.evaluate(GREY, [rows, width, *names])
    assert grey["hidden"] > 20
    assert grey["seen"] == 0
    window.close()


GREY = """async ([rows, size, rowNames, columnNames]) => {
    const { sceneLayout } = await import("/glass/scene_layout.js");
    const sizes = { n: rows, m: rows, d: size, v: size };
    const room = document.querySelector(".scene").clientWidth;
    const tall = document.querySelector(".scene canvas").clientHeight;
    const { left, top, width, height } = sceneLayout(sizes, room, tall, rowNames, columnNames).parts.scores;
    const canvas = document.querySelector(".scene canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const greyAt = (row, column) => {
      let grey = 0;
      for (let y = Math.ceil(top + row * height) + 3; y < top + (row + 1) * height - 3; y++) {
        for (let x = Math.ceil(left + column * width) + 3; x < left + (column + 1) * width - 3; x++) {
          const [red, green, blue] = data.subarray(4 * (y * canvas.width + x));
          if (red < 235 && red >= blue && red - blue < 25 && Math.abs(red - green) < 25) grey++;
        }
      }
      return grey;
    };
    return { hidden: greyAt(0, rows - 1), seen: greyAt(rows - 1, 0) };
}"""


def test_the_mask_stage_has_a_scale_of_its_own(opened, record):
    """The largest of what can be seen has the strongest colour, not the largest product."""
    document = record.to_dict()
    window = opened(document)
    open_block(window, "self", head=0)
    name = "decoder.layers.0.self_attention"
    scores, mask = record.arrays[f"{name}.scores"][0], record.arrays[f"{name}.mask"]
    root = np.sqrt(record.arrays[f"{name}.keys"].shape[-1])
    seen = np.abs(scores[np.broadcast_to(mask.reshape(scores.shape), scores.shape)]).max()
    for stage, most in ((2, np.abs(scores).max() * root), (3, np.abs(scores).max()), (4, seen)):
        window.page.click(f".panel .choice >> nth=1 >> label >> nth={stage}")
        shown = numbers(window.page.inner_text(".legend-line .ends >> nth=0"))
        assert shown[-1] == pytest.approx(most, rel=2e-3)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_any_head_can_be_loaded_into_try_the_numbers(opened, record, language):
    window = opened(record.to_dict(), language)
    window.view("numbers")
    window.page.click(".view > .controls .choice label >> nth=2")
    window.page.select_option(".inputs select >> nth=0", "decoder")
    window.page.select_option(".inputs select >> nth=1", index=1)
    window.page.select_option(".inputs select >> nth=2", index=1)
    go_to(window, 2, 1)
    weights = record.arrays["decoder.layers.1.self_attention.weights"][1]
    assert numbers(window.texts(".chain .value")[-1])[0] == pytest.approx(weights[2, 1], abs=0.006)
    window.page.click(".check >> nth=0")  # no division
    query, key = (record.arrays[f"decoder.layers.1.self_attention.{one}"][1] for one in ("queries", "keys"))
    powers = np.exp(query[2] @ key[:3].T)
    assert numbers(window.texts(".chain .value")[-1])[0] == pytest.approx(powers[1] / powers.sum(), abs=0.012)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_half_typed_number_keeps_the_last_results(opened, record, language):
    window = opened(record.to_dict(), language)
    window.view("numbers")
    before = window.page.locator(".numbers").all_inner_texts()
    window.page.fill(".inputs textarea >> nth=0", "1 0 1 0\n0 2 0 2\n1 1 1 -")
    assert window.page.inner_text(".problem")
    assert window.page.locator(".numbers").all_inner_texts() == before
    assert window.page.locator(".scene canvas[tabindex]").count() == 1
    window.page.fill(".inputs textarea >> nth=0", "1 0 1 0\n0 2 0 2\n1 1 1 -1")
    assert window.page.inner_text(".problem") == ""
    assert window.page.locator(".numbers").all_inner_texts() != before
