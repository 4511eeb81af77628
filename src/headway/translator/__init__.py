"""The front door of using a model."""

from headway.decoding import SearchOptions
from headway.translator.translator import Stopped, Translation, Translator

__all__ = ["SearchOptions", "Stopped", "Translation", "Translator"]
