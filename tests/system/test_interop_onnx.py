"""Exports to ONNX and for Argos Translate, from the command line to text."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.test_argos import as_argos, installed
from tests.system.conftest import complaint, run_headway


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


def test_a_package_for_argos_translates_as_translate_does(trained, texts, tmp_path):
    file = tmp_path / "src-tgt.argosmodel"
    outcome = run_headway("export", trained, "--to", "argos", "--output", file)
    assert outcome.code == 0, outcome.err
    sentences = texts[:30]
    ours = run_headway("translate", trained, "--json", input_="".join(f"{text}\n" for text in sentences))
    wanted = [json.loads(line)["text"] for line in ours.out.splitlines()]
    assert as_argos(installed(file, tmp_path / "here"), sentences) == wanted


def test_quantization_is_not_of_onnx(trained, tmp_path):
    refused = complaint("export", trained, "--to", "onnx", "--quantization", "int8", "--output", tmp_path / "x")
    assert "--quantization" in refused
    assert list(tmp_path.iterdir()) == []
