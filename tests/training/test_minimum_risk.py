"""Minimum-risk training: what is sampled, how it is weighed, and that the risk falls."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from tests.training.test_loop import StopAfter, begin, log, losses, recipe, run
from tests.training.test_loop import files as files  # noqa: PLC0414  # a fixture
from tests.training.test_loop import weights as bytes_of_weights
from torch.utils.flop_counter import FlopCounterMode

from headway.decoding import Hypothesis
from headway.evaluation import sentence_bleu
from headway.recipe.recipe import TrainingSection
from headway.recipe.sizes import work_of_step, work_of_update
from headway.training import loop, minimum_risk
from headway.training.loss import TranslationLoss
from headway.training.minimum_risk import EXTRA_TOKENS, RiskSampler, WeightedPairs
from headway.training.processes import Interrupted
from headway.training.ranks import SingleProcess
from headway.training.start import inherited_flops
from headway.training.step import accumulate

RISK = {"risk_samples": 4, "max_steps": 24, "learning_rate": 1e-3}


@pytest.fixture(scope="module")
def trained(files, tmp_path_factory):
    """A run that has learned a part of its task."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    run(recipe(files, max_steps=160, validate_every=160), folder)
    return folder


@pytest.fixture
def sampler(files, trained, tmp_path):
    return begin(recipe(files, init_from=str(trained), **RISK), tmp_path / "run").objective


def step_of(sampler):
    return next(sampler.train.plan.steps(0))


def risk_of(found):
    return sum(batch[4].item() for batch in found.batches)


def test_a_sample_weighs_what_its_bleu_is_above_the_mean_of_the_others(sampler):
    """By sentences and weights as the batches have them."""
    found = sampler.step(step_of(sampler), 1, SingleProcess())
    lengths = []
    by_source: dict[tuple[int, ...], list[tuple[list[int], float]]] = {}
    for source, target, labels, shares, _ in found.batches:
        for row in range(len(labels)):
            for number in range(1, int(source.sentences[row].max()) + 1):
                ids = source.ids[row][source.sentences[row] == number].tolist()
                places = target.sentences[row] == number
                *sample, end = labels[row][places].tolist()
                of_tokens, of_end = shares[row][places].tensor_split([-1])
                assert of_tokens.unique().numel() <= 1
                was_cut_off = of_end.item() == 0
                assert was_cut_off or not len(of_tokens) or of_end == of_tokens[0]
                assert end == sampler.model.config.eos_id
                by_source.setdefault(tuple(ids[:-1]), []).append((sample, shares[row][places][0].item()))
                lengths.append((len(sample), was_cut_off))
        assert not shares[target.sentences == 0].any()
    corpus, decode = sampler.train.corpus, sampler.tokenizer.decode
    references = {
        tuple(corpus.source[pair].tolist()): decode(corpus.target[pair].tolist()) for pair in range(len(corpus))
    }
    times = Counter(tuple(corpus.source[pair].tolist()) for one in step_of(sampler) for pair in one.pairs)
    whole = 0
    for source, samples in by_source.items():
        if times[source] == 1 and len(samples) == sampler.count:  # none is as good as its baseline
            whole += 1
            bleu = [sentence_bleu(decode(ids), references[source], sampler.tokenize) / 100 for ids, _ in samples]
            for place, (_, weight) in enumerate(samples):
                others = bleu[:place] + bleu[place + 1 :]
                assert weight == pytest.approx(bleu[place] - np.mean(others), abs=1e-5)
    assert whole > 3
    assert all(size >= EXTRA_TOKENS for size, was_cut_off in lengths if was_cut_off)


@pytest.mark.parametrize(("stopped", "end"), [("eos", 0.5), ("max_length", 0.0)])
def test_the_end_of_a_sample_that_was_cut_off_weighs_nothing(stopped, end):
    samples = WeightedPairs([], [], [])
    samples.add(np.array([7, 8]), Hypothesis([4, 5, 6], -1.0, stopped), 0.5)
    assert samples.weights[0].tolist() == [0.5, 0.5, 0.5, end]


def test_the_gradient_is_that_of_the_expected_risk(sampler):
    """Its direction, of one short sentence. The expected risk is the sum of p(y) * risk(y). All translations that are
    drawn in many draws stand for all there are; the others have their mean risk."""
    sampler = replace(sampler, count=400, model=sampler.model.double())
    model, corpus = sampler.model, sampler.train.corpus
    pair = int(np.argmin(sampler.train.corpus.lengths_of(np.arange(120))[1]))
    micro_batch = sampler.train.plan.alone(pair)
    draws = range(1, 6)
    for number in draws:
        for source, target, labels, shares, _ in sampler.step([micro_batch], number, SingleProcess()).batches:
            logarithms = model.output(model.packed_hidden_states(source, target)).log_softmax(dim=-1)
            chosen = logarithms.gather(2, labels[..., None])[..., 0]
            (-(shares * chosen).sum() / sampler.count / len(draws)).backward()
    found = model.output.weight.grad.clone()
    model.zero_grad()
    drawn = [tuple(one.ids) for number in draws for one in sampler._sample([pair], number)[0] if one.stopped == "eos"]
    reference = sampler.tokenizer.decode(corpus.target[pair].tolist())
    risk = {
        ids: 1 - sentence_bleu(sampler.tokenizer.decode(list(ids)), reference, sampler.tokenize) / 100 for ids in drawn
    }
    mean = np.mean([risk[ids] for ids in drawn])
    read = torch.tensor([[*corpus.source[pair].tolist(), model.config.eos_id]])
    for ids, one in risk.items():
        logits = model(read, torch.tensor([[model.config.bos_id, *ids]]))[0]
        labels = torch.tensor([*ids, model.config.eos_id])
        probability = logits.log_softmax(dim=-1).gather(1, labels[:, None]).sum().exp()
        (probability * (one - mean)).backward()
    wanted = model.output.weight.grad
    assert torch.nn.functional.cosine_similarity(found.flatten(), wanted.flatten(), dim=0) > 0.9


def test_the_work_is_about_what_a_plan_says(sampler):
    """A sample goes through the model forward when it is drawn, and forward and backward when it is trained on."""
    [micro_batch] = step_of(sampler)
    planned = TrainingSection(max_steps=1, init_from=Path("m"), risk_samples=sampler.count).passes
    work = work_of_step(sampler.model.config, [micro_batch])
    assert sampler.step([micro_batch], 1, SingleProcess()).work == pytest.approx(planned * work, rel=0.2)


def test_drawing_counts_as_torch_counts_the_model_on_all_samples(sampler):
    model, corpus, micro_batches = sampler.model, sampler.train.corpus, step_of(sampler)
    pairs = [pair for one in micro_batches for pair in one.pairs]
    drawn = sampler._sample(pairs, 1)
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        for pair, of_pair in zip(pairs, drawn, strict=True):
            source = torch.tensor([[*corpus.source[pair].tolist(), model.config.eos_id]])
            for one in of_pair:
                model(source, torch.tensor([[model.config.bos_id, *one.ids]]))
    with patch.object(minimum_risk, "work_of_step", return_value=0.0):
        drawing = sampler.step(micro_batches, 1, SingleProcess()).work
    assert drawing == pytest.approx(counted.get_total_flops(), rel=0.1)


def test_the_log_and_the_work_of_a_run_are_those_of_its_steps(files, trained, tmp_path):
    """The logged loss is the mean risk. The divisor of the gradients is the number of samples."""
    wanted = recipe(files, init_from=str(trained), **{**RISK, "max_steps": 1})
    sampler = begin(wanted, tmp_path / "begun").objective
    micro_batches = step_of(sampler)
    found = sampler.step(micro_batches, 1, SingleProcess())
    samples = RISK["risk_samples"] * sum(len(one.pairs) for one in micro_batches)
    with patch.object(loop, "train_step", wraps=loop.train_step) as taken:
        progress = run(wanted, tmp_path / "run")
    assert [call.kwargs["divisor"] for call in taken.call_args_list] == [samples]
    [loss] = [entry["loss"] for entry in log(tmp_path / "run") if "loss" in entry]
    assert loss == pytest.approx(risk_of(found) / samples)
    assert 0 < loss < 1
    update = work_of_update(sampler.model.config, "adam")
    assert progress.flops - inherited_flops(wanted) == pytest.approx(found.work + update)


def test_each_step_and_each_seed_draws_other_samples(sampler):
    [pairs] = [one.pairs for one in step_of(sampler)]

    def drawn(of_sampler, number):
        return [one.ids for of_pair in of_sampler._sample(pairs, number) for one in of_pair]

    assert drawn(sampler, 1) == drawn(sampler, 1)
    assert drawn(sampler, 1) != drawn(sampler, 2)
    assert drawn(sampler, 1) != drawn(replace(sampler, seed=sampler.seed + 1), 1)


def test_label_smoothing_does_not_apply(sampler):
    """A sample of weight 1 has its plain cross-entropy."""
    [micro_batch] = step_of(sampler)
    batch = sampler.train.tensors(micro_batch)
    smoothed, plain = (TranslationLoss(sampler.model, share).train() for share in (0.3, 0.0))
    ones = torch.ones(batch[2].shape)
    sampler.model.eval()  # without dropout
    assert smoothed(*batch, ones).item() == pytest.approx(plain(*batch).item())
    assert smoothed(*batch).item() != pytest.approx(plain(*batch).item())


def test_the_risk_falls(files, trained, tmp_path):
    run(recipe(files, init_from=str(trained), **{**RISK, "max_steps": 40, "risk_samples": 8}), tmp_path / "run")
    risks = [entry["loss"] for entry in log(tmp_path / "run") if "loss" in entry]
    assert 0 < np.mean(risks[-8:]) < 0.9 * np.mean(risks[:8])


@pytest.mark.usefixtures("held_files_stay")
def test_an_interrupted_run_goes_on_as_if_nothing_had_been(files, trained, tmp_path):
    wanted = recipe(files, init_from=str(trained), **RISK)
    run(wanted, tmp_path / "whole")
    with pytest.raises(Interrupted):
        run(wanted, tmp_path / "parts", StopAfter(9))
    torch.manual_seed(999)
    run(wanted, tmp_path / "parts")
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    assert bytes_of_weights(tmp_path / "parts") == bytes_of_weights(tmp_path / "whole")


def test_a_step_without_a_lesson_has_no_weights(sampler, monkeypatch):
    """Where all samples of a sentence are alike, none is better."""
    monkeypatch.setattr(RiskSampler, "_risks", lambda self, reference, samples: [0.3] * len(samples))
    found = sampler.step(step_of(sampler), 1, SingleProcess())
    assert risk_of(found) == pytest.approx(0.3 * sampler.count * sum(len(one.pairs) for one in step_of(sampler)))
    assert len(found.batches) == 1
    assert not found.batches[0][3].any()


class OneWithMore(SingleProcess):
    """Another rank has two batches more."""

    def all_reduce_max(self, batches):
        return (batches + 2,)


def test_all_ranks_have_as_many_batches(sampler):
    """Those without a sample change neither the loss nor the gradients."""
    alone, together = (sampler.step(step_of(sampler), 1, ranks) for ranks in (SingleProcess(), OneWithMore()))
    assert len(together.batches) == len(alone.batches) + 2
    assert risk_of(together) == risk_of(alone)
    loss_of, gradients = TranslationLoss(sampler.model).eval(), []
    for found in (alone, together):
        losses = accumulate(loss_of, found.batches, found.divisor, torch.float32)
        assert losses.sum().item() == pytest.approx(risk_of(found))
        gradients.append([weight.grad.clone() for weight in loss_of.parameters()])
        loss_of.zero_grad()
    assert all(map(torch.equal, *gradients))


def test_a_loss_has_the_value_of_the_risk_and_the_gradient_of_the_weighted_sum(sampler):
    loss_of = TranslationLoss(sampler.model).eval()
    *batch, risk = sampler.step(step_of(sampler), 1, SingleProcess()).batches[0]
    of_sum, of_risk = loss_of(*batch), loss_of(*batch, risk)
    gradients = [torch.autograd.grad(loss, sampler.model.output.weight)[0] for loss in (of_sum, of_risk)]
    assert of_risk.item() == risk.item() != pytest.approx(of_sum.item())
    assert torch.equal(*gradients)
    assert gradients[0].any()
