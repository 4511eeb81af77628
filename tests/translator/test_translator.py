"""The translator: n texts in, n translations out, in order, whatever is among them."""

import io
import math
import re
from dataclasses import replace
from typing import Any

import pytest
import sentencepiece
import torch

from headway.decoding import Sampling
from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel
from headway.text.subwords import SubwordTokenizer
from headway.text.tokenizer import UNK_ID
from headway.text.words import WordTokenizer
from headway.translator import Translator
from headway.translator.lines import LineOptions, LineTranslator


def translator(max_length=1024, **changes) -> Translator:
    tokenizer = SubwordTokenizer.train(["the cat sat on the mat", "a dog ran after"] * 20, "bpe", 290)
    options = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1, **changes}
    size = tokenizer.vocab_size
    model = Transformer(ModelConfig(source_vocab_size=size, target_vocab_size=size, max_length=max_length, **options))
    return Translator(
        StoredModel(
            model=model,
            source_tokenizer=tokenizer,
            target_tokenizer=tokenizer,
            source_language="en",
            target_language="en",
        ),
        device="cpu",
    )


def tagged_translator(**changes) -> Translator:
    """Of a model with the target languages de and ko."""
    tokenizer = SubwordTokenizer.train(["the cat sat on the mat", "a dog ran after"] * 20, "bpe", 292, ["de", "ko"])
    options = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1, **changes}
    model = Transformer(ModelConfig(source_vocab_size=292, target_vocab_size=292, **options))
    return Translator(
        StoredModel(
            model=model,
            source_tokenizer=tokenizer,
            target_tokenizer=tokenizer,
            source_language="en",
            target_language="mul",
        ),
        device="cpu",
    )


TEXTS = ["the cat", "", "a dog ran after the cat", "   ", "the mat", "a" * 60, "the cat"]


def test_order_and_blanks():
    results = translator().translate(TEXTS)
    assert [result.stopped for result in results if not result.tokens] == ["blank", "blank"]
    assert [result.text for result in results if result.stopped == "blank"] == ["", ""]
    assert results[0].tokens == results[-1].tokens
    assert results[0].score == pytest.approx(results[-1].score, abs=1e-3)


def test_a_translation_does_not_depend_on_its_neighbours():
    door = translator()
    together = door.translate(TEXTS)
    for text, result in zip(TEXTS, together, strict=True):
        [alone] = door.translate([text])
        assert alone.text == result.text
        assert alone.score == pytest.approx(result.score, abs=1e-3)


def test_too_long_a_text_is_told_and_the_others_go_on():
    door = translator(max_length=20)
    assert door.longest_source == 19
    results = door.translate(["the cat", "x " * 300, "the mat"])
    assert [result.stopped == "too_long" for result in results] == [False, True, False]
    assert results[1].text == ""
    assert len(results[1].source_tokens) > 19


@pytest.mark.parametrize("options", [{}, {"beam_size": 1}, {"n_best": 3}])
def test_what_the_model_did_not_write_has_no_score(options):
    door = translator(max_length=20)
    texts = ["the cat", "", " \u3000", "x " * 300, "x" * 2000, "{name} https://example.org"]
    found = door.translate(texts, **options)
    assert [one.score is None for one in found] == [False, True, True, True, True, True]
    assert found[0].score < 0
    for one in found[1:]:
        assert one.alternatives == []
        assert one.to_dict()["score"] is None


def test_a_translation_that_is_made_of_runs_has_the_score_of_its_text():
    door = translator()
    text = f"the cat {'{x} ' * 17} a dog ran"
    [whole] = door.translate([text], n_best=2)
    every = [whole, *whole.alternatives]
    assert [one.score for one in every] == pytest.approx(door.score([text] * 2, [one.text for one in every]), abs=1e-4)


def test_an_unknown_precision_is_refused():
    precision: Any = "fp8"
    with pytest.raises(UserError, match="precision 'fp8' is unknown; there are auto, fp32"):
        Translator(translator().stored, device="cpu", precision=precision)


def test_white_space_of_any_kind_is_blank():
    results = translator().translate(["\u2028", "\x1c", "\x85 ", "\u3000"])
    assert [(result.text, result.stopped, result.source_tokens) for result in results] == [("", "blank", [])] * 4


@pytest.mark.parametrize("text", ["\u200b", "\ufeff", "\xad\t", "\u200e\x00", "\u200d", "\u3164"])
def test_invisible_text_is_blank(text):
    door = translator()
    [result] = door.translate([text])
    assert (result.text, result.stopped, result.source_tokens) == ("", "blank", [])
    assert door.score([text], [""]) == [0.0]
    assert door.align([text], ["the cat"]) == [[]]


@pytest.mark.parametrize("space", ["\n", "\r\n", "\t", "\v", "\f", "\r", "\x85", "\u2028", "\u200b ", " \ufeff"])
def test_white_space_and_invisible_characters_change_no_translation(space):
    door = translator()
    plain, odd = "the cat sat", f"the{space}c\xadat\u200b{space}sat"
    [expected, result] = door.translate([plain, odd], beam_size=2, max_length=9)
    assert (result.text, result.score) == (expected.text, pytest.approx(expected.score, abs=1e-4))
    assert result.alignment == expected.alignment
    assert [odd[one.start : one.end].strip("\u200b\ufeff") for one in result.source_tokens if one.text == "▁the"] == [
        "the"
    ]
    assert result.source_tokens[-1].end == len(odd)
    scores = door.score([plain, odd, plain], ["a dog", "a dog", f"a{space}d\xadog"])
    assert scores == pytest.approx([scores[0]] * 3, abs=1e-4)
    assert door.align([odd], ["a dog"], pieces=True) == door.align([plain], ["a dog"], pieces=True)


def test_a_model_that_reads_nothing_gives_blanks():
    assert [one.stopped for one in translator(max_length=1).translate(["the cat", ""])] == ["too_long", "blank"]


def test_far_too_long_a_text_is_told_without_being_tokenised():
    door, endless = translator(max_length=20), "x" * 2000
    [result, other] = door.translate([endless, "the cat"])
    assert (result.text, result.stopped, result.source_tokens, other.stopped == "too_long") == ("", "too_long", [], 0)
    scores = door.score([endless, "the cat", "the cat", ""], ["the cat", endless, "the cat", endless])
    assert [math.isnan(score) for score in scores] == [True, True, False, False]
    assert scores[3] == -math.inf
    with pytest.raises(UserError, match="2,000 characters leaves no room"):
        door.translate(["the cat"], prefix=endless)
    with pytest.raises(UserError, match="2,000 characters can't be inspected"):
        door.inspect(endless)
    with pytest.raises(UserError, match="more than 19 tokens"):
        door.inspect("the cat", endless)


def test_each_side_is_measured_by_its_own_vocabulary():
    stored = translator(max_length=10).stored
    words = WordTokenizer(["the", "cat", "sat"])  # a piece for each word
    model = Transformer(replace(stored.model.config, target_vocab_size=words.vocab_size, share_embeddings="none"))
    door = Translator(replace(stored, model=model, target_tokenizer=words), device="cpu")
    text = "xyz xyz xyz xyz"
    assert not door.is_readable(text)
    assert door.is_readable(text, side="target")
    assert not door.is_readable(text, 3, side="target")


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_the_longest_text_works(positions):
    door = translator(max_length=20, positions=positions)
    text = next(
        " ".join("the" for _ in range(n))
        for n in range(1, 99)
        if len(door.stored.source_tokenizer.encode(" ".join("the" for _ in range(n)))) == 19
    )
    [result] = door.translate([text])
    assert result.stopped in ("eos", "max_length")


def test_the_n_best_are_ranked_and_distinct():
    [best] = translator().translate(["the cat"], beam_size=4, n_best=3, max_length=6, length_penalty=0.0)
    every = [best, *best.alternatives]
    assert len({tuple(one.tokens) for one in every}) == 3
    scores = [one.score for one in every]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "beam_size=0: must be at least 1"),
        ({"beam_size": 2, "n_best": 3}, "n_best=3 is more than beam_size=2"),
        ({"sample": Sampling(), "beam_size": 2}, "sampling follows no beam"),
        ({"sample": {"seed": 1}}, "sample: must be an instance of Sampling"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram=-1"),
        ({"length_penalty": -1.0}, "length_penalty=-1.0"),
        ({"length_penalty": float("nan")}, "length_penalty=nan"),
    ],
)
def test_impossible_search_options(options, message):
    with pytest.raises(UserError, match=message):
        translator().translate(["the cat"], **options)


def test_options_given_go_before_the_models_own():
    door = translator()
    door.stored.decoding = {"beam_size": 3, "length_penalty": 0.5}
    options = door.search_options(length_penalty=0.2)
    assert (options.beam_size, options.length_penalty, options.max_length) == (3, 0.2, None)


@pytest.mark.parametrize("given", [{"beam_size": 1}, {"sample": Sampling()}])
def test_a_models_own_choice_by_numbers_is_for_beams(given):
    door = translator()
    door.stored.decoding = {"check_numbers": True}
    assert door.search_options().check_numbers
    assert door.search_options(beam_size=2).check_numbers
    assert not door.search_options(**given).check_numbers
    with pytest.raises(UserError, match="check_numbers chooses among"):
        door.search_options(check_numbers=True, **given)


def test_a_narrow_beam_has_fewer_than_the_models_own_n_best():
    door = translator()
    door.stored.decoding = {"beam_size": 4, "n_best": 3}
    found = [door.search_options(**given).n_best for given in ({}, {"beam_size": 5}, {"beam_size": 2})]
    assert found == [3, 3, 2]
    [greedy] = door.translate(["the cat"], beam_size=1)
    assert greedy.alternatives == []
    with pytest.raises(UserError, match="n_best=3 is more than beam_size=2"):
        door.search_options(beam_size=2, n_best=3)


def test_length_is_capped_by_the_source_by_default():
    door = translator()
    with torch.no_grad():
        door.model.output.weight[door.model.config.eos_id].fill_(-100.0)  # never ends by itself
    [result] = door.translate(["the cat"])
    if result.stopped == "max_length":
        assert len(result.tokens) == 2 * len(result.source_tokens) + 50
    [short] = door.translate(["the cat"], max_length=3)
    assert len(short.tokens) <= 3
    with pytest.raises(UserError, match=r"max_length=0"):
        door.translate(["the cat"], max_length=0)


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 3}, {"sample": Sampling(), "n_best": 2}])
def test_a_prefix_counts_in_the_length_of_its_translation(options):
    """Of a model that never ends by itself."""
    door = translator(max_length=200, output_bias=True)
    with torch.no_grad():
        door.model.output.bias[door.model.config.eos_id] = -1000.0
    for prefix in ("", "the cat", "a dog ran after the cat " * 5, "the cat " * 50):
        size = len(door.stored.target_tokenizer.encode(prefix))
        for most in (None, size + 2):
            [best] = door.translate(["the cat"], prefix=prefix, max_length=most, **options)
            wanted = most or min(max(2 * len(best.source_tokens), size) + 50, 199)
            assert [len(one.tokens) for one in (best, *best.alternatives)] == [wanted] * options.get("n_best", 1)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("lengths", [(20, 40, 30), (40, 20, 30), (40, 30, 20)])
def test_an_ensemble_reads_and_writes_as_much_as_the_shortest_of_its_models(lengths, positions):
    first, *others = (translator(length, positions=positions).stored for length in lengths)
    for one in (first, *others):
        with torch.no_grad():
            one.model.output.weight[one.model.config.eos_id].zero_()  # ends late
    door = Translator(first, device="cpu", ensemble=others)
    assert door.longest_source == 19
    texts = [" ".join(["the"] * count) for count in (18, 19, 20)]
    assert [len(door.stored.source_tokenizer.encode(text)) for text in texts] == [18, 19, 20]
    found = door.translate(texts)
    assert [one.stopped == "too_long" for one in found] == [False, False, True]
    assert all(0 < len(one.tokens) <= 19 for one in found[:2])
    assert [math.isnan(score) for score in door.score(texts, texts)] == [False, False, True]
    with pytest.raises(UserError, match="a translation has at most 19 tokens"):
        door.translate(["the cat"], prefix=texts[1])


def test_a_line_break_in_a_translation_becomes_a_space():
    words = WordTokenizer(["a\nb\rc"])
    config = ModelConfig(5, 5, d_model=8, num_heads=2, d_ff=8, encoder_layers=1, decoder_layers=1, output_bias=True)
    model = Transformer(config)
    with torch.no_grad():
        model.output.bias.copy_(torch.tensor([0.0, 0, 0, 0, 99]))
    [result] = Translator(
        StoredModel(
            model=model, source_tokenizer=words, target_tokenizer=words, source_language="x", target_language="y"
        ),
        device="cpu",
    ).translate(["hm"], max_length=1, beam_size=1)
    assert result.text == "a b c"


@pytest.mark.parametrize("decoding", [{"max_length": "5"}, {"beam_size": None}, {"colour": 1}, {"length_penalty": []}])
def test_search_options_of_a_stranger_are_checked(decoding):
    door = translator()
    door.stored.decoding = decoding
    with pytest.raises(UserError):
        door.translate(["the cat"])


def test_a_device_that_is_not_there():
    if not torch.cuda.is_available():
        with pytest.raises(UserError, match="'cuda' is not available"):
            Translator(translator().stored, device="cuda")


def test_score_is_that_of_translate_where_the_pieces_are_the_same():
    door = translator()
    texts = ["the cat", "a dog ran after the cat", "the mat", "sat"]
    found = door.translate(texts, beam_size=2, max_length=30)
    comparable = 0
    for result, score in zip(found, door.score(texts, [result.text for result in found]), strict=True):
        own = [piece.text for piece in door.stored.target_tokenizer.encoded_pieces(result.text)]
        if own == [piece.text for piece in result.tokens]:
            comparable += 1
            assert score == pytest.approx(result.score, abs=1e-3)
    targets = ["the mat", "a cat", "", "dog ran"]
    together = door.score(texts, targets)
    for text, target, score in zip(texts, targets, together, strict=True):
        assert door.score([text], [target]) == pytest.approx([score], abs=1e-3)


def test_score_of_a_forced_translation_is_translates_own():
    door = translator()
    with torch.no_grad():
        door.model.output.weight[door.model.config.eos_id].zero_()
    [forced] = door.translate(["the cat"], prefix="a dog ran", beam_size=1, max_length=40)
    whole = door.stored.target_tokenizer
    given = [whole.encode("a dog ran"), [piece.text for piece in forced.tokens]]
    assert [piece.text for piece in whole.decoded_pieces(given[0])] == given[1][: len(given[0])]
    assert forced.text.startswith("a dog ran")


def test_scores_of_what_can_not_be_translated():
    door = translator(max_length=20)
    scores = door.score(["", "", "the cat", "x " * 300], ["", "the", "", "the"])
    assert scores[:2] == [0.0, -math.inf]
    assert scores[2] < 0.0
    assert math.isnan(scores[3])


def test_pieces_have_their_places_on_both_sides():
    [result] = translator().translate(["a dog  ran"], max_length=10)
    assert [("a dog  ran")[piece.start : piece.end] for piece in result.source_tokens if piece.end > piece.start]
    for pieces, text in ((result.source_tokens, "a dog  ran"), (result.tokens, result.text)):
        letters = {place for place, char in enumerate(text) if not char.isspace()}
        assert letters <= {place for piece in pieces for place in range(piece.start, piece.end)}


def test_samples_are_the_same_for_a_seed_wherever_the_text_stands():
    door = translator()
    sampling = Sampling(temperature=2.0, seed=5)
    texts = ["the cat", "a dog ran after the cat", "", "the cat"]
    found = door.translate(texts, sample=sampling, n_best=2, max_length=8)
    assert found[0] == found[3]
    assert found[2].stopped == "blank"
    [alone] = door.translate(["a dog ran after the cat"], sample=sampling, n_best=2, max_length=8)
    assert alone.text == found[1].text
    [other] = door.translate(["the cat"], sample=Sampling(temperature=2.0, seed=6), max_length=8)
    assert other.tokens != found[0].tokens


def test_a_prefix_for_each_text():
    door = translator()
    found = door.translate(["the cat", "the mat"], prefix=["the dog", ""], beam_size=3, max_length=9)
    assert found[0].text.startswith("the dog")
    assert found[1].tokens == door.translate(["the mat"], beam_size=3, max_length=9)[0].tokens
    with pytest.raises(UserError, match="1 prefixes for 2 texts"):
        door.translate(["the cat", "the mat"], prefix=["the"])
    with pytest.raises(UserError, match="leaves no room: a translation has at most 3"):
        door.translate(["the cat"], prefix="the cat sat on the mat", max_length=3)


def without_bytes() -> SubwordTokenizer:
    """As models from elsewhere have: it knows only the characters that it was trained on."""
    model = io.BytesIO()
    lines = iter(["the cat sat on the mat", "a dog ran after"] * 20)
    options = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "bos_piece": "<sos>", "eos_piece": "<eos>"}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=model, vocab_size=40, hard_vocab_limit=False, minloglevel=2, **options
    )
    return SubwordTokenizer(model.getvalue())


@pytest.mark.parametrize(
    ("tokenizer", "prefix", "lacking"),
    [
        (without_bytes(), "the 漢字 cat, 漢字 zea!", "'漢字', ',', 'z', '!'"),
        (without_bytes(), "de\u0301a", "'e\u0301'"),
        (WordTokenizer(["the", "cat", "sat"]), "the dog sat dog mat", "'dog', 'mat'"),
    ],
    ids=["characters", "marks", "words"],
)
def test_a_prefix_that_the_vocabulary_can_not_write_is_an_error_that_names_what_it_lacks(tokenizer, prefix, lacking):
    """A given target with the same stays possible: it has <unk>."""
    config = ModelConfig(tokenizer.vocab_size, tokenizer.vocab_size, d_model=8, num_heads=2, d_ff=8)
    door = Translator(
        StoredModel(
            model=Transformer(config),
            source_tokenizer=tokenizer,
            target_tokenizer=tokenizer,
            source_language="en",
            target_language="en",
        ),
        device="cpu",
    )
    for options in ({"beam_size": 1}, {"beam_size": 3}, {"sample": Sampling()}):
        with pytest.raises(UserError) as raised:
            door.translate(["the cat", "sat"], prefix=["the cat", prefix], **options)
        assert str(raised.value) == (
            f"a prefix has {lacking}, which the model's vocabulary can't write; choose another prefix"
        )
        assert door.translate(["the cat"], prefix="the sat", max_length=40, **options)[0].text.startswith("the sat")
    with pytest.raises(UserError, match="which the model's vocabulary can't write"):
        LineTranslator(door, LineOptions(prefix=prefix))  # before a line is read
    assert math.isfinite(door.score(["the cat"], [prefix])[0])
    assert door.align(["the cat"], [prefix])[0]
    assert UNK_ID in door.inspect("the cat", prefix, analyses=["contributions", "erasure"]).target.ids


def test_an_ensemble_needs_equal_vocabularies():
    door = translator()
    twice = Translator(door.stored, device="cpu", ensemble=[door.stored])
    assert [one.text for one in twice.translate(TEXTS)] == [one.text for one in door.translate(TEXTS)]
    with pytest.raises(UserError, match="not into an ensemble"):
        twice.inspect("the cat")
    words = WordTokenizer([f"w{i}" for i in range(286)])
    other = StoredModel(
        model=door.model, source_tokenizer=words, target_tokenizer=words, source_language="en", target_language="en"
    )
    with pytest.raises(UserError, match="their source tokenizers differ"):
        Translator(door.stored, device="cpu", ensemble=[other])


def test_a_model_of_several_languages_wants_a_tag():
    door = tagged_translator()
    assert door.target_languages == ["de", "ko"]
    results = door.translate([">>de<< the cat", "", ">>ko<< the cat", ">>ko<<"])
    assert [result.stopped == "blank" for result in results] == [False, True, False, True]
    assert results[0].source_tokens[0].text == ">>de<<"
    with pytest.raises(UserError, match="begin each text with one of >>de<< >>ko<<"):
        door.translate(["the cat"])


def test_text_that_no_file_could_hold_is_refused():
    door = translator()
    for call in (
        lambda: door.translate(["\ud800"]),
        lambda: door.translate(["the"], prefix="\udcff"),
        lambda: door.score(["the"], ["\ud800"]),
        lambda: door.inspect("the", target="\udcff"),
    ):
        with pytest.raises(UserError, match="surrogate"):
            call()


def test_a_target_that_begins_with_a_tag_is_text():
    door = tagged_translator()
    record = door.inspect(">>ko<< the cat", target=">>de<< the")
    assert record.attention["cross"].shape[-2:] == (len(record.target.tokens), len(record.source.tokens))
    assert "".join(record.target.pieces).startswith("▁<0x3E>")


def test_tags_and_unknown_words_are_never_generated():
    tokenizer = SubwordTokenizer.train(["the cat sat on the mat", "a dog ran after"] * 20, "bpe", 292, ["de", "ko"])
    config = ModelConfig(292, 292, d_model=8, num_heads=2, d_ff=8, encoder_layers=1, decoder_layers=1, output_bias=True)
    model = Transformer(config)
    with torch.no_grad():
        model.output.bias[[0, 1, 2, 4, 5]] = 99.0  # all that no text has
    door = Translator(
        StoredModel(
            model=model,
            source_tokenizer=tokenizer,
            target_tokenizer=tokenizer,
            source_language="en",
            target_language="mul",
        ),
        device="cpu",
    )
    for options in ({"beam_size": 1}, {"beam_size": 3}, {"sample": Sampling()}):
        [found] = door.translate([">>de<< the cat"], max_length=9, **options)
        assert len(found.tokens) == 9 or found.stopped == "eos"
        assert not {"<unk>", ">>de<<", ">>ko<<"} & {piece.text for piece in found.tokens}


@pytest.mark.parametrize("threads", [1, 2])
def test_batches_on_several_cores_give_the_same(threads):
    door = translator()
    texts = [f"the {word} " * (number % 9 + 1) for number, word in enumerate(["cat", "dog", "mat"] * 80)]
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        found = door.translate(texts, beam_size=2, max_length=5)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    for number in (0, 100, 239):
        [alone] = door.translate([texts[number]], beam_size=2, max_length=5)
        assert alone.text == found[number].text
        assert alone.score == pytest.approx(found[number].score, abs=1e-3)


def test_hypotheses_with_the_numbers_of_the_source_come_first():
    tokenizer = WordTokenizer(["13", "20", "cats"])
    config = ModelConfig(
        *(tokenizer.vocab_size,) * 2, d_model=16, num_heads=2, d_ff=16, encoder_layers=1, decoder_layers=1
    )
    torch.manual_seed(1)
    stored = StoredModel(
        model=Transformer(config),
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        source_language="en",
        target_language="de",
    )
    door, texts = Translator(stored, device="cpu"), ["13 cats", "20 13", "cats"]
    search = {"beam_size": 12, "max_length": 2}
    every = [[first, *first.alternatives] for first in door.translate(texts, n_best=12, **search)]
    checked = door.translate(texts, check_numbers=True, n_best=3, **search)
    changed = 0
    for text, before, after in zip(texts, every, checked, strict=True):
        wanted = sorted(re.findall(r"\d+", text))
        right = [sorted(re.findall(r"\d+", one.text)) == wanted for one in before]
        expected = [one for one, is_right in zip(before, right, strict=True) if is_right]
        expected += [one for one, is_right in zip(before, right, strict=True) if not is_right]
        assert [one.text for one in (after, *after.alternatives)] == [one.text for one in expected[:3]]
        changed += after.text != before[0].text
    assert changed
    [alone] = door.translate(["13 cats"], check_numbers=True, **search)
    assert (alone.text, alone.alternatives) == (checked[0].text, [])
    own = Translator(replace(stored, decoding={"check_numbers": True, **search}), device="cpu")
    assert [own.inspect(text).target.text for text in texts] == [one.text for one in own.translate(texts)]
