"""What a model is said to need, against models that are made and steps that are taken."""

from itertools import accumulate, islice

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from headway.data.packing import Joined
from headway.devices import autocast, training_dtype
from headway.kernels import cross_entropy
from headway.model import ModelConfig, ScaledDotProductAttention, Transformer
from headway.recipe import planning
from headway.recipe.planning import Devices, activation_bytes, training_memory
from headway.recipe.recipe import TrainingSection
from headway.recipe.sizes import (
    TRAINING,
    adapter_weights,
    forward_work,
    on_meta,
    weights_in_products,
    work_of_step,
    work_of_update,
)
from headway.training.adapters import add_adapter
from headway.training.loss import TranslationLoss
from headway.training.optim import make_optimizers
from headway.training.step import Batches, train_step
from headway.training.step import accumulate as accumulate_gradients

BASE = ModelConfig.preset("base", source_vocab_size=37_000, target_vocab_size=37_000)
BIG = ModelConfig.preset("big", source_vocab_size=37_000, target_vocab_size=37_000)


def memory_of(config: ModelConfig, places: int, lengths=(30, 30), *, micro_batches: int = 1, devices=None, **options):
    """Of a device, with a training's options."""
    training, corpus = TrainingSection(max_steps=1, **options), planning.Corpus(1, 1, lengths, 0)
    return training_memory(config, corpus, training, devices or Devices(bf16=True), micro_batches, places)


@pytest.mark.parametrize("share", ["all", "decoder", "none"])
def test_weights_in_products_by_hand(share):
    """A layer of the encoder has 4 x 512^2 + 2 x 512 x 2048 of them, one of the decoder 4 x 512^2 more. Embeddings
    without a product of their own are looked up."""
    changes = {"share_embeddings": share, "positions": "learned", "output_bias": True}
    config = ModelConfig.preset("base", source_vocab_size=8000, target_vocab_size=8000, **changes)
    layers = 6 * (4 * 512 * 512 + 2 * 512 * 2048) + 6 * (8 * 512 * 512 + 2 * 512 * 2048)
    assert weights_in_products(config) == layers + 8000 * 512


def test_a_model_on_meta_takes_no_memory_and_draws_nothing():
    random = torch.get_rng_state()
    config = ModelConfig.preset("big", source_vocab_size=2**20, target_vocab_size=2**20, encoder_layers=12)
    assert all(parameter.is_meta for parameter in on_meta(config).parameters())
    assert min(forward_work(config, 1, 1, 1, 1)) > 0
    assert work_of_update(config, "muon") > 0
    assert torch.equal(random, torch.get_rng_state())


def test_work_of_the_papers_base_model_by_hand():
    """A layer of the encoder has 4 x 512^2 + 2 x 512 x 2048 weights in products, one of the decoder 4 x 512^2 more."""
    encoder = 6 * (4 * 512 * 512 + 2 * 512 * 2048)
    decoder = 6 * (8 * 512 * 512 + 2 * 512 * 2048)
    tokens = 100_000 * 25_000
    products, scores = (TRAINING * work for work in forward_work(BASE, tokens, tokens, 25, 25))
    assert products == 6 * tokens * (encoder + decoder + 37_000 * 512)
    assert products == pytest.approx(0.94e18, rel=0.01)
    assert scores == pytest.approx(0.008 * products, rel=0.1)


def test_work_of_the_papers_big_model_by_hand():
    tokens = 300_000 * 25_000
    products, _ = forward_work(BIG, tokens, tokens, 25, 25)
    assert TRAINING * products == pytest.approx(9.6e18, rel=0.01)


def test_scores_by_hand():
    """Each of 3 source places sees 3 in the encoder; each of 2 target places 2 and 3 in the decoder: scores and sums,
    a multiplication and an addition for each feature."""
    config = ModelConfig(10, 10, d_model=8, num_heads=2, encoder_layers=1, decoder_layers=1)
    _, scores = forward_work(config, 3, 2, 3, 2)
    assert scores == 2 * 2 * 8 * (3 * 3 + 2 * 2 + 2 * 3)


def test_work_is_counted_by_torch():
    """Over a forward pass of a sentence whose sides are equally long: some weights of the decoder work on sources."""
    config = ModelConfig(50, 60, d_model=16, num_heads=4, encoder_layers=2, decoder_layers=3, share_embeddings="none")
    model = Transformer(config).eval()
    for module in model.modules():
        if isinstance(module, ScaledDotProductAttention):
            module.fused = False  # fused kernels aren't all counted
    tokens = torch.full((1, 7), 5)
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        model(tokens, tokens)
    assert counted.get_total_flops() == sum(forward_work(config, 7, 7, 7, 7))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"share_embeddings": "none", "norm": "pre", "positions": "learned"},
        {"encoder_layers": 0},
        {"decoder_num_heads": 2, "decoder_d_ff": 24, "decoder_layers": 1},
    ],
    ids=str,
)
def test_work_of_a_step_is_counted_by_torch(changes):
    """Forward and backward, over packed rows whose sides are of different lengths, in several micro-batches."""
    config = ModelConfig(50, 50, **{"d_model": 16, "num_heads": 4, "d_ff": 32, "encoder_layers": 2, **changes})
    batches = Batches(Corpus(60, 50, targets=16), torch.device("cpu"), 1200, 600)
    [step, *_] = batches.plan.steps(0)
    assert len(step) == 2
    assert step[0].source_length != step[0].target_length
    loss_of = TranslationLoss(Transformer(config), 0.1)
    for module in loss_of.modules():
        if isinstance(module, ScaledDotProductAttention):
            module.fused = False  # fused kernels aren't all counted
    with FlopCounterMode(display=False) as counted:
        accumulate_gradients(loss_of, map(batches.tensors, step), 1, torch.float32)
    assert counted.get_total_flops() == work_of_step(config, step)


def test_work_of_an_adapter_is_about_what_torch_counts():
    """But for what nobody needs: the gradient of the embeddings."""
    pytest.importorskip("peft")
    config = ModelConfig(500, 500, d_model=64, num_heads=4, d_ff=128, encoder_layers=3, decoder_layers=3)
    batches = Batches(Corpus(60, 500), torch.device("cpu"), 1200, 600)
    [step, *_] = batches.plan.steps(0)
    loss_of = TranslationLoss(Transformer(config), 0.1)
    add_adapter(loss_of.model, 8, torch.float32)
    for module in loss_of.modules():
        if isinstance(module, ScaledDotProductAttention):
            module.fused = False
    with FlopCounterMode(display=False) as counted:
        accumulate_gradients(loss_of, map(batches.tensors, step), 1, torch.float32)
    assert counted.get_total_flops() == pytest.approx(work_of_step(config, step, 8), rel=0.05)


class Kept:
    """Bytes that autograd keeps while it is open, but for those of the weights and of their copies."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.weights = {one.untyped_storage().data_ptr() for one in model.parameters()}
        self.shapes = {tuple(one.shape) for one in model.parameters() if one.dim() > 1}
        self.storages: dict[int, int] = {}
        self.alive: list[torch.Tensor] = []

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        copied = {tuple(tensor.shape), tuple(reversed(tensor.shape))} & self.shapes
        if storage.data_ptr() not in self.weights and not copied:
            self.storages[storage.data_ptr()] = storage.nbytes()
            self.alive.append(tensor)  # so that no other gets its address
        return tensor

    @property
    def bytes(self) -> int:
        return sum(self.storages.values())


class Side(list):
    """Sentences, as `Sequences` has them."""

    def joined(self, indices):
        return Joined.of([self[index] for index in indices])


class Corpus:
    """Pairs of sentences with the given lengths, as `ParallelIds` has them."""

    versions = 1

    def __init__(self, count: int, vocabulary: int, targets: int = 40) -> None:
        random = np.random.default_rng(1)
        self.source, self.target = (
            Side(random.integers(4, vocabulary, size).astype(np.int32) for size in random.integers(4, most, count))
            for most in (40, targets)
        )

    def __len__(self) -> int:
        return len(self.source)

    def lengths_of(self, pairs):
        return tuple(np.array([len(side[pair]) for pair in pairs]) for side in (self.source, self.target))

    @property
    def mean_lengths(self) -> tuple[float, float]:
        return tuple(float(np.mean([len(one) for one in side])) for side in (self.source, self.target))


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre", "activation": "gelu"},
        {"dropout": 0.0, "d_ff": 512},
        {"feedforward_dropout": 0.1, "decoder_layers": 1},
        {"attention_dropout": 0.1, "num_heads": 2},
    ],
    ids=str,
)
def test_activations_are_those_that_autograd_keeps(bf16, changes):
    """Within 3%."""
    device = torch.device("cpu")
    if bf16 and training_dtype("auto", device) != torch.bfloat16:
        pytest.skip("this processor has no bf16")
    config = ModelConfig(1000, 1000, **{"d_model": 64, "num_heads": 4, "d_ff": 128, "encoder_layers": 2, **changes})
    corpus = Corpus(200, 1000)
    batches = Batches(corpus, device, 4096, 4096)
    [[micro_batch], *_] = batches.plan.steps(0)
    loss_of = TranslationLoss(Transformer(config), 0.1)
    kept = Kept(loss_of)
    keeping = torch.autograd.graph.saved_tensors_hooks(kept.pack, lambda tensor: tensor)
    with keeping, autocast(device, torch.bfloat16 if bf16 else torch.float32):
        loss_of(*batches.tensors(micro_batch))
    lengths = tuple(length + 1 for length in corpus.mean_lengths)
    said = activation_bytes(config, micro_batch.places, lengths, Devices(on_cpu=True, bf16=bf16))
    buffers = 2 * 4 * min(cross_entropy.CHUNK, micro_batch.places / 2 * 1000)
    assert said - buffers == pytest.approx(kept.bytes, rel=0.03)


@pytest.mark.parametrize(("bf16", "wide"), [(False, 4), (True, 2)])
@pytest.mark.parametrize(("on_cpu", "drawn"), [(False, 1), (True, 2)])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_activations_without_layers_by_hand(bf16, wide, on_cpu, drawn, dropout):
    """The output layer's input and logits in the type of products, two buffers of logits in fp32, and what dropout
    draws for the embeddings of both sides."""
    config = ModelConfig(10, 10, d_model=6, num_heads=1, encoder_layers=0, decoder_layers=0, dropout=dropout)
    wanted = 500 * (6 + 10) * wide + 2 * 4 * 500 * 10 + (1000 * 6 * drawn if dropout else 0)
    assert activation_bytes(config, 1000, (20, 20), Devices(bf16=bf16, on_cpu=on_cpu)) == wanted


@pytest.mark.parametrize("rank", [0, 16])
@pytest.mark.parametrize(("precision", "micro_batches"), [("fp32", 1), ("bf16", 1), ("bf16", 3)])
def test_peak_is_what_torch_allocates(precision, micro_batches, rank):
    """By its profiler, in steps of the preset small, within a tenth."""
    device = torch.device("cpu")
    dtype = training_dtype(precision, device)
    if rank:
        pytest.importorskip("peft")
    if precision == "bf16" and training_dtype("auto", device) != dtype:
        pytest.skip("this processor has no bf16")
    config = ModelConfig.preset("small", source_vocab_size=8000, target_vocab_size=8000)
    corpus = Corpus(1000, 8000)
    batches = Batches(corpus, device, 2048 * micro_batches, 2048)
    steps = list(islice(batches.plan.steps(0), 2))
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        model = Transformer(config)
        if rank:
            add_adapter(model, rank, dtype)
        loss_of, optimizers = TranslationLoss(model, 0.1), make_optimizers(model, "adam", 0.98)
        for step in steps:
            todo, options = map(batches.tensors, step), {"rate": 0.0, "max_gradient_norm": 1.0, "dtype": dtype}
            train_step(loss_of, optimizers, todo, divisor=100, **options)
    events = [one for one in profiled.profiler.kineto_results.events() if one.name() == "[memory]"]
    allocated = max(accumulate(one.nbytes() for one in sorted(events, key=lambda one: one.start_ns())))
    lengths = tuple(length + 1 for length in corpus.mean_lengths)
    places = max(one.places for one in steps[0])
    on_cpu = Devices(on_cpu=True, bf16=dtype == torch.bfloat16)
    adapter = {"adapter": {"rank": rank}} if rank else {}
    memory = memory_of(config, places, lengths, micro_batches=micro_batches, devices=on_cpu, **adapter)
    assert memory["peak"] == pytest.approx(allocated, rel=0.1)


def test_what_is_stored_by_hand():
    """Weights, gradients and two moments in fp32: 16 bytes a parameter; a moving average 4 more, autocast 2 for each
    weight of a product."""
    memory = memory_of(BASE, 4096, ema_decay=0.99)
    assert memory["weights"] + memory["gradients"] + memory["optimizer"] == 16 * 63_082_496
    assert memory["average"] == 4 * 63_082_496
    assert memory["copies"] == 2 * weights_in_products(BASE)
    assert memory_of(BASE, 4096)["average"] == 0


def test_an_adapter_by_hand():
    """Frozen weights in bf16, and 16 bytes for each weight of the adapter, 2 more for its copy: rank x (rows + columns)
    of 4 or 8 matrices of attention and 2 of feed-forward. A validation has the whole model in fp32, and a copy for
    search."""
    adapter = 16 * 6 * ((4 + 8) * 2 * 512 + 2 * 2 * (512 + 2048))
    assert adapter_weights(BASE, 16) == adapter
    memory = memory_of(BASE, 500, adapter={"rank": 16})
    assert memory["weights"] == 2 * 63_082_496 + 4 * adapter
    assert memory["gradients"] + memory["optimizer"] + memory["copies"] == (4 + 8 + 2) * adapter
    merged = 4 * 63_082_496 + 2 * weights_in_products(BASE)
    assert memory["peak"] == memory["weights"] + memory["optimizer"] + merged
    in_fp32 = memory_of(BASE, 500, adapter={"rank": 16}, devices=Devices())
    assert in_fp32["weights"] == 4 * 63_082_496 + 4 * adapter
    assert in_fp32["merged"] == 4 * 63_082_496 + 4 * weights_in_products(BASE)


def test_gradients_and_activations_are_there_together_only_where_gradients_stay():
    alone, accumulating = (memory_of(BIG, 25_000, micro_batches=count) for count in (1, 2))
    assert alone["activations"] > alone["gradients"]
    assert accumulating["peak"] - alone["peak"] == alone["gradients"]
    assert memory_of(BIG, 25_000, devices=Devices(2, bf16=True))["peak"] == accumulating["peak"]
