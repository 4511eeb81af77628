"""One step: a function of its inputs, tensors in and tensors out; what isn't finite changes nothing; wrappers fit."""

import copy
import math

import pytest
import torch
import torch.distributed as dist
from tests.packed import teacher_forced
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

from headway.model import ModelConfig, Transformer
from headway.training.loss import TranslationLoss
from headway.training.optim import make_optimizers
from headway.training.step import accumulate, train_step

SOURCE = torch.tensor([[5, 6, 7, 3], [8, 3, 0, 0]])
TARGET = torch.tensor([[2, 9, 10, 3], [2, 11, 3, 0]])
BATCHES = [teacher_forced(SOURCE, TARGET), teacher_forced(SOURCE[1:, :2], TARGET[1:, :3])]
TOKENS = 7


def small_loss(dropout: float = 0.1) -> TranslationLoss:
    torch.manual_seed(1)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": dropout}
    model = Transformer(ModelConfig(20, 20, **sizes))
    return TranslationLoss(model, label_smoothing=0.1)


class Line(nn.Module):
    """The sum of weight * x * y: any batch that is two tensors."""

    def __init__(self, *weights: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weights))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.weight * x * y).sum()


class Root(nn.Module):
    """The square root of a weight: at 0 it is finite, its gradient isn't."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight.sqrt() + x


def step(loss_of, optimizers, batches, tokens=1, rate=0.1, norm=0.0, **options):
    return train_step(
        loss_of, optimizers, batches, divisor=tokens, rate=rate, max_gradient_norm=norm, dtype=torch.float32, **options
    )


def state(loss_of, optimizers):
    """Every weight, and all that the optimizers remember of it."""
    return [
        tensor.detach().clone()
        for weight in loss_of.parameters()
        for tensor in (weight, *(value for one in optimizers for value in one.state.get(weight, {}).values()))
    ]


def assert_equal(some, others):
    assert len(some) == len(others)
    assert all(torch.equal(one, other) for one, other in zip(some, others, strict=True))


def test_equal_inputs_give_equal_steps_to_the_last_bit(capfd):
    first = small_loss()
    second = copy.deepcopy(first)
    results = []
    for loss_of in (first, second):
        optimizers = make_optimizers(loss_of.model, "adam", 0.98)
        torch.manual_seed(5)
        found = [step(loss_of, optimizers, BATCHES, TOKENS, rate=1e-3, norm=1.0) for _ in range(3)]
        results.append(
            [*state(loss_of, optimizers), *(one.losses for one in found), *(one.gradient_norm for one in found)]
        )
    assert_equal(*results)
    assert capfd.readouterr() == ("", "")


def test_no_gradient_is_left_for_the_next_step():
    loss_of = small_loss()
    step(loss_of, make_optimizers(loss_of.model, "adam", 0.98), BATCHES, TOKENS)
    assert all(weight.grad is None for weight in loss_of.parameters())


def test_a_step_is_of_training():
    """With dropout and label smoothing, though a validation came before."""
    loss_of, validated = small_loss(), small_loss().eval()
    torch.manual_seed(2)
    wanted = loss_of(*BATCHES[0]).item()
    torch.manual_seed(2)
    found = step(validated, make_optimizers(validated.model, "adam", 0.98), BATCHES[:1], TOKENS)
    assert found.losses.tolist() == [wanted]


def test_losses_are_sums_of_each_batch():
    loss_of = small_loss(dropout=0.0)
    wanted = [loss_of(*batch).item() for batch in BATCHES]
    found = step(loss_of, make_optimizers(loss_of.model, "adam", 0.98), BATCHES, TOKENS)
    assert found.losses.tolist() == wanted
    assert not found.losses.requires_grad


@pytest.mark.parametrize(("norm", "scale"), [(0.0, 1.0), (10.0, 0.5), (100.0, 1.0)])
def test_gradients_are_of_the_mean_and_scaled_down_to_the_norm(norm, scale):
    """By plain gradient descent, which shows them: (3, 4) * (2 + 10) / 3 is (12, 16), of norm 20."""
    loss_of, x = Line(1.0, 1.0), torch.tensor([3.0, 4.0])
    descent = [torch.optim.SGD(loss_of.parameters(), lr=99.0, fused=True)]
    found = step(loss_of, descent, [(x, torch.tensor(2.0)), (x, torch.tensor(10.0))], tokens=3, rate=0.5, norm=norm)
    assert found.gradient_norm.item() == pytest.approx(20.0)
    torch.testing.assert_close(loss_of.weight.detach(), 1 - 0.5 * scale * torch.tensor([12.0, 16.0]))


def test_adam_moves_every_weight_by_the_rate_at_first():
    """Its first step is the rate times the gradient's sign, whatever the gradient's size."""
    loss_of = Line(5.0, 5.0, 5.0)
    x = torch.tensor([1e-3, -1.0, 1e3])
    step(loss_of, [torch.optim.Adam(loss_of.parameters(), fused=True)], [(x, torch.ones(()))], rate=0.25)
    torch.testing.assert_close(loss_of.weight.detach(), torch.tensor([4.75, 5.25, 4.75]), atol=1e-4, rtol=0)


@pytest.mark.parametrize("wrong", ["a loss", "a gradient"])
def test_what_is_not_finite_changes_nothing_and_is_shown(wrong):
    """Also not the optimizer's count of its steps; and the next step is as if this one had not been."""
    loss_of: nn.Module = Root() if wrong == "a gradient" else Line(1.0, 2.0)
    optimizers = [torch.optim.Adam(loss_of.parameters(), fused=True)]
    good, bad = torch.ones(()), torch.tensor(math.inf)
    if wrong == "a loss":
        step(loss_of, optimizers, [(good, good)])
    before = state(loss_of, optimizers)
    found = step(loss_of, optimizers, [(good,)] if wrong == "a gradient" else [(good, good), (good, bad)])
    assert found.losses.isfinite().all().item() == (wrong == "a gradient")
    assert not found.gradient_norm.isfinite()
    if wrong == "a loss":
        assert_equal(before, state(loss_of, optimizers))
        step(loss_of, optimizers, [(good, good)])
        assert optimizers[0].state[loss_of.weight]["step"] == 2
    assert loss_of.weight.isfinite().all()


class Reads(TorchDispatchMode):
    """Counts how often a number is read from a tensor, for which Python must wait."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


def test_a_step_waits_for_no_number():
    loss_of, x = Line(1.0, 2.0), torch.ones(2)
    optimizers = [torch.optim.Adam(loss_of.parameters(), fused=True)]
    with Reads() as reads:
        found = step(loss_of, optimizers, [(x, x), (x, x)], norm=1.0)
        assert reads.count == 0
        found.losses.sum().item()
        assert reads.count == 1


@pytest.fixture
def one_rank():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def sharded(loss_of: TranslationLoss) -> nn.Module:
    for layer in (*loss_of.model.encoder.layers, *loss_of.model.decoder.layers):
        fully_shard(layer)
    return fully_shard(loss_of)


@pytest.mark.skipif(not dist.is_available(), reason="this torch has no distributed training")
@pytest.mark.parametrize("wrap", [DistributedDataParallel, sharded], ids=["DDP", "FSDP2"])
@pytest.mark.usefixtures("one_rank")
def test_wrappers_for_many_devices_fit(wrap):
    """Of one rank, where they must give the losses of the bare module: they see its `forward` and its weights alone."""
    losses = []
    for make in (lambda loss_of: loss_of, wrap):
        loss_of = make(small_loss())
        optimizers = [torch.optim.Adam(loss_of.parameters(), fused=True)]
        torch.manual_seed(3)
        losses.append(
            [step(loss_of, optimizers, BATCHES, TOKENS, rate=1e-2, norm=1.0).losses.tolist() for _ in range(3)]
        )
    assert losses[0] == losses[1]
    assert losses[0][2] != losses[0][0]


@pytest.mark.skipif(not dist.is_available(), reason="this torch has no distributed training")
@pytest.mark.usefixtures("one_rank")
def test_gradients_are_exchanged_once_a_step():
    """However many micro-batches it has: every gradient leaves its rank once, with all of them in it."""
    alone, wrapped = small_loss(dropout=0.0), DistributedDataParallel(small_loss(dropout=0.0))
    sent = []

    def exchange(_, bucket):
        sent.append(bucket.buffer().numel())
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    wrapped.register_comm_hook(None, exchange)
    accumulate(wrapped, 3 * BATCHES, TOKENS, torch.float32)
    assert sum(sent) == sum(weight.numel() for weight in alone.parameters())
    accumulate(alone, 3 * BATCHES, TOKENS, torch.float32)
    for one, other in zip(alone.parameters(), wrapped.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_a_step_that_is_infinite_elsewhere_is_left_out_here():
    """So that the ranks' weights stay equal."""
    loss_of = Shifted()
    optimizers = make_optimizers(loss_of, "adam", 0.98)  # type: ignore[arg-type]
    result = step(loss_of, optimizers, [(torch.tensor(0.0),)], all_reduce_sum=lambda losses: losses + torch.inf)
    assert not result.losses.isfinite().any()
    assert loss_of.weight.item() == 1.0


def test_ranks_that_share_the_batches_have_the_gradients_of_one():
    """Each divides by the tokens of all, so the sum of their gradients is that of a single process."""
    alone, *ranks = (small_loss(dropout=0.0) for _ in range(3))
    accumulate(alone, BATCHES, TOKENS, torch.float32)
    for rank, batch in zip(ranks, BATCHES, strict=True):
        accumulate(rank, [batch], TOKENS, torch.float32)
    for whole, *parts in zip(*(one.parameters() for one in (alone, *ranks)), strict=True):
        torch.testing.assert_close(whole.grad, sum(part.grad for part in parts))


class Shifted(nn.Module):
    """A weight plus a number: an infinite loss has a finite gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight + x


def test_an_infinite_loss_changes_nothing_though_its_gradient_is_finite():
    loss_of = Shifted()
    optimizers = make_optimizers(loss_of, "adam", 0.98)  # type: ignore[arg-type]
    result = step(loss_of, optimizers, [(torch.tensor(torch.inf),)])
    assert result.gradient_norm.item() == 1.0
    assert not result.losses.isfinite().any()
    assert loss_of.weight.item() == 1.0
    step(loss_of, optimizers, [(torch.tensor(0.0),)])
    assert loss_of.weight.item() == pytest.approx(0.9)
