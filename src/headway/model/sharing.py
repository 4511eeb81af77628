"""Copies of a model to look into or to change, while the model itself goes on working."""

from __future__ import annotations

import copy
from typing import TypeVar

from torch import nn

Module = TypeVar("Module", bound=nn.Module)


def sharing_copy(module: Module) -> Module:
    """A copy of the tree of modules with the module's own weights and tables.

    Each module of it is new and has registers of its own (of parameters, children, hooks), so that putting something
    else there leaves the original alone; what the registers hold is shared. Some 1 ms, where `copy.deepcopy` takes 20.
    """
    copied = copy.copy(module)
    for name, value in vars(copied).items():
        if isinstance(value, (dict, set)):
            vars(copied)[name] = value.copy()
    for name, child in list(copied._modules.items()):
        setattr(copied, name, child and sharing_copy(child))
    return copied
