"""What is set for the machine."""

import os
import subprocess
import sys

import pytest

MANY_SHAPES = """
import resource
import torch
from headway.kernels.linear import PackedLinear
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
