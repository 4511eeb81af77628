"""Checks that an exported model is the model: it finds the likeliest tokens, with the same log-probabilities.

Every export is checked before it reports success, with sentences of many lengths that contain special tokens and the
vocabulary's last one.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from headway.errors import UserError
from headway.model.config import ModelConfig
from headway.plain import Floats, Ids, PlainTransformer
from headway.storage import AnyModel, ModelDirectory

LENGTHS = (1, 2, 3, 7, 16, 40, 100, 255, 257, 300)
"""Lengths of source sentences in pieces, beside the longest that the model reads or `LONGEST_PROBED`."""
LONGEST_PROBED = 2047
"""Time and memory of attention grow with the square of the length: 8,191 pieces take gigabytes."""
LONGEST_TRANSLATION = 40
TOLERANCE = 1e-3
"""Maximum difference of a token's log-probability: long sums are made in another order."""
TIE = 1e-4
"""Tokens whose log-probabilities differ by less are equally good."""


class Exported(Protocol):
    """The exported model, run by the tool it was exported for. Ids are headway's, and a source has no <eos>."""

    def translate(self, source: list[int], max_length: int, opening: Sequence[int] = ()) -> list[int]:
        """Greedy search until <eos>, or until there are `max_length` tokens; without control ids. opening: the first
        ids of the translation."""
        ...

    def score(self, source: list[int], target: list[int]) -> list[float]:
        """The log-probability of each token of the target, and of <eos> after it, among all of the vocabulary."""
        ...


def check_faithful(model: AnyModel, opened: Callable[[], Exported], tool: str) -> None:
    """Raises UserError if the exported model finds tokens that aren't the likeliest, or other log-probabilities.
    opened: loads the exported model, which leaves the memory before the weights of a `ModelDirectory` are read."""
    if model.config.core:
        raise UserError(f"{tool} has no {model.config.core}, the model's core of attention; nothing was exported")
    config, never, exported = model.config, never_generated(model), opened()
    remedy = "nothing was exported. Is this a version that headway was tested with?"
    most = min(LONGEST_TRANSLATION, config.max_length - 1)
    answers = [
        (source, found := exported.translate(source, most), exported.score(source, found)) for source in _probes(config)
    ]
    del exported
    logits = _logits_of(model)
    for source, found, scores in answers:
        places, ids = np.arange(len(found) + 1), [*found, config.eos_id]
        steps = logits(np.array([[*source, config.eos_id]]), np.array([[config.bos_id, *found]]))[0].astype(np.float64)
        steps -= steps.max(axis=1, keepdims=True)
        steps -= np.log(np.exp(steps).sum(axis=1, keepdims=True))  # (target length + 1, vocabulary)
        difference = np.abs(steps[places, ids] - scores).max()
        if not difference <= TOLERANCE:
            raise UserError(
                f"{tool} gives other scores than headway for a sentence of {len(source)} tokens (a log-probability "
                f"differs by {difference:.2g}); {remedy}"
            )
        steps[:, never] = steps[0, config.eos_id] = -np.inf  # no translation is empty
        gaps = steps.max(axis=1) - steps[places, ids]
        if not (gaps[: min(len(found) + 1, most)] <= TIE).all():
            raise UserError(
                f"{tool} translates a sentence of {len(source)} tokens to {found}, but headway finds other tokens "
                f"likelier; {remedy}"
            )


def never_generated(model: AnyModel) -> list[int]:
    """The target ids that no translation may have."""
    config = model.config
    return sorted({config.pad_id, config.bos_id, *model.target_tokenizer.never_generated} - {config.eos_id})


def _logits_of(model: AnyModel) -> Callable[[Ids, Ids], Floats]:
    """The model's computation, as in `PlainTransformer.logits`. A model in memory may compute differently."""
    if isinstance(model, ModelDirectory):
        return PlainTransformer(model.config, model.weights()).logits
    import torch

    net = model.model
    if net.training or next(net.parameters()).device.type != "cpu":
        net = copy.deepcopy(net).cpu().eval()
    logits = torch.inference_mode()(lambda source, target: net(torch.from_numpy(source), torch.from_numpy(target)))
    return lambda source, target: logits(source, target).float().numpy()


def _probes(config: ModelConfig) -> Iterator[list[int]]:
    """Sources as ids. Each has the vocabulary's last id, and the unknown one where there is room."""
    generator = np.random.default_rng(1)
    longest, last = min(config.max_length - 1, LONGEST_PROBED), config.source_vocab_size - 1
    for length in (*(length for length in LENGTHS if length < longest), longest):
        ids = generator.integers(0, config.source_vocab_size, length).tolist()
        source = [last if id_ in (config.pad_id, config.bos_id, config.eos_id) else id_ for id_ in ids]
        source[length // 2] = last
        if length > 2:
            source[0] = config.unk_id
        yield source
