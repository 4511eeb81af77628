"""headway: train, run and open up the Transformer of "Attention Is All You Need"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headway.model import ModelConfig, Transformer
    from headway.translator import Translator

__version__ = "0.1.0"
__all__ = ["ModelConfig", "Transformer", "Translator", "__version__"]


def __getattr__(name: str) -> Any:
    """Loads torch only when a name that needs it is asked for."""
    if name == "Translator":
        from headway.translator import Translator

        return Translator
    if name in ("ModelConfig", "Transformer"):
        from headway import model

        return getattr(model, name)
    raise AttributeError(f"module 'headway' has no attribute {name!r}")
