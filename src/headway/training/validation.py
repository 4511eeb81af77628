"""Validation: how good a model is on text that it is never trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from headway.devices import autocast
from headway.evaluation import Scores, score_translations
from headway.storage import StoredModel
from headway.training.batches import Batches
from headway.training.memory import naming_batch, naming_memory
from headway.translator import Translator


@dataclass(frozen=True)
class Validation:
    """What a validation found."""

    loss: float
    """Cross-entropy a target token in nats, without label smoothing."""
    scores: Scores
    """Of greedy translations."""


def validate(
    loss_of: nn.Module,
    stored: StoredModel,
    batches: Batches,
    texts: Sequence[tuple[str, str]],
    *,
    tokenize: str,
    dtype: torch.dtype,
) -> Validation:
    """The loss of a model over the batches, and the scores of its translations of `texts`, pairs of source and
    reference.

    stored: the model of `loss_of`; tokenize: sacreBLEU's; dtype: of the loss's matrix products. Raises UserError where
    memory runs out.
    """
    loss = mean_loss(loss_of, batches, dtype)
    translator = Translator(stored, device=batches.device)
    longest, _ = batches.longest(batches.plan.alone(batches.corpus.longest_pair()))
    remedy = "begin a new run with a lower decoding.max_length, or without the longest pairs of data.valid"
    with naming_memory(lambda: f"translating data.valid, a pair of {longest} source tokens among them; {remedy}"):
        scores = score(translator, texts, tokenize)
    return Validation(loss, scores)


@torch.inference_mode()
def mean_loss(loss_of: nn.Module, batches: Batches, dtype: torch.dtype) -> float:
    """Cross-entropy a target token in nats, without label smoothing."""
    loss_of.eval()
    plan = [one for step in batches.plan.steps(0) for one in step]
    with naming_batch(batches, plan), autocast(batches.device, dtype):
        total = sum(loss_of(*batches.tensors(one)).item() for one in plan)
    return total / batches.target_tokens(plan)


def score(translator: Translator, texts: Sequence[tuple[str, str]], tokenize: str) -> Scores:
    """Of greedy translations, by the translator that everybody uses."""
    sources, references = zip(*texts, strict=True)
    translations = translator.translate(sources, beam_size=1)
    return score_translations([translation.text for translation in translations], references, tokenize)
