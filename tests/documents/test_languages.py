"""The languages that a translated file names."""

import pytest

from headway.documents import translator as documents
from headway.documents.segments import Languages, OpenedFile
from tests.translator.test_translator import translator


@pytest.mark.parametrize(
    ("target", "languages"),
    [
        (None, Languages("en", "en")),
        ("fra_Latn", Languages("en", "fra_Latn")),
        ("eng_Latn:kor_Hang", Languages("eng_Latn", "kor_Hang")),
    ],
)
def test_a_direction_of_a_model_of_many_languages_is_two_languages(target, languages, monkeypatch):
    seen = []

    def open_file(kind, data, given, name):
        seen.append(given)
        return OpenedFile([], lambda translations: b"")

    monkeypatch.setattr(documents, "open_file", open_file)
    monkeypatch.setattr(documents, "language_prefix", lambda *_: "")
    documents.translate_file(translator(), "po", b"", name="a.po", target_language=target)
    assert seen == [languages]
