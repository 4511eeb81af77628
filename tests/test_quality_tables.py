"""The tables of benchmarks/quality.py: each row is a recipe that can be read, and what is printed of finished runs."""

import os
from pathlib import Path

import pytest
import yaml
from benchmarks.quality import ROOT, Finished, Row, Score, lines_of, read_table, stages

from headway.recipe.reading import load_recipe

TABLES = sorted(
    file.name
    for file in (ROOT / "benchmarks").glob("*.yaml")
    if "recipe" in yaml.safe_load(file.read_text(encoding="utf-8"))[0]
)


@pytest.mark.parametrize("table", TABLES)
def test_every_row_is_a_recipe(table, monkeypatch):
    """Also with --quick; its text is where `headway data` puts it."""
    monkeypatch.chdir(ROOT)
    for quick in (False, True):
        rows = read_table(ROOT / "benchmarks" / table, quick)
        for row in rows.values():
            assert row.name in stages(rows, row)
            after = [] if row.after is None else ["training.init_from=runs/of-another-row"]
            recipe = load_recipe(row.recipe, [*row.changes, *after])
            assert (row.stage is None) == (row.of is None)
            assert row.stage is None or row.stage in [stage.name for stage in recipe.stages]
            corpora = (*recipe.data.corpora, *recipe.data.valid)
            files = [os.path.relpath(file, ROOT) for one in corpora for file in (*one.source, *one.target)]
            assert all(file.startswith(("data/", "$WORK/")) for file in files), row.name
            assert not quick or recipe.training.max_steps == 100


def test_the_tables_are_found():
    assert {"results.yaml", "ablations.yaml", "students.yaml", "monolingual.yaml"} == set(TABLES)


def table_of(tmp_path, *rows):
    (tmp_path / "table.yaml").write_text(yaml.safe_dump(list(rows)))
    return tmp_path / "table.yaml"


def test_a_row_like_another_has_its_recipe_tests_and_changes(tmp_path):
    test = {"source": "a.de", "reference": "a.en", "tokenize": "none"}
    first = {"name": "first", "recipe": "r.yaml", "seeds": [1, 2], "changes": ["a=1"], "tests": [test]}
    rows = read_table(
        table_of(
            tmp_path,
            first,
            {"name": "second", "like": "first", "changes": ["b=2"]},
            {"name": "third", "like": "second", "recipe": "other.yaml", "after": "first", "tests": []},
        )
    )
    first, second, third = rows.values()
    assert second == first.model_copy(update={"name": "second", "changes": ["a=1", "b=2"]})
    assert (ROOT / third.recipe).resolve() == tmp_path / "other.yaml"
    assert (third.changes, third.after, third.tests) == (["a=1", "b=2"], "first", [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "can't be read"),
        ("- {name: a, recipe: r, tset: 1}", "a: tset: Extra"),
        ("- {name: a}", "a: recipe: Field"),
        ("", "must be a list of rows, each with a name"),
        ("- {like: a}", "must be a list of rows, each with a name"),
    ],
)
def test_a_table_that_can_not_be_read_is_told_in_a_line(tmp_path, text, said):
    (tmp_path / "table.yaml").write_text(text)
    with pytest.raises(SystemExit, match=f"table.yaml: {said}"):
        read_table(tmp_path / "table.yaml")
    with pytest.raises(SystemExit, match="can't be read"):
        read_table(tmp_path / "none.yaml")


@pytest.mark.parametrize("key", ["like", "after"])
def test_a_row_stands_before_those_that_name_it(tmp_path, key):
    row = {"name": "second", "recipe": "r.yaml", key: "first"}
    with pytest.raises(SystemExit, match=f"second is {key} first, which isn't a row before it"):
        read_table(table_of(tmp_path, row))


def test_all_stages_of_a_row_count():
    """That it starts from, that translate its text, and theirs."""
    rows = {
        "both": Row(name="both", recipe=Path("r")),
        "one": Row(name="one", recipe=Path("r"), after="both"),
        "reverse": Row(name="reverse", recipe=Path("r"), after="both"),
        "last": Row(name="last", recipe=Path("r"), after="one", changes=["x={reverse: $WORK/reverse-$SEED}"]),
        "last-longer": Row(name="last-longer", recipe=Path("r"), changes=["x={made: $WORK/reverse-$SEED.de}"]),
    }
    assert stages(rows, rows["last"]) == {"last", "one", "reverse", "both"}
    assert stages(rows, rows["both"]) == {"both"}
    assert stages(rows, rows["last-longer"]) == {"last-longer"}  # a file isn't a run


def test_the_table_has_means_and_differences(tmp_path):
    """Of translations made by hand: the second model's are the references, the first one's aren't."""
    references = [f"{word} and the dog ran after a cat" for word in ("one", "two", "three")]
    (tmp_path / "references").write_text("".join(f"{line}\n" for line in references))

    def finished(name, seed, bleu, lines):
        (tmp_path / f"{name}-{seed}").write_text("".join(f"{line}\n" for line in lines))
        one = Score(
            set="test.en",
            tokenize="13a",
            bleu=bleu,
            bleu_lowercased=bleu + 1,
            chrf=50.0,
            translations=f"{name}-{seed}",
            references=str(tmp_path / "references"),
        )
        measures = {"parameters": 2_000_000, "petaflop": 0.25, "minutes": 1.5 * seed, "steps": 10}
        valid = {"valid_loss": 1.5, "valid_bleu": 20.0}
        return Finished(name=name, seed=seed, row={}, recipe="", **measures, **valid, scores=[one])

    rows = {"a": Row(name="a", recipe=Path("r")), "b": Row(name="b", recipe=Path("r"), after="a")}
    bad = [line.replace("dog", "frog") for line in references]
    found = [finished("a", 2, 41.0, bad), finished("a", 1, 40.0, bad), finished("b", 1, 100.0, references)]
    _, _, first, second = lines_of(rows, found, tmp_path)
    assert first == (
        "| a | 1, 2 | test.en, 13a | 40.00, 41.00: **40.50** | 41.00, 42.00: **41.50** | 50.00, 50.00: **50.00** |  | "
        "1.500, 1.500: **1.500**, 20.00, 20.00: **20.00** | 2.0M | 0.250, 0.250: **0.250** | 1.5, 3.0: **2.2** |"
    )
    assert second.startswith("| b | 1 | test.en, 13a | 100.00 | 101.00 | 50.00 | +")
    assert "(p = 0.0" in second
    assert second.endswith("| 2.0M | 0.250 | 3.0 |")
    *_, alone = lines_of(rows, found[2:], tmp_path)
    assert alone.endswith("| 2.0M | 0.250 |  |")  # the minutes of an earlier stage are missing
