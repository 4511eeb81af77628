"""The front door of using a model."""

from headway.decoding import SearchOptions
from headway.translator.glossary import Glossary
from headway.translator.translation import Stopped, TranslatedDocument, Translation
from headway.translator.translator import Translator

__all__ = ["Glossary", "SearchOptions", "Stopped", "TranslatedDocument", "Translation", "Translator"]
