"""The corpus and the model of the system tests, here too."""

from tests.system.conftest import corpus, trained

__all__ = ["corpus", "trained"]
