"""Search over engines: a table of probabilities worked by hand, and the real model with its cache."""

import math

import pytest
import torch

from headway.decoding import TorchEngine, greedy
from headway.model import ModelConfig, Transformer, cross_mask, padding_mask, target_mask
from headway.text.batches import pad

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


def uncached_greedy(model: Transformer, source: list[int], cap: int) -> tuple[list[int], float, str]:
    """The textbook's loop: the whole sentence through the whole model for each token."""
    target, score = [model.config.bos_id], 0.0
    while True:
        logits = model(torch.tensor([source]), torch.tensor([target]))[0, -1]
        log_probabilities = logits.log_softmax(-1)
        log_probabilities[[model.config.pad_id, model.config.bos_id]] = -torch.inf  # are never a next token
        value, token = log_probabilities.max(-1)
        if token == model.config.eos_id:
            return target[1:], score + value.item(), "eos"
        if len(target) > cap:
            return target[1:], score + log_probabilities[model.config.eos_id].item(), "max_length"
        score += value.item()
        target.append(int(token))


@pytest.mark.parametrize(
    "variant", [{}, {"norm": "pre"}, {"positions": "learned"}, {"decoder_num_heads": 2}, {"bos_id": 0}]
)
@torch.inference_mode()
def test_cached_batched_search_is_the_uncached_search_alone(variant):
    net = model(**variant)
    sources = [[*torch.randint(4, 60, (length,)).tolist(), EOS] for length in (1, 3, 9, 9, 30, 2)]
    caps = [25, 7, 40, 1, 60, 33]
    rows = torch.from_numpy(pad(sources))
    for source, cap, found in zip(sources, caps, greedy(TorchEngine(net), rows, caps), strict=True):
        ids, score, stopped = uncached_greedy(net, source, cap)
        assert found.ids == ids
        assert found.score == pytest.approx(score, abs=1e-4)
        assert found.stopped == stopped


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
