"""`import headway`: the names that it shows, what they say they are, and training from Python."""

import pytest
import typer

import headway
from headway.training import processes
from tests.translator.test_translator import translator


def test_names_of_the_front_door():
    shown = [name for name in dir(headway) if not name.startswith("_")]
    assert shown == ["ModelConfig", "Transformer", "Translator", "train"]
    assert [getattr(headway, name).__name__ for name in shown] == shown
    with pytest.raises(AttributeError, match="Colour"):
        _ = headway.Colour


def test_each_says_what_it_is():
    door = translator()
    count = sum(parameter.numel() for parameter in door.model.parameters())
    assert repr(door) == f"Translator(en -> en, {count:,} parameters, torch in fp32 on cpu)"
    assert f"\n  {count:,} parameters\n" in repr(door.model)
    assert f"d_model={door.model.config.d_model}" in repr(door.model.config)


def test_training_from_python_is_the_command(tmp_path):
    """With the arguments of the command line, by their names; what it returns is the run directory."""
    for side, text in (("de", "ein Hund\neine Katze\n"), ("en", "a dog\na cat\n")):
        (tmp_path / f"text.{side}").write_text(text * 30)
    source, target = [tmp_path / "text.de"], [tmp_path / "text.en"]
    changes = ["training.max_steps=2", "training.device=cpu", "training.finish=false"]
    run = headway.train(
        changes, source=source, target=target, valid_source=source, valid_target=target, output=tmp_path / "run"
    )
    assert run == tmp_path / "run"
    assert len(headway.Translator.load(run).translate(["ein Hund"], beam_size=1)) == 1
    with pytest.raises(ValueError, match="give one of: a RECIPE"):
        headway.train([])


def test_training_in_several_processes_from_python_is_the_command(tmp_path, monkeypatch):
    """Whatever arguments the program has that calls it."""
    monkeypatch.setattr("sys.argv", ["mine.py", "--epochs", "3"])
    launched, codes = [], [0, 0, 3]
    monkeypatch.setattr(processes, "launch", lambda given, count: (launched.append((given, count)), codes.pop(0))[1])
    text, run, recipe = tmp_path / "text", tmp_path / "run", tmp_path / "mine.yaml"
    text.write_text("a dog\n" * 30)
    sides = f"{{source: {text}, target: {text}}}"
    recipe.write_text(f"data: {{train: {sides}, valid: {sides}, source_language: de, target_language: en}}\n")
    changes = ["training.max_steps=2", "training.device=cpu"]
    assert headway.train([str(recipe), *changes], output=run, processes=2, threads=1) == run
    given = ["train", str(recipe), *changes, "--output", str(run), "--processes", "2", "--threads", "1"]
    assert launched.pop() == (given, 2)
    others = {"valid_source": [text], "valid_target": [text], "processes": 2}
    changes += ["data.source_language=de", "data.target_language=en"]
    assert headway.train(changes, source=[text], target=[text], output=run, **others) == run
    assert launched.pop() == (["train", "--resume", str(run), "--processes", "2"], 2)
    codes.insert(0, 0)
    assert headway.train(["training.max_steps=5"], source=[text], target=[text], resume=run, **others) == run
    assert launched.pop() == (["train", "training.max_steps=5", "--resume", str(run), "--processes", "2"], 2)
    with pytest.raises(typer.Exit) as ended:
        headway.train(["training.max_steps=4"], resume=run, processes=2)
    assert ended.value.exit_code == 3
    assert launched.pop() == (["train", "training.max_steps=4", "--resume", str(run), "--processes", "2"], 2)
