"""The picture of equal minutes: BLEU against sentences a second, a point a tool, for light and dark pages."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 330
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 44, 52
"""Pixels around the points."""
STYLE = """\
text { font: 14px system-ui, "Noto Sans KR", sans-serif; fill: #1c2733 } .quiet { fill: #5b6878; font-size: 13px }
.title { font-weight: 600; font-size: 15px } line { stroke: #d5dce5 } circle { fill: #7a8797 } .ours { fill: #1d5fbf }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .quiet { fill: #9aa7b5 } line { stroke: #37424f }
  circle { fill: #8d99a8 } .ours { fill: #6ea8fe }
}
"""
WORDS = {
    "en": {
        "title": "Trained for {minutes:g} minutes on one core, translating on one core",
        "x": "sentences a second (logarithmic; further right is faster)",
        "label": "{name}: BLEU {bleu:.1f}, {speed:,.0f} sentences/s",
    },
    "ko": {
        "title": "코어 하나로 {minutes:g}분 학습, 코어 하나로 번역",
        "x": "초당 문장 수(로그 눈금, 오른쪽일수록 빠름)",
        "label": "{name}: BLEU {bleu:.1f}, 초당 {speed:,.0f}문장",
    },
}


def draw(found: dict[str, Any], folder: Path) -> None:
    """Writes `equal-minutes.svg` and `equal-minutes.ko.svg`."""
    for language, name in (("en", "equal-minutes.svg"), ("ko", "equal-minutes.ko.svg")):
        (folder / name).write_text(picture(found, WORDS[language]), encoding="utf-8")


def picture(found: dict[str, Any], words: dict[str, str]) -> str:
    rows = found["rows"]
    speeds = [math.log10(row["sentences_per_second"]) for row in rows]
    bleus = [row["bleu"] for row in rows]
    least, most = math.floor(min(bleus) / 5) * 5, math.ceil((max(bleus) + 0.5) / 5) * 5
    slow, fast = math.floor(min(speeds)), math.ceil(max(speeds))
    title = words["title"].format(**found)
    lines = []
    for bleu in range(least, most + 1, 5):
        y = TOP + (most - bleu) / (most - least) * (HEIGHT - TOP - BOTTOM)
        lines.append(f'<line x1="{LEFT}" y1="{y:.0f}" x2="{WIDTH - RIGHT}" y2="{y:.0f}"/>')
        lines.append(f'<text class="quiet" x="{LEFT - 8}" y="{y + 5:.0f}" text-anchor="end">{bleu}</text>')
    for speed in range(slow, fast + 1):
        x = LEFT + (speed - slow) / (fast - slow) * (WIDTH - LEFT - RIGHT)
        anchor = "end" if speed == fast else "middle"
        lines.append(f'<text class="quiet" x="{x:.0f}" y="{HEIGHT - 28}" text-anchor="{anchor}">{10**speed:,}</text>')
    lines.append(f'<text class="quiet" x="{WIDTH / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{words["x"]}</text>')
    lines.append(f'<text class="quiet" x="8" y="{TOP - 8}">BLEU</text><text class="title" x="56" y="20">{title}</text>')
    said = []
    for row, speed in zip(rows, speeds, strict=True):
        x = LEFT + (speed - slow) / (fast - slow) * (WIDTH - LEFT - RIGHT)
        y = TOP + (most - row["bleu"]) / (most - least) * (HEIGHT - TOP - BOTTOM)
        label = words["label"].format(name=row["name"], bleu=row["bleu"], speed=row["sentences_per_second"])
        said.append(label)
        kind = ' class="ours"' if row["name"].startswith("headway") else ""
        anchor, shift = ("end", -11) if x > WIDTH / 2 else ("start", 11)
        lines.append(f'<circle{kind} cx="{x:.0f}" cy="{y:.0f}" r="6"/>')
        lines.append(f'<text x="{x + shift:.0f}" y="{y + 5:.0f}" text-anchor="{anchor}">{escape(label)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" '
        f'aria-label="{escape("; ".join([title, *said]))}">\n<style>\n{STYLE}</style>\n'
        + "\n".join(lines)
        + "\n</svg>\n"
    )
