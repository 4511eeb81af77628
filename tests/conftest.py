"""What all tests share."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from tests.held_files import held_files_stay
from tests.pretend_device import pretend_device

__all__ = ["held_files_stay", "pretend_device"]

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs in its background with it ignored

settings.register_profile(
    "steady", deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("full", settings.get_profile("steady"), max_examples=1000)
settings.load_profile("steady")  # pytest --hypothesis-profile full takes the other one


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Every test starts from the same random state, on CPU."""
    torch.default_generator.manual_seed(0)  # torch.manual_seed notes a traceback for each kind of device


@pytest.fixture(autouse=True, scope="session")
def _without_waiting_for_the_disk() -> Iterator[None]:
    """No test cuts the power, after which alone flushed files differ from others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture
def own_folder(tmp_path, monkeypatch) -> Iterator[Path]:
    """The current folder, empty. Modules that the test imports from it are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name, module in [*sys.modules.items()]:
        if Path(getattr(module, "__file__", None) or "/").is_relative_to(tmp_path):
            del sys.modules[name]
