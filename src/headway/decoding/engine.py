"""The protocol by which search uses a model, and torch's engines. Search knows ids and this protocol, nothing else."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from headway.decoding.step import DecoderState, DecoderStep, PackedLinear, packed
from headway.model import Transformer, padding_mask

LOT = 4
"""The number of sentences in a batch is a multiple of this as long as it is more."""
BLOCK = 64
"""Neighbours in a vocabulary of which only the best is looked at first."""


class Engine(Protocol):
    """A model that translates step by step. A row is one unfinished translation. The rows of a sentence are
    consecutive, and every sentence has the same number of rows."""

    bos_id: int
    eos_id: int

    def start(self, source: Tensor) -> Any:
        """Encodes source (sentences, source length), padded and with <eos>, and returns the state before the first
        step, with one row per sentence."""
        ...

    def step(self, state: Any, tokens: Tensor) -> Tensor:
        """Reads one token per row (rows,), and returns the log-probabilities of the next (rows, vocabulary). Changes
        the state. Tokens that can't be next, such as the start symbol and padding, have -inf."""
        ...

    def select(self, state: Any, rows: Tensor) -> None:
        """Keeps only some rows of the state. rows: (sentences, width), for each unfinished sentence the numbers of its
        rows, as they were in the state before."""
        ...


class TorchEngine:
    """The model itself, with key-value caches."""

    def __init__(self, model: Transformer, never: Sequence[int] = (), dtype: torch.dtype = torch.float32) -> None:
        """`never` are ids that no translation may have, beside padding and the start symbol. Search has weights in
        `dtype`, `score` the model's own."""
        self._model = model
        self.device = next(model.parameters()).device
        self._output = PackedLinear([model.output], dtype)  # first: packing takes another copy of a layer
        self._encoder = packed(model.encoder, dtype)
        self._decoder = DecoderStep(model, dtype)
        self._dtype = dtype
        self.bos_id, self.eos_id = model.config.bos_id, model.config.eos_id
        forbidden = [id_ for id_ in (model.config.pad_id, self.bos_id, *never) if id_ != self.eos_id]
        self._never = torch.tensor(forbidden, dtype=torch.long, device=self.device)
        self._languages = torch.tensor([id_ for id_ in never if id_ != model.config.unk_id], dtype=torch.long)
        self._given = self._languages.to(self.device)

    @torch.inference_mode()
    def start(self, source: Tensor) -> DecoderState:
        source = source.to(self.device)
        mask = padding_mask(source, self._model.config.pad_id)
        embedded = self._model.source_embedding(source) + self._model.source_positions(source.size(1))
        memory = self._encoder(self._model.source_norm(embedded).to(self._dtype), mask)
        return self._decoder.start(memory, mask)

    @torch.inference_mode()
    def step(self, state: DecoderState, tokens: Tensor) -> Tensor:
        log_probabilities = self._output(self._decoder(state, tokens)).float().log_softmax(dim=-1)
        log_probabilities.index_fill_(1, self._never, -torch.inf)
        if len(self._given):  # no translation is its language alone
            log_probabilities[:, self.eos_id].masked_fill_(torch.isin(tokens, self._given), -torch.inf)
        return log_probabilities

    @torch.inference_mode()
    def select(self, state: DecoderState, rows: Tensor) -> None:
        self._decoder.select(state, rows)

    @torch.inference_mode()
    def score(self, source: Tensor, target: Tensor) -> Tensor:
        """The log-probability of each given token, for tensors of the CPU. source: (batch, source length) with <eos>;
        target: (batch, target length + 1) with <bos> and <eos>, padded -> (batch, target length), on the model's
        device, 0 at padding and for the token of a language, which no search chooses."""
        read, given = target[:, :-1], target[:, 1:]
        real = (given != self._model.config.pad_id) & ~torch.isin(given, self._languages)  # (batch, target length)
        places = real.flatten().nonzero()[:, 0]  # found on the CPU, because a device would be waited for
        arrays = (one.numpy() for one in (source, read, places, given[real]))
        source, read, places, ids = (tensor_on(self.device, array) for array in arrays)
        hidden = self._model.hidden_states(source, read).flatten(0, 1).index_select(0, places)
        found = -F.cross_entropy(self._model.output(hidden).float(), ids, reduction="none")
        return found.new_zeros(given.numel()).index_copy(0, places, found).view(given.shape)


class EnsembleEngine:
    """Several models with the same vocabularies, by the mean of their probabilities at each step."""

    def __init__(self, engines: Sequence[TorchEngine]) -> None:
        self._engines = engines
        self.bos_id, self.eos_id = engines[0].bos_id, engines[0].eos_id

    def start(self, source: Tensor) -> list[DecoderState]:
        return [engine.start(source) for engine in self._engines]

    def step(self, state: list[DecoderState], tokens: Tensor) -> Tensor:
        return _log_mean([engine.step(each, tokens) for engine, each in zip(self._engines, state, strict=True)])

    def select(self, state: list[DecoderState], rows: Tensor) -> None:
        for engine, each in zip(self._engines, state, strict=True):
            engine.select(each, rows)

    def score(self, source: Tensor, target: Tensor) -> Tensor:
        return _log_mean([engine.score(source, target) for engine in self._engines])


def _log_mean(log_probabilities: list[Tensor]) -> Tensor:
    """The logarithm of the mean probability."""
    return torch.stack(log_probabilities).logsumexp(dim=0) - math.log(len(log_probabilities))


def without_end(log_probabilities: Tensor, eos_id: int) -> Tensor:
    """Forbids <eos> as the first token: no translation is empty. (rows, vocabulary)"""
    ids = torch.arange(log_probabilities.size(1), device=log_probabilities.device)
    return log_probabilities.masked_fill(ids == eos_id, -torch.inf)


def likeliest(log_probabilities: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest values of each row, best first, and their ids; both (rows, count). They are in the `count` blocks
    with the largest maxima, which are cheap: on CPU `torch.topk` takes up to three times as long."""
    vocabulary = log_probabilities.size(1)
    blocks = vocabulary // BLOCK
    if blocks <= 2 * count:
        return log_probabilities.topk(count)
    maxima = log_probabilities[:, : blocks * BLOCK].unflatten(1, (blocks, BLOCK)).amax(dim=-1)  # (rows, blocks)
    within = torch.arange(BLOCK, device=maxima.device)
    ids = (maxima.topk(count)[1][:, :, None] * BLOCK + within).flatten(1)  # (rows, count * BLOCK)
    rest = torch.arange(blocks * BLOCK, vocabulary, device=maxima.device).expand(len(ids), -1)
    ids = torch.cat([ids, rest], dim=1)
    values, places = log_probabilities.gather(1, ids).topk(count)
    return values, ids.gather(1, places)


def padded(sequences: Sequence[Sequence[int]], pad_id: int, multiple: int = 1) -> Tensor:
    """(batch, length): padded at the end to the length of the longest, or to the next `multiple` of it."""
    length = -(-max(map(len, sequences)) // multiple) * multiple
    return torch.tensor([[*sequence, *[pad_id] * (length - len(sequence))] for sequence in sequences])


def tensor_on(device: torch.device, array: NDArray[Any]) -> Tensor:
    """The array as a tensor on the device. Only CUDA copies it while the program goes on: Apple's GPU would read memory
    that may have been freed meanwhile (https://github.com/pytorch/pytorch/issues/189690)."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def read(values: Tensor, ids: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Values and ids, of one shape, as arrays. They come from the device in one copy, for which the search waits."""
    values = values if values.dtype == torch.float64 else values.float()
    whole = torch.int64 if values.dtype == torch.float64 else torch.int32
    found, found_ids = torch.stack([values.view(whole), ids.to(whole)]).cpu().numpy()
    return found.view(f"f{found.itemsize}"), found_ids.astype(np.int64)


def rows_to_keep(unfinished: Sequence[int], count: int) -> list[int]:
    """The rows of `count` that stay in the batch: all, or the unfinished ones and a few others after them. Finished
    rows leave in groups, because each new number of rows costs: the state is copied, and oneDNN compiles its products
    anew and keeps them."""
    spare = -len(unfinished) % LOT
    if not unfinished or count - len(unfinished) <= max(count // 8, spare):
        return list(range(count))
    finished = sorted(set(range(count)).difference(unfinished))
    return [*unfinished, *finished[:spare]]
