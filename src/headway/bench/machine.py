"""The peak speed of a machine, and the versions that ran on it."""

from __future__ import annotations

import importlib.metadata
import platform
import time
from typing import Any

import torch

from headway.bench.contenders import finish_work
from headway.devices import training_dtype

CPU = torch.device("cpu")


def matrix_peak(dtype: torch.dtype, device: torch.device = CPU) -> float:
    """FLOP/s of a product of two large square matrices, the best of a few."""
    size = 2048 if device.type == "cpu" else 8192
    one, other = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    best = float("inf")
    for _ in range(5):
        finish_work(str(device))
        start = time.perf_counter()
        torch.mm(one, other)
        finish_work(str(device))
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best


def fastest_dtype(device: torch.device = CPU) -> torch.dtype:
    """The type of the fastest matrix products: bf16 where the processor has it, because elsewhere one takes minutes."""
    return training_dtype("auto", device)


def versions(*packages: str) -> dict[str, Any]:
    """Versions of Python, torch and those packages that are installed; the processor and its threads."""
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "processor": processor(),
        "threads": torch.get_num_threads(),
    }
    for package in ("torch", *packages):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """Its name, where Linux says it."""
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def device_name(device: torch.device) -> str:
    """The card's or the processor's name."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else processor()
