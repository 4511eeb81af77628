"""Do the unit tests notice when the code is changed? Draws small changes and runs the tests on each: `make mutants`.

A change ("mutant") is made in a copy of the tree. The tests that enter its function run, those of its own file and room
first, up to the first failure; if none fails, all others. Whatever runs far longer than it should counts as noticed.
`equivalent.toml` names changes that no test can notice, with the reason; they don't count.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.changes import Change, changes
from tests.mutants.reaching import telling

HERE = Path(__file__).parent
ROOMS = ("model", "kernels", "decoding", "training", "text")
COPIED = ("src", "tests", "benchmarks", "deploy", "docs", "recipes", ".ci")
NOT_UNITS = ("tests/system", "tests/faults")
EQUIVALENT = HERE / "equivalent.toml"


@dataclass(frozen=True)
class Mutant:
    file: str
    change: Change
    code: str
    """The line it begins in."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is called wherever it stands."""
        return Path(self.file).name, self.code, str(self.change)

    def __str__(self) -> str:
        return f"{self.file}:{self.change.line}  {self.change}"


@dataclass(frozen=True)
class Outcome:
    mutant: Mutant
    by: str | None
    """The test that failed; None: all passed."""
    seconds: float


def main() -> int:
    options = _options()
    out = options.out.resolve()
    mutants = drawn(options.tree, options.count, options.seed, options.only)
    if options.list:
        print(*mutants, sep="\n")
        return 0
    known = equivalent()
    for mutant in mutants:
        if mutant.key in known:
            print(f"{mutant}  |  equivalent: {known[mutant.key]}")
    mutants = [mutant for mutant in mutants if mutant.key not in known]
    reach = _reach(options.tree, out, options.jobs)
    copies = [_copied(options.tree, out / f"copy-{number}") for number in range(options.jobs)]
    free: queue.Queue[Path] = queue.Queue()
    for copy in copies:
        free.put(copy)

    def tried(mutant: Mutant) -> Outcome:
        copy = free.get()
        try:
            outcome = run(mutant, copy, reach, options.quick)
        finally:
            free.put(copy)
        print(_row(outcome), flush=True)
        return outcome

    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(tried, mutants))
    survivors = [outcome for outcome in outcomes if outcome.by is None]
    score = 1 - len(survivors) / len(outcomes)
    print(f"\nnoticed {len(outcomes) - len(survivors)} of {len(outcomes)}: {score:.1%}")
    for outcome in survivors:
        print(f"survived: {outcome.mutant}\n    {outcome.mutant.code}")
    return 0 if score >= options.least else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--tree", type=Path, default=HERE.parent.parent, help="whose code and tests")
    parser.add_argument("--out", type=Path, default=HERE.parent.parent / ".mutants", help="for the copies")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=2017)
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    parser.add_argument("--only", default="", help="a part of a path: mutants of these files alone")
    parser.add_argument("--quick", action="store_true", help="only tests that enter the function")
    parser.add_argument("--least", type=float, default=0.0, help="a score below it is a failure")
    parser.add_argument("--list", action="store_true", help="prints what is drawn, runs nothing")
    return parser.parse_args()


def drawn(tree: Path, count: int, seed: int, only: str = "") -> list[Mutant]:
    """A sample of all changes of the rooms, in the order of the files. What is drawn depends on the changed lines
    alone: most of it stays when others are written or files move."""
    every = [mutant for path in _files(tree) if only in str(path.relative_to(tree)) for mutant in _mutants(path, tree)]
    times: Counter[tuple[str, str, str]] = Counter()
    lots: dict[bytes, Mutant] = {}
    for mutant in every:
        times[mutant.key] += 1
        lot = json.dumps([seed, *mutant.key, times[mutant.key]])
        lots[hashlib.sha256(lot.encode()).digest()] = mutant
    chosen = {id(lots[lot]) for lot in sorted(lots)[:count]}
    return [mutant for mutant in every if id(mutant) in chosen]


def equivalent() -> dict[tuple[str, str, str], str]:
    """The reason of each."""
    known = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["equivalent"]
    return {(one["file"], one["code"], one["change"]): one["reason"] for one in known}


def _files(tree: Path) -> list[Path]:
    """Of the rooms, as far as there are such."""
    return [path for room in ROOMS for path in sorted((tree / "src" / "headway" / room).rglob("*.py"))]


def _mutants(path: Path, tree: Path) -> list[Mutant]:
    source = path.read_text(encoding="utf-8")
    lines = source.split("\n")
    name = path.relative_to(tree).as_posix()
    return [Mutant(name, change, lines[change.line - 1].strip()) for change in changes(source)]


def _copied(tree: Path, copy: Path) -> Path:
    """The tree as it is, without what is only made from it."""
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for path in tree.iterdir():
        if path.is_file():
            shutil.copy(path, copy)
        elif path.name in COPIED:
            shutil.copytree(path, copy / path.name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


Reach = dict[str, dict]
"""Of each test that passes: `seconds` it takes, and the functions it has `entered`, as file:line."""


def _reach(tree: Path, out: Path, jobs: int) -> Reach:
    """Measured once for each state of code and tests."""
    copy = _copied(tree, out / "telling")
    digest = hashlib.sha256()
    for path in sorted([*(copy / "src").rglob("*.py"), *(copy / "tests").rglob("*.py")]):
        digest.update(path.relative_to(copy).as_posix().encode() + path.read_bytes())
    kept = out / f"reach-{digest.hexdigest()[:16]}.json"
    if not kept.exists():
        print("finding out which test enters which function", flush=True)
        for path in _files(copy):
            path.write_text(telling(path.read_text(encoding="utf-8"), path.relative_to(copy).as_posix()))
        written = out / "reach"
        shutil.rmtree(written, ignore_errors=True)
        written.mkdir()
        arguments = ["-n", str(jobs), "--dist", "loadfile", *(f"--ignore={path}" for path in NOT_UNITS)]
        if _pytest(copy, arguments, {"MUTANTS_REACH": str(written)}, 3600) is None:
            raise SystemExit("the tests run for more than an hour")
        found = [json.loads(path.read_text()) for path in written.iterdir()]
        kept.write_text(json.dumps({test: one for part in found for test, one in part.items()}))
    return json.loads(kept.read_text())


def run(mutant: Mutant, copy: Path, reach: Reach, quick: bool) -> Outcome:
    """Whether a test notices it."""
    start = time.monotonic()
    path = copy / mutant.file
    original = path.read_text(encoding="utf-8")
    near = _near(mutant, reach)
    rest = [] if quick else _sorted(mutant, [test for test in reach if test not in set(near)], reach)
    try:
        path.write_text(mutant.change.applied(original), encoding="utf-8")
        by = next((by for tests in (near, rest) if tests and (by := _first_failure(copy, tests, reach))), None)
    finally:
        path.write_text(original, encoding="utf-8")
    return Outcome(mutant, by, time.monotonic() - start)


def _near(mutant: Mutant, reach: Reach) -> list[str]:
    """The tests that enter its function; of a module or a class, anything in the file, or those of the room."""
    function = mutant.change.function
    if function is not None:
        entered = f"{mutant.file}:{function}"
        return _sorted(mutant, [test for test, one in reach.items() if entered in one["entered"]], reach)
    within = f"{mutant.file}:"
    entering = [test for test, one in reach.items() if any(spot.startswith(within) for spot in one["entered"])]
    room = [test for test in reach if test.startswith(f"tests/{Path(mutant.file).parts[2]}/")]
    return _sorted(mutant, list({*entering, *room}), reach)


def _sorted(mutant: Mutant, tests: list[str], reach: Reach) -> list[str]:
    """By file, so that what its tests share is made once: the mutant's own, its room's, then the quick ones."""
    room, stem = Path(mutant.file).parts[2], Path(mutant.file).stem
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(test.split("::")[0], []).append(test)

    def order(file: str) -> tuple[bool, bool, float]:
        seconds = sum(reach[test]["seconds"] for test in files[file])
        return Path(file).stem != f"test_{stem}", not file.startswith(f"tests/{room}/"), seconds

    return [
        test
        for file in sorted(files, key=order)
        for test in sorted(files[file], key=lambda test: (reach[test]["seconds"], test))
    ]


def _first_failure(copy: Path, tests: list[str], reach: Reach) -> str | None:
    """Its name; or that nothing could be collected, or that it took too long."""
    asked = copy / "asked.json"
    asked.write_text(json.dumps(tests))
    failed = Path(f"{asked}.failed")
    failed.unlink(missing_ok=True)
    files = list(dict.fromkeys(test.split("::")[0] for test in tests))
    limit = 120 + 8 * sum(reach[test]["seconds"] for test in tests)
    code = _pytest(copy, ["-x", *files], {"MUTANTS_TESTS": str(asked)}, limit)
    if code is None:
        return f"more than {limit:.0f} s"
    if code in (0, 5):  # all passed, or none was there to run
        return None
    if code not in (1, 2):
        raise SystemExit(f"pytest ended with {code}: it has said nothing about the change")
    return failed.read_text() if failed.exists() else f"pytest ended with {code}"


def _pytest(copy: Path, arguments: list[str], environment: dict[str, str], limit: float) -> int | None:
    """Its exit code; None after `limit` seconds. All it started is ended with it."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "watching", "-p", "no:cacheprovider"]
    paths = [str(copy / "src"), str(copy), str(HERE)]
    process = subprocess.Popen(
        [*command, f"--basetemp={copy / 'temporary'}", *arguments],
        cwd=copy,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONDONTWRITEBYTECODE": "1",  # a change of the same length within a second would not be seen
            "OMP_NUM_THREADS": "1",
            **environment,
        },
        stdout=(copy / "output.txt").open("w"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _row(outcome: Outcome) -> str:
    by = "SURVIVED" if outcome.by is None else outcome.by
    return f"{outcome.mutant}  |  {by}  ({outcome.seconds:.0f} s)"


if __name__ == "__main__":
    sys.exit(main())
