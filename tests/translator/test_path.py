"""How far a plain sentence goes: without a glossary and protected text it passes few files."""

import sys
import threading
from pathlib import Path

import headway
from tests.translator.test_translator import translator

SOURCE = str(Path(headway.__file__).parent)
MOST_FILES = 20


def test_a_plain_sentence_passes_few_files():
    door = translator(max_length=20)
    door.translate(["the cat sat on the mat"], beam_size=5)
    files = set()

    def look(frame, event, _) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            files.add(frame.f_code.co_filename.removeprefix(SOURCE))

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        door.translate(["the dog ran after the cat"], beam_size=5)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert "/translator/translator.py" in files
    assert "/decoding/beam.py" in files
    assert len(files) <= MOST_FILES, sorted(files)
