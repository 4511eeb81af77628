"""Search over an engine, on ids alone."""

from typing import TYPE_CHECKING

from headway.decoding.options import Sampling, SearchOptions
from headway.decoding.searcher import Hypothesis, Phrase, RequiredPhrases, Searcher, Stopped
from headway.lazy import lazy_names

if TYPE_CHECKING:
    from headway.decoding.beam import BeamStep, BeamWatch, beam_search
    from headway.decoding.constraints import Constraints
    from headway.decoding.engine import Engine, EnsembleEngine, TorchEngine
    from headway.decoding.greedy_search import greedy, sample
    from headway.decoding.torch_searcher import TorchSearcher

__all__ = [
    "BeamStep",
    "BeamWatch",
    "Constraints",
    "Engine",
    "EnsembleEngine",
    "Hypothesis",
    "Phrase",
    "RequiredPhrases",
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

__getattr__, __dir__ = lazy_names(
    __name__,
    beam="BeamStep BeamWatch beam_search",
    constraints="Constraints",
    engine="Engine EnsembleEngine TorchEngine",
    greedy_search="greedy sample",
    torch_searcher="TorchSearcher",
)
