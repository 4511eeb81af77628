"""The inline elements of a sentence, as a tree over its plain text, which is what the model gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headway.documents.markup import tag_name, tag_pairs
from headway.text.protected import Atom, Element, has_words, split_protected

MOST_NODES = 100
"""Most elements of a sentence: placing them takes time in proportion to them and to the words."""


@dataclass(slots=True)
class Node:
    """An element of the source, or an atom without words."""

    first: int
    last: int
    """The places of its tags among the elements of the sentence."""
    opening: list[Element]
    closing: list[Element]
    start: int = 0
    end: int = 0
    """Its characters in the plain text."""
    is_empty: bool = False
    """Whether it has no words; all of it is in `opening` then."""
    spaces: tuple[bool, bool] = (False, False)
    """Whether white space is before and after it, where it is empty."""
    children: list[Node] = field(default_factory=list)


def tree_of(elements: Sequence[Element]) -> tuple[str, Node] | None:
    """The plain text of a sentence, and a node for all of it; None where elements overlap, or there are too many."""
    nodes = _nodes(elements)
    if len(nodes) > MOST_NODES:
        return None
    plain = _set_characters(elements, nodes)
    root = Node(-1, len(elements), [], [], 0, len(plain))
    open_nodes = [root]
    for node in nodes:
        while node.first > open_nodes[-1].last:
            open_nodes.pop()
        if node.last > open_nodes[-1].last:
            return None
        open_nodes[-1].children.append(node)
        open_nodes.append(node)
    return plain, root


def is_spoken(text: str) -> bool:
    """Whether it has any words for the model."""
    return has_words(text) or any(isinstance(one, Atom) for one in split_protected(text))


def _nodes(elements: Sequence[Element]) -> list[Node]:
    """All elements of a sentence, in the order of their beginnings. A tag without its partner encloses what is on its
    other side, and ends or begins outside of the sentence."""
    pairs = dict(tag_pairs(elements))
    closed = set(pairs.values())
    spoken = [isinstance(one, str) and is_spoken(one) for one in elements]
    nodes: list[Node] = []
    place = 0
    while place < len(elements):
        one, partner = elements[place], pairs.get(place, place)
        if isinstance(one, Atom) and place not in closed:
            name, is_end = tag_name(one)
            inside = spoken[place:partner]
            if partner == place:
                inside = spoken[:place] if is_end else spoken[place:]
            if not name or not any(inside):
                empty = list(elements[place : partner + 1])
                if nodes and nodes[-1].is_empty and nodes[-1].last == place - 1:
                    nodes[-1].opening += empty
                    nodes[-1].last = partner
                else:
                    nodes.append(Node(place, partner, empty, [], is_empty=True))
                place = partner
            elif partner > place:
                nodes.append(Node(place, partner, [one], [elements[partner]]))
            else:
                node = Node(-1, place, [], [one]) if is_end else Node(place, len(elements), [one], [])
                nodes.append(node)
        place += 1
    return sorted(nodes, key=lambda node: (node.first, -node.last))


def _set_characters(elements: Sequence[Element], nodes: Sequence[Node]) -> str:
    """The plain text of the sentence; the nodes get their places in it."""
    starting = {node.first: node for node in nodes}
    ending = {node.last: node for node in nodes}
    plain = ""
    place = 0
    while place < len(elements):
        one = elements[place]
        node = starting.get(place)
        if isinstance(one, str):
            plain += one if plain else one.lstrip()
        elif node is None:
            ending[place].end = len(plain)
        elif node.is_empty:
            text = next((other for other in elements[node.last + 1 :] if isinstance(other, str) and other), " ")
            node.spaces = not plain or plain[-1].isspace(), text[0].isspace()
            if node.spaces[0] and not text[0].isalnum():
                plain = _stripped(plain, nodes)
            elif not any(node.spaces) and any(isinstance(other, Atom) and other.stand_in for other in node.opening):
                plain += " "
            node.start = node.end = len(plain)
            place = node.last
        else:
            node.start = len(plain)
        place += 1
    for node in nodes:
        if node.last == len(elements):
            node.end = len(plain)
    return _stripped(plain, nodes)


def _stripped(plain: str, nodes: Sequence[Node]) -> str:
    """Without the white space at its end."""
    plain = plain.rstrip()
    for node in nodes:
        node.start, node.end = min(node.start, len(plain)), min(node.end, len(plain))
    return plain
