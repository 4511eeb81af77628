"""An animated translation: the words appear one after the other, with lines to the words that they read.

It is one SVG file with CSS animation, which browsers play wherever they show a picture. It stands still, complete, if
the reader asks for reduced motion, and in viewers that know no animation."""

import unicodedata
from collections.abc import Sequence
from xml.sax.saxutils import escape

from numpy.typing import NDArray

SIZE, GAP, PADDING = 22, 12, 12
"""Pixels: of the letters, between the words, and beside and above the letters of a word."""
HEIGHT = SIZE + 2 * PADDING
TOP, DISTANCE, MARGIN = 16, 150, 16
"""Pixels: above the source, from the source to the translation, and to the left and right."""
SECONDS, REST = 0.9, 3.0
"""Duration of a word, and of the complete picture before it begins again."""
FAINT = 0.05
"""Weights below this have no line."""
STYLE = """\
text { font: %dpx system-ui, "Noto Sans KR", sans-serif; text-anchor: middle; fill: #1c2733 }
rect { fill: #eef2f7 } .now rect { fill: #1d5fbf } .now text { fill: #ffffff } path { fill: none; stroke: #1d5fbf }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } rect { fill: #263040 } .now rect { fill: #2f6fd0 } path { stroke: #6ea8fe }
}
.step { animation: %.2fs linear infinite }
@media (prefers-reduced-motion: reduce) { .step { animation: none } .now { display: none } }
"""


def animated_picture(source: Sequence[str], target: Sequence[str], weights: NDArray) -> str:
    """An SVG file. source and target: names of the columns and rows of weights, (target, source), the lines' widths."""
    places = [_places(words) for words in (source, target)]
    width = max(right for *_, (_, right) in places)
    shift = [(width - words[-1][1]) / 2 + MARGIN for words in places]
    bottom = TOP + HEIGHT + DISTANCE
    duration = len(target) * SECONDS + REST
    source_words = [_word(word, *place, shift[0], TOP) for word, place in zip(source, places[0], strict=True)]
    rules, steps = [], []
    whole = 100 * len(target) * SECONDS / duration
    for i, (word, place) in enumerate(zip(target, places[1], strict=True)):
        begin, end = (100 * (i + part) * SECONDS / duration for part in (0, 1))
        appear = f"0%, {begin:.2f}% {{ opacity: 0 }} {begin + 1:.2f}%"
        recede = f"{end:.2f}% {{ opacity: 1 }} {end + 1:.2f}%"
        rules += [
            f"@keyframes word{i} {{ {appear}, 99% {{ opacity: 1 }} }}",
            f"@keyframes now{i} {{ {appear}, {recede}, 100% {{ opacity: 0 }} }}",
            f"@keyframes lines{i} {{ {appear}, {recede}, {whole + 1:.2f}% {{ opacity: 0.25 }} "
            f"{whole + 3:.2f}%, 99% {{ opacity: 0.8 }} 100% {{ opacity: 0 }} }}",
        ]
        to = sum(place) / 2 + shift[1]
        lines = "".join(
            _line(sum(places[0][j]) / 2 + shift[0], to, bottom, float(weight))
            for j, weight in enumerate(weights[i])
            if weight >= FAINT
        )
        written = _word(word, *place, shift[1], bottom)
        steps += [
            f'<g class="step" style="animation-name: lines{i}">{lines}</g>',
            f'<g class="step" style="animation-name: word{i}">{written}</g>',
            f'<g class="step now" style="animation-name: now{i}">{written}</g>',
        ]
    size = round(width) + 2 * MARGIN, bottom + HEIGHT + TOP
    style = STYLE % (SIZE, duration) + "\n".join(rules)
    label = escape(f"{' '.join(source)} -> {' '.join(target)}", {'"': "&quot;"})
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" width="{size[0]}" role="img" '
        f'aria-label="{label}">\n<style>\n{style}\n</style>\n' + "\n".join([*source_words, *steps]) + "\n</svg>\n"
    )


def _places(words: Sequence[str]) -> list[tuple[float, float]]:
    """The left and right end of each word, in pixels."""
    places, left = [], 0.0
    for word in words:
        wide = sum(1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.6 for letter in word)
        places.append((left, left + max(wide, 1.0) * SIZE + 2 * PADDING))
        left = places[-1][1] + GAP
    return places


def _word(word: str, left: float, right: float, shift: float, top: float) -> str:
    middle = f'x="{(left + right) / 2 + shift:.1f}" y="{top + HEIGHT / 2 + SIZE * 0.36:.1f}"'
    box = f'<rect x="{left + shift:.1f}" y="{top}" width="{right - left:.1f}" height="{HEIGHT}" rx="8"/>'
    return f"{box}<text {middle}>{escape(word)}</text>"


def _line(x: float, to: float, bottom: float, weight: float) -> str:
    top = TOP + HEIGHT
    half = (top + bottom) / 2
    return (
        f'<path d="M{to:.1f} {bottom}C{to:.1f} {half} {x:.1f} {half} {x:.1f} {top}" stroke-width="{9 * weight:.1f}" '
        f'stroke-opacity="{0.3 + 0.7 * weight:.2f}" stroke-linecap="round"/>'
    )
