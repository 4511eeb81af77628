"""Files of many lines through `headway translate`: columns, fields, shards, compressed outputs, killed jobs."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headway.data.compressed import open_bytes
from tests.system.conftest import reversed_pairs
from tests.system.running import complaint, run_headway

DOCS = Path(__file__).parents[2] / "docs"
SOURCES = [source for source, _ in reversed_pairs(3000, seed=9)]


def text(path):
    with open_bytes(path) as stream:
        return stream.read().decode()


def write(path, content):
    with open_bytes(path, "wb") as stream:
        stream.write(content.encode())


@pytest.fixture(scope="module")
def many(trained, tmp_path_factory):
    """Two chunks of lines, and what they become."""
    folder = tmp_path_factory.mktemp("many")
    source = folder / "many.txt"
    source.write_text("".join(f"{line}\n" for line in SOURCES))
    outcome = run_headway("translate", trained, source, "--output", folder / "out.txt", "--beam-size", 1)
    assert outcome.code == 0
    return source, (folder / "out.txt").read_text()


def test_columns_and_fields(trained, tmp_path):
    write(tmp_path / "in.tsv.gz", "1\tant bee\tx\n2\n\n3\tcat\n")
    outcome = run_headway("translate", trained, tmp_path / "in.tsv.gz", "--column", 2, "--output", tmp_path / "o.zst")
    assert outcome.code == 2
    assert text(tmp_path / "o.zst") == "bee ant\n\n\ncat\n"
    assert "line 2 has only 1 column; its translation is left blank" in outcome.err
    lines = [json.dumps({"text": "ant bee"}), "{}", json.dumps({"text": "cat\ndog"})]
    write(tmp_path / "in.jsonl.xz", "\n".join(lines))
    outcome = run_headway("translate", trained, tmp_path / "in.jsonl.xz", "--column", "text")
    assert (outcome.code, outcome.out) == (2, "bee ant\n\ndog cat\n")
    assert "say where the source texts are: --column N" in complaint("translate", trained, tmp_path / "in.tsv.gz")
    assert "columns are counted from 1" in complaint("translate", trained, tmp_path / "in.tsv.gz", "--column", 0)


def test_shards_joined_by_cat(trained, many, tmp_path):
    source, wanted = many
    packed = tmp_path / "many.gz"
    write(packed, source.read_text())
    joined = b""
    for number in (1, 2, 3):
        output = tmp_path / f"{number}.gz"
        run_headway("translate", trained, packed, "--shard", f"{number}/3", "--output", output, "--beam-size", 1)
        joined += output.read_bytes()
    (tmp_path / "joined.gz").write_bytes(joined)
    assert text(tmp_path / "joined.gz") == wanted
    for shard in ("0/3", "4/3", "1", "a/b"):
        assert f"--shard {shard}: must be I/N" in complaint("translate", trained, source, "--shard", shard)
    assert "--shard needs a FILE" in complaint("translate", trained, "--shard", "1/2")


def test_what_resume_needs(trained, many, tmp_path):
    source, _ = many
    for output in ((), ("--output", "/dev/null")):
        assert "--resume needs --output FILE" in complaint("translate", trained, source, "--resume", *output)
    assert "several files need --cluster" in complaint("translate", trained, source, source)
    assert run_headway("translate", trained, source, "--output", "/dev/null", "--beam-size", 1).code == 0


def killed(command, output, until):
    """Starts the command and kills it once `until` is true of its journal."""
    process = subprocess.Popen([sys.executable, "-m", "headway", *map(str, command)], stderr=subprocess.DEVNULL)
    journal = output.with_name(f"{output.name}.partial.json")
    while process.poll() is None and not until(journal):
        time.sleep(0.01)
    alive = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    return alive


@pytest.mark.parametrize("options", [["--n-best", "2", "--beam-size", "2"], ["--json", "--precision", "bf16"]])
def test_a_killed_job_goes_on_from_a_pipe_too(trained, many, tmp_path, options):
    source, _ = many
    lines = source.read_text() + "ant bee " * 2000 + "\n" + source.read_text()
    (tmp_path / "in").write_text(lines)
    command = ["translate", trained, tmp_path / "in", *options]
    undisturbed = run_headway(*command, "--output", tmp_path / "whole.gz")
    assert undisturbed.code == 2
    output = tmp_path / "out.gz"
    assert killed([*command, "--output", output], output, lambda journal: journal.exists())
    assert not output.exists()
    refused = complaint(*command, "--max-length", 3, "--output", output, "--resume")
    assert "other settings: options" in refused
    outcome = run_headway(*command, "--output", output, "--resume")
    assert outcome.code == 2
    assert "continues after line 2,048" in outcome.err
    assert "line 3001 has" in outcome.err
    assert output.read_bytes() == (tmp_path / "whole.gz").read_bytes()


def test_a_model_with_a_shortlist(trained, corpus, tmp_path):
    """Of a task whose words become themselves: the list has what is needed, and the translations stay."""
    text = ("--source", corpus.file("train.src"), "--target", corpus.file("train.tgt"))
    made = run_headway("shortlist", trained, *text, "--output", tmp_path / "short")
    assert made.code == 0, made
    plain, short = (
        run_headway("translate", model, "--beam-size", 4, input_="\n".join(SOURCES[:50]))
        for model in (trained, tmp_path / "short")
    )
    assert short.code == 0, short
    assert sum(a == b for a, b in zip(plain.out.splitlines(), short.out.splitlines(), strict=True)) >= 48
    assert "is there already" in complaint("shortlist", trained, *text, "--output", tmp_path / "short")
    (tmp_path / "empty").write_text("\n\n")
    blank = ("--source", tmp_path / "empty", "--target", tmp_path / "empty")
    assert "no pair with text" in complaint("shortlist", trained, *blank, "--output", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_the_program_with_several_processes(trained, tmp_path):
    """Of the page in both languages."""
    pages = [DOCS / f"translating-at-scale{language}.md" for language in ("", ".ko")]
    [code, same] = [re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL) for page in pages]
    assert code == same
    (tmp_path / "program.py").write_text(code[0])
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "mine").symlink_to(trained)
    (tmp_path / "input.de").write_text("".join(f"{line}\n" for line in SOURCES[:250]))
    command = [sys.executable, "program.py"]
    outcome = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)
    wanted = run_headway("translate", trained, tmp_path / "input.de")
    assert outcome.stdout == wanted.out


def test_a_document_is_known_by_its_name(trained, tmp_path):
    film = "1\n00:00:01,000 --> 00:00:02,500\n<i>ant bee</i>\n\n2\n00:00:03,000 --> 00:00:04,000\ncat\ndog\n"
    file, made = tmp_path / "film.srt", tmp_path / "made.srt"
    file.write_text(film)
    outcome = run_headway("translate", trained, file, "--output", made)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert made.read_text() == film.replace("ant bee", "bee ant").replace("cat\ndog", "dog cat")
    assert run_headway("translate", trained, "-", "--as", "srt", input_=film).out == made.read_text()
    assert run_headway("translate", trained, file, "--as", "lines").out.count("\n") == film.count("\n")
    for flag, value in (("--n-best", 2), ("--column", "text"), ("--server", "http://localhost:1")):
        given = [file] if flag == "--server" else [trained, file, "--as", "srt"]
        assert f"{flag} is for lines, and {file} is read as srt; see --as" in complaint(
            "translate", *given, flag, value
        )
    for name in ("a.vtt", "a.pdf"):
        said = complaint("translate", trained, file, "--output", tmp_path / name)
        assert f"{tmp_path / name}: {file} is read as srt, so srt is written; give a name that ends in .srt" in said
    (tmp_path / "lines").write_text("ant\n")
    said = complaint("translate", trained, tmp_path / "lines", file, "--n-best", 2)
    assert f"--n-best is for lines, and {file} is read as srt" in said
    assert "--as doc: choose lines, html" in complaint("translate", trained, file, "--as", "doc")
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    assert "convert it first: pdftotext" in complaint("translate", trained, tmp_path / "a.pdf")
    file.write_text("no times\n")
    assert f"{file}: has no times such as" in complaint("translate", trained, file, "--output", made)
    assert made.read_text().startswith("1\n")
