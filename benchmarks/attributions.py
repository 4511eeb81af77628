"""Attributions that headway doesn't have, for `explaining.py` to compare with those that it has (docs/tried.md)."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from headway.insight.analyses.reading import Reading, decoded_from, states
from headway.insight.maps import Floats
from headway.model import Transformer, causal_mask
from headway.model.sharing import sharing_copy

POINTS = 32
"""Of the integral."""


def integrated_gradients(
    model: Transformer, reading: Reading, score: Callable[[Tensor, int], Tensor], points: int = POINTS
) -> Floats:
    """Sundararajan et al. 2017, "Axiomatic Attribution for Deep Networks": the gradient by the source's embeddings,
    integrated from zero embeddings (the baseline of erasure) to the real ones. A row sums to the difference of the
    scores at both ends. score: of logits (rows, vocabulary) and a step -> (rows,). -> (target, source)"""
    nodes, shares = np.polynomial.legendre.leggauss(points)
    with torch.no_grad():
        embeddings = model.source_embedding(reading.source)  # (source, d_model)
    path, weights = (embeddings.new_tensor(one)[:, None, None] for one in ((nodes + 1) / 2, shares / 2))
    inputs = (path * embeddings).requires_grad_()  # (points, source, d_model)
    logits = model.output(decoded_from(model, reading, inputs))  # (points, target, vocabulary)
    found = []
    for step in range(len(reading.given)):
        [gradient] = torch.autograd.grad(score(logits[:, step], step).sum(), inputs, retain_graph=True)
        found.append(((gradient * weights).sum(dim=0) * embeddings).sum(dim=-1))
    return torch.stack(found).float().cpu().numpy()


@torch.no_grad()
def value_zeroing(model: Transformer, reading: Reading) -> Floats:
    """Mohebbi et al. 2023, "Quantifying Context Mixing in Transformers": how far the output of a decoder layer turns if
    the values of one source token are zero in its encoder-decoder attention; the mean of all layers.
    -> (target, source), rows sum to 1"""
    model = sharing_copy(model)
    memory, mask = model.encode(reading.source[None]), causal_mask(len(reading.read), reading.read.device)
    inputs = states(model.decoder, model.embed_target(reading.read[None]), memory, mask)
    turned = [_turned(layer, x, memory, mask) for layer, x in zip(model.decoder.layers, inputs, strict=False)]
    return torch.stack(turned).mean(dim=0).float().cpu().numpy()


def _turned(layer: nn.Module, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
    """1 - cosine of the layer's output with that without each token's values. -> (target, source)"""
    every = torch.arange(memory.size(1))

    def zero(_: nn.Module, __: object, values: Tensor) -> Tensor:  # (source, source, d_model), a row without each token
        return values.index_put((every, every), values.new_zeros(()))

    whole = layer(x, memory, mask)  # (1, target, d_model)
    with layer.get_submodule("cross_attention.value").register_forward_hook(zero):
        without = layer(*(one.expand(len(every), -1, -1) for one in (x, memory)), mask)
    distances = (1 - cosine_similarity(without, whole, dim=-1)).T  # (target, source)
    return distances / distances.sum(dim=-1, keepdim=True)
