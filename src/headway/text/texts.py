"""Checks texts from a program: any list of strings, numpy's and pandas' too, but nothing that only looks like one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def as_texts(given: Any, name: str) -> list[str]:
    """The texts as plain strings. name: what messages call one of them. Raises TypeError for an item that isn't text,
    for a text in place of a list, and for collections without order or that would give keys (set, dict, data frame)."""
    kind = type(given).__name__
    if isinstance(given, (str, bytes)):
        raise TypeError(f"{name}: a list of texts is needed, not {kind}; for one text, give [text]")
    is_list = isinstance(given, Iterable) and not isinstance(given, (Mapping, set, frozenset))
    if not is_list or getattr(given, "ndim", 1) != 1:
        raise TypeError(f"{name}: a list of texts is needed, not {kind}")
    return [as_text(one, f"{name} {number}") for number, one in enumerate(given, start=1)]


def as_text(given: Any, name: str) -> str:
    """The text as a plain string. Raises TypeError for what isn't text, such as NaN for a missing value."""
    if not isinstance(given, str):
        raise TypeError(f"{name} is not text ({type(given).__name__})")
    return str.__str__(given)  # a subclass may join, split and show itself in its own way
