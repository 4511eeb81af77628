"""Search over an engine, on ids alone."""

from headway.decoding.engine import Engine, TorchEngine
from headway.decoding.search import Hypothesis, greedy

__all__ = ["Engine", "Hypothesis", "TorchEngine", "greedy"]
