"""The house: who may import whom, no circles, and light things stay light."""

import ast
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from headway.translator import Translator
from headway.translator.above import Above

SOURCE = Path(__file__).parent.parent / "src" / "headway"
ORDER = (
    ("errors", "languages", "lazy", "kernels"),
    ("devices", "threads", "model", "text", "evaluation", "corpora", "decoding.options"),
    ("storage", "plain"),
    ("data",),
    ("decoding",),
    ("translator",),
    ("recipe",),
    ("training",),
    ("insight",),
    ("page", "interop", "documents"),
    ("serving", "cluster", "bench"),
    ("cli",),
)
"""Every room, after those that it may import; rooms of one row don't know each other. `decoding.options` has a place of
its own, because storage checks `decoding.json` by it."""
CORE = {
    *(
        "model",
        "plain",
        "kernels",
        "text",
        "data",
        "decoding",
        "storage",
        "evaluation",
        "translator",
        "recipe",
        "training",
    )
}
ABOVE_THE_CORE = {"insight", "page", "interop", "documents", "serving"}
KNOW_NO_ROOM = {"text", "evaluation", "corpora"}
KNOW = {"model": {"kernels"}, "plain": {"model"}, "decoding.options": set()}
"""Rooms that know fewer others than their row would let them."""
ANYWHERE = {"errors", "languages", "lazy"}
DOORS = {"inspect", "word_order", "translate_document", "translate_documents"}
"""Methods of `Translator` that rooms above the core define, by its only door to them (translator/above.py)."""
MOST_LOADED = {"headway.training.optim": 50, "headway.decoding": 25, "headway.translator": 70}
"""Modules of headway, itself included, that are loaded with these, at most."""


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
    name = module.removeprefix("headway.")
    return name if name == "decoding.options" else name.split(".")[0]


def allowed(room: str) -> set[str]:
    if room == "kernels":
        return {room}
    if room in KNOW_NO_ROOM:
        return ANYWHERE | {room}
    row = next(number for number, rooms in enumerate(ORDER) if room in rooms)
    return KNOW.get(room, {one for rooms in ORDER[:row] for one in rooms}) | ANYWHERE | {room}


def loaded(script: str) -> set[str]:
    """The modules that a process has loaded after a script."""
    code = f"import sys\n{script}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("module", sorted(MODULES.keys() - {"headway", "headway.__main__"}))
def test_who_imports_whom(module):
    assert {room_of(one) for one in imported(MODULES[module])} <= allowed(room_of(module))


def test_commands_alone_set_the_threads():
    """A library leaves them to the program that uses it."""
    assert {
        room_of(module)
        for module in MODULES.keys() - {"headway", "headway.__main__"}
        if "use_threads" in Path(MODULES[module]).read_text(encoding="utf-8") and module != "headway.threads"
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


def test_the_core_knows_nothing_above_it():
    """At no level of a file, and not by the text of a name either, except the doors of `Translator`."""
    doors = set()
    for module, file in MODULES.items():
        if module == "headway" or room_of(module).split(".")[0] not in CORE:
            continue
        assert not {room_of(one) for one in imported(file)} & ABOVE_THE_CORE, module
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and node.value in MODULES and room_of(str(node.value)) in ABOVE_THE_CORE:
                doors.add((module, node.value))
    assert doors == {
        ("headway.translator.translator", "headway.page.inspecting"),
        ("headway.translator.translator", "headway.documents.translator"),
    }
    assert {name for name, one in vars(Translator).items() if isinstance(one, Above)} == DOORS
    for name in DOORS:
        assert getattr(Translator, name).__module__ == vars(Translator)[name].module


@pytest.mark.parametrize("module", MOST_LOADED)
def test_a_door_of_the_core_loads_little(module):
    ours = {name for name in loaded(f"import {module}") if name == "headway" or name.startswith("headway.")}
    assert len(ours) <= MOST_LOADED[module], sorted(ours)


@pytest.mark.parametrize("module", ["headway", "headway.cli", "headway.storage", "headway.decoding"])
def test_torch_is_not_loaded_by(module):
    assert not loaded(f"import {module}") & {"torch", "sacrebleu", "sentencepiece"}


@pytest.mark.parametrize("module", ["headway.translator", "headway.serving.server"])
def test_what_only_some_requests_need_is_not_loaded_by(module):
    assert not loaded(f"import {module}") & {"torch", "sacrebleu", "matplotlib", "headway.insight.record"}


def test_no_two_classes_have_one_name():
    names = Counter(
        node.name
        for file in MODULES.values()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize(
    "package",
    [
        "headway",
        "headway.model",
        "headway.decoding",
        "headway.storage",
        "headway.insight",
        "headway.page",
    ],
)
def test_names_that_load_when_they_are_asked_for_are_there(package):
    module = import_module(package)
    assert set(module.__all__) <= set(dir(module))
    assert all(getattr(module, name) is not None for name in module.__all__)
