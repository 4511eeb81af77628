"""Search over engines: a table of probabilities worked by hand, and the real model with its cache."""

import math

import pytest
import torch

from headway.decoding import TorchEngine, greedy
from headway.model import ModelConfig, Transformer, cross_mask, padding_mask, target_mask

EOS = 3


class TableEngine:
    """An engine whose next-token probabilities depend on the last token alone."""

    bos_id, eos_id = 2, EOS

    def __init__(self, table: dict[int, dict[int, float]], vocabulary: int = 8) -> None:
        self.logits = torch.full((vocabulary, vocabulary), -1e9)
        for last, row in table.items():
            for token, probability in row.items():
                self.logits[last, token] = math.log(probability)

    def start(self, source):
        return None

    def step(self, state, tokens):
        return self.logits[tokens]

    def select(self, state, rows):
        pass


TABLE = {2: {4: 0.6, 5: 0.4}, 4: {5: 0.5, EOS: 0.3, 6: 0.2}, 5: {EOS: 0.9, 4: 0.1}}


def test_greedy_by_hand():
    [hypothesis] = greedy(TableEngine(TABLE), torch.zeros(1, 1, dtype=torch.long), [10])
    assert hypothesis.ids == [4, 5]
    assert hypothesis.stopped == "eos"
    assert hypothesis.score == pytest.approx(math.log(0.6 * 0.5 * 0.9), abs=1e-6)


def test_greedy_stops_at_the_cap():
    [hypothesis] = greedy(TableEngine({2: {4: 1.0}, 4: {4: 1.0}}), torch.zeros(1, 1, dtype=torch.long), [3])
    assert hypothesis.ids == [4, 4, 4]
    assert hypothesis.stopped == "max_length"


def model(**changes) -> Transformer:
    options = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2, **changes}
    return Transformer(ModelConfig(source_vocab_size=60, target_vocab_size=60, **options)).eval()


@pytest.mark.parametrize("variant", [{}, {"norm": "pre", "activation": "gelu", "decoder_d_ff": 48}])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 0.2)])
@torch.inference_mode()
def test_cached_steps_give_the_logits_of_the_whole(variant, dtype, tolerance):
    """Also after sentences have left, hypotheses were taken twice, and the cache has grown."""
    net = model(**variant)
    source, target = torch.randint(4, 60, (3, 7)), torch.randint(4, 60, (3, 45))
    source[1, 4:] = 0
    engine = TorchEngine(net, dtype=dtype)
    state = engine.start(source)

    def whole(source, target):
        mask = padding_mask(source, 0)
        memory = net.encode(source, mask)
        return net.output(net.decode(target, memory, target_mask(target, 0), cross_mask(mask))).log_softmax(-1)

    changes = {5: [[0, 0], [1, 1], [2, 2]], 20: [[5, 4], [3, 3]], 30: [[2, 3, 3]], 40: [[2]]}
    for position in range(45):
        if position in changes:
            rows = torch.tensor(changes[position])
            engine.select(state, rows)
            source, target = source[rows.flatten()], target[rows.flatten()].clone()
            target[:, position:] = torch.randint(4, 60, (len(target), 45 - position))  # the hypotheses part here
        found = engine.step(state, target[:, position])
        wanted = whole(source, target[:, : position + 1])[:, -1]
        torch.testing.assert_close(found[:, 3:], wanted[:, 3:], atol=tolerance, rtol=0)
        assert found[:, [0, 2]].isneginf().all()  # <pad> and <sos>
