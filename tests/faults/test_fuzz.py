"""Spoilt model directories by the thousand: no crash, no hang over 5 seconds, less than a gigabyte.

HEADWAY_FUZZ_INPUTS=100000 for more, HEADWAY_FUZZ_SEED=7 for others.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.fuzzing import TARGETS

ROOT = Path(__file__).parent.parent.parent
INPUTS = int(os.environ.get("HEADWAY_FUZZ_INPUTS", "20000"))
SEED = os.environ.get("HEADWAY_FUZZ_SEED", "1")


@pytest.mark.parametrize("target", TARGETS)
def test_spoilt(tmp_path, target):
    count = str(INPUTS // len(TARGETS))
    command = [sys.executable, "-m", "tests.faults.fuzzing", str(tmp_path), count, target, "--seed", SEED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, f"the input is in {tmp_path}\n{done.stdout}{done.stderr}"
    assert "'refused'" in done.stdout
