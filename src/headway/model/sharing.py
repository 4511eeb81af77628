"""Copies of a model to look into or to change, while the model itself stays in use."""

import copy
from typing import TypeVar

from torch import nn

Module = TypeVar("Module", bound=nn.Module)


def sharing_copy(module: Module) -> Module:
    """A copy of the tree of modules that shares its weights and tables. Parameters, children and hooks of the copy can
    be replaced without effect on the original. Takes some 1 ms, `copy.deepcopy` 20."""
    copied = copy.copy(module)
    for name, value in vars(copied).items():
        if isinstance(value, (dict, set)):
            vars(copied)[name] = value.copy()
    for name, child in list(copied._modules.items()):
        setattr(copied, name, child and sharing_copy(child))
    return copied
