"""What all tests share."""

import signal

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
    """Every test starts from the same random state."""
    torch.manual_seed(0)
