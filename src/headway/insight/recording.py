"""Recording: every tensor of one pass through a model, by name (docs/record.md).

The model knows nothing of it. The pass runs on a copy of its modules that shares its weights: forward hooks report
inputs and outputs, and the core of attention is replaced by a twin that reports each of its steps. Of a core of the
user's own only the results are known.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from headway.errors import UserError
from headway.insight.analyses.reading import Reading
from headway.insight.editing import prefix_logits
from headway.model import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    MultiHeadAttention,
    PositionwiseFeedForward,
    Residual,
    ScaledDotProductAttention,
    TokenEmbedding,
    Transformer,
)
from headway.model.attention import join_heads, split_heads
from headway.model.sharing import sharing_copy

Record = Callable[[str, Tensor], None]
"""Receives named tensors, such as ("encoder.layers.0.self_attention.weights", ...)."""


def recording_copy(model: Transformer, record: Record) -> Transformer:
    """A copy that shares the weights, gives the same results, and reports to `record` everything it computes."""
    copied = sharing_copy(model)

    def watch_input(module: nn.Module, name: str, change: Callable[[Tensor], Tensor] = lambda x: x) -> None:
        module.register_forward_pre_hook(lambda _, inputs: record(name, change(inputs[0])))

    def watch_output(module: nn.Module, name: str) -> None:
        module.register_forward_hook(lambda _, inputs, output: record(name, cast(Tensor, output)))

    for name, module in list(copied.named_modules()):
        match module:
            case TokenEmbedding():
                watch_input(module, f"{name}.embedded", partial(F.embedding, weight=module.weight))
                watch_output(module, f"{name}.scaled")
            case Encoder() | Decoder() | EncoderLayer() | DecoderLayer():
                watch_input(module, f"{name}.input")
                watch_output(module, f"{name}.output")
            case MultiHeadAttention():
                twin: Any = _RecordedAttention if type(module.core) is ScaledDotProductAttention else _WatchedCore
                module.core = twin(module.core, name, record)
                watch_output(module.output, f"{name}.output")  # without the weights beside it
            case PositionwiseFeedForward():
                watch_input(module.outer, f"{name}.hidden")  # dropout before it does nothing outside training
                watch_output(module, f"{name}.output")
            case Residual(norm_first=True):
                watch_output(module.norm, f"{name}.normalised")
                watch_output(module, f"{name}.sum")
            case Residual():
                watch_input(module.norm, f"{name}.sum")
                watch_output(module.norm, f"{name}.normalised")
    watch_output(copied.source_positions, "source_positions")
    watch_output(copied.target_positions, "target_positions")
    watch_output(copied.output, "logits")
    return copied


@torch.inference_mode()
def record_pass(
    model: Transformer, source_ids: Sequence[int], target_ids: Sequence[int], *, rereads: bool = False
) -> dict[str, NDArray[Any]]:
    """Runs a model once over a source and its translation and keeps every tensor, by name.

    Ids are with <eos>. A tensor with two names, such as the output of a layer and the input of the next, is one array.
    `rereads` is for a model whose tokens see later ones, which the pass has and a search has not: its logits are those
    of each prefix of the target, read by itself; everything else is of the last step, which reads the whole.
    """
    reading = Reading.of(model, source_ids, target_ids)
    ids = reading.source[None], reading.read[None]
    seen: dict[str, Tensor] = {}
    recording_copy(model, seen.__setitem__)(*ids)
    if rereads:
        seen["logits"] = prefix_logits(model, *ids)
    arrays: dict[str, NDArray[Any]] = {}
    known: dict[tuple[int, tuple[int, ...]], NDArray[Any]] = {}
    for name, tensor in seen.items():
        one = tensor if name.endswith("_positions") else tensor[0]
        if name.endswith(".mask"):
            one = one[0].expand(seen[f"{name.removesuffix('mask')}weights"].shape[-2:])  # alike for all heads
        key = (one.data_ptr(), tuple(one.shape))  # all of them are alive, so that no memory is used twice
        if key not in known:
            known[key] = (one if one.dtype == torch.bool else one.float()).cpu().numpy()
        arrays[name] = known[key]
    return arrays


class _WatchedCore(nn.Module):
    """A core of the user's own, with its weights and its mask recorded, and its values if it weighs nothing else."""

    def __init__(self, core: Any, name: str, record: Record) -> None:
        super().__init__()
        self.core, self.name, self.record = core, name, record

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, *, return_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """The same as the core. Raises UserError if it has no weights to return."""
        heads, weights = self.core(queries, keys, values, mask, return_weights=True)
        if weights is None:
            raise UserError(f"{self.name}: core {type(self.core).__name__} returns no weights, so it has no map")
        if mask is not None:
            self.record(f"{self.name}.mask", mask)
        self.record(f"{self.name}.weights", weights)
        of_heads = split_heads(values, weights.size(1))
        if torch.allclose(join_heads(weights @ of_heads), heads, rtol=1e-3, atol=1e-4):
            self.record(f"{self.name}.values", of_heads)
        return heads, weights


class _RecordedAttention(_WatchedCore):
    """The twin of `ScaledDotProductAttention`: the readable lines of `attend`, with every result recorded."""

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, *, return_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """The same as `ScaledDotProductAttention`, without dropout."""
        query, key, value = (split_heads(x, self.core.num_heads) for x in (queries, keys, values))
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))  # (batch, heads, query, key)
        visible = scores if mask is None else scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = visible.softmax(dim=-1)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)
            self.record(f"{self.name}.mask", mask)
        heads = weights @ value  # (batch, heads, query, d_head)
        of_scores = {"scores": scores, "masked_scores": visible, "weights": weights}
        for name, tensor in {**of_scores, "queries": query, "keys": key, "values": value, "heads": heads}.items():
            self.record(f"{self.name}.{name}", tensor)
        return join_heads(heads), weights if return_weights else None
