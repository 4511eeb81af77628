"""The door from the core to the rooms above it: methods of `Translator` that these rooms define."""

from collections.abc import Callable
from importlib import import_module
from types import MethodType
from typing import Any

from headway.devices import need_torch


class Above:
    """A method whose function has the same name in a module above the core, which is imported at the first access.
    Raises UserError where that needs torch and there is none."""

    def __init__(self, module: str) -> None:
        self.module = module

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type | None = None) -> Callable[..., Any]:
        try:
            function = getattr(import_module(self.module), self._name)
        except ModuleNotFoundError:
            need_torch(self._name)
            raise
        return function if instance is None else MethodType(function, instance)
