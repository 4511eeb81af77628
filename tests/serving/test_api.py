"""The HTTP shapes of LibreTranslate, and what is refused."""

import json
import re

import pytest

from headway.errors import LostModelError
from headway.insight.analyses import read_analyses
from headway.insight.what_if import HeadOff, read_edits
from tests.serving.conftest import CopyingTranslator

JSON = {"content-type": "application/json"}
GOOD = {"q": "Ein Hund.", "source": "de", "target": "en"}


def test_a_text_and_a_list(serve):
    server = serve()
    assert server.translate("Ein Hund läuft.") == {"translatedText": "Ein Hund läuft."}
    assert server.translate(["Eins", "", "Zwei. Drei."]) == {"translatedText": ["Eins", "", "Zwei. Drei."]}
    for nothing in ("", []):
        refused = server.post("/translate", json={**GOOD, "q": nothing})
        assert (refused.status_code, refused.json()) == (400, {"error": "q: is empty"})
    assert server.translate("  \n ") == {"translatedText": "  \n "}


@pytest.mark.parametrize("kind", ["json", "data", "files"])
def test_json_and_forms_mean_the_same(serve, kind):
    fields = {**GOOD, "alternatives": 1, "format": "text"}
    if kind == "files":
        fields = {name: (None, str(value)) for name, value in fields.items()}
    answer = serve().post("/translate", **{kind: fields})
    assert answer.json() == {"translatedText": "Ein Hund.", "alternatives": ["2 Ein Hund."]}


def test_a_form_as_curl_sends_it(serve):
    """Its bytes are the terminal's, not escaped."""
    server, kind = serve(), {"content-type": "application/x-www-form-urlencoded"}
    answer = server.post("/translate", content="q=Ein Hund läuft. 개&source=de&target=en".encode(), headers=kind)
    assert answer.json() == {"translatedText": "Ein Hund läuft. 개"}
    for broken in ("q=läuft&source=de&target=en".encode("latin-1"), b"q=l%E4uft&source=de&target=en"):
        refused = server.post("/translate", content=broken, headers=kind)
        assert (refused.status_code, set(refused.json())) == (400, {"error"})


def test_null_is_a_field_that_is_not_there(serve):
    fields = {"format": None, "alternatives": None, "beam_size": None, "api_key": None}
    assert serve().translate("a", **fields) == {"translatedText": "a"}
    assert serve().translate("a", format="") == {"translatedText": "a"}


@pytest.mark.parametrize("kind", ["json", "data"])
def test_a_glossary(serve, kind):
    translator = CopyingTranslator()
    server = serve(translator)
    given = {"Hund": "dog", "Katze": "cat"} if kind == "json" else "Hund\tdog\nKatze\tcat\n"
    answer = server.post("/translate", **{kind: {**GOOD, "glossary": given}})
    assert answer.json() == {"translatedText": "Ein Hund."}
    [options] = translator.options
    assert [(term.source, term.target) for term in options["glossary"].terms] == [("Hund", "dog"), ("Katze", "cat")]
    server.translate("Ein Hund.")
    assert translator.options[-1]["glossary"] is None, "the cache knows which glossary an answer is of"


@pytest.mark.parametrize(
    ("glossary", "says"),
    [
        ("Hund dog", "glossary, line 1: must be a source term, a TAB and a target term"),
        ({"Hund": ""}, "needs text on both sides"),
        ({str(number): "x" for number in range(1001)}, "1001 terms, the limit is 1000"),
        ([["Hund", "dog"]], "glossary"),
    ],
)
def test_a_glossary_that_is_none_is_refused(serve, glossary, says):
    answer = serve().post("/translate", json={**GOOD, "glossary": glossary})
    assert answer.status_code == 400
    assert says in answer.json()["error"]


def test_a_model_that_cannot_follow_a_glossary_says_so(serve):
    translator = CopyingTranslator(refuses="a glossary needs engine torch")
    answer = serve(translator).post("/translate", json={**GOOD, "glossary": {"Hund": "dog"}})
    assert (answer.status_code, answer.json()) == (400, {"error": "a glossary needs engine torch"})


def test_a_model_whose_folder_is_gone_is_the_servers_fault(serve, caplog):
    """The client hears no path of the server, its log does."""

    def change(_: str) -> str:
        raise LostModelError("/srv/model.safetensors: was removed after it was verified")

    answer = serve(CopyingTranslator(change=change)).post("/translate", json=GOOD)
    assert answer.status_code == 500
    assert answer.json() == {"error": "the model can't be read any more; the server's log has more"}
    assert "/srv/model.safetensors: was removed after it was verified" in caplog.messages


def test_what_was_cut_off_is_told(serve):
    translator = CopyingTranslator()
    server = serve(translator)
    assert server.translate(["Eins.", "Zwei."]) == {"translatedText": ["Eins.", "Zwei."]}
    translator.stopped = "max_length"
    assert server.translate("Drei.") == {"translatedText": "Drei.", "truncated": True}
    answer = server.translate(["Eins.", "Vier. Eins."])
    assert answer == {"translatedText": ["Eins.", "Vier. Eins."], "truncated": [False, True]}
    assert server.translate("Drei.")["truncated"], "from the cache, too"
    assert "headway_truncated_sentences_total 2.0" in server.service.metrics.page().decode()


def test_numbers_that_are_missing_or_invented_are_told(serve):
    server = serve(CopyingTranslator(change=lambda text: text.replace("244890", "24,490")))
    wrong, fine = {"missing": ["244890"], "invented": ["24,490"]}, {"missing": [], "invented": []}
    assert server.translate("Es sind 7.") == {"translatedText": "Es sind 7."}
    assert server.translate("Es sind 244890.") == {"translatedText": "Es sind 24,490.", "numbers": wrong}
    assert server.translate(["Es sind 7.", "Es sind 244890."])["numbers"] == [fine, wrong]
    assert server.translate("<p id=1>Es sind 244890.</p>", format="html")["numbers"] == wrong
    assert "numbers" not in server.translate("Es sind 244890.", source="en"), "it isn't translated"


def test_a_field_given_twice_in_a_form_is_a_list(serve):
    assert serve().post("/translate", data={**GOOD, "q": ["a", "b"]}).json() == {"translatedText": ["a", "b"]}


def test_alternatives_of_a_text_of_several_sentences(serve):
    answer = serve().translate(["Eins. Zwei.", "Drei."], alternatives=2)
    assert answer["translatedText"] == ["Eins. Zwei.", "Drei."]
    assert answer["alternatives"] == [["2 Eins. 2 Zwei.", "3 Eins. 3 Zwei."], ["2 Drei.", "3 Drei."]]


def test_alternatives_that_are_no_others_are_left_out(serve):
    translator = CopyingTranslator()
    translator._translation = lambda text, n_best: type(
        "T",
        (),
        {"text": text, "alternatives": [], "token_counts": (0, 0), "stopped": "eos"}
        | {"confidence": None, "out_of_domain": None},
    )
    assert serve(translator).translate("Eins.", alternatives=3) == {"translatedText": "Eins.", "alternatives": []}


def test_options_reach_the_model(serve):
    translator = CopyingTranslator()
    server = serve(translator, cache_size=0)
    server.translate("Eins")
    server.translate("Eins", beam_size=2)
    server.translate("Eins", beam_size=2, alternatives=5)
    assert translator.options == [
        {"beam_size": 4, "n_best": 1, "glossary": None, "alignments": False, "confidence": False},
        {"beam_size": 2, "n_best": 1, "glossary": None, "alignments": False, "confidence": False},
        {"beam_size": 6, "n_best": 6, "glossary": None, "alignments": False, "confidence": False},
    ]


def test_confidence_is_that_of_the_least_likely_sentence(serve):
    translator = CopyingTranslator()
    server = serve(translator)
    refused = server.post("/translate", json={**GOOD, "confidence": True})
    assert (refused.status_code, "isn't calibrated" in refused.json()["error"]) == (400, True)
    translator.confidences = {"Eins.": 0.9, "Zwei?": 0.4, "Drei.": 0.6}
    assert "confidence" not in server.translate("Eins."), "nobody asked"
    answer = server.translate("Eins.", confidence=True)
    assert answer == {"translatedText": "Eins.", "confidence": 0.9, "outOfDomain": False}
    answer = server.translate(["Drei. Eins.", "Eins. Zwei?", " "], confidence=True)
    assert (answer["confidence"], answer["outOfDomain"]) == ([0.6, 0.4, None], [False, True, False])
    answer = server.translate(["Eins. Fünf.", "Eins."], confidence=True)
    assert answer["confidence"] == [None, 0.9], "a sentence with words that has none leaves none for the text"


def test_protected_text_alone_leaves_the_confidence_to_the_words(serve):
    """As a run of a sentence whose tags found no place."""
    translator = CopyingTranslator()
    translator.aligns = False
    translator.confidences = {"Eins": 0.9, "zwei.": 0.8}
    answer = serve(translator).translate("Eins <b>{name}</b> zwei.", format="html", confidence=True)
    assert sorted(translator.calls[-1]) == ["Eins", "zwei.", "{name}"]
    assert answer["confidence"] == 0.8


def test_html_keeps_its_tags(serve):
    server = serve(CopyingTranslator(change=lambda text: text.replace("Hund", "Hund & <co>")))
    answer = server.translate("<p>Ein <b>Hund</b>, <br>läuft</p>", format="html")
    assert answer == {"translatedText": "<p>Ein <b>Hund</b> &amp; &lt;co&gt;, <br>läuft</p>"}


def test_tags_are_placed_by_the_alignment_of_the_whole_sentence(serve):
    translator = CopyingTranslator(change=lambda text: " ".join(reversed(text.split())))
    server = serve(translator, CopyingTranslator("en", tags=("de", "ko"), change=translator._change))
    html = "<p>Ein <b>Hund</b> <a href=x>sieht <i>ihn</i></a></p><p>Ein Hund</p><p><u>Eins</u></p>"
    wanted = "<p><a href=x><i>ihn</i> sieht</a> <b>Hund</b> Ein</p><p>Hund Ein</p><p><u>Eins</u></p>"
    answer = server.translate(html, format="html", alternatives=1)
    assert answer["translatedText"] == wanted
    [other] = answer["alternatives"]
    assert other == wanted.replace("<p><a", "<p>2 <a").replace("<p>H", "<p>2 H").replace("<u>E", "<u>2 E")
    asked = {
        tuple(texts): options["alignments"] for texts, options in zip(translator.calls, translator.options, strict=True)
    }
    assert asked == {("Ein Hund sieht ihn",): True, ("Ein Hund", "Eins"): False}, "they cost something"
    assert server.translate(html, format="html", alternatives=1) == answer, "from the cache, too"
    answer = server.post("/translate", json={"q": html, "format": "html", "source": "en", "target": "ko"}).json()
    assert answer["translatedText"].replace(" &gt;&gt;ko&lt;&lt;", "") == wanted


@pytest.mark.parametrize("aligns", [True, False])
def test_no_emoji_is_lost(serve, aligns):
    translator = CopyingTranslator()
    translator.aligns = aligns
    answer = serve(translator).translate("Von 👍 und 🇩🇪 nach 😀 Köln.")
    assert answer == {"translatedText": "Von 👍 und 🇩🇪 nach 😀 Köln."}
    assert translator.calls[0] == ["Von und nach Köln."]


def test_list_markers_stay_outside_of_sentences(serve):
    translator = CopyingTranslator(change=str.upper)
    text = "1. Ein Hund.\n  - eine Katze.  Ja.\n2)\nAm 3. Mai."
    assert serve(translator).translate(text)["translatedText"] == text.upper()
    assert sorted(translator.calls[0]) == ["Am 3. Mai.", "Ein Hund.", "Ja.", "eine Katze."]
    html = "<ol><li>a) Ein Hund<br>• Eine <b>Katze</b></ol>"
    translator = CopyingTranslator()
    assert serve(translator).translate(html, format="html") == {"translatedText": html}
    assert sorted(one for call in translator.calls for one in call) == ["Ein Hund", "Eine Katze"]


def test_models_with_several_targets(serve):
    translator = CopyingTranslator(source="en", tags=("de", "fr"))
    server = serve(translator)
    assert server.post("/translate", json={"q": "One. Two.", "source": "en", "target": "fr"}).status_code == 200
    assert sorted(translator.calls[0]) == [">>fr<< One.", ">>fr<< Two."]
    assert server.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["de", "fr", "en"]},
        {"code": "de", "name": "German", "targets": ["de"]},
        {"code": "fr", "name": "French", "targets": ["fr"]},
    ]
    korean = server.get("/languages", headers={"accept-language": "x-none, ko-KR;q=0.9,en"}).json()
    assert [one["name"] for one in korean] == ["영어", "독일어", "프랑스어"]


def test_names_of_languages_in_the_codes_of_others(serve):
    """Those of mBART, LibreTranslate and FLORES."""
    server = serve(CopyingTranslator(source="en_XX", tags=("zt", "pb", "kor_Hang")))
    korean = server.get("/languages", headers={"accept-language": "ko"}).json()
    assert [one["name"] for one in korean] == ["영어", "중국어 (번체)", "포르투갈어 (브라질)", "한국어"]


def test_programs_that_ask_libretranslate_are_answered(serve):
    """The requests that Mastodon, Discourse and Weblate make, and what they read of the answers."""
    server = serve()
    posts = ["<p>Ein Hund.</p>", "<p>Zwei <b>Hunde</b>.</p>"]
    asked = {"q": posts, "source": "auto", "target": "en", "format": "html", "api_key": None}
    mastodon = server.post("/translate", json=asked).json()
    assert mastodon["translatedText"] == posts
    assert [one["language"] for one in mastodon["detectedLanguage"]] == ["de", "de"]
    languages = {
        one["code"]: [code for code in one["targets"] if code != one["code"]] for one in server.get("/languages").json()
    }
    assert languages == {"de": ["en"], "en": []}

    discourse = server.post("/detect", data={"q": "Der Hund schläft auf der Wiese."}).json()
    assert (discourse[0]["language"], discourse[0]["confidence"] > 50) == ("de", True)
    fields = {"q": "<p>Ein Hund.</p>", "source": "de", "target": "en", "format": "html"}
    assert server.post("/translate", data=fields).json()["translatedText"] == "<p>Ein Hund.</p>"

    weblate = server.post("/translate", json={"source": "de", "target": "en", "q": "Ein Hund.", "api_key": ""})
    assert weblate.json()["translatedText"] == "Ein Hund."
    full = serve(rate_limit=((60, 1),))
    assert [full.post("/translate", json=GOOD).status_code for _ in range(2)] == [200, 429]


def test_requests_are_read_as_libretranslate_reads_them(serve):
    server = serve()
    for alternatives in (2, "2", 2.0):
        found = server.translate("Hund", alternatives=alternatives)
        assert found["alternatives"] == ["2 Hund", "3 Hund"]
    infinite = json.dumps(GOOD).replace("{", '{"alternatives": 1e400, ', 1)
    refused = server.post("/translate", content=infinite, headers={"content-type": "application/json"})
    assert (refused.status_code, refused.json()["error"].startswith("alternatives")) == (400, True)
    json_ = {"content": json.dumps(GOOD), "headers": {"content-type": "application/vnd.api+json"}}
    assert server.post("/translate", **json_).status_code == 200
    assert server.translate("Ein Hund", source="de", target="de") == {"translatedText": "Ein Hund"}
    correcting = serve(CopyingTranslator("en", "en", change=str.upper))
    assert correcting.translate("a dog", source="en", target="en") == {"translatedText": "A DOG"}
    assert server.get("/spec").json() == server.get("/openapi.json").json()
    assert server.get("/health", headers={"range": "bytes=x"}).status_code == 200
    assert serve(allowed_hosts=("localhost",)).get("/languages", headers={"host": "localhost.:5000"}).status_code == 200


def test_settings_for_pages(serve):
    settings = serve(api_keys={"k": None}, max_characters=77).get("/frontend/settings").json()
    assert settings["charLimit"] == 77
    assert settings["maxTexts"] == 32
    assert settings["keyRequired"] is True
    assert settings["language"]["source"] == {"code": "de", "name": "German"}


def test_inspect_gives_the_record(serve):
    server = serve()
    edits = [{"kind": "head_off", "attention": "cross", "layer": 1, "head": 0}]
    fields = {"translation": "A dog.", "edits": edits, "cases": [edits, []], "beam_size": 3, "arrays": "none"}
    fields["order"] = True
    fields["analyses"] = ["erasure", {"kind": "patching", "other": "Ein Hut."}]
    record = server.post("/inspect", json={**GOOD, **fields}).json()
    edit = str(HeadOff(attention="cross", layer=1, head=0))
    assert record == {
        "text": "Ein Hund.",
        "target": "A dog.",
        "beam_size": 3,
        "edits": [edit],
        "cases": [str(read_edits(edits)), "[]"],
        "analyses": [str(one) for one in read_analyses(fields["analyses"])],
        "order": True,
        "arrays": "none",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"edits": [{"kind": "explode"}]},
        {"edits": [{"kind": "head_off"}]},
        {"edits": "head_off"},
        {"edits": [{"kind": "positions_off"}] * 17},
        {"cases": [["head_off"]]},
        {"cases": [[]] * 5},
        {"cases": [[{"kind": "positions_off"}] * 17]},
        {"arrays": "some"},
        {"beam_size": 17},
        {"translation": "x" * 129},
        {"q": "x" * 129},
        {"q": "x" * 41, "analyses": ["erasure"]},
        {"analyses": ["guess"]},
        {"analyses": ["patching"]},
        {"analyses": [{"kind": "patching", "other": "x" * 41}]},
        {"analyses": [{"kind": "contrast", "instead": "x" * 41}]},
        {"analyses": [{"kind": "head_importance", "pairs": []}]},
        {"analyses": [{"kind": "head_importance", "pairs": [["a", "b"]] * 101}]},
        {"analyses": [{"kind": "head_importance", "pairs": [["a", "x" * 41]]}]},
        {"analyses": ["erasure"] * 9},
    ],
    ids=str,
)
def test_what_can_not_be_inspected_is_refused(serve, change):
    answer = serve().post("/inspect", json={**GOOD, **change})
    assert (answer.status_code, set(answer.json())) == (400, {"error"})


def test_align_links_the_words_of_a_text_and_of_a_list(serve):
    server = serve()
    one = {**GOOD, "q": "a b c", "translation": "c a"}
    for kind in ("json", "data"):
        assert server.post("/align", **{kind: one}).json() == {"links": [[0, 1], [2, 0]]}
    several = {**GOOD, "q": ["a b", "", "c"], "translation": ["b", "", "c"]}
    assert server.post("/align", json=several).json() == {"links": [[[1, 0]], [], [[0, 0]]]}


def test_align_asks_the_model_of_each_text_with_its_tag(serve):
    asked = []

    class Watched(CopyingTranslator):
        def align(self, sources, targets):
            asked.append((self.info.source_language, sources))
            return super().align(sources, targets)

    server = serve(Watched("ko", tags=("en", "fr")), Watched("de", "en"))
    texts = ["나 a", "b", "다 c"]
    fields = {"q": texts, "translation": ["a", "b", "c"], "source": "auto", "target": "en"}
    assert server.post("/align", json=fields).json() == {"links": [[[2, 0]], [[0, 0]], [[2, 0]]]}
    assert asked == [("ko", [">>en<< 나 a", ">>en<< 다 c"]), ("de", ["b"])]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/align", {"translation": "x" * 30}),
        ("/inspect", {"translation": "x" * 30}),
        ("/inspect", {"analyses": [{"kind": "contrast", "instead": "x" * 30}]}),
        ("/inspect", {"analyses": [{"kind": "head_importance", "pairs": [["a", "x" * 30]]}]}),
    ],
    ids=str,
)
def test_translations_are_measured_as_the_model_writes_them(serve, path, fields):
    """Its two vocabularies cut a text into pieces of different length."""
    for longest, longest_target, status in ((20, 40, 200), (40, 20, 400)):
        server = serve(CopyingTranslator(longest=longest, longest_target=longest_target))
        assert server.post(path, json={**GOOD, **fields}).status_code == status


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"translation": ["a"]}, "translation: one for each text of q is needed"),
        ({"q": ["a", "b"], "translation": ["a"]}, "translation: one for each text of q is needed"),
        ({"q": ["a", "b"], "translation": "a"}, "translation: one for each text of q is needed"),
        ({"translation": None}, "translation: Field required"),
        ({"translation": "a" * 500}, "too long to align"),
        ({"q": "a" * 500}, "too long to align"),
        ({"translation": "a" * 20_000}, "translation: a text of 20000 characters"),
        ({"q": ["a"] * 200, "translation": ["a"] * 200}, "q: 200 texts in one request"),
        ({"target": "fr"}, "target: unknown; choose one of en"),
    ],
)
def test_what_can_not_be_aligned_is_refused(serve, change, said):
    answer = serve().post("/align", json={**GOOD, "translation": "A dog.", **change})
    assert (answer.status_code, set(answer.json())) == (400, {"error"})
    assert said in answer.json()["error"]


@pytest.mark.parametrize("path", ["/translate", "/detect", "/inspect", "/align"])
@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"null",
        b"42",
        b'"text"',
        b"",
        b"{",
        b'{"q": "a", "source": "de"',
        b"[" * 10_000 + b"]" * 10_000,
        b'{"q":' * 10_000 + b"1" + b"}" * 10_000,
        b'{"q": "\\ud800", "source": "de", "target": "en"}',
        b'{"q": "\xff\xfe", "source": "de", "target": "en"}',
        b'{"q": NaN, "source": "de", "target": "en"}',
        b'{"q": 1, "source": "de", "target": "en"}',
        b'{"q": null, "source": "de", "target": "en"}',
        b'{"q": {"a": 1}, "source": "de", "target": "en"}',
        b'{"q": ["a", 1], "source": "de", "target": "en"}',
        b'{"q": [["a"]], "source": "de", "target": "en"}',
        b'{"source": "de", "target": "en"}',
        b'{"q": "a", "source": "de", "target": "en", "api_key": []}',
    ],
    ids=lambda body: str(body[:30]),
)
def test_what_is_no_request_is_refused_in_json(serve, path, body):
    answer = serve().post(path, content=body, headers=JSON)
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}


@pytest.mark.parametrize(
    "change",
    [
        {"source": "xx"},
        {"source": 1},
        {"source": None},
        {"target": "xx"},
        {"target": ["en"]},
        {"format": "pdf"},
        {"alternatives": -1},
        {"alternatives": 16},
        {"alternatives": True},
        {"alternatives": "one"},
        {"alternatives": 1.5},
        {"beam_size": 0},
        {"beam_size": -1},
        {"beam_size": 17},
        {"beam_size": 1e9},
        {"beam_size": 10**30},
        {"beam_size": True},
        {"beam_size": "4"},
        {"api_key": 5},
    ],
    ids=str,
)
def test_impossible_fields_are_named(serve, change):
    answer = serve().post("/translate", json={**GOOD, **change})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(next(iter(change)))


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"q=a", "text/plain"),
        (b"<q>a</q>", "application/xml"),
        (b"a", "multipart/form-data"),
        (b"--x\r\nContent-Disposition: form-data; name=q", "multipart/form-data; boundary=x"),
        (
            b'--x\r\nContent-Disposition: form-data; name="q"; filename="f"\r\n\r\na\r\n--x--\r\n',
            "multipart/form-data; boundary=x",
        ),
        (b"&".join(b"a=b" for _ in range(1000)), "application/x-www-form-urlencoded"),
        (b"q=%ff%fe&source=de", "application/x-www-form-urlencoded"),
        (b"beam_size=True&q=a&source=de&target=en", "application/x-www-form-urlencoded"),
    ],
    ids=str,
)
def test_other_bodies_are_refused(serve, content, kind):
    answer = serve().post("/translate", content=content, headers={"content-type": kind})
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}


@pytest.mark.parametrize("path", ["/translate", "/detect", "/inspect", "/align"])
@pytest.mark.parametrize(
    "fields",
    [{"q": "Hund \ud83d"}, {"q": "\ude00\ud83d"}, {"q": ["Hund", "\udc00 Katze"]}, {"\ud83d": "x"}],
    ids=str,
)
def test_half_an_emoji_is_told_with_its_place(serve, path, fields):
    answer = serve().post(path, content=json.dumps({**GOOD, **fields}), headers=JSON)
    assert answer.status_code == 400
    said = "body: holds half of a surrogate pair, which is no character"
    assert re.match(rf"{said} \(.* at line 1 column \d+\)", answer.json()["error"])


def test_whole_emoji_in_escapes_are_text(serve):
    answer = serve().post("/translate", content=json.dumps({**GOOD, "q": "Hund 😀"}), headers=JSON)
    assert answer.json() == {"translatedText": "Hund 😀"}


@pytest.mark.parametrize("path", ["/translate", "/detect", "/inspect", "/align"])
@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        (
            b'{"q": "a"}',
            "application/x-www-form-urlencoded",
            "x-www-form-urlencoded, but the body looks like JSON; send",
        ),
        (
            b' {"q": "a"}',
            "multipart/form-data",
            "multipart/form-data, but the body looks like JSON; send application/json",
        ),
        (b'{"q": "a"}', "text/plain;charset=UTF-8", "Content-Type: is text/plain, but the body looks like JSON"),
        ('{"q": "a"}'.encode("utf-8-sig"), "text/plain", "Content-Type: is text/plain, but the body looks like JSON"),
        (b"q=a", "text/plain", "Content-Type: must be application/json or a form"),
        (b"q=a", None, "Content-Type: is missing; body: is not JSON (expected value at line 1 column 1)"),
        (b"", None, "Content-Type: is missing; body: is not JSON (EOF while"),
        (b"q=a", "application/json", "body: is not JSON (expected value at line 1 column 1)"),
        (b'{"q": "a\nb"}', "application/json", "body: is not JSON (control character"),
        (b"q=a", "", "Content-Type: is missing; body: is not JSON"),
        ('{"q": "a"}'.encode("utf-16"), "application/json", "body: is UTF-16; send UTF-8"),
        ('{"q": "a"}'.encode("utf-16-le"), "application/json", "body: is UTF-16-LE; send UTF-8"),
    ],
    ids=str,
)
def test_a_body_of_another_kind_is_told_what_to_send(serve, path, content, kind, said):
    answer = serve().post(path, content=content, headers={} if kind is None else {"content-type": kind})
    assert answer.status_code == 400
    assert said in answer.json()["error"]


@pytest.mark.parametrize("kind", ["application/json", ""])
def test_json_may_begin_with_a_byte_order_mark(serve, kind):
    answer = serve().post("/translate", content=json.dumps(GOOD).encode("utf-8-sig"), headers={"content-type": kind})
    assert answer.json() == {"translatedText": GOOD["q"]}


def test_json_needs_no_content_type(serve):
    answer = serve().post("/translate", content=json.dumps(GOOD).encode())
    assert answer.json() == {"translatedText": "Ein Hund."}


def test_the_item_of_a_list_that_is_no_text_is_named(serve):
    answer = serve().post("/translate", json={**GOOD, "q": ["a", 1]})
    assert answer.json() == {"error": "q: item 2 is not text"}


def test_texts_at_each_limit(serve):
    server = serve(CopyingTranslator(longest=10_000))
    for length, status in ((4999, 200), (5000, 200), (5001, 400)):
        assert server.post("/translate", json={**GOOD, "q": "ä" * length}).status_code == status
        assert server.post("/detect", json={"q": "ä" * length}).status_code == status
    for count, status in ((31, 200), (32, 200), (33, 400)):
        assert server.post("/translate", json={**GOOD, "q": ["a"] * count}).status_code == status
    for beam, status in ((1, 200), (16, 200), (17, 400)):
        assert server.post("/translate", json={**GOOD, "beam_size": beam}).status_code == status


def test_bodies_at_the_limit(serve):
    server = serve(max_body=1000)
    smallest = len(json.dumps({**GOOD, "x": ""}))
    for size, status in ((999, 200), (1000, 200), (1001, 413)):
        body = json.dumps({**GOOD, "x": "a" * (size - smallest)}).encode()
        assert len(body) == size
        assert server.post("/translate", content=body, headers=JSON).status_code == status

        async def chunks(body=body):
            for start in range(0, len(body), 100):
                yield body[start : start + 100]

        assert server.post("/translate", content=chunks(), headers=JSON).status_code == status


def test_other_paths_and_methods(serve):
    server = serve()
    for method, path, status in (
        ("GET", "/nothing", 404),
        ("GET", "/translate", 405),
        ("POST", "/languages", 405),
        ("POST", "http://localhost//translate", 404),
        ("GET", "/page/../app.py", 404),
        ("GET", "/page/%2e%2e/app.py", 404),
        ("DELETE", "/translate", 405),
        ("POST", "/translate/", 404),
    ):
        [answer] = server.ask((method, path, {}))
        assert (answer.status_code, set(answer.json())) == (status, {"error"}), path


def test_who_asks_for_the_head_gets_it(serve):
    server = serve()
    for path in ("/", "/health", "/ready", "/languages", "/metrics", "/docs", "/frontend/settings", "/page/main.js"):
        [answer] = server.ask(("HEAD", path, {}))
        assert (answer.status_code, answer.content) == (200, b""), path
    assert server.ask(("HEAD", "/translate", {}))[0].status_code == 405


def test_the_page_is_of_one_version_and_at_any_path(serve):
    """Browsers ask whether a module is still the same; and a proxy may put the server under a path of its own."""
    server = serve()
    for path in ("/", "/docs", "/page/main.js", "/page/words.js", "/page/page.css", "/glass/glass.js"):
        answer = server.get(path)
        assert answer.headers["cache-control"] == "no-cache"
        again = server.get(path, headers={"if-none-match": answer.headers["etag"]})
        assert again.status_code == (304 if path.count("/") > 1 else 200)
        assert not re.search(r"""["'`]/(?!/)\w""", answer.text), f"{path} names a path from the root"


def test_the_page_and_the_description_are_there(serve):
    server = serve()
    page = server.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    assert "http" not in page.text.replace("http-equiv", ""), "everything comes from the server itself"
    assert server.get("/docs").status_code == 200
    assert server.get("/page/main.js").headers["content-type"].startswith("text/javascript")
    paths = server.get("/openapi.json").json()["paths"]
    assert set(paths) == {
        "/translate",
        "/translate_file",
        "/detect",
        "/inspect",
        "/align",
        "/languages",
        "/frontend/settings",
        "/health",
        "/ready",
        "/metrics",
    }
