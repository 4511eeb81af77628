"""The moving picture: a well-formed SVG file whose lines and moments are those of the weights."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from headway.insight.animation import FAINT, animated_picture

SVG = "{http://www.w3.org/2000/svg}"
SOURCE, TARGET = ["one", "<two>", 'three & "four"'], ["하나", "둘"]
WEIGHTS = np.array([[0.9, 0.06, 0.04], [0.0, 0.3, 0.7]], dtype=np.float32)


@pytest.fixture(scope="module")
def picture() -> ElementTree.Element:
    return ElementTree.fromstring(animated_picture(SOURCE, TARGET, WEIGHTS))


def test_has_each_word_once_and_the_current_one_again(picture: ElementTree.Element) -> None:
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert texts == [*SOURCE, *(word for word in TARGET for _ in ("written", "now"))]


def test_a_line_is_as_wide_as_its_weight_and_goes_to_its_word(picture: ElementTree.Element) -> None:
    boxes = [(float(box.attrib["x"]), float(box.attrib["width"])) for box in picture.iter(f"{SVG}rect")]
    middles = [x + width / 2 for x, width in boxes]
    source, target = middles[: len(SOURCE)], middles[len(SOURCE) :: 2]
    found = []
    for path in picture.iter(f"{SVG}path"):
        begin, *_, end = re.findall(r"[-\d.]+ [-\d.]+", path.attrib["d"])
        found.append((float(begin.split()[0]), float(end.split()[0]), float(path.attrib["stroke-width"])))
    expected = [(target[i], source[j], 9 * WEIGHTS[i, j]) for i in range(2) for j in range(3) if WEIGHTS[i, j] >= FAINT]
    np.testing.assert_allclose(found, expected, atol=0.11)


def test_words_appear_in_order_and_stay(picture: ElementTree.Element) -> None:
    style = picture.findtext(f"{SVG}style", "")
    moments = [float(moment) for moment in re.findall(r"@keyframes word\d+ { 0%, ([\d.]+)%", style)]
    assert len(moments) == len(TARGET)
    assert moments[0] == 0
    assert all(earlier < later < 90 for earlier, later in pairwise(moments))
    assert "prefers-reduced-motion" in style


def test_boxes_do_not_overlap_and_lie_within(picture: ElementTree.Element) -> None:
    width = float(picture.attrib["viewBox"].split()[2])
    boxes = [
        (float(box.attrib["y"]), float(box.attrib["x"]), float(box.attrib["x"]) + float(box.attrib["width"]))
        for box in picture.iter(f"{SVG}rect")
    ]
    rows = [sorted({(left, right) for y, left, right in boxes if y == top}) for top in {y for y, *_ in boxes}]
    for row in rows:
        assert row[0][0] >= 0
        assert row[-1][1] <= width
        assert all(one[1] < other[0] for one, other in pairwise(row))
