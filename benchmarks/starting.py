"""How long does `headway translate` take from its start to the first translation?

    python benchmarks/starting.py MODEL [--rounds 5]

Against the time that `import torch` alone takes, in turns; medians.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path


def seconds(*arguments: str, line: str) -> float:
    """Until the process has given its first line."""
    start = time.perf_counter()
    with subprocess.Popen([sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line.encode())
        process.stdin.close()
        if not process.stdout.readline():
            raise SystemExit(f"{' '.join(arguments)} gave nothing")
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch_alone, translating = [], []
    for _ in range(options.rounds + 1):
        torch_alone.append(seconds("-c", "import torch; print(torch.__version__)", line=""))
        translating.append(seconds("-m", "headway", "translate", str(options.model), line="Ein Hund läuft.\n"))
    importing, whole = (statistics.median(rounds[1:]) for rounds in (torch_alone, translating))  # the first warms up
    print(f"import torch {importing:.2f} s, first translation after {whole:.2f} s: {whole - importing:.2f} s more")


if __name__ == "__main__":
    main()
