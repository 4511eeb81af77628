"""Packages whose names are loaded when they are asked for, so that importing one doesn't load torch (PEP 562)."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_names(package: str, **modules: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package. modules: for each module of the package the names that it defines,
    separated by spaces."""
    home = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name in home:
            return getattr(import_module(f"{package}.{home[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: sorted({*home, *vars(sys.modules[package])})
