"""A translator's round: a memory becomes a model, which fills a catalogue that gettext accepts."""

import random
import subprocess
from xml.sax.saxutils import escape

from babel.messages.pofile import read_po

from tests.system.running import run_headway

WORDS = ["Datei", "Fenster", "Bild", "Ordner", "Seite", "Zeile", "Tabelle", "Schrift", "Farbe", "Liste"]
SMALL = ("model.d_model=32", "model.encoder_layers=1", "model.decoder_layers=1", "training.precision=fp32")
VERBS = {"öffnen": "Open", "schließen": "Close", "drucken": "Print", "löschen": "Delete", "suchen": "Find"}
ENGLISH = dict(
    zip(WORDS, ["file", "window", "picture", "folder", "page", "line", "table", "font", "color", "list"], strict=True)
)
PO = """\
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Language: en\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

#: a.c:1
msgid "_Datei öffnen"
msgstr ""

#: a.c:2
#, c-format
msgid "%d Ordner löschen\\n"
msgid_plural "%d Seiten löschen\\n"
msgstr[0] ""
msgstr[1] ""

msgid "Fenster schließen"
msgstr "Shut window"
"""


def test_a_memory_to_a_model_to_a_catalogue(tmp_path):
    chance, units = random.Random(3), list[str]()
    for _ in range(1200):
        number, word, verb = chance.randrange(100), chance.choice(WORDS), chance.choice([*VERBS])
        plain = f"{word} {verb}", f"{VERBS[verb]} {ENGLISH[word]}"
        german, english = plain if chance.random() < 0.3 else (f"{number} {plain[0]}", f"{plain[1]} {number}")
        sides = "".join(
            f'<tuv xml:lang="{code}"><seg>{escape(text)}</seg></tuv>'
            for code, text in (("de", german), ("en", english))
        )
        units.append(f"<tu>{sides}</tu>")
    memory = f'<tmx version="1.4"><header srclang="de"/><body>{"".join(units)}</body></tmx>'
    (tmp_path / "memory.tmx").write_text(memory, encoding="utf-8")
    (tmp_path / "app.po").write_text(PO, encoding="utf-8")
    steps = ("training.max_steps=150", "training.validate_every=75")
    trained = run_headway("train", tmp_path / "memory.tmx", "--output", tmp_path / "run", *SMALL, *steps)
    assert trained.code == 0, trained.err
    filled = run_headway("translate", tmp_path / "run", tmp_path / "app.po", "--output", tmp_path / "en.po")
    assert (filled.code, filled.out) == (0, ""), filled.err
    made = (tmp_path / "en.po").read_bytes()
    checked = subprocess.run(
        ["msgfmt", "--check", "--use-fuzzy", "-o", tmp_path / "en.mo", tmp_path / "en.po"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr + made.decode()
    with (tmp_path / "en.po").open("rb") as stream:
        found = {one.id: one for one in read_po(stream) if one.id}
    assert all(one.string and all(one.string) for one in found.values())
    assert found["Fenster schließen"].string == "Shut window"
    assert found["_Datei öffnen"].fuzzy
    assert found["_Datei öffnen"].string.count("_") == 1
