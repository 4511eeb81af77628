"""The glass box: the record of a translation as JSON (docs/record.md) and as a page that shows it."""

from typing import TYPE_CHECKING

from headway.glass.document import Arrays, ArraysKind
from headway.lazy import lazy_names

if TYPE_CHECKING:
    from headway.glass.standalone import ShownRecord

__all__ = ["Arrays", "ArraysKind", "ShownRecord"]

__getattr__, __dir__ = lazy_names(__name__, standalone="ShownRecord")
