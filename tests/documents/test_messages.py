"""Messages of programs, and files that translators exchange, read back by other readers."""

import json
from io import BytesIO
from xml.etree import ElementTree

import pytest
from babel.messages.pofile import read_po

from headway.documents.kinds import kind_of, open_file
from headway.documents.messages import Accelerated
from headway.documents.segments import Languages
from headway.errors import UserError
from tests.documents.changing import LANGUAGES, texts_of, through

PO = """\
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Language: \\n"

#: a.c:1
msgid "_Datei öffnen"
msgstr ""

#, c-format
msgid "%d Hund"
msgid_plural "%d Hunde"
msgstr[0] ""
msgstr[1] ""

msgid "fertig"
msgstr "done"

#, fuzzy
msgid "unsicher"
msgstr "maybe"
"""
XLIFF = "urn:oasis:names:tc:xliff:document:"


def test_a_catalogue_is_filled_and_what_is_new_is_fuzzy():
    found = {one.id: one for one in read_po(BytesIO(through("po", PO.encode(), str.upper))) if one.id}
    assert {id_: (one.string, one.fuzzy) for id_, one in found.items()} == {
        "_Datei öffnen": ("_DATEI ÖFFNEN", True),
        ("%d Hund", "%d Hunde"): (("%D HUND", "%D HUNDE"), True),
        "fertig": ("done", False),
        "unsicher": ("maybe", True),
    }
    assert found["%d Hund", "%d Hunde"].flags >= {"c-format"}


def test_a_language_of_one_form_has_the_plurals():
    opened = open_file("po", PO.encode(), Languages("de", "ko"), "file")
    catalogue = read_po(BytesIO(opened.written([one.text for one in opened.segments])))
    assert catalogue.num_plurals == 1
    assert str(catalogue.locale) == "ko"
    assert next(one.string for one in catalogue if isinstance(one.id, tuple)) == ("%d Hunde",)


@pytest.mark.parametrize("flag", ["", "#, fuzzy\n"])
@pytest.mark.parametrize(
    ("given", "made"),
    [
        ([], ("%D HUND", "%D HUNDE", "%D HUNDE")),
        (["", "", ""], ("%D HUND", "%D HUNDE", "%D HUNDE")),
        (["%d dog"], ("%d dog", "%D HUNDE", "%D HUNDE")),
        (["", "%d dogs", ""], ("%D HUND", "%d dogs", "%D HUNDE")),
        (["a", "b", "c"], ("a", "b", "c")),
    ],
)
def test_only_blank_forms_are_filled(flag, given, made):
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\nPlural-Forms: nplurals=3; plural=0;\\n"\n\n'
    forms = "".join(f'msgstr[{number}] "{text}"\n' for number, text in enumerate(given or [""]))
    data = f'{header}{flag}msgid "%d Hund"\nmsgid_plural "%d Hunde"\n{forms}\n{flag}msgid "Hund"\nmsgstr ""\n'
    filled = through("po", data.encode(), str.upper)
    assert b"msgstr[3]" not in filled
    many, one = (one for one in read_po(BytesIO(filled)) if one.id)
    assert (many.string, many.fuzzy) == (made, bool(flag) or "c" not in given)
    assert (one.string, one.fuzzy) == ("HUND", True)


def test_a_catalogue_of_countless_plurals_is_refused():
    header = "charset=UTF-8\\n"
    data = PO.replace(header, f'{header}"\n"Plural-Forms: nplurals=1000000000; plural=0;\\n')
    with pytest.raises(UserError, match="file: nplurals=1000000000: a message has at most 10 plural forms"):
        open_file("po", data.encode(), LANGUAGES, "file")


@pytest.mark.parametrize(
    ("label", "plain", "translation", "made"),
    [
        ("_Datei", "Datei", "Die Datei", "_Die Datei"),
        ("E_xit", "Exit", "Beenden", "_Beenden"),
        ("&Open…", "Open…", "Öffnen …", "Öff&nen …".replace("Öff&nen", "&Öffnen")),
        ("_Degree", "Degree", "다항식의 차수", "다항식의 차수(_D)"),
        ("_Open…", "Open…", "열기…", "열기(_O)…"),
        ("Save &As", "Save As", "Speichern als", "Speichern &als"),
        ("file_name", "file_name", "file_name", "file_name"),
        ("Sort en_US", "Sort en_US", "en_US sortieren", "en_US sortieren"),
        ("a && b", "a && b", "a && b", "a && b"),
        ("&amp; Co", "&amp; Co", "&amp; Co", "&amp; Co"),
        ("R & D", "R & D", "R & D", "R & D"),
        ("R&D", "R&D", "R&D", "R&D"),
        ("Ö&ffnen", "Öffnen", "Open file", "Open &file"),
        ("_Delete %d", "Delete %d", "%d löschen", "%d _löschen"),
    ],
)
def test_the_letter_to_press_is_marked(label, plain, translation, made):
    found = Accelerated.of(label)
    assert found.text == plain
    assert found.restored(translation) == made


@pytest.mark.parametrize("version", ["1.2", "2.0"])
def test_xliff(version):
    unit, inline, alone = ("segment", "pc", "ph") if version == "2.0" else ("trans-unit", "g", "x")
    words = f'Ein <{inline} id="1">Hund</{inline}> läuft<{alone} id="2"/>.'
    data = (
        f'<xliff version="{version}" xmlns="{XLIFF}{version}"><file source-language="de">'
        f"<{unit}><source>{words}</source></{unit}>"
        f"<{unit}><source>fertig</source><target>done</target></{unit}></file></xliff>"
    )
    assert texts_of("xliff", data.encode()) == ["Ein <x0>Hund</x0> läuft<x1/>."]
    root = ElementTree.fromstring(through("xliff", data.encode(), str.upper))
    names = {"": f"{XLIFF}{version}"}
    first, second = root.iterfind(f".//{unit}", names)
    assert "".join(first.find("source", names).itertext()) == "Ein Hund läuft."
    target = first.find("target", names)
    assert [target.text, *((one.get("id"), one.text, one.tail) for one in target)] == [
        "EIN ",
        ("1", "HUND", " LÄUFT"),
        ("2", None, "."),
    ]
    assert "needs-review-translation" in (target.get("state"), "needs-review-translation" * (version == "2.0"))
    assert second.find("target", names).text == "done"


@pytest.mark.parametrize(
    ("version", "state", "is_filled"),
    [
        ("1.2", "new", True),
        ("1.2", "needs-translation", True),
        ("1.2", "needs-review-translation", False),
        ("1.2", "translated", False),
        ("2.0", "initial", True),
        ("2.0", "translated", False),
    ],
)
def test_a_target_whose_state_says_that_it_is_no_translation_is_filled(version, state, is_filled):
    unit, inline = ("segment", "pc") if version == "2.0" else ("trans-unit", "g")
    words, noted = f'Ein <{inline} id="1">Hund</{inline}> läuft.', f' state="{state}"'
    of_unit, of_target = (noted, "") if version == "2.0" else ("", noted)
    target = f"<{unit}{of_unit}><source>{words}</source><target{of_target}>{words}</target></{unit}>"
    data = f'<xliff version="{version}"><file source-language="de">{target}</file></xliff>'
    root = ElementTree.fromstring(through("xliff", data.encode(), str.upper))
    assert "".join(root.find(".//target").itertext()) == ("EIN HUND LÄUFT." if is_filled else "Ein Hund läuft.")
    assert [one.text for one in root.iter(inline)] == ["Hund", "HUND" if is_filled else "Hund"]
    left = root.find(f".//{'segment' if version == '2.0' else 'target'}").get("state")
    made = "translated" if version == "2.0" else "needs-review-translation"
    assert left == (made if is_filled else state)


def test_a_memory_gets_the_variants_that_it_lacks():
    unit = '<tu><tuv xml:lang="de-DE"><seg>Ein <ph>{0}</ph> Hund</seg></tuv></tu>'
    both = '<tu><tuv xml:lang="de"><seg>fertig</seg></tuv><tuv xml:lang="en"><seg>done</seg></tuv></tu>'
    root = ElementTree.fromstring(through("tmx", f"<tmx><body>{unit}{both}</body></tmx>".encode(), str.upper))
    assert [["".join(seg.itertext()) for seg in one.iter("seg")] for one in root.iter("tu")] == [
        ["Ein {0} Hund", "EIN {0} HUND"],
        ["fertig", "done"],
    ]


NEW = '<xliff version="2.0" srcLang="{0}" trgLang="{1}"/>'
OLD = '<xliff version="1.2"><file source-language="de"/><file source-language="{0}" target-language="{1}"/></xliff>'
QT = '<TS sourcelanguage="{0}" language="{1}"/>'
HEADER = 'msgid ""\nmsgstr "Language: {1}\\n"\n\nmsgid "Hund"\nmsgstr ""\n'
NAMED = [("xliff", NEW), ("xliff", OLD), ("ts", QT), ("po", HEADER)]


@pytest.mark.parametrize(("kind", "data"), NAMED)
def test_a_file_of_other_languages_is_refused(kind, data):
    for source, target in (("de", "fr"), ("en", "de"), ("fr", "en"))[: 2 if kind == "po" else 3]:
        wrong = f"is {target if kind == 'po' or source == 'de' else source}, the translation's is "
        with pytest.raises(UserError, match=rf"^file: [^;]*(?i:lang)\w* {wrong}(de|en); correct the file or choose"):
            open_file(kind, data.format(source, target).encode(), LANGUAGES, "file")


@pytest.mark.parametrize(("kind", "data"), NAMED)
@pytest.mark.parametrize(
    ("named", "translation"),
    [
        (("de-AT", "en_US"), ("deu_Latn", "eng")),
        (("", ""), ("de", "en")),
        (("POSIX", "C"), ("de", "en")),
        (("de", "zh_TW"), ("de", "zh-Hans")),
        (("fr", "no"), ("", "nb")),
        (("fr", "ko"), ("mul", "")),
    ],
)
def test_a_file_of_these_or_unknown_languages_is_read(kind, data, named, translation):
    open_file(kind, data.format(*named).encode(), Languages(*translation), "f")


def test_qt():
    data = (
        '<!DOCTYPE TS>\n<TS version="2.1"><context><name>M</name>'
        '<message><source>&amp;Datei</source><translation type="unfinished"></translation></message>'
        '<message numerus="yes"><source>%n Hunde</source><translation type="unfinished"/></message>'
        "<message><source>fertig</source><translation>done</translation></message>"
        '<message><source>alt</source><translation type="vanished"></translation></message></context></TS>'
    )
    made = through("ts", data.encode(), str.upper)
    assert b"<!DOCTYPE TS>" in made
    root = ElementTree.fromstring(made)
    assert root.get("language") == "en"
    assert ["|".join(one.itertext()) for one in root.iter("translation")] == ["&DATEI", "%N HUNDE|%N HUNDE", "done", ""]
    assert [one.get("type") for one in root.iter("translation")] == ["unfinished", "unfinished", None, "vanished"]


def test_control_characters_and_lengths_of_qt():
    data = (
        '<!DOCTYPE TS>\n<TS version="2.1"><context><name>M</name>'
        '<message><source>Ein<byte value="x1b"/> Hund</source><translation type="unfinished">\n</translation></message>'
        '<message><source>&amp;Datei</source><translation type="unfinished" variants="yes"><lengthvariant/>'
        "<lengthvariant></lengthvariant></translation></message>"
        '<message numerus="yes"><source>%n Hunde</source><translation type="unfinished"><numerusform variants="yes">'
        "<lengthvariant>%n Tiere</lengthvariant><lengthvariant/></numerusform></translation></message></context></TS>"
    )
    assert texts_of("ts", data.encode()) == ["Ein<x0/> Hund", "Datei"]
    made = through("ts", data.encode(), str.upper).decode()
    assert '>EIN<byte value="x1b"/> HUND</translation>' in made
    assert made.count("<lengthvariant>&amp;DATEI</lengthvariant>") == 2
    assert made.count("%n Tiere") == 1


def test_html_in_cdata_of_android():
    cdata = r"""<![CDATA[Ein <b class=\"a\">Hund</b> &amp; <br>d\'Or\nmehr]]>"""
    data = f"<resources>\n<string name='a'>{cdata}</string></resources>"
    assert texts_of("android", data.encode()) == [r"""Ein <b class=\"a\">Hund</b> &amp; <br>d'Or<br n/>mehr"""]
    made = through("android", data.encode(), lambda text: text.replace("Hund", "dog's")).decode()
    assert cdata.replace("Hund", r"dog\'s") in made


def test_android():
    data = (
        '<?xml version="1.0" encoding="utf-8"?>\n<resources xmlns:xliff="x">\n'
        "<string name=\"a\">Ein <b>Hund</b> mit <xliff:g id='n'>%d</xliff:g> &amp; \\'Mäusen\\'</string>"
        '<string name="b" translatable="false">Fest</string><string name="c">@string/a</string>'
        '<plurals name="d"><item quantity="one">%d Hund</item></plurals></resources>\n'
    )
    assert kind_of("values-de/strings.xml") == "android"
    root = ElementTree.fromstring(through("android", data.encode(), str.upper))
    assert ["".join(one.itertext()) for one in root.iter("string")] == [
        "EIN HUND MIT %D & \\'MÄUSEN\\'",
        "Fest",
        "@string/a",
    ]
    assert root.find("string/b").text == "HUND"
    assert root.find("plurals/item").text == "%D HUND"


@pytest.mark.parametrize("element", ["string", "xliff:g"])
def test_names_of_elements_of_android_may_be_declared_anywhere(element):
    data = '<resources><string name="a">Ein <xliff:g id="n">%d</xliff:g></string></resources>'
    data = data.replace(f"<{element} ", f'<{element} xmlns:xliff="urn:x" ')
    root = ElementTree.fromstring(through("android", data.encode(), str.upper))
    assert ("".join(root.find("string").itertext()), root.find("string/{urn:x}g").get("id")) == ("EIN %D", "n")


def test_json_keeps_names_order_and_indentation():
    data = '{\n  "b": "Ein Hund",\n  "a": [\n    {\n      "c": "Zwei",\n      "d": 3\n    },\n    null\n  ]\n}\n'
    made = through("json", data.encode(), str.upper).decode()
    assert json.loads(made) == {"b": "EIN HUND", "a": [{"c": "ZWEI", "d": 3}, None]}
    assert made == data.replace("Ein Hund", "EIN HUND").replace("Zwei", "ZWEI")


def test_properties():
    data = "# Kommentar\na.b=Ein Hund\nc = gr\\u00fcne \\\n   Wiese\n"
    assert texts_of("properties", data.encode()) == ["Ein Hund", "grüne Wiese"]
    made = through("properties", data.encode(), str.upper).decode()
    assert made.startswith("# Kommentar\na.b=EIN HUND\n")
    assert made.rpartition("=")[2].strip().encode().decode("unicode_escape") == "GRÜNE WIESE"


def test_all_but_the_texts_of_json_stays_as_it_is_written():
    data = b'{"a" : "Ein \\"Hund\\"", "a":"Gr\\u00fcn",\r\n\t"n": [1.10, 1e400, 12345678901234567890.5, "b:", null]}'
    assert through("json", data) == data
    made = through("json", data, lambda text: text.replace("Grün", "Grün, ja"))
    assert made == data.replace(b"Gr\\u00fcn", b"Gr\\u00fcn, ja")
    assert texts_of("json", data) == ['Ein "Hund"', "Grün", "b:"]


def test_line_breaks_of_android_end_a_sentence():
    data = b"<resources><string name='a'>Ein Hund\\nZwei Hunde</string></resources>"
    assert texts_of("android", data) == ["Ein Hund<br n/>Zwei Hunde"]
    assert ">EIN HUND\\nZWEI HUNDE</string>" in through("android", data, str.upper).decode()


def test_units_and_groups_that_are_not_translated():
    unit = "<segment><source>Ein Hund</source></segment>"
    units = f'<file translate="no"><unit>{unit}</unit><unit translate="yes">{unit}</unit></file>'
    new = f'<xliff version="2.0">{units}</xliff>'
    assert through("xliff", new.encode(), str.upper).decode().count("EIN HUND") == 1
    unit = "<trans-unit><source>Ein Hund</source></trans-unit>"
    old = f'<xliff version="1.2"><file><group translate="no">{unit}</group>{unit}</file></xliff>'
    assert texts_of("xliff", old.encode()) == ["Ein Hund"]


def test_quotes_around_a_text_of_android_stay_marks_of_white_space():
    data = r"""<resources><string name='a'>"Ein \"Hund\"  läuft "</string><string name='b'>da\?</string></resources>"""
    assert texts_of("android", data.encode()) == ['Ein "Hund"  läuft ', "da?"]
    made = through("android", data.encode(), lambda text: text.replace("läuft", "d'or")).decode()
    assert r"""<string name="a">"Ein \"Hund\"  d\'or "</string>""" in made
    assert r"""<string name="b">da\?</string>""" in made


def test_the_declaration_of_xml_stays():
    for kind, root in (("android", "<resources/>"), ("ts", '<TS language="en"/>')):
        for standalone in ("", ' standalone="yes"'):
            data = f'<?xml version="1.0" encoding="UTF-8"{standalone}?>\n{root}\n'
            assert through(kind, data.encode()).decode() == data


PROPERTIES = """\
# Kommentar = eins \\
! noch einer

a.b = Ein "Hund" \\
    läuft\\n\\
    weiter
  c\\ d\\=:\\ Ende\\u0021
leer=

zahl {0}
"""


def test_all_but_the_texts_of_properties_stays_as_it_is_written():
    assert through("properties", PROPERTIES.encode()).decode() == PROPERTIES
    assert texts_of("properties", PROPERTIES.encode()) == ['Ein "Hund" läuft\nweiter', " Ende!", "", "{0}"]
    made = through("properties", PROPERTIES.encode(), str.upper).decode().split("\n")
    assert made[3:7] == ['a.b = EIN "HUND" LÄUFT\\nWEITER', "  c\\ d\\=:\\ ENDE!", "leer=", ""]
    latin = "# ü\na=Ein\nb=Grün\n".encode("latin-1")
    assert through("properties", latin, lambda text: text.replace("Ein", "Aß")) == latin.replace(b"Ein", b"A\\u00df")
    with pytest.raises(UserError, match=r"^file: '12.*u12x': an escape .u has four digits$"):
        texts_of("properties", b"a=12\\u12x")


def test_apostrophes_of_patterns_are_doubled_as_in_the_file():
    data = b"a=Es geht''s {0}\nb=Ein '{' {1} Hund\nc=Geht's\n"
    assert texts_of("properties", data) == ["Es geht's {0}", "Ein '{' {1} Hund", "Geht's"]
    made = through("properties", data, lambda text: text.replace("Es", "L'as").replace("Hund", "d'or"))
    assert made == b"a=L''as geht''s {0}\nb=Ein '{' {1} d''or\nc=Geht's\n"
    other = b"a=Geht's {0}\nb=Hund {0}\n"
    made = through("properties", other, lambda text: text.replace("Hund", "d'or"))
    assert made == b"a=Geht's {0}\nb=d'or {0}\n"
