"""A larger vocabulary: old logits and translations stay, a new token is the mean of its parts; and a smaller one."""

import functools
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from tests.storage.test_int8_check import CHECK

from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.model.config import IMPOSSIBLE
from headway.recipe.reading import make_recipe
from headway.storage import Calibration, StoredModel, load_model, save_model, with_int8
from headway.text.domain import Domain
from headway.text.shortlist import learn_shortlist
from headway.text.subwords import SubwordTokenizer
from headway.text.tokenizer import UNK_ID
from headway.text.words import WordTokenizer
from headway.training.extending import cut_model, extend_model
from headway.training.start import load_initial_model
from headway.translator import Translator

OLD = ["the cat sat on the mat", "a dog ran after the cat", "we went home, slowly"] * 20
TRANSLATED = ["die Katze saß auf der Matte", "ein Hund lief der Katze nach", "wir gingen langsam heim"] * 20
NEW, NEW_TRANSLATED = ["antennas of the network"] * 9, ["네트워크의 안테나"] * 9


@functools.cache
def subwords(kind: str, tags: tuple[str, ...] = ()) -> SubwordTokenizer:
    return SubwordTokenizer.train(OLD if kind == "bpe" else TRANSLATED, kind, 320, tags)


def stored(separate=False, tags=(), words=False, **changes) -> StoredModel:
    if words:
        source = target = WordTokenizer.train(OLD, 100, 1, False)
    else:
        source = subwords("bpe", tags)
        target = subwords("unigram") if separate else source
    options = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2, "max_length": 60}
    torch.manual_seed(1)
    model = Transformer(ModelConfig(source.vocab_size, target.vocab_size, **{**options, **changes})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return StoredModel(
        model=model,
        source_tokenizer=source,
        target_tokenizer=target,
        source_language="en",
        target_language="mul" if tags else "de",
        decoding={"beam_size": 3},
        card="A card.\n",
    )


VARIANTS = [
    {},
    {"output_bias": True},
    {"tags": ("de", "nl")},
    {"share_embeddings": "none", "output_bias": True},
    {"share_embeddings": "decoder", "separate": True},
    {"words": True},
]


@pytest.fixture(params=VARIANTS, ids=str)
def both(request) -> tuple[StoredModel, StoredModel]:
    """A model, and what it is extended to."""
    before = stored(**request.param)
    return before, extend_model(before, 20, NEW, NEW_TRANSLATED, [] if "words" in request.param else ["ko"])


def places(old, new) -> list[int]:
    """Of each old id the new one, by the pieces' names."""
    ids = {piece: id_ for id_, piece in enumerate(new.vocabulary)}
    assert len(ids) == new.vocab_size
    return [ids[piece] for piece in old.vocabulary]


def test_logits_of_old_tokens_are_the_same(both):
    before, after = both
    moved_source = torch.tensor(places(before.source_tokenizer, after.source_tokenizer))
    moved_target = torch.tensor(places(before.target_tokenizer, after.target_tokenizer))
    assert len(moved_target) < after.target_tokenizer.vocab_size
    source = torch.randint(4, len(moved_source), (3, 9))
    target = torch.randint(4, len(moved_target), (3, 7))
    with torch.no_grad():
        wanted = before.model(source, target)
        found = after.model(moved_source[source], moved_target[target])
    torch.testing.assert_close(found[..., moved_target], wanted, atol=1e-5, rtol=1e-6)


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_greedy_search_goes_on_as_before(changes):
    before = stored(**changes)
    after = extend_model(before, 20, NEW, NEW_TRANSLATED, ["ko"] if "tags" in changes else [])
    tag = ">>de<< " if "tags" in changes else ""
    texts = [tag + text for text in (*OLD[:3], "slowly, the dog", "cat")]
    wanted, found = (
        Translator(one, device="cpu").translate(texts, beam_size=1, max_length=12) for one in (before, after)
    )
    assert [one.tokens for one in found] == [one.tokens for one in wanted]


def test_the_logit_of_a_new_token_is_the_mean_of_its_parts():
    before = stored(output_bias=True)
    after = extend_model(before, 20, NEW)
    new = after.target_tokenizer.vocabulary[before.target_tokenizer.vocab_size :]
    assert "▁antennas" in new
    source, target = torch.randint(4, 300, (1, 9)), torch.randint(4, 300, (1, 7))
    with torch.no_grad():
        logits = after.model(source, target)
    for id_, piece in enumerate(new, start=before.target_tokenizer.vocab_size):
        if piece.startswith("▁"):
            parts = before.target_tokenizer.encode(piece.removeprefix("▁"))
            torch.testing.assert_close(logits[..., id_], logits[..., parts].mean(-1))
            mean = after.model.source_embedding.weight[parts].mean(0)
            torch.testing.assert_close(after.model.source_embedding.weight[id_], mean)


def test_a_part_that_no_translation_may_have_does_not_rule_out_the_new_token():
    before, texts = stored(output_bias=True), ["a sly dog"] * 20
    impossible, possible = before.target_tokenizer.encode("sly")
    with torch.no_grad():
        before.model.output.bias[:] = torch.arange(float(before.target_tokenizer.vocab_size))
        before.model.output.bias[impossible] = IMPOSSIBLE
    after = extend_model(before, 20, texts)
    id_ = after.target_tokenizer.vocabulary.index("▁sly")
    assert after.model.output.bias[id_] == (UNK_ID + possible) / 2


def test_an_extended_model_is_stored_and_read(both, tmp_path):
    _, after = both
    save_model(tmp_path / "model", after)
    found = load_model(tmp_path / "model")
    assert found.decoding == {"beam_size": 3}
    assert found.model.config == after.model.config
    assert found.card.startswith("A card.\n\nIts vocabulary was extended")
    assert found.source_tokenizer.to_bytes() == after.source_tokenizer.to_bytes()


def test_the_first_tags_name_the_models_own_language_too():
    after = extend_model(stored(), languages=["fr", "ko"])
    assert (after.source_tokenizer.target_tags, after.target_language) == (["de", "fr", "ko"], "mul")
    again = extend_model(after, languages=["nl"])
    assert again.source_tokenizer.target_tags == ["de", "fr", "ko", "nl"]
    unknown = extend_model(replace(stored(), target_language="und"), languages=["fr"])
    assert unknown.source_tokenizer.target_tags == ["fr"]


def test_a_run_may_be_measured_on_any_language_of_the_model_that_it_starts_from(tmp_path):
    save_model(tmp_path / "model", stored(tags=("de", "nl")))
    one = {"source": "a.en", "target": "a.de", "tag": "de"}
    training = {"max_steps": 1, "finish": True, "init_from": str(tmp_path / "model")}
    for tag in ("nl", "ko"):
        data = {"train": one, "valid": one, "held_out": {**one, "tag": tag}}
        wanted = make_recipe({"data": data, "training": training})
        with nullcontext() if tag == "nl" else pytest.raises(UserError, match="no tag for the target language ko"):
            load_initial_model(wanted)


def test_a_new_tag_is_the_mean_of_the_others():
    before = stored(tags=("de", "nl"))
    after = extend_model(before, languages=["ko"])
    weights = before.model.source_embedding.weight
    torch.testing.assert_close(after.model.source_embedding.weight[6], weights[4:6].mean(0))
    found = Translator(after, device="cpu").translate([">>ko<< the cat"], max_length=5)
    assert found[0].source_tokens[0].text == ">>ko<<"


def test_a_shortlist_a_calibration_and_what_int8_costs_are_left_out():
    """The first lacks the new tokens; the second knows how often the old ones occur; the last is of other weights."""
    before = stored()
    ids = before.source_tokenizer.encode(OLD[0])
    listed = learn_shortlist([(ids, ids)], before.source_tokenizer, before.target_tokenizer)
    domain = Domain({}, 30, (0.0, 0.0), (1.0, 0.0, 1.0), 1.0)
    calibration = Calibration((0.5, 0.1, -0.2, 1.0, 0.3), 1.0, domain)
    before = with_int8(replace(before, shortlist=listed, calibration=calibration), CHECK)
    after = extend_model(before, 5, NEW)
    assert after.shortlist is None
    assert after.calibration is None
    assert after.int8 is None
    assert str(CHECK) not in after.card


@pytest.mark.parametrize(
    ("one", "language", "message"),
    [
        ({"words": True}, "fr", "whole words have no tags"),
        ({"tags": ("fr",)}, "fr", "has the tag >>fr<< already"),
        ({}, "de", "own language"),
        ({}, "f r", "is not the code of a language"),
        ({}, "", "is not the code of a language"),
    ],
)
def test_languages_that_can_not_be_added(one, language, message):
    with pytest.raises(UserError, match=message):
        extend_model(stored(**one), languages=[language])


KEPT = ["the cat ran", "ein Hund lief", ""]


def places_in_cut(old, new) -> torch.Tensor:
    ids = {piece: id_ for id_, piece in enumerate(old.vocabulary)}
    return torch.tensor([ids[piece] for piece in new.vocabulary])


@pytest.mark.parametrize("changes", [one for one in VARIANTS if "words" not in one], ids=str)
def test_a_cut_model_has_the_same_logits_and_translations(changes, tmp_path):
    before = stored(**{"output_bias": True, **changes})
    targets = places_in_cut(before.target_tokenizer, cut_model(before, KEPT).target_tokenizer)
    lost = sorted({*range(before.target_tokenizer.vocab_size)} - {*targets.tolist()})
    with torch.no_grad():
        before.model.output.bias[lost] = -20.0  # so that no translation has them
    save_model(tmp_path / "cut", cut_model(before, KEPT))
    after = load_model(tmp_path / "cut")
    sources = places_in_cut(before.source_tokenizer, after.source_tokenizer)
    sizes = after.config.source_vocab_size, after.config.target_vocab_size
    assert sizes == (len(sources), len(targets))
    assert sizes < (before.config.source_vocab_size, before.config.target_vocab_size)
    source, target = torch.randint(4, len(sources), (3, 9)), torch.randint(4, len(targets), (3, 7))
    with torch.no_grad():
        wanted = before.model(sources[source], targets[target])[..., targets]
        torch.testing.assert_close(after.model(source, target), wanted, atol=1e-5, rtol=1e-6)
    texts = [(">>de<< " if "tags" in changes else "") + text for text in KEPT]
    wanted, found = (
        Translator(one, device="cpu").translate(texts, beam_size=1, max_length=12) for one in (before, after)
    )
    assert [one.tokens for one in found] == [one.tokens for one in wanted]
    assert wanted[0].tokens
    assert after.card.startswith("A card.\n\nIts vocabulary was cut to what some languages need, from 320 source")


def test_a_vocabulary_of_words_is_not_cut():
    with pytest.raises(UserError, match="whole words can't be cut"):
        cut_model(stored(words=True), KEPT)
