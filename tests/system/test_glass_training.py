"""The training view: its sentences and pictures are those of the moments, for every reader."""

import base64
import re

import numpy as np
import pytest

from headway.insight.maps import measure_heads
from tests.system.test_glass_saving import saved

TEXT = "the cat sat on the mat"
REFERENCE = "a dog on a mat"
STEPS = [0, 50, 400]
SLIDER = ".training input[type=range]"


def rows(shape: tuple[int, ...]) -> np.ndarray:
    """Attention that is spread evenly."""
    return np.full(shape, 1 / shape[-1])


@pytest.fixture(scope="module")
def maps(random):
    """Of each kind at three moments, (layers, heads, query, key): spread; then one head of the encoder looks at its own
    place with 70%, and one of the decoder at the place before with 60%; then one of the encoder moves a tenth."""
    record = random.inspect(TEXT, REFERENCE)
    first = {kind: rows(found.shape) for kind, found in record.attention.items()}
    second = {kind: found.copy() for kind, found in first.items()}
    for kind, (layer, head), share, before in (("encoder", (1, 0), 0.7, 0), ("decoder", (0, 1), 0.6, 1)):
        found = second[kind][layer, head]
        found[:] = (1 - share) / (found.shape[1] - 1)
        for row in range(len(found)):
            found[row, max(0, row - before)] = share
    third = {kind: found.copy() for kind, found in second.items()}
    third["encoder"][0, 1, :, 0] += 0.1
    third["encoder"][0, 1, :, 1] -= 0.1
    return first, second, third


@pytest.fixture
def document(random, maps):
    found = random.inspect(TEXT, REFERENCE).to_dict()
    moments = []
    for at, (step, kinds) in enumerate(zip(STEPS, maps, strict=True)):
        arrays, attention = {}, {}
        for kind, weights in kinds.items():
            about = found["attention"][kind]
            measures = [[dict(vars(one)) for one in layer] for layer in measure_heads(kind, weights)]
            attention[kind] = {**about, "measures": measures}
            for layer, one in enumerate(weights):
                data = base64.b64encode(one.astype("<f4").tobytes()).decode()
                name = f"{about['names'].replace('{layer}', str(layer))}.weights"
                arrays[name] = {"dtype": "float32", "shape": list(one.shape), "data": data}
        figures = {
            "training_loss": 6.5 - 2 * at,
            "validation_loss": 6.6 - 2 * at,
            "score": float(np.log(0.25 * (at + 1))),
        }
        translation = found["target"]["text"] if at == 2 else f"<b>moment</b> {at}"
        moments.append({"step": step, "translation": translation, **figures, "attention": attention, "arrays": arrays})
    found["training"] = {**{name: found[name] for name in ("source", "target", "start")}, "moments": moments}
    return found


def go(window, at: int) -> None:
    window.page.locator(SLIDER).evaluate("(o, v) => { o.value = v; o.dispatchEvent(new Event('input')) }", at)


def test_a_record_without_moments_has_no_such_view(random, opened):
    window = opened(random.inspect(TEXT).to_dict(), address="#view=training")
    window.count("[role=tab]", 7)
    assert window.page.get_attribute("#glass-tab-translate", "aria-selected") == "true"


def test_a_moment_is_saved_with_its_legend(document, opened):
    window = opened(document, scheme="dark")
    window.page.click("#glass-tab-training")
    svg = saved(window, "svg").decode()
    legend = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))
    assert "A validation sentence at one moment of the training." in legend
    assert window.page.get_attribute(".glass", "data-theme") != "light"


@pytest.mark.parametrize("exists", [1, 2])
def test_one_moment_is_nothing_to_move_between(document, opened, exists):
    del document["training"]["moments"][exists:]
    window = opened(document)
    window.count("#glass-tab-training", 0 if exists == 1 else 1)


def test_figures_are_of_the_moment(document, opened):
    window = opened(document)
    window.view("training")
    for at, step in enumerate(STEPS):
        go(window, at)
        moment = document["training"]["moments"][at]
        assert window.page.inner_text(".training .player output") == f"Step {step}, moment {at + 1} of 3"
        said = window.texts(".moment dd")
        assert said[0] == TEXT
        assert said[1].startswith(moment["translation"])  # as text, whatever is in it
        assert said[1].endswith("equals the reference" if at == 2 else "differs from the reference")
        assert said[2].endswith(f"{25 * (at + 1)}.0%")
        assert said[3:] == [f"{moment['training_loss']:.3f}", f"{moment['validation_loss']:.3f}"]
        marker, points = (
            window.page.eval_on_selector_all(f".losses {name}", f"all => all.map((one) => one.getAttribute('{place}'))")
            for name, place in ((".marker", "x1"), ("circle", "cx"))
        )
        assert {*marker, *points} == {marker[0]}
    lines = window.page.eval_on_selector_all(
        ".losses .curves:not(.sample) polyline", "all => all.map((o) => o.getAttribute('points'))"
    )
    heights = [[float(point.split(",")[1]) for point in line.split()] for line in lines]
    assert len(heights) == 2
    for found, shift in zip(heights, (0.1, 0), strict=True):  # evenly falling, as the losses are
        assert found[2] - found[1] == pytest.approx(found[1] - found[0])
        assert found[0] - heights[1][0] == pytest.approx(shift / 2 * (found[1] - found[0]), abs=1e-6)


def test_sentences_say_what_changed(document, maps, opened):
    window = opened(document)
    window.view("training")
    heads = sum(found.shape[0] * found.shape[1] for found in maps[0].values())
    assert f"{heads} of {heads} heads spread" in window.page.inner_text(".changes")
    assert window.page.locator(".head.relabelled").count() == 0
    go(window, 1)
    even = 100 / maps[0]["encoder"].shape[-1]
    found = maps[1]["decoder"][0, 1]
    before = [found[row, row - 1] for row in range(1, len(found))]
    assert np.mean(before) == pytest.approx(0.6)
    assert f"since step 0, at step 50: 2 of {heads}" in window.page.inner_text(".changes p")
    said = window.texts(".changes li")
    assert said[0] == f"Encoder self-attention, layer 2, head 1: spread → same (its own place: {even:.1f}% → 70.0%)"
    assert said[1].startswith("Decoder self-attention, layer 1, head 2: spread → previous (previous token: ")
    assert said[1].endswith("→ 60.0%)")
    assert len(said) == 2
    marked = window.texts(".head.relabelled .label")
    assert sorted(marked) == ["previous (new)", "same (new)"]
    go(window, 2)
    assert window.page.inner_text(".changes p") == (
        "From step 50 to step 400 no head got a new label. Most changed: Encoder self-attention, layer 1, head 2, "
        "where 10.0% of a row's attention moved to other tokens, on average."
    )
    assert window.page.locator(".head.relabelled").count() == 0


def test_pictures_are_the_maps_of_the_moment(document, maps, opened):
    """The darkest pixel of each row of a head's picture is the place that it looks at most."""
    window = opened(document)
    window.view("training")
    brightness = """all => all.map((canvas) => {
        const { width, height } = canvas;
        const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
        const sum = (at) => data[at] + data[at + 1] + data[at + 2];
        return Array.from({ length: height }, (_, row) =>
            Array.from({ length: width }, (_, column) => sum(4 * (row * width + column))));
    })"""
    for at in (1, 2):
        go(window, at)
        found = window.page.eval_on_selector_all(".training canvas.thumbnail", brightness)
        wanted = [head for kind in maps[at].values() for layer in kind for head in layer]
        assert len(found) == len(wanted)
        for picture, head in zip(found, wanted, strict=True):
            assert (np.argsort(picture, axis=1)[:, 0] == head.argmax(axis=1)).all() or head.max() < 0.5


def test_a_chosen_head_is_large_at_every_moment(document, opened):
    window = opened(document)
    window.view("training")
    window.page.click(".training .head >> nth=4")
    assert window.page.inner_text(".training .large h3") == "Encoder self-attention, layer 2, head 1"
    assert "spread" in window.page.inner_text(".training .large p >> nth=0")
    go(window, 1)
    assert "70.0%" in window.page.inner_text(".training .large p >> nth=0")
    assert window.page.locator(".training .head[aria-pressed=true]").count() == 1


def test_keys_move_the_slider_and_play_moves_it_by_itself(document, opened):
    window = opened(document)
    window.view("training")
    window.page.focus(SLIDER)
    window.page.keyboard.press("ArrowRight")
    assert "moment 2 of 3" in window.page.get_attribute(SLIDER, "aria-valuetext")
    window.page.keyboard.press("End")
    assert "moment 3 of 3" in window.page.inner_text(".training output >> nth=0")
    window.page.click(".training .player .primary")
    window.contains(".training .player output", "moment 1 of 3")
    assert window.page.get_attribute(".training .player .primary", "aria-label") == "Pause"
    window.contains(".training .player output", "moment 3 of 3")
    window.page.wait_for_selector(".training .player .primary[aria-label=Play]")


def test_nothing_moves_by_itself_for_readers_who_want_no_motion(document, opened):
    window = opened(document, reduced_motion="reduce")
    window.view("training")
    window.count(".training .player button", 2)
    window.page.click(".training .player button >> nth=1")
    assert "moment 2 of 3" in window.page.inner_text(".training .player output")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_it_fits_its_width_in_both_languages(document, opened, language, width):
    window = opened(document, language, width=width)
    window.view("training")
    go(window, 1)
    wide, inner = window.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= inner
    text = window.page.inner_text(".training")
    assert ("학습 50스텝" if language == "ko" else "Step 50") in text
    assert "{" not in text
