"""Brings the reference pages of docs/ into the site, where Sphinx finds them: docs/guide/reference/, which git ignores.

A page's Korean version takes its place in the Korean site. A link to a page that is not in the site becomes plain text,
and a link to the other language, for which the site has its own, is left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent
MANUALS = ("reference/commands.md", "reference/recipe.md", "reference/model.md", "record.md", "serving.md")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)([^)\s#]*)(#[^)\s]*)?\)")


def copy_manuals(app: Any) -> None:
    for manual in MANUALS:
        korean = DOCS / manual.replace(".md", ".ko.md")
        source = korean if app.config.language == "ko" and korean.exists() else DOCS / manual
        text = LINK.sub(_within_the_site, source.read_text(encoding="utf-8"))
        (Path(app.srcdir) / "reference" / source.name.replace(".ko", "")).write_text(text, encoding="utf-8")


def _within_the_site(link: re.Match[str]) -> str:
    text, path, anchor = link.groups(default="")
    if text in ("English", "한국어"):
        return ""
    name = Path(path).name.replace(".ko", "")
    if path and name not in {Path(manual).name for manual in MANUALS}:
        return text
    return f"[{text}]({name}{anchor})"


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", copy_manuals)
    return {"parallel_read_safe": True}
