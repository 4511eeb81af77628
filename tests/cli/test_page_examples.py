"""The sentences that an exported page offers."""

import pytest
from tests.translator.test_translator import tagged_translator

from headway.cli import export
from headway.storage import save_model
from headway.translator import Translator

TOO_LONG = "the cat sat on the mat and " * 4


@pytest.mark.parametrize(
    ("validated", "wanted"),
    [
        ([], [">>de<< A dog is running."]),
        ([(">>ko<< the cat", "a dog"), (">>de<< the mat", "a dog")], [">>ko<< the cat", ">>de<< the mat"]),
        ([(f">>ko<< {TOO_LONG}", "a dog")], [">>de<< A dog is running."]),
    ],
)
def test_each_begins_with_a_tag_where_the_model_needs_one(validated, wanted, tmp_path, monkeypatch):
    save_model(tmp_path / "model", tagged_translator().stored)
    monkeypatch.setattr(export, "validation_pairs", lambda _: validated)
    translator = Translator.load(tmp_path / "model", device="cpu", engine="torch")
    write, _ = export.page_export(translator, tmp_path / "model")
    assert write.keywords["examples"] == wanted
