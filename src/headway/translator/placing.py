"""Tags and links back into a translation: each encloses the words that are aligned with its own.

The model gets a sentence as plain words. Its translation has each tag once: the words of an element are the run of the
translation where most are aligned with its words and fewest with others; no two elements overlap unless one is in the
other. What has no words, such as a line break, a comment or an emoji, stands before the word that followed it, or after
the one that it follows without a space.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from statistics import mode
from typing import Self

from headway.text.protected import Atom, Element, split_protected
from headway.translator.glossary import begins_anywhere

MOST_NODES = 100
"""Elements of a sentence: placing them takes time in proportion to them and to the words."""

Alignment = Sequence[tuple[int, int, int, int]]
"""Start and end of a token in the translation, and of the token in the source that it is aligned with."""
NameOf = Callable[[Atom], tuple[str, bool]]
"""The name that the tags of an element have in common, or nothing, and whether this one ends it."""
_UNIT = re.compile(r"Aa*|w[wm]*(?:['’.\-]w[wm]*)*|um*|[^ ]")
"""In the kinds of characters: protected text, a word, a character of a script without spaces, or a punctuation mark."""
_Run = tuple[int, int]
"""The units from one number to before another."""


@dataclass(slots=True)
class _Node:
    """An element of the source, or what has no words."""

    first: int
    last: int
    """The places of its tags among the elements of the sentence."""
    opening: list[Element]
    closing: list[Element]
    start: int
    end: int
    """Its characters in the plain text: none if it has no words; then all of it is in `opening`."""
    spaces: tuple[bool, bool] = (False, False)
    """Whether white space is before and after it, where it is empty."""
    words: tuple[bool, bool] = (False, False)
    """Whether the element around it has words before it, and after it."""
    marks: tuple[int, int] = (0, 0)
    """Numbers of punctuation marks at its beginning and end, or beside it if it is empty."""
    children: list["_Node"] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return self.start == self.end


@dataclass(slots=True)
class _Unit:
    """A word, or a punctuation mark."""

    start: int
    end: int
    is_word: bool
    is_protected: bool = False
    place: int | None = None
    """The character of the source that it is aligned with."""


class TagLayout:
    """The plain text of a sentence, and the elements in it."""

    def __init__(self, plain: str, root: _Node, nodes: Sequence[_Node]) -> None:
        self.plain, self._root = plain, root
        self._units = [*_units(plain)]
        self._spoken = spoken = {place for one in self._units if one.is_word for place in range(one.start, one.end)}
        for parent in (root, *nodes):
            for node in parent.children:
                before, after = (parent.start, node.start), (node.end, parent.end)
                node.words = not spoken.isdisjoint(range(*before)), not spoken.isdisjoint(range(*after))
                inside = self._marks(node.start, node.end)
                node.marks = (self._marks(*before)[1], self._marks(*after)[0]) if node.is_empty else inside
        self.needs_alignment = any(all(one.words) if one.is_empty else any(one.words) for one in nodes)
        """Whether an element begins or ends between words, so that an alignment must say where."""
        self._borders = sorted({border for node in nodes for border in (node.start, node.end)})

    @classmethod
    def of(cls, elements: Sequence[Element], name_of: NameOf) -> Self | None:
        """None where elements overlap, or there are too many."""
        plain, nodes = _plain(elements, name_of)
        if len(nodes) > MOST_NODES:
            return None
        around = [root := _Node(-1, len(elements), [], [], 0, len(plain))]
        for node in sorted(nodes, key=lambda one: (one.first, -one.last)):
            while node.first > around[-1].last:
                around.pop()
            if node.last > around[-1].last:
                return None
            around[-1].children.append(node)
            around.append(node)
        return cls(plain, root, nodes)

    def placed(self, translation: str, alignment: Alignment = (), offset: int = 0) -> list[Element] | None:
        """The translation with all elements; None where some have no place. offset: characters that stand before
        `plain` in the source of the alignment."""
        if not self._root.children:
            return [translation]
        units = self._aligned_units(translation, alignment, offset)
        unaligned = all(one.place is None or one.is_protected for one in units)
        if not any(one.is_word for one in units) or (self.needs_alignment and unaligned):
            return None
        return _Placing(translation, units).inside(self._root, (0, len(units)), (0, len(translation)))

    def _marks(self, start: int, end: int) -> tuple[int, int]:
        """The number of punctuation marks between these characters before the first word, and after the last."""
        words = [one.is_word for one in self._units if one.start < end and start < one.end]
        return [*words, True].index(True), [*words[::-1], True].index(True)

    def _aligned_units(self, translation: str, alignment: Alignment, offset: int) -> list[_Unit]:
        """The units of the translation, each with its place. Protected text, and a word in which an element begins or
        ends, is its own counterpart in turn, and is cut where that is."""
        places: dict[int, int] = {}  # of each character of the translation
        for start, end, first, last in alignment:
            if spoken := [place for place in range(first - offset, last - offset) if place in self._spoken]:
                places.update(dict.fromkeys(range(start, end), spoken[len(spoken) // 2]))
        cuts = {one.start: [place for place in self._borders if one.start < place < one.end] for one in self._units}
        units = [(self.plain[one.start : one.end], one) for one in self._units]
        kept = {text for text, one in units if one.is_protected or cuts[one.start]}
        counterparts = {text: [one for other, one in units if other == text] for text in kept}
        aligned: list[_Unit] = []
        for unit in _units(translation):
            if left := counterparts.get(translation[unit.start : unit.end]):
                same = left.pop(0)
                shift, parts = unit.start - same.start, pairwise([same.start, *cuts[same.start], same.end])
                aligned += [_Unit(start + shift, end + shift, True, same.is_protected, start) for start, end in parts]
                continue
            if found := [places[one] for one in range(unit.start, unit.end) if unit.is_word and one in places]:
                unit.place = mode(found)
            aligned.append(unit)
        return aligned


@dataclass(frozen=True)
class _Placing:
    """Finds the places of all elements in one translation."""

    text: str
    units: list[_Unit]

    def inside(self, parent: _Node, run: _Run, span: _Run) -> list[Element] | None:
        """The text of a span, the units of `run`, with the parent's elements; None where some have no place."""
        nodes = [node for node in parent.children if not node.is_empty]
        runs = self._runs(nodes, run)
        if runs is None:
            return None
        inserted: list[tuple[int, int, int, list[Element]]] = []  # start, order of what starts there, end, what
        for node, (first, last) in zip(nodes, runs, strict=True):
            start, end = self.units[first].start, self.units[last - 1].end
            made = self.inside(node, (first, last), (start, end))
            if made is None:
                return None
            inserted.append((start, 1, end, [*node.opening, *made, *node.closing]))
        inserted += [self._beside_a_word(node, parent, run, runs) for node in parent.children if node.is_empty]
        made = []
        cursor, end = span
        for start, _, until, what in sorted(inserted, key=lambda one: one[:2]):
            made += [self.text[cursor:start], *what]
            cursor = until
        return [*made, self.text[cursor:end]]

    def _runs(self, nodes: Sequence[_Node], run: _Run) -> list[_Run] | None:
        """The run of each node within that of its parent."""
        owners = {number: node.first for node in nodes for _, number in self._aligned(run, node.start, node.end)}
        words = [number for number in range(*run) if self.units[number].is_word]
        runs: dict[int, _Run] = {}
        for node in nodes:
            best = self._best_run(node.first, owners, run) if any(node.words) else (words[0], words[-1] + 1)
            if best is not None:
                runs[node.first] = best
        for node in nodes:
            if node.first not in runs:
                taken = owners.keys() | {number for each in runs.values() for number in range(*each)}
                free = [number for number in words if number not in taken]
                if not free:
                    return None
                nearest = min(free, key=partial(self._distance, node.start))
                runs[node.first] = nearest, nearest + 1
        for node in nodes:  # with as many punctuation marks beside the words as the source has there in the element
            first, last = runs.pop(node.first)
            left = max([run[0], *(one for _, one in runs.values() if one <= first)])
            right = min([run[1], *(one for one, _ in runs.values() if one >= last)])
            first = self._past_marks(first, node.marks[0], -1, (left, right))
            runs[node.first] = first, self._past_marks(last, node.marks[1], 1, (left, right))
        return [*runs.values()]  # each was put at the end in turn

    def _aligned(self, run: _Run, start: int, end: int) -> list[tuple[int, int]]:
        """The units of a run that are aligned with these characters, each after its place."""
        places = [(self.units[number].place, number) for number in range(*run)]
        return [(place, number) for place, number in places if place is not None and start <= place < end]

    def _distance(self, start: int, number: int) -> tuple[int, bool]:
        """Distance of a unit from words without alignment. Their counterpart probably has none either."""
        place = next((one.place for one in self.units[number::-1] if one.place is not None), 0)
        return abs(place - start), self.units[number].place is not None

    def _best_run(self, own: int, owners: dict[int, int], run: _Run) -> _Run | None:
        """From one of its own units to another, without any of its siblings: with the most of its own beyond those that
        are aligned with other words."""
        best, most, start, value = None, 0, run[0], 0
        for number in range(*run):
            if value <= 0:
                start, value = number, 0
            if number in owners:
                value = value + 1 if owners[number] == own else 0
            elif self.units[number].place is not None:
                value -= 1
            if value > most:
                best, most = (start, number + 1), value
        return best

    def _past_marks(self, place: int, marks: int, step: int, within: _Run) -> int:
        """The boundary between units that is past as many punctuation marks, at most."""
        for following in range(place, within[1])[:marks] if step > 0 else range(within[0], place)[::-1][:marks]:
            if self.units[following].is_word:
                break
            place += step
        return place

    def _beside_a_word(
        self, node: _Node, parent: _Node, run: _Run, taken: Sequence[_Run]
    ) -> tuple[int, int, int, list[Element]]:
        """The place of an element without words, in the form that `inside` needs."""
        left = max(self._aligned(run, parent.start, node.start), default=None)
        right = min(self._aligned(run, node.start, parent.end), default=None)
        is_after = node.words[0]
        if not node.words[0]:
            place = self._past_marks(run[0], node.marks[0], 1, run)
        elif not node.words[1]:
            place = self._past_marks(run[1], node.marks[1], -1, run)
        elif right is None or (left is not None and (node.marks[1] or node.spaces == (False, True))):
            place = self._past_marks(left[1] + 1 if left else run[1], node.marks[0], 1, run)
        else:
            place, is_after = right[1], False
        for first, last in taken:
            if first < place < last:  # not within another element
                is_after = last - place < place - first
                place = last if is_after else first
        place = self.units[place - 1].end if is_after else self.units[place].start
        if is_after and node.spaces == (True, False) and self.text[place : place + 1].isspace():
            place += 1
        before = node.spaces[0] and place > 0 and not self.text[place - 1].isspace()
        after = node.spaces[1] and not is_after
        return place, -is_after, place, [" " * before, *node.opening, " " * after]


def tag_pairs(elements: Sequence[Element], name_of: NameOf) -> list[tuple[int, int]]:
    """The places of the tags, among words and others, that open and close the same element."""
    pairs: list[tuple[int, int]] = []
    waiting: list[tuple[str, int]] = []
    for place, one in enumerate(elements):
        name, is_end = name_of(one) if isinstance(one, Atom) else ("", False)
        if name and not is_end:
            waiting.append((name, place))
        elif name and waiting and waiting[-1][0] == name:
            pairs.append((waiting.pop()[1], place))
    return pairs


def _plain(elements: Sequence[Element], name_of: NameOf) -> tuple[str, list[_Node]]:
    """The text without its elements, and these. A tag without its partner encloses what is on its other side, and ends
    or begins outside of the sentence."""
    pairs = dict(tag_pairs(elements, name_of))
    has_words = (isinstance(one, str) and any(unit.is_word for unit in _units(one)) for one in elements)
    spoken = [0, *accumulate(has_words)]  # elements with words before each place
    following = " "  # for each place, the character of the words or spaces that come next
    for one in reversed(elements):
        following = (one[0] if isinstance(one, str) and one else following[0]) + following
    nodes: list[_Node] = []
    ending: dict[int, _Node] = {}
    plain, read = "", 0
    for place, one in enumerate(elements):
        end = len(plain.rstrip())
        if place < read:
            continue
        if isinstance(one, str):
            plain += one if plain else one.lstrip()
        elif place in ending:
            ending[place].end = end
        else:
            name, is_end = name_of(one)
            first, last = (-1, place) if is_end else (place, pairs.get(place, len(elements)))
            if name and spoken[max(0, first)] < spoken[last]:
                tags = elements[max(0, first) : first + 1], elements[last : last + 1]
                ending[last] = _Node(first, last, [*tags[0]], [*tags[1]], 0 if is_end else end, end)
                nodes.append(ending[last])
                continue
            read = pairs.get(place, place) + 1
            if not nodes or nodes[-1].last != place - 1 or not nodes[-1].is_empty:
                nodes.append(_Node(place, place, [], [], end, end, (not plain or plain[-1].isspace(), False)))
            node = nodes[-1]
            node.last, node.spaces = read - 1, (node.spaces[0], following[read].isspace())
            node.opening += elements[place:read]
            if node.spaces[0] and _is_attached(following[read]):
                plain = plain.rstrip()
            elif not any(node.spaces) and any(getattr(part, "stand_in", part) for part in elements[place:read]):
                plain = f"{plain.rstrip()} "
    for node in nodes:
        if node.last == len(elements):
            node.end = len(plain.rstrip())
    return plain.rstrip(), nodes


def _is_attached(char: str) -> bool:
    """Whether it follows a word without a space: white space itself, or punctuation that begins nothing."""
    return char.isspace() or unicodedata.category(char) in ("Pe", "Pf", "Po")


def _units(text: str) -> Iterator[_Unit]:
    """Its words and punctuation marks. Protected text is one word, whatever it consists of."""
    elements = split_protected(text)
    kinds = ["A".ljust(len(one.raw), "a") if isinstance(one, Atom) else "".join(map(_kind, one)) for one in elements]
    for match in _UNIT.finditer("".join(kinds)):
        yield _Unit(*match.span(), match[0][0] in "Awu", match[0][0] == "A")


@lru_cache(2**12)
def _kind(char: str) -> str:
    """A letter or a digit, one of a script without spaces, a mark on them, white space, a joint of words, another."""
    category = unicodedata.category(char)[0]
    if category in "LN":
        return "u" if begins_anywhere(char) else "w"
    return " " if char.isspace() else "m" if category == "M" else char if char in "'’.-" else "p"
