"""The quality of word alignments against known ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headway.errors import UserError

Link = tuple[int, int]
"""Number of the source word, number of the target word, from 0."""


def alignment_error_rate(
    found: Sequence[Iterable[Link]], sure: Sequence[Iterable[Link]], possible: Sequence[Iterable[Link]] | None = None
) -> float:
    """1 - (|A and S| + |A and P|) / (|A| + |S|) over all pairs together (Och and Ney 2003, "A Systematic Comparison of
    Various Statistical Alignment Models"), from 0 to 1; 0 where nothing is linked and nothing should be.

    found, sure, possible: the links of each pair. Sure links are possible, too. Raises ValueError for sequences of
    different length.
    """
    right = total = 0
    for links, wanted, allowed in zip(found, sure, sure if possible is None else possible, strict=True):
        a, s = set(links), set(wanted)
        right += len(a & s) + len(a & (s | set(allowed)))
        total += len(a) + len(s)
    return 1 - right / total if total else 0.0


def parse_pharaoh(line: str) -> list[Link]:
    """`0-0 1-2` -> [(0, 0), (1, 2)]. Raises UserError."""
    links = []
    for link in line.split():
        source, _, target = link.partition("-")
        if not (source.isdecimal() and target.isdecimal()):
            raise UserError(f"{link!r} is no link of an alignment; it must look like 0-2")
        links.append((int(source), int(target)))
    return links
