"""Drawings of the chapters from token to vector: recurrence, the embedding, positions."""

from __future__ import annotations

import math

from drawings.svg import HUES, arrow, box, cells, drawing, line, text


def recurrence() -> str:
    """A chain beside attention: the way from the first token to the last."""
    parts = [text(180, 24, "recurrent network", "title"), text(560, 24, "self-attention", "title")]
    for at in range(6):
        x = 40 + at * 56
        parts += [
            box(x - 17, 80, 34, 32, f"h_{at + 1}", "warm" if at in (0, 5) else ""),
            arrow((x, 160), (x, 114), look="faint"),
        ]
        parts += [text(x, 178, f"x_{at + 1}")]
        if at:
            parts.append(arrow((x - 39, 96), (x - 18, 96), look="warm"))
    for at in range(6):
        x = 420 + at * 56
        parts += [box(x - 17, 80, 34, 32, f"y_{at + 1}", "blue" if at == 5 else ""), text(x, 178, f"x_{at + 1}")]
        parts += [line((x, 162), (420 + other * 56, 114), look="faint") for other in range(5)]
    parts += [arrow((420 + at * 56, 162), (700, 115), look="blue") for at in range(6)]
    parts += [text(180, 212, "5 steps, one after the other"), text(560, 212, "1 step for every pair, all at once")]
    return drawing(740, 226, *parts)


def embedding() -> str:
    """An id picks a row of the matrix."""
    colours = [math.sin(7.3 * at + 1) for at in range(64)]
    rows = cells(
        310,
        40,
        8,
        8,
        lambda row, _: "blue" if row == 4 else "plain",
        size=18,
        strength=lambda row, column: 0.25 + 0.6 * abs(colours[row * 8 + column]) if row == 4 else 0.0,
    )
    parts = [
        text(60, 118, "dog", "token"),
        text(60, 146, "token"),
        arrow((86, 114), (126, 114)),
        box(130, 98, 60, 32, "17", "warm"),
        text(160, 150, "id"),
    ]
    parts += [
        arrow((192, 114), (306, 121), look="blue"),
        text(250, 96, "row 17"),
        rows,
        text(382, 206, "embedding matrix"),
        text(382, 28, "d_{model}"),
    ]
    parts += [
        arrow((456, 121), (500, 121), look="blue"),
        cells(504, 112, 1, 8, "blue", size=18, strength=lambda _, column: 0.25 + 0.6 * abs(colours[32 + column])),
    ]
    parts += [text(576, 154, "vector of the token"), text(672, 126, "× √d_{model}", anchor="start")]
    return drawing(740, 220, *parts)


def waves() -> str:
    """Four waves, read off at one position, and added to a token."""
    speeds, start, step, chosen = (1.0, 0.4, 0.16, 0.064), 60.0, 21.0, 7
    parts = [text(270, 20, "waves of the positions", "title"), text(610, 20, "sum", "title")]
    for at, speed in enumerate(speeds):
        middle = 66.0 + at * 62
        ends = (start, middle), (start + 20 * step, middle)
        curve = [(start + place / 4 * step, middle - 22 * math.sin(speed * place / 4)) for place in range(81)]
        value = math.sin(speed * chosen)
        parts += [line(*ends, look="faint"), line(*curve, look=HUES[at]), text(34, middle + 5, f"{2 * at}")]
        parts.append(
            f'<circle cx="{start + chosen * step:g}" cy="{middle - 22 * value:g}" r="5" class="dot {HUES[at]}"/>'
        )
    parts += [
        line((start + chosen * step, 36), (start + chosen * step, 288), look="dashed"),
        text(start + chosen * step, 306, "position 7"),
    ]
    parts += [text(30, 306, "dimension", "note", "start"), text(start + 20 * step, 306, "position →", "note", "end")]
    values = [math.sin(speed * chosen) for speed in speeds]
    token = [0.5, -0.7, 0.2, 0.9]
    for column, (x, numbers) in enumerate(
        ((540, token), (620, values), (700, [a + b for a, b in zip(token, values, strict=True)]))
    ):
        for at, number in enumerate(numbers):
            y = 48.0 + at * 62
            hue = HUES[at] if column == 1 else "plain"
            parts += [box(x - 27, y, 54, 34, f"{number:+.2f}".replace("-", "−"), f"tinted {hue}")]
            parts.append(text(x + 40, y + 22, "+" if column == 0 else "=") if column < 2 else "")
    parts += [text(540, 306, "token"), text(620, 306, "position"), text(700, 306, "input")]
    return drawing(760, 320, *parts)


def sum_or_concatenation() -> str:
    """What adding and appending do to the width."""

    def strip(x: float, y: float, count: int, hue: str) -> str:
        return cells(x, y, 1, count, hue, size=18, strength=lambda _, at: 0.25 + 0.6 * abs(math.sin(3 * at + x)))

    both = cells(520, 52, 1, 8, "blue", size=18, strength=lambda _, at: 0.7) + cells(
        520, 52, 1, 8, "warm", size=18, strength=lambda _, at: 0.35
    )
    parts = [text(20, 66, "added", "title", "start"), text(20, 156, "appended", "title", "start")]
    for y, between in ((52, "+"), (142, ",")):
        parts += [
            strip(130, y, 8, "blue"),
            text(296, y + 15, between),
            strip(316, y, 8, "warm"),
            text(490, y + 15, "="),
        ]
    parts += [text(202, 38, "token"), text(388, 38, "position"), both]
    parts += [
        cells(520, 142, 1, 6, "blue", size=18, strength=lambda _, at: 0.6),
        cells(628, 142, 1, 6, "warm", size=18, strength=lambda _, at: 0.6),
    ]
    parts += [
        text(592, 92, "as wide as before"),
        text(736, 182, "wider, and so is every matrix that reads it", anchor="end"),
    ]
    return drawing(760, 200, *parts)
