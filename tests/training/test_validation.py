"""Batches of a corpus and the loss over it, against sums over all pairs alone."""

import numpy as np
import pytest
import torch
from tests.ids import write_ids
from torch.nn import functional as F

from headway.data.shards import ParallelIds
from headway.model import ModelConfig, Transformer
from headway.recipe.reading import make_recipe
from headway.text.words import WordTokenizer
from headway.training.loss import TranslationLoss
from headway.training.ranks import SingleProcess
from headway.training.run import mean_loss, tokenization_of
from headway.training.step import Batches

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> ParallelIds:
    random = np.random.default_rng(2)

    def text() -> str:
        return " ".join(random.choice(list("abcdef"), random.integers(1, 12)))

    words = WordTokenizer(list("abcdef"))
    folder = tmp_path_factory.mktemp("corpus") / "ids"
    write_ids(folder, [[(text(), text()) for _ in range(40)]], words)
    return ParallelIds(folder)


@pytest.fixture(scope="module")
def loss_of() -> TranslationLoss:
    torch.manual_seed(1)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.3}
    return TranslationLoss(Transformer(ModelConfig(10, 10, **sizes)), label_smoothing=0.2).double()


@pytest.mark.parametrize("budget", [1, 60, 10_000])
def test_the_mean_loss_is_that_of_all_tokens(corpus, loss_of, budget):
    """However they are cut into batches; without dropout and label smoothing, though training has both."""
    loss_of.model.eval()
    total, tokens = 0.0, 0
    for index in range(len(corpus)):
        source, target = corpus.source[index].tolist(), corpus.target[index].tolist()
        given = torch.tensor([*target, 3])
        logits = loss_of.model(torch.tensor([[*source, 3]]), torch.tensor([[2, *target]]))[0]
        total, tokens = total + F.cross_entropy(logits, given, reduction="sum").item(), tokens + len(given)
    loss_of.train()
    found = mean_loss(loss_of, Batches(corpus, CPU, budget, budget), torch.float32, SingleProcess())
    assert found == pytest.approx(total / tokens, rel=1e-12)


def test_batches_count_what_is_in_their_tensors(corpus):
    batches = Batches(corpus, CPU, tokens_per_batch=120, tokens_per_micro_batch=60, seed=1)
    micro_batches = [one for step in batches.plan.steps(3) for one in step]
    assert sorted(index for one in micro_batches for index in one.pairs) == list(range(40))
    sizes = []
    for one in micro_batches:
        source, target, labels = batches.tensors(one)
        assert [len(row) for row in one.rows] == source.sentences.amax(1).tolist() == target.sentences.amax(1).tolist()
        assert batches.longest(one) == (int(source.positions.max()) + 1, int(target.positions.max()) + 1)
        assert batches.target_tokens([one]) == int((labels != 0).sum())
        sizes.append((source.ids.numel() + labels.numel(), source.ids.size(1)))
    assert batches.target_tokens(micro_batches) == corpus.target.total + 40
    assert batches.largest(micro_batches) is micro_batches[sizes.index(max(sizes))]


def test_the_plan_is_a_function_of_seed_and_epoch(corpus):
    def plan(seed: int, epoch: int) -> list[list[list[list[int]]]]:
        batches = Batches(corpus, CPU, tokens_per_batch=120, tokens_per_micro_batch=60, seed=seed)
        return [[one.rows for one in step] for step in batches.plan.steps(epoch)]

    assert plan(1, 0) == plan(1, 0)
    assert plan(1, 0) != plan(1, 1)
    assert plan(1, 0) != plan(2, 0)


@pytest.mark.parametrize(
    ("targets", "kind", "wanted"),
    [
        (["zh_CN"], "bpe", "zh"),
        (["th"], "unigram", "char"),
        (["ko"], "bpe", "13a"),
        (["de", "zh-Hans"], "bpe", "zh"),
        (["de", "fr"], "bpe", "13a"),
        (["zh_CN"], "word", "none"),
    ],
)
def test_validation_scores_text_as_its_languages_are_written(targets, kind, wanted):
    """With several target languages, too, which only the tags of the corpora name."""
    tags = targets if len(targets) > 1 else [""]
    corpora = [
        {"source": f"{one}.en", "target": f"a.{one}", "tag": tag} for one, tag in zip(targets, tags, strict=True)
    ]
    document = {"data": {"train": corpora, "valid": corpora}, "tokenizer": {"kind": kind}, "training": {"patience": 1}}
    assert tokenization_of(make_recipe(document)) == wanted
