"""Markdown: CommonMark with tables. Code, addresses, HTML and front matter stay."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from headway.documents.marked import Mark, MarkedText, Piece, Tag, shown
from headway.documents.segments import LINE, Languages, OpenedFile, decode_text
from headway.errors import UserError

MOST_BYTES = 4 * 2**20
"""The largest file: the parser takes a second for a megabyte of prose, but 30 for one of nothing but syntax."""
_PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_SPECIAL = re.compile(r"([\\`*_\[\]<>&~])")
_LIKE_A_BLOCK = re.compile(r"^(\d*)([#>+*.)=-]+)(?=\s|$)")
"""The beginning of words that would be a heading, an item of a list or a quotation."""
_KEPT = re.compile(r"(^:(?::{2}.*|(?=\s))|\[\^[^\[\]\s]+\]:?|\$\$.+?\$\$|\$[^\s$](?:[^$]*[^\s$])?\$(?!\d))")
"""Notes, formulas, and the beginnings of definitions and of blocks such as `::: warning`, which CommonMark lacks."""
_LINE = re.compile(r":::|:\s|\[\^[^\[\]\s]+\]:")
"""Beginnings of text that stay at the beginning of a line."""


def open_md(data: bytes, _: Languages) -> OpenedFile:
    """Paragraphs, headings, items and cells, each as one line."""
    if len(data) > MOST_BYTES:
        raise UserError(f"has {len(data):,} bytes, the limit of Markdown is {MOST_BYTES:,}; divide it")
    found = decode_text(data)
    blocks = list(_blocks(LINE.findall(found.text)[:-1]))

    def written(translations: Sequence[str]) -> bytes:
        made, place = list[str](), 0
        for (start, end, is_cell, block), translation in zip(blocks, translations, strict=True):
            if translation != block.segment.text:
                made += found.text[place:start], _text(block.restored(translation), is_cell=is_cell)
                place = end
        return found.encoded("".join([*made, found.text[place:]]))

    return OpenedFile([block.segment for *_, block in blocks], written)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, int, bool, MarkedText[Tag]]]:
    """Each paragraph, heading or cell: from a place in the text to another, whether it is a cell, and its text."""
    front, starts = _front_matter(lines), [0, *accumulate(map(len, lines))]
    tokens = _PARSER.parse("\n" * front + "".join(lines[front:]))
    line = column = 0  # where the last block ends
    for before, token in pairwise(tokens):
        if token.type != "inline" or token.map is None:
            continue
        is_cell = before.type in ("td_open", "th_open")
        parts = token.content.replace("|", "\\|").split("\n") if is_cell else token.content.split("\n")
        first, last = token.map[0], token.map[0] + len(parts) - 1
        start = lines[first].find(parts[0], column if first == line else 0)
        end = lines[last].find(parts[-1], start if first == last else 0) + len(parts[-1])
        if start < 0 or end < len(parts[-1]) or not token.content or token.content.startswith("$$"):
            continue
        line, column = last, end
        continued = lines[first + 1][: max(0, lines[first + 1].find(parts[1]))] if len(parts) > 1 else ""
        text = MarkedText(_pieces(token.children or [], continued))
        yield starts[first] + start, starts[last] + end, is_cell, text


def _front_matter(lines: Sequence[str]) -> int:
    """The number of lines of YAML at the beginning."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((number + 1 for number, line in enumerate(lines) if number and line.rstrip() in ("---", "...")), 0)


def _pieces(tokens: Sequence[Token], continued: str) -> Iterator[Piece[Tag]]:
    """continued: the beginning of a line within the block."""
    opened: list[Tag] = []
    automatic = False  # whether this is a link such as <https://...>
    none = Token("", "", 0)
    for before, one, after in zip([none, *tokens], tokens, [*tokens[1:], none], strict=False):
        if one.markup == "autolink":
            automatic = one.nesting > 0
            if automatic:
                scheme = "" if after.content.startswith("mailto:") else "mailto:"  # that an e-mail address gets
                yield Mark(Tag(f"<{str(one.attrGet('href')).removeprefix(scheme)}>"))
        elif automatic:
            continue
        elif one.type == "text":
            parts = enumerate(_KEPT.split(one.content))
            yield from (Mark(Tag(part)) if place % 2 else part for place, part in parts if part)
        elif one.type == "softbreak":
            is_kept = _LINE.match(before.content) or _LINE.match(after.content)
            yield Mark(Tag(f"\n{continued}"), "break") if is_kept else " "
        elif one.type == "hardbreak":
            yield Mark(Tag(f"\\\n{continued}"), "break")
        elif one.nesting > 0:
            opened.append(Tag("[", _address(one, "href")) if one.type == "link_open" else Tag(one.markup, one.markup))
            yield Mark(opened[-1], "begin")
        elif one.nesting < 0:
            yield Mark(opened.pop(), "end")
        elif one.type == "code_inline":
            space = " " * (one.content.startswith("`") or one.content.endswith("`"))
            yield Mark(Tag(f"{one.markup}{space}{one.content}{space}{one.markup}"))
        elif one.type == "image":
            yield Mark(Tag(f"![{one.content}{_address(one, 'src')}"))
        else:
            yield Mark(Tag(one.content))


def _address(token: Token, name: str) -> str:
    address, title = str(token.attrGet(name) or ""), token.attrGet("title")
    shown = f"<{address}>" if re.search(r"[\s()]", address) else address
    quoted = str(title).replace('"', '\\"')
    return f"]({shown})" if title is None else f']({shown} "{quoted}")'


def _text(pieces: Sequence[Piece[Tag]], *, is_cell: bool) -> str:
    """The block, with a backslash before characters that would be markup."""
    words = "".join(one for one in pieces if isinstance(one, str))
    text = shown(pieces, str)
    [token] = _PARSER.parseInline(text)
    if "".join(one if isinstance(one, str) else "" for one in _pieces(token.children or [], "")) != words:
        text = shown(pieces, lambda part: _SPECIAL.sub(r"\\\1", part))
    return text.replace("|", "\\|") if is_cell else _LIKE_A_BLOCK.sub(r"\1\\\2", text)
