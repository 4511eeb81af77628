"""Names that are imported when they are asked for: those of packages, so that importing one doesn't load torch
(PEP 562), and functions and classes of the user."""

import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from headway.errors import NEEDS_TORCH, UserError


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


def load_named(name: str, what: str, kind: str) -> Any:
    """Imports a function or class of the user by its name, such as `my_metrics:exact`, from the current folder or else
    from the installed packages. what: its use, such as `metric`; kind: `function` or `class`. Raises UserError."""
    module_name, _, own_name = name.partition(":")
    if not all(part.isidentifier() for part in (own_name, *module_name.split("."))):
        raise UserError(f"{what} {name!r}: must be module:{kind}, such as my_module:{own_name or 'name'}")
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, folder)
    try:
        with redirect_stdout(sys.stderr):
            module = import_module(module_name)
    except (Exception, SystemExit) as error:
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        problem = f"module {module_name} can't be imported: {described_error(error)}"
        if absent and f"{module_name}.".startswith(f"{absent}."):
            problem = f"there is no module {absent} in {folder} or among the installed packages"
        raise UserError(f"{what} {name}: {problem}") from None
    found = getattr(module, own_name, None)
    if not (isinstance(found, type) if kind == "class" else callable(found)):
        problem = f"has no {kind}" if found is None else f"has no {kind}, but a value, of the name"
        raise UserError(f"{what} {name}: module {module_name} {problem} {own_name}")
    return found


def described_error(error: BaseException) -> str:
    """Kind and text of an error, and the file and line that raised it."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)[1:]  # without this file's own
    places = [frame for frame in frames if not frame.filename.startswith("<frozen importlib")]
    if not places or isinstance(error, SyntaxError):  # whose text has the place
        return text
    return f"{text} ({Path(places[-1].filename).name}, line {places[-1].lineno})"
