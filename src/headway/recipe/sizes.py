"""Parameters of a model and operations of its training, counted on torch's meta device, where a model takes no
memory."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from headway.data.batches import MicroBatch
from headway.model import ModelConfig, Transformer
from headway.recipe.optimizers import UPDATES, OptimizerName

TRAINING = 3
"""Work of forward and backward pass, in forward passes: for each product the backward pass has two."""


@cache
def on_meta(config: ModelConfig) -> Transformer:
    """The model without memory for its weights, and without a core of the user's."""
    with torch.device("meta"):
        return Transformer(replace(config, core=None)).eval()


def count(parameters: Iterable[Tensor]) -> int:
    return sum(one.numel() for one in parameters)


def weights_in_products(config: ModelConfig) -> int:
    """The number of weights in products. A place on both sides uses each in one multiplication and addition."""
    return _work_of_places(config, 1, 1)[0] // 2


@cache
def _work_of_places(config: ModelConfig, source: int, target: int) -> tuple[int, int]:
    """The `forward_work` of so many places."""
    model, (x, y) = on_meta(config), (torch.empty(1, n, config.d_model, device="meta") for n in (source, target))
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        model.output(model.decoder(y, model.encoder(x)))
    by_kind = counted.get_flop_counts()["Global"]
    products = sum(by_kind.get(kind, 0) for kind in (torch.ops.aten.addmm, torch.ops.aten.mm))
    return products, counted.get_total_flops() - products


def forward_work(
    config: ModelConfig, source_tokens: float, target_tokens: float, source_length: float, target_length: float
) -> tuple[float, float]:
    """FLOPs of a pass through encoder, decoder and output layer over sentences of these mean lengths: products with
    weights, proportional to tokens, and products of attention, proportional to pairs of a query and a key. A
    multiplication and its addition count as two."""
    of_source, in_encoder = _work_of_places(config, 1, 0)
    of_target, in_decoder = _work_of_places(config, 0, 1)
    across = _work_of_places(config, 1, 1)[1] - in_encoder - in_decoder
    scores = source_tokens * in_encoder * source_length
    scores += target_tokens * (in_decoder * target_length + across * source_length)
    return of_source * source_tokens + of_target * target_tokens, scores


def work_of_step(config: ModelConfig, micro_batches: Iterable[MicroBatch], adapter_rank: int = 0) -> float:
    """FLOPs of the matrix products of a step, forward and backward. Padding counts like tokens, as it is computed."""
    shapes = ((len(one.rows), one.source_length, one.target_length) for one in micro_batches)
    works = (forward_work(config, rows * source, rows * target, source, target) for rows, source, target in shapes)
    return sum(training_passes(config, adapter_rank) * products + TRAINING * scores for products, scores in works)


def training_passes(config: ModelConfig, adapter_rank: int) -> float:
    """Work of products with weights, forward and backward, in forward passes. With an adapter the backward pass has one
    product for each, as frozen weights have no gradient, and those of the adapter."""
    if not adapter_rank:
        return TRAINING
    return TRAINING - 1 + TRAINING * adapter_weights(config, adapter_rank) / weights_in_products(config)


def adapter_weights(config: ModelConfig, rank: int) -> int:
    """The number of an adapter's weights: (rows + columns) x rank for each matrix of the layers."""
    return rank * sum(sum(one.shape) for one in layer_matrices(on_meta(config)))


@cache
def work_of_update(config: ModelConfig, optimizer: OptimizerName) -> float:
    """FLOPs of the optimizer's matrix products in a step."""
    of_matrix, _ = UPDATES[optimizer]
    return float(sum(of_matrix.work(*sorted(one.shape)) for one in layer_matrices(on_meta(config))))


def layer_matrices(model: Transformer) -> list[nn.Parameter]:
    return [one for stack in (model.encoder, model.decoder) for one in stack.parameters() if one.dim() == 2]
