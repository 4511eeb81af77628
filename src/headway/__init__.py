"""headway: train, run and open up the Transformer of "Attention Is All You Need"."""

from typing import TYPE_CHECKING

from headway.lazy import lazy_names

if TYPE_CHECKING:
    from headway.cli.train import train
    from headway.model import ModelConfig, Transformer
    from headway.translator import Translator

__version__ = "0.2.0"
__all__ = ["ModelConfig", "Transformer", "Translator", "__version__", "train"]

__getattr__, __dir__ = lazy_names(
    __name__, model="ModelConfig Transformer", translator="Translator", **{"cli.train": "train"}
)
