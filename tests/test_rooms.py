"""The house: who may import whom, and that light things stay light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "headway"
ANYWHERE = {"errors"}
"""Vocabulary that every room may use."""
DEVICES = {"devices"}
MAY_IMPORT = {
    "model": set(),
    "text": set(),
    "evaluation": set(),
    "corpora": set(),
    "decoding": {"model"},
    "storage": {"model", "text", "decoding"},
    "insight": {"model", "text", "decoding"},
    "glass": {"insight"},
    "documents": set(),
    "interop": {"model", "text", "storage", "decoding"},
    "translator": {"storage", "text", "decoding", "insight", "glass", "documents", "interop", *DEVICES},
    "training": {"model", "text", "storage", "translator", "evaluation", *DEVICES},
    "serving": {"translator", "insight", "glass", "documents", *DEVICES},
    "devices": set(),
}


def imported_rooms(file: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("headway.")}
    return rooms


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_who_imports_whom(room):
    files = [SOURCE / f"{room}.py"] if (SOURCE / f"{room}.py").exists() else list((SOURCE / room).rglob("*.py"))
    for file in files:
        assert imported_rooms(file) <= MAY_IMPORT[room] | ANYWHERE | {room}, file


def test_every_room_has_its_rule():
    rooms = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert rooms - {"__init__", "__main__", "cli", "errors", "__pycache__"} <= set(MAY_IMPORT)


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
