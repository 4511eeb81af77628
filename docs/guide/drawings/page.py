"""A picture as an element of a page: in the colours of its theme, and with labels in its language."""

from __future__ import annotations

import re
from html import escape, unescape

from labels import label

TEXT = re.compile(r"(<t(?:ext|span)\b[^>]*>)([^<]+)(?=<)")
CLEANED = (
    (re.compile(r"<metadata>.*?</metadata>", re.DOTALL), ""),
    (re.compile(r' id="(?!p[0-9a-f]{6}|m[0-9a-f]{6})[^"]*"'), ""),  # but for those that clip and mark
    (re.compile("#000000"), "currentColor"),
    (re.compile(r"font: ([\d.]+px) [^;\"]*"), r"font-size: \1"),
)
"""What matplotlib writes for a page of its own, and what stands in its place."""


def shown(svg: str, language: str, described: str = "") -> str:
    """The picture as an element. described: what it shows, for those who don't see it."""
    svg = svg[svg.index("<svg") :]
    for pattern, replacement in CLEANED:
        svg = pattern.sub(replacement, svg)
    svg = TEXT.sub(lambda found: found[1] + escape(label(unescape(found[2]), language), quote=False), svg)
    name = f' role="img" aria-label="{escape(described)}"' if described else ""
    return svg.replace("<svg", f"<svg{name}", 1)
