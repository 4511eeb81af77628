"""The door from the core to the rooms above it: methods of `Translator` that these rooms define."""

from collections.abc import Callable
from importlib import import_module
from types import MethodType
from typing import Any

from headway.errors import NEEDS_TORCH, UserError


class Above:
    """A method whose function has the same name in a module above the core, which is imported at the first access.
    Raises UserError where the module needs torch, and it isn't installed."""

    def __init__(self, module: str) -> None:
        self.module = module

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type | None = None) -> Callable[..., Any]:
        try:
            function = getattr(import_module(self.module), self._name)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise UserError(f"{self._name} {NEEDS_TORCH}") from None
        return function if instance is None else MethodType(function, instance)
