"""Which device and which precision: chosen here and nowhere else."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from headway.errors import NEEDS_TORCH, UserError

if TYPE_CHECKING:
    import torch

DeviceName = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["auto", "fp32", "bf16"]
TranslatingPrecision = Literal["auto", "fp32", "bf16", "int8"]
EngineName = Literal["auto", "torch", "ctranslate2"]
"""The program that runs a model when it translates."""
DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
"""Device files of GPU drivers on Linux: NVIDIA's, WSL's and AMD's."""


def pick_device(name: DeviceName | torch.device) -> str:
    """`auto`: cuda, then mps, then cpu, and cpu where torch isn't installed; torch isn't loaded where there can be no
    accelerator. Raises UserError for a device that isn't there."""
    if not isinstance(name, str):
        return "cpu" if name.type == "cpu" else str(name)
    if name not in (known := get_args(DeviceName)):
        raise UserError(f"device {name!r} is unknown; there are {', '.join(known)}")
    if name == "auto":
        looks = has_torch() and ("torch" in sys.modules or _may_have_accelerator())
        return next(filter(_is_available, ("cuda", "mps") if looks else ()), "cpu")
    if name != "cpu" and not _is_available(name):
        raise UserError(f"device {name!r} is not available on this machine; use auto or cpu")
    return name


def has_torch() -> bool:
    """Whether torch is installed (extra `torch`)."""
    return find_spec("torch") is not None


def need_torch(what: str) -> None:
    """Raises UserError where torch isn't installed. what: the thing that needs it."""
    if not has_torch():
        raise UserError(f"{what} {NEEDS_TORCH}")


def training_dtype(precision: Precision, device: torch.device) -> torch.dtype:
    """The type of matrix products in training. `auto`: bf16 where the processor multiplies it faster than fp32."""
    import torch

    if precision == "auto":
        return torch.bfloat16 if _has_fast_bf16(device) else torch.float32
    return torch.bfloat16 if precision == "bf16" else torch.float32


def autocast(device: torch.device, dtype: torch.dtype) -> torch.autocast:
    """Within it, matrix products on the device are of this type; float32 leaves everything as it is."""
    import torch

    return torch.autocast(device.type, dtype=dtype, enabled=dtype != torch.float32)


def translating_dtype(precision: TranslatingPrecision, device: torch.device) -> torch.dtype:
    """The type of torch's weights in translating. `auto`: bf16 on cuda, fp32 elsewhere, where a translation then
    doesn't depend on what it is translated with. Raises UserError for int8, which is CTranslate2's."""
    import torch

    if precision == "int8":
        raise UserError("precision int8 needs engine ctranslate2")
    if precision == "auto":
        return torch.bfloat16 if device.type == "cuda" and _has_fast_bf16(device) else torch.float32
    return torch.bfloat16 if precision == "bf16" else torch.float32


def keep_large_allocations(device: torch.device) -> None:
    """Makes the C library keep freed memory instead of returning it to the system after every step.

    A step allocates and frees the same large tensors over and over; by default glibc maps each anew and the kernel
    clears its pages again, which takes a third of the time on CPU. Only Linux with glibc has these settings.
    """
    if device.type != "cpu" or sys.platform != "linux":
        return
    m_trim_threshold, m_mmap_max, m_arena_max = -1, -4, -8
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(m_mmap_max, 0)
        libc.mallopt(m_trim_threshold, 2**31 - 1)
        libc.mallopt(m_arena_max, 1)


def return_freed_memory() -> None:
    """Gives the system back what is free in the heap, some 30 ms. What is kept by `keep_large_allocations` only grows
    where the sizes of tensors differ from one call to the next, as they do in a server."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def keep_matrix_kernels(device: torch.device) -> None:
    """Lets oneDNN, which multiplies bf16 on CPU, keep the code of up to 8,192 shapes.

    It compiles each shape of product anew, half a millisecond each, and forgets all but the last 1,024. Packed
    training has few shapes; what is translated in between has more. Must come before the first product, and leaves
    alone what is set.
    """
    if device.type == "cpu":
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "8192")


def keep_few_matrix_kernels() -> None:
    """Lets oneDNN, which multiplies on CPU, keep the code of the latest 128 shapes of products alone.

    It keeps 1,024, and torch their descriptions for each thread: 1 GB with two threads, which a server, whose batches
    have ever other shapes, comes to after half an hour. 128 cost it no speed that could be measured (docs/serving.md).
    Must come before the first product, and leaves alone what is set.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, "128")


def _may_have_accelerator() -> bool:
    if sys.platform == "linux":
        return any(Path(driver).exists() for driver in DRIVERS)
    return sys.platform != "darwin" or platform.machine() == "arm64"


def _is_available(accelerator: str) -> bool:
    """Whether torch finds the accelerator or, where torch isn't installed, CTranslate2, which knows cuda alone."""
    if has_torch():
        import torch

        return torch.cuda.is_available() if accelerator == "cuda" else torch.backends.mps.is_available()
    if accelerator == "cuda":
        import ctranslate2

        return ctranslate2.get_cuda_device_count() > 0
    return False


def _has_fast_bf16(device: torch.device) -> bool:
    import torch

    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cpu":
        capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
        return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
    return False
