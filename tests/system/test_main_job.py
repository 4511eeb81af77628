"""The main job through the command line: train on two text files, translate, score."""

import json
import math
import subprocess
import sys
import time

import pytest
import sacrebleu

from tests.system.conftest import ROOT
from tests.system.running import run_headway


def test_help_is_quick():
    times = []
    for _ in range(3):
        start = time.monotonic()
        outcome = run_headway("--help")
        times.append(time.monotonic() - start)
        assert outcome.code == 0
    assert min(times) < 0.5
    assert all(command in outcome.out for command in ("demo", "train", "translate", "evaluate", "show", "data"))


@pytest.mark.parametrize("command", ["demo", "train", "translate", "evaluate", "show", "data"])
def test_every_command_has_help_with_an_example(command):
    outcome = run_headway(command, "--help")
    assert outcome.code == 0
    assert f"headway {command}" in outcome.out.split("Options:")[0].split("Usage:")[1].split("\n", 1)[1]


def test_version():
    assert run_headway("--version").out.strip().count(".") == 2


def test_the_reverse_task_is_learned(corpus, trained, tmp_path):
    output = tmp_path / "out.txt"
    outcome = run_headway("translate", trained, corpus.file("test.src"), "--output", output)
    assert outcome.code == 0
    found = output.read_text().splitlines()
    wanted = corpus.file("test.tgt").read_text().splitlines()
    assert len(found) == len(wanted)
    assert sum(a == b for a, b in zip(found, wanted, strict=True)) >= 95


def test_evaluate_prints_what_sacrebleu_says(corpus, trained, tmp_path):
    source, reference = corpus.file("test.src"), corpus.file("test.tgt")
    output = tmp_path / "hypotheses"
    outcome = run_headway(
        "evaluate", trained, "--source", source, "--reference", reference, "--output", output, "--json"
    )
    result = json.loads(outcome.out)
    hypotheses, references = output.read_text().splitlines(), reference.read_text().splitlines()
    assert result["bleu"] == sacrebleu.corpus_bleu(hypotheses, [references], force=True).score
    assert result["chrf"] == sacrebleu.corpus_chrf(hypotheses, [references]).score
    assert result["lines"] == 100
    text = run_headway("evaluate", trained, "--source", source, "--reference", reference).out
    assert f"BLEU {result['bleu']:.2f}" in text
    assert "tok:13a" in text


LINES = ["ant bee", "", "   ", "cat\u2028dog", "fox\r", "\ufeffgnu", "<eos> <pad>", "ant bee"]


def test_one_line_for_each_line(trained):
    outcome = run_headway("translate", trained, input_="\n".join(LINES) + "\n")
    lines = outcome.out.split("\n")
    assert outcome.code == 0
    assert lines[-1] == ""
    assert len(lines) == len(LINES) + 1
    assert lines[0] == lines[7] == "bee ant"
    assert lines[1] == lines[2] == ""
    assert lines[4] == "fox"


def test_a_missing_final_newline_and_no_input(trained):
    assert run_headway("translate", trained, input_="ant bee").out == "bee ant\n"
    assert run_headway("translate", trained, input_="").out == ""


def test_a_line_that_is_too_long_is_blank_and_told(trained):
    outcome = run_headway("translate", trained, input_="ant\n" + "ant bee " * 2000 + "\nbee\n")
    assert outcome.code == 2
    assert outcome.out == "ant\n\nbee\n"
    assert "line 2 has" in outcome.err
    assert "at most 1023" in outcome.err


def test_a_translation_that_is_cut_off_is_told(trained):
    outcome = run_headway("translate", trained, "--max-length", "1", input_="ant bee cat\n")
    assert outcome.code == 0
    assert "line 1 was cut off after 1 tokens" in outcome.err


def test_the_output_may_be_the_input(trained, tmp_path):
    file = tmp_path / "both.txt"
    file.write_text("ant bee\ncat\n")
    assert run_headway("translate", trained, file, "--output", file).code == 0
    assert file.read_text() == "bee ant\ncat\n"


def test_n_best(trained):
    outcome = run_headway("translate", trained, "--n-best", "2", "--beam-size", "3", input_="ant bee\ncat\n")
    rows = [line.split(" ||| ") for line in outcome.out.splitlines()]
    assert [row[0] for row in rows] == ["1", "1", "2", "2"]
    assert (rows[0][1], rows[2][1]) == ("bee ant", "cat")
    assert float(rows[0][2]) < 0


def test_without_a_command_the_help_is_shown():
    outcome = run_headway()
    assert outcome.code == 0
    assert outcome.out == run_headway("--help").out


def test_json_is_one_document_a_line(trained):
    outcome = run_headway("translate", trained, "--json", input_="ant bee\n\n")
    first, second = map(json.loads, outcome.out.splitlines())
    assert first["text"] == "bee ant"
    assert first["stopped"] == "eos"
    assert first["score"] < 0
    assert second == {**second, "text": "", "score": None, "stopped": "blank"}


def test_show(trained):
    text = run_headway("show", trained).out
    assert "src -> tgt" in text
    assert "d_model" in text
    document = json.loads(run_headway("show", trained, "--json").out)
    sizes = [math.prod(shape) for shape in document["weights"].values()]
    assert sum(sizes) == document["parameters"]
    assert document["model"]["d_model"] == 64


def test_a_reader_that_goes_away_is_no_defect(trained, tmp_path):
    (tmp_path / "in").write_text("ant\n" * 5000)
    command = f"'{sys.executable}' -m headway translate '{trained}' '{tmp_path / 'in'}' | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stdout == "ant\n"
    assert "Traceback" not in done.stderr
