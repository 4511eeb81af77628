"""Models whose source tokens are erased in their embedding matrix: the oracle of what is erased in a pass."""

from contextlib import contextmanager

import torch
from hypothesis import strategies as st
from tests.properties.models import configs, random_model

from headway.insight.analyses.reading import Reading

MODELS = configs(share_embeddings="none", decoder_layers=2)
"""The source has an embedding matrix of its own."""
WORDS = st.lists(st.integers(4, 11), min_size=1, max_size=5, unique=True)
TARGETS = st.lists(st.integers(4, 11), max_size=4)


def read(config, seed, words, target):
    """A model, and what it reads: no source token stands twice, so that each can be erased by its id."""
    model = random_model(config, seed)
    return model, Reading.of(model, [*words, config.eos_id], [*target, config.eos_id])


@contextmanager
def without(model, ids):
    """Inside, the rows of these source ids are zero."""
    weight = model.source_embedding.weight
    kept = weight.detach().clone()
    with torch.no_grad():
        weight[list(ids)] = 0.0
        yield model
        weight.copy_(kept)


@torch.no_grad()
def logarithms(model, reading):
    """Log-probabilities (target, vocabulary)."""
    return model(reading.source[None], reading.read[None])[0].log_softmax(-1)


def of_given(model, reading):
    """Of the tokens that were given, (target,)"""
    return logarithms(model, reading)[range(len(reading.given)), reading.given]
