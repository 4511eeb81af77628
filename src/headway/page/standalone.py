"""A record that shows itself: as JSON, in a notebook, and as one self-contained page, its modules joined into one
script, its numbers beside them.

The modules are plain ES modules, which a server hands out as they are. To be joined they keep to a
small part of the language, and anything else is refused. At the start of a line there may be
`import {a, b as c} from "./x.js"` or `"../folder/x.js"`, `import * as x from "./x.js"`, `export {a, b as c}`, and
`export` in front of `function`, `async function`, `class` and `const`. A policy in the page lets nothing run but that
script, known by its hash, and nothing be loaded.
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

from headway.insight import TranslationRecord
from headway.page.document import Arrays, record_document

PAGE = files("headway.page")
"""The folder of all JavaScript and of the style sheets."""
ENTRY, STYLE = "views/standalone.js", "glass.css"

_IMPORT = re.compile(
    r'^import\s+(?:\{(?P<names>[^{}]*)\}|\*\s+as\s+(?P<all>[\w$]+))\s+from\s+"(?P<file>\.\.?/[\w./-]+\.js)";?[ \t]*$',
    re.M,
)
_EXPORTED_NAME = re.compile(
    r"^export\s+(?=(?:async\s+)?function\*?\s+([\w$]+)|class\s+([\w$]+)|const\s+([\w$]+)\s*=)", re.M
)
_EXPORT_LIST = re.compile(r"^export\s*\{([^{}]*)\};?[ \t]*$", re.M)
_IMPORTED_SHEET = re.compile(r'^@import "([\w.]+)";$', re.M)
_LEFT_OVER = re.compile(r"^\s*(?:import\b|export\b).*$|\bimport\s*[(.].*$", re.M)


@dataclass(frozen=True)
class ShownRecord(TranslationRecord):
    """What `Translator.inspect` returns: a record with its JSON form and its page."""

    def to_dict(self, arrays: Arrays = "all") -> dict[str, Any]:
        """The JSON form, docs/record.md."""
        return record_document(self, arrays)

    def to_json(self, arrays: Arrays = "all") -> str:
        """The JSON form as one line of text."""
        return json.dumps(self.to_dict(arrays), ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    def to_page(self, language: str | None = None) -> str:
        """A self-contained page that shows the record, as HTML. `language`: `en` or `ko`; None: the reader's."""
        return record_page(self, language)

    def _repr_html_(self) -> str:
        """In a notebook: the page, in a frame of its own."""
        frame = 'sandbox="allow-scripts" style="width: 100%; height: 900px; border: 0"'
        return f'<iframe {frame} srcdoc="{html.escape(self.to_page())}"></iframe>'


def record_page(record: TranslationRecord, language: str | None = None) -> str:
    """The page as HTML. `language`: `en` or `ko`; None: as the reader's browser."""
    return page_of(record_document(record, "layers"), modules_of("views"), style_sheet(), language)


def modules_of(*folders: str) -> dict[str, str]:
    """The text of each ES module of these folders by its path."""
    every = ((folder, one) for folder in folders for one in (PAGE / folder).iterdir() if one.name.endswith(".js"))
    return {f"{folder}/{one.name}": one.read_text(encoding="utf-8") for folder, one in every}


def style_sheet(name: str = STYLE) -> str:
    """A sheet of the views, with those that it imports in their places."""
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
    """A document of HTML. policy: what may be loaded and run; nothing else may."""
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
    """The entries of a document's arrays in groups that are loaded together: each layer, each analysis, and all that is
    in none."""
    groups: dict[str, dict[str, Any]] = {}
    for name, entry in arrays.items():
        found = re.match(r"(?:history\.\d+|analyses\.\w+|(?:encoder|decoder)\.layers\.\d+)(?=\.)", name)
        groups.setdefault(found[0] if found else "rest", {})[name] = entry
    return groups


def inert(value: Any) -> str:
    """JSON that no reader of HTML takes for anything else."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def digest(text: str) -> str:
    """As a policy names an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def joined(modules: Mapping[str, str], entry: str) -> str:
    """One script that runs the modules from `entry` on, each once, those that it needs before it. modules: their texts
    by name, which may be a path. Raises ValueError."""
    order = needed(modules, entry)
    numbers = {name: f"module{number}" for number, name in enumerate(order)}
    parts = [_as_function(name, modules[name], numbers) for name in order]
    return '"use strict";\n' + "\n".join(parts)


def needed(modules: Mapping[str, str], entry: str) -> list[str]:
    """The names of `entry` and of all that it imports, each after those that it imports itself. Raises ValueError."""
    order: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            others = above[above.index(name) + 1 :]
            raise ValueError(f"{name}: imports itself by way of {', '.join(others) or 'itself'}")
        if name not in modules:
            raise ValueError(f"{above[-1] if above else 'the page'}: imports {name}, which is not there")
        if name not in order:
            for found in _IMPORT.finditer(modules[name]):
                visit(_named(found["file"], name), (*above, name))
            order.append(name)

    visit(entry, ())
    return order


def _named(file: str, importer: str) -> str:
    """The name of the module that `importer` imports as `file`."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), file))


def _as_function(name: str, text: str, numbers: Mapping[str, str]) -> str:
    """A module as a function that is called at once and returns what it exports."""
    exports: list[str] = []

    def imported(found: re.Match[str]) -> str:
        what = found["all"] or f"{{{', '.join(_properties(found['names']))}}}"
        return f"const {what} = {numbers[_named(found['file'], name)]};"

    def exported(found: re.Match[str]) -> str:
        exports.append(next(filter(None, found.groups())))
        return ""

    def listed(found: re.Match[str]) -> str:
        exports.extend(_properties(found[1], swapped=True))
        return ""

    body = _EXPORT_LIST.sub(listed, _EXPORTED_NAME.sub(exported, _IMPORT.sub(imported, text)))
    if left := _LEFT_OVER.search(body):
        line = body.count("\n", 0, left.start()) + 1
        raise ValueError(f"page/{name}:{line}: {left[0].strip()!r} is a form of import or export that can't be joined")
    return f"const {numbers[name]} = (() => {{\n{body}\nreturn {{{', '.join(exports)}}};\n}})();"


def _properties(names: str, *, swapped: bool = False) -> list[str]:
    """`a, b as c` as properties of an object: what an import takes, or, swapped, what an export gives."""
    pairs = [one.split()[::2] for one in names.split(",") if one.strip()]
    return [": ".join(reversed(pair) if swapped else pair) for pair in pairs]
