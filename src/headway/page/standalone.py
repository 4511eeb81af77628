"""A record that shows itself: as JSON, in a notebook, and as one self-contained page, its modules joined into one
script, its numbers beside them.

The modules are plain ES modules, which a server delivers as they are. To be joined they keep to a small part of the
language, and anything else is refused: at the start of a line `import {a, b as c} from "./x.js"` or `"../folder/x.js"`,
and `export` in front of `function`, `async function`, `class` and `const`. A policy in the page lets only that script
run, known by its hash, and lets nothing be loaded.
"""

import base64
import hashlib
import html
import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from headway.errors import UserError
from headway.insight.record import TranslationRecord
from headway.page.document import Arrays, logits_entry, record_document

PAGE = files("headway.page")
"""The folder of all JavaScript and of the style sheets."""
ENTRY, STYLE = "views/standalone.js", "glass.css"

_IMPORT = re.compile(r'^import\s+(\{[^{}]*\})\s+from\s+"(\.\.?/[\w./-]+\.js)";?[ \t]*$', re.M)
_EXPORT = re.compile(r"^export\s+(?=(?:(?:async\s+)?function|class|const)\s+([\w$]+)\s*(?:[({=]|extends\b))", re.M)
_IMPORTED_SHEET = re.compile(r'^@import "([\w.]+)";$', re.M)
_LEFT_OVER = re.compile(r"^\s*(?:import\b|export\b).*$|\bimport\s*[(.].*$", re.M)


@dataclass(frozen=True)
class ShownRecord(TranslationRecord):
    """The result of `Translator.inspect`: a record with its JSON form and its page."""

    def to_dict(self, arrays: Arrays = "all") -> dict[str, Any]:
        """The JSON form, docs/record.md."""
        return record_document(self, arrays)

    def to_json(self, arrays: Arrays = "all") -> str:
        """The JSON form as one line of text."""
        return json.dumps(self.to_dict(arrays), ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    def to_page(self, language: str | None = None) -> str:
        """A self-contained page that shows the record, as HTML. `language`: `en` or `ko`; None: the reader's. Raises
        UserError for a model with a core of attention of its own."""
        if self.config.core:
            raise UserError(f"the page explains the usual attention, not {self.config.core}: use .json, .svg or .png")
        document = record_document(self, "layers")
        document["arrays"]["logits"] = logits_entry(self)
        return page_of(document, modules_of("views"), style_sheet(), language)

    def _repr_html_(self) -> str:
        """In a notebook: the page, in a frame of its own."""
        frame = 'sandbox="allow-scripts" style="width: 100%; height: 900px; border: 0"'
        return f'<iframe {frame} srcdoc="{html.escape(self.to_page())}"></iframe>'


def modules_of(*folders: str) -> dict[str, str]:
    """The text of each ES module of these folders by its path."""
    every = ((folder, one) for folder in folders for one in (PAGE / folder).iterdir() if one.name.endswith(".js"))
    return {f"{folder}/{one.name}": one.read_text(encoding="utf-8") for folder, one in every}


def style_sheet(name: str = STYLE) -> str:
    """A sheet of the views, with the sheets that it imports in their places."""
    text = (PAGE / "views" / name).read_text(encoding="utf-8")
    return _IMPORTED_SHEET.sub(lambda found: (PAGE / "views" / found[1]).read_text(encoding="utf-8"), text)


def page_of(document: dict[str, Any], modules: Mapping[str, str], style: str, language: str | None = None) -> str:
    """The page of a record's JSON form. modules: the texts of the ES modules by file name, ENTRY among them. Raises
    ValueError for a module that can't be joined."""
    script, style = inline("script", joined(modules, ENTRY)), inline("style", style)
    groups = grouped(document["arrays"])
    index = {**document, "arrays": {name: list(entries) for name, entries in groups.items()}}
    policy = f"script-src '{digest(script)}'; style-src '{digest(style)}'"
    data = "\n".join(
        f'<script type="application/json" id="{name}">{inert(value)}</script>'
        for name, value in (("record", index), *((f"arrays.{name}", entries) for name, entries in groups.items()))
    )
    body = f'<main id="glass"></main>\n{data}\n<script>{script}</script>'
    title = f"{document['source']['text'][:80]} · headway"
    return html_page(title, policy, f"<style>{style}</style>", body, language)


def html_page(title: str, policy: str, head: str, body: str, language: str | None) -> str:
    """A document of HTML. policy: the directives that allow loading and running; all else is forbidden."""
    lang = f' lang="{language}"' if language else ""
    return f"""<!DOCTYPE html>
<html{lang}>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; {policy}; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
{head}
</head>
<body>
{body}
</body>
</html>
"""


def inline(element: str, text: str) -> str:
    """The text of a script or style within a page. Raises ValueError for one that would end its element."""
    if f"</{element}" in text.lower() or "<!--" in text:
        raise ValueError(f"the page's {element} holds </{element} or <!--, which would end it or hide its end")
    return text


def grouped(arrays: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The entries of a document's arrays in groups that load together: each layer, each analysis, logits, the rest."""
    groups: dict[str, dict[str, Any]] = {}
    for name, entry in arrays.items():
        found = re.match(r"(?:history\.\d+|analyses\.\w+|(?:encoder|decoder)\.layers\.\d+)(?=\.)|logits$", name)
        groups.setdefault(found[0] if found else "rest", {})[name] = entry
    return groups


def inert(value: Any) -> str:
    """The value as JSON that can't be taken for HTML."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def digest(text: str) -> str:
    """The name of an inline script or style in a policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def joined(modules: Mapping[str, str], entry: str) -> str:
    """One script that runs `entry` and what it needs, each module once. modules: texts by name. Raises ValueError."""
    order = needed(modules, entry)
    numbers = {name: f"module{number}" for number, name in enumerate(order)}
    return "\n".join(['"use strict";', *(_as_function(name, modules[name], numbers) for name in order)])


def needed(modules: Mapping[str, str], entry: str) -> list[str]:
    """The names of `entry` and the modules that it needs, each after its own imports. Raises ValueError."""
    order: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            others = above[above.index(name) + 1 :]
            raise ValueError(f"{name}: imports itself by way of {', '.join(others) or 'itself'}")
        if name not in modules:
            raise ValueError(f"{above[-1] if above else 'the page'}: imports {name}, which is not there")
        if name not in order:
            for found in _IMPORT.finditer(modules[name]):
                visit(_named(found[2], name), (*above, name))
            order.append(name)

    visit(entry, ())
    return order


def _named(file: str, importer: str) -> str:
    """The name of the module that `importer` imports as `file`."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), file))


def _as_function(name: str, text: str, numbers: Mapping[str, str]) -> str:
    """A module as a function that is called at once and returns its exports."""

    def imported(found: re.Match[str]) -> str:
        names = re.sub(r"\s+as\s+", ": ", found[1])
        return f"const {names} = {numbers[_named(found[2], name)]};"

    body = _EXPORT.sub("", _IMPORT.sub(imported, text))
    if left := _LEFT_OVER.search(body):
        line = body.count("\n", 0, left.start()) + 1
        raise ValueError(f"page/{name}:{line}: {left[0].strip()!r} is a form of import or export that can't be joined")
    return f"const {numbers[name]} = (() => {{\n{body}\nreturn {{{', '.join(_EXPORT.findall(text))}}};\n}})();"
