"""The validation pairs of a run: its own, or those of the folder that it was prepared in."""

import json

from headway.cli.files import validation_pairs

PAIRS = [("Ein Hund.", "A dog."), (">>ko<< Zwei.", "둘.")]
RECIPE = """
data: {{prepared: {folder}, train: {{source: a.de, target: a.en}}, valid: {{source: b.de, target: b.en}}}}
training: {{max_steps: 1}}
"""


def test_pairs_of_a_run_of_a_prepared_folder_and_of_a_model(tmp_path):
    run, prepared = tmp_path / "run", tmp_path / "prepared"
    for folder in (run, prepared):
        folder.mkdir()
    assert validation_pairs(run) == []
    (run / "recipe.yaml").write_text(RECIPE.format(folder=prepared))
    (prepared / "valid.json").write_text(json.dumps(PAIRS))
    assert validation_pairs(run) == PAIRS
    (run / "data").mkdir()
    (run / "data" / "valid.json").write_text(json.dumps(PAIRS[:1]))
    assert validation_pairs(run) == PAIRS[:1]


def test_a_run_whose_data_or_recipe_is_spoilt_has_none(tmp_path):
    (tmp_path / "recipe.yaml").write_text(RECIPE.format(folder=tmp_path / "gone") + "unknown: 1\n")
    assert validation_pairs(tmp_path) == []
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "valid.json").write_text('[["Ein Hund.", "A d')
    assert validation_pairs(tmp_path) == []
