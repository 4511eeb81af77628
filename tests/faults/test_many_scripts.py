"""Tokens of 10,000 lines in 28 scripts beside transformers'."""

import pytest

from tests.interop.scripts import lines_of_all
from tests.interop.test_multilingual import PAIRS
from tests.interop.test_scripts import differing


@pytest.mark.parametrize("kind", PAIRS)
def test_ten_thousand_lines_have_their_tokens(kind, tmp_path):
    lines = lines_of_all(10_000)
    found = differing(kind, lines, 12_000, tmp_path)
    print(f"{kind}: {len(lines):,} lines as in sentencepiece, of which transformers splits {len(found)} otherwise")
    assert len(found) <= (0 if kind == "M2M100Tokenizer" else len(lines) // 500)
