"""Documents from Python: the same as from a server, and nothing but sentences reaches the model."""

import asyncio
import html
import re
import subprocess
import sys
from dataclasses import replace
from html import unescape

import httpx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import headway.documents
from headway.documents.parsing import NBest, PendingDocuments, parse_document
from headway.documents.translator import translate_file
from headway.errors import UserError
from headway.model import Transformer
from headway.serving.app import make_app
from headway.serving.pairs import Pairs
from headway.serving.service import Service
from headway.serving.settings import Settings
from headway.translator import Translator
from tests.documents.test_parsing import ATOMS, HTML, TEXT, itself, letters, unspaced
from tests.page.test_inspecting import random_translator

SENTENCES = [
    "the cat sat. A dog ran after the mat!  the cat\n\nthe mat sat on the mat.\r\n",
    "a dog https://example.org/a?b=c ran 😀 after. the cat\u2028 sat",
    "  the cat 👍🏽 sat",
    "1. the cat sat\n  - a dog",
    "",
    " \n\u2029 ",
    "😀 https://example.org",
    "the cat " * 600,
]
MARKUP = [
    "<p>the <b>cat</b> sat. <i>a dog</i> ran<br> after &amp; &lt;the&gt; mat</p>",
    '<h1 class="x">the cat</h1><script>the("cat")</script><ul><li>a dog<li translate=no>the mat</ul><!-- cat -->',
    "",
    "<p> </p>\n<img src='the cat.png'>",
]


@pytest.fixture(scope="module")
def door() -> Translator:
    found = random_translator()
    return Translator(replace(found.stored, decoding={"max_length": 12, "beam_size": 3}), device="cpu")


@pytest.fixture(scope="module")
def tagged() -> Translator:
    """A random model of two target languages."""
    plain = random_translator().stored
    lines = ["the cat sat on the mat", "a dog ran after"] * 20
    tokenizer = type(plain.source_tokenizer).train(lines, "bpe", 292, ["de", "ko"])
    torch.manual_seed(3)
    size = tokenizer.vocab_size
    model = Transformer(replace(plain.model.config, source_vocab_size=size, target_vocab_size=size))
    with torch.no_grad():
        model.output.weight.mul_(8.0)
    tokenizers = {"source_tokenizer": tokenizer, "target_tokenizer": tokenizer}
    stored = replace(plain, model=model, target_language="mul", decoding={"max_length": 9}, **tokenizers)
    return Translator(stored, device="cpu")


def of_server(door: Translator, requests: list[dict]) -> list[dict]:
    """What a server of this model answers to each."""
    service = Service(Pairs([door]), Settings())

    async def ask() -> list[dict]:
        transport = httpx.ASGITransport(make_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return [(await client.post("/translate", json={"source": "en", **one})).json() for one in requests]

    try:
        return asyncio.run(ask())
    finally:
        service.close()


@pytest.mark.parametrize(("format_", "texts"), [("text", SENTENCES), ("html", MARKUP)])
@pytest.mark.parametrize("options", [{}, {"beam_size": 1}, {"n_best": 3}, {"beam_size": 2, "n_best": 5}])
def test_a_document_is_what_the_server_answers(door, format_, texts, options):
    fields = {"target": "en", "format": format_, "alternatives": options.get("n_best", 1) - 1}
    fields |= {name: value for name, value in options.items() if name == "beam_size"}
    texts = [text for text in texts if text]  # LibreTranslate refuses an empty one
    answers = of_server(door, [{"q": text, **fields} for text in texts])
    for text, answer in zip(texts, answers, strict=True):
        found = door.translate_document(text, format=format_, **options)
        assert (found.text, found.alternatives) == (answer["translatedText"], answer.get("alternatives", []))
        assert found.truncated == answer.get("truncated", False)
    assert len({one["translatedText"] for one in answers}) > 2, "the model says different things"


def test_tags_leave_the_translation_as_it_is(door, tagged):
    """Whatever the aligner of a random model says."""
    plain = ["the cat sat on the mat", "a dog ran after the cat", "the mat", "on the dog sat a cat"]
    for translator, prefix in ((door, ""), (tagged, ">>ko<< ")):
        for text in plain:
            words = text.split()
            for place in range(len(words)):
                html = " ".join([*words[:place], f"<a href=x><i>{words[place]}</i></a>", *words[place + 1 :]])
                found = translator.translate_document(prefix + html, format="html", n_best=3)
                wanted = translator.translate_document(prefix + text, n_best=3)
                for one in (found.text, *found.alternatives):
                    assert re.findall("<[^>]*>", one) == ["<a href=x>", "<i>", "</i>", "</a>"]
                    assert unescape(re.sub("<[^>]*>", "", one)) in (wanted.text, *wanted.alternatives)


def test_a_tag_is_for_all_sentences(tagged):
    text = "  the cat sat.\n<b>the mat</b> "
    for code in ("de", "ko"):
        for format_ in ("text", "html"):
            [answer] = of_server(tagged, [{"q": text, "target": code, "format": format_}])
            assert tagged.translate_document(f">>{code}<< {text}", format=format_).text == answer["translatedText"]
    assert tagged.translate_document(f">>de<< {text}") != tagged.translate_document(f">>ko<< {text}")
    with pytest.raises(UserError, match="begin each text with one of >>de<< >>ko<<"):
        tagged.translate_document(text)


@pytest.mark.parametrize("text", ["", " ", "\n\n \t", "\u2028", "... !", *ATOMS])
def test_without_words_nothing_is_asked(door, text, monkeypatch):
    def translate(texts, **_):
        assert texts == []
        return []

    monkeypatch.setattr(door, "translate", translate)
    assert door.translate_document(text).text == text
    assert html.unescape(door.translate_document(text, format="html").text) == text


def test_what_was_cut_off_is_told(door):
    texts = ["the cat", "a dog ran after the cat", "the mat sat"]
    ended = [door.translate_document(text).truncated for text in texts]
    assert ended == [door.translate([text])[0].stopped == "max_length" for text in texts]
    assert True in ended


def through(document, *, aligned):
    """The document by a model that gives everything back, with alignments or without."""
    pending = PendingDocuments([document], [">>xx<< "])

    def found(asked):
        for one in asked:
            text = one.text.removeprefix(">>xx<< ")
            links = [(start, end, start + 7, end + 7) for start, end, *_ in itself(text)]
            yield NBest([text], False, alignments=[links] if one.aligned and aligned else [])

    pending.take_wholes(found(pending.wholes))
    [found_text] = pending.joined(found(pending.runs))
    return found_text.texts[0]


@given(TEXT, st.booleans())
def test_a_model_that_copies_words_copies_the_text_with_alignments_or_without(text, aligned):
    assert unspaced(through(parse_document(text, "text", "de"), aligned=aligned)) == unspaced(text)


@given(HTML)
def test_markup_comes_back_with_alignments_or_without(text):
    assert letters(through(parse_document(text, "html", "de"), aligned=True)) == letters(text)
    without = through(parse_document(text, "html", "de"), aligned=False)
    assert letters(without) == letters(text)


def test_several_documents_get_each_its_own():
    texts = ["Eins 😀 zwei. Drei.", "", "Vier.", "Fünf <b>sechs</b>.", "<i>Sieben</i>."]
    pending = PendingDocuments([parse_document(text, "html", "de") for text in texts])
    asked = [
        (0, "Eins zwei.", True),
        (0, "Drei.", False),
        (2, "Vier.", False),
        (3, "Fünf sechs.", True),
        (4, "Sieben.", False),
    ]
    assert pending.wholes == asked
    pending.take_wholes(
        NBest([one.upper(), one.lower()], one == "Vier.", alignments=[[], itself(one)] if aligned else [])
        for _, one, aligned in asked
    )
    assert pending.runs == [], "the second translation has places for the tags"
    found = pending.joined([], 2)
    assert [one.texts for one in found] == [
        ["eins 😀 zwei. DREI.", "eins 😀 zwei. drei."],
        [""],
        ["VIER.", "vier."],
        ["fünf <b>sechs</b>."],
        ["<i>SIEBEN</i>.", "<i>sieben</i>."],
    ]
    assert [one.truncated for one in found] == [False, False, True, False, False]


def test_words_whose_tags_find_no_place_are_translated_by_themselves():
    pending = PendingDocuments([parse_document("Ein <b>Hund</b> läuft. Ja.", "html", "de")], [">>en<< "])
    pending.take_wholes(NBest(["A dog runs." if one.aligned else "Yes."], False) for one in pending.wholes)
    assert [one.text for one in pending.runs] == [">>en<< Ein", ">>en<< Hund", ">>en<< läuft."]
    [found] = pending.joined(NBest([text], False) for text in ("A", "dog", "runs."))
    assert found.texts == ["A <b>dog</b> runs. Yes."]


def test_an_unknown_format_is_refused(door):
    with pytest.raises(UserError, match="format 'pdf' is unknown; there are text and html"):
        door.translate_document("the cat", format="pdf")


@pytest.mark.parametrize("package", ["sentencex", "regex"])
def test_without_its_packages_one_line_names_the_extra(door, package, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("headway.documents.")]:
        monkeypatch.setattr(headway.documents, name.rpartition(".")[2], sys.modules[name])  # restored
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=rf"^{package} is not installed: pip install 'headway\[documents\]'$"):
        door.translate_document("the cat")
    assert door.translate(["the cat"])[0].text


def test_a_translator_needs_none_of_them():
    script = (
        "import sys, headway, headway.translator; "
        "sys.exit(any(name.split('.')[0] in ('sentencex', 'regex') for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


NUMBERED = "<table><tr><td>1</td><td>3.5 %</td><td>2026-11-28</td><td>the cat 3</td><td>a@b.org</td></tr></table>"


@pytest.mark.parametrize(
    ("kind", "data", "texts"),
    [
        ("html", NUMBERED, ["the cat 3"]),
        (
            "srt",
            "1\n00:00:01,000 --> 00:00:02,500\n<i>12</i>\n\n2\n00:00:03,000 --> 00:00:04,500\nthe cat\n",
            ["the cat"],
        ),
        ("json", '{"a": "1", "b": "%s: {x} https://a.b/c", "c": "—", "d": "the cat\\n\\n17."}', ["the cat"]),
        ("md", "# 1\n\n| 1 | the cat |\n|---|---|\n| [2](http://a.b) | `x` |\n", ["the cat"]),
    ],
)
def test_only_what_has_letters_is_asked_of_a_file(door, kind, data, texts, monkeypatch):
    asked = []

    def translate(some, **_):
        asked.extend(some)
        return [replace(door_translate([one])[0], text=one) for one in some]

    door_translate = door.translate
    monkeypatch.setattr(door, "translate", translate)
    assert translate_file(door, kind, data.encode(), name="file").data.decode() == data
    assert asked == texts
    assert door.translate_document("1").text == "1"
    assert asked == [*texts, "1"], "a text may be a number"
