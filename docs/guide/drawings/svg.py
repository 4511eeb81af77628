"""The primitives of the guide's drawings: SVG as text. Colours are classes, which _static/guide.css gives both themes;
labels are in English, and `figures.py` puts another language in their place."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from html import escape

HUES = ("blue", "warm", "green", "violet")
SMALL = re.compile(r"([_^])(?:\{([^}]*)\}|(.))")
Point = tuple[float, float]


def drawing(width: int, height: int, *parts: str) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" {size}>{"".join(parts)}</svg>\n'


def text(x: float, y: float, words: str, look: str = "", anchor: str = "middle") -> str:
    """A label; `_x` and `^{xy}` are set below and above the line."""
    start = f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{_class(look)}>'
    if not SMALL.search(words):
        return f"{start}{escape(words)}</text>"
    shown, back, at = "", 0, 0
    for found in SMALL.finditer(words):
        away = 4 if found[1] == "_" else -6
        shown += _moved(words[at : found.start()], -back) + _moved(found[2] or found[3], away, "small")
        back, at = away, found.end()
    return f"{start}{shown}{_moved(words[at:], -back)}</text>"


def _moved(words: str, away: int, look: str = "") -> str:
    return f'<tspan dy="{away}"{_class(look)}>{escape(words)}</tspan>' if words else ""


def box(x: float, y: float, width: float, height: float, words: str = "", look: str = "") -> str:
    middle = text(x + width / 2, y + height / 2 + 5, words) if words else ""
    size = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"'
    return f"<rect {size}{_class(f'box {look}'.strip())}/>{middle}"


def sign(x: float, y: float, words: str = "+", look: str = "") -> str:
    """A circle with an operation in it."""
    return f'<circle cx="{x:g}" cy="{y:g}" r="11"{_class(f"box {look}".strip())}/>{text(x, y + 5, words)}'


def line(*points: Point, look: str = "") -> str:
    return f'<polyline points="{" ".join(f"{x:g},{y:g}" for x, y in points)}"{_class(f"line {look}".strip())}/>'


def arrow(*points: Point, look: str = "") -> str:
    (x1, y1), (x2, y2) = points[-2:]
    angle = math.atan2(y2 - y1, x2 - x1)
    sides = [(x2 - 8 * math.cos(angle + turn), y2 - 8 * math.sin(angle + turn)) for turn in (0.42, -0.42)]
    head = " ".join(f"{x:.1f},{y:.1f}" for x, y in ((x2, y2), *sides))
    end = x2 - 6 * math.cos(angle), y2 - 6 * math.sin(angle)
    return line(*points[:-1], end, look=look) + f'<polygon points="{head}"{_class(f"head {look}".strip())}/>'


def cells(
    x: float,
    y: float,
    rows: int,
    columns: int,
    look: Callable[[int, int], str] | str = "",
    *,
    size: float = 14,
    strength: Callable[[int, int], float] | None = None,
) -> str:
    """A matrix: a cell for each number. look: its classes; strength: the share of its colour, from 0 to 1."""
    parts = []
    for row in range(rows):
        for column in range(columns):
            own = look if isinstance(look, str) else look(row, column)
            share = f' fill-opacity="{strength(row, column):.2f}"' if strength else ""
            place = f'x="{x + column * size:g}" y="{y + row * size:g}" width="{size:g}" height="{size:g}"'
            parts.append(f"<rect {place}{share}{_class(f'cell {own}'.strip())}/>")
    return "".join(parts)


def column_of_words(x: float, y: float, words: Sequence[str], step: float, anchor: str = "end") -> str:
    return "".join(text(x, y + at * step, word, "token", anchor) for at, word in enumerate(words))


def _class(look: str) -> str:
    return f' class="{look}"' if look else ""
