"""Search over an engine, on ids alone."""

from headway.decoding.beam import BeamStep, BeamWatch, beam_search
from headway.decoding.constraints import Constraints
from headway.decoding.engine import Engine, EnsembleEngine, TorchEngine
from headway.decoding.greedy import greedy
from headway.decoding.hypothesis import Hypothesis, Stopped
from headway.decoding.options import Sampling, SearchOptions
from headway.decoding.phrases import Demands, Phrase
from headway.decoding.sampling import sample
from headway.decoding.searcher import Searcher
from headway.decoding.torch_searcher import TorchSearcher

__all__ = [
    "BeamStep",
    "BeamWatch",
    "Constraints",
    "Demands",
    "Engine",
    "EnsembleEngine",
    "Hypothesis",
    "Phrase",
    "Sampling",
    "SearchOptions",
    "Searcher",
    "Stopped",
    "TorchEngine",
    "TorchSearcher",
    "beam_search",
    "greedy",
    "sample",
]
