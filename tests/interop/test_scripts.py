"""Lines of 28 scripts have the same tokens as in transformers, and come back the same.

`python -m tests.interop.test_scripts 10000` compares so many lines; it is part of `make test-faults`.
"""

from pathlib import Path

import pytest
from tests.interop.scripts import LOCALES, lines_of_all
from tests.interop.test_multilingual import PAIRS, ours, rows_of, transformers

from benchmarks.pretrained_folder import write_folder
from headway.interop.huggingface import read_huggingface

SIZES = {"d_model": 8, "encoder_layers": 0, "decoder_layers": 0}


def compared(kind: str, count: int, tokens: int, folder: Path) -> tuple[int, list[str]]:
    """The number of lines, and those whose tokens or text differ."""
    lines = lines_of_all(count)
    write_folder(folder, kind, lines[::2], tokens, **SIZES)
    stored, rows = read_huggingface(folder), rows_of(folder)
    theirs = transformers.AutoTokenizer.from_pretrained(folder, src_lang=PAIRS[kind][0])
    return len(lines), [line for line in lines if not is_same(line, stored, rows, theirs, kind)]


def is_same(line, stored, rows, theirs, kind) -> bool:
    ids = stored.target_tokenizer.encode(line)
    back = stored.target_tokenizer.decode(ids) == theirs.decode([rows[id_] for id_ in ids])
    return back and [*(rows[id_] for id_ in ours(stored, kind, line)), 2] == theirs(line)["input_ids"]
