"""Records: what rows and columns are called, and pieces joined to words."""

import json

import pytest
import torch

from headway.insight import TranslationRecord
from headway.insight.record import word_groups


def record() -> TranslationRecord:
    """Two layers, one head; three source pieces that are two words, four target pieces that are three."""
    source, target = ["▁Hun", "d", "<eos>"], ["▁a", "▁do", "g", "<eos>"]
    shapes = {"encoder": (2, 1, 3, 3), "decoder": (2, 1, 4, 4), "cross": (2, 1, 4, 3)}
    generator = torch.Generator().manual_seed(1)
    maps = {kind: torch.rand(shape, generator=generator).softmax(-1) for kind, shape in shapes.items()}
    maps["decoder"] = maps["decoder"].tril() / maps["decoder"].tril().sum(-1, keepdim=True)
    return TranslationRecord(source, target, maps)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pieces", "groups"),
    [
        (["▁Hun", "d", "<eos>"], [[0, 1], [2]]),
        (["x", "▁y", "z", "."], [[0], [1, 2, 3]]),
        ([">>ko<<", "▁a"], [[0], [1]]),
        (["ein", "hund", "<eos>"], [[0], [1], [2]]),
        (["▁", "<0xF0>", "<0x9F>", "<unk>", "a", "<eos>"], [[0, 1, 2], [3], [4], [5]]),
    ],
)
def test_words_begin_where_they_should(pieces, groups):
    assert word_groups(pieces) == groups


def test_pieces_joined_to_words_by_hand():
    one, words = record(), record().words()
    assert words.source == ["Hund", "<eos>"]
    assert words.target == ["a", "dog", "<eos>"]
    pieces = one.attention["cross"][1, 0]  # (4, 3)
    wanted = torch.stack([pieces[:, :2].sum(-1), pieces[:, 2]], dim=-1)
    wanted = torch.stack([wanted[0], wanted[1:3].mean(0), wanted[3]])
    torch.testing.assert_close(words.attention["cross"][1, 0], wanted)
    for kind, maps in words.attention.items():
        torch.testing.assert_close(maps.sum(-1), torch.ones(maps.shape[:-1]))
        queries, keys = words.labels(kind)
        assert maps.shape[-2:] == (len(queries), len(keys))
    assert words.labels("decoder") == (["a", "dog", "<eos>"], ["<sos>", "a", "dog"])
    assert words.attention["decoder"][:, :, 0, 1:].sum() == 0.0


def test_json_form_has_every_weight():
    one = record()
    document = json.loads(json.dumps(one.to_dict()))
    for kind, maps in one.attention.items():
        found = document["attention"][kind]
        torch.testing.assert_close(torch.tensor(found["weights"]), maps)
        assert (len(found["queries"]), len(found["keys"])) == maps.shape[-2:]
    assert document["attention"]["decoder"]["keys"][0] == "<sos>"
