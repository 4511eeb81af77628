"""Whether an exported model is the model: the same log-probabilities, and greedy search finds the same tokens.

Every export asks this before it reports success, of sentences of many lengths with special tokens and the last of the
vocabulary among them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from headway.decoding import TorchEngine, greedy
from headway.errors import UserError
from headway.model import ModelConfig
from headway.storage import StoredModel

LENGTHS = (1, 2, 3, 7, 16, 40, 100, 255, 257, 300)
"""Of source sentences in pieces, beside the longest that the model reads."""
LONGEST_TRANSLATION = 40
TOLERANCE = 1e-3
"""How much a token's log-probability may differ: long sums are made in another order."""
TIE = 1e-4
"""Tokens whose log-probabilities are nearer than this may be taken for one another."""


POSITIONS = ("sinusoidal", "learned")
"""What is added to embeddings goes into any export; a scheme that acts inside attention doesn't."""


def check_positions(config: ModelConfig, tool: str) -> None:
    """Raises UserError for a model with positions that an export has no place for."""
    if config.positions not in POSITIONS:
        raise UserError(f"{tool} can't have positions={config.positions}; exports have {' and '.join(POSITIONS)} ones")


class Exported(Protocol):
    """The exported model, run by the tool it was exported for. Ids are ours, and a source has no <eos>."""

    def translate(self, source: list[int], max_length: int) -> list[int]:
        """Greedy search until <eos>, or until there are `max_length` tokens; without control ids."""
        ...

    def score(self, source: list[int], target: list[int]) -> list[float]:
        """The log-probability of each token of the target, and of <eos> after it, among all of the vocabulary."""
        ...


def check_faithful(stored: StoredModel, exported: Exported, tool: str) -> None:
    """Raises UserError where the exported model gives other scores or another translation than ours."""
    stored = replace(stored, model=copy.deepcopy(stored.model).cpu().eval())
    config, model = stored.model.config, stored.model
    engine = TorchEngine(model, stored.target_tokenizer.never_generated)
    for source in probes(config):
        row = torch.tensor([[*source, config.eos_id]])
        most = min(LONGEST_TRANSLATION, config.max_length - 1)
        [wanted] = greedy(engine, row, [most])
        target = wanted.ids or [config.target_vocab_size - 1]
        mine = _log_probabilities(stored, row, target)  # (target length + 1, vocabulary)
        theirs = torch.tensor(exported.score(source, target))
        given = torch.tensor([*target, config.eos_id])
        difference = (mine.gather(1, given[:, None])[:, 0] - theirs).abs().max().item()
        if not difference <= TOLERANCE:
            raise UserError(
                f"{tool} gives other scores than headway for a sentence of {len(source)} tokens (a log-probability "
                f"differs by {difference:.2g}); nothing was exported. Is this a version that headway was tested with?"
            )
        found = exported.translate(source, most)
        if not same_or_tied(wanted.ids, found, _log_probabilities(stored, row, wanted.ids), config.eos_id):
            raise UserError(
                f"{tool} translates a sentence of {len(source)} tokens to {found}, headway to {wanted.ids}; nothing "
                "was exported. Is this a version that headway was tested with?"
            )


def probes(config: ModelConfig) -> Iterator[list[int]]:
    """Sources as ids. Each has the last id of the vocabulary, where there is room, and the unknown one."""
    generator = torch.Generator().manual_seed(1)
    longest, last = config.max_length - 1, config.source_vocab_size - 1
    for length in (*(length for length in LENGTHS if length < longest), longest):
        ids = torch.randint(0, config.source_vocab_size, (length,), generator=generator).tolist()
        source = [id_ if id_ not in (config.pad_id, config.bos_id, config.eos_id) else last for id_ in ids]
        source[length // 2] = last
        if length > 2:
            source[0] = config.unk_id
        yield source


def same_or_tied(wanted: Sequence[int], found: Sequence[int], log_probabilities: Tensor, eos_id: int) -> bool:
    """Whether two translations are equal, or differ first where the two tokens are equally likely, but for `TIE`.

    log_probabilities: (wanted length + 1, vocabulary), of the tokens after each beginning of `wanted`.
    """
    both = [*wanted, eos_id], [*found, eos_id]
    for step, (mine, theirs) in enumerate(zip(*both, strict=False)):
        if mine != theirs:
            step_log_probabilities = log_probabilities[step]
            return (step_log_probabilities[mine] - step_log_probabilities[theirs]).abs().item() <= TIE
    return True


@torch.inference_mode()
def _log_probabilities(stored: StoredModel, source: Tensor, target: Sequence[int]) -> Tensor:
    """(target length + 1, vocabulary)"""
    read = torch.tensor([[stored.model.config.bos_id, *target]])
    return F.log_softmax(stored.model(source, read)[0].float(), dim=-1)
