"""A translation that is killed twenty times, through the command line, is the undisturbed one to the byte."""

import random
import time

from tests.system.conftest import reversed_pairs, run_headway
from tests.system.test_translating_files import killed


def test_twenty_kills_at_random_moments(trained, tmp_path):
    lines = "".join(f"{source}\n" for source, _ in reversed_pairs(3000, seed=9))
    (tmp_path / "in").write_text(lines * 20)
    command = ["translate", trained, tmp_path / "in", "--beam-size", 1]
    assert run_headway(*command, "--output", tmp_path / "whole").code == 0
    chance, kills, output = random.Random(4), 0, tmp_path / "out"
    while kills < 20:
        end = time.monotonic() + chance.uniform(0, 6)
        kills += killed([*command, "--output", output, "--resume"], output, lambda _, end=end: time.monotonic() > end)
        if output.exists():  # it was done before its end had come; begin anew
            assert output.read_bytes() == (tmp_path / "whole").read_bytes()
            output.unlink()
    assert run_headway(*command, "--output", output, "--resume").code == 0
    assert output.read_bytes() == (tmp_path / "whole").read_bytes()
