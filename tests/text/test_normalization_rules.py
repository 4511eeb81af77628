"""The rules that are read are those that sentencepiece follows."""

import random
import struct

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from headway.errors import UserError
from headway.text import sentencepiece_model as module
from headway.text.sentencepiece_model import normalization_rules


def charsmap(rule: str) -> bytes:
    normalizer = sentencepiece.SentencePieceNormalizer(rule_name=rule)
    model = sentencepiece_model_pb2.ModelProto.FromString(normalizer.serialized_model_proto())
    return model.normalizer_spec.precompiled_charsmap


@pytest.mark.parametrize("rule", ["nfkc", "nmt_nfkc", "nfkc_cf"])
def test_what_is_replaced_and_by_what(rule):
    normalizer = sentencepiece.SentencePieceNormalizer(
        rule_name=rule, add_dummy_prefix=False, escape_whitespaces=False, remove_extra_whitespaces=False
    )
    rules = normalization_rules(charsmap(rule))
    some = random.Random(0).sample(sorted(rules), 20_000)
    assert [normalizer.normalize(key) for key in some] == [rules[key] for key in some]
    others = [char for code in range(0x30000) if not 0xD800 <= code < 0xE000 and (char := chr(code)) not in rules]
    assert [normalizer.normalize(char) for char in others] == others


def test_a_model_without_rules_has_none():
    assert normalization_rules(b"") == {}


def test_a_trie_without_end_is_refused(monkeypatch):
    circle = 1 | 1 << 10  # reached by the label 1, and its own child by the label 1
    endless = struct.pack("<I256I", 1024, 0, circle, *[0] * 254) + b"\0"
    with pytest.raises(UserError, match="no end"):
        normalization_rules(endless)
    monkeypatch.setattr(module, "MOST_BEGINNINGS", 1000)
    with pytest.raises(UserError, match="no end"):
        normalization_rules(charsmap("nfkc"))
