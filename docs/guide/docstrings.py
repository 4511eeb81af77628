"""Docstrings as autodoc reads them: plain text in which backticks mean code, and nothing else is markup."""

from __future__ import annotations

import re
from typing import Any

MARKUP = re.compile(r"[*|\\]|_(?!\w)")


def plain(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    parts = "\n".join(lines).split("`")
    for number, part in enumerate(parts):
        parts[number] = f"\\ ``{part}``\\ " if number % 2 else MARKUP.sub(r"\\\g<0>", part)
    lines[:] = "".join(parts).split("\n")


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", plain)
    return {"parallel_read_safe": True}
