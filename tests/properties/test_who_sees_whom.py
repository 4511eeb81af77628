"""Who may see whom: the future, padding and hidden places change nothing, whichever body attention has."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from headway.insight.recording import recording_copy
from headway.model import Decoder, Encoder, Transformer, causal_mask
from tests.properties.models import (
    BODIES,
    EXACT,
    FIRST_WORD,
    LENGTHS,
    PAD,
    SEEDS,
    VOCABULARY,
    attention_by,
    configs,
    random_batch,
    random_model,
    random_words,
    randomised,
    without_positions,
)


def visible_targets(target: Tensor) -> Tensor:
    """(batch, target length, target length): True where the row may see the column, by the definition."""
    batch, length = target.shape
    return torch.tensor(
        [
            [[j <= i and (j == 0 or target[row, j].item() != PAD) for j in range(length)] for i in range(length)]
            for row in range(batch)
        ]
    )


def dependence(hidden: Tensor, embedded: Tensor) -> Tensor:
    """(batch, outputs, inputs): whether the gradient of the output with respect to the input is other than 0."""
    weights = torch.randn_like(hidden)
    gradients = [
        torch.autograd.grad((hidden * weights)[:, place].sum(), embedded, retain_graph=True)[0]
        for place in range(hidden.size(1))
    ]
    return torch.stack([(gradient != 0).any(dim=-1) for gradient in gradients], dim=1)


@given(configs(), SEEDS, LENGTHS, st.integers(0, 2), BODIES)
def test_gradients_reach_what_may_be_seen_and_nothing_else(config, seed, lengths, more, body):
    model = random_model(config, seed)
    source, target = random_batch(lengths, config.bos_id, more)
    embedded = {}
    for side in ("source", "target"):
        module = getattr(model, f"{side}_embedding")
        module.register_forward_hook(lambda *seen, side=side: embedded.update({side: seen[-1]}))
    with attention_by(body):
        hidden = model.hidden_states(source, target)
    real = (source != PAD)[:, None].expand(-1, target.size(1), -1)
    assert torch.equal(dependence(hidden, embedded["source"]), real)
    itself = torch.eye(target.size(1), dtype=torch.bool)
    assert torch.equal(dependence(hidden, embedded["target"]), visible_targets(target) | itself)


@given(configs(), SEEDS, LENGTHS, st.integers(0, 2), BODIES, st.data())
def test_a_changed_token_changes_no_output_before_it(config, seed, lengths, more, body, data):
    model = random_model(config, seed)
    source, target = random_batch(lengths, config.bos_id, more)
    place = data.draw(st.integers(0, target.size(1) - 1))
    changed = target.clone()
    changed[:, place] = FIRST_WORD + (target[:, place] - FIRST_WORD + 1) % (VOCABULARY - FIRST_WORD)
    with attention_by(body):
        before, after = (model(source, ids) for ids in (target, changed))
    torch.testing.assert_close(before[:, :place], after[:, :place], **EXACT)
    assert ((before - after)[:, place].abs().amax(dim=-1) > 1e-6).all()


@given(configs(), SEEDS, LENGTHS, st.integers(0, 5), BODIES)
def test_padding_after_either_side_changes_nothing(config, seed, lengths, more, body):
    """Each pair of a padded batch gives what it gives alone."""
    model = random_model(config, seed)
    source, target = random_batch(lengths, config.bos_id, more)
    with attention_by(body):
        together = model(source, target)
        for row, (words, given_words) in enumerate(lengths):
            alone = model(source[[row], : words + 1], target[[row], : given_words + 1])
            torch.testing.assert_close(together[[row], : given_words + 1], alone, **EXACT)


@st.composite
def visibility(draw: st.DrawFn) -> Tensor:
    """(1, 1, 1, length): at least one of the places, wherever it stands."""
    places = draw(st.lists(st.booleans(), max_size=8))
    places.insert(draw(st.integers(0, len(places))), True)
    return torch.tensor(places)[None, None, None]


@given(st.sampled_from(["post", "pre"]), SEEDS, visibility(), visibility(), BODIES)
def test_hidden_places_may_stand_anywhere_and_hold_anything(norm, seed, source_mask, target_mask, body):
    """On the left, in between, on the right: the stacks on plain floats give what they give without these places."""
    torch.manual_seed(seed)
    encoder, decoder = (randomised(stack(8, 2, 9, 2, norm=norm)) for stack in (Encoder, Decoder))
    real, real_targets = source_mask.flatten(), target_mask.flatten()
    x, y = (torch.randn(1, len(places), 8, dtype=torch.float64) for places in (real, real_targets))
    x[:, ~real] *= 1000
    y[:, ~real_targets] *= 1000
    look_ahead = causal_mask(len(real_targets))
    with attention_by(body):
        memory = encoder(x, source_mask)
        output = decoder(y, memory, target_mask & look_ahead, source_mask)
        wanted_memory = encoder(x[:, real])
        few = causal_mask(int(real_targets.sum()))
        wanted = decoder(y[:, real_targets], wanted_memory, few)
    torch.testing.assert_close(memory[:, real], wanted_memory, **EXACT)
    torch.testing.assert_close(output[:, real_targets], wanted, **EXACT)


@given(configs(positions="learned", bos_id=2), SEEDS, visibility(), visibility(), BODIES)
def test_without_positions_padding_may_stand_anywhere(config, seed, source_mask, target_mask, body):
    """Positions count from the first place of a row, padding or not, so it is they that bind padding to its end."""
    model = without_positions(random_model(config, seed))
    real, real_targets = source_mask.flatten(), torch.cat([torch.tensor([True]), target_mask.flatten()])
    source, target = torch.tensor(random_words(len(real))), torch.tensor([2, *random_words(len(real_targets) - 1)])
    with attention_by(body):
        alone = model(source[None, real], target[None, real_targets])
        source[~real], target[~real_targets] = PAD, PAD
        among = model(source[None], target[None])
    torch.testing.assert_close(among[:, real_targets], alone, **EXACT)


def attention_maps(model: Transformer, source: Tensor, target: Tensor) -> dict[str, Tensor]:
    """(batch, heads, query, key) for every layer and kind."""
    maps = {}
    recording_copy(model, lambda name, tensor: maps.update({name: tensor}))(source, target)
    return {name: tensor for name, tensor in maps.items() if name.endswith("weights")}


@given(configs(), SEEDS, LENGTHS, st.integers(0, 2), st.booleans())
def test_rows_of_attention_sum_to_one_over_what_may_be_seen(config, seed, lengths, more, empty):
    model = random_model(config, seed)
    source, target = random_batch(lengths, config.bos_id, more)
    if empty:
        source[0] = PAD  # a source of padding alone: its rows see nothing
    maps = attention_maps(model, source, target)
    assert len(maps) == config.encoder_layers + 2 * config.decoder_layers
    for name, weights in maps.items():
        visible = visible_targets(target)
        if not name.startswith("decoder") or "cross" in name:
            visible = (source != PAD)[:, None].expand(-1, weights.size(2), -1)
        visible = visible[:, None].expand_as(weights)
        assert torch.equal(weights > 0, visible)
        assert torch.equal(weights == 0, ~visible)
        torch.testing.assert_close(weights.sum(dim=-1), visible.any(dim=-1).double(), **EXACT)
