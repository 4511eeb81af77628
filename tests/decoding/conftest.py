"""CTranslate2's form of a model is checked quickly, and opens no connection, as in tests/interop."""

from tests.interop.conftest import offline, quick_checks

__all__ = ["offline", "quick_checks"]
