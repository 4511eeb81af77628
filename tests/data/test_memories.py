"""Pairs from translators' files and tables: what is read, what is left out, and damaged or hostile files, which end in
pairs or in one line."""

import csv
import gettext
import gzip
import io
import random
import zipfile
from unittest.mock import Mock
from xml.etree import ElementTree

import openpyxl
import pytest
from translate.storage import pypo
from translate.tools.pocompile import POCompile
from typer.testing import CliRunner

from headway.cli import app
from headway.data import memories
from headway.data.corpus import CorpusFiles, read_chunks
from headway.data.encoding import ChunkEncoder, EncodingSettings
from headway.data.lines import Layout
from headway.data.options import FiltersSection
from headway.data.splitting import split_corpus
from headway.data.tables import read_rows
from headway.errors import UserError
from headway.text.words import WordTokenizer

TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en-US" segtype="sentence"/><body>
<tu><prop type="page">one</prop>
<tuv xml:lang="en-US"><seg>Press <bpt i="1">&lt;b&gt;</bpt>OK<ept i="1">&lt;/b&gt;</ept> &amp; wait<ph x="2"/>
then go.</seg></tuv>
<tuv xml:lang="de-DE"><seg> <hi>OK</hi> drücken.\t</seg></tuv></tu>
<tu><prop type="page">two</prop><tuv xml:lang="de-DE"><seg>Ja</seg></tuv><tuv xml:lang="en-US"><seg>Yes</seg></tuv></tu>
<tu><tuv xml:lang="en-US"><seg>Alone</seg></tuv></tu>
</body></tmx>
"""
TMX_PAIRS = [(r'Press <b>OK</b> & wait<ph x="2"/>\nthen go.', "OK drücken.", 4), ("Yes", "Ja", 8)]
XLIFF = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="menu.c" source-language="en" target-language="ko"><body>
<trans-unit id="1"><source>Save <g id="1">all</g><x id="2"/></source><target>모두 <g id="1">저장</g><x id="2"/></target>
<alt-trans><source>Save</source><target>저장</target></alt-trans></trans-unit>
<trans-unit id="2"><source>Open</source><target state="needs-review-translation">열기</target></trans-unit>
<trans-unit id="3"><source>Close</source></trans-unit>
<trans-unit id="4" translate="no"><source>GTK</source><target>GTK</target></trans-unit></body></file></xliff>
"""
XLIFF_2 = """<xliff version="2.0" srcLang="en" trgLang="ko" xmlns="urn:oasis:names:tc:xliff:document:2.0">
<file id="f1" original="menu.c"><unit id="1"><originalData><data id="d">%d</data><data id="b">&lt;b></data>
<data id="e">&lt;/b></data></originalData>
<segment><source><ph id="1" dataRef="d"/> <pc id="2" dataRefStart="b" dataRefEnd="e">files</pc><sc id="3"/></source>
<target>파일 <ph id="1" dataRef="d"/>개</target></segment>
<segment state="initial"><source>a</source><target>b</target></segment></unit></file></xliff>
"""
HEADER = r"""msgid ""
msgstr ""
"Project-Id-Version: app 1\n"
"PO-Revision-Date: 2026-01-01 00:00+0000\n"
"Last-Translator: A <a@example.org>\n"
"Language-Team: T <t@example.org>\n"
"Language: de\n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"
"""
PO = (
    HEADER
    + r"""
#: menu.c:7 other.c:2
msgid "_File\n"
"<b>two</b>\n"
msgstr "_Datei\n"
"<b>zwei</b>\n"

#, fuzzy
msgid "unsure"
msgstr "unsicher"

msgid "not yet"
msgstr ""

#: list.c:3
#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"

msgctxt "door"
msgid "open"
msgstr "offen"

#~ msgid "old"
#~ msgstr "alt"
"""
)
PO_PAIRS = [
    (r"_File\n<b>two</b>", r"_Datei\n<b>zwei</b>", 13),
    ("%d file", "%d Datei", PO.splitlines().index("#: list.c:3") + 1),
    ("%d files", "%d Dateien", PO.splitlines().index("#: list.c:3") + 1),
    ("open", "offen", PO.splitlines().index('msgctxt "door"') + 1),
]
CSV = 'id;source;target\n1;"a ""word""\nand";ein\tWort\n2;b;"c;d"\n'


def mo(text):
    """The compiled catalogue, for Python's own reader too."""
    return POCompile.convertstore(pypo.pofile.parsestring(text.encode()))


def xlsx(rows):
    book, written = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.worksheets[0].append(row)
    book.save(written)
    return written.getvalue()


def contents():
    found = {"a.tmx": TMX, "a.xliff": XLIFF, "b.xlf": XLIFF_2, "a.po": PO, "a.csv": CSV}
    made = {name: text.encode() for name, text in found.items()}
    made["a.xlsx"] = xlsx([["source", "target"], ["ja", "yes"], ["eins\nzwei", 12]])
    made["a.mo"] = mo(PO)
    return made


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for name, content in contents().items():
        (folder / name).write_bytes(content)
    return folder


def pairs_of(path, languages=("", "")):
    found = list(CorpusFiles([path], [], languages).pairs())
    in_chunks = [pair for chunk in read_chunks([CorpusFiles((path,), (), languages)]) for pair in chunk.pairs()]
    assert in_chunks == found
    return [(pair.source, pair.target, pair.line) for pair in found]


def notices(path):
    return [one.removeprefix(f"{path}: ") for one in CorpusFiles([path], []).notices()]


def test_a_memory_has_the_pairs_of_the_chosen_languages(files):
    path = files / "a.tmx"
    for languages in (("", ""), ("en", "de"), ("en-US", ""), ("", "de")):
        assert pairs_of(path, languages) == TMX_PAIRS
    for languages in (("de", "en"), ("de", ""), ("", "en_US")):
        assert pairs_of(path, languages) == [(target, source, line) for source, target, line in TMX_PAIRS]
    assert CorpusFiles([path], []).named_languages() == ("en-US", "de-DE")
    assert notices(path) == ["entries left out: without one of the languages 1"]
    texts = ["".join(one.itertext()).strip() for one in ElementTree.fromstring(TMX).iter("seg")]
    assert [pair[1] for pair in TMX_PAIRS] == [texts[1], texts[2]]


def test_languages_that_a_memory_leaves_open_are_suggested(tmp_path):
    path = tmp_path / "a.tmx"
    path.write_text(TMX.replace("en-US", "*all*", 1), encoding="utf-8")
    with pytest.raises(UserError, match=r"en-US, de-DE; choose, .*source_language=en-US data\.target_language=de-DE"):
        pairs_of(path)
    assert pairs_of(path, ("de", "en"))[1][:2] == ("Ja", "Yes")
    with pytest.raises(UserError, match="has no pair in fr and en; has en-US, de-DE"):
        pairs_of(path, ("fr", "en"))


def test_xliff_keeps_tags_or_their_code_and_leaves_out_what_is_not_done(files):
    source, target = 'Save <g id="1">all</g><x id="2"/>', '모두 <g id="1">저장</g><x id="2"/>'
    assert pairs_of(files / "a.xliff") == [(source, target, 3)]
    assert pairs_of(files / "a.xliff", ("ko", "en")) == [(target, source, 3)]
    assert notices(files / "a.xliff") == ["entries left out: fuzzy 1, untranslated 1, not to be translated 1"]
    assert pairs_of(files / "b.xlf") == [('%d <b>files</b><sc id="3"/>', "파일 %d개", 4)]
    group = XLIFF.replace("<trans-unit", '<group translate="no"><trans-unit', 1).replace("</body>", "</group></body>")
    (files / "c.xliff").write_text(group.replace('id="3"', 'id="3" translate="yes"'), encoding="utf-8")
    assert notices(files / "c.xliff") == ["entries left out: not to be translated 3, untranslated 1"]
    for name in ("a.xliff", "b.xlf"):
        assert CorpusFiles([files / name], []).named_languages() == ("en", "ko")
        with pytest.raises(UserError, match=rf"{name}, line \d: is in en and ko, not in fr and ko"):
            pairs_of(files / name, ("fr", "ko"))


def test_a_catalogue_gives_what_is_translated_and_counts_the_rest(files):
    assert pairs_of(files / "a.po") == PO_PAIRS
    assert pairs_of(files / "a.po", ("de", "en")) == [(target, source, line) for source, target, line in PO_PAIRS]
    assert notices(files / "a.po") == ["entries left out: fuzzy 1, untranslated 1, obsolete 1"]
    assert CorpusFiles([files / "a.po"], []).named_languages() == ("", "de")


def test_a_language_without_plural_has_the_plural_alone(tmp_path):
    path = tmp_path / "a.po"
    path.write_text(HEADER + '\nmsgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "파일 %d개"\n', encoding="utf-8")
    assert pairs_of(path) == [("%d files", "파일 %d개", 13)]


def test_a_compiled_catalogue_has_the_same_pairs_and_those_of_python(files):
    found = pairs_of(files / "a.mo")
    assert sorted(pair[:2] for pair in found) == sorted(pair[:2] for pair in PO_PAIRS)
    with open(files / "a.mo", "rb") as stream:
        read = gettext.GNUTranslations(stream)
    assert read.ngettext("%d file", "%d files", 5) == dict(pair[:2] for pair in found)["%d files"]


def test_a_catalogue_is_parsed_once(tmp_path, monkeypatch):
    """However often its pairs are read, until it changes."""
    path, parsed = tmp_path / "a.po", Mock(side_effect=memories.parse_catalogue)
    monkeypatch.setattr(memories, "parse_catalogue", parsed)
    for word in ("offen", "auf"):
        path.write_text(PO.replace("offen", word), encoding="utf-8")
        assert CorpusFiles([path], []).named_languages() == ("", "de")
        assert ("open", word) in [pair[:2] for pair in pairs_of(path)]
    assert parsed.call_count == 2


def test_both_pairs_of_a_plural_train(files):
    """They stand on one line."""
    [chunk] = read_chunks([CorpusFiles((files / "a.po",), (), ("en", "de"))])
    tokenizer, languages = WordTokenizer(["a"]), (("", ("en", "de")),)
    filtered = ChunkEncoder(EncodingSettings((tokenizer, tokenizer), 99, 99, languages, FiltersSection())).filtered(
        chunk
    )
    assert filtered.texts == [pair[:2] for pair in PO_PAIRS]


def test_tables_have_named_or_chosen_columns(files):
    assert pairs_of(files / "a.csv") == [(r'a "word"\nand', "ein Wort", 3), ("b", "c;d", 4)]
    assert pairs_of(files / "a.xlsx") == [("ja", "yes", 2), (r"eins\nzwei", "12", 3)]
    read = list(csv.reader(io.StringIO(CSV), delimiter=";"))
    chosen = CorpusFiles([files / "a.csv"], [], columns=(2, 0)).pairs()
    assert [(pair.source, pair.target) for pair in chosen][1:] == [(row[2], row[0]) for row in read[2:]]


def test_a_cell_may_go_on_after_the_lines_that_tell_the_delimiter(tmp_path):
    rows = ["en;de", *(f"{i};{i}" for i in range(98)), '"one,', 'two";zwei']
    (tmp_path / "a.csv").write_text("".join(f"{row}\n" for row in rows))
    assert pairs_of(tmp_path / "a.csv")[-1] == (r"one,\ntwo", "zwei", 101)


@pytest.mark.parametrize("delimiter", list(",;\t"))
def test_a_delimiter_is_found_though_texts_have_others_and_a_row_is_longer(tmp_path, delimiter):
    rows = [("a, b; c", "d, e; f"), ("g; h, i", "j"), ("k", "l\tm"), ("n", "o", "p")]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(rows)
    with (tmp_path / "a.csv").open("rb") as stream:
        read = [cells for _, cells in read_rows(stream, map(bytes.decode, stream), tmp_path / "a.csv")]
    assert read == [[cell.replace("\t", " ") for cell in row] for row in rows]


def test_a_cell_may_have_as_much_text_as_a_line_of_a_tsv_file(tmp_path):
    (tmp_path / "a.csv").write_text(f"{'a' * 200_000},b\n")
    assert pairs_of(tmp_path / "a.csv") == [("a" * 200_000, "b", 1)]


def test_compressed_files_are_read(files, tmp_path):
    (tmp_path / "a.tmx.gz").write_bytes(gzip.compress(TMX.encode()))
    assert pairs_of(tmp_path / "a.tmx.gz") == TMX_PAIRS
    (tmp_path / "b.tmx.gz").write_bytes(gzip.compress(TMX.encode())[:-20])
    with pytest.raises(UserError, match="is it complete"):
        pairs_of(tmp_path / "b.tmx.gz")


@pytest.mark.parametrize(("name", "field"), [("a.po", "reference"), ("a.tmx", "page"), ("a.xliff", "original")])
def test_documents_stay_whole(tmp_path, name, field):
    """200 documents of three pairs: all pairs of each are in one part."""
    documents = [
        (f"d{number}", f"text {number} {one}", f"Wort {number} {one}") for number in range(200) for one in "abc"
    ]
    forms = {
        "a.po": (HEADER, '\n#: {}:1\nmsgid "{}"\nmsgstr "{}"\n', ""),
        "a.tmx": (
            '<tmx version="1.4"><header srclang="en"/><body>',
            '<tu><prop type="page">{}</prop><tuv xml:lang="en"><seg>{}</seg></tuv>'
            '<tuv xml:lang="de"><seg>{}</seg></tuv></tu>',
            "</body></tmx>",
        ),
        "a.xliff": (
            '<xliff version="1.2">',
            '<file original="{}" source-language="en" target-language="de"><body><trans-unit id="1"><source>{}</source>'
            "<target>{}</target></trans-unit></body></file>",
            "</xliff>",
        ),
    }
    head, entry, end = forms[name]
    (tmp_path / name).write_text(head + "".join(entry.format(*one) for one in documents) + end, encoding="utf-8")
    corpus = CorpusFiles([tmp_path / name], [])
    split_corpus(corpus, tmp_path / "split", ("en", "de"), document=Layout(field=field), tell=lambda _: None)
    parts = {part: (tmp_path / "split" / f"{part}.en").read_text().splitlines() for part in ("train", "valid", "test")}
    numbers = {part: {line.split()[1] for line in lines} for part, lines in parts.items()}
    assert len(parts["valid"]) >= 60 <= len(parts["test"])
    assert not numbers["valid"] & numbers["test"]
    assert not numbers["train"] & (numbers["valid"] | numbers["test"])
    with pytest.raises(UserError, match=rf"{name}, line \d+: names no chapter"):
        split_corpus(corpus, tmp_path / "new", ("en", "de"), document=Layout(field="chapter"), tell=lambda _: None)


BOMB = '<!DOCTYPE tmx [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {two} "{f"&{one};" * 10}">' for one, two in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.po", 'msgid "a"\nmsgstr "b"\n\nmsgid "c"\nmsgsr "d"\n', "a.po, line 5: isn't part of a .po file: 'msgsr"),
        ("a.po", HEADER.encode() + b'\nmsgid "a"\nmsgstr "\xff"\n', "a.po, line 14: isn't utf-8, which its header"),
        ("a.po", "no catalogue\n", "a.po, line 1: isn't part of a .po file"),
        ("a.tmx", TMX[:400], r"a.tmx, line \d+: isn't whole XML"),
        ("a.tmx", TMX.replace("<seg>Ja", "<seg>&nbsp;Ja"), r"a.tmx, line 8"),
        ("a.tmx", f"{BOMB}]><tmx><body>&i;</body></tmx>", "a.tmx: declares entities"),
        ("a.tmx", '<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]><tmx>&x;</tmx>', "a.tmx: declares entities"),
        ("a.xliff", XLIFF.replace("</source>", "", 1), "a.xliff, line 4: isn't whole XML"),
        ("a.mo", b"\xde\x12\x04\x95" + b"\0" * 4 + b"\xff" * 4 + b"\0" * 8, "a.mo: entry .* is outside the file"),
        ("a.mo", b"PK", "a.mo: isn't a .mo file"),
        ("a.csv", 'a,"b\n', "a.csv, line 1: isn't part of a .csv file"),
        ("a.csv", "a,b\nc,d,e\n", "a.csv, line 2: has 3 columns, but the lines before have 2"),
        ("a.csv", "source;target\na;b\nleft, alone\nc;d\n", "a.csv, line 3: has 1 column, but the lines before have 2"),
        ("a.csv", "source\na\n", "a.csv, line 1: has 1 column; give two"),
        ("a.xlsx", "no workbook", "a.xlsx: can't be read as .xlsx"),
    ],
)
def test_broken_files_are_named_with_their_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=message) as raised:
        pairs_of(path, ("en", "ko" if name == "a.xliff" else "de"))
    assert "\n" not in str(raised.value)


def test_a_workbook_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/workbook.xml", "x" * 5_000_000)
    monkeypatch.setattr("headway.data.tables.LARGEST", 1 << 20)
    with pytest.raises(UserError, match=r"a\.xlsx: unpacks to more than 1 MiB"):
        pairs_of(tmp_path / "a.xlsx")


def test_entities_of_a_sheet_are_bounded(tmp_path):
    content = io.BytesIO(xlsx([["source", "target"], ["HERE", "yes"]]))
    with zipfile.ZipFile(content) as whole, zipfile.ZipFile(tmp_path / "a.xlsx", "w") as parts:
        for name in whole.namelist():
            text = whole.read(name).decode()
            parts.writestr(name, f"{BOMB}]>{text.replace('HERE', '&i;')}" if "HERE" in text else text)
    with pytest.raises(UserError, match=r"a\.xlsx: can't be read as \.xlsx \(limit on input amplification"):
        pairs_of(tmp_path / "a.xlsx")


def fault_of(path):
    """The error in reading the file; empty for one that is read, to pairs in one line each."""
    try:
        list(CorpusFiles([path], []).notices())
        return "" if all("\n" not in pair[0] + pair[1] for pair in pairs_of(path)) else "two lines"
    except UserError as error:
        return str(error)


def damaged(content, chance):
    """The file with a few bytes changed, cut, doubled or taken from elsewhere in it."""
    made = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        at, length = chance.randrange(len(made) + 1), chance.choice((1, 1, 2, 8, 60))
        kind = chance.randrange(4)
        if kind == 0:
            made[at : at + length] = chance.randbytes(length)
        elif kind == 1:
            del made[at : at + length]
        elif kind == 2:
            made[at:at] = made[at : at + length] * chance.randint(1, 3)
        else:
            start = chance.randrange(len(made) + 1)
            made[at:at] = made[start : start + length]
    return bytes(made[: chance.randrange(len(made) + 1)] if chance.random() < 0.2 else made)


@pytest.mark.parametrize("name", ["a.tmx", "a.xliff", "b.xlf", "a.po", "a.mo", "a.csv", "a.xlsx"])
def test_hundreds_of_damaged_files_end_in_pairs_or_in_one_line(tmp_path, files, name):
    chance, path, refused = random.Random(name), tmp_path / name, 0
    content = (files / name).read_bytes()
    for _ in range(300):
        path.write_bytes(damaged(content, chance))
        fault = fault_of(path)
        refused += bool(fault)
        assert "\n" not in fault
        assert fault.startswith(str(path)) or not fault
    assert 10 < refused < 300 or name == "a.csv"


def test_check_and_split_read_them(files, tmp_path):
    run = CliRunner().invoke
    said = run(app, ["check", str(files / "a.po")])
    assert said.exit_code == 0
    assert "4 pairs" in said.output
    assert "entries left out: fuzzy 1, untranslated 1, obsolete 1" in said.output
    fr = ["check", str(files / "a.tmx"), "--source-language", "fr", "--target-language", "en"]
    assert "has no pair in fr and en" in str(run(app, fr).exception)
    nameless = ["split", str(files / "a.po"), "--output", str(tmp_path / "s")]
    assert "give --source-language CODE" in str(run(app, nameless).exception)


def test_training_takes_the_languages_of_the_file(files, tmp_path):
    from headway.recipe.reading import make_recipe

    def languages(name, *given):
        one = {"source": str(files / name)}
        data = make_recipe({"data": {"train": one, "valid": one}}, [*given, "training.max_steps=1"], "x").data
        return data.source_language, data.target_language

    assert languages("a.tmx") == ("en-US", "de-DE")
    assert languages("a.tmx", "data.source_language=de") == ("de", "en-US")
    assert languages("a.po", "data.source_language=en") == ("en", "de")


@pytest.mark.parametrize("name", ["a.xlsx", "a.mo"])
def test_a_recipe_prepares_files_that_are_not_text(files, tmp_path, name):
    from headway.data.prepare import prepare
    from headway.recipe.reading import make_recipe

    one = {"source": str(files / name)}
    data = {"train": one, "valid": one, "source_language": "en", "target_language": "de"}
    recipe = make_recipe({"data": data, "tokenizer": {"kind": "word"}, "training": {"max_steps": 1}})
    assert prepare(recipe.preparation(32), tmp_path / "data", lambda _: None, lambda *_: None).valid_texts
