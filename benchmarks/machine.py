"""What this machine can do, and what ran on it."""

from __future__ import annotations

import importlib.metadata
import platform
import time
from typing import Any

import torch

from headway.devices import training_dtype


def matrix_peak(dtype: torch.dtype, size: int = 2048, rounds: int = 5) -> float:
    """FLOP/s of a product of two large square matrices, the best of a few."""
    one, other = (torch.randn(size, size).to(dtype) for _ in range(2))
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        torch.mm(one, other)
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best


def fastest_dtype() -> torch.dtype:
    """Of matrix products: bf16 where the processor has it. Where it hasn't, a product in bf16 takes minutes."""
    return training_dtype("auto", torch.device("cpu"))


def versions(*packages: str) -> dict[str, Any]:
    """Of Python, torch and the packages that are installed; the processor and its threads."""
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
