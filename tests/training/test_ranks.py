"""How ranks find each other, by threads in place of processes and a store in memory."""

import threading
import time

import pytest
import torch.distributed as dist

from headway.errors import UserError
from headway.training.ranks import SingleProcess, join_ranks, shared_prefix


def words(store, ranks, late=None):
    """What each rank takes for the common word; rank `late` comes a while after the others."""
    found = {}

    def come(rank):
        time.sleep(0.3 * (rank == late))
        found[rank] = shared_prefix(store, rank, ranks)

    threads = [threading.Thread(target=come, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert sorted(found) == list(range(ranks))
    return found


@pytest.mark.parametrize("late", [None, 0, 2])
def test_ranks_that_are_started_again_have_a_word_of_their_own(late):
    """In one store, whose earlier words stay in it."""
    store, before = dist.HashStore(), set()
    for _ in range(3):
        found = set(words(store, 3, late).values())
        assert len(found) == 1
        assert not found & before
        before |= found


def test_the_dead_of_a_start_that_failed_are_not_waited_for():
    """Rank 1 took its seat and died; another one takes it later."""
    store = dist.HashStore()
    store.set("seat 1", "gone")
    assert len(set(words(store, 2, late=1).values())) == 1


def test_a_process_alone_agrees_with_itself():
    alone = SingleProcess()
    assert alone.leads
    assert alone.all_reduce_max(3.0, 4.0) == (3.0, 4.0)
    assert alone.all_gather(alone.part(["a", "b", "c"])) == ["a", "b", "c"]


def test_without_an_address_nobody_is_met(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(UserError, match=r"2 processes of this training didn't meet .*MASTER_ADDR.*torchrun"):
        join_ranks()
