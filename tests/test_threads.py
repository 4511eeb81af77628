"""Commands use the cores that they may have; the files of cgroups are made up, as kernels write them."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headway import threads
from headway.cli import _run
from headway.corpora import dates
from headway.errors import UserError
from headway.serving.pairs import Pairs
from headway.serving.service import Service
from headway.serving.settings import Settings
from headway.threads import usable_cores, usable_memory, use_threads
from headway.training.processes import Interrupted
from headway.translator import Translator
from tests.serving.conftest import CopyingTranslator

GOLDEN = Path(__file__).parent / "golden" / "model"
V2 = "30 23 0:26 {top} {point} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "33 31 0:30 {top} {point} rw,nosuid - cgroup cgroup rw,{controllers}\n"
OTHER = "23 1 8:1 / / rw,relatime - ext4 /dev/root rw\n31 23 0:28 / /proc rw - proc proc rw\n"


def v2(top="/", point="/sys/fs/cgroup"):
    return V2.format(top=top, point=point)


def v1(top="/", point="/sys/fs/cgroup/cpu,cpuacct", controllers="cpu,cpuacct"):
    return V1.format(top=top, point=point, controllers=controllers)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Makes one of 8 cores: what /proc says of the process, and files of cgroups by their paths."""

    def make(cgroup, mounts, files, cores=8):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
        files = {"proc/self/cgroup": cgroup, "proc/self/mountinfo": OTHER + mounts, **files}
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return make


@pytest.mark.parametrize(
    ("cgroup", "mount", "files", "most"),
    [
        ("0::/app\n", v2(), {"sys/fs/cgroup/app/memory.max": "500000\n"}, 500_000),
        ("0::/app\n", v2(), {"sys/fs/cgroup/app/memory.max": "max\n", "sys/fs/cgroup/memory.max": "7000\n"}, 7000),
        ("0::/app\n", v2(), {"sys/fs/cgroup/app/memory.max": "max\n"}, 4096 * 1000),
        ("0::/app\n", v2(), {"sys/fs/cgroup/app/memory.max": f"{2**60}\n"}, 4096 * 1000),
        (
            "4:memory:/app\n",
            v1(point="/sys/fs/cgroup/memory", controllers="memory"),
            {"sys/fs/cgroup/memory/app/memory.limit_in_bytes": "9000\n"},
            9000,
        ),
    ],
)
def test_the_memory_is_the_least_of_machine_and_cgroups(machine, monkeypatch, cgroup, mount, files, most):
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert usable_memory(machine(cgroup, mount, files)) == most


@pytest.mark.parametrize(
    ("limit", "cores"),
    [
        ("max 100000", 8),
        ("200000 100000", 2),
        ("150000 100000", 2),
        ("5000 100000", 1),
        ("75000 25000", 3),
        ("6400000 100000", 8),
        ("", 8),
        ("none", 8),
        ("100000 0", 8),
    ],
)
def test_a_quota_of_version_2(machine, limit, cores):
    assert usable_cores(machine("0::/app\n", v2(), {"sys/fs/cgroup/app/cpu.max": f"{limit}\n"})) == cores


@pytest.mark.parametrize(("quota", "period", "cores"), [(-1, 100000, 8), (300000, 100000, 3), (60000, 50000, 2)])
def test_a_quota_of_version_1(machine, quota, period, cores):
    """Beside one of version 2 that has no controllers, as with systemd's hybrid hierarchy."""
    folder = "sys/fs/cgroup/cpu,cpuacct/app"
    root = machine(
        "11:memory:/other\n4:cpu,cpuacct:/app\n1:name=systemd:/app\n0::/app\n",
        v1(point="/sys/fs/cgroup/memory", controllers="memory") + v1() + v2(point="/sys/fs/cgroup/unified"),
        {f"{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{folder}/cpu.cfs_period_us": f"{period}\n"},
    )
    assert usable_cores(root) == cores


@given(limits=st.lists(st.none() | st.integers(1, 900), min_size=4, max_size=4))
def test_the_least_of_the_own_cgroup_and_of_all_around_it(tmp_path_factory, limits):
    """In hundredths of a core; None: no limit. Cgroups beside and within the own one have no say."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
        root = tmp_path_factory.mktemp("root")
        folder = root / "sys/fs/cgroup"
        for name, limit in zip(("", "a", "b", "c"), limits, strict=True):
            folder = folder / name
            (folder / "beside").mkdir(parents=True)
            (folder / "cpu.max").write_text(f"{'max' if limit is None else limit * 1000} 100000\n")
            (folder / "beside" / "cpu.max").write_text("1000 100000\n")
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/self/cgroup").write_text("0::/a/b/c\n")
        (root / "proc/self/mountinfo").write_text(v2())
        least = min((limit for limit in limits if limit is not None), default=800)
        assert usable_cores(root) == min(8, least // 100 + (least % 100 > 0))


@pytest.mark.parametrize(
    ("cgroup", "mount", "file"),
    [
        ("0::/\n", v2(), "sys/fs/cgroup/cpu.max"),
        ("0::/docker/abc\n", v2(top="/docker/abc"), "sys/fs/cgroup/cpu.max"),
        ("0::/docker/abc/inner\n", v2(top="/docker/abc"), "sys/fs/cgroup/inner/cpu.max"),
        ("0::/kubepods/pod\n", v2(top="/docker/abc"), "sys/fs/cgroup/cpu.max"),
        ("0::/../other\n", v2(), "sys/fs/cgroup/cpu.max"),
        ("0::/app\n", v2(point="/mnt/groups"), "mnt/groups/app/cpu.max"),
        ("0::/a:b\n", v2(), "sys/fs/cgroup/a:b/cpu.max"),
    ],
)
def test_where_the_own_cgroup_is_mounted(machine, cgroup, mount, file):
    """The whole hierarchy, or the container's own cgroup alone, which the process may know by another path."""
    assert usable_cores(machine(cgroup, mount, {file: "300000 100000\n"})) == 3


def test_the_affinity_where_it_is_less_and_where_nothing_else_is_known(machine, tmp_path, monkeypatch):
    root = machine("0::/\n", v2(), {"sys/fs/cgroup/cpu.max": "300000 100000\n"}, cores=2)
    assert usable_cores(root) == 2
    assert usable_cores(tmp_path / "no-proc") == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    assert usable_cores(root) == 3
    assert usable_cores(tmp_path / "no-proc") == 5
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores(tmp_path / "no-proc") == 1


@pytest.fixture
def torch_takes_four(monkeypatch):
    """By itself, as on 4 cores with 8 hyperthreads. The threads are put back."""
    for name in ("OMP_NUM_THREADS", "HEADWAY_THREADS"):
        monkeypatch.delenv(name, raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("torch_takes_four")
@pytest.mark.parametrize(
    ("option", "headway", "omp", "usable", "used"),
    [
        (None, None, None, 3, 3),
        (None, None, None, 8, 4),
        (None, "", "", 3, 3),
        (None, None, "4", 3, 4),
        (None, "2", "4", 3, 2),
        (None, "6", None, 3, 6),
        (5, "2", "4", 3, 5),
        (5, "nonsense", None, 3, 5),
        (1, None, None, 3, 1),
    ],
)
def test_who_wins(monkeypatch, option, headway, omp, usable, used):
    for name, value in (("HEADWAY_THREADS", headway), ("OMP_NUM_THREADS", omp)):
        if value is not None:
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(threads, "usable_cores", lambda: usable)
    use_threads(option)
    assert torch.get_num_threads() == used


@pytest.mark.usefixtures("torch_takes_four")
@pytest.mark.parametrize("value", ["0", "-2", "1025", "two", "1.5", " ", "9" * 5000])
def test_a_wrong_variable_is_named(monkeypatch, value):
    monkeypatch.setenv("HEADWAY_THREADS", value)
    with pytest.raises(UserError, match=f"^HEADWAY_THREADS={value}: must be a whole number from 1 to 1024$"):
        use_threads()
    assert torch.get_num_threads() == 4


@pytest.mark.usefixtures("torch_takes_four")
def test_translators_alone_leave_the_threads_to_their_program(machine, monkeypatch):
    root = machine("0::/\n", v2(), {"sys/fs/cgroup/cpu.max": "300000 100000\n"})
    monkeypatch.setattr(threads, "usable_cores", partial(usable_cores, root))
    monkeypatch.setenv("HEADWAY_THREADS", "2")
    Translator.load(GOLDEN, device="cpu").translate(["ant", "bee"])
    assert torch.get_num_threads() == 4


class Reached(Exception):
    """The model would be loaded now."""


COMMANDS = {
    "translate": "translate model text.de",
    "evaluate": "evaluate model --source text.de --reference text.en",
    "score": "score model --source text.de --target text.en",
    "inspect": "inspect model ant",
    "serve": "serve model --port 0",
    "export": "export model --to onnx --output new",
    "train": "train --source text.de --target text.en --valid-source text.de --valid-target text.en --out new"
    " training.max_steps=5",
    "demo": "demo --out new",
}


@pytest.fixture
def command(machine, torch_takes_four, monkeypatch):
    """Runs one under a quota of 3 of 8 cores, up to where the model would be loaded or trained; gives torch's threads
    there."""
    root = machine("0::/\n", v2(), {"sys/fs/cgroup/cpu.max": "300000 100000\n"})
    monkeypatch.setattr(threads, "usable_cores", partial(usable_cores, root))
    monkeypatch.chdir(root)
    for name, line in (("text.de", "ant\n"), ("text.en", "bee\n")):
        (root / name).write_text(line)
    found = []

    def reached(*_, **__):
        found.append(torch.get_num_threads())
        raise Reached

    for place in ("training.loop.train", "storage.load_model"):  # the former imports the latter
        monkeypatch.setattr(f"headway.{place}", reached)
    monkeypatch.setattr(Translator, "load", reached)
    monkeypatch.setattr(dates, "dates_corpus", partial(dates.dates_corpus, sizes=(9, 1, 1)))  # of the demo
    monkeypatch.setattr("headway.serving.server.bind", lambda host, port: None)
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def run(line, *more):
        found.clear()
        monkeypatch.setattr(sys, "argv", ["headway", *line.split(), *more])
        try:
            code = _run()
        except Reached:
            return found[0]
        return code

    return run


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_computes_follows_the_quota_and_the_option(name, command, capsys):
    assert command(COMMANDS[name]) == 3
    assert command(COMMANDS[name], "--threads", "7") == 7
    capsys.readouterr()
    for value, problem in (("0", "must be a whole number from 1 to 1024"), ("two", "")):
        assert command(COMMANDS[name], "--threads", value) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert "--threads" in line
        assert problem in line


def test_a_server_elsewhere_has_its_own_threads(command, capsys, monkeypatch):
    assert command("translate --server http://127.0.0.1:1 text --threads 2") == 2
    assert "--threads is not for --server" in capsys.readouterr().err
    monkeypatch.setenv("HEADWAY_THREADS", "2")
    assert command("translate --server http://127.0.0.1:1 text") == 2
    assert "threads" not in capsys.readouterr().err.lower()


@pytest.mark.parametrize("name", ["train", "demo"])
def test_a_run_that_was_stopped_goes_on_with_as_many_threads(name, command, capsys, monkeypatch):
    def stopped(*_):
        raise Interrupted(2)

    monkeypatch.setattr("headway.training.loop.train", stopped)
    command(COMMANDS[name], "--threads", "2")
    assert capsys.readouterr().err.rstrip().endswith(" --threads 2")
    command(COMMANDS[name])
    assert "--threads" not in capsys.readouterr().err


@pytest.mark.usefixtures("torch_takes_four")
def test_a_server_has_a_worker_for_each_thread(monkeypatch):
    monkeypatch.setattr(threads, "usable_cores", lambda: 3)
    use_threads()
    translator = CopyingTranslator()
    service = Service(Pairs([translator]), Settings())
    service.warm_up()  # one call in each worker
    service.close()
    assert len(translator.calls) == 3


SLOW_TORCH = """
import time
time.sleep(0.5)
def set_num_threads(count):
    print(count)
"""
RACE = """
import sys, threading, time
from headway.threads import use_one_thread
loading = threading.Thread(target=__import__, args=("torch",))
loading.start()
while "torch" not in sys.modules:
    time.sleep(0.001)
use_one_thread()
loading.join()
"""


def test_a_thread_waits_while_another_loads_torch(tmp_path):
    (tmp_path / "torch.py").write_text(SLOW_TORCH)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-c", RACE]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1\n", "")
