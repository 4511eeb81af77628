"""Recording: everything that the model reports is what it computes, by the paper's equations in numpy, and asking for
it changes nothing."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from headway.insight.recording import record_pass, recording_copy
from tests.properties.models import EXACT, SEEDS, configs, random_model, random_words

ERF = np.vectorize(math.erf)
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0.0),
    "gelu": lambda x: x * 0.5 * (1.0 + ERF(x / math.sqrt(2.0))),
    "swish": lambda x: x / (1.0 + np.exp(-x)),
}
WORDS = st.integers(1, 6)


def recorded(model, source_words, target_words):
    """Source and target ids, <eos> last, and every tensor by name, in double precision."""
    end = model.config.eos_id
    source, target = [*random_words(source_words), end], [*random_words(target_words), end]
    seen = {}
    ids = torch.tensor([source]), torch.tensor([[model.config.bos_id, *target[:-1]]])
    with torch.inference_mode():
        recording_copy(model, lambda name, tensor: seen.update({name: tensor}))(*ids)
    assert all(tensor.dtype in (torch.float64, torch.float32, torch.bool) for tensor in seen.values())
    return source, target, {name: tensor.detach().numpy() for name, tensor in seen.items()}


def linear(layer: nn.Linear, x):
    return x @ layer.weight.detach().numpy().T + (0.0 if layer.bias is None else layer.bias.detach().numpy())


def normalised(norm: nn.Module, x):
    if isinstance(norm, nn.Identity):
        return x
    deviation = np.sqrt(x.var(axis=-1, keepdims=True) + norm.eps)
    return (x - x.mean(axis=-1, keepdims=True)) / deviation * norm.weight.detach().numpy() + norm.bias.detach().numpy()


def attention(module, name, x, memory, visible) -> Iterator[tuple[str, np.ndarray]]:
    """Section 3.2, head by head; the last is the output."""
    d_head = x.shape[-1] // module.num_heads

    def split(projected):
        return np.stack([projected[..., h * d_head : (h + 1) * d_head] for h in range(module.num_heads)], axis=1)

    queries, keys, values = (
        split(linear(one, y)) for one, y in ((module.query, x), (module.key, memory), (module.value, memory))
    )
    scores = np.einsum("bhqd,bhkd->bhqk", queries, keys) / math.sqrt(d_head)
    masked = np.where(visible, scores, np.finfo(np.float64).min)
    powers = np.exp(masked - masked.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    heads = np.einsum("bhqk,bhkd->bhqd", weights, values)
    yield from ((f"{name}.queries", queries), (f"{name}.keys", keys), (f"{name}.values", values))
    yield from ((f"{name}.scores", scores), (f"{name}.masked_scores", masked), (f"{name}.weights", weights))
    yield f"{name}.heads", heads
    yield f"{name}.output", linear(module.output, np.concatenate(list(heads.swapaxes(0, 1)), axis=-1))


def self_attention(layer, name, visible, x):
    return attention(layer.self_attention, name, x, x, visible)


def cross_attention(layer, name, memory, x):
    return attention(layer.cross_attention, f"{name}.cross_attention", x, memory, np.True_)


def feed_forward(model, layer, name, x) -> Iterator[tuple[str, np.ndarray]]:
    hidden = ACTIVATIONS[model.config.activation](linear(layer.feed_forward.inner, x))
    yield f"{name}.feed_forward.hidden", hidden
    yield f"{name}.feed_forward.output", linear(layer.feed_forward.outer, hidden)


def layer_by_definition(model, layer, name, x, sublayers) -> Iterator[tuple[str, np.ndarray]]:
    """sublayers: name of the residual, and what the sub-layer gives for its input."""
    yield f"{name}.input", x
    for residual, sublayer in sublayers.items():
        norm = getattr(layer, residual).norm
        read = normalised(norm, x) if model.config.norm == "pre" else x
        found = list(sublayer(read))
        total = x + found[-1][1]
        after = read if model.config.norm == "pre" else normalised(norm, total)
        yield from (*found, (f"{name}.{residual}.sum", total), (f"{name}.{residual}.normalised", after))
        x = total if model.config.norm == "pre" else after
    yield f"{name}.output", x


def by_definition(model, source, target) -> dict[str, np.ndarray]:
    """Everything by its name, from ids with <eos>."""
    found: dict[str, np.ndarray] = {}
    read = [model.config.bos_id, *target[:-1]]
    look_ahead = np.tril(np.ones((len(read), len(read)), dtype=bool))
    everything = np.ones((1, len(source)), dtype=bool)
    for side, stack, ids in (("source", "encoder", source), ("target", "decoder", read)):
        embedded = getattr(model, f"{side}_embedding").weight.detach().numpy()[ids][None]
        positions = getattr(model, f"{side}_positions")(len(ids)).detach().numpy()
        found |= {f"{side}_embedding.embedded": embedded, f"{side}_positions": positions}
        found[f"{side}_embedding.scaled"] = embedded * math.sqrt(model.config.d_model)
        x = found[f"{side}_embedding.scaled"] + positions
        x = normalised(getattr(model, f"{side}_norm"), x)
        found[f"{stack}.input"] = x
        for number, layer in enumerate(getattr(model, stack).layers):
            name = f"{stack}.layers.{number}"
            own, visible = f"{name}.self_attention", look_ahead if stack == "decoder" else everything
            found[f"{own}.mask"] = visible
            sublayers = {"self_residual": partial(self_attention, layer, own, visible)}
            if stack == "decoder":
                found[f"{name}.cross_attention.mask"] = everything
                sublayers["cross_residual"] = partial(cross_attention, layer, name, found["encoder.output"])
            sublayers["feed_forward_residual"] = partial(feed_forward, model, layer, name)
            found |= dict(layer_by_definition(model, layer, name, x, sublayers))
            x = found[f"{name}.output"]
        found[f"{stack}.output"] = normalised(getattr(model, stack).norm, x)
    found["logits"] = linear(model.output, found["decoder.output"])
    return found


@given(configs(), SEEDS, WORDS, WORDS)
def test_every_number_by_the_papers_equations(config, seed, source_words, target_words):
    model = random_model(config, seed)
    source, target, seen = recorded(model, source_words, target_words)
    wanted = by_definition(model, source, target)
    assert set(seen) == set(wanted)
    for name, array in wanted.items():
        if name.endswith(".mask"):
            assert np.array_equal(np.broadcast_to(seen[name][0, 0], array.shape), array), name
        else:
            assert seen[name].shape == array.shape, name
            np.testing.assert_allclose(
                seen[name], array, atol=1e-6 if name.endswith("positions") else 1e-10, err_msg=name
            )


@given(configs(), SEEDS, WORDS, WORDS)
def test_asking_changes_nothing(config, seed, source_words, target_words):
    model = random_model(config, seed)
    source, target, seen = recorded(model, source_words, target_words)
    ids = torch.tensor([source]), torch.tensor([[config.bos_id, *target[:-1]]])
    with torch.inference_mode():
        torch.testing.assert_close(torch.from_numpy(seen["logits"]), model(*ids), **EXACT)
        torch.testing.assert_close(torch.from_numpy(seen["decoder.output"]), model.hidden_states(*ids), **EXACT)
        for number, layer in enumerate(model.decoder.layers):
            x = torch.from_numpy(seen[f"decoder.layers.{number}.input"])
            if config.norm == "pre":
                x = layer.self_residual.norm(x)
            mask = torch.ones(1, 1, len(target), len(target), dtype=torch.bool).tril()
            _, weights = layer.self_attention(x, x, x, mask, return_weights=True)
            assert torch.equal(weights, torch.from_numpy(seen[f"decoder.layers.{number}.self_attention.weights"]))


@given(configs(), SEEDS, WORDS, WORDS)
def test_a_record_has_the_same_without_the_batch_and_once_each(config, seed, source_words, target_words):
    model = random_model(config, seed)
    source, target, seen = recorded(model, source_words, target_words)
    arrays = record_pass(model, source, target)
    assert set(arrays) == set(seen)
    for name, tensor in seen.items():
        one = tensor if name.endswith("_positions") else tensor[0]
        if name.endswith(".mask"):
            scores = arrays[f"{name.removesuffix('mask')}scores"]
            one = np.broadcast_to(one[0], scores.shape[-2:])
        wanted = one if one.dtype == bool else torch.tensor(one).float().numpy()
        assert arrays[name].dtype == wanted.dtype
        assert np.array_equal(arrays[name], wanted), name
    for stack in ("encoder", "decoder"):
        for number in range(1, getattr(config, f"{stack}_layers")):
            before = arrays[f"{stack}.layers.{number - 1}.output"]
            assert arrays[f"{stack}.layers.{number}.input"] is before
