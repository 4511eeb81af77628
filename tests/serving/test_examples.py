"""The examples of the description are requests that this server answers, in languages that it has."""

import pytest

from headway.serving.examples import example_text
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
    assert {path for path, _ in found} == {"/translate", "/detect", "/inspect", "/align"}
    for (path, kind), fields in found.items():
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


def test_a_text_of_any_language_is_of_its_own():
    texts = {code: example_text(code) for code in ("de", "en", "ko", "fr", "es", "nl", "ja", "uk", "zh-Hans", "pt-BR")}
    assert len(set(texts.values())) == len(texts)
    assert example_text("de-AT") == texts["de"]
    assert "2017" in texts["nl"]
    assert "juni" in texts["nl"]
    assert "年" in texts["ja"]
    assert all(example_text(code) == texts["en"] for code in ("xx", "tgt", "no language", "../x", ""))
