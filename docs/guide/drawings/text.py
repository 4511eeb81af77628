"""Drawings of the chapters from vector to text: teacher forcing, label smoothing, warm-up, a beam."""

from __future__ import annotations

from drawings.svg import arrow, box, drawing, line, text


def teacher_forcing() -> str:
    """In training the correct text is read, in translating the model's own."""
    reads, labels = ("<sos>", "a", "dog", "runs"), ("a", "dog", "runs", "<eos>")
    parts = [text(190, 24, "training: all at once", "title"), text(570, 24, "translating: one by one", "title")]
    for left, own in ((40, False), (420, True)):
        for at in range(4):
            x = left + 38 + at * 75
            shown = not own or at < 3
            parts += [
                text(x, 196, reads[at] if shown else "", "token"),
                arrow((x, 180), (x, 142), look="" if shown else "faint"),
            ]
            parts += [
                arrow((x, 98), (x, 70), look="" if shown else "faint"),
                text(x, 60, labels[at] if shown else "?", "token"),
            ]
            if own and at < 3:
                parts.append(arrow((x + 18, 56), (x + 37, 56), (x + 37, 191), (x + 52, 191), look="warm"))
        parts.append(box(left, 100, 300, 40, "decoder", "blue"))
    parts += [
        text(190, 226, "reads the correct translation", "note"),
        text(570, 226, "reads what it has written itself", "note"),
    ]
    return drawing(760, 240, *parts)


def label_smoothing() -> str:
    """The distribution that the loss asks for."""
    parts, words = [], ("starts", "begins", "opens", "dog", "the")
    for left, title, shares in (
        (60, "one correct token", (1.0, 0, 0, 0, 0)),
        (430, "smoothed, ε = 0.1", (0.92, 0.02, 0.02, 0.02, 0.02)),
    ):
        parts += [text(left + 130, 24, title, "title"), line((left, 176), (left + 270, 176))]
        for at, share in enumerate(shares):
            height = 120 * share
            x = left + 8 + at * 52
            look = "blue" if at == 0 else "warm"
            parts.append(f'<rect x="{x}" y="{176 - height:g}" width="40" height="{height:g}" class="bar {look}"/>')
            parts += [text(x + 20, 170 - height, f"{share:g}", "note"), text(x + 20, 196, words[at], "token")]
    return drawing(740, 210, *parts)


def warm_up() -> str:
    """The rate rises, then falls with the square root of the step."""
    curve = [
        (60 + step / 25, 190 - 150 * min(step**-0.5, step * 4000**-1.5) * 4000**0.5) for step in range(10, 16_001, 40)
    ]
    parts = [
        line((60, 30), (60, 190), (710, 190)),
        line(*curve, look="blue"),
        line((220, 40), (220, 190), look="dashed"),
    ]
    parts += [
        text(220, 208, "4,000"),
        text(700, 208, "step", anchor="end"),
        text(70, 26, "learning rate", anchor="start"),
    ]
    parts += [text(112, 160, "rises evenly", "note", "start"), text(440, 76, "falls with 1/√step", "note", "start")]
    return drawing(740, 222, *parts)


def beam() -> str:
    """The tree of the chapter's table, searched with a beam of two."""
    nodes = {
        "": (60, 130, "<sos>", "", "kept"),
        "a": (220, 80, "a", "0.60", "kept"),
        "the": (220, 190, "the", "0.40", "kept"),
        "a cat": (400, 40, "cat", "0.24", "kept"),
        "a dog": (400, 82, "dog", "0.21", "dropped"),
        "a.": (400, 124, "<eos>", "0.15", "dropped"),
        "the cat": (400, 176, "cat", "0.36", "won"),
        "the dog": (400, 218, "dog", "0.02", "dropped"),
        "the.": (400, 260, "<eos>", "0.02", "dropped"),
        "a cat.": (580, 40, "<eos>", "0.24", "kept"),
        "the cat.": (580, 176, "<eos>", "0.36", "won"),
    }
    parents = {
        "a": "",
        "the": "",
        "a cat": "a",
        "a dog": "a",
        "a.": "a",
        "the cat": "the",
        "the dog": "the",
        "the.": "the",
        "a cat.": "a cat",
        "the cat.": "the cat",
    }
    won = {"the", "the cat", "the cat."}
    parts = [
        line(
            (nodes[p][0] + 92, nodes[p][1]),
            (nodes[c][0], nodes[c][1]),
            look="won" if c in won else f"{nodes[c][4]} thin",
        )
        for c, p in parents.items()
    ]
    for name, (x, y, word, share, fate) in nodes.items():
        parts += [
            box(x, y - 16, 92, 32, look="won" if name in won else fate),
            text(x + (46 if not share else 28), y + 5, word, "token"),
        ]
        parts.append(text(x + 86, y + 5, share, "note", "end") if share else "")
    parts += [
        text(266, 16, "step 1"),
        text(446, 16, "step 2"),
        text(626, 16, "step 3"),
        text(690, 181, "best", anchor="start"),
        text(560, 240, "dashed: dropped", "note", "start"),
    ]
    return drawing(760, 284, *parts)
