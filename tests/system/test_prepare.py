"""`headway prepare` as a person runs it: killed, stopped, and trained on."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.system.conftest import TINY, reversed_pairs
from tests.system.running import complaint, run_headway

SMALL_CHUNKS = """
import sys
from headway.cli import main
from headway.data import corpus as corpus_module
from headway.data import shards
if __name__ == "__main__":
    corpus_module.LINES, shards.CHUNKS = 50, 3
    main()
"""
"""The program, with text in so many small parts that it can be killed between them."""
FILTERS = {"overlap": "pair", "copies": True, "duplicates": "pair"}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A recipe and its text; the folder `whole` is prepared from it."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "program.py").write_text(SMALL_CHUNKS)
    for split, count, seed in (("train", 8_000, 1), ("valid", 20, 2)):
        pairs = reversed_pairs(count, seed)
        for side, suffix in ((0, "src"), (1, "tgt")):
            (folder / f"{split}.{suffix}").write_text("".join(f"{pair[side]}\n" for pair in pairs))
    document = {
        "data": {
            "train": {"source": "tra*.src", "target": "tra*.tgt"},
            "valid": {"source": "valid.src", "target": "valid.tgt"},
            "filters": FILTERS,
            "source_language": "src",
            "target_language": "tgt",
        },
        "tokenizer": {"vocab_size": 300},
        "training": {"max_steps": 6, "tokens_per_batch": 500, "validate_every": 3, "warmup_steps": 2},
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(document))
    done = subprocess.run(command("whole", 1), cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def command(output: object, processes: int) -> list[str]:
    return [
        sys.executable,
        "program.py",
        "prepare",
        "recipe.yaml",
        "--output",
        str(output),
        "--processes",
        str(processes),
    ]


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def chunks_done(folder: Path) -> int:
    try:
        return json.loads((folder / "work" / "shards.json").read_bytes())["chunks"]
    except OSError:
        return 0


def begun(place: Path, output: Path, processes: int, least: int) -> subprocess.Popen[str]:
    """At work, with that many chunks more than before."""
    before = chunks_done(output)
    process = subprocess.Popen(command(output, processes), cwd=place, stderr=subprocess.PIPE, text=True)
    while chunks_done(output) < before + least:
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.001)
    return process


@pytest.mark.parametrize("processes", [1, 3])
def test_killed_again_and_again_it_gives_the_same_bytes(processes, place, tmp_path):
    chance = random.Random(processes)
    output = tmp_path / "killed"
    for _ in range(4):
        process = begun(place, output, processes, chance.randrange(1, 25))
        time.sleep(chance.random() * 0.02)
        process.kill()
        process.communicate()
    done = subprocess.run(command(output, 4 - processes), cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "going on after" in done.stderr
    assert files(output) == files(place / "whole")


@pytest.mark.skipif(os.name == "nt", reason="no such signals here")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_a_line_that_says_how_to_go_on(number, place, tmp_path):
    process = begun(place, tmp_path / "out", 2, 3)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    [last] = [line for line in said.splitlines() if "go on with" in line]
    assert last.startswith(f"{number.name}: what is done is kept; go on with ")
    assert last.endswith(f"prepare recipe.yaml --output {tmp_path / 'out'}")
    assert "Traceback" not in said
    done = subprocess.run(command(tmp_path / "out", 1), cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert files(tmp_path / "out") == files(place / "whole")


def test_its_processes_end_with_it(place, tmp_path):
    process = begun(place, tmp_path / "out", 2, 1)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        process.kill()
        pytest.skip("no /proc here")
    started = [int(one) for one in children.read_text().split()]
    assert len(started) >= 2
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{one}").exists() and "Z" not in state(one) for one in started):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def state(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def losses(run: Path) -> list[tuple]:
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [(one["step"], one.get("loss"), one.get("valid_loss"), one.get("valid_bleu")) for one in entries]


def trained(place: Path, run: Path, *options: object):
    return run_headway("train", place / "recipe.yaml", "--out", run, *options, *TINY, cwd=place)


def test_a_run_on_the_folder_is_that_on_its_own_data_and_resumes_without_the_option(place, tmp_path):
    """Which is made by the same program, with its usual chunks and shards, of other bytes therefore."""
    shared = tmp_path / "prepared"
    assert run_headway("prepare", place / "recipe.yaml", "--output", shared, "--processes", 2).code == 0
    own = trained(place, tmp_path / "own")
    assert own.code == 0, own.err
    assert trained(place, tmp_path / "run", "--data", shared, "training.max_steps=3").code == 0
    assert not (tmp_path / "run" / "data").exists()
    assert run_headway("train", "--resume", tmp_path / "run", "training.max_steps=6").code == 0
    assert losses(tmp_path / "run") == losses(tmp_path / "own")
    translated = run_headway("translate", tmp_path / "run", input_="ant bee\n")
    assert translated.code == 0, translated.err

    more = ("train", "--resume", tmp_path / "run", "training.max_steps=9")
    assert "a resumed run can't change data.prepared" in complaint(*more, "data.prepared=null")
    file = shared / "train" / "00000" / "source.ids"
    whole = file.read_bytes()
    file.write_bytes(whole[::-1])
    assert f"{file}: isn't as it was prepared" in complaint(*more)
    file.write_bytes(whole)
    shutil.rmtree(shared)
    assert f"{shared}: no such folder; make it with `headway prepare" in complaint(*more)
    changed = yaml.safe_load((place / "recipe.yaml").read_text())
    (tmp_path / "train.src").write_text((place / "train.src").read_text() + "ant\n")
    (tmp_path / "train.tgt").write_text((place / "train.tgt").read_text() + "bee\n")
    for split in ("train", "valid"):
        for side, suffix in (("source", "src"), ("target", "tgt")):
            changed["data"][split][side] = str((tmp_path if split == "train" else place) / f"{split}.{suffix}")
    (tmp_path / "changed.yaml").write_text(yaml.safe_dump(changed))
    assert run_headway("prepare", tmp_path / "changed.yaml", "--output", shared).code == 0
    assert f"{shared}: was prepared from another recipe: data." in complaint(*more)
