"""The number of threads that a command uses: the cores that the process may have, unless the user says otherwise. Also
the memory that it may have.

torch follows only the affinity. The CPU limit of a container is a quota of its cgroup: threads in excess of it use it
up early in each period, and then all of them stand still until the next period.
"""

import math
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from headway.errors import UserError

VARIABLE = "HEADWAY_THREADS"
MOST = 1024
"""A larger number is a typing error."""
_of_thread = threading.local()
"""`count`: see `use_one_thread`."""


def use_threads(option: int | None = None) -> None:
    """Sets the threads of everything that computes: to `option`, else HEADWAY_THREADS, else OMP_NUM_THREADS, else
    `usable_cores`, but to no more than torch takes by itself if it is loaded, which is physical cores on some machines.

    Only commands call it, once, before they load a model: the last digits of a training depend on the number, and a
    library leaves the threads to the program that uses it. Raises UserError.
    """
    if text := os.environ.get(VARIABLE, "") if option is None else str(option):
        threads = int(text) if re.fullmatch(r"\s*\d{1,4}\s*", text) else 0
        if not 1 <= threads <= MOST:
            given = f"{VARIABLE}={text}" if option is None else f"--threads {text}"
            raise UserError(f"{given}: must be a whole number from 1 to {MOST}")
    else:
        threads = current_threads()
        if not os.environ.get("OMP_NUM_THREADS"):
            processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # of one training, on this machine
            threads = max(1, min(threads, usable_cores()) // processes)
    if (torch := _loaded_torch()) is None:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # torch follows it when it is loaded
    elif threads != torch.get_num_threads():
        torch.set_num_threads(threads)


def _loaded_torch() -> Any:
    """torch, if it is loaded; waits for another thread that is loading it. None otherwise."""
    if sys.modules.get("torch") is None:
        return None
    import torch

    return torch


def use_one_thread() -> None:
    """Lets the calling thread compute alone, with torch too if it is loaded later."""
    _of_thread.count = 1
    if (torch := _loaded_torch()) is not None:
        torch.set_num_threads(1)


def current_threads() -> int:
    """Threads to compute with: one after `use_one_thread`, else torch's, OMP_NUM_THREADS, or `usable_cores`."""
    if (count := getattr(_of_thread, "count", None)) is not None:
        return count
    if (torch := _loaded_torch()) is not None:
        return torch.get_num_threads()
    first, *_ = os.environ.get("OMP_NUM_THREADS", "").split(",")  # the others are of nested loops
    return int(first) if first.isdecimal() and int(first) else usable_cores()


def usable_cores(root: Path = Path("/")) -> int:
    """Cores that affinity and the quotas of cgroups leave to this process, rounded up. root: of the file system."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return math.ceil(min([cores, *map(_quota, _cgroups(root, "cpu"))]))


def usable_memory(root: Path = Path("/")) -> float:
    """Bytes that machine and cgroups leave to this process; infinite if unknown. root: as of `usable_cores`."""
    found = [math.inf]
    with suppress(AttributeError, OSError, ValueError):  # Windows
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for cgroup in _cgroups(root, "memory"):
        lines = _lines(cgroup / "memory.max") or _lines(cgroup / "memory.limit_in_bytes")
        found += [int(line) for line in lines if line.isdecimal()]  # "max": no limit
    return min(found)


def _cgroups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of the cgroups that may limit this process: its own, and those around it as far as they are mounted
    (cgroups(7), proc_pid_mountinfo(5)). controller: `cpu` or `memory`, of version 1."""
    paths = {}  # by controller; version 2 has a single path, without a name
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), PurePosixPath(path)))
    for line in _lines(root / "proc/self/mountinfo"):
        mount, _, system = line.partition(" - ")
        name = {"cgroup": controller, "cgroup2": ""}.get(system.split()[0])
        if name not in paths:
            continue  # other controllers of version 1 stay in: where they are mounted there are no quotas
        path, (top, point) = paths[name], mount.split()[3:5]  # the cgroup that is mounted, and where
        # a container may mount its own cgroup, of which the process knows another path
        inside = path.relative_to(top) if path.is_relative_to(top) else PurePosixPath()
        for cgroup in (inside, *inside.parents):
            yield root / point.lstrip("/") / cgroup


def _quota(cgroup: Path) -> float:
    """Number of cores whose time a cgroup grants; infinite if it sets no limit."""
    old = (line for name in ("quota", "period") for line in _lines(cgroup / f"cpu.cfs_{name}_us"))
    numbers = " ".join(_lines(cgroup / "cpu.max") or old).split()
    is_limit = len(numbers) == 2 and all(one.isdecimal() and int(one) for one in numbers)  # neither "max" nor -1
    return int(numbers[0]) / int(numbers[1]) if is_limit else math.inf


def _lines(file: Path) -> list[str]:
    """The lines of a file, none if there is no such file, as on systems other than Linux."""
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    return []
