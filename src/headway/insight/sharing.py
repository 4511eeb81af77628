"""Copies of a model to look into or to change, while the model itself goes on working."""

from __future__ import annotations

import copy

from headway.model import Transformer


def sharing_copy(model: Transformer) -> Transformer:
    """A copy of the tree of modules, hooks included, with the model's own weights and tables."""
    shared = (*model.parameters(), *model.buffers())
    return copy.deepcopy(model, {id(tensor): tensor for tensor in shared})
