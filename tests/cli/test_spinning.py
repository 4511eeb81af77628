"""How long OpenMP's threads wait busily is set before torch is loaded, when its OpenMP reads it."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys

class Loading:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print(os.environ.get("GOMP_SPINCOUNT"))
            sys.stdout.flush()
            os._exit(0)

sys.meta_path.insert(0, Loading())
from headway.cli import main
main()
"""


@pytest.mark.parametrize("command", [["train", "multi30k-de-en"], ["demo", "--out", "nothing"]])
@pytest.mark.parametrize(
    ("given", "wanted"), [({}, "2000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "None")]
)
def test_when_torch_is_loaded_spinning_is_bounded(tmp_path, command, given, wanted):
    clean = {key: value for key, value in os.environ.items() if key not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    program = [sys.executable, "-c", PROGRAM, *command]
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path, env={**clean, **given}, check=True)
    assert done.stdout.strip() == wanted
