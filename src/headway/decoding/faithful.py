"""Whether an exported model is the model: the same log-probabilities, and greedy search finds the same tokens.

Every export asks this before it reports success, of sentences of many lengths with special tokens and the last of the
vocabulary among them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Protocol

import torch
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
    config, model = stored.model.config, copy.deepcopy(stored.model).cpu().eval()
    engine = TorchEngine(model, stored.target_tokenizer.never_generated)
    remedy = "nothing was exported. Is this a version that headway was tested with?"
    for source in _probes(config):
        row, most = torch.tensor([[*source, config.eos_id]]), min(LONGEST_TRANSLATION, config.max_length - 1)
        [wanted] = greedy(engine, row, [most])
        given = torch.tensor([*wanted.ids, config.eos_id])
        with torch.inference_mode():
            logits = model(row, torch.tensor([[config.bos_id, *wanted.ids]]))[0]
        steps = F.log_softmax(logits.float(), dim=-1)  # (target length + 1, vocabulary)
        theirs = torch.tensor(exported.score(source, wanted.ids))
        difference = (steps.gather(1, given[:, None])[:, 0] - theirs).abs().max().item()
        if not difference <= TOLERANCE:
            raise UserError(
                f"{tool} gives other scores than headway for a sentence of {len(source)} tokens (a log-probability "
                f"differs by {difference:.2g}); {remedy}"
            )
        found = exported.translate(source, most)
        pairs = zip(steps, given.tolist(), [*found, config.eos_id], strict=False)
        gaps = [(step[one] - step[other]).abs().item() for step, one, other in pairs if one != other]
        if any(gap > TIE for gap in gaps[:1]):  # at the first token that differs
            raise UserError(
                f"{tool} translates a sentence of {len(source)} tokens to {found}, headway to {wanted.ids}; {remedy}"
            )


def _probes(config: ModelConfig) -> Iterator[list[int]]:
    """Sources as ids. Each has the last id of the vocabulary, where there is room, and the unknown one."""
    generator = torch.Generator().manual_seed(1)
    longest, last = config.max_length - 1, config.source_vocab_size - 1
    for length in (*(length for length in LENGTHS if length < longest), longest):
        ids = torch.randint(0, config.source_vocab_size, (length,), generator=generator).tolist()
        source = [last if id_ in (config.pad_id, config.bos_id, config.eos_id) else id_ for id_ in ids]
        source[length // 2] = last
        if length > 2:
            source[0] = config.unk_id
        yield source
