"""Search among few tokens: the same as with all the others forbidden, for each sentence by itself."""

import numpy as np
import pytest
import torch

from headway.decoding import Phrase, RequiredPhrases, SearchOptions, TorchEngine, TorchSearcher
from headway.decoding.shortlist import ShortlistEngine
from headway.model import ModelConfig, Transformer

VOCABULARY = 400
SOURCES = [[7, 9, 30], [50, 8], [7, 9, 30, 11, 12, 300], [5]]


@pytest.fixture(scope="module")
def engine():
    return random_engine()


def random_engine(likely: int | None = None) -> TorchEngine:
    """A token that is given is far likelier than the others."""
    torch.manual_seed(3)
    options = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 2, "output_bias": True}
    model = Transformer(ModelConfig(VOCABULARY, VOCABULARY, **options)).eval()
    with torch.no_grad():
        model.output.bias.normal_()
        model.output.bias[3] = 2.0  # <eos> is likely enough
        if likely is not None:
            model.output.bias[likely] = 30.0
    return TorchEngine(model, never=[1])


def allowed_for(source: np.ndarray) -> np.ndarray:
    """Other tokens for each source, as a function of it alone."""
    allowed = np.zeros((len(source), VOCABULARY), dtype=bool)
    for row, ids in zip(allowed, source, strict=True):
        row[[(7 * id_ + 200 + k) % VOCABULARY for id_ in ids.tolist() if id_ for k in range(9)]] = True
    return allowed


def masked(engine, allowed):
    """The engine, with every other token forbidden; what is left is normalised."""
    forbidden = torch.from_numpy(~allowed)
    forbidden[:, engine.eos_id] = False

    class Masked:
        bos_id, eos_id = engine.bos_id, engine.eos_id

        def start(self, source):
            return {"state": engine.start(source), "forbidden": forbidden}

        def step(self, state, tokens):
            found = engine.step(state["state"], tokens).clone()
            rows = state["forbidden"].repeat_interleave(state["state"].width, dim=0)
            return found.masked_fill(rows, -torch.inf).log_softmax(-1)

        def select(self, state, rows):
            state["forbidden"] = state["forbidden"][rows[:, 0] // state["state"].width]
            engine.select(state["state"], rows)

    return Masked()


def searcher(engine, allowed=None):
    return TorchSearcher(engine, 0, torch.device("cpu"), allowed=allowed)


def found(engine, sources, allowed=None, prefixes=None, **options):
    caps = [14] * len(sources)
    hypotheses = searcher(engine, allowed).search(
        sources, SearchOptions(**options), caps, prefixes or [[] for _ in sources]
    )
    return [[(one.ids, one.score, one.stopped) for one in each] for each in hypotheses]


def same(ours, wanted):
    assert [[one[::2] for one in each] for each in ours] == [[one[::2] for one in each] for each in wanted]
    for each, other in zip(ours, wanted, strict=True):
        assert [one[1] for one in each] == pytest.approx([one[1] for one in other], abs=1e-4)


@pytest.mark.parametrize(
    "options", [{"beam_size": 1}, {"beam_size": 4, "n_best": 3}, {"beam_size": 3, "no_repeat_ngram": 1}]
)
def test_it_is_search_with_the_others_forbidden(engine, options):
    for source in SOURCES:
        rows = np.array([[*source, 3]])
        if rows.shape[1] % 4:  # as the searcher pads
            rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4)))
        ours = found(engine, [source], allowed_for, **options)
        same(ours, found(masked(engine, allowed_for(rows)), [source], **options))
        assert set(ours[0][0][0]) <= set(np.flatnonzero(allowed_for(rows)[0]).tolist())


def test_a_translation_does_not_depend_on_its_neighbours(engine):
    together = found(engine, SOURCES, allowed_for, beam_size=4)
    for source, one in zip(SOURCES, together, strict=True):
        same([one], found(engine, [source], allowed_for, beam_size=4))


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 4}])
def test_with_all_tokens_it_is_the_search_without(engine, options):
    """But for what is never generated, which the engine leaves in the sum."""

    def everything(source):
        return np.ones((len(source), VOCABULARY), dtype=bool)

    ours = found(engine, SOURCES, everything, **options)
    assert [[one[0] for one in each] for each in ours] == [
        [one[0] for one in each] for each in found(engine, SOURCES, **options)
    ]


def test_what_is_never_generated_stays_so_and_the_end_is_always_there(engine):
    short = ShortlistEngine(engine, np.eye(VOCABULARY, dtype=bool)[[1]])  # <unk> alone is listed
    state = short.start(torch.tensor([[5, 3]]))
    [row] = short.step(state, torch.tensor([short.bos_id]))
    assert row[short.eos_id] == 0.0  # probability 1
    assert row.isneginf().sum() == len(row) - 1


def test_prefixes_need_not_be_in_the_list(engine):
    prefix = [399, 398]
    assert not allowed_for(np.array([SOURCES[1]]))[:, prefix].any()
    for width in (1, 4):
        [[(ids, score, _)]] = found(engine, [SOURCES[1]], allowed_for, prefixes=[prefix], beam_size=width)
        assert ids[:2] == prefix
        assert np.isfinite(score)


WANTED = [
    (Phrase((370, 371)),),
    (Phrase((372,), ends_word=True),),
    (Phrase((380,), ends_word=True), Phrase((381, 382), initial=(383,))),
    (Phrase((373,), initial=(374, 375)),),
]
"""Phrases of each source."""


def with_phrases(engine, sources, phrases, allowed=None):
    parts = np.random.default_rng(2).random(VOCABULARY) < 0.5
    options, none = SearchOptions(beam_size=4, n_best=4), [[] for _ in sources]
    hypotheses = searcher(engine, allowed).search_with_phrases(
        sources, options, [14] * len(sources), none, RequiredPhrases(phrases, parts)
    )
    return [[(one.ids, one.score, one.stopped) for one in each] for each in hypotheses]


def test_phrases_need_not_be_in_the_list(engine):
    """Neither do the forms that begin a translation; each sentence may have its own alone."""
    together = with_phrases(engine, SOURCES, WANTED, allowed_for)
    for source, phrases, ours in zip(SOURCES, WANTED, together, strict=True):
        allowed = allowed_for(np.array([[*source, 3]]))
        assert not allowed[:, 370:384].any()
        allowed[:, [id_ for one in phrases for id_ in (*one.ids, *one.initial)]] = True
        same([ours], with_phrases(masked(engine, allowed), [source], [phrases]))


def test_a_translation_may_begin_with_the_other_form_of_a_phrase():
    """With a shortlist as without, where the model would rather have it there."""
    for allowed in (None, allowed_for):
        [found] = with_phrases(random_engine(likely=383), SOURCES[:1], [WANTED[2][1:]], allowed)
        assert found[0][0][0] == 383


def test_random_numbers_stay_what_they_were(engine):
    """A training goes on drawing as if it had not translated anything in between."""
    before = torch.get_rng_state()
    found(engine, SOURCES, allowed_for, beam_size=2)
    assert torch.equal(torch.get_rng_state(), before)


def test_tokens_of_a_batch_are_a_multiple(engine):
    for count in (1, 126, 127, 200):
        allowed = np.zeros((2, VOCABULARY), dtype=bool)
        allowed[0, 4 : 4 + count] = True
        short = ShortlistEngine(engine, allowed)
        assert len(short.tokens) % 128 == 0
        assert len(set(short.tokens.tolist())) == len(short.tokens)
