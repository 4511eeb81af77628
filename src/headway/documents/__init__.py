"""Texts and HTML documents: sentences out, translations in, everything else untouched (extra `documents`)."""

from headway.errors import UserError

try:
    from headway.documents import parsing
except ImportError as error:
    raise UserError(f"{error.name} is not installed: pip install 'headway[documents]'") from None

__all__ = ["parsing"]
