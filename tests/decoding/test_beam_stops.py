"""When beam search is done: finished hypotheses that are worth little never hide a better one in the making."""

import pytest
import torch

from headway.decoding.beam import beam_search

BOS, EOS, SURE, SYMBOLS = 0, 1, 2, 8


class SureEngine:
    """A model that is sure of `length` tokens and then <eos>. All else is as good as impossible, but at each place
    ending there is the likeliest of that, so that short hypotheses are finished at every step."""

    bos_id, eos_id = BOS, EOS

    def __init__(self, length: int) -> None:
        self.length = length

    def start(self, source):
        return {"places": [0] * source.size(0)}

    def step(self, state, tokens):
        rows = torch.full((len(tokens), SYMBOLS), 1e-5)
        rows[:, BOS], rows[:, EOS] = 0, 2e-5
        for row, place in zip(rows, state["places"], strict=True):
            row[SURE if place < self.length else EOS] = 1
        state["places"] = [place + 1 for place in state["places"]]
        return rows.log().log_softmax(-1)

    def select(self, state, rows):
        state["places"] = [state["places"][row] for row in rows.flatten().tolist()]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("beam_size", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("length", [1, 12, 40])
def test_what_a_model_is_sure_of_is_found_however_many_shorter_ones_are_finished(length, beam_size, alpha):
    [found] = beam_search(SureEngine(length), torch.zeros(1, 1), [60], beam_size=beam_size, alpha=alpha)
    assert found[0].ids == [SURE] * length
    assert found[0].score > -0.01
