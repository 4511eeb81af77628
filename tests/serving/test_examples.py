"""The examples of the description are requests that this server answers, in languages that it has."""

import pytest

from headway.insight.analyses import NAMES
from headway.insight.analyses.analysis import LONGEST_ANALYSED
from headway.serving.pairs import EXAMPLES, LONGEST_EXAMPLE, Pairs, example_text, examples_among
from tests.serving.conftest import CopyingTranslator

FORM, JSON = "application/x-www-form-urlencoded", "application/json"


def examples(server):
    """By route and kind of body."""
    paths = server.get("/openapi.json").json()["paths"]
    bodies = {path: methods["post"]["requestBody"]["content"] for path, methods in paths.items() if "post" in methods}
    return {(path, kind): one["example"] for path, content in bodies.items() for kind, one in content.items()}


@pytest.mark.parametrize(("source", "target"), [("ko", "en"), ("fr", "de"), ("nl", "zh-Hans"), ("xx", "yy")])
def test_examples_are_in_the_languages_that_are_loaded(serve, source, target):
    server = serve(CopyingTranslator(source, target))
    found = examples(server)
    assert {path for path, _ in found} == {"/translate", "/translate_file", "/detect", "/inspect", "/align"}
    for (path, kind), fields in found.items():
        if path == "/translate_file":
            answer = server.post(path, data=fields, files={"file": ("a.txt", example_text(source).encode())})
            assert answer.status_code == 200, answer.text
            continue
        assert fields["q"] == example_text(source)
        if path != "/detect":
            assert (fields["source"], fields["target"]) == (source, target)
        answer = None
        if kind == JSON:
            answer = server.post(path, json=fields)
        elif kind == FORM:
            answer = server.post(path, data=fields)
        assert answer is None or answer.status_code == 200, answer.text


def test_examples_are_of_one_of_several_models(serve):
    server = serve(CopyingTranslator("ko", "mul", tags=("en", "ja")), CopyingTranslator("de", "en"))
    fields = examples(server)["/translate", JSON]
    assert (fields["q"], fields["source"], fields["target"]) == (example_text("ko"), "ko", "en")
    assert server.translate(**fields) == {"translatedText": ">>en<< " + fields["q"]}


def test_examples_are_short_and_each_once():
    pairs = [
        ("", "blank"),
        ("x" * (LONGEST_EXAMPLE + 1), "long"),
        ("a", "1"),
        ("a", "2"),
        *((str(n), "n") for n in range(9)),
    ]
    assert examples_among(pairs, "de", "en") == [("a", "1"), *((str(n), "n") for n in range(EXAMPLES - 1))]
    assert examples_among(pairs[:2], "de", "en") == [(example_text("de"), example_text("en"))]


def test_each_direction_has_examples_of_its_own():
    several, other = CopyingTranslator("ko", "mul", tags=("en", "ja")), CopyingTranslator("de", "en")
    pairs = Pairs([several, other], {several: [(">>ja<< 하나", "一"), (">>en<< 둘", "two"), (">>ja<< 셋", "三")]})
    found = {(pair.source, pair.target): pair.examples for pair in pairs.values()}
    assert found["ko", "ja"] == (("하나", "一"), ("셋", "三"))
    assert found["ko", "en"] == (("둘", "two"),)
    assert found["de", "en"] == ((example_text("de"), example_text("en")),)


def test_a_page_begins_with_a_direction_that_it_describes():
    """Of a model of many source languages one from its own, and one that it was validated on."""
    model = CopyingTranslator("en", "mul", tags=("af", "de", "en", "ko"))
    model.info.source_tokenizer.many_sources = True
    for examples, target in (({}, "af"), ({model: [(">>en:ko<< one", "하나")]}, "ko")):
        first = Pairs([model, CopyingTranslator("fr", "de")], examples).first
        assert (first.source, first.target) == ("en", target)


def test_a_page_describes_a_model_whose_source_has_another_name():
    """As where a recipe that fine-tunes NLLB says `en` instead of `eng_Latn`."""
    model = CopyingTranslator("en", "mul", tags=("eng_Latn", "kor_Hang"))
    model.info.source_tokenizer.many_sources = True
    assert [(pair.source, pair.target) for pair in Pairs([model]).shown] == [("eng_Latn", "kor_Hang")]


def test_the_heads_are_measured_on_the_validation_pairs_of_the_model(serve):
    model, other = CopyingTranslator("ko", "en"), CopyingTranslator("de", "en")
    long = "x" * (LONGEST_ANALYSED + 1)
    server = serve(model, other, examples={model: [("하나", "one"), (long, "long"), ("둘", long), ("셋", "three")]})
    fields = {"q": "하나", "source": "ko", "target": "en"}
    for asked in ("head_importance", {"kind": "head_importance"}):
        answer = server.post("/inspect", json={**fields, "analyses": [asked, "erasure"]}).json()
        assert "pairs=[('하나', 'one'), ('셋', 'three')]" in answer["analyses"][0]
        assert "erasure" in answer["analyses"][1]
    answer = server.post("/inspect", json={**fields, "source": "de", "analyses": ["head_importance"]})
    assert answer.status_code == 400
    assert "no validation pairs" in answer.json()["error"]


def test_the_page_hears_what_the_models_know(serve):
    [model] = serve(CopyingTranslator("ko", "en")).get("/frontend/settings").json()["models"]
    assert model == {
        "source": "ko",
        "target": "en",
        "domain": "animals",
        "parameters": 1234,
        "examples": [{"source": example_text("ko"), "target": example_text("en")}],
        "analyses": [name for name in NAMES if name != "head_importance"],
    }


def test_the_page_hears_that_nothing_can_be_analysed_without_torch(serve, monkeypatch):
    monkeypatch.setattr("headway.serving.pairs.has_torch", lambda: False)
    model = CopyingTranslator("ko", "en")
    [about] = serve(model, examples={model: [("하나", "one")]}).get("/frontend/settings").json()["models"]
    assert about["analyses"] == []


def test_the_page_hears_that_heads_can_be_measured_where_there_are_pairs(serve):
    model = CopyingTranslator("ko", "en")
    [about] = serve(model, examples={model: [("하나", "one")]}).get("/frontend/settings").json()["models"]
    assert about["analyses"] == list(NAMES)


def test_a_text_of_any_language_is_of_its_own():
    texts = {code: example_text(code) for code in ("de", "en", "ko", "fr", "es", "nl", "ja", "uk", "zh-Hans", "pt-BR")}
    assert len(set(texts.values())) == len(texts)
    assert example_text("de-AT") == texts["de"]
    assert "2017" in texts["nl"]
    assert "juni" in texts["nl"]
    assert "年" in texts["ja"]
    assert all(example_text(code) == texts["en"] for code in ("xx", "tgt", "no language", "../x", ""))
