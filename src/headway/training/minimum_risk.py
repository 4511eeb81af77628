"""Minimum-risk training (Shen et al. 2016, https://arxiv.org/abs/1512.02433): the model samples translations of a
sentence, and those that are better than its other samples become likelier.

The risk of a translation is 1 minus its sentence BLEU. The gradient of the expected risk is estimated from a few
samples of each sentence with a leave-one-out baseline: the mean risk of the sentence's other samples (RLOO; Kool et al.
2019, "Buy 4 REINFORCE samples, get a baseline for free!"). No sample is empty, as no translation is: the weights of a
sentence's samples add up to 0, so the probability of <eos> as the first token, which all of them lack, plays no part.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from headway.data.batches import CorpusShare, MicroBatch, Plan, collate
from headway.data.packing import Joined
from headway.decoding import Hypothesis, Sampling, SearchOptions, TorchEngine, TorchSearcher
from headway.decoding.engine import tensor_on
from headway.evaluation import sentence_bleu
from headway.model import Transformer
from headway.recipe.sizes import forward_work, work_of_step
from headway.text.subwords import Tokenizer
from headway.training.ranks import SingleProcess
from headway.training.step import Batches, StepBatches, WeightedBatch, on_device

ROUNDING = 1e-9
EXTRA_TOKENS = 10
"""A sample may have twice as many tokens as the reference and this many more. A longer one is cut off."""
EMPTY = MicroBatch(1, 1, [[]])
"""A micro-batch without a pair, for a rank that has fewer than another."""


@dataclass(frozen=True)
class WeightedPairs:
    """Sources and sampled translations, a small corpus of its own."""

    source: list[NDArray[np.int64]]
    target: list[NDArray[np.int64]]
    weights: list[NDArray[np.float32]]
    """One for each token of a translation and for its end."""

    def add(self, source: NDArray[np.int64], sample: Hypothesis, weight: float) -> None:
        """Adds a sample. The end of one that was cut off wasn't drawn, so its weight is 0."""
        self.source.append(source)
        self.target.append(np.array(sample.ids, dtype=np.int64))
        self.weights.append(np.full(len(sample.ids) + 1, weight, dtype=np.float32))
        if sample.stopped != "eos":
            self.weights[-1][-1] = 0.0

    def micro_batches(self, mean_lengths: tuple[float, float], budget: int) -> list[MicroBatch]:
        """All pairs, in micro-batches of up to `budget` places. mean_lengths: of the training corpus."""
        if not self.source:
            return []
        source, target = (np.array([len(ids) + 1 for ids in side]) for side in (self.source, self.target))
        means = mean_lengths[0] + 1, mean_lengths[1] + 1
        plan = Plan(lambda pairs: (source[pairs], target[pairs]), means, [CorpusShare(len(source))], budget, budget)
        return [one for step in plan.steps(0) for one in step]


@dataclass(frozen=True)
class RiskSampler:
    """Samples translations of training sentences, and weights them."""

    model: Transformer
    tokenizer: Tokenizer
    train: Batches
    tokenize: str
    count: int
    seed: int
    dtype: torch.dtype

    def step(self, micro_batches: list[MicroBatch], number: int, ranks: SingleProcess) -> StepBatches:
        """Samples for the rank's share of the micro-batches of step `number`; the same model draws the same samples in
        it. Each sample is weighted by how much better it is than its baseline; equally good ones are left out. The
        losses of the batches add up to the risks of all samples."""
        corpus, config = self.train.corpus, self.model.config
        pairs = [pair for one in ranks.local_micro_batches(micro_batches) for pair in one.pairs]
        drawn = self._sample(pairs, number)
        risks = np.array([self._risks(*one) for one in zip(pairs, drawn, strict=True)]).reshape(-1, self.count)
        weights = (risks.mean(axis=1, keepdims=True) - risks) * self.count / (self.count - 1)
        samples = WeightedPairs([], [], [])
        for pair, of_pair, of_risks in zip(pairs, drawn, weights, strict=True):
            for one, weight in zip(of_pair, of_risks, strict=True):
                if abs(weight) > ROUNDING:
                    samples.add(corpus.source[pair], one, weight)
        planned = samples.micro_batches(corpus.mean_lengths, self.train.tokens_per_micro_batch)
        most = int(*ranks.all_reduce_max(max(1, len(planned))))
        planned += [EMPTY] * (most - len(planned))
        source_tokens = self.count * sum(len(corpus.source[pair]) + 1 for pair in pairs)
        target_tokens = sum(len(one.ids) + 1 for of_pair in drawn for one in of_pair)
        work = sum(forward_work(config, source_tokens, target_tokens, *corpus.mean_lengths))
        work += work_of_step(config, planned)
        risk_of_batches = [float(risks.sum()), *[0.0] * (most - 1)]
        return StepBatches(
            batches=[self._weighted(samples, *one) for one in zip(planned, risk_of_batches, strict=True)],
            divisor=self.count * sum(len(one.pairs) for one in micro_batches),
            work=ranks.all_reduce_sum(torch.tensor(work, device=self.train.device)).item(),
        )

    def _sample(self, pairs: Sequence[int], number: int) -> list[list[Hypothesis]]:
        """The samples of each pair's source. Leaves the model in evaluation mode."""
        config, corpus = self.model.config, self.train.corpus
        engine = TorchEngine(self.model.eval(), self.tokenizer.never_generated, self.dtype)
        searcher = TorchSearcher(engine, config.pad_id, self.train.device)
        options = SearchOptions(beam_size=1, n_best=self.count, sample=Sampling(seed=(self.seed << 32) + number))
        caps = [min(2 * len(corpus.target[pair]) + EXTRA_TOKENS, config.max_length - 1) for pair in pairs]
        return searcher.search([corpus.source[pair].tolist() for pair in pairs], options, caps, [[] for _ in pairs])

    def _risks(self, pair: int, samples: Sequence[Hypothesis]) -> list[float]:
        decode = self.tokenizer.decode
        reference = decode(self.train.corpus.target[pair].tolist())
        return [1 - sentence_bleu(decode(one.ids), reference, self.tokenize) / 100 for one in samples]

    def _weighted(self, samples: WeightedPairs, micro_batch: MicroBatch, risk: float) -> WeightedBatch:
        x, y = (Joined.of([side[pair] for pair in micro_batch.pairs]) for side in (samples.source, samples.target))
        source, target, labels = collate(x, y, micro_batch)
        weights = np.zeros(labels.shape, dtype=np.float32)
        for of_row, row in zip(weights, micro_batch.rows, strict=True):
            of_sentences = [one for pair in row for one in samples.weights[pair]]
            of_row[: len(of_sentences)] = of_sentences
        device = self.train.device
        own = tensor_on(device, weights), tensor_on(device, np.array([risk], dtype=np.float32))[0]
        return (*on_device(source, target, labels, device), *own)
