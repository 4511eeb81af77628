"""Muon against torch's own, and singular values; which weights are whose; steps that are left out; checkpoints."""

import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.training.test_step import BATCHES, TOKENS, Reads, assert_equal, small_loss, state, step
from torch.utils.flop_counter import FlopCounterMode

from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.recipe.optimizers import UPDATES
from headway.recipe.planning import Corpus, Devices, training_memory
from headway.recipe.recipe import TrainingSection
from headway.recipe.sizes import work_of_update
from headway.training.checkpoint import Progress, State, load_checkpoint, save_checkpoint
from headway.training.optim import Muon, make_optimizers, orthogonalized

RATE = 0.01
CONFIG = ModelConfig(20, 20, d_model=16, num_heads=2, encoder_layers=2, decoder_layers=1, d_ff=48, decoder_d_ff=8)


def matrices(*shapes: tuple[int, int]) -> list[torch.nn.Parameter]:
    return [torch.nn.Parameter(torch.randn(shape)) for shape in shapes]


def test_steps_are_those_of_torch():
    """torch's Muon takes one matrix at a time, in bf16 throughout; a rounding moves an update by a hundredth."""
    torch.manual_seed(1)
    mine = matrices((16, 16), (16, 48), (48, 16), (16, 16), (16, 48))
    theirs = copy.deepcopy(mine)
    before = copy.deepcopy(mine)
    ours = Muon(mine, torch.bfloat16)
    ours.param_groups[0]["lr"] = RATE
    reference = torch.optim.Muon(theirs, lr=RATE, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")
    for _ in range(3):
        for one, other in zip(mine, theirs, strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        ours.step()
        reference.step()
    for start, one, other in zip(before, mine, theirs, strict=True):
        moved, wanted = one - start, other - start
        assert (moved - wanted).norm() < 0.02 * wanted.norm()


@given(st.integers(1, 40), st.integers(0, 60), st.integers(0, 100))
def test_all_directions_count_alike(rows, more, seed):
    """By the singular value decomposition: an update is near U V^T, however unlike the singular values were."""
    torch.manual_seed(seed)
    size = rows + more
    left, right = torch.linalg.qr(torch.randn(rows, rows))[0], torch.linalg.qr(torch.randn(size, rows))[0]
    values = torch.logspace(0, -1, rows)
    [found] = orthogonalized((left * values @ right.mT)[None], torch.float32)
    along = (left.mT @ found @ right).diagonal()
    assert along.min() > 0.6
    assert along.max() < 1.3
    torch.testing.assert_close(left * along @ right.mT, found, atol=1e-3, rtol=0)


def test_an_update_is_as_large_as_one_of_adam():
    """Its root mean square is about a fifth of the rate, whatever the shape and the gradient's size."""
    for shape, scale in (((16, 16), 1e-3), ((64, 16), 1.0), ((16, 256), 1e3)):
        [matrix] = matrices(shape)
        before, optimizer = matrix.detach().clone(), Muon([matrix], torch.float32)
        optimizer.param_groups[0]["lr"] = RATE
        matrix.grad = scale * torch.randn(shape)
        optimizer.step()
        assert (matrix - before).square().mean().sqrt().item() == pytest.approx(0.2 * RATE, rel=0.3)


@pytest.mark.parametrize("sharing", ["all", "none"])
def test_muon_has_the_matrices_of_the_layers_and_adam_all_else(sharing):
    model = Transformer(ModelConfig(**{**CONFIG.__dict__, "share_embeddings": sharing, "positions": "learned"}))
    names = {parameter: name for name, parameter in model.named_parameters()}
    adam, muon = (
        [names[parameter] for group in one.param_groups for parameter in group["params"]]
        for one in make_optimizers(model, "muon", 0.98)
    )
    assert sorted([*adam, *muon]) == sorted(names.values())
    assert all(".layers." in name and model.get_parameter(name).dim() == 2 for name in muon)
    assert not any(".layers." in name and model.get_parameter(name).dim() == 2 for name in adam)
    [only] = make_optimizers(model, "adam", 0.98)
    assert {names[parameter] for group in only.param_groups for parameter in group["params"]} == set(names.values())


def test_all_weights_learn():
    loss_of = small_loss()
    before = [parameter.detach().clone() for parameter in loss_of.parameters()]
    step(loss_of, make_optimizers(loss_of.model, "muon", 0.98), BATCHES, TOKENS, rate=RATE)
    changed = zip(loss_of.named_parameters(), before, strict=True)
    assert [name for (name, now), then in changed if torch.equal(now, then) and not name.endswith("key.bias")] == []
    assert all(parameter.grad is None for parameter in loss_of.parameters())


def test_what_is_not_finite_changes_nothing():
    """Also not the momentum: the next step is as if this one had not been."""
    loss_of, undisturbed = small_loss(dropout=0.0), small_loss(dropout=0.0)
    ours = make_optimizers(loss_of.model, "muon", 0.98)
    others = make_optimizers(undisturbed.model, "muon", 0.98)
    for one, optimizers in ((loss_of, ours), (undisturbed, others)):
        step(one, optimizers, BATCHES, TOKENS, rate=RATE)
    before = state(loss_of, ours)
    result = step(loss_of, ours, BATCHES, math.nan, rate=RATE)
    assert not result.gradient_norm.isfinite()
    assert_equal(before, state(loss_of, ours))
    for one, optimizers in ((loss_of, ours), (undisturbed, others)):
        step(one, optimizers, BATCHES, TOKENS, rate=RATE)
    assert_equal(state(loss_of, ours), state(undisturbed, others))


def test_a_step_waits_for_no_number():
    loss_of = small_loss()
    optimizers = make_optimizers(loss_of.model, "muon", 0.98)
    with Reads() as reads:
        step(loss_of, optimizers[1:], BATCHES, TOKENS, norm=1.0)
    assert reads.count == 0


def test_a_checkpoint_gives_back_the_momenta(tmp_path):
    loss_of, other = small_loss(), small_loss()
    optimizers, others = (make_optimizers(one.model, "muon", 0.98) for one in (loss_of, other))
    step(loss_of, optimizers, BATCHES, TOKENS, rate=RATE)
    save_checkpoint(tmp_path, loss_of.model, optimizers, None, State(Progress(step=1), {}, "data", {}))
    load_checkpoint(tmp_path / "step-00000001", other.model, others, None)
    assert_equal(state(loss_of, optimizers), state(other, others))
    adam = make_optimizers(other.model, "adam", 0.98)
    with pytest.raises(UserError, match=r"lacks tensor 'decoder\.layers\.0\..*/exp_avg'"):
        load_checkpoint(tmp_path / "step-00000001", other.model, adam, None)


@pytest.mark.parametrize("name", UPDATES)
def test_work_of_an_update_is_counted_by_torch(name):
    model = Transformer(CONFIG)
    optimizers = make_optimizers(model, name, 0.98)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    with FlopCounterMode(display=False) as counted:
        for one in optimizers:
            one.step()
    assert counted.get_total_flops() == work_of_update(CONFIG, name)
    assert (work_of_update(CONFIG, name) > 0) == (name == "muon")


@pytest.mark.parametrize("name", UPDATES)
def test_memory_is_that_of_the_states(name):
    model = Transformer(CONFIG)
    optimizers = make_optimizers(model, name, 0.98)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for one in optimizers:
        one.step()
    states = [state for one in optimizers for state in one.state.values()]
    kept = sum(tensor.nbytes for state in states for name, tensor in state.items() if name != "step")
    options = TrainingSection(max_steps=1, optimizer=name)
    memory = training_memory(CONFIG, Corpus(1, 1, (5, 5), 0), options, Devices(), micro_batches=1, places=100)
    assert memory["optimizer"] == kept
    if name == "muon":
        assert kept < 8 * sum(parameter.numel() for parameter in model.parameters())  # Adam's two moments
