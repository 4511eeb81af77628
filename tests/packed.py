"""Packed batches for tests, from lists and from padded tensors."""

import numpy as np
import torch
from torch import Tensor

from headway.data.batches import PackedIds
from headway.data.packing import Joined
from headway.model.packing import Packed
from headway.training.step import Batch


def packed(rows: list[list[list[int]]], length: int) -> Packed:
    """rows: the sentences of each"""
    side = PackedIds.of(Joined.of([np.array(one) for row in rows for one in row]), [*map(len, rows)], length)
    ids, sentences, positions = (torch.from_numpy(array).long() for array in (side.ids, side.sentences, side.positions))
    return Packed(ids, sentences, positions, side.longest)


def teacher_forced(source: Tensor, target: Tensor, pad_id: int = 0) -> Batch:
    """Padded pairs, each with a row of its own, as the loss takes them. target: <bos> ... <eos>"""
    return padded(source, pad_id), padded(target[:, :-1], pad_id), target[:, 1:]


def padded(ids: Tensor, pad_id: int) -> Packed:
    """A padded batch as a packed one. ids: (sentences, length); the first of a sentence is never padding."""
    real = ids != pad_id
    real[:, 0] = True
    return Packed(ids, real.long(), torch.arange(ids.size(1)).expand_as(ids), ids.size(1))
