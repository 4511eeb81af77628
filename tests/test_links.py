"""Every relative link of the READMEs and of docs/ leads to a file, and its anchor to a heading as GitHub names it."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MANUALS = [path for place in (".", "exercises", "docs/**") for path in sorted(ROOT.glob(f"{place}/*.md"))]
CODE = re.compile(r"^(```+|~~~+).*?^\1[`~]*\s*$", flags=re.DOTALL | re.MULTILINE)
INLINE_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", flags=re.DOTALL)
LINK = re.compile(r"\]\(<?([^()<>\s]+(?:\([^()\s]*\)[^()<>\s]*)?)>?(?:\s+[\"'][^\"']*[\"'])?\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]^]+\]:\s+<?([^\s>]+)", flags=re.MULTILINE)
HTML = re.compile(r"<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=[\"']([^\"']+)[\"']")
OUTSIDE = re.compile(r"[a-z][a-z+.-]*:|//", flags=re.IGNORECASE)


def links(text: str) -> list[str]:
    """What the links of a page point to, but not what only looks like one in an example."""
    shown = INLINE_CODE.sub("code", CODE.sub("", text))
    found = [one for kind in (LINK, REFERENCE, HTML) for one in kind.findall(shown)]
    return [one for one in found if not OUTSIDE.match(one)]


def anchors(text: str) -> set[str]:
    """GitHub's of the headings: small letters of any language, digits, - and _; the second of a name has -1."""
    found: set[str] = set(re.findall(r"<[a-z]+\b[^>]*?\b(?:id|name)=[\"']([^\"']+)[\"']", text))
    times: dict[str, int] = {}
    for heading in re.findall(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", CODE.sub("", text), flags=re.MULTILINE):
        shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        count = times[name] = times.get(name, -1) + 1
        found.add(f"{name}-{count}" if count else name)
    return found


@pytest.mark.parametrize("manual", MANUALS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(manual):
    for link in links(manual.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = (manual.parent / path).resolve() if path else manual
        assert target.is_relative_to(ROOT), f"{link} leaves the repository"
        assert target.exists(), link
        assert str(target.relative_to(ROOT)) in spelled(target), f"{link}: capitals"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("language", ["en", "ko"])
def test_links_of_the_site_lead_to_its_pages(language):
    """As it has the README and the pages of docs/, before it is built; `make docs` follows those of the built site."""
    site = runpy.run_path(str(ROOT / "docs/guide/manuals.py"))
    pictures = 0
    for name, manual in site["MANUALS"].items():
        for link in links(site["text_of"](manual, language)):
            path, _, anchor = link.partition("#")
            if path in site["MANUALS"]:
                shown = site["_shown"](site["MANUALS"][path], language)
                assert not anchor or anchor in anchors(shown.read_text(encoding="utf-8")), f"{name}: {link}"
            elif path:
                assert (ROOT / "docs/guide/reference" / path).resolve().exists(), f"{name}: {link}"
                pictures += path.endswith((".gif", ".svg"))
    assert pictures > 1


def spelled(path: Path) -> set[str]:
    """What is beside the path, as it is written: some file systems don't tell capitals from small letters."""
    return {str(one.relative_to(ROOT)) for one in path.parent.iterdir()} | {"."}


def test_there_are_links_to_follow():
    followed = [link for manual in MANUALS for link in links(manual.read_text(encoding="utf-8"))]
    assert len(followed) > 50
    assert sum("#" in link for link in followed) > 3


def test_anchors_are_githubs():
    """Examples of its own pages and of ours: code, punctuation, Hangul, the same heading twice."""
    text = "# A `code` -- and, more!\n## 글은 이렇게 다룹니다\n## TLS 프록시 뒤의 컨테이너\n## snake_case\n"
    text += "## Twice\n## Twice\n## [A link](x.md) #\n```\n# no heading\n```\n"
    assert anchors(text) == {
        "a-code----and-more",
        "글은-이렇게-다룹니다",
        "tls-프록시-뒤의-컨테이너",
        "snake_case",
        "twice",
        "twice-1",
        "a-link",
    }


def test_links_are_found_but_not_in_code():
    text = "[a](one.md#x) ![b](two.svg 'title') `[c](three.md)`\n```\n[d](four.md)\n```\n"
    text += '[e](https://example.org/)\n<img src="five.png">\n[f]: six.md\n[g](#x) [`h`](seven.md)\n'
    assert links(text) == ["one.md#x", "two.svg", "#x", "seven.md", "six.md", "five.png"]
