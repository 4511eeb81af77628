"""The choice of device and precision, and the memory settings of each device."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from headway.errors import NEEDS_TORCH, UserError

if TYPE_CHECKING:
    import torch

DEVICE = r"^(auto|cpu|mps|cuda(:\d+)?)$"
"""Pattern of the names of devices."""
Precision = Literal["auto", "fp32", "bf16", "fp16"]
TranslatingPrecision = Literal["auto", "fp32", "bf16", "fp16", "int8"]
EngineName = Literal["auto", "torch", "ctranslate2"]
"""The program that runs a model when it translates."""
DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
"""Device files of GPU drivers on Linux: NVIDIA's, WSL's and AMD's."""


def pick_device(name: str | torch.device) -> str:
    """The device that a name stands for. `auto`: cuda, then mps, then cpu; torch isn't loaded where there can be no
    accelerator. Raises UserError for a device that isn't there."""
    if not isinstance(name, str):
        return "cpu" if name.type == "cpu" else str(name)
    if not re.match(DEVICE, name):
        raise UserError(f"device {name!r} is unknown; there are auto, cpu, cuda, cuda:1 and so on, and mps")
    if name == "auto":
        may_be_there = has_torch() and ("torch" in sys.modules or _may_have_accelerator())
        return next(filter(_count, ("cuda", "mps") if may_be_there else ()), "cpu")
    kind, _, number = name.partition(":")
    if kind != "cpu" and int(number or 0) >= _count(kind):
        raise UserError(f"device {name!r} is not available on this machine; use auto or cpu")
    return name


def has_torch() -> bool:
    """Whether torch is installed (extra `torch`)."""
    return find_spec("torch") is not None


def need_torch(what: str) -> None:
    """Raises UserError where torch isn't installed. what: the feature that needs it."""
    if not has_torch():
        raise UserError(f"{what} {NEEDS_TORCH}")


def training_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """The type of matrix products in training. `auto`: bf16 where the processor multiplies it faster than fp32; fp16 on
    a CUDA device that doesn't (before Ampere)."""
    import torch

    if precision == "auto":
        without_bf16 = "fp16" if device.type == "cuda" else "fp32"
        precision = "bf16" if has_fast_bf16(device) else without_bf16
    return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]


def translating_dtype(precision: TranslatingPrecision, device: torch.device) -> torch.dtype:
    """The type of torch's weights in translating. `auto`: bf16 on cuda, or fp16 where it lacks bf16;
    elsewhere fp32, so that a translation doesn't depend on its batch. Raises UserError for int8, which only CTranslate2
    has."""
    if precision == "int8":
        raise UserError("precision int8 needs engine ctranslate2")
    return training_dtype("fp32" if precision == "auto" and device.type != "cuda" else precision, device)


def autocast(device: torch.device, dtype: torch.dtype) -> torch.autocast:
    """A context in which matrix products on the device are of this type; float32 changes nothing."""
    import torch

    return torch.autocast(device.type, dtype=dtype, enabled=dtype != torch.float32)


@contextlib.contextmanager
def fixed_order(*, asked: bool) -> Iterator[None]:
    """A context in which torch uses only algorithms that add in a fixed order, if asked to. An operation without one on
    its device raises RuntimeError."""
    import torch

    before = torch.are_deterministic_algorithms_enabled()
    if asked:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it, torch refuses products on CUDA
        torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        if asked:
            torch.use_deterministic_algorithms(before)


def keep_large_allocations(device: torch.device) -> None:
    """Makes glibc keep freed memory. By default it returns the large tensors of each step to the system, and the kernel
    clears their pages again, which takes a third of the time on CPU."""
    if device.type == "cpu" and sys.platform == "linux":
        m_trim_threshold, m_mmap_max, m_arena_max = -1, -4, -8
        with contextlib.suppress(OSError, AttributeError):  # a system without glibc
            libc = ctypes.CDLL("libc.so.6")
            libc.mallopt(m_mmap_max, 0)
            libc.mallopt(m_trim_threshold, 2**31 - 1)
            libc.mallopt(m_arena_max, 1)


def return_freed_memory() -> None:
    """Gives the free memory of the heap back to the system, in some 30 ms. After `keep_large_allocations` the heap only
    grows where the sizes of tensors differ from call to call, as in a server."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def keep_matrix_kernels(device: torch.device) -> None:
    """Lets oneDNN, which multiplies bf16 on CPU, keep the code of up to 8,192 shapes of products.

    It compiles each shape in half a millisecond and by default keeps the last 1,024. Packed training has few shapes,
    validation has more. Must come before the first product, and leaves alone what is set.
    """
    if device.type == "cpu":
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "8192")


def keep_few_matrix_kernels() -> None:
    """Lets oneDNN keep the code of only the last 128 shapes of products.

    By default it keeps 1,024, and torch their descriptions for each thread: 1 GB with two threads after half an hour of
    a server, whose batches always have new shapes. 128 cost no speed that could be measured (docs/operating.md). Must
    come before the first product, and leaves alone what is set.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, "128")


def emulates_bf16(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether a CUDA device would compute products of this type by emulating bf16, which is slow."""
    return str(dtype) == "torch.bfloat16" and device.type == "cuda" and not has_fast_bf16(device)


def _may_have_accelerator() -> bool:
    if sys.platform == "linux":
        return any(Path(driver).exists() for driver in DRIVERS)
    return sys.platform != "darwin" or platform.machine() == "arm64"


def _count(accelerator: str) -> int:
    """Number of such devices that torch finds or, where torch isn't installed, CTranslate2, which knows only cuda."""
    if has_torch():
        import torch

        if accelerator == "mps":
            return int(torch.backends.mps.is_available())
        return torch.cuda.device_count() if torch.cuda.is_available() else 0  # its driver may be too old
    if accelerator == "cuda":
        import ctranslate2

        return ctranslate2.get_cuda_device_count()
    return 0


def has_fast_bf16(device: torch.device) -> bool:
    """Whether the device multiplies bf16 in hardware."""
    import torch

    if device.type == "cuda":
        with torch.cuda.device(device):  # torch tells of the current device
            return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cpu":
        capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
        return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
    return False
