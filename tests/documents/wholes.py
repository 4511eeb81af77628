"""What a model gets of a sentence."""

from headway.documents.parsing import Sentence


def whole_of(sentence: Sentence) -> str | None:
    """Its plain text; None if the model gets its runs alone."""
    return sentence.layout and sentence.layout.plain
