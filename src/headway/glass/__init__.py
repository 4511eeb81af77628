"""The glass box: the record of a translation as JSON (docs/record.md) and as a page that shows it."""

from headway.glass.document import Arrays, ArraysKind
from headway.glass.standalone import ShownRecord

__all__ = ["Arrays", "ArraysKind", "ShownRecord"]
