"""Looking into a translation: its record as JSON (docs/record.md), its page, and the model in a browser."""

from typing import TYPE_CHECKING

from headway.lazy import lazy_names
from headway.page.document import Arrays, ArraysKind

if TYPE_CHECKING:
    from headway.page.standalone import ShownRecord

__all__ = ["Arrays", "ArraysKind", "ShownRecord"]

__getattr__, __dir__ = lazy_names(__name__, standalone="ShownRecord")
