"""A pretended accelerator: its tensors report `cuda:0` or `mps:0`, hold real numbers on the CPU, and refuse what such a
device refuses. So any machine shows, with its line, a mistake that only an accelerator would show.

A tensor of the device refuses to meet a tensor of the CPU (but for a single number), to become an array before
`.cpu()`, and on mps to be of double precision, and to come from the CPU without waiting: torch would read memory that
may be freed meanwhile (https://github.com/pytorch/pytorch/issues/189690). It is a subclass of `Tensor`: torch computes,
differentiates and saves as ever. Calls from Python are checked, in any thread, but for those within a backward pass.
"""

from __future__ import annotations

import functools
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

import pytest
import torch
from torch import Tensor, nn
from torch.utils._device import _device_constructors
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_any, tree_map_only

Kind = Literal["cuda", "mps"]
MEETING = ("copy_", "_has_compatible_shallow_copy_type")
"""Calls in which tensors of two devices may meet."""
INDEXING = ("__getitem__", "__setitem__")
"""Calls whose second argument, the indices, may be of the CPU."""

WAITING = (
    "item",
    "tolist",
    "__bool__",
    "__float__",
    "__int__",
    "__index__",
    "nonzero",
    "masked_select",
    "unique",
    "equal",
)
"""Calls that need a value, or a number of values, for which the program waits until the device has it."""
FROM_THE_CPU = ("tensor", "as_tensor", "asarray")
"""Makers of tensors that copy numbers to the device, and wait for it."""

_tensor_to: Callable[..., Tensor] = Tensor.to


class PretendTensor(Tensor):
    """A tensor of the device."""

    device = torch.device("cuda", 0)
    is_cpu = False
    waits: ClassVar[Counter[str]] = Counter()
    """Calls that wait for the device, by name; `to` is a copy to the CPU, `copy` one to the device that waits."""
    current = 0
    """Number of the current device, which a name without a number means."""
    copies = 0
    """Tensors that were copied to the device."""
    memory = 2**34
    """Its bytes."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        met = (args[0], args[2:]) if func.__name__ in INDEXING else (args, kwargs)
        if func.__name__ not in MEETING and tree_any(_is_on_cpu, met):
            raise RuntimeError(f"Expected all tensors to be on the same device, but found {cls.device} and cpu!")
        by_mask = func.__name__ in INDEXING and tree_any(_is_mask, args[1])
        if func.__name__ in WAITING or by_mask:
            cls.waits["mask" if by_mask else func.__name__] += 1
        if func.__name__ in INDEXING and tree_any(_is_on_cpu, args[1]):
            _copied()
        stays = kwargs.get("device") is None or is_pretended(kwargs["device"])
        if "device" in kwargs:
            kwargs["device"] = "cpu" if stays else kwargs["device"]
        with torch._C.DisableTorchFunctionSubclass():
            found = func(*args, **kwargs)
        return tree_map_only(Tensor, pretended, found) if stays else found

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copied = self.detach().clone()
        memo[id(self)] = nn.Parameter(copied, self.requires_grad) if isinstance(self, nn.Parameter) else copied
        return memo[id(self)]

    def cpu(self, *_: Any, **__: Any) -> Tensor:
        self.waits["cpu"] += 1
        return self.to("cpu")

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() first.")

    __array__ = numpy


class Products(TorchDispatchMode):
    """Notes the types of all matrix products within its block."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: set[torch.dtype] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if re.search("mm|attention", func.__name__) and not args[0].is_meta:
            self.dtypes.add(args[0].dtype)
        return func(*args, **(kwargs or {}))


class InFixedOrder(TorchDispatchMode):
    """Within its block, refuses the operations that CUDA has no deterministic algorithm for, where one is asked for:
    the second list of torch.use_deterministic_algorithms, without its modules, which headway doesn't use."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.__name__.split(".")[0].strip("_")
        without = name in ("put", "histc") or (name == "median" and "dim" in func.__name__)
        without |= name == "cumsum" and args[0].is_floating_point()
        without |= name == "bincount" and args[1:2] not in ((), (None,))
        without |= name == "scatter_reduce" and "prod" in args
        if without and torch.are_deterministic_algorithms_enabled():
            raise RuntimeError(f"{name} does not have a deterministic implementation")
        return func(*args, **(kwargs or {}))


def pretended(tensor: Tensor) -> Tensor:
    """The same numbers on the device."""
    if tensor.dtype == torch.float64 and PretendTensor.device.type == "mps":
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.")
    return tensor if isinstance(tensor, PretendTensor) else tensor.as_subclass(PretendTensor)


def is_pretended(device: Any) -> bool:
    """Raises RuntimeError for another card of the kind: nothing of a test belongs there."""
    if device is None or (asked := torch.device(device)).type != PretendTensor.device.type:
        return False
    number = PretendTensor.current if asked.index is None else asked.index
    if number != PretendTensor.device.index:
        raise RuntimeError(f"a tensor for {asked.type}:{number} in a test of {PretendTensor.device}")
    return True


def _copied(*, waits: bool = True) -> None:
    """Counts a copy to the device."""
    PretendTensor.copies += 1
    if waits:
        PretendTensor.waits["copy"] += 1
    elif PretendTensor.device.type == "mps":
        raise RuntimeError("a copy to mps that doesn't wait may read memory that was freed")


def _is_on_cpu(value: Any) -> bool:
    """Whether it is a tensor that none of the device may meet."""
    return isinstance(value, Tensor) and not isinstance(value, PretendTensor) and value.dim() > 0


def _is_mask(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype == torch.bool and value.dim() > 0


def _to(tensor: Tensor, *args: Any, device: Any = None, **kwargs: Any) -> Tensor:
    """Takes the place of `Tensor.to`, of all tensors."""
    if args and isinstance(args[0], Tensor):
        args = (args[0].device, args[0].dtype, *args[1:])
    if args and isinstance(args[0], (str, torch.device)):
        device, args = args[0], args[1:]
    here = isinstance(tensor, PretendTensor)
    there = here if device is None else is_pretended(device)
    on = [] if device is None else ["cpu" if there else device]
    if here == there:
        return _tensor_to(tensor, *on, *args, **kwargs)
    if not sys._getframe(1).f_globals["__name__"].startswith(("torch.", __name__)):
        # torch itself moves tensors to the device that C++ says they have, which is the CPU's here
        if there:
            _copied(waits=not kwargs.get("non_blocking"))
        else:
            PretendTensor.waits["to"] += 1
    with torch._C.DisableTorchFunctionSubclass():
        moved = _tensor_to(tensor.as_subclass(Tensor), *on, *args, **{**kwargs, "copy": True})
    return pretended(moved) if there else moved


def _maker(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function such as `torch.zeros`, which knows the device too."""

    @functools.wraps(make)
    def made(*args: Any, device: Any = None, **kwargs: Any) -> Tensor:
        if not is_pretended(device):
            return make(*args, device=device, **kwargs)
        if make.__name__ in FROM_THE_CPU:
            _copied()
        return pretended(make(*args, **kwargs))

    return made


def _on_cpu_instead(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose first argument is a type of device."""
    return lambda device_type, *args, **kwargs: call(
        "cpu" if is_pretended(device_type) else device_type, *args, **kwargs
    )


def _set_device(device: Any) -> None:
    if (number := torch.device(device).index) is None:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    PretendTensor.current = number


@contextmanager
def _as_current(device: Any) -> Iterator[None]:
    before = PretendTensor.current
    if torch.device(device).index is not None:
        _set_device(device)
    yield
    PretendTensor.current = before


@pytest.fixture
def pretend_device(monkeypatch: pytest.MonkeyPatch) -> Callable[..., torch.device]:
    """Call it first, with the kind of the device that the test pretends to have; `device: auto` finds it then. A
    number: of the card, beside which there are those before it, which must not be used, and know bf16 in hardware only
    where `bf16` has their numbers."""

    def install(kind: Kind, number: int = 0, bf16: Sequence[int] = (0,)) -> torch.device:
        monkeypatch.setattr(PretendTensor, "device", torch.device(kind, number))
        monkeypatch.setattr(PretendTensor, "current", 0)
        monkeypatch.setattr(Tensor, "to", _to)
        monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: tensor)
        for make in _device_constructors():
            monkeypatch.setattr(torch, make.__name__, _maker(make), raising=False)
        for name in ("autocast", "is_autocast_enabled", "get_autocast_dtype"):
            monkeypatch.setattr(torch, name, _on_cpu_instead(getattr(torch, name)))
        monkeypatch.setattr(torch.cuda, "is_available", lambda: kind == "cuda")
        monkeypatch.setattr(torch.cuda, "device_count", lambda: (number + 1) * (kind == "cuda"))
        monkeypatch.setattr(
            torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=PretendTensor.memory)
        )
        monkeypatch.setattr(torch.cuda, "set_device", _set_device)
        monkeypatch.setattr(torch.cuda, "device", _as_current)
        monkeypatch.setattr(
            torch.cuda,
            "is_bf16_supported",
            lambda including_emulation=True: including_emulation or PretendTensor.current in bf16,
        )
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: kind == "mps")
        own = [torch.Generator() for _ in range(number + 1)]  # states that can be taken; the CPU's draws

        def own_state(state: Tensor | None = None) -> Tensor:
            generator = own[PretendTensor.current]
            return generator.get_state() if state is None else generator.set_state(state).get_state()

        monkeypatch.setattr(getattr(torch, kind), "get_rng_state", own_state)
        monkeypatch.setattr(getattr(torch, kind), "set_rng_state", own_state)
        # A module's parameters keep their identity when it moves, as they do on real devices.
        monkeypatch.setattr(torch.__future__, "_swap_module_params_on_conversion", True)
        return torch.device(kind, number) if number else torch.device(kind)

    return install
