"""Texts and HTML documents: sentences out, translations in, everything else untouched (extra `documents`)."""

from headway.errors import UserError

try:
    from headway.documents.parsing import Asked, Document, Drafts, Found, TextFormat, parse_document
except ImportError as error:
    raise UserError(f"{error.name} is not installed: pip install 'headway[documents]'") from None

__all__ = ["Asked", "Document", "Drafts", "Found", "TextFormat", "parse_document"]
