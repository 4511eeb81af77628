"""`engine="ctranslate2"` behind the same door: the same texts, scores and rules as ours, or a refusal by name."""

import copy
import itertools
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional

from headway.decoding import Sampling, SearchOptions, ctranslate2_searcher
from headway.decoding.engine import padded
from headway.errors import UserError
from headway.storage import StoredModel
from headway.text.tokenizer import EOS_ID
from headway.translator import Translator
from tests.decoding.test_ctranslate2_model import stored, with_shortlist

pytest.importorskip("ctranslate2")

ENGINES = ("torch", "ctranslate2")

TEXTS = ["the cat sat", "a dog ran after the mat", "", "mat " * 30, "한국어 ☃", "x" * 1000, "the dog"]

SENTENCES = [
    " ".join(words) for words in itertools.product(["the", "a"], ["cat", "dog", "mat"], ["sat", "ran", "after"])
]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Our translator of a model, and the one that CTranslate2 is."""
    torch.manual_seed(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADWAY_CACHE", str(tmp_path_factory.mktemp("cache")))
        one = ending()
        return Translator(one), Translator(one, engine="ctranslate2")


@pytest.fixture
def both(made):
    yield made
    made[0].stored.decoding.clear()


def ending():
    """A random model of whose translations some end by themselves."""
    one = stored(output_bias=True)
    for _ in range(30):
        kinds = {translation.stopped for translation in Translator(one).translate(TEXTS, beam_size=1, max_length=12)}
        if {"eos", "max_length"} <= kinds:
            return one
        with torch.no_grad():
            one.model.output.bias[one.model.config.eos_id] += 0.5
    raise AssertionError("no such model was found")


def with_lengths(seed, rate=1, **changes):
    """A random model whose translations have some 10 to 20 tokens: the later, the likelier <eos>. What can't be
    generated, <eos> as the first token included, has next to no probability."""
    torch.manual_seed(seed)
    one = stored(output_bias=True, share_embeddings="none", positions="learned", **changes)
    model, end = one.model, one.model.config.eos_id
    with torch.no_grad():
        model.output.bias[:3] = -30.0
        model.output.weight.mul_(3)
        to_end = model.output.weight[end] / model.output.weight[end].norm()
        places = torch.arange(len(model.target_positions.weight))[:, None]
        model.target_positions.weight += (places - 8).clamp(-8, 12) * to_end * rate
    return one


def trained():
    """A small model after 200 steps on a task: each word twice."""
    torch.manual_seed(0)
    one = stored(max_length=40, output_bias=True)
    model, config = one.model.train(), one.model.config
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    encoded = [one.source_tokenizer.encode(text) for text in SENTENCES]
    sources = padded([[*ids, config.eos_id] for ids in encoded], config.pad_id)
    targets = padded([[config.bos_id, *(id_ for id_ in ids for _ in range(2)), config.eos_id] for ids in encoded], 0)
    for _ in range(200):
        logits = model(sources, targets[:, :-1])
        optimizer.zero_grad()
        functional.cross_entropy(logits.flatten(0, 1), targets[:, 1:].flatten(), ignore_index=config.pad_id).backward()
        optimizer.step()
    with torch.no_grad():
        model.eval().output.bias[:3] = -30.0  # what can't be generated has no probability
    return one


MODELS = {
    "random, pre-norm": partial(with_lengths, 1, norm="pre"),
    "random, gelu": partial(with_lengths, 2, norm="pre", activation="gelu"),
    "random, post-norm": partial(with_lengths, 4, 8),
    "trained": trained,
}


def worth_of(translation, alpha):
    """The rank of a translation, by equation 14 of Wu et al. (2016)."""
    return translation.score / ((5 + len(translation.tokens) + 1) / 6) ** alpha


@pytest.mark.parametrize("model", MODELS)
def test_both_engines_give_the_same_n_best_lists_and_scores(cache, model):
    one = MODELS[model]()
    one.decoding["beam_size"] = 5
    ours, theirs = (Translator(one, device="cpu", engine=engine) for engine in ENGINES)
    lengths, bests = set(), {}
    for alpha in (0.0, 0.6, 1.0, 2.0):
        both = [translator.translate(SENTENCES, n_best=3, length_penalty=alpha) for translator in (ours, theirs)]
        for found in zip(*both, strict=True):
            lists = [[translation, *translation.alternatives] for translation in found]
            worths = [[worth_of(translation, alpha) for translation in some] for some in lists]
            assert worths[1] == pytest.approx(worths[0], abs=0.01)
            for place, (wanted, other) in enumerate(zip(*lists, strict=True)):
                tied = [worth for worth in worths[0] if abs(worth - worths[0][place]) < 0.02]
                if len(tied) == 1 and place < 2:  # the last may tie with one that isn't there
                    assert (other.tokens, other.stopped) == (wanted.tokens, wanted.stopped)
                    assert other.score == pytest.approx(wanted.score, abs=0.01)
                    lengths.add(len(other.tokens))
        bests[alpha] = [translation.text for translation in both[0]]
    assert len(lengths) > 2
    assert model == "trained" or bests[0.0] != bests[2.0]  # the penalty decides


OPTIONS = [
    {"beam_size": 1},
    {"beam_size": 1, "max_length": 5},
    {"beam_size": 4, "length_penalty": 0.0, "max_length": 20},
    {"beam_size": 3, "n_best": 3, "length_penalty": 0.0, "max_length": 6},
    {"beam_size": 1, "prefix": "the cat", "max_length": 12},
    {"beam_size": 1, "no_repeat_ngram": 2, "max_length": 12},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_translations_are_ours(both, options):
    ours, theirs = (translator.translate(TEXTS, **options) for translator in both)
    # of a beam that is cut there comes the best without <eos>, here the best with it
    cut = options.get("n_best", 1) < options["beam_size"]
    alike = [pair for pair in zip(ours, theirs, strict=True) if not (cut and pair[0].stopped == "max_length")]
    assert sum(one.stopped in ("eos", "max_length") for one, _ in alike) >= 3
    for one, other in alike:
        assert other.text == one.text
        if options["beam_size"] == 1:
            assert other.stopped == one.stopped
        assert other.tokens == one.tokens
        assert other.source_tokens == one.source_tokens
        assert (other.score is None) == (one.score is None) == (one.stopped in ("blank", "too_long"))
        assert one.score is None or one.score - 2e-3 <= other.score <= one.score + 0.2 * (
            len(one.tokens) + 1
        )  # less <unk>
        assert len(other.alternatives) == len(one.alternatives)


@pytest.mark.parametrize(
    "options",
    [
        *OPTIONS,
        {"beam_size": 4},
        {"beam_size": 4, "n_best": 4, "length_penalty": 0.6},
        {"beam_size": 4, "n_best": 4, "length_penalty": 1.0, "max_length": 9},
        {"beam_size": 2, "no_repeat_ngram": 3},
        {"beam_size": 3, "prefix": ["", "a dog", "the", "", "", "mat", "a"]},
    ],
    ids=str,
)
def test_a_translation_does_not_depend_on_what_is_translated_with_it(both, options):
    """Though the others have other limits on their lengths, some of which end a translation."""
    _, theirs = both
    together = theirs.translate(TEXTS, **options)
    prefixes = options.get("prefix", "")
    for place, (text, one) in enumerate(zip(TEXTS, together, strict=True)):
        prefix = prefixes if isinstance(prefixes, str) else prefixes[place]
        [alone] = theirs.translate([text], **{**options, "prefix": prefix})
        assert [(other.text, other.stopped) for other in (alone, *alone.alternatives)] == [
            (other.text, other.stopped) for other in (one, *one.alternatives)
        ]
        assert alone.score == pytest.approx(one.score, abs=1e-3)


def test_hypotheses_are_different_ranked_and_no_longer_than_they_may_be(both):
    _, theirs = both
    for one in theirs.translate(TEXTS, beam_size=5, n_best=5, length_penalty=0.6):
        every = [one, *one.alternatives]
        assert len({tuple(other.tokens) for other in every}) == len(every)
        assert all(len(other.tokens) <= 2 * len(one.source_tokens) + 50 for other in every)
        worth = [worth_of(other, 0.6) for other in every if other.score is not None]
        assert worth == sorted(worth, reverse=True)


def test_sources_of_one_length_keep_their_own_limits(both):
    _, theirs = both
    searcher, options = theirs.engines.able(), SearchOptions(beam_size=2, length_penalty=3.0, max_length=9)
    sources, caps = theirs.codec.sources(["the cat sat", "the dog ran", "the cat sat"]), [2, 9, 4]
    assert len({len(source) for source in sources}) == 1
    together = searcher.search(sources, options, caps, [[]] * 3)
    assert len({len(some[0].ids) for some in together}) > 1
    for source, cap, some in zip(sources, caps, together, strict=True):
        assert max(len(one.ids) for one in some) <= cap
        [alone] = searcher.search([source], options, [cap], [[]])
        assert [one.ids for one in some] == [one.ids for one in alone]


@pytest.mark.parametrize("length_penalty", [1.0, 3.0])
def test_hypotheses_that_were_cut_are_ranked_among_the_others(both, length_penalty):
    _, theirs = both
    kinds = set()
    for most in (2, 4, 6):
        for one in theirs.translate(SENTENCES, beam_size=5, n_best=5, length_penalty=length_penalty, max_length=most):
            every = [one, *one.alternatives]
            kinds.add(len({other.stopped for other in every}))
            worth = [worth_of(other, length_penalty) for other in every]
            assert worth == sorted(worth, reverse=True)
    assert 2 in kinds


@pytest.mark.parametrize(
    ("model", "beam_size", "alpha", "most"),
    [("random, gelu", 2, 3.0, 14), ("trained", 3, 0.0, 8), ("trained", 5, 1.0, 8)],
)
def test_a_limit_loses_no_translation_that_ends_before_it(cache, model, beam_size, alpha, most):
    """To those that have finished beyond it, and pushed it out of the list."""
    one = MODELS[model]()
    options = {"beam_size": beam_size, "length_penalty": alpha, "max_length": most}
    ours, theirs = (Translator(one, device="cpu", engine=name).translate(SENTENCES, **options) for name in ENGINES)
    assert [each.tokens for each in theirs] == [each.tokens for each in ours]


def total(translator, text, translation, suppressed=()):
    """The log-probability of the pieces of a translation and <eos>, from the model's logits. suppressed: ids that can't
    be next; <eos> can't be the first then either."""
    stored = translator.stored
    source = torch.tensor([[*stored.source_tokenizer.encode(text), stored.model.config.eos_id]])
    vocabulary, end = stored.target_tokenizer.vocabulary, stored.model.config.eos_id
    ids = [vocabulary.index(piece.text) for piece in translation.tokens]
    with torch.no_grad():
        logits = stored.model(source, torch.tensor([[stored.model.config.bos_id, *ids]]))[0]
        logits[:, list(suppressed)] = -torch.inf
        logits[0, [end] if suppressed else []] = -torch.inf
    return logits.log_softmax(dim=-1).gather(1, torch.tensor([[*ids, end]]).T).sum().item()


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0])
def test_scores_are_log_probabilities_whatever_the_penalty(both, length_penalty):
    """At least that of the whole vocabulary, at most that of what CTranslate2 may choose from: it divides what <unk>
    and the like would have among the others, but not where a translation was cut."""
    _, theirs = both
    options = {"beam_size": 4, "n_best": 4, "length_penalty": length_penalty, "max_length": 15}
    found = theirs.translate(TEXTS, **options)
    every = [
        (text, one)
        for text, translation in zip(TEXTS, found, strict=True)
        if text not in ("", "x" * 1000)
        for one in (translation, *translation.alternatives)
    ]
    assert len(every) == 5 * 4
    for text, one in every:
        least, most = total(theirs, text, one), total(theirs, text, one, suppressed=(0, 1, 2))
        assert least - 2e-3 <= one.score <= most + 2e-3
    assert {one.stopped for _, one in every} == {"eos", "max_length"}


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("int8", 0.02)])
def test_a_translation_scores_more_than_the_same_given_one_by_what_may_not_be_generated(cache, precision, tolerance):
    """Each token by -log(1 - p), if p is the probability of the tokens that may not be; in int8 to its rounding."""
    one = ending()
    with torch.no_grad():
        one.model.output.bias[:3] += 2.0  # <pad>, <unk> and <sos> get a larger share
    theirs = Translator(one, device="cpu", engine="ctranslate2", precision=precision)
    texts = [text for text in TEXTS if text not in ("", "x" * 1000)]
    found = [translation for translation in theirs.translate(texts, beam_size=4) if translation.stopped == "eos"]
    ids = [translation._pieces.ids for translation in found]
    given = theirs.engines.own.score([source for source, _ in ids], [target for _, target in ids])
    assert found
    for translation, score in zip(found, given, strict=True):
        text = translation._pieces.source_text
        more = total(theirs, text, translation, suppressed=(0, 1, 2)) - total(theirs, text, translation)
        assert more > 0.1
        assert translation.score - score == pytest.approx(more, rel=tolerance)


def test_given_translations_have_the_same_score(both):
    targets = ["the mat", "ran ran", "", "after", "☃", "y", "a dog"]
    ours, theirs = (translator.score(TEXTS, targets) for translator in both)
    assert theirs == pytest.approx(ours, abs=2e-3, nan_ok=True)


def test_the_model_s_own_options_are_the_defaults(both):
    both[0].stored.decoding |= {"length_penalty": 0.3, "beam_size": 2}
    for translator in both:
        assert translator.search_options().length_penalty == 0.3
        assert translator.search_options(length_penalty=0.2).length_penalty == 0.2
    for one, other in zip(*(translator.translate(TEXTS) for translator in both), strict=True):
        assert one.stopped == "max_length" or other.text == one.text


def with_listed_tokens_alone(one: StoredModel, text: str) -> StoredModel:
    """The model with an output bias that makes the other tokens impossible."""
    assert one.shortlist is not None
    ids = one.source_tokenizer.encode(text)
    listed = {*one.shortlist.of_token[[*ids, EOS_ID]].ravel().tolist(), *one.shortlist.always.tolist(), EOS_ID} - {-1}
    model = copy.deepcopy(one.model)
    with torch.no_grad():
        model.output.bias[[id_ for id_ in range(len(model.output.bias)) if id_ not in listed]] = -1e4
    return replace(one, model=model, shortlist=None)


def test_with_a_shortlist_each_text_alone_has_the_best_of_its_tokens(cache):
    """Texts with other lists before, and prefixes, which CTranslate2 would confuse."""
    one = with_shortlist(ending())
    theirs, free = Translator(one, engine="ctranslate2"), Translator(replace(one, shortlist=None))
    listed = 0
    for text in filter(None, TEXTS):
        ours = Translator(with_listed_tokens_alone(one, text))
        for options in ({"beam_size": 1}, {"beam_size": 4, "length_penalty": 0.0}):
            [wanted], [found], [freely] = (
                translator.translate([text], **options, max_length=12) for translator in (ours, theirs, free)
            )
            if options["beam_size"] == 1 or wanted.stopped == "eos":  # of a beam that is cut, see above
                assert found.text == wanted.text
                listed += found.text != freely.text
    assert listed
    for text, prefix in ("the cat", "a dog"), ("x", "the mat"), ("mat", "on the cat"), ("a", "ran"):
        [found] = theirs.translate([text], prefix=prefix, beam_size=1, max_length=12)
        [wanted] = free.translate([text], prefix=prefix, beam_size=1, max_length=12)
        assert found.text == wanted.text


@pytest.mark.parametrize("shortlist", [False, True])
def test_no_translation_is_empty_unless_a_prefix_is_all_of_it(cache, shortlist):
    """Of a model that would always rather end at once."""
    one = stored(output_bias=True)
    with torch.no_grad():
        one.model.output.bias[one.model.config.eos_id] = 20.0
    one = with_shortlist(one) if shortlist else one
    ours, theirs = (Translator(one, engine=engine) for engine in ENGINES)
    texts, prefixes = ["the cat sat", "mat", "a dog ran"], ["a dog", "", "the"]
    for options in ({"beam_size": 1}, {"beam_size": 4, "n_best": 4, "length_penalty": 0.0}, {"max_length": 1}):
        for found, wanted in zip(*(each.translate(texts, **options) for each in (theirs, ours)), strict=True):
            every, others = ([each, *each.alternatives] for each in (found, wanted))
            assert [len(other.tokens) for other in every] == [len(other.tokens) for other in others] == [1] * len(every)
            assert shortlist or [other.tokens for other in every] == [other.tokens for other in others]
    for options in ({"beam_size": 1}, {"beam_size": 4}):
        found = theirs.translate(texts, prefix=prefixes, **options)
        assert [bool(translation.tokens) for translation in found] == [True] * 3
        assert [translation.text for translation in found][::2] == ["a dog", "the"]


@pytest.mark.parametrize("model", ["random, pre-norm", "random, gelu", "trained"])
@pytest.mark.parametrize("beam_size", [2, 5])
def test_a_beam_ends_right_after_a_prefix_where_torch_does(cache, model, beam_size):
    """If <eos> is among the likeliest tokens there, though not the likeliest."""
    one = MODELS[model]()
    ours, theirs = (Translator(one, device="cpu", engine=name) for name in ENGINES)
    found = ours.translate(SENTENCES, beam_size=5, n_best=5, max_length=12)
    texts = [text for text in SENTENCES for _ in range(5)]
    whole = [other.text for each in found for other in (each, *each.alternatives)]
    ended = []
    for prefixes in (whole, [text[: len(text) // 2] or text for text in whole]):
        options = {"prefix": prefixes, "beam_size": beam_size, "length_penalty": 0.0}
        bests = ([each.text for each in translator.translate(texts, **options)] for translator in (ours, theirs))
        for prefix, wanted, other in zip(prefixes, *bests, strict=True):
            assert (other == prefix) == (wanted == prefix)
            ended.append(wanted == prefix)
    assert {*ended} == {True, False}


def test_who_is_stopped_neither_searches_nor_scores(cache):
    searcher = ctranslate2_searcher.CTranslate2Searcher(stored(), "cpu", "fp32", 1)
    assert searcher.score([[5]], [[6]])
    searcher.stop()
    with pytest.raises(KeyboardInterrupt):
        searcher.search([[5]], SearchOptions(), [3], [[]])
    with pytest.raises(KeyboardInterrupt):
        searcher.score([[5]], [[6]])


def test_int8_translates(cache):
    translator = Translator(stored(), engine="ctranslate2", precision="int8")
    assert translator.translate(["the cat sat"], beam_size=2)[0].text


def test_what_it_can_not_honour_is_refused_by_name(both, cache):
    with pytest.raises(UserError, match="sampling needs engine torch"):
        both[1].translate(["the cat"], sample=Sampling())
    with pytest.raises(UserError, match="ensemble"):
        Translator(stored(), engine="ctranslate2", ensemble=[stored()])
    with pytest.raises(UserError, match="int8 needs engine ctranslate2"):
        Translator(stored(), precision="int8")
    with pytest.raises(UserError, match="engine 'marian' is unknown"):
        Translator(stored(), engine="marian")


def test_each_takes_all_threads_and_torch_keeps_them(cache):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        for engine in (Translator(stored(), engine="ctranslate2").engines.own for _ in range(2)):  # exported, then kept
            assert engine._engine.num_translators == torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_another_device_is_refused_with_the_remedy():
    with pytest.raises(UserError, match=r"^engine ctranslate2 doesn't run on mps; use --device cpu$"):
        ctranslate2_searcher.CTranslate2Searcher(stored(), "mps", "fp32", threads=1)


def test_missing_libraries_of_cuda_are_one_line(cache, monkeypatch):
    class Engine:
        def translate_batch(self, *_, **__):
            raise RuntimeError("Library libcublas.so.12 is not found or cannot be loaded")

    monkeypatch.setattr(ctranslate2_searcher, "load_ctranslate2", lambda *_, **__: Engine())
    monkeypatch.setattr(ctranslate2_searcher, "can_compute", lambda *_: True)
    with pytest.raises(UserError, match=r"^engine ctranslate2 on cuda: Library libcublas.so.12 is not found .*torch$"):
        ctranslate2_searcher.CTranslate2Searcher(stored(), "cuda", "bf16", threads=1)


@pytest.mark.parametrize("cores", [1, 2])
def test_a_thread_with_one_core_leaves_the_other_workers_to_others(cache, monkeypatch, cores):
    """It waits for each batch; one that may use all cores gives all batches to the workers at once."""
    searcher = ctranslate2_searcher.CTranslate2Searcher(stored(), "cpu", "fp32", threads=2)
    real, running, were_done = searcher._engine, [], []

    def translate_batch(*arguments, **options):
        were_done.append(all(one.done() for one in running))
        running.extend(real.translate_batch(*arguments, **options))
        return running[-len(arguments[0]) :]

    searcher._engine = SimpleNamespace(translate_batch=translate_batch)
    monkeypatch.setattr(ctranslate2_searcher, "current_threads", lambda: cores)
    options = SearchOptions(beam_size=5, max_length=30)
    assert len(searcher._found([[5, 6, 7] * 20] * 128, [[]] * 128, [31] * 128, options)) == 128
    assert len(were_done) == 4
    assert all(were_done) == (cores == 1)
