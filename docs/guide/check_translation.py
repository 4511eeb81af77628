"""Is every message of the guide translated, and nothing else? `make docs` asks once Sphinx has collected the messages.

python docs/guide/check_translation.py FOLDER_OF_POT_FILES FOLDER_OF_PO_FILES
"""

from __future__ import annotations

import sys
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

THEME = "sphinx.po"
"""Words of the theme, which no chapter has."""


def problems(pots: Path, pos: Path) -> list[str]:
    """One line for each message that lacks a translation, and for each translation that no message asks for."""
    found = [f"{po}: no chapter has this name" for po in pos.glob("*.po") if not _pot_of(po, pots).exists()]
    for pot in sorted(pots.glob("*.pot")):
        po = pos / f"{pot.stem}.po"
        asked = {str(message.id) for message in _read(pot)}
        given = _read(po) if po.exists() else Catalog()
        ready = {str(message.id) for message in given if message.string and not message.fuzzy}
        found += [f"{po}: not translated: {id_!r}" for id_ in sorted(asked - ready)]
        found += [f"{po}: no longer there: {id_!r}" for id_ in sorted({str(message.id) for message in given} - asked)]
    return found


def _pot_of(po: Path, pots: Path) -> Path:
    return po if po.name == THEME else pots / f"{po.stem}.pot"


def _read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file)


if __name__ == "__main__":
    lines = problems(Path(sys.argv[1]), Path(sys.argv[2]))
    print("\n".join(lines), file=sys.stderr, end="\n" if lines else "")
    sys.exit(1 if lines else 0)
