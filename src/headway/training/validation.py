"""Validation: how good a model is on text that it is never trained on."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from headway.devices import autocast
from headway.evaluation import Scores, score_translations, tokenization
from headway.storage import StoredModel
from headway.training.batches import Batches
from headway.training.ranks import Alone
from headway.training.recipe import Recipe
from headway.training.run import Run, Validation
from headway.training.step import naming_batch, naming_memory
from headway.translator import Translator


def tokenization_of(recipe: Recipe) -> str:
    """sacreBLEU's tokenisation of the text that is translated into."""
    languages = recipe.data.tags or [recipe.data.target_language]
    return tokenization(*languages, tokenized=recipe.tokenizer.kind == "word")


def validate(run: Run, stored: StoredModel) -> Validation:
    """The loss of the run's model, with the weights that it has now, and the scores of its translations. Ranks share
    the work, and find the same. stored: the model. Raises UserError where memory runs out."""
    batches, ranks = run.valid, run.ranks
    loss = mean_loss(run.loss_of, batches, run.dtype, ranks)
    translator = Translator(stored, device=batches.device)
    longest, _ = batches.longest(batches.plan.alone(batches.corpus.longest_pair()))
    remedy = "begin a new run with a lower decoding.max_length, or without the longest pairs of data.valid"
    with naming_memory(lambda: f"translating data.valid, a pair of {longest} source tokens among them; {remedy}"):
        scores = score(translator, run.data.valid_texts, tokenization_of(run.recipe), ranks)
    return Validation(loss, scores)


@torch.inference_mode()
def mean_loss(loss_of: nn.Module, batches: Batches, dtype: torch.dtype, ranks: Alone) -> float:
    """Cross-entropy a target token in nats, without label smoothing."""
    loss_of.eval()
    plan = [one for step in batches.plan.steps(0) for one in step]
    with naming_batch(batches, plan), autocast(batches.device, dtype):
        losses = [loss_of(*batches.tensors(one)).item() for one in ranks.part(plan)]
    return sum(ranks.joined(losses)) / batches.target_tokens(plan)


def score(translator: Translator, texts: Sequence[tuple[str, str]], tokenize: str, ranks: Alone) -> Scores:
    """Of greedy translations, by the translator that everybody uses."""
    sources, references = zip(*texts, strict=True)
    mine = [translation.text for translation in translator.translate(ranks.part(sources), beam_size=1)]
    return score_translations(ranks.joined(mine), references, tokenize)
