"""Order: without positions the model sees a set, with them a sequence."""

import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from headway.model import Decoder, Encoder, Transformer
from tests.properties.models import (
    BODIES,
    EOS,
    EXACT,
    SEEDS,
    attention_by,
    configs,
    random_model,
    random_words,
    randomised,
    without_positions,
)

ORDERS = st.integers(1, 8).flatmap(lambda length: st.permutations(range(length)))
NORMS = st.sampled_from(["post", "pre"])


@given(NORMS, SEEDS, ORDERS, BODIES)
def test_an_encoder_without_positions_gives_the_same_in_another_order(norm, seed, order, body):
    torch.manual_seed(seed)
    encoder = randomised(Encoder(8, 2, 9, 2, norm=norm))
    x, mask = torch.randn(1, len(order), 8, dtype=torch.float64), torch.rand(1, 1, 1, len(order)) > 0.3
    with attention_by(body):
        found = encoder(x[:, order], mask[..., order])
        wanted = encoder(x, mask)[:, order]
    torch.testing.assert_close(found, wanted, **EXACT)


@given(NORMS, SEEDS, ORDERS, ORDERS, BODIES)
def test_a_decoder_that_may_look_ahead_gives_the_same_in_another_order(norm, seed, order, memory_order, body):
    """Of its own places and of those of the memory, which it sees as a set in any case."""
    torch.manual_seed(seed)
    decoder = randomised(Decoder(8, 2, 9, 2, norm=norm))
    x, memory = (torch.randn(1, len(places), 8, dtype=torch.float64) for places in (order, memory_order))
    mask = torch.rand(1, 1, 1, len(memory_order)) > 0.3
    with attention_by(body):
        found = decoder(x[:, order], memory[:, memory_order], None, mask[..., memory_order])
        wanted = decoder(x, memory, None, mask)[:, order]
    torch.testing.assert_close(found, wanted, **EXACT)


def logits_of_both(model: Transformer, order: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of a target for a source, and for the same source in another order."""
    source, target = torch.tensor([[*random_words(len(order) - 1), EOS]]), torch.tensor([[2, *random_words(4)]])
    assume(not torch.equal(source[:, order], source))
    return model(source, target), model(source[:, order], target)


@given(configs(positions="learned"), SEEDS, ORDERS)
def test_without_positions_the_order_of_a_source_changes_nothing(config, seed, order):
    one, other = logits_of_both(without_positions(random_model(config, seed)), order)
    torch.testing.assert_close(one, other, **EXACT)


@given(configs(), SEEDS, ORDERS)
def test_with_positions_the_order_of_a_source_changes_every_output(config, seed, order):
    one, other = logits_of_both(random_model(config, seed), order)
    assert ((one - other).abs().amax(dim=-1) > 1e-8).all()


@given(configs(), SEEDS, st.integers(2, 6), st.data())
def test_with_positions_the_order_of_a_target_changes_the_outputs_after_it(config, seed, length, data):
    """Two words exchanged: every output from the first of them on is another."""
    model = random_model(config, seed)
    source, words = torch.tensor([[*random_words(3), EOS]]), random_words(length)
    first, second = sorted(data.draw(st.permutations(range(length)))[:2])
    assume(words[first] != words[second])
    exchanged = [*words]
    exchanged[first], exchanged[second] = words[second], words[first]
    one, other = (model(source, torch.tensor([[2, *ids]])) for ids in (words, exchanged))
    assert ((one - other)[:, first + 1 :].abs().amax(dim=-1) > 1e-8).all()
