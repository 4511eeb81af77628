"""The picture of equal minutes: BLEU against sentences a second, a point a tool, for light and dark pages."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 52, 56
"""Pixels around the points."""
LETTER, LINE, RADIUS = 7.4, 18, 6
"""Pixels: of a letter at most, between two lines, of a point."""
STYLE = """\
text { font: 14px system-ui, "Noto Sans KR", sans-serif; fill: #1c2733 }
text { stroke: #ffffff; stroke-width: 4px; paint-order: stroke } .quiet { fill: #5b6878; font-size: 13px }
.paper { fill: #ffffff } .title { font-weight: 600; font-size: 15px } line { stroke: #d5dce5 }
circle { fill: #7a8797 } .ours { fill: #1d5fbf }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; stroke: #0d1117 } .quiet { fill: #9aa7b5 } .paper { fill: #0d1117 } line { stroke: #37424f }
  circle { fill: #8d99a8 } .ours { fill: #6ea8fe }
}
"""
WORDS = {
    "en": {
        "title": "{minutes:.0f} minutes of one core for training, then one core for translating",
        "x": "sentences a second",
        "speed": "BLEU {bleu:.1f}, {sentences_per_second:,.0f} sentences/s",
    },
    "ko": {
        "title": "코어 하나로 {minutes:.0f}분 학습한 뒤 코어 하나로 번역",
        "x": "초당 문장 수",
        "speed": "BLEU {bleu:.1f}, 초당 {sentences_per_second:,.0f}문장",
    },
}


class Box(NamedTuple):
    """Edges of a label, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def draw(found: dict[str, Any], folder: Path) -> None:
    """Writes `equal-minutes.svg` and `equal-minutes.ko.svg`."""
    for language, name in (("en", "equal-minutes.svg"), ("ko", "equal-minutes.ko.svg")):
        (folder / name).write_text(picture(found, WORDS[language]), encoding="utf-8")


def ticks(least: float, most: float) -> list[int]:
    """1, 2 and 5 times powers of ten around these."""
    every = [digit * 10**power for power in range(7) for digit in (1, 2, 5)]
    inside = [i for i, (low, high) in enumerate(pairwise(every)) if high > least and low < most]
    return every[inside[0] : inside[-1] + 2]


def picture(found: dict[str, Any], words: dict[str, str]) -> str:
    rows = found["rows"]
    bleus, speeds = ([row[name] for row in rows] for name in ("bleu", "sentences_per_second"))
    steps = range(math.floor(min(bleus) / 5) * 5, math.ceil((max(bleus) + 0.5) / 5) * 5 + 1, 5)
    speed_ticks = ticks(min(speeds), max(speeds))
    slow, fast = (math.log(one) for one in (speed_ticks[0], speed_ticks[-1]))

    def x(speed: float) -> float:
        return LEFT + (math.log(speed) - slow) / (fast - slow) * (WIDTH - LEFT - RIGHT)

    def y(bleu: float) -> float:
        return TOP + (steps[-1] - bleu) / (steps[-1] - steps[0]) * (HEIGHT - TOP - BOTTOM)

    title = words["title"].format(minutes=statistics.median(row["processor_minutes"] for row in rows))
    parts = [f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>']
    for bleu in steps:
        parts.append(f'<line x1="{LEFT}" y1="{y(bleu):.0f}" x2="{WIDTH - RIGHT}" y2="{y(bleu):.0f}"/>')
        parts.append(f'<text class="quiet" x="{LEFT - 8}" y="{y(bleu) + 5:.0f}" text-anchor="end">{bleu}</text>')
    for speed in speed_ticks:
        place = f'x="{x(speed):.0f}" y="{HEIGHT - 32}" text-anchor="middle"'
        parts.append(f'<text class="quiet" {place}>{speed:,}</text>')
    parts.append(f'<text class="quiet" x="{WIDTH / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{words["x"]}</text>')
    parts.append(f'<text class="title" x="16" y="24">{title}</text><text class="quiet" x="16" y="44">BLEU</text>')
    labels = [(row["name"], words["speed"].format(**row)) for row in rows]
    parts += points(rows, labels, x, y)
    said = "; ".join([title, *(f"{name}: {speed}" for name, speed in labels)])
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img"'
    return "\n".join([f'{head} aria-label="{escape(said)}">', f"<style>\n{STYLE}</style>", *parts, "</svg>\n"])


def points(
    rows: list[dict[str, Any]], labels: list[tuple[str, str]], x: Callable[[float], float], y: Callable[[float], float]
) -> Iterator[str]:
    """A circle and a label of two lines for each row; a label has the first place where it covers nothing."""
    places = [(x(row["sentences_per_second"]), y(row["bleu"])) for row in rows]
    taken = [Box(left - RADIUS, top - RADIUS, left + RADIUS, top + RADIUS) for left, top in places]
    for row, (left, top), label in zip(rows, places, labels, strict=True):
        ours = ' class="ours"' if row["name"].startswith("headway") else ""
        yield f'<circle{ours} cx="{left:.0f}" cy="{top:.0f}" r="{RADIUS}"/>'
        width = LETTER * max(map(len, label))
        boxes = [
            Box(at, above, at + width, above + 2 * LINE)
            for above in (top - LINE, top + 8, top - 2 * LINE - 8, top + LINE, top - 3 * LINE)
            for at in (left + 11, min(left + 11, WIDTH - 4 - width), left - 11 - width, left - width / 2)
        ]
        room = [box for box in boxes if box.left >= LEFT - 40 and box.right <= WIDTH and box.bottom <= HEIGHT - 44]
        box = next((box for box in room if not any(box.meets(one) for one in taken)), boxes[0])
        taken.append(box)
        anchor, at = ("end", box.right) if box.left + box.right < 2 * left else ("start", box.left)
        for number, text in enumerate(label):
            place = f'x="{at:.0f}" y="{box.top + 13 + LINE * number:.0f}" text-anchor="{anchor}"'
            kind = ' class="quiet"' if number else ""
            yield f"<text{kind} {place}>{escape(text)}</text>"
