"""Search with caches, batches and early stopping against its definition: a sentence alone, the whole model for each
token, every hypothesis in Python's lists."""

import itertools
import random
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from headway.decoding import Hypothesis, Sampling, TorchEngine, beam_search, greedy
from headway.decoding.searcher import length_penalty
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel
from headway.text.words import WordTokenizer
from headway.translator import Translation, Translator
from tests.properties.models import EOS, SEEDS, configs, padded, random_model, random_words

Ids = tuple[int, ...]


@torch.no_grad()
def decided(model: Transformer) -> Transformer:
    """The model with layers that do more and probabilities further apart, so that translations differ; some end."""
    for stack in (model.encoder, model.decoder):
        for parameter in stack.parameters():
            if parameter.dim() == 2:
                parameter.mul_(2)
    last = model.decoder.norm if model.config.norm == "pre" else model.decoder.layers[-1].feed_forward_residual.norm
    last.weight.mul_(2)
    last.bias.zero_()
    if model.output.bias is not None:
        model.output.bias.zero_()
        model.output.bias[EOS] = 2.5
    return model


@torch.inference_mode()
def next_log_probabilities(model: Transformer, source: Sequence[int], given: Sequence[Ids]) -> Tensor:
    """(hypotheses, vocabulary) of the token after each of the hypotheses, which are of one length."""
    config = model.config
    targets = torch.tensor([[config.bos_id, *ids] for ids in given])
    log_probabilities = model(torch.tensor([source]).expand(len(given), -1), targets)[:, -1].log_softmax(dim=-1)
    log_probabilities[:, [config.pad_id, config.bos_id]] = -torch.inf  # are never a next token
    return log_probabilities


def by_definition(
    model: Transformer, source: Sequence[int], cap: int, beam_size: int, n_best: int, alpha: float
) -> list[Hypothesis]:
    """Beam search without caches, batches, or a stop before `beam_size` hypotheses are finished, one of them as the
    best candidate of its step."""
    live: list[tuple[float, Ids]] = [(0.0, ())]
    finished: dict[Ids, Hypothesis] = {}
    leader_ended = False
    for length in range(cap + 1):
        log_probabilities = next_log_probabilities(model, source, [ids for _, ids in live]).tolist()
        continued = sorted(
            (
                (score + value, (*ids, token))
                for (score, ids), row in zip(live, log_probabilities, strict=True)
                for token, value in enumerate(row)
                if value > -torch.inf and (ids or token != EOS)  # none is empty
            ),
            reverse=True,
        )
        for score, (*ids, token) in continued[:beam_size]:
            if token == EOS:
                finished[tuple(ids)] = Hypothesis(ids, score, "eos")
        leader_ended |= continued[0][1][-1] == EOS
        if len(finished) >= beam_size and leader_ended:
            break
        if length == cap:  # <eos> is all that may follow
            for (score, ids), row in zip(live, log_probabilities, strict=True):
                finished.setdefault(ids, Hypothesis([*ids], score + row[EOS], "max_length"))
        live = [(score, ids) for score, ids in continued if ids[-1] != EOS][:beam_size]
    likeliest = sorted(finished.values(), key=lambda hypothesis: -hypothesis.score)[:beam_size]
    return sorted(likeliest, key=lambda hypothesis: -worth(hypothesis, alpha))[:n_best]


def worth(hypothesis: Hypothesis, alpha: float) -> float:
    return hypothesis.score / length_penalty(len(hypothesis.ids) + 1, alpha)


def assert_same(found: list[Hypothesis], wanted: list[Hypothesis]) -> None:
    assert [(one.ids, one.stopped) for one in found] == [(one.ids, one.stopped) for one in wanted]
    assert [one.score for one in found] == pytest.approx([one.score for one in wanted], abs=1e-4)


SIZES = {"d_model": 16, "num_heads": 4, "encoder_layers": 1, "decoder_layers": 2, "d_ff": 24}
KINDS = [
    {},
    {"norm": "pre", "activation": "gelu"},
    {"positions": "learned", "decoder_num_heads": 2},
    {"bos_id": 0, "share_embeddings": "none", "activation": "swish"},
]
SENTENCES = 25
"""Of each kind of model: a hundred in all."""


@pytest.mark.parametrize("beam_size", [1, 4, 8])
@pytest.mark.parametrize("kind", range(len(KINDS)))
@torch.inference_mode()
def test_cached_search_of_a_batch_is_uncached_search_of_each_sentence(kind, beam_size):
    config = ModelConfig(30, 30, dropout=0.0, max_length=40, output_bias=True, **{**SIZES, **KINDS[kind]})
    exact = decided(random_model(config, seed=kind + 50))  # none of whose choices is a near tie
    chance = random.Random(kind)
    sources = [[*(chance.randrange(4, 30) for _ in range(chance.randrange(1, 12))), EOS] for _ in range(SENTENCES)]
    caps = [chance.randrange(1, 16) for _ in sources]
    engine = TorchEngine(in_single_precision(exact))
    stopped = set()
    for alpha in (0.0, 1.0, 3.0):
        found = beam_search(engine, padded(sources), caps, beam_size=beam_size, n_best=beam_size, alpha=alpha)
        best = beam_search(engine, padded(sources), caps, beam_size=beam_size, alpha=alpha)  # may stop sooner
        for source, cap, hypotheses, alone in zip(sources, caps, found, best, strict=True):
            wanted = by_definition(exact, source, cap, beam_size, beam_size, alpha)
            assert_same(hypotheses, wanted)
            assert_same(alone, wanted[:1])
            stopped |= {one.stopped for one in hypotheses}
    assert stopped == {"eos", "max_length"}
    if beam_size == 1:
        without_penalty = beam_search(engine, padded(sources), caps, beam_size=1)
        for one, [wanted] in zip(greedy(engine, padded(sources), caps), without_penalty, strict=True):
            assert_same([one], [wanted])


def in_single_precision(model: Transformer) -> Transformer:
    copied = Transformer(model.config)
    copied.load_state_dict(model.state_dict())
    return copied.eval()


@given(configs(), SEEDS, st.integers(1, 2), st.sampled_from([0.0, 0.6, 2.0]))
@torch.inference_mode()
def test_a_beam_as_wide_as_everything_finds_everything(config, seed, cap, alpha):
    """Every translation of 1 to `cap` tokens with its score by the whole model, and the best ones first."""
    exact = random_model(config, seed)
    source = [*random_words(3), EOS]
    words = [id_ for id_ in range(config.target_vocab_size) if id_ not in (config.pad_id, config.bos_id, EOS)]
    wanted = {}
    for length in range(1, cap + 1):
        every = list(itertools.product(words, repeat=length))
        targets = torch.tensor([[config.bos_id, *ids, EOS] for ids in every])
        logits = exact(torch.tensor([source]).expand(len(every), -1), targets[:, :-1])
        of_tokens = logits.log_softmax(dim=-1).gather(2, targets[:, 1:, None])  # (translations, length + 1, 1)
        wanted |= zip(every, of_tokens.sum(dim=(1, 2)).tolist(), strict=True)
    engine = TorchEngine(in_single_precision(exact))
    wide = 2 * len(wanted)  # half of what continues may be <eos>
    [found] = beam_search(engine, torch.tensor([source]), [cap], beam_size=wide, n_best=wide, alpha=alpha)
    assert {tuple(hypothesis.ids): hypothesis.score for hypothesis in found} == pytest.approx(wanted, abs=1e-4)
    worths = [worth(hypothesis, alpha) for hypothesis in found]
    assert worths == sorted(worths, reverse=True)


def stored(seed: int, **kind) -> StoredModel:
    """Twenty-six words and a random model."""
    words = WordTokenizer([f"w{number}" for number in range(26)])
    config = ModelConfig(30, 30, dropout=0.0, max_length=40, output_bias=True, **{**SIZES, **kind, "bos_id": 2})
    return StoredModel(
        model=in_single_precision(decided(random_model(config, seed))),
        source_tokenizer=words,
        target_tokenizer=words,
        source_language="x",
        target_language="y",
    )


def random_texts(count: int) -> list[str]:
    chance = random.Random(1)
    return [" ".join(f"w{chance.randrange(26)}" for _ in range(chance.randrange(1, 15))) for _ in range(count)]


@pytest.mark.parametrize("beam_size", [1, 4, 8])
@pytest.mark.parametrize("kind", range(len(KINDS)))
@pytest.mark.parametrize("together", [1, 2])
def test_scores_of_the_n_best_are_those_of_score(beam_size, kind, together):
    """Of one model, and of two together."""
    first, *others = (stored(seed, **KINDS[kind]) for seed in range(together))
    door = Translator(first, device="cpu", ensemble=others)
    texts = random_texts(10)
    found = door.translate(texts, beam_size=beam_size, n_best=beam_size, max_length=12)
    every = [(text, one) for text, best in zip(texts, found, strict=True) for one in (best, *best.alternatives)]
    assert len(every) == beam_size * len(texts)
    scores = door.score([text for text, _ in every], [one.text for _, one in every])
    assert [one.score for _, one in every] == pytest.approx(scores, abs=1e-4, rel=0)


@pytest.mark.parametrize(
    "options", [{"beam_size": 1}, {"beam_size": 4, "n_best": 4}, {"sample": Sampling(temperature=2.0), "n_best": 4}]
)
@pytest.mark.parametrize("kind", range(len(KINDS)))
@pytest.mark.parametrize("together", [1, 2])
def test_scores_after_a_prefix_are_those_of_score(options, kind, together):
    """Also where the prefix is all of the translation, and where there is none."""
    first, *others = (stored(seed, **KINDS[kind]) for seed in range(together))
    door, texts = Translator(first, device="cpu", ensemble=others), random_texts(12)
    prefixes = ["", "w1", "w1 w2 w2 w5 w7 w3"] * 4
    found = door.translate(texts, prefix=prefixes, max_length=7, **options)
    for text, prefix, best in zip(texts, prefixes, found, strict=True):
        every = [best, *best.alternatives]
        assert all(one.text and f"{one.text} ".startswith(f"{prefix} ".lstrip()) for one in every)
        scores = door.score([text] * len(every), [one.text for one in every])
        assert [one.score for one in every] == pytest.approx(scores, abs=1e-4, rel=0)


@pytest.mark.parametrize("beam_size", [1, 5])
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_shuffled_batches_of_any_size_give_the_same(beam_size, kind):
    """Of 1, 7 and 64 sentences: the same texts, and the same scores to 1e-5 of them."""
    door, texts = Translator(stored(kind, **KINDS[kind]), device="cpu"), random_texts(64)
    options = {"beam_size": beam_size, "n_best": beam_size, "max_length": 20}
    alone = {text: door.translate([text], **options)[0] for text in texts}
    scores = {text: door.score([text], [alone[text].text])[0] for text in texts}
    for size in (7, 64):
        random.Random(size).shuffle(texts)
        for start in range(0, len(texts), size):
            batch = texts[start : start + size]
            for text, found in zip(batch, door.translate(batch, **options), strict=True):
                assert_same_translations(found, alone[text])
            given = door.score(batch, [alone[text].text for text in batch])
            assert given == pytest.approx([scores[text] for text in batch], rel=1e-5, abs=0)


def assert_same_translations(found: Translation, wanted: Translation) -> None:
    """And the next best ones."""
    ones, others = ([each, *each.alternatives] for each in (found, wanted))
    assert [(one.text, one.stopped) for one in ones] == [(other.text, other.stopped) for other in others]
    assert [one.score for one in ones] == pytest.approx([other.score for other in others], rel=1e-5, abs=0)
