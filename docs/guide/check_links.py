"""Does every link within the built site lead to a file, and its anchor to an element? `make docs` asks at the end.

python docs/guide/check_links.py FOLDER
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name == "id" and value:
                self.anchors.add(value)


def problems(folder: Path) -> list[str]:
    """One line for each link that leads nowhere."""
    pages = {file.resolve(): Page(file) for file in folder.rglob("*.html")}
    found = []
    for file, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            anchor = unquote(parts.fragment)
            if not target.is_file() or not target.is_relative_to(folder.resolve()):
                found.append(f"{file}: {link} leads nowhere")
            elif "=" in anchor:
                continue  # a view of a live part, not a place
            elif anchor and target in pages and anchor not in pages[target].anchors:
                found.append(f"{file}: {link} has no such place")
    return found


if __name__ == "__main__":
    lines = problems(Path(sys.argv[1]))
    print("\n".join(lines), file=sys.stderr, end="\n" if lines else "")
    sys.exit(1 if lines else 0)
