"""Packages whose names are loaded when they are asked for, so that importing one doesn't load torch (PEP 562)."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from headway.errors import NEEDS_TORCH


def lazy_names(package: str, **modules: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package. modules: for each module of the package the names that it defines,
    separated by spaces. Where torch isn't installed, the ImportError of a name that needs it says how to install it."""
    home = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(f"{package}.{home[name]}"), name)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise ModuleNotFoundError(f"{package}.{name} {NEEDS_TORCH}", name="torch") from None

    def shown() -> list[str]:
        own = vars(sys.modules[package])
        return sorted({*home, *own["__all__"], *(name for name in own if name.startswith("__"))})

    return load, shown
