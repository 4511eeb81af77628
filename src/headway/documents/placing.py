"""Puts tags back into a translation: an element encloses the words that are aligned with its own.

The model gets a sentence as plain words. Its translation has each tag once: the words of an element are the run of the
translation where most are aligned with its words and fewest with others; no two elements overlap unless one is in the
other. An atom without words, such as a line break, a comment or an emoji, stands before the word that followed it, or
after the one that it follows without a space. (Bergamot's translator repeats an element for each of its runs instead.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import regex

from headway.documents.inline import Node, is_spoken, tree_of
from headway.text.protected import Atom, Element, split_protected

Alignment = Sequence[tuple[int, int, int, int]]
"""Start and end of a token in the translation, and of the token in the source that it is aligned with."""
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_PART = rf"(?: (?! {_UNSPACED} ) [\p{{L}}\p{{N}}] \p{{M}}*+ )++"
_UNIT = regex.compile(rf"(?P<word> {_UNSPACED} \p{{M}}*+ | {_PART} (?: ['’.\-] {_PART} )*+ ) | \S", regex.VERBOSE)
"""A word, or a character of a script without spaces; or a punctuation mark."""


@dataclass(slots=True)
class _Unit:
    """A word of a translation, or a punctuation mark."""

    start: int
    end: int
    is_word: bool
    place: int | None = None
    """The character of the source that it is aligned with."""
    is_protected: bool = False


_Run = tuple[int, int]
"""A range of units, without its end."""


class Layout:
    """The plain text of a sentence, and the elements in it."""

    def __init__(self, plain: str, root: Node) -> None:
        self.plain, self._root = plain, root
        units = [one for one in _units(plain) if one.is_word]
        self._words = [(one.start, one.end) for one in units]
        self._protected = [one for one in units if one.is_protected]

    @classmethod
    def of(cls, elements: Sequence[Element]) -> Layout | None:
        """None if its elements overlap, or there are too many."""
        tree = tree_of(elements)
        return tree and cls(*tree)

    @property
    def needs_alignment(self) -> bool:
        """Whether an element begins or ends between words, so that an alignment must say where."""
        return self._needs_alignment(self._root)

    def placed(self, translation: str, alignment: Alignment) -> list[Element] | None:
        """The translation with all elements; None if some can't be placed. The source of the alignment is `plain`."""
        if not self._root.children:
            return [translation]
        units = self._aligned_units(translation, alignment)
        if not any(one.is_word for one in units):
            return None
        if self.needs_alignment and all(one.place is None or one.is_protected for one in units):
            return None
        placing = _Placing(self, translation, units)
        made = placing.inside(self._root, (0, len(units)))
        return made and [translation[: units[0].start], *made, translation[units[-1].end :]]

    def covers_all(self, node: Node, parent: Node) -> bool:
        """Whether the parent has no words but those of the node."""
        return not any(map(is_spoken, (self.plain[parent.start : node.start], self.plain[node.end : parent.end])))

    def word_after(self, place: int) -> int:
        """The number of the first word that doesn't end before this character."""
        return bisect_right(self._words, place, key=lambda word: word[1])

    def words_of(self, node: Node) -> list[tuple[int, int]]:
        """Start and end of each word that overlaps the node."""
        return [(start, end) for start, end in self._words[self.word_after(node.start) :] if start < node.end]

    def _needs_alignment(self, parent: Node) -> bool:
        for node in parent.children:
            before, after = self.plain[parent.start : node.start], self.plain[node.end : parent.end]
            if node.is_empty:
                if is_spoken(before) and is_spoken(after):
                    return True
            elif not self.covers_all(node, parent) or self._needs_alignment(node):
                return True
        return False

    def _aligned_units(self, translation: str, alignment: Alignment) -> list[_Unit]:
        """The units of the translation, each with its place. One that is the same as its word of the source is divided
        where that is."""
        borders = sorted({border for node in _inner(self._root) for border in (node.start, node.end)})
        copied = [(self.plain[one.start : one.end], one.start) for one in self._protected]
        places: dict[int, int] = {}  # of each character of the translation
        for start, end, *source in alignment:
            if (place := self._place_at(*source)) is not None:
                places.update(dict.fromkeys(range(start, end), place))
        units: list[_Unit] = []
        for unit in _units(translation):
            text = translation[unit.start : unit.end]
            found = [places[one] for one in range(unit.start, unit.end) if one in places] if unit.is_word else []
            if unit.is_protected and (same := next((one for one in copied if one[0] == text), None)):
                copied.remove(same)
                found = [same[1]]
            if not found:
                units.append(unit)
                continue
            [(word, _)] = Counter(map(self.word_after, found)).most_common(1)
            start, end = self._words[word]
            inside = [border for border in borders if start < border < end]
            if inside and self.plain[start:end] == text:
                for left, right in zip([start, *inside], [*inside, end], strict=True):
                    units.append(_Unit(unit.start + left - start, unit.start + right - start, True, left))
            else:
                units.append(replace(unit, place=next(one for one in found if self.word_after(one) == word)))
        return units

    def _place_at(self, start: int, end: int) -> int | None:
        """The middle one of these characters that are of words."""
        places = [place for place in range(max(0, start), end) if self.plain[place : place + 1].isalnum()]
        return places[len(places) // 2] if places else None


@dataclass(frozen=True)
class _Placing:
    """Finds the places of all elements in one translation."""

    layout: Layout
    text: str
    units: list[_Unit]

    def inside(self, parent: Node, run: _Run) -> list[Element] | None:
        """The text of these units with the elements in the parent; None if some can't be placed."""
        spoken = [node for node in parent.children if not node.is_empty]
        runs = self._runs(parent, spoken, run)
        if runs is None:
            return None
        inserted: list[tuple[int, int, int, list[Element]]] = []  # start, order of what starts there, end, what
        for node, (first, last) in zip(spoken, runs, strict=True):
            made = self.inside(node, (first, last))
            if made is None:
                return None
            start, end = self.units[first].start, self.units[last - 1].end
            inserted.append((start, 1, end, [*node.opening, *made, *node.closing]))
        for node in parent.children:
            if node.is_empty:
                inserted.append(self._beside_a_word(node, parent, run, runs))
        made = []
        cursor, end = self.units[run[0]].start, self.units[run[1] - 1].end
        for start, _, until, what in sorted(inserted, key=lambda one: one[:2]):
            made += [self.text[cursor:start], *what]
            cursor = until
        return [*made, self.text[cursor:end]]

    def _runs(self, parent: Node, nodes: Sequence[Node], run: _Run) -> list[_Run] | None:
        """The run of each node within that of its parent."""
        owners = {
            number: node for node in nodes for number in range(*run) if self._is_between(number, node.start, node.end)
        }
        found: dict[int, _Run] = {}
        words = [number for number in range(*run) if self.units[number].is_word]
        for node in nodes:
            own = [number for number, owner in owners.items() if owner is node]
            if words and self.layout.covers_all(node, parent):
                found[node.first] = words[0], words[-1] + 1
            elif own:
                found[node.first] = self._best_run(own, owners, node)
        for node in nodes:
            if node.first not in found:
                taken = {number for each in found.values() for number in range(*each)}
                free = [number for number in words if number not in taken and number not in owners]
                if not free:
                    return None
                nearest = min(free, key=lambda number: self._distance(number, node))
                found[node.first] = nearest, nearest + 1
        return self._with_punctuation(nodes, [found[node.first] for node in nodes], run)

    def _best_run(self, own: Sequence[int], owners: dict[int, Node], node: Node) -> _Run:
        """The range between two of its own units that contains none of its siblings' and the largest surplus of its own
        over units that are aligned with other words; the longest of several."""
        best, best_value = (own[0], own[0] + 1), (1, 1)
        start, value = own[0], 0
        for number in range(own[0], own[-1] + 1):
            owner = owners.get(number)
            if owner is not None and owner is not node:
                value = -1
            elif owner is node:
                if value < 0:
                    start, value = number, 0
                value += 1
                if (value, number - start) > best_value:
                    best, best_value = (start, number + 1), (value, number - start)
            elif self.units[number].place is not None and value >= 0:
                value -= 1
        return best

    def _distance(self, number: int, node: Node) -> tuple[int, bool]:
        """Distance of a unit from words without alignment. Their counterpart probably has none either."""
        sides = [self.units[number::-1], self.units[number:]]
        places = [next((one.place for one in side if one.place is not None), None) for side in sides]
        distances = [max(node.start - place, place - node.end, 0) for place in places if place is not None]
        return min(distances, default=0), self.units[number].place is not None

    def _with_punctuation(self, nodes: Sequence[Node], runs: Sequence[_Run], within: _Run) -> list[_Run]:
        """With as many punctuation marks beside the words as the source has there in the element."""
        taken = {number for first, last in runs for number in (first, last - 1)}
        wider = []
        for node, run in zip(nodes, runs, strict=True):
            (first, last), (before, after) = run, _punctuation(self.layout.plain[node.start : node.end])
            while before and first > within[0] and self._is_mark(first - 1, first - 1) and first - 1 not in taken:
                first, before = first - 1, before - 1
            while after and last < within[1] and self._is_mark(last, last - 1) and last not in taken:
                last, after = last + 1, after - 1
            taken.update(range(first, last))
            wider.append((first, last))
        return wider

    def _is_mark(self, number: int, left: int) -> bool:
        """Whether it is a punctuation mark, without a space between the unit on the left and the one after that."""
        return not self.units[number].is_word and self.units[left].end == self.units[left + 1].start

    def _beside_a_word(
        self, node: Node, parent: Node, run: _Run, taken: Sequence[_Run]
    ) -> tuple[int, int, int, list[Element]]:
        """The place of a node without words, as `inside` needs it."""
        number, is_after = self._neighbour(node, parent, run)
        for first, last in taken:  # not within another element
            if first <= number < last and number != (last - 1 if is_after else first):
                number, is_after = (first, False) if number - first < last - number else (last - 1, True)
        unit, (before, after) = self.units[number], node.spaces
        if is_after:
            return unit.end, -1, unit.end, [" " if before else "", *node.opening]
        return unit.start, 0, unit.start, [*node.opening, " " if after else ""]

    def _neighbour(self, node: Node, parent: Node, run: _Run) -> tuple[int, bool]:
        """The unit that it stands beside, and whether after it."""
        words = self.layout.words_of(parent)
        following = [word for word in words if word[1] > node.start]
        preceding = [word for word in reversed(words) if word[1] <= node.start]
        before = _marks(self.layout.plain[preceding[0][1] if preceding else parent.start : node.start])
        after = _marks(self.layout.plain[node.start : following[0][0] if following else parent.end])
        if not preceding:
            return self._beyond_marks(run[0], before, 1, run), False
        if not following:
            return self._beyond_marks(run[1] - 1, after, -1, run), True
        sides = [(following, False), (preceding, True)]
        if after or node.spaces == (False, True):
            sides.reverse()
        for some, is_after in sides:
            for start, end in some:
                least = start if is_after else max(start, node.start)
                found = [number for number in range(*run) if self._is_between(number, least, end)]
                if found:
                    return (self._last_mark(found[-1], before, run), True) if is_after else (found[0], False)
        return run[1] - 1, True

    def _beyond_marks(self, number: int, marks: int, step: int, run: _Run) -> int:
        """The unit beyond so many punctuation marks, at most, that begin with this one."""
        while marks and not self.units[number].is_word and run[0] <= number + step < run[1]:
            number, marks = number + step, marks - 1
        return number

    def _last_mark(self, number: int, marks: int, run: _Run) -> int:
        """The last of so many punctuation marks, at most, that follow this unit; itself without any."""
        while marks and number + 1 < run[1] and not self.units[number + 1].is_word:
            number, marks = number + 1, marks - 1
        return number

    def _is_between(self, number: int, start: int, end: int) -> bool:
        """Whether the unit is aligned with one of these characters."""
        place = self.units[number].place
        return place is not None and start <= place < end


def _units(text: str) -> Iterator[_Unit]:
    """Its words and punctuation marks. Protected text is one word, whatever is in it."""
    place = 0
    for one in split_protected(text):
        if isinstance(one, Atom):
            yield _Unit(place, place + len(one.raw), True, is_protected=True)
        else:
            for match in _UNIT.finditer(one):
                yield _Unit(place + match.start(), place + match.end(), match["word"] is not None)
        place += len(one.raw if isinstance(one, Atom) else one)


def _inner(node: Node) -> Iterator[Node]:
    for child in node.children:
        yield child
        yield from _inner(child)


def _punctuation(text: str) -> tuple[int, int]:
    """Numbers of punctuation marks before the first word, and after the last."""
    units = [one.is_word for one in _units(text)]
    return (units.index(True), units[::-1].index(True)) if any(units) else (0, 0)


def _marks(text: str) -> int:
    """Number of punctuation marks in a text without words."""
    return len([*_units(text)])
