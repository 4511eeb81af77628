"""Drawings of the chapters on attention: queries, keys and values, the steps of equation 1, heads, masks, the three
kinds."""

from __future__ import annotations

import math

from drawings.svg import HUES, arrow, box, cells, column_of_words, drawing, line, sign, text


def queries_keys_values() -> str:
    """Two tokens: the query of one, key and value of the other."""

    def strip(x: float, y: float, hue: str, count: int = 4) -> str:
        return cells(x, y, 1, count, hue, size=15, strength=lambda _, at: 0.3 + 0.6 * abs(math.sin(5 * at + x + y)))

    parts = [
        text(40, 66, "its", "token"),
        text(40, 186, "dog", "token"),
        strip(70, 54, "plain", 6),
        strip(70, 174, "plain", 6),
    ]
    for y, from_y, letter, hue in ((46, 62, "Q", "warm"), (132, 182, "K", "blue"), (212, 182, "V", "green")):
        middle = y + 17
        parts += [
            arrow((162, from_y), (206, middle)),
            box(208, y, 60, 34, f"W^{letter}", hue),
            arrow((268, middle), (300, middle)),
            strip(304, middle - 8, hue),
        ]
    parts += [text(334, 44, "query"), text(334, 130, "key"), text(334, 256, "value")]
    parts += [
        sign(440, 106, "·"),
        arrow((366, 63), (431, 99), look="warm"),
        arrow((366, 149), (431, 113), look="blue"),
        arrow((452, 106), (506, 106)),
        text(478, 94, "score"),
    ]
    parts += [
        box(508, 88, 84, 36, "softmax"),
        arrow((592, 106), (640, 106), (640, 216)),
        text(650, 160, "weight", anchor="start"),
        sign(640, 228, "×"),
    ]
    parts += [arrow((366, 229), (628, 229), look="green"), arrow((652, 228), (700, 228)), text(704, 233, "Σ")]
    parts += [text(640, 270, "summed over all tokens", "note")]
    return drawing(740, 284, *parts)


def attention() -> str:
    """Figure 2, left: the steps of equation 1, with their shapes."""
    parts, names = [], ("compare", "scale", "mask", "softmax", "average")
    signs = ("Q K^T", "÷ √d_k", "−∞", "softmax", "A V")
    for at, (name, words) in enumerate(zip(names, signs, strict=True)):
        x = 90 + at * 130
        parts += [box(x, 80, 92, 40, words, ("warm", "", "", "violet", "green")[at]), text(x + 46, 146, name)]
        parts.append(arrow((x + 92, 100), (x + 130, 100)) if at < 4 else arrow((x + 92, 100), (x + 124, 100)))
    parts += [text(20, 86, "Q"), text(20, 126, "K"), arrow((32, 82), (88, 94)), arrow((32, 121), (88, 108))]
    parts += [text(20, 36, "V"), arrow((32, 31), (656, 31), (656, 78), look="green"), text(744, 105, "y")]
    sizes = ("query × key", "query × key", "query × key", "rows sum to 1", "query × d_v")
    parts += [text(136 + at * 130, 168, words, "note") for at, words in enumerate(sizes)]
    return drawing(760, 180, *parts)


def heads() -> str:
    """Split, each head by itself, joined."""
    hue = lambda _, column: HUES[column // 2]  # noqa: E731
    shade = lambda row, column: 0.35 + 0.4 * abs(math.sin(3 * row + 7 * column))  # noqa: E731
    parts = [
        cells(20, 126, 4, 8, hue, strength=shade),
        text(76, 112, "Q, K, V"),
        text(76, 202, "length × d_{model}", "note"),
    ]
    for head in range(4):
        y = 14.0 + head * 70
        own = lambda row, column, head=head: HUES[head]  # noqa: E731
        parts += [
            arrow((136, 154), (206, y + 28), look=HUES[head]),
            cells(210, y, 4, 2, own, strength=shade),
            arrow((242, y + 28), (290, y + 28)),
        ]
        parts += [
            cells(294, y, 4, 4, own, strength=lambda row, column, head=head: _attention(head, row, column)),
            arrow((354, y + 28), (402, y + 28)),
        ]
        parts += [cells(406, y, 4, 2, own, strength=shade), arrow((438, y + 28), (506, 154), look=HUES[head])]
    parts += [text(224, 302, "split"), text(322, 302, "weights"), text(422, 302, "averages")]
    parts += [
        cells(510, 126, 4, 8, hue, strength=shade),
        text(566, 112, "joined"),
        arrow((624, 154), (650, 154)),
        box(652, 134, 44, 40, "W^O", "warm"),
    ]
    parts += [arrow((698, 154), (716, 154)), text(728, 159, "y"), text(566, 202, "length × d_{model}", "note")]
    return drawing(740, 312, *parts)


def _attention(head: int, row: int, column: int) -> float:
    """Weights of four heads: the token itself, the one before it, the first, and all."""
    told = (row == column, column == max(0, row - 1), column == 0, None)[head]
    return 0.4 if told is None else 0.95 if told else 0.08


def masks() -> str:
    """Both masks of the decoder, and what they allow together."""
    tokens = ("<sos>", "I", "am", "here", "<pad>")
    allowed = (
        lambda row, column: column < 4,
        lambda row, column: column <= row,
        lambda row, column: column < 4 and column <= row,
    )
    parts = []
    for at, (x, may) in enumerate(zip((80, 340, 600), allowed, strict=True)):
        parts.append(
            cells(x, 60, 5, 5, lambda row, column, may=may: "blue full" if may(row, column) else "hidden", size=28)
        )
        parts += [text(x + 70, 24, ("padding", "look-ahead", "both")[at], "title")]
        parts += [column_of_words(x - 8, 79, tokens, 28) if at == 0 else ""]
        parts += [
            f'<g transform="translate({x + 14 + column * 28} 210) rotate(-45)">{text(0, 8, word, "token", "end")}</g>'
            for column, word in enumerate(tokens)
        ]
    parts += [
        text(280, 136, "and"),
        text(540, 136, "="),
        text(24, 46, "query", "note", "start"),
        text(150, 264, "key", "note"),
    ]
    return drawing(760, 276, *parts)


def three_attentions() -> str:
    """Who may look at whom."""
    source, target = ("<sos>", "the", "dog"), ("der", "Hund", "<eos>")
    parts = [text(130, 24, "encoder", "title"), text(520, 24, "decoder", "title")]
    spots = {"source": [(50 + at * 80, 190) for at in range(3)], "memory": [(50 + at * 80, 76) for at in range(3)]}
    spots |= {"target": [(440 + at * 80, 190) for at in range(3)], "state": [(440 + at * 80, 76) for at in range(3)]}
    parts += [
        arrow((x, y - 16), (to, end + 18), look="blue") for x, y in spots["source"] for to, end in spots["memory"]
    ]
    parts += [
        arrow((x, y - 16), (to, end + 18), look="warm")
        for at, (x, y) in enumerate(spots["target"])
        for to, end in spots["state"][at:]
    ]
    parts += [line((240, 64), (300, 52), (360, 52), look="green"), arrow((360, 52), (424, 68), look="green")]
    for name, words, look in (("source", target, "plain"), ("target", source, "plain")):
        parts += [
            box(x - 34, y - 16, 68, 30, look=look) + text(x, y + 4, word, "token")
            for (x, y), word in zip(spots[name], words, strict=True)
        ]
    parts += [
        box(x - 34, y - 14, 68, 30, look="green" if name == "memory" else "warm")
        for name in ("memory", "state")
        for x, y in spots[name]
    ]
    parts += [text(130, 56, "memory", "note"), text(330, 40, "attention to the memory", "note")]
    parts += [text(130, 232, "self-attention: all see all"), text(520, 232, "masked self-attention: nobody sees ahead")]
    return drawing(740, 248, *parts)
