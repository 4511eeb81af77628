"""The next token by sampling, as the page shows it, equals what Python's search draws."""

from pathlib import Path

import numpy as np
import pytest
import torch

from headway.decoding.greedy_search import draw_tokens
from headway.decoding.options import Sampling
from tests.page.scripts import page

DRAWS = 20_000
GRID = (np.arange(DRAWS) + 0.5) / DRAWS
"""With these chances a token of probability p is drawn DRAWS p times, give or take one."""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    with page(Path(__file__).with_name("sampling.js"), tmp_path_factory.mktemp("sampling")) as script:
        yield script


def shares(tokens, size: int) -> np.ndarray:
    return np.bincount(tokens, minlength=size) / DRAWS


@pytest.mark.parametrize("seed", range(40))
def test_the_distribution_is_pythons(script, seed):
    chooser = np.random.default_rng(seed)
    size = int(chooser.integers(2, 200))
    logits = (chooser.normal(size=size) * chooser.choice([0.1, 1, 4]) + chooser.normal() * 20).astype(np.float32)
    temperature = round(float(chooser.uniform(0.1, 2.0)), 1)
    top_k = int(chooser.choice([0, 1, 3, size // 2, size + 5]))
    top_p = float(chooser.choice([1.0, 0.05, 0.5, 0.9, 0.95]))

    rows = torch.from_numpy(logits).log_softmax(-1).expand(DRAWS, -1)
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p)
    wanted = shares(draw_tokens(rows, torch.from_numpy(GRID)[:, None], sampling).numpy(), size)
    settings = {"temperature": temperature, "topK": top_k, "topP": top_p}
    found = script.ask({"logits": logits.tolist(), "settings": settings, "chances": GRID.tolist()})

    probabilities = np.array(found["probabilities"])
    np.testing.assert_allclose(probabilities, wanted, atol=2 / DRAWS)
    assert ((probabilities == 0) <= (wanted == 0)).all()  # none that is drawn in Python is cut here
    assert ((wanted == 0) <= (probabilities < 2 / DRAWS)).all()
    np.testing.assert_allclose(shares(found["drawn"], size), probabilities, atol=2 / DRAWS)
    assert probabilities.sum() == pytest.approx(1)
    kept = probabilities[probabilities > 0]
    assert found["entropy"] == pytest.approx(-(kept * np.log2(kept)).sum(), abs=1e-9)
