"""What src/headway/languages.json holds of Unicode's CLDR, taken from Babel's data. `python -m tests.language_data`
writes the file anew."""

import json
from pathlib import Path
from typing import Any

from babel import Locale
from babel.core import get_global

FILE = Path(__file__).parent.parent / "src" / "headway" / "languages.json"


def from_babel() -> dict[str, Any]:
    english, usual = Locale("en"), {}
    for code, likely in sorted(get_global("likely_subtags").items()):
        part = code.partition("_")[2]
        if len(part) in (0, 2, 3) and (script := next(filter(_is_script, likely.split("_")), "")):
            usual.setdefault(script, []).append(code)
    return {
        "aliases": dict(sorted(get_global("language_aliases").items())),
        "names": dict(sorted(english.languages.items())),
        "scripts": dict(sorted(english.scripts.items())),
        "regions": dict(sorted(english.territories.items())),
        "usual": {script: " ".join(codes) for script, codes in sorted(usual.items())},
    }


def _is_script(part: str) -> bool:
    return len(part) == 4


if __name__ == "__main__":
    text = json.dumps(from_babel(), ensure_ascii=False, indent=1)
    FILE.write_text(f"{text}\n", encoding="utf-8")
