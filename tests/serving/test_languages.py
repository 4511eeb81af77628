"""Which pair translates a text: by the codes of a request, or by the text itself."""

import pytest
from babel.core import Locale, get_global

from headway.languages import likely_script
from headway.text.detection import Detected, detect
from tests.serving.conftest import CopyingTranslator

GOOD = {"q": "Ein Hund.", "source": "de", "target": "en"}
ENGLISH = "The dog runs through the field."
GERMAN = "Der Hund läuft über die Wiese."


def shouting(source, target, tags=()):
    """Shows by capitals what was translated."""
    return CopyingTranslator(source, target, tags, change=str.upper)


@pytest.mark.parametrize(
    ("models", "source", "target", "asked"),
    [
        ([("zh-Hans", "en")], "ZH-hans", "EN", ("zh-Hans", "en")),
        ([("zh-Hans", "en")], "zh_CN", "en-US", ("zh-Hans", "en")),
        ([("zh", "en")], "zh_Hans_CN", "eng", ("zh", "en")),
        ([("de", "en")], "de-DE", "en", ("de", "en")),
        ([("de", "en")], "deu", "EN_GB", ("de", "en")),
        ([("de_AT", "en"), ("de", "en")], "de", "en", ("de", "en")),
        ([("de_AT", "en"), ("de", "en")], "de-at", "en", ("de_AT", "en")),
        ([("de", "en"), ("de-DE", "fr")], "de", "fr", ("de-DE", "fr")),
        ([("nb", "en")], "no", "en", ("nb", "en")),
        ([("txt", "src")], "txt", "SRC", ("txt", "src")),
    ],
)
def test_codes_of_one_language_are_one(serve, models, source, target, asked):
    translators = {model: CopyingTranslator(*model, change=lambda text, model=model: str(model)) for model in models}
    server = serve(*translators.values())
    assert server.translate("a", source=source, target=target) == {"translatedText": str(asked)}


@pytest.mark.parametrize(("source", "target"), [("zh-TW", "en"), ("yue", "en"), ("zh", "fr"), ("zh", "en-GB")])
def test_codes_of_another_language_are_not(serve, source, target):
    server = serve(CopyingTranslator("zh-Hans", "en-US"))
    assert server.post("/translate", json={"q": "a", "source": source, "target": target}).status_code == 400


def test_auto_by_script(serve):
    server = serve(CopyingTranslator("de", "en"), CopyingTranslator("ko", "en"))
    answer = server.translate("안녕하세요.", source="auto")
    assert answer["detectedLanguage"] == {"confidence": 100.0, "language": "ko"}
    answer = server.translate(["Ein Hund.", "개가 달린다.", "1 2 3"], source="auto")
    assert [one["language"] for one in answer["detectedLanguage"]] == ["de", "ko", "de"]
    assert answer["detectedLanguage"][2]["confidence"] == 0
    answer = server.translate("Das koreanische Wort 한국 bedeutet Korea.", source="auto")
    assert answer["detectedLanguage"]["language"] == "de", "a foreign word decides nothing"
    refused = server.post("/translate", json={**GOOD, "source": "auto", "q": "Привет"})
    assert (refused.status_code, "de, ko" in refused.json()["error"]) == (400, True)


def test_auto_where_the_script_says_nothing(serve, monkeypatch):
    server = serve(CopyingTranslator("de", "en"), CopyingTranslator("fr", "en"))
    monkeypatch.setattr("headway.text.detection._lingua", lambda _: None)  # as without the extra
    refused = server.post("/translate", json={**GOOD, "source": "auto"})
    assert refused.status_code == 400
    assert "tell de, fr apart; name the language" in refused.json()["error"]
    found = server.post("/detect", json={"q": "Ein Hund."}).json()
    assert {one["language"] for one in found} == {"de", "fr", "en"}
    assert len({one["confidence"] for one in found}) == 1


def test_auto_is_as_sure_as_a_script_can_be(serve, monkeypatch):
    monkeypatch.setattr("headway.text.detection._lingua", lambda _: None)  # as without the extra
    server = serve(CopyingTranslator("de", "en"), CopyingTranslator("ko", "en"))
    answer = server.translate("Der Hund.", source="auto")
    assert answer["detectedLanguage"] == {"confidence": 50.0, "language": "de"}, "it may be English"


def test_every_script_of_a_language_can_be_detected():
    scripts = Locale("en").scripts
    likely = {code: likely_script(code) for code in get_global("likely_subtags") if "_" not in code}
    assert set(likely.values()) <= scripts.keys()
    assert len(set(likely.values())) > 100
    codes = [*likely, *(f"de-{script}" for script in scripts), "de-home", "de-test", "xx", ""]
    found = {one.language for one in detect("Hund", codes) or []}
    assert {"de", "xx", "", "de-home", "de-test", "gml", "mga", "de-Latf", "de-Latg", "de-Zxxx", "de-Blis"} <= found
    assert detect("اردو", ["en", "ur-Aran"]) == [Detected("ur-Aran", 100.0)]
    assert [one.language for one in detect("漢字", ["zh-Hanb", "ko-Jamo", "ru-Cyrs"]) or []] == ["zh-Hanb", "ko-Jamo"]


def test_scripts_that_languages_share():
    assert detect("東京で漢字を読む", ["ja", "zh-Hans"])[0].language == "ja"
    assert [one.language for one in detect("これはJapanですよね", ["ja", "zh-Hans", "en"])] == ["ja"]
    assert {one.language for one in detect("漢字漢字", ["zh-Hans", "zh-Hant"])} == {"zh-Hans", "zh-Hant"}
    assert {one.language for one in detect("The dog runs", ["en-US", "en-GB"])} == {"en-US", "en-GB"}


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Les enfants jouent au football dans le parc pendant que leurs parents les regardent.", None),
        ("Der kleine Hund läuft mit einem Ball im Maul über die grüne Wiese.", "de"),
        ("A small dog is running across the green meadow with a ball in its mouth.", "en"),
        ("Un perro corre por la hierba verde con una pelota en la boca.", None),
    ],
)
def test_a_language_that_the_server_does_not_know_has_no_confidence(serve, text, language):
    pytest.importorskip("lingua")
    for q in (text, [text, text]):
        best, *_ = serve().post("/detect", json={"q": q}).json()
        assert (best["confidence"] > 50) == (language is not None)
        assert language in (None, best["language"])
        assert language or best["confidence"] == 0


def test_clients_read_the_first_detection(serve):
    for text in ("123", " ", "Привет"):
        assert serve().post("/detect", json={"q": text}).json() == [{"confidence": 0.0, "language": "de"}]


def test_auto_by_words(serve):
    pytest.importorskip("lingua")
    server = serve(CopyingTranslator("de", "en"), CopyingTranslator("fr", "en"))
    answer = server.translate(["Ein Hund läuft über die Wiese.", "Le chien court dans le pré."], source="auto")
    assert [one["language"] for one in answer["detectedLanguage"]] == ["de", "fr"]
    assert server.post("/detect", data={"q": "Der Hund schläft."}).json()[0]["language"] == "de"


class Stub:
    """lingua, which is sure of the languages as it is told to be."""

    def __init__(self, **confidences: float) -> None:
        self._confidences = confidences

    def compute_language_confidence(self, words: str, language: str) -> float:
        return self._confidences[language]


@pytest.fixture
def lingua(monkeypatch):
    def install(**confidences: float) -> None:
        monkeypatch.setattr("headway.text.detection._lingua", lambda _: Stub(**confidences))
        monkeypatch.setattr("headway.text.detection.lingua_language", lambda code: code)

    return install


def test_text_in_the_target_language_comes_back_as_it_is(serve):
    pytest.importorskip("lingua")
    translator = shouting("de", "en")
    translator.confidences = {"": 1.0}  # it is calibrated
    server = serve(translator, shouting("ko", "en"))
    answer = server.translate(ENGLISH, source="auto", alternatives=2, confidence=True)
    assert answer["translatedText"] == ENGLISH
    assert answer["detectedLanguage"]["language"] == "en"
    assert (answer["alternatives"], answer["confidence"], answer["outOfDomain"]) == ([], None, False)
    markup = f"<p class=x>{ENGLISH}</p> & <br>"
    assert server.translate(markup, source="auto", format="html")["translatedText"] == markup
    assert translator.calls == []


@pytest.mark.parametrize(
    ("german", "english", "is_translated"), [(0.9, 0.1, True), (0.5, 0.5, True), (0.34, 0.66, True), (0.3, 0.7, False)]
)
def test_a_near_tie_goes_to_a_language_that_is_translated(serve, lingua, german, english, is_translated):
    lingua(de=german, en=english)
    answer = serve(shouting("de", "en")).translate("Super!", source="auto")
    assert answer["translatedText"] == ("SUPER!" if is_translated else "Super!")
    wanted = {"language": "de", "confidence": 100 * german} if is_translated else {"language": "en", "confidence": 70.0}
    assert answer["detectedLanguage"] == wanted


@pytest.mark.parametrize(
    "text",
    ["OK", "Super!", "Email", "Hi", "HALLO", "HELLO WORLD", "Anna Müller", "London", "a", ENGLISH, "I❤️NY", "½ kg"],
)
def test_no_text_in_a_script_of_the_models_is_refused(serve, text):
    pytest.importorskip("lingua")
    answer = serve(shouting("de", "en")).translate(text, source="auto")
    assert answer["translatedText"] in (text, text.upper())


@pytest.mark.parametrize(
    "text", [" ", "123", "1 2 3", "25.02.1956", "🙂", "?!", "https://example.org", "{name}", "a@b.org", "%s"]
)
def test_text_without_words_comes_back_as_it_is(serve, text):
    answer = serve(shouting("de", "en")).translate(text, source="auto")
    assert answer == {"translatedText": text, "detectedLanguage": {"confidence": 0.0, "language": "de"}}


def test_figures_are_translated_as_with_the_language(serve):
    server = serve(CopyingTranslator("de", "en", change=lambda text: text.replace("25.02.1956", "1956-02-25")))
    for source in ("de", "auto"):
        assert server.translate("25.02.1956", source=source)["translatedText"] == "1956-02-25"
        assert server.translate(["25.02.1956", ""], source=source)["translatedText"] == ["1956-02-25", ""]


@pytest.mark.parametrize("text", ["123", "", " "])
@pytest.mark.parametrize("path", ["/inspect", "/align"])
def test_text_without_letters_is_looked_into_as_with_the_language(serve, path, text):
    server, fields = serve(), {"q": text, "translation": text, "target": "en"}
    named, auto = (server.post(path, json={**fields, "source": source}) for source in ("de", "auto"))
    assert (auto.status_code, auto.content) == (named.status_code, named.content)


def test_a_list_is_judged_text_by_text(serve):
    pytest.importorskip("lingua")
    server = serve(shouting("de", "en"), shouting("fr", "de"))
    french = "Le chien court dans le pré."
    texts = [GERMAN, ENGLISH, french, "Привет", "12", "", "Ein Hund."]
    answer = server.translate(texts, source="auto", alternatives=1)
    assert answer["translatedText"] == [GERMAN.upper(), *texts[1:6], "EIN HUND."]
    assert [one["language"] for one in answer["detectedLanguage"]] == ["de", "en", "fr", "und", "de", "de", "de"]
    assert answer["detectedLanguage"][3]["confidence"] == 0
    assert [len(one) for one in answer["alternatives"]] == [1, 0, 0, 0, 1, 0, 1], "figures are translated"
    for text, reason in ((french, "seems to be fr; what is translated is de"), ("Привет", "none of the languages")):
        refused = server.post("/translate", json={**GOOD, "source": "auto", "q": text})
        assert refused.status_code == 400
        assert reason in refused.json()["error"]


def test_a_list_is_not_refused_for_a_script_of_several(serve, monkeypatch):
    monkeypatch.setattr("headway.text.detection._lingua", lambda _: None)  # as without the extra
    server = serve(shouting("de", "en"), shouting("fr", "en"), shouting("ko", "en"))
    answer = server.translate(["Ein Hund b", "개 b"], source="auto")
    assert answer["translatedText"] == ["Ein Hund b", "개 B"]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("오늘 meeting 취소됨", "ko"),
        ("Samsung에서 만든 갤럭시", "ko"),
        ("Das koreanische Wort 한국 bedeutet Korea.", "de"),
        ("これはJapanですよね", "ja"),
        ("Сегодня meeting в office", "ru"),
    ],
)
def test_text_in_two_scripts(serve, text, language):
    server = serve(*(shouting(source, "en") for source in ("de", "ko", "ja", "ru")))
    assert server.translate(text, source="auto")["detectedLanguage"]["language"] == language


def test_tags_tell_no_language(serve):
    pytest.importorskip("lingua")
    server = serve(shouting("ko", "en"))
    markup = '<p class="lead text-muted"><a href="https://example.org/a/page/in/english">개</a> a</p>'
    answer = server.translate(markup, source="auto", format="html")
    assert answer["detectedLanguage"]["language"] == "ko"
    assert answer["translatedText"].endswith(" A</p>")


def test_there_is_nothing_to_see_in_text_of_the_target_language(serve):
    pytest.importorskip("lingua")
    server = serve()
    refused = server.post("/inspect", json={"q": ENGLISH, "source": "auto", "target": "en"})
    assert refused.status_code == 400
    assert "in en already" in refused.json()["error"]
    fields = {"source": "auto", "target": "en"}
    both = {"q": [ENGLISH, "Ein Hund."], "translation": [ENGLISH, "Ein Hund."]}
    assert server.post("/align", json={**both, **fields}).json() == {"links": [[], [[0, 0], [1, 1]]]}
    one = {"q": ENGLISH, "translation": ENGLISH}
    assert server.post("/align", json={**one, **fields}).json() == {"links": []}
