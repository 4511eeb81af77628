"""Files that are translated, as LibreTranslate's clients send and fetch them."""

import asyncio
import threading
import zipfile
from io import BytesIO
from types import SimpleNamespace

import pytest

from headway.documents.kinds import KINDS, kind_of
from headway.serving.files import KEPT_SECONDS, KeptFiles, NamedFile
from tests.serving.conftest import CopyingTranslator, at

FILM = "1\r\n00:00:01,000 --> 00:00:02,500\r\n<i>Ein Hund läuft.</i>\r\n"


def send(server, data, name="film.srt", options=None, **fields):
    fields = {"source": "de", "target": "en", **fields}
    return server.post("/translate_file", data=fields, files={"file": (name, data)}, **(options or {}))


def fetch(server, answer):
    assert answer.status_code == 200, answer.text
    address = answer.json()["translatedFileUrl"]
    assert address.startswith("http://localhost/download_file/")
    return server.get(address.removeprefix("http://localhost"))


def packed(content):
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("content.xml", content)
    return made.getvalue()


def test_a_file_is_translated_and_fetched(serve):
    server = serve(CopyingTranslator(change=str.upper))
    found = fetch(server, send(server, FILM.encode(), "mein film.srt"))
    assert found.content.decode() == FILM.replace("Ein Hund läuft", "EIN HUND LÄUFT")
    assert found.headers["content-disposition"] == "attachment; filename*=UTF-8''mein%20film.en.srt"
    assert found.headers["content-type"] == "application/octet-stream", "a page among the files isn't shown"
    settings = server.get("/frontend/settings").json()
    assert settings["filesTranslation"]
    assert {".txt", ".html", ".htm", ".srt", ".xliff", ".xlf"} <= set(settings["supportedFilesFormat"])
    assert {kind_of(f"a{end}") for end in settings["supportedFilesFormat"]} == {None, *KINDS} - {"android"}


def test_plain_text_keeps_its_lines_and_encoding(serve):
    server = serve(CopyingTranslator(change=str.upper))
    text = "Ein Hund.\r\n\r\n  Zwei & drei."
    found = fetch(server, send(server, text.encode("utf-16"), "a.TXT", source="auto"))
    assert found.content.decode("utf-16") == text.upper()


def test_numbers_and_addresses_are_asked_of_a_text_alone(serve):
    server = serve(CopyingTranslator(change=lambda text: f"{text}!"))
    found = fetch(server, send(server, b"1\nEin Hund\na@b.de\n3.5 %", "a.txt"))
    assert found.content == b"1\nEin Hund!\na@b.de\n3.5 %"
    asked = {"q": "1", "source": "de", "target": "en"}
    assert server.post("/translate", json=asked).json()["translatedText"] == "1!"


def test_a_file_in_the_target_language_stays(serve):
    server = serve(CopyingTranslator(change=str.upper))
    assert fetch(server, send(server, FILM.encode(), source="en")).content.decode() == FILM


def test_a_file_names_the_language_as_the_model_does(serve):
    unit = b'<xliff version="1.2"><file><trans-unit><source>Ein Hund</source></trans-unit></file></xliff>'
    server = serve(CopyingTranslator(target="pt-BR"))
    found = fetch(server, send(server, unit, "a.xliff", target="pb"))
    assert b' target-language="pt-BR"' in found.content
    assert found.headers["content-disposition"].endswith("''a.pt-BR.xliff")


def test_a_file_of_another_language_is_refused(serve):
    header = 'msgid ""\nmsgstr "Language: ko\\n"\n\nmsgid "Hund"\nmsgstr ""\n'
    answer = send(serve(), header.encode(), "a.po")
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("a.po: the header's Language is ko, the translation's is en; ")


@pytest.mark.parametrize("first", [["ru", "ko"], ["ko", "ru"]])
@pytest.mark.parametrize("declared", ["ko", "ru"])
def test_a_detected_language_is_compared_with_that_of_a_file(serve, first, declared):
    server = serve(*(CopyingTranslator(source=one, change=lambda text: f"{text}!") for one in first))
    unit = "<trans-unit><source>개가 달린다</source></trans-unit>"
    data = f'<xliff version="1.2"><file source-language="{declared}">{unit}</file></xliff>'
    answer = send(server, data.encode(), "a.xliff", source="auto")
    if declared == "ko":
        assert "개가 달린다!" in fetch(server, answer).content.decode()
    else:
        assert "source-language is ru, the translation's is ko" in answer.json()["error"]


def test_a_memory_is_translated_from_a_detected_language(serve):
    server = serve(*(CopyingTranslator(source=one, change=lambda text: f"{text}!") for one in ("ru", "ko")))
    data = '<tmx><body><tu><tuv xml:lang="ko"><seg>개가 달린다</seg></tuv></tu></body></tmx>'
    assert "개가 달린다!" in fetch(server, send(server, data.encode(), "a.tmx", source="auto")).content.decode()


@pytest.mark.parametrize("source", ["de", "en"])
def test_a_file_is_fetched_whatever_stands_behind_its_language(serve, source):
    server = serve(CopyingTranslator(change=str.upper))
    found = fetch(server, send(server, b"Ein Hund", "a.txt", source=source, target="en./../x"))
    assert found.status_code == 200, found.text
    assert found.headers["content-disposition"].endswith("''a.en.txt")


def test_names_lead_nowhere(serve):
    server = serve()
    for name in ("../../etc/a.srt", "C:\\x\\a.srt", "a\u202e.srt", "x" * 999 + "/a.srt"):
        found = fetch(server, send(server, FILM.encode(), name))
        assert found.headers["content-disposition"] == "attachment; filename*=UTF-8''a.en.srt"
    for path in ("/download_file/x.srt", "/download_file/", "/download_file/..%2f..%2fetc", "/download_file/%00"):
        assert server.get(path).status_code == 404


def test_what_was_cut_off_is_counted(serve):
    translator = CopyingTranslator()
    translator.stopped = "max_length"
    assert send(serve(translator), FILM.encode()).json()["truncated"] == 1


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.exe", b"MZ", "file: a.exe can't be translated; its name must end in .txt, "),
        ("a.pdf", b"%PDF", "a.pdf: .pdf is not translated; convert it first: pdftotext"),
        ("a.srt", b"none", "a.srt: has no times such as"),
        ("a.txt", b"\n\xff", "a.txt: line 2 is not UTF-8"),
        ("a.srt", packed("0" * 17_000_000), "file: a.srt has 17,000,000 bytes when unpacked, the limit is 16,000,000"),
        ("a.odt", packed("0" * 2_000_000), "file: a.odt has 2,000,000 bytes in its pages, the limit is 1,600,000"),
        ("a.txt", b"Ein Hund. " * 17_000, "file: a.txt has 170,000 characters to translate, the limit is 160,000"),
        ("a.txt", b"Ein.\n" * 3000, "more than 2,000 sentences"),
        ("a.txt", b"", "a.txt is empty"),
        ("a.json", rb'{"a": "Ein \ud800 Hund", "b": "[\ud800]"}', r"a.json: 'Ein \ud800 Hund' holds half"),
        ("a.properties", rb"a=Ein \ud800 Hund", r"a.properties: 'Ein \ud800 Hund' holds half"),
        ("a.odt", packed("0").replace(b"PK\1\2", b"PK\0\0"), "a.odt: damaged, or no odt file"),
    ],
)
def test_what_is_refused(serve, name, data, says):
    answer = send(serve(), data, name)
    assert answer.status_code == 400
    assert says in answer.json()["error"]


def test_a_request_without_one_file(serve):
    server, fields = serve(), {"source": "de", "target": "en"}
    no_file = "file: must be one file of a multipart form"
    assert server.post("/translate_file", json={**fields, "file": "text"}).json() == {"error": no_file}
    assert server.post("/translate_file", data={**fields, "file": "text"}).json() == {"error": no_file}
    without = {name: (None, code) for name, code in fields.items()}
    assert "file: " in server.post("/translate_file", files=without).json()["error"]
    two = [("file", ("a.txt", b"a")), ("file", ("b.txt", b"b"))]
    assert server.post("/translate_file", data=fields, files=two).status_code == 400
    assert server.post("/translate", data=fields, files={"q": ("a.txt", b"a")}).status_code == 400


def test_a_file_needs_a_key_and_counts_by_its_text(serve):
    server = serve(api_keys={"secret": ((60, 30),)})
    assert send(server, FILM.encode()).status_code == 403
    refused = send(server, b"1" * 900_000, "a.srt", api_key="secret")
    assert "a.srt: has no times" in refused.json()["error"], "reading took 18 units"
    assert send(server, b"1" * 900_000, "a.srt", api_key="secret").status_code == 429
    server = serve(api_keys={"secret": ((60, 30),)})
    assert send(server, FILM.encode(), api_key="secret").status_code == 200
    refused = send(server, b"Ein Hund. " * 900, "a.txt", api_key="secret")
    assert refused.status_code == 400
    assert "units, the limit is 30 a minute" in refused.json()["error"]


def test_files_are_forgotten():
    time = [0.0]
    kept = KeptFiles(most=800, clock=lambda: time[0])
    first, second = (kept.keep(NamedFile("a", b"x" * 60), "one") for _ in range(2))
    assert kept.get(first) is None, "a client has an eighth"
    assert kept.get(second) == NamedFile("a", b"x" * 60)
    others = [kept.keep(NamedFile("a", b"x" * 99), str(number)) for number in range(8)]
    assert kept.get(second) is None, "all have 800 bytes"
    assert all(kept.get(one) for one in others)
    time[0] = KEPT_SECONDS + 1
    assert kept.get(others[-1]) is None
    large = kept.keep(NamedFile("a", b"x" * 999), "x")
    assert kept.get(large) is not None, "the latest can always be fetched"


def test_progress_is_told_to_whoever_knows_the_request(serve):
    translator, answers = CopyingTranslator(), threading.Semaphore(0)
    translator.go_on = SimpleNamespace(wait=lambda _: answers.acquire(timeout=30))
    server = serve(translator, batch_size=1)

    async def running():
        async with server.client() as client:

            async def reach(done, sentences):
                while (await client.get("/progress/mine")).json() != {"done": done, "sentences": sentences}:
                    await asyncio.sleep(0.002)

            await reach(0, 0)
            file = {"files": {"file": ("a.txt", b"Eins. Zwei. Drei.")}, "headers": {"x-request-id": "mine"}}
            sent = asyncio.create_task(client.post("/translate_file", data={"source": "de", "target": "en"}, **file))
            for done in range(3):
                await reach(done, 3)
                assert (await client.get("/progress/other")).json() == {"done": 0, "sentences": 0}
                answers.release()
            assert (await sent).status_code == 200
            await reach(0, 0)

    asyncio.run(asyncio.wait_for(running(), 20))


def test_clients_wait_for_their_own_files(serve):
    """Two requests of a client at a time; the others are told to come again."""
    server = serve()
    options = {"data": {"source": "de", "target": "en"}, "files": {"file": ("a.srt", FILM.encode())}}
    many = [("POST", "/translate_file", {**options, **at(1)})] * 6
    statuses = {one.status_code for one in server.ask(*many, ("POST", "/translate_file", {**options, **at(2)}))}
    assert statuses <= {200, 429}
