"""Running out of memory: told with the batch that it ran out for, and with what to lower."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from headway.errors import UserError

_OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory", re.IGNORECASE)


@contextmanager
def naming_memory(what: Callable[[], str]) -> Iterator[None]:
    """Raises UserError where memory runs out; `what` says with which batch, and the remedy."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, (MemoryError, torch.OutOfMemoryError)) or _OUT_OF_MEMORY.search(str(error))):
            raise
        raise UserError(f"out of memory {what()}") from None
