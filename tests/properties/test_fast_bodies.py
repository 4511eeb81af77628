"""What is fast against what is plain: the same numbers, and the same gradients."""

import math
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from headway.decoding.engine import BLOCK, likeliest
from headway.decoding.step import PackedLinear
from headway.kernels.cross_entropy import output_cross_entropy
from headway.kernels.dropout import dropout
from headway.model import attend
from headway.training.loss import TranslationLoss
from tests.packed import teacher_forced
from tests.properties.models import (
    BODIES,
    EXACT,
    LENGTHS,
    SEEDS,
    attention_by,
    configs,
    random_batch,
    random_model,
)

FAST = ["fused", "plain"]
SIZES = st.integers(1, 5)
"""Of batch and heads, of queries and of features."""
KEYS = st.integers(1, 20) | st.sampled_from([15, 16, 17, 31, 32, 33])
"""Around the widths of vector registers."""


@st.composite
def attention_inputs(draw: st.DrawFn) -> tuple[list[Tensor], Tensor | None]:
    """query, key and value with some dimensions in front, and a mask that can be broadcast to their scores; some of
    its rows hide everything."""
    torch.manual_seed(draw(SEEDS))
    front, (queries, keys) = draw(st.lists(SIZES, max_size=2)), (draw(SIZES), draw(KEYS))
    d_key, d_value = draw(SIZES), draw(SIZES)
    shapes = ((*front, queries, d_key), (*front, keys, d_key), (*front, keys, d_value))
    inputs = [3 * torch.randn(shape, dtype=torch.float64) for shape in shapes]
    if draw(st.booleans()):
        return inputs, None
    full = [*front, queries, keys]
    shape = [draw(st.sampled_from([1, size])) for size in full[:-1]] + [keys]
    mask = torch.rand(shape) > draw(st.sampled_from([0.2, 0.7]))
    mask[torch.rand(shape[:-1]) < 0.2] = False
    return inputs, mask[(0,) * draw(st.integers(0, len(front)))] if set(shape[: len(front)]) <= {1} else mask


@pytest.mark.parametrize("body", FAST)
@given(attention_inputs())
def test_attention_has_one_meaning(body, drawn):
    inputs, mask = drawn
    results = []
    for way in ("readable", body):
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        with attention_by(way):
            output, _ = attend(*leaves, mask, return_weights=way == "readable")
        gradients = torch.autograd.grad(output.sin().sum(), leaves)
        results.append([output, *gradients])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, **EXACT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("keys", [300, 600, 1100])
def test_attention_has_one_meaning_where_many_places_in_front_are_hidden(dtype, keys):
    """More than torch's kernel looks at together."""
    inputs = [torch.randn(2, 2, length, 8, dtype=dtype) for length in (70, keys, keys)]
    mask = torch.arange(keys) >= torch.tensor([keys, keys - 7])[:, None, None, None]  # one sees nothing at all
    results = []
    for return_weights in (True, False):
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        output, _ = attend(*leaves, mask, return_weights=return_weights)
        results.append([output, *torch.autograd.grad(output.sin().sum(), leaves)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5 if dtype == torch.float32 else 1e-11, rtol=0)


@pytest.mark.parametrize("body", ["readable", *FAST])
def test_dropout_acts_on_the_weights(body):
    """With values of one, the output is the sum of the kept weights: its mean over many draws is 1, and it varies."""
    query, key = torch.zeros(1, 1, 2000, 4), torch.zeros(1, 1, 50, 4)
    with attention_by(body):
        output, _ = attend(query, key, torch.ones(1, 1, 50, 1), dropout=0.2, return_weights=body == "readable")
    assert output.mean().item() == pytest.approx(1.0, abs=0.01)
    assert output.std().item() == pytest.approx(math.sqrt(0.2 / 0.8 / 50), rel=0.1)


@given(configs(), SEEDS, LENGTHS, st.integers(0, 2), BODIES)
def test_a_model_has_one_meaning(config, seed, lengths, more, body):
    """Its logits, and the gradients of all its weights."""
    model = random_model(config, seed)
    source, target = random_batch(lengths, config.bos_id, more)
    results = []
    for way in ("readable", body):
        with attention_by(way):
            logits = model(source, target)
        results.append([logits, *torch.autograd.grad(logits.sin().sum(), list(model.parameters()), allow_unused=True)])
    for one, other in zip(*results, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, **EXACT)


def smoothed(logits: Tensor, target: int, epsilon: float) -> float:
    """Section 5.4, of one token: the cross-entropy with (1 - epsilon) of the target and epsilon / V of each word."""
    values = logits.tolist()
    highest = max(values)
    log_sum = highest + math.log(sum(math.exp(value - highest) for value in values))
    return sum(
        ((1 - epsilon) * (word == target) + epsilon / len(values)) * (log_sum - value)
        for word, value in enumerate(values)
    )


@given(
    seed=SEEDS,
    sizes=st.tuples(st.integers(0, 9), st.integers(1, 30), st.integers(1, 6)),
    epsilon=st.sampled_from([0.0, 0.1, 1.0]) | st.floats(0.0, 1.0),
    scale=st.sampled_from([0.1, 1.0, 30.0]),
    with_bias=st.booleans(),
    chunk=st.sampled_from([1, 40, 10**6]),
)
def test_the_loss_is_the_formula_and_its_gradients_are_those_of_torch(seed, sizes, epsilon, scale, with_bias, chunk):
    torch.manual_seed(seed)
    tokens, vocabulary, d_model = sizes
    shapes = [(tokens, d_model), (vocabulary, d_model), *([(vocabulary,)] if with_bias else [])]
    inputs = [(scale * torch.randn(shape, dtype=torch.float64)).requires_grad_() for shape in shapes]
    hidden, weight, bias = inputs if with_bias else (*inputs, None)
    targets = torch.randint(vocabulary, (tokens,))
    with patch("headway.kernels.cross_entropy.CHUNK", chunk):
        found = output_cross_entropy(hidden, weight, bias, targets, epsilon)
    logits = F.linear(hidden, weight, bias)
    formula = sum(smoothed(row, target, epsilon) for row, target in zip(logits, targets.tolist(), strict=True))
    assert found.item() == pytest.approx(formula, rel=1e-10, abs=1e-10)
    wanted = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=epsilon)
    for one, other in zip(torch.autograd.grad(3 * found, inputs), torch.autograd.grad(3 * wanted, inputs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@given(
    seed=SEEDS,
    sizes=st.tuples(st.integers(0, 9), st.integers(1, 30), st.integers(1, 6)),
    scale=st.sampled_from([0.1, 1.0, 10.0]),
    with_bias=st.booleans(),
    chunk=st.sampled_from([1, 40, 10**6]),
)
def test_the_weighted_loss_is_that_of_torch(seed, sizes, scale, with_bias, chunk):
    """With a weight of either sign for each token; id 0 is ignored."""
    torch.manual_seed(seed)
    tokens, vocabulary, d_model = sizes
    shapes = [(tokens, d_model), (vocabulary, d_model), *([(vocabulary,)] if with_bias else [])]
    inputs = [(scale * torch.randn(shape, dtype=torch.float64)).requires_grad_() for shape in shapes]
    hidden, weight, bias = inputs if with_bias else (*inputs, None)
    targets, weights = torch.randint(vocabulary, (tokens,)), torch.randn(tokens, dtype=torch.float64)
    with patch("headway.kernels.cross_entropy.CHUNK", chunk):
        found = output_cross_entropy(hidden, weight, bias, targets, ignore_index=0, weights=weights)
    losses = F.cross_entropy(F.linear(hidden, weight, bias), targets, reduction="none", ignore_index=0)
    wanted = losses @ weights
    assert found.item() == pytest.approx(wanted.item(), rel=1e-10, abs=1e-10)
    for one, other in zip(torch.autograd.grad(3 * found, inputs), torch.autograd.grad(3 * wanted, inputs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


@given(configs(), SEEDS, LENGTHS, st.integers(0, 2), st.sampled_from([0.0, 0.1]))
def test_the_loss_of_a_batch_is_the_sum_of_its_pairs_losses(config, seed, lengths, more, epsilon):
    """With the gradients of all weights; each pair alone, its loss by torch from all its logits."""
    model = random_model(config, seed)
    source, read = random_batch(lengths, config.bos_id, more)
    target = F.pad(read, (0, 1))
    for row, (_, words) in enumerate(lengths):
        target[row, words + 1] = config.eos_id
    parameters = list(model.parameters())
    found = TranslationLoss(model, epsilon)(*teacher_forced(source, target))
    wanted = sum(
        F.cross_entropy(
            model(source[[row], : words + 1], target[[row], : given_words + 1])[0],
            target[row, 1 : given_words + 2],
            reduction="sum",
            label_smoothing=epsilon,
        )
        for row, (words, given_words) in enumerate(lengths)
    )
    torch.testing.assert_close(found, wanted, **EXACT)
    of_found, of_wanted = (torch.autograd.grad(loss, parameters, materialize_grads=True) for loss in (found, wanted))
    for one, other in zip(of_found, of_wanted, strict=True):
        torch.testing.assert_close(one, other, **EXACT)


@given(
    seed=SEEDS,
    rows=st.integers(1, 5),
    blocks=st.integers(0, 40),
    rest=st.integers(0, BLOCK - 1),
    count=st.integers(1, 12),
    levels=st.sampled_from([2, 50, 10**7]),
    ends=st.booleans(),
)
def test_the_likeliest_are_those_of_topk(seed, rows, blocks, rest, count, levels, ends):
    """Also where many are equal, where many are impossible, and where the best stand first and last."""
    torch.manual_seed(seed)
    vocabulary = max(count, blocks * BLOCK + rest)
    values = torch.randint(levels, (rows, vocabulary)).float() / levels
    values[torch.rand(rows, vocabulary) < 0.3] = -torch.inf
    if ends:
        values[:, [0, -1]] = torch.tensor([2.0, 3.0])
    found, ids = likeliest(values, count)
    assert torch.equal(found, values.topk(count)[0])
    assert torch.equal(values.gather(1, ids), found)
    assert all(len(set(row)) == count for row in ids.tolist())


@given(
    seed=SEEDS,
    d_in=st.integers(1, 70),
    d_outs=st.lists(st.integers(1, 70), min_size=1, max_size=3),
    front=st.lists(st.integers(1, 9), min_size=1, max_size=2),
    bias=st.booleans(),
    with_onednn=st.booleans(),
    kind=st.sampled_from([(torch.float32, 1e-5), (torch.bfloat16, 4e-2)]),
)
def test_packed_layers_are_linear_layers(seed, d_in, d_outs, front, bias, with_onednn, kind):
    torch.manual_seed(seed)
    dtype, tolerance = kind
    layers = [nn.Linear(d_in, d_out, bias=bias) for d_out in d_outs]
    x = torch.randn(*front, d_in)
    wanted = torch.cat([layer(x) * (0.5 if layer is layers[0] else 1.0) for layer in layers], dim=-1)
    with patch("torch.backends.mkldnn.is_available", lambda: with_onednn):
        found = PackedLinear(layers, dtype, scale=0.5)(x.to(dtype))
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), wanted, atol=tolerance, rtol=tolerance)


@given(
    seed=SEEDS,
    probability=st.sampled_from([0.1, 0.3, 0.5]) | st.floats(0.01, 0.95),
    shape=st.sampled_from([(1_000_000,), (1001, 999), (7, 378, 378), (1, 1_000_003)]),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
)
def test_dropout_is_as_many_coins(seed, probability, shape, dtype):
    """Each element goes with the probability, whichever of the four that share a draw it is; neighbours near and far,
    and two calls, are independent: all within 5 standard deviations. Gradients go where the elements go."""
    torch.manual_seed(seed)
    x = torch.full(shape, 2.0, dtype=dtype).requires_grad_()
    y = dropout(x, probability)
    [gradient] = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(2 * gradient, y)
    kept = y[y != 0].detach()
    torch.testing.assert_close(kept, torch.full_like(kept, 2 / (1 - probability)))
    gone, again = (tensor.detach().flatten() == 0 for tensor in (y, dropout(x, probability)))
    assert_share(gone, probability)
    for place in range(4):
        assert_share(gone[place::4], probability)
    for distance in (1, 2, 3, 4, 5):
        assert_share(gone[distance:] & gone[:-distance], probability**2, correlated=distance)
    assert_share(gone & again, probability**2)


def assert_share(found: Tensor, probability: float, correlated: int = 0) -> None:
    """Pairs that overlap (correlated) vary more than coins do, three times at most."""
    deviation = math.sqrt((3 if correlated else 1) * probability * (1 - probability) / len(found))
    assert abs(found.double().mean().item() - probability) <= 5 * deviation


def test_dropout_of_a_view_keeps_places():
    """The elements of a transposed tensor go on their own, each with its own gradient."""
    x = torch.arange(1.0, 61).view(6, 10).requires_grad_()
    y = dropout(x.T, 0.5)
    [gradient] = torch.autograd.grad(y.sum(), x)
    assert torch.equal(y.detach(), (x * gradient).T.detach())
    assert set(gradient.unique().tolist()) == {0.0, 2.0}
