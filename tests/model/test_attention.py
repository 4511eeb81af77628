"""attend and MultiHeadAttention against a worked example and torch.nn."""

import pytest
import torch
from torch import nn

from headway.model import MultiHeadAttention, ScaledDotProductAttention, attend, causal_mask

X = torch.tensor([[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]], dtype=torch.float32)
W_QUERY = torch.tensor([[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]], dtype=torch.float32)
W_KEY = torch.tensor([[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]], dtype=torch.float32)
W_VALUE = torch.tensor([[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]], dtype=torch.float32)
WEIGHTS = torch.tensor([[0.13613, 0.43194, 0.43194], [8.9045e-4, 0.90884, 0.090267], [7.4449e-3, 0.75471, 0.23785]])
VALUES = torch.tensor([[1.8639, 6.3194, 1.7042], [1.9991, 7.8141, 0.2735], [1.9926, 7.4796, 0.7359]])


def random_inputs(dtype=torch.float64, batch=3, heads=4, queries=5, keys=7, d_head=8):
    query = torch.randn(batch, heads, queries, d_head, dtype=dtype)
    key, value = (torch.randn(batch, heads, keys, d_head, dtype=dtype) for _ in range(2))
    return query, key, value


def test_worked_example():
    query, key, value = X @ W_QUERY, X @ W_KEY, X @ W_VALUE
    assert torch.equal(query @ key.T, torch.tensor([[2.0, 4, 4], [4, 16, 12], [4, 12, 10]]))
    output, weights = attend(query, key, value, return_weights=True)
    torch.testing.assert_close(weights, WEIGHTS, atol=1e-4, rtol=0)
    torch.testing.assert_close(output, VALUES, atol=1e-4, rtol=0)


def test_in_bf16_both_bodies_are_near():
    mask = torch.rand(3, 1, 5, 7) > 0.4
    mask[0, :, 2] = False
    inputs, results = random_inputs(torch.bfloat16), []
    for dtype, readable in ((torch.float32, True), (torch.bfloat16, False)):
        leaves = [tensor.to(dtype, copy=True).requires_grad_() for tensor in inputs]
        output, _ = attend(*leaves, mask, return_weights=readable)
        output.float().sin().sum().backward()
        results.append([output.float(), *(leaf.grad.float() for leaf in leaves)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=0.05, rtol=0.05)


def test_weights_are_a_distribution_over_visible_keys():
    mask = (torch.arange(7) < torch.tensor([7, 3, 1])[:, None])[:, None, None]
    _, weights = attend(*random_inputs(), mask, return_weights=True)
    assert weights is not None
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4, 5, dtype=torch.float64))
    assert weights[1, :, :, 3:].count_nonzero() == 0
    assert weights[2, :, :, 1:].count_nonzero() == 0


@pytest.mark.parametrize("return_weights", [True, False])
@pytest.mark.parametrize("requires_grad", [True, False])
def test_a_row_that_sees_nothing_is_zero_with_finite_gradients(return_weights, requires_grad):
    inputs = [tensor.requires_grad_(requires_grad) for tensor in random_inputs(torch.float32)]
    mask = torch.ones(3, 1, 5, 7, dtype=torch.bool)
    mask[1, :, 4] = False
    output, weights = attend(*inputs, mask, return_weights=return_weights)
    assert output[1, :, 4].count_nonzero() == 0
    assert weights is None or weights[1, :, 4].count_nonzero() == 0
    if requires_grad:
        output.sum().backward()
        assert all(tensor.grad is not None and tensor.grad.isfinite().all() for tensor in inputs)


def test_mask_must_be_boolean():
    with pytest.raises(ValueError, match="bool"):
        attend(*random_inputs(), torch.zeros(5, 7))


def test_weights_are_returned_as_they_are_before_dropout():
    query, key, value = random_inputs()
    _, weights = attend(query, key, value, dropout=0.5, return_weights=True)
    _, without = attend(query, key, value, return_weights=True)
    assert torch.equal(weights, without)


def copied(attention: MultiHeadAttention) -> nn.MultiheadAttention:
    d_model = attention.query.in_features
    reference = nn.MultiheadAttention(
        d_model, attention.num_heads, batch_first=True, dtype=attention.query.weight.dtype
    )
    with torch.no_grad():
        parts = (attention.query, attention.key, attention.value)
        reference.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        reference.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        reference.out_proj.weight.copy_(attention.output.weight)
        reference.out_proj.bias.copy_(attention.output.bias)
    return reference


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("masking", ["none", "causal", "padding"])
def test_multi_head_attention_equals_torch(dtype, tolerance, masking):
    ours = MultiHeadAttention(32, 4).to(dtype)
    reference = copied(ours)
    x = torch.randn(3, 6, 32, dtype=dtype)
    hidden = torch.arange(6) >= torch.tensor([6, 4, 1])[:, None]
    masks = {"none": None, "causal": causal_mask(6), "padding": ~hidden[:, None, None]}
    output, weights = ours(x, x, x, masks[masking], return_weights=True)
    fast, _ = ours(x, x, x, masks[masking])
    expected, expected_weights = reference(
        x,
        x,
        x,
        attn_mask=~causal_mask(6)[0, 0] if masking == "causal" else None,
        key_padding_mask=hidden if masking == "padding" else None,
        average_attn_weights=False,
    )
    assert weights.shape == (3, 4, 6, 6)
    for found, wanted in ((output, expected), (fast, expected), (weights, expected_weights)):
        torch.testing.assert_close(found, wanted, atol=tolerance, rtol=0)


def test_queries_and_keys_may_differ_in_length():
    attention = MultiHeadAttention(16, 2)
    memory = torch.randn(2, 9, 16)
    output, weights = attention(torch.randn(2, 4, 16), memory, memory, return_weights=True)
    assert output.shape == (2, 4, 16)
    assert weights.shape == (2, 2, 4, 9)


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match=r"d_model=30 .* num_heads=4"):
        MultiHeadAttention(30, 4)


def test_the_core_takes_and_gives_rows_of_the_whole_width():
    """Head h reads and writes features h * d_head to (h + 1) * d_head alone."""
    core, rows = ScaledDotProductAttention(4), [torch.randn(2, 5, 32) for _ in range(3)]
    assert not list(core.parameters())
    output, weights = core(*rows, causal_mask(5), return_weights=True)
    for head in range(4):
        part = [x[..., 8 * head : 8 * (head + 1)] for x in rows]
        wanted, wanted_weights = attend(*part, causal_mask(5)[0], return_weights=True)
        torch.testing.assert_close(output[..., 8 * head : 8 * (head + 1)], wanted)
        torch.testing.assert_close(weights[:, head], wanted_weights)


def test_a_core_that_is_not_fused_runs_the_readable_lines(monkeypatch):
    core, rows = ScaledDotProductAttention(4), [torch.randn(2, 5, 32) for _ in range(3)]
    wanted, none = core(*rows)
    monkeypatch.setattr("headway.model.attention.fused_attention", None)
    core.fused = False
    found, weights = core(*rows)
    assert none is None
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 4, 5))
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("return_weights", [True, False])
def test_a_mask_of_keys_alone_is_for_every_query(return_weights):
    query, key = torch.randn(2, 4, 3, 8), torch.randn(2, 4, 5, 8)
    mask = torch.tensor([True, True, False, True, False])
    found, _ = attend(query, key, key, mask, return_weights=return_weights)
    wanted, _ = attend(query, key, key, mask[None, None, None], return_weights=return_weights)
    assert torch.equal(found, wanted)


def test_a_mask_that_could_be_of_the_batch_or_of_the_heads_is_refused():
    attention = MultiHeadAttention(32, 4)
    x = torch.randn(4, 3, 32)
    with pytest.raises(ValueError, match=r"mask\[:, None\] fits all heads"):
        attention(x, x, x, torch.ones(4, 3, 3, dtype=torch.bool))
