"""What is set for the machine."""

import os
import subprocess
import sys

import pytest

from headway.decoding import torch_searcher
from tests.translator.test_translator import translator

MANY_SHAPES = """
import resource
import torch
from headway.decoding.step import PackedLinear
from headway.devices import keep_few_matrix_kernels
keep_few_matrix_kernels()
layer = PackedLinear([torch.nn.Linear(256, 256)], torch.float32)
def after(shapes):
    with torch.inference_mode():
        for rows in shapes:
            layer(torch.zeros(rows, 256))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
few = after(range(1, 151))
print((after(range(151, 900)) - few) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as on Linux")
def test_products_of_many_shapes_take_no_more_memory_than_of_a_few():
    """Without the limit the 750 kernels take some 500 MB."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("CACHE_CAPACITY")}
    done = subprocess.run([sys.executable, "-c", MANY_SHAPES], env=environment, stdout=subprocess.PIPE, check=True)
    assert int(done.stdout) < 150  # MB


def test_memory_is_given_back_when_the_process_has_grown(monkeypatch):
    size, given_back = 300, []

    def give_back() -> None:
        nonlocal size
        given_back.append(size)
        size = 310

    monkeypatch.setattr(torch_searcher, "_resident", lambda: size * 2**20)
    monkeypatch.setattr(torch_searcher, "return_freed_memory", give_back)
    memory = torch_searcher.FreedMemory()
    for size in (310, 480, 493, 500, 510):  # noqa: B007 read by what takes the place of _resident
        memory.bound()
    assert given_back == [493, 510]


def test_a_translator_looks_at_its_memory_after_each_batch(monkeypatch):
    looks = []

    def look(memory: torch_searcher.FreedMemory) -> None:
        looks.append(memory)

    monkeypatch.setattr(torch_searcher.FreedMemory, "bound", look)
    translator(max_length=20).translate(["the cat sat"] * 300, beam_size=1)
    assert len(looks) == 3  # 128 sentences each
    assert len(set(looks)) == 1
