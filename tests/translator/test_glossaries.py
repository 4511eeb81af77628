"""Glossaries and protected text through the front door: a random model, which would never say them by itself."""

import re
from dataclasses import replace

import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from headway.data.lines import Line
from headway.decoding import Sampling
from headway.decoding.beam import beam_search
from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel
from headway.text.protected import Atom, split_protected
from headway.text.subwords import SubwordTokenizer
from headway.text.words import WordTokenizer
from headway.translator import Translator
from headway.translator.glossary import Glossary
from headway.translator.lines import LineOptions, LineTranslator
from headway.translator.required_phrases import MOST_PHRASES_IN_BEAM, ProtectedText
from headway.translator.translation import Translation
from tests.translator.test_translator import translator

GLOSSARY = Glossary.of([("cat", "Gatto Nero"), ("dog", "mat")])
SPANS = ["{name}", "%s", "%(x)d", "$1", "https://a.de/b?c=d", "a.b@c.de", "`x = 1`", "{½}"]
"""The model's normal form of the last one is another text."""
SPANS += ["%{x}", "%%", "%zu", "%name%", "<1/>", "\\n", ":name", "__name__", "[[name]]", "@:key", "{n, number}"]


@pytest.fixture(scope="module")
def door() -> Translator:
    torch.manual_seed(1)
    return translator()


def in_words(span: str, text: str) -> int:
    """How often a letter or a digit stands just beside the span."""
    around = re.finditer(rf"(?=(.?){re.escape(span)}(.?))", f" {text}")
    return sum(match[1].isalnum() or match[2].isalnum() for match in around)


def count(word: str, text: str) -> int:
    return len(re.findall(rf"(?<!\w){re.escape(word)}(?!\w)", text))


@pytest.mark.parametrize("beam_size", [1, 3, 5])
def test_terms_stand_in_the_translation_as_often_as_in_the_text(door, beam_size):
    texts = ["the cat", "a dog ran after the cat", "cat dog cat dog cat", "the mat sat", ""]
    found = [one.text for one in door.translate(texts, glossary=GLOSSARY, beam_size=beam_size)]
    for text, translation in zip(texts, found, strict=True):
        for term in GLOSSARY.terms:
            assert count(term.target, translation) >= count(term.source, text)
    assert found[3:] == [one.text for one in door.translate(texts[3:], beam_size=beam_size)]


def test_a_translation_that_has_the_terms_by_itself_stays(door, monkeypatch):
    glossaries, texts = [Glossary.of([("cat", "mat")]), Glossary.of([("cat", "hat")])], ["the cat", "a cat"]
    free = door.translate(texts, prefix="the mat sat")
    searched = []
    search = door.engines.own.search

    def spied(sources, options, caps, prefixes, required=None):
        searched.extend([] if required is None else [sources])
        return search(sources, options, caps, prefixes, required)

    monkeypatch.setattr(door.engines.own, "search", spied)
    found = door.translate(texts, prefix="the mat sat", glossary=glossaries)
    assert (found[0].text, found[0].score) == (free[0].text, free[0].score)
    assert searched == [[found[1]._pieces.ids[0]]]


@pytest.mark.parametrize(("term", "begins"), [("mat", "Mat"), ("Mat", "Mat"), ("Hat", "Hat"), ("hat", "Hat")])
def test_a_term_may_begin_a_translation_with_a_capital(term, begins):
    """Where the model would rather write it so."""
    words = WordTokenizer(["the", "sat", "mat", "Mat", "hat", "Hat"])
    shape = {"d_model": 8, "num_heads": 2, "d_ff": 8, "encoder_layers": 1, "decoder_layers": 1, "output_bias": True}
    model = Transformer(ModelConfig(words.vocab_size, words.vocab_size, **shape))
    with torch.no_grad():
        model.output.bias[words.encode("Mat Hat")] = 30.0
    door = Translator(
        StoredModel(
            model=model,
            source_tokenizer=words,
            target_tokenizer=words,
            source_language="en",
            target_language="en",
        ),
        device="cpu",
    )
    [found] = door.translate(["the"], glossary=Glossary.of([("the", term)]), max_length=4)
    assert found.text.split()[0] == begins


def test_what_is_alone_is_the_same_among_others_with_other_terms(door):
    texts = ["the cat", "a dog ran after the cat", "cat dog cat dog cat cat cat", "the mat"]
    together = door.translate(texts, glossary=GLOSSARY)
    alone = [door.translate([text], glossary=GLOSSARY)[0] for text in texts]
    assert [one.text for one in together] == [one.text for one in alone]
    each = door.translate(texts, glossary=[GLOSSARY, Glossary(()), GLOSSARY, GLOSSARY])
    assert [each[i].text for i in (0, 2, 3)] == [alone[i].text for i in (0, 2, 3)]
    assert each[1].text == door.translate([texts[1]])[0].text


def test_the_score_is_that_of_the_translation(door):
    [found] = door.translate(["the cat"], glossary=GLOSSARY)
    ids = found._pieces.ids
    [score] = door.engines.own.score([ids[0]], [ids[1]])
    assert found.score == pytest.approx(score, abs=1e-3)


SPACED = st.lists(st.sampled_from([*SPANS, "the", "cat", "(", ",", "sat"]), max_size=8).map(" ".join)
GLUED = st.lists(st.sampled_from([*SPANS, " the ", " cat ", " (", "), "]), max_size=6).map("".join)


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(SPACED | GLUED, min_size=1, max_size=3), how=st.sampled_from(["beam", "greedy", "sample", "cut"]))
def test_every_protected_text_is_there_as_often_as_in_the_source(door, texts, how):
    options = {
        "beam": {"n_best": 2},
        "greedy": {"beam_size": 1},
        "sample": {"sample": Sampling()},
        "cut": {"max_length": 3, "no_repeat_ngram": 1},
    }[how]
    for text, one in zip(texts, door.translate(texts, **options), strict=True):
        spans = {element.raw for element in split_protected(text) if isinstance(element, Atom)}
        for translation in (one, *one.alternatives):
            for span in spans:
                assert translation.text.count(span) == text.count(span)
                assert in_words(span, translation.text) <= in_words(span, text)


def test_protected_text_is_no_part_of_a_word(door):
    """The search lets no letter follow it, and none of its translations is kept where one stands beside it. Where the
    source has one there, so may the translation; a Korean particle may always follow."""
    for text, closed in [("the {name} cat", True), ("({name}), sat", True), ("{name}s sat", False)]:
        given = ProtectedText.of(text, door.stored.source_tokenizer)
        [phrase] = door.texts._sought([5], [], given, Glossary(())).phrases
        assert phrase.ends_word == closed
    kept = ProtectedText.of("the {name}, a.b@c.de", door.stored.source_tokenizer).is_kept_by
    assert kept("{name}님 a.b@c.de.")
    assert not kept("{name}s a.b@c.de")
    assert not kept("{name} xa.b@c.de")
    assert not kept("{name} a.b@c.de/f a.b@c.de")
    assert not ProtectedText.of("https://a.de", door.stored.source_tokenizer).is_kept_by("https://a.de/b")
    assert ProtectedText.of("{name}s", door.stored.source_tokenizer).is_kept_by("{name}n")


PARTS = st.sampled_from(["를 삭제", "文件", "the", " ", ", ", "s ", "에서 the"])
TOUCHING = st.lists(
    st.tuples(PARTS, st.sampled_from([one for one in SPANS if one != "<1/>"]), PARTS), min_size=1, max_size=4
)


@settings(max_examples=200, deadline=None)
@given(
    text=TOUCHING.map(lambda some: " ".join(map("".join, some))),
    words=st.sampled_from(["delete", "file it", "삭제", "文件", "Über", "(the)"]),
)
@example(text="https://a.org/x에서 내려받기", words="download from")
@example(text="파일%d개, 打开%s文件", words="file")
@example(text="{name}s the %s를", words="dog")
def test_runs_touch_protected_text_with_a_letter_only_where_the_source_does(door, text, words):
    source = ProtectedText.of(text, door.stored.source_tokenizer)
    spans = {one.text for one in source.spans}
    assume(all(text.count(one) == [span.text for span in source.spans].count(one) for one in spans))
    made = source.from_runs("", [Translation(words, 0.0, "eos")] * len(source.runs), Glossary(())).text
    for span in spans:
        latin = rf"(?=([A-Za-zÜ]{re.escape(span)}|{re.escape(span)}[A-Za-zÜ]))"
        assert made.count(span) == text.count(span)
        assert len(re.findall(latin, made)) <= len(re.findall(latin, text))


def test_runs_touch_tags_and_what_they_touch_in_the_source(door):
    for text, wanted in [("{name}s the", "{name}dog"), ("집<1/>을", "dog<1/>dog"), ("%s를 {x}", "%s dog {x}")]:
        source = ProtectedText.of(text, door.stored.source_tokenizer)
        assert source.from_runs("", [Translation("dog", 0.0, "eos")] * len(source.runs), Glossary(())).text == wanted


def test_a_translation_with_protected_text_keeps_its_pieces_and_alignment(door):
    [found] = door.translate(["the cat {name} sat"])
    assert "".join(found.text[one.start : one.end] for one in found.tokens) == found.text.replace(" ", "")
    assert len(found.alignment) == len(found.tokens)


def test_text_that_cannot_be_demanded_stands_beside_text_that_can(door):
    """The model's vocabulary can't write `{½}`."""
    texts = ["the cat {½} sat", "the {name} cat " * 6]
    found = [one.text for one in door.translate(texts, max_length=9)]
    assert [text.count(span) for text, span in zip(found, ("{½}", "{name}"), strict=True)] == [1, 6]


def test_what_cannot_be_demanded_is_refused(door):
    words = WordTokenizer(["the", "cat"])
    stored = StoredModel(
        model=door.stored.model,
        source_tokenizer=words,
        target_tokenizer=words,
        source_language="en",
        target_language="en",
    )
    for other, options, says in [
        (door, {"sample": Sampling()}, "leave sample out"),
        (door, {"no_repeat_ngram": 2}, "no_repeat_ngram"),
        (door, {"glossary": [GLOSSARY] * 2}, "2 glossaries for 1 texts"),
        (door, {"glossary": Glossary.of([("cat", "½")])}, "can't write '½'"),
        (Translator(stored, device="cpu"), {}, "can't write 'Gatto Nero'"),
        (Translator(door.stored, device="cpu", engine="ctranslate2"), {}, "needs engine torch"),
    ]:
        with pytest.raises(UserError, match=says):
            other.translate(["the cat"], **{"glossary": GLOSSARY, **options})


@pytest.mark.parametrize("glossary", [{"cat": "mat"}, [None], ["cat"]])
def test_what_is_no_glossary_is_told(door, glossary):
    with pytest.raises(TypeError, match=r"must be a Glossary, made by Glossary\.of"):
        door.translate(["the cat"], glossary=glossary)


def test_ctranslate2_keeps_protected_text(door):
    other = Translator(door.stored, device="cpu", engine="ctranslate2")
    text = "the cat {name} sat on %s: https://a.de/b?c=d."
    [found] = other.translate([text])
    assert [found.text.count(span) for span in SPANS] == [text.count(span) for span in SPANS]


@pytest.fixture
def widths(monkeypatch) -> list[int]:
    """Of the beams that are searched."""
    found = []

    def watched(*arguments, beam_size, **options):
        found.append(beam_size)
        return beam_search(*arguments, beam_size=beam_size, **options)

    monkeypatch.setattr("headway.decoding.torch_searcher.beam_search", watched)
    return found


def test_no_text_makes_the_beam_wider_than_its_bound(door, widths):
    most = MOST_PHRASES_IN_BEAM
    spans = " and ".join(f"{{n{number}}}" for number in range(most + 1))
    texts = ["cat " * (2 * most), f"cat {spans} dog", "{a} {b} " + "cat " * 2 * most]
    found = [one.text for one in door.translate(texts, glossary=GLOSSARY)]
    assert max(widths) == most + 1
    assert count("Gatto Nero", found[0]) >= most
    assert re.findall(r"{n\d+}", found[1]) == re.findall(r"{n\d+}", spans)
    assert [count(term, found[1]) > 0 for term in ("Gatto Nero", "mat")] == [True, True]
    assert count("Gatto Nero", found[2]) >= most - 2
    assert ["{a}" in found[2], "{b}" in found[2]] == [True, True]


def test_a_notice_tells_of_terms_left_out(door, monkeypatch):
    most = MOST_PHRASES_IN_BEAM
    answer = Translation("Mat " * most, 0.0, "eos")
    monkeypatch.setattr(door, "translate", lambda texts, **_: [answer for _ in texts])
    spans = " and ".join(f"{{n{number}}}" for number in range(most + 1))
    texts = [
        "cat " * most,
        "cat " * (most + 3),
        "{a} " + "cat " * most,
        f"cat {spans} dog",
        spans + " cat" * (most + 2),
    ]
    lines = [Line(number, text) for number, text in enumerate(texts, start=1)]
    written = LineTranslator(door, LineOptions(glossary=(("cat", "mat"),))).translate(lines)
    said = [re.findall(r"line (\d+) .* last (\d+) terms", one.text) for one in written.notices]
    assert said == [[("2", "3")], [("3", "1")], [("5", "2")]]


def test_a_notice_tells_of_a_term_without_room(door, monkeypatch):
    """A search leaves out targets that its cap has no room for."""
    answers = iter(["Mat cut", "cut", ""])
    monkeypatch.setattr(door, "translate", lambda texts, **_: [Translation(next(answers), 0.0, "eos") for _ in texts])
    lines = [Line(number, text) for number, text in enumerate(["the cat", "the cat", "the dog"], start=1)]
    written = LineTranslator(door, LineOptions(glossary=(("cat", "mat"),))).translate(lines)
    assert [one.text for one in written.notices] == [
        "the translation of line 2 has no room for the glossary's 'mat'; try a larger --max-length"
    ]


def test_a_tag_is_no_term():
    """Of a text without protected text too."""
    plain = translator().stored
    tokenizer = SubwordTokenizer.train(["the cat sat on the mat", "a dog ran after"] * 20, "bpe", 292, ["fr", "ko"])
    size = tokenizer.vocab_size
    model = Transformer(replace(plain.model.config, source_vocab_size=size, target_vocab_size=size))
    tagged = Translator(
        StoredModel(
            model=model,
            source_tokenizer=tokenizer,
            target_tokenizer=tokenizer,
            source_language="en",
            target_language="mul",
        ),
        device="cpu",
    )
    for text in (">>fr<< the cat", ">>fr<< the {name} cat", ">>fr<< fr cat"):
        found = ProtectedText.of(text, tagged.stored.source_tokenizer)
        assert len(found.terms(Glossary.of([("fr", "dog")]))) == text.removeprefix(">>fr<<").count("fr")
    texts = [">>fr<< the cat"]
    [with_term] = tagged.translate(texts, glossary=Glossary.of([("fr", "dog")]))
    assert with_term.text == tagged.translate(texts)[0].text


def test_what_is_kept_of_users_text_is_bounded():
    door = translator()
    for target in ("mat mat", "mat sat"):
        given = ProtectedText.of(f"the cat `{target}`", door.stored.source_tokenizer)
        assert len(door.texts._sought([5], [], given, Glossary.of([("cat", target)])).phrases) == 2
    assert door.texts._phrase.cache_info().currsize == 4
    assert door.texts._phrase.cache_info().maxsize <= 2000


def test_a_glossary_is_checked_once(door, monkeypatch):
    """It may be large, and is given with every call."""
    glossary = Glossary.of([("cat", "mat")])
    door.check_glossary(glossary)
    monkeypatch.setattr(door.texts, "_phrase", None)
    door.check_glossary(glossary)
    monkeypatch.undo()
    with pytest.raises(UserError, match="can't write"):
        door.check_glossary(Glossary.of([("cat", "½")]))
