"""The rules of normalisation in a sentencepiece model: what is replaced, and by what.

They are stored as the size of a trie, the trie, and the texts that its leaves point to, each ended by a zero. The trie
is a double array as Darts-clone makes it (https://github.com/s-yata/darts-clone): each unit of 32 bits has the label by
which it is reached and the offset of its children. Exclusive or of place, offset and label is the place of a child.
Keys may share their ends.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from headway.errors import UserError

MOST_BEGINNINGS = 2**21
"""Of all keys together; NFKC has 263,000. A damaged trie may have no end."""
LONGEST_KEY = 256
"""Bytes that a rule may replace; NFKC needs 12."""

_LEAF = 1 << 31
"""Set in a unit that points to a text; the other bits are the place of the text."""
_HAS_LEAF = 1 << 8
_WIDE_OFFSET = 1 << 9


def normalization_rules(charsmap: bytes) -> dict[str, str]:
    """What `precompiled_charsmap` of a model that sentencepiece has loaded replaces, and by what. Raises UserError."""
    if not charsmap:
        return {}
    size = int.from_bytes(charsmap[:4], "little")
    units: list[int] = np.frombuffer(charsmap, "<u4", size // 4, 4).tolist()
    texts = charsmap[4 + size :]
    children: dict[int, list[tuple[int, int]]] = defaultdict(list)
    """For exclusive or of a unit's place and offset, the labels and places of its children."""
    for place, unit in enumerate(units):
        if not unit & _LEAF and (label := unit & 0xFF):
            children[place ^ label].append((label, place))
    rules = {}
    beginnings, count = [(b"", 0)], 0  # of keys, and the places where they end
    while beginnings:
        key, place = beginnings.pop()
        count += 1
        if len(key) > LONGEST_KEY or count > MOST_BEGINNINGS:
            raise UserError("its rules of normalisation have no end")
        unit = units[place]
        base = place ^ (unit >> 10 << (8 if unit & _WIDE_OFFSET else 0))
        if unit & _HAS_LEAF:
            start = units[base] & ~_LEAF
            rules[key] = texts[start : texts.index(0, start)]
        beginnings += [(key + bytes([label]), child) for label, child in children.get(base, ())]
    try:
        return {key.decode(): text.decode() for key, text in rules.items()}
    except UnicodeDecodeError:
        raise UserError("a rule of normalisation is not UTF-8") from None
