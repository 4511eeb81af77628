"""The house: who may import whom, no circles, and light things stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "headway"
ORDER = (
    ("errors", "languages", "kernels"),
    ("devices", "threads", "model", "text", "evaluation", "corpora"),
    ("decoding",),
    ("storage",),
    ("insight",),
    ("glass", "interop", "documents"),
    ("translator", "web"),
    ("training", "serving", "cluster"),
    ("cli",),
)
"""Every room, after those that it may import; rooms of one row don't know each other."""
KNOW_NO_ROOM = {"text", "evaluation", "corpora"}
KNOW = {"model": {"kernels"}, "decoding": {"kernels", "model", "text"}}
"""Rooms that know fewer others than their row would let them."""
ANYWHERE = {"errors", "languages"}


def modules() -> dict[str, Path]:
    """Every module of ours by its name."""
    found = {}
    for file in SOURCE.rglob("*.py"):
        parts = file.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


MODULES = modules()


def imported(file: Path) -> set[str]:
    """The modules of ours that a file imports, wherever in it, for types alone as well."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names |= {
                inner if (inner := f"{node.module}.{alias.name}") in MODULES else str(node.module)
                for alias in node.names
            }
    return names & MODULES.keys() - {"headway"}  # which has the version, and loads nothing by itself


def room_of(module: str) -> str:
    return module.split(".")[1]


def allowed(room: str) -> set[str]:
    if room == "kernels":
        return {room}
    if room in KNOW_NO_ROOM:
        return ANYWHERE | {room}
    row = next(number for number, rooms in enumerate(ORDER) if room in rooms)
    return KNOW.get(room, {one for rooms in ORDER[:row] for one in rooms}) | ANYWHERE | {room}


@pytest.mark.parametrize("module", sorted(MODULES.keys() - {"headway", "headway.__main__"}))
def test_who_imports_whom(module):
    assert {room_of(one) for one in imported(MODULES[module])} <= allowed(room_of(module))


def test_commands_alone_set_the_threads():
    """A library leaves them to the program that uses it."""
    assert {
        room_of(module)
        for module in MODULES.keys() - {"headway", "headway.__main__"}
        if "headway.threads" in imported(MODULES[module])
    } == {"cli"}


def test_every_room_has_its_place():
    rooms = {room_of(module) for module in MODULES if module not in ("headway", "headway.__main__")}
    assert rooms == {room for row in ORDER for room in row}


def test_no_module_imports_itself_by_way_of_others():
    """Found by taking away, again and again, the modules that import none of those that are left."""
    left = {module: imported(file) - {module} for module, file in MODULES.items() if module != "headway"}
    while free := [module for module, needs in left.items() if not needs & left.keys()]:
        for module in free:
            del left[module]
    assert not left, f"circles among {', '.join(sorted(left))}"


@pytest.mark.parametrize("module", ["headway", "headway.cli"])
def test_torch_is_not_loaded_by(module):
    script = (
        f"import sys, {module}; sys.exit(any(name in sys.modules for name in ('torch', 'sacrebleu', 'sentencepiece')))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_names_of_the_front_door():
    import headway

    assert headway.ModelConfig.__name__ == "ModelConfig"
    assert headway.Transformer.__name__ == "Transformer"
    assert headway.Translator.__name__ == "Translator"
    with pytest.raises(AttributeError, match="Colour"):
        _ = headway.Colour
