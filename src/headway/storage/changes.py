"""What differs between two records of settings: one leaf of them, with both values, for a message of one line."""

from __future__ import annotations

import json
from typing import Any

SHOWN = 60
"""Characters that are shown of a value."""


def first_change(before: Any, now: Any) -> str | None:
    """The first key whose values differ, as `filters.words ([1, 9] -> [3, 9])`; None if all are equal. The values are
    those of JSON; keys of objects in objects are joined by dots."""
    return _first_change("", before, now)


def _first_change(place: str, before: Any, now: Any) -> str | None:
    if isinstance(before, dict) and isinstance(now, dict):
        inner = (
            _first_change(f"{place}.{key}" if place else key, before.get(key), now.get(key))
            for key in sorted(before.keys() | now.keys())
        )
        return next((found for found in inner if found is not None), None)
    if before == now:
        return None
    return f"{place} ({' -> '.join(_short(before, now))})"


def _short(before: Any, now: Any) -> list[str]:
    """Both values; long ones from a little before the place where they differ."""
    texts = [json.dumps(value, ensure_ascii=False) for value in (before, now)]
    if max(map(len, texts)) <= SHOWN:
        return texts
    alike = next(
        (place for place, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), min(map(len, texts))
    )
    start = max(0, alike - SHOWN // 4)
    return [
        f"{'...' if start else ''}{text[start : start + SHOWN]}{'...' if len(text) > start + SHOWN else ''}"
        for text in texts
    ]
