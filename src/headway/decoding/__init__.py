"""Search over an engine, on ids alone."""

from headway.decoding.beam import beam_search
from headway.decoding.engine import Engine, TorchEngine
from headway.decoding.search import Hypothesis, greedy

__all__ = ["Engine", "Hypothesis", "TorchEngine", "beam_search", "greedy"]
