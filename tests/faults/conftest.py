"""The corpus of the system tests, here too."""

from tests.system.conftest import corpus

__all__ = ["corpus"]
