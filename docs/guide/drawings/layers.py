"""Drawings of the chapters on layers: Figure 1 of the paper, the residual stream, normalisation, the feed-forward
network."""

from __future__ import annotations

import math

from drawings.svg import arrow, box, cells, drawing, sign, text


def architecture() -> str:
    """Figure 1."""
    encoder = [(450, 34, "self-attention", "warm"), (412, 24, "add and normalise", "")]
    encoder += [(362, 34, "feed-forward", "blue"), (324, 24, "add and normalise", "")]
    decoder = [(450, 34, "masked self-attention", "warm"), (412, 24, "add and normalise", "")]
    decoder += [(362, 34, "attention to the memory", "warm"), (324, 24, "add and normalise", "")]
    decoder += [(274, 34, "feed-forward", "blue"), (236, 24, "add and normalise", "")]
    parts = [box(52, 310, 256, 190, look="frame"), box(372, 222, 256, 278, look="frame")]
    for left, side, layer in ((90, -1, encoder), (410, 1, decoder)):
        middle, below = left + 90, 544.0
        edge = left - 22 if side < 0 else left + 202
        parts += [
            text(middle, 622, "source tokens" if side < 0 else "target tokens, shifted right"),
            arrow((middle, 608), (middle, 592)),
        ]
        parts += [box(left, 560, 180, 32, "embedding", "green"), sign(middle, 533), arrow((middle, 560), (middle, 544))]
        parts += [
            arrow((middle + side * 70, 533), (middle + side * 11, 533)),
            text(middle + side * 74, 537, "positions", anchor="end" if side < 0 else "start"),
        ]
        below = 522
        for at, (y, height, words, look) in enumerate(layer):
            parts += [arrow((middle, below), (middle, y + height)), box(left, y, 180, height, words, look)]
            if at % 2 == 0:  # the residual connection passes the sub-layer and the name below its sum
                start, end = (510 if at == 0 else y + height + 8), layer[at + 1][0] + 12
                near = left if side < 0 else left + 180
                parts.append(arrow((middle, start), (edge, start), (edge, end), (near, end), look="faint"))
            below = y
    parts += [text(44, 410, "6 ×", anchor="end"), text(636, 366, "× 6", anchor="start")]
    parts += [arrow((180, 324), (180, 286), (340, 286), (340, 379), (410, 379), look="warm"), text(180, 274, "memory")]
    parts += [
        arrow((500, 236), (500, 196)),
        box(410, 164, 180, 32, "linear layer", "violet"),
        arrow((500, 164), (500, 140)),
    ]
    parts += [
        box(410, 108, 180, 32, "softmax", "green"),
        arrow((500, 108), (500, 82)),
        text(500, 72, "probabilities of the next token"),
    ]
    parts += [text(180, 240, "encoder", "title"), text(500, 40, "decoder", "title")]
    return drawing(680, 640, *parts)


def residual_stream() -> str:
    """Sub-layers read from the stream and add to it."""
    names = (("attention", "warm"), ("feed-forward", "blue"), ("attention", "warm"), ("feed-forward", "blue"))
    parts = [
        box(70, 128, 600, 30, look="stream"),
        text(30, 148, "x_0"),
        arrow((670, 143), (720, 143)),
        text(732, 148, "y"),
    ]
    for at, (name, look) in enumerate(names):
        x = 92 + at * 146
        parts += [
            arrow((x, 143), (x, 78), look=look),
            box(x - 12, 40, 118, 36, name, look),
            arrow((x + 94, 76), (x + 94, 131), look=look),
            sign(x + 94, 143),
        ]
    parts += [
        text(98, 112, "reads", "note", "start"),
        text(180, 112, "adds", "note", "end"),
        text(370, 190, "residual stream: one vector for each token"),
    ]
    return drawing(750, 206, *parts)


def normalisation() -> str:
    """Over which numbers mean and deviation are taken."""
    parts = []
    for left, title, look in ((70, "layer normalisation", "blue"), (440, "batch normalisation", "warm")):
        parts.append(text(left + 100, 24, title, "title"))
        for sheet in (2, 1, 0):

            def shown(row: int, column: int, sheet: int = sheet, look: str = look) -> str:
                chosen = column == 2 if look == "warm" else sheet == 0 and row == 1
                return f"{look} full" if chosen else "opaque"

            parts.append(cells(left + sheet * 26, 100 - sheet * 26, 5, 6, shown, size=24))
        parts += [text(left + 72, 242, "features"), text(left - 8, 164, "tokens", anchor="end")]
        parts += [
            text(left + 232, 150, "sentences", anchor="start"),
            arrow((left + 160, 226), (left + 226, 160), look="faint"),
        ]
    parts += [
        text(170, 270, "one token, all its features", "note"),
        text(540, 270, "one feature, all tokens of the batch", "note"),
    ]
    return drawing(760, 284, *parts)


def feed_forward() -> str:
    """Every token alone through the same two matrices."""
    parts = []
    for at, word in enumerate(("the", "dog", "runs")):
        y = 40.0 + at * 62
        shade = lambda _, column, at=at: 0.25 + 0.6 * abs(math.sin(4 * column + 2.1 * at))  # noqa: E731
        kept = lambda _, column, at=at: "blue" if math.sin(5 * column + 3.3 * at) > 0 else "plain"  # noqa: E731
        parts += [
            text(50, y + 14, word, "token"),
            cells(76, y, 1, 4, "blue", size=18, strength=shade),
            arrow((152, y + 9), (186, y + 9)),
            arrow((248, y + 9), (282, y + 9)),
        ]
        parts += [
            cells(
                286,
                y,
                1,
                16,
                kept,
                size=14,
                strength=lambda _, column, kept=kept, shade=shade: (
                    shade(0, column) if kept(0, column) == "blue" else 0.0
                ),
            )
        ]
        parts += [
            arrow((512, y + 9), (546, y + 9)),
            arrow((608, y + 9), (642, y + 9)),
            cells(646, y, 1, 4, "blue", size=18, strength=shade),
        ]
    parts += [box(188, 28, 60, 166, "W_1", "warm"), box(548, 28, 60, 166, "W_2", "warm")]
    parts += [
        text(112, 218, "d_{model}"),
        text(398, 218, "d_{ff}; negative numbers become 0"),
        text(682, 218, "d_{model}"),
    ]
    return drawing(740, 234, *parts)
