"""The ES modules of the page and of the engine, as they lie in an export: `glass/` and `web/`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from headway.errors import UserError
from headway.glass.standalone import joined

ON_IDS = "web/on_ids.js"


def modules() -> dict[str, str]:
    """The text of each by its path. Raises UserError."""
    found = {}
    for room, folder in (("glass", "headway.glass"), ("web", "headway.web")):
        for one in (files(folder) / "page").iterdir():
            if one.name.endswith(".js"):
                found[f"{room}/{one.name}"] = one.read_text(encoding="utf-8")
    return {**found, "web/kernel_code.js": kernel_module()}


def script(entry: str) -> str:
    """One script of a module and all that it imports. Raises UserError."""
    return joined(modules(), entry)


@cache
def kernel_module() -> str:
    """web/kernel_code.js, which exports the bytes of kernel.wat, assembled. Raises UserError.

    It is assembled when a model is exported, not when the wheel is made: whoever exports has the extra `web` anyway, to
    check what was exported, and so a repository and a wheel hold the same files.
    """
    try:
        from wasmtime import wat2wasm
    except ImportError:
        raise UserError("wasmtime is not installed: pip install 'headway[web]'") from None
    text = (files("headway.web") / "page" / "kernel.wat").read_text(encoding="utf-8")
    numbers = ", ".join(map(str, wat2wasm(text)))
    return f"// Made of kernel.wat.\n\nexport const code = Uint8Array.of({numbers});\n"
