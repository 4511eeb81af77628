"""Differences between two records of settings, for a message of one line."""

import json
from itertools import takewhile
from typing import Any

SHOWN = 60


def first_change(before: Any, now: Any, place: str = "") -> str | None:
    """The first key whose values differ, as `filters.words ([1, 9] -> [3, 9])`; None if all are equal. The values are
    those of JSON, at this `place` in a record; keys of objects in objects are joined by dots."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys, prefix = sorted(before.keys() | now.keys()), f"{place}." if place else ""
        inner = (first_change(before.get(key), now.get(key), f"{prefix}{key}") for key in keys)
        return next((found for found in inner if found is not None), None)
    if before == now:
        return None
    texts = [json.dumps(value, ensure_ascii=False) for value in (before, now)]
    if max(map(len, texts)) > SHOWN:  # from a little before the place where they differ
        alike = sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(*texts, strict=False)))
        start = max(0, alike - SHOWN // 4)
        end = start + SHOWN
        texts = [f"{'...' * (start > 0)}{text[start:end]}{'...' * (len(text) > end)}" for text in texts]
    return f"{place} ({' -> '.join(texts)})"
