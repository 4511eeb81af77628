"""Texts, HTML and files: sentences out, translations in, everything else untouched (extra `documents`)."""
