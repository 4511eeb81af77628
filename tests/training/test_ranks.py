"""How ranks find each other, by threads in place of processes and a store in memory."""

import threading
import time

import pytest
import torch
import torch.distributed as dist

from headway.errors import UserError
from headway.training import ranks
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
        join_ranks("cpu")


@pytest.mark.parametrize(
    ("device", "gpus", "local", "message"),
    [
        ("mps", 0, 0, "several processes train together on cpu or cuda, not on mps"),
        ("cuda:1", 2, 0, "several processes train together on cpu or cuda, not on cuda:1"),
        ("cuda", 2, 2, "process 3 of this machine has no GPU: there are 2"),
    ],
)
def test_ranks_that_cannot_share_devices(monkeypatch, device, gpus, local, message):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_RANK", str(local))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    with pytest.raises(UserError, match=message):
        join_ranks(device)


@pytest.mark.parametrize(
    ("device", "gpus", "taken", "backend"), [("cpu", 4, [], "gloo"), ("cuda", 4, [2], "nccl"), ("cuda", 1, [0], "nccl")]
)
def test_a_rank_takes_its_device_and_the_backend_for_it(monkeypatch, device, gpus, taken, backend):
    """Slurm shows each rank one device alone."""
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_RANK", "2")
    chosen, groups = [], []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(ranks, "rendezvous", lambda *_, **__: iter([(dist.HashStore(), 2, 4)]))
    monkeypatch.setattr(ranks, "shared_prefix", lambda *_: "prefix")
    monkeypatch.setattr(dist, "init_process_group", lambda backend, **_: groups.append(backend))
    monkeypatch.setattr(dist, "new_group", lambda **_: None)
    assert join_ranks(device).number == 2
    assert (chosen, groups) == (taken, [backend])
