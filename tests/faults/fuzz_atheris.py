"""The inputs of tests/faults/fuzzing.py, chosen by what they reach in our code, until it is stopped.

    python tests/faults/fuzz_atheris.py FOLDER TARGET [options of libFuzzer, such as -max_total_time=600]

Needs atheris (https://github.com/google/atheris, Linux and macOS). An input that fails is left in FOLDER.
"""

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["headway"]):
    from hypothesis import given

    from tests.faults.fuzzing import Trial, limit_memory

folder, target, *options = sys.argv[1:]
trial = Trial(Path(folder), target)


@given(trial.inputs)
def run(data: bytes) -> None:
    trial(data)


limit_memory()
atheris.Setup([sys.argv[0], "-len_control=0", "-max_len=4096", *options], run.hypothesis.fuzz_one_input)
atheris.Fuzz()
