"""A record that shows itself: as JSON, as a page, in a notebook."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from typing import Any

from headway.glass.document import Arrays, record_document
from headway.glass.standalone import record_page
from headway.insight import TranslationRecord


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
