"""Texts and HTML documents: sentences out, translations in, everything else untouched (extra `documents`)."""

from headway.documents.parsing import Document, TextFormat, parse_document
from headway.documents.translating import Asked, Drafts, Found

__all__ = ["Asked", "Document", "Drafts", "Found", "TextFormat", "parse_document"]
