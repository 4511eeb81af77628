"""The output layer and its cross-entropy in one walk: hand-worked numbers, the edges, bf16. That it is torch's
cross_entropy, with its gradients, is in `tests/properties/test_fast_bodies.py`."""

import math

import pytest
import torch

from headway.kernels.cross_entropy import output_cross_entropy


def loss_of(logits: torch.Tensor, targets: list[int], label_smoothing: float = 0.0) -> float:
    """Of logits that are the hidden states themselves."""
    return output_cross_entropy(logits, torch.eye(logits.size(1)), None, torch.tensor(targets), label_smoothing).item()


def test_cross_entropy_by_hand():
    expected = -math.log(math.exp(3) / (math.exp(1) + math.exp(2) + math.exp(3))) + math.log(3)
    assert loss_of(torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]), [2, 1]) == pytest.approx(expected, abs=1e-6)


def test_least_smoothed_loss():
    """Reached where the prediction is the smoothed target itself: 0.9 + 0.01 on one class, 0.01 on the nine others."""
    best = torch.full((1, 10), 0.01)
    best[0, 4] = 0.91
    assert loss_of(best.log(), [4], 0.1) == pytest.approx(0.500288, abs=1e-6)


def test_logits_far_apart_give_finite_losses():
    logits = torch.tensor([[0.0, 500.0, -500.0], [1e4, 0.0, 0.0]])
    assert loss_of(logits, [2, 1]) == pytest.approx(1000.0 + 1e4)


def test_no_tokens_have_no_loss():
    hidden, weight = torch.zeros(0, 4, requires_grad=True), torch.zeros(9, 4, requires_grad=True)
    loss = output_cross_entropy(hidden, weight, None, torch.zeros(0, dtype=torch.long))
    assert loss.item() == 0.0
    loss.backward()
    assert not weight.grad.any()


def test_the_loss_alone_is_that_of_training():
    hidden, weight, targets = torch.randn(9, 4), torch.randn(20, 4, requires_grad=True), torch.arange(9)
    with torch.inference_mode():
        alone = output_cross_entropy(hidden, weight, None, targets, 0.1)
    assert alone.item() == output_cross_entropy(hidden, weight, None, targets, 0.1).item()


@pytest.mark.parametrize("weighted", [False, True])
def test_in_bf16_the_loss_is_near_that_of_fp32(weighted):
    random = torch.Generator().manual_seed(1)
    hidden, weight = torch.randn(200, 32, generator=random), torch.randn(500, 32, generator=random) / 6
    targets = torch.randint(500, (200,), generator=random)
    weights = torch.rand(200, generator=random) if weighted else None
    losses, gradients = [], []
    for enabled in (False, True):
        leaf = weight.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            loss = output_cross_entropy(hidden, leaf, None, targets, 0.1, weights=weights)
        loss.backward()
        losses.append(loss.item())
        gradients.append(leaf.grad)
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
    assert (gradients[1] - gradients[0]).norm() < 0.01 * gradients[0].norm()
    assert gradients[1].dtype == torch.float32


def test_a_frozen_output_layer_gets_no_gradient_and_changes_no_other():
    targets, found = torch.arange(9), []
    hidden, weight, bias = torch.randn(9, 4), torch.randn(20, 4), torch.randn(20)
    for frozen in (False, True):
        leaves = [one.clone().requires_grad_() for one in (hidden, weight, bias)]
        output_cross_entropy(leaves[0], *(leaves[1:] if not frozen else (weight, bias)), targets, 0.1).backward()
        found.append(leaves[0].grad)
    assert torch.equal(*found)
    assert weight.grad is bias.grad is None
