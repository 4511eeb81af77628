"""A forked process has none of the threads that models compute with: it is told so, and never waits for them."""

import os
import select
import signal
import warnings
from collections.abc import Callable

import pytest
import torch

from headway.storage import save_model
from headway.translator import Translator
from tests.translator.test_translator import translator

SECONDS = 30


def in_a_fork(call: Callable[[], object]) -> str:
    """What the call says in a forked process: its result, an error, or that it hangs."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of threads, as they should
        child = os.fork()
    if child == 0:
        try:
            said = repr(call())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    if not select.select([reading], [], [], SECONDS)[0]:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with open(reading, "rb") as file:
        return file.read().decode() or "hangs"


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=["torch", "ctranslate2"])
def door(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADWAY_CACHE", str(tmp_path_factory.mktemp("cache")))
        return Translator(translator().stored, device="cpu", engine=request.param)


def test_a_fork_with_threads_is_told_whatever_it_asks(door, threads, tmp_path):
    threads(2)
    save_model(tmp_path / "model", door.stored)
    [found] = door.translate(["the cat"], max_length=3)
    for call in (
        lambda: door.translate(["the cat"]),
        lambda: door.translate_document("the cat"),
        lambda: door.score(["the cat"], ["a dog"]),
        lambda: door.align(["the cat"], ["a dog"]),
        lambda: door.choose_aligner(["the cat"], ["a dog"]),
        lambda: door.inspect("the cat"),
        lambda: door.word_order("the cat"),
        lambda: found.alignment,
        lambda: Translator.load(tmp_path / "model", device="cpu"),
    ):
        said = in_a_fork(call)
        assert said.startswith("UserError: this process was forked")
        assert 'get_context("spawn")' in said
    assert door.translate(["the cat"], max_length=3) == [found]  # the parent goes on


def test_one_thread_of_torch_is_the_forks_own(threads):
    door = translator()
    threads(2)
    texts = ["the cat", "a dog ran after the cat"]
    found = door.translate(texts)

    def alone() -> list[str]:
        torch.set_num_threads(1)
        return [one.text for one in door.translate(texts)]

    assert in_a_fork(alone) == repr([one.text for one in found])
