"""Brings the pages of docs/, the README and that of the exercises into the site, where Sphinx finds them:
docs/guide/reference/, where git ignores them.

A page's Korean version takes its place in the Korean site. Links lead to the pages of the site; a link to another file
of the repository becomes plain text, and a link to the other language, for which the site has its own, is left out.
"""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DOCS = HERE.parent
MANUALS = {path.name: path for path in (*DOCS.glob("*.md"), *DOCS.glob("reference/*.md")) if ".ko" not in path.name}
"""The pages by their names in the site."""
MANUALS |= {"index.md": MANUALS.pop("README.md"), "start.md": DOCS.parent / "README.md"}
MANUALS |= {"exercises.md": DOCS.parent / "exercises" / "README.md"}
LINK = re.compile(r"(!?)\[([^\]]+)\]\((?!https?:)([^)\s#]*)(#[^)\s]*)?\)")


def copy_manuals(app: Any) -> None:
    for name, manual in MANUALS.items():
        text = text_of(manual, app.config.language)
        if name == "index.md":
            others = [one.removesuffix(".md") for one in MANUALS if one not in (name, "start.md")]
            text += "\n".join(["\n```{toctree}", ":hidden:", "", *sorted(others), "```", ""])
        (HERE / "reference" / name).write_text(text, encoding="utf-8")


def text_of(manual: Path, language: str) -> str:
    """The page as the site in this language has it."""
    page = _shown(manual, language)
    return LINK.sub(partial(_within_the_site, page, language), page.read_text(encoding="utf-8"))


def _shown(manual: Path, language: str) -> Path:
    """The page that the site in this language shows."""
    korean = manual.with_suffix(".ko.md")
    return korean if language == "ko" and korean.exists() else manual


def _within_the_site(page: Path, language: str, link: re.Match[str]) -> str:
    is_picture, text, path, anchor = link.groups(default="")
    if not path:
        return link[0]
    file = (page.parent / path).resolve()
    manual, own = (one.with_name(one.name.replace(".ko.", ".")) for one in (file, page))
    if manual == own and file != page:
        return ""
    for name, other in MANUALS.items():
        if manual == other:  # the other language's headings have other anchors
            return f"[{text}]({name}{anchor if _shown(manual, language) == file else ''})"
    if is_picture or file.parent == HERE:
        return f"{is_picture}[{text}]({Path(os.path.relpath(file, HERE / 'reference')).as_posix()}{anchor})"
    return text


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", copy_manuals)
    return {"parallel_read_safe": True}
