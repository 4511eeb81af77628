"""Search over an engine, on ids alone."""

from headway.decoding.beam import BeamStep, BeamWatch, beam_search
from headway.decoding.constraints import Constraints
from headway.decoding.engine import Engine, EnsembleEngine, TorchEngine
from headway.decoding.options import Sampling, SearchOptions
from headway.decoding.search import Hypothesis, greedy, sample
from headway.decoding.searcher import Searcher

__all__ = [
    "BeamStep",
    "BeamWatch",
    "Constraints",
    "Engine",
    "EnsembleEngine",
    "Hypothesis",
    "Sampling",
    "SearchOptions",
    "Searcher",
    "TorchEngine",
    "beam_search",
    "greedy",
    "sample",
]
