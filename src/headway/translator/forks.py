"""Models after a fork: the threads of torch and of CTranslate2 don't survive it, and a computation would wait for them
forever."""

from __future__ import annotations

import os
from functools import cache

from headway.devices import EngineName
from headway.errors import UserError


def check_process(engine: EngineName) -> None:
    """Raises UserError in a process that was forked from one with a model, unless it computes with one thread of torch,
    its own. A model that isn't used yet makes no difference: reading one starts the threads."""
    if os.getpid() == _first_process():
        return
    import torch

    if engine != "torch" or torch.get_num_threads() > 1:
        raise UserError(
            "this process was forked from one that had loaded a model, and threads don't survive a fork: start "
            'processes with multiprocessing.get_context("spawn"), or load models in the child processes alone'
        )


@cache
def _first_process() -> int:
    """Id of the process that called this first; forks inherit the cached value."""
    return os.getpid()
