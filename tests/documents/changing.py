"""Files whose words are changed, in place of a model."""

import re

from headway.documents.kinds import open_file
from headway.documents.segments import Languages

LANGUAGES = Languages("de", "en")


def through(kind, data, change=str):
    """The file with the words of its segments changed."""
    opened = open_file(kind, data, LANGUAGES, "file")

    def changed(segment):
        parts = re.split(r"(<[^>]*>|&\w+;)", segment.text) if segment.format == "html" else [segment.text]
        return "".join(part if place % 2 else change(part) for place, part in enumerate(parts))

    return opened.written([changed(one) for one in opened.segments])


def texts_of(kind, data):
    return [one.text for one in open_file(kind, data, LANGUAGES, "file").segments]
