"""Files that are no UTF-8 text are told by what they are, and text is never taken for one."""

import gzip
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.data import corpus as corpus_module
from headway.data.compressed import fault_of_line
from headway.data.corpus import CorpusFiles, read_chunks, read_lines
from headway.data.lines import span_of_shard
from headway.errors import UserError

TEXTS = ["Ein Hund läuft.\nEr ist braun.\n", "Собака бежит\nпо лугу\n", "Ο σκύλος\nτρέχει\n", "\nNein danke\n", "Nein"]


def complaint(path) -> str:
    with pytest.raises(UserError) as error:
        list(read_lines(path))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_an_encoding_without_a_mark_is_told_and_iconv_converts_it(tmp_path, text, encoding):
    path = tmp_path / "a"
    path.write_bytes(text.encode(encoding))
    message = complaint(path)
    assert f"is {encoding.upper().replace('-', '')[:3]}-{encoding[4:6]}" in message
    named = message.partition("iconv -f ")[2].partition(" ")[0]
    if "line 1:" in message:
        assert path.read_bytes().decode(named) == text
    with pytest.raises(UserError, match="iconv"):
        list(span_of_shard(path, 1, 1).read(path))
    with pytest.raises(UserError, match="iconv"):
        [list(chunk.pairs()) for chunk in read_chunks([CorpusFiles((path,), (path,))])]


@pytest.mark.parametrize(
    ("encoding", "mark"), [("UTF-16", ""), ("UTF-16-BE", "\ufeff"), ("UTF-32", ""), ("UTF-32-BE", "\ufeff")]
)
def test_a_mark_tells_the_encoding(tmp_path, encoding, mark):
    (tmp_path / "a").write_bytes(f"{mark}Größe\n".encode(encoding))
    assert f"line 1: is {encoding[:6]}; convert the file, for example with `iconv -f {encoding[:6]} -t" in complaint(
        tmp_path / "a"
    )


def test_another_encoding_after_good_lines_is_told_in_every_chunk(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_module, "LINES", 2)
    path = tmp_path / "a"
    path.write_bytes(b"good\n" * 4 + "Ein Hund.\n".encode("utf-16-le"))
    assert "line 5: is UTF-16; convert" in complaint(path)
    *good, bad = read_chunks([CorpusFiles((path,), (path,))])
    assert sum(len(list(chunk.pairs())) for chunk in good) == 4
    with pytest.raises(UserError, match="line 5: is UTF-16; convert"):
        list(bad.pairs())


def test_archives_documents_and_other_bytes(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr("word/document.xml", "<w:document/>")
    assert "is a ZIP archive, as .docx" in complaint(tmp_path / "a.docx")
    for data, meaning in (
        (b"%PDF-1.7\n%\xe2\xe3\n", "is a PDF document"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\r", "is an image"),
        (b"\0\1\2ab\0" * 9, "is it a text file"),
        (gzip.compress(gzip.compress(b"text\n")), "is compressed with gzip"),
    ):
        (tmp_path / "a").write_bytes(data)
        assert meaning in complaint(tmp_path / "a")


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="".join(map(chr, range(9))))))
def test_text_without_low_control_characters_is_text(text):
    assert text.startswith(("%PDF-", "{\\rtf", "PK\x03\x04", "BZh91AY")) or fault_of_line(text.encode(), 2) is None
    assert fault_of_line(f" {text}".encode(), 1) is None


@pytest.mark.parametrize("line", ["Ein\0 Hund", "\0\0\0\0", "\x01\x02\x03a", "a\0b\0c\0", "Ein Hund" * 9 + "\0" * 20])
def test_stray_control_characters_make_no_other_encoding(line):
    assert fault_of_line(f"{line}\n".encode(), 1) is None
