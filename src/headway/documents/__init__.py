"""Texts and HTML documents: sentences out, translations in, everything else untouched (extra `documents`)."""

from headway.errors import UserError

try:
    from headway.documents.parsing import Document, TextFormat, parse_document
    from headway.documents.translating import Asked, Drafts, Found
except ImportError as error:
    raise UserError(f"{error.name} is not installed: pip install 'headway[documents]'") from None

__all__ = ["Asked", "Document", "Drafts", "Found", "TextFormat", "parse_document"]
