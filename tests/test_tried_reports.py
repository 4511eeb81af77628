"""Every test that docs/tried-reports.md names is there."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "tried-reports.md").read_text(encoding="utf-8")


def test_every_named_test_is_there():
    named = re.findall(r"`([\w/]+\.py)(?:::(test_\w+))?`", PAGE)
    assert len(named) > 40
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not (TESTS / file).is_file() or (name and f"def {name}(" not in (TESTS / file).read_text(encoding="utf-8"))
    ]
    assert missing == []
