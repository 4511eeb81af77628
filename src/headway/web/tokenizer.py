"""A tokenizer as a page has it: everything that decides the ids of a text, in JSON. `page/tokenizer.js` reads it."""

from __future__ import annotations

import unicodedata
from dataclasses import asdict, replace
from typing import Any

from headway.text.sentencepiece_model import read_model
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer
from headway.text.words import WordTokenizer

IDS = {"pad_id": PAD_ID, "unk_id": UNK_ID, "bos_id": BOS_ID, "eos_id": EOS_ID}


def tokenizer_description(tokenizer: Tokenizer) -> dict[str, Any]:
    """The JSON that `loadTokenizer` of the page makes the same tokenizer from: `kind`, `pieces` by id, the ids of the
    control symbols, `target_tags`, `never_generated`; for whole words `lowercase`, otherwise what `SentencePieceModel`
    has. Raises UserError for a sentencepiece model that the page can't follow.
    """
    common = {**IDS, "target_tags": tokenizer.target_tags, "never_generated": tokenizer.never_generated}
    if isinstance(tokenizer, WordTokenizer):
        return {**common, "kind": "word", "pieces": tokenizer.vocabulary, "lowercase": tokenizer.lowercase}
    model = read_model(tokenizer.to_bytes())
    return {**common, **asdict(replace(model, rules=_met_by_nfkc(model.rules)))}


def _met_by_nfkc(rules: dict[str, str]) -> dict[str, str]:
    """The rules that may apply to a text in NFKC. sentencepiece gets no other text from headway, and every part of such
    a text is in NFKC too. Of the 225,000 rules for NFKC itself only those for characters newer than Python remain."""
    return {key: text for key, text in rules.items() if unicodedata.is_normalized("NFKC", key)}
