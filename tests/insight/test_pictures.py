"""Pictures: every value in its place, Hangul as shapes of its own, bad paths refused before any work."""

import json
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from headway.errors import UserError

pytest.importorskip("matplotlib")

from matplotlib.colors import to_hex
from matplotlib.image import imread

from headway.insight.maps import AttentionMaps
from headway.insight.pictures import (
    PALETTES,
    HeatMap,
    check_picture_path,
    draw_curves,
    draw_heat_maps,
    heat_maps,
    save_picture,
)

DOCS = Path(__file__).parent.parent.parent / "docs"


def heat_map(*labels, title="a map"):
    values = np.eye(len(labels))
    return HeatMap(title, values, labels, labels)


def glyphs(path):
    """The shapes of characters that an SVG holds."""
    return set(re.findall(r'<path id="([^"]+)" d="[^"]+"', path.read_text()))


def test_a_grid_shows_the_values_it_was_given():
    maps = [[heat_map("a", "b"), heat_map("c", "d", "e")], [heat_map("f")]]
    figure = draw_heat_maps(maps)
    drawn = [axis for axis in figure.axes if axis.images and axis.get_title()]
    assert [axis.get_title() for axis in drawn] == ["a map"] * 3
    for axis, one in zip(drawn, [one for row in maps for one in row], strict=True):
        assert np.array_equal(axis.images[0].get_array(), one.values)
        assert [text.get_text() for text in axis.get_xticklabels()] == list(one.columns)
        assert [text.get_text() for text in axis.get_yticklabels()] == list(one.rows)


def test_the_palette_is_the_pages():
    script = (files("headway.page") / "views" / "colours.js").read_text(encoding="utf-8")
    for name, colours in PALETTES.items():
        [light] = re.findall(rf"const {name.upper()} = {{\n  light: (\[.*\]),", script)
        assert json.loads(light) == list(colours)
        figure = draw_heat_maps([[heat_map("a", "b")]], colours=name)
        image = figure.axes[0].images[0]
        assert [to_hex(image.cmap(end)) for end in (0.0, 1.0)] == [colours[0], colours[-1]]


def test_a_title_is_not_wider_than_its_map(tmp_path):
    long = "encoder-decoder attention, layer 3, head 12, step-00001200"
    figure = draw_heat_maps([[heat_map("a", "b", title=long), heat_map("c", "d", title=long)]])
    save_picture(figure, tmp_path / "a.png")
    one, other = (axis.title.get_window_extent() for axis in figure.axes[:2])
    assert one.x1 < other.x0
    assert one.x0 >= 0
    assert other.x1 <= figure.bbox.width


def test_tokens_have_the_names_that_they_have_in_the_page():
    """tests/system/test_glass_heads.py reads these names in the page, tests/insight/test_maps.py in text."""
    maps = AttentionMaps(["▁196", "1", "<eos>"], ["▁Se", "p", "▁", "<eos>"], {"decoder": np.full((1, 1, 4, 4), 0.25)})
    [[chart]] = heat_maps(maps, "decoder")
    axis = draw_heat_maps([[chart]]).axes[0]
    assert [text.get_text() for text in axis.get_yticklabels()] == ["Se", "·p", "▁", "<eos>"]  # what it writes
    assert [text.get_text() for text in axis.get_xticklabels()] == ["<sos>", "Se", "·p", "▁"]  # what it reads


def test_axes_are_named_and_a_mask_needs_no_bar():
    [[chart]] = heat_maps(AttentionMaps(["a", "<eos>"], ["b", "<eos>"], {"cross": np.full((1, 1, 2, 2), 0.5)}))
    with_bar, without = draw_heat_maps([[chart]]), draw_heat_maps([[chart]], colour_bar=False)
    assert with_bar.axes[0].get_ylabel() == "token that is written"
    assert with_bar.axes[0].get_xlabel() == "source token"
    assert len(with_bar.axes) == len(without.axes) + 1


def test_maps_of_anybodys_model_as_the_manual_draws_them(tmp_path, monkeypatch):
    """The example of docs/record.md, with the arrays that it speaks of."""
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", (DOCS / "record.md").read_text(encoding="utf-8"), re.DOTALL)
    [example] = [one for one in examples if "cross_attentions" in one]
    weights = np.random.default_rng(1).random((6, 1, 8, 3, 4), dtype=np.float32)  # layers, batch, heads, target, source
    weights /= weights.sum(-1, keepdims=True)
    names = {"cross_attentions": tuple(weights)}
    exec(example, names)
    assert "encoder-decoder attention, layer 6, head 2" in names["rows"][0][1].title
    assert np.array_equal(names["rows"][0][1].values, weights[5, 0, 1])
    assert list(names["rows"][0][0].rows) == [token.removeprefix("▁") for token in names["target"]]
    assert (tmp_path / "attention.svg").stat().st_size > 2000
    [[first], [second]] = heat_maps(names["maps"], "cross", [1, 2])
    assert first.values == pytest.approx(weights[0, 0].mean(axis=0))
    assert second.title == "encoder-decoder attention, layer 2, mean of its heads"
    assert len(heat_maps(names["maps"])) == 6


def test_hangul_is_drawn_and_not_a_box(tmp_path):
    for name, label in (("korean", "한"), ("other", "글"), ("missing", "\U00012000")):
        figure = draw_heat_maps([[heat_map(label, "x", title="")]])
        if name == "missing":
            with pytest.warns(UserWarning, match="missing from font"):
                save_picture(figure, tmp_path / f"{name}.svg")
        else:
            save_picture(figure, tmp_path / f"{name}.svg")  # a missing glyph would be a warning, thus an error
    assert glyphs(tmp_path / "korean.svg") != glyphs(tmp_path / "other.svg")
    assert any("Nanum" in glyph for glyph in glyphs(tmp_path / "korean.svg"))


def test_png_and_labels_that_look_like_formulas_or_control_sequences(tmp_path):
    save_picture(draw_heat_maps([[heat_map("$x^2$", "\x1b[2J\n", "<script>")]]), tmp_path / "a.png")
    assert imread(tmp_path / "a.png").shape[2] == 4


def test_the_same_picture_is_the_same_file(tmp_path):
    for name in ("a.svg", "b.svg"):
        save_picture(draw_heat_maps([[heat_map("a", "b")]]), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_large_picture_has_fewer_labels_and_a_bounded_size():
    figure = draw_heat_maps(
        [[HeatMap("", np.zeros((20, 500)), ["r"] * 20, [str(i) for i in range(500)])]], longest_edge=12
    )
    assert max(figure.get_size_inches()) <= 12.5
    assert len(figure.axes[0].get_xticklabels()) < 100


def test_curves_have_their_points_and_names():
    rates = {"one": ([1, 2], [3.0, 4.0]), "two": ([1, 2], [5.0, 6.0])}
    figure = draw_curves({"rate": rates, "loss": {"_$1_$2": ([7], [8.0])}}, "step")
    assert [[line.get_ydata().tolist() for line in axis.lines] for axis in figure.axes] == [
        [[3.0, 4.0], [5.0, 6.0]],
        [[8.0]],
    ]
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["one", "two"]
    assert [axis.get_ylabel() for axis in figure.axes] == ["rate", "loss"]
    assert figure.axes[1].lines[0].get_marker() == "o"


def test_a_name_that_begins_with_a_line_is_in_the_legend():
    figure = draw_curves({"rate": {"_one": ([1, 2], [3.0, 4.0]), "$t_w_o$": ([1, 2], [5.0, 6.0])}}, "step")
    assert [text.get_text().strip() for text in figure.axes[0].get_legend().get_texts()] == ["_one", r"\$t_w_o\$"]


def test_paths_are_checked(tmp_path):
    with pytest.raises(UserError, match=r"must end in \.svg, \.png"):
        check_picture_path(tmp_path / "a.gif")
    check_picture_path(tmp_path / "a.json", others=(".json",))
