"""What needs torch says so in one line, with the command that installs it."""

import pytest

from tests.runtime.conftest import MODEL, TEXTS, headway

pytestmark = pytest.mark.runtime
REMEDY = "needs torch, which is not installed: pip install 'headway[torch]'"


@pytest.mark.parametrize(
    "command",
    [
        "train recipe.yaml",
        f"train --resume {MODEL.with_name('run')}",
        "plan recipe.yaml",
        f"export {MODEL} --to huggingface --output OUT",
        f"export {MODEL} --to onnx --output OUT",
        f"average {MODEL.with_name('run')} --output OUT",
        "import opus --output OUT",
        "draw masks",
    ],
)
def test_a_command(command, tmp_path):
    done = headway(*command.replace("OUT", str(tmp_path / "out")).split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"headway: `headway {command.split()[0]}` {REMEDY}\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options",
    [
        ("--engine", "torch"),
        ("--sample", "seed=7"),
        ("--ensemble", MODEL),
        ("--glossary", "TERMS"),
    ],
    ids=lambda options: options[0],
)
def test_an_option_of_translating(options, tmp_path):
    terms = tmp_path / "terms.tsv"
    terms.write_text("Hund\thound\n", encoding="utf-8")
    given = [terms if one == "TERMS" else one for one in options]
    done = headway("translate", MODEL, *given, text=TEXTS[0])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].endswith(REMEDY)
    assert "Traceback" not in done.stderr


def test_inspecting():
    done = headway("inspect", MODEL, TEXTS[0])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].endswith(REMEDY)


@pytest.mark.parametrize(("package", "name"), [("headway", "Transformer"), ("headway.model", "attend")])
def test_a_name(package, name):
    with pytest.raises(ImportError, match=r"pip install 'headway\[torch\]'"):
        getattr(__import__(package, fromlist=[name]), name)
