"""Exports to ONNX and for Argos Translate, from the command line to text."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.test_argos import as_argos, installed
from tests.system.running import complaint, run_headway


@pytest.fixture(scope="module")
def texts(corpus) -> list[str]:
    lines = corpus.file("test.src").read_text().splitlines()
    return [*lines[:30], "", "  cat   dog ", "ｃａｔ ▁ x", "cat " * 40]


@pytest.fixture(scope="module")
def folder(trained, tmp_path_factory) -> Path:
    pytest.importorskip("onnxruntime")
    folder = tmp_path_factory.mktemp("onnx") / "exported"
    outcome = run_headway("export", trained, "--to", "onnx", "--output", folder)
    assert outcome.code == 0, outcome.err
    return folder


@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_exported_program_prints_what_translate_prints(trained, folder, texts, beam_size):
    lines = "".join(f"{text}\n" for text in texts)
    theirs = subprocess.run(
        [sys.executable, "-I", folder / "translate.py", "--beam-size", str(beam_size)],
        input=lines.encode(),
        capture_output=True,
        check=True,
    )
    ours = run_headway("translate", trained, "--beam-size", beam_size, input_=lines)
    assert ours.code == 0, ours.err
    assert theirs.stdout.decode() == ours.out


def test_a_package_for_argos_translates_as_translate_does(with_languages, corpus, tmp_path):
    """Argos's length penalty is another one, so its own search may find something else now and then."""
    file = tmp_path / "de-en.argosmodel"
    outcome = run_headway("export", with_languages, "--to", "argos", "--output", file)
    assert outcome.code == 0, outcome.err
    lines = corpus.file("test.src").read_text()
    options = ["--beam-size", 4, "--length-penalty", 0]
    wanted = run_headway("translate", with_languages, *options, input_=lines).out.splitlines()
    folder = installed(file, tmp_path / "here")
    assert as_argos(folder, lines.splitlines(), length_penalty=0) == wanted
    searched = as_argos(folder, lines.splitlines())
    assert sum(theirs != ours for theirs, ours in zip(searched, wanted, strict=True)) <= 5


def test_quantization_is_not_of_onnx(trained, tmp_path):
    refused = complaint("export", trained, "--to", "onnx", "--quantization", "int8", "--output", tmp_path / "x")
    assert "--quantization" in refused
    assert list(tmp_path.iterdir()) == []
