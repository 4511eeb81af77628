"""The tables of recipes and docs/results.md tell the same, and the page of presets what `headway plan` says."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headway.cli import app

ROOT = Path(__file__).parent.parent
RECIPES = ["docs/recipes.md", "docs/recipes.ko.md"]
RECIPE = re.compile(r"[\w-]+\.yaml")
GREEDY, BEAM = ("greedy", "그리디"), ("beam", "빔")
HALF_A_TENTH = Decimal("0.05")


def tables(page: str) -> list[list[list[str]]]:
    """Of a page of the repository: each a list of rows, a row a list of cells."""
    found: list[list[list[str]]] = [[]]
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            found[-1].append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif found[-1]:
            found.append([])
    return [table for table in found if table]


def of_recipes(page: str) -> dict[str, list[list[str]]]:
    """The first table that begins with a recipe, without its head: the rows of each, with the name of a stage where the
    table gives one; a row without a name belongs to the one above."""
    table = next(one for one in tables(page) if len(one) > 2 and RECIPE.search(one[2][0]))
    found: dict[str, list[list[str]]] = {}
    name = ""
    for row in table[2:]:
        name = "/".join(re.findall(r"`([^`]+)`", row[0])) or name
        found.setdefault(name, []).append(row)
    return found


def numbers(text: str) -> list[Decimal]:
    return [Decimal(one) for one in re.findall(r"\d+(?:\.\d+)?", text)]


def claimed(cell: str) -> dict[str, list[Decimal]]:
    """BLEU by the kind of search. The Korean names it before the figures, the English after them."""
    kinds = [kind for kinds in (GREEDY, BEAM) for kind in kinds if kind in cell]
    parts = re.split(f"({'|'.join(kinds)})", cell) if kinds else []
    if parts and not parts[0].strip():
        pairs = zip(parts[1::2], parts[2::2], strict=True)
    else:
        pairs = zip(parts[1::2], parts[::2], strict=False)
    return {
        "greedy" if kind in GREEDY else "beam": [Decimal(one) for one in re.findall(r"\d+\.\d+", part)]
        for kind, part in pairs
    }


def measured(rows: list[list[str]]) -> dict[str, list[Decimal]]:
    """The same of a recipe's rows in results.md; of several seeds their mean. A row is of the search of the one above
    if it names none."""
    found: dict[str, list[Decimal]] = {"greedy": [], "beam": []}
    kind = ""
    for _, what, bleu, *_ in rows:
        kind = next((one for one in found if one in what), kind)
        mean = re.search(r"\*\*(.+)\*\*", bleu)
        found[kind].append(Decimal(mean[1] if mean else bleu))
    return found


def is_rounded(short: Decimal, long: Decimal) -> bool:
    return abs(short - long) <= HALF_A_TENTH


def in_order(some: list[Decimal], all_of: list[Decimal]) -> bool:
    """Each is one of the others, rounded, none before that of its predecessor."""
    rest = iter(all_of)
    return all(any(is_rounded(one, other) for other in rest) for one in some)


@pytest.mark.parametrize("page", RECIPES)
def test_bleu_of_a_recipe_is_that_of_the_results(page):
    results = of_recipes("docs/results.md")
    told = 0
    for recipe, [row] in of_recipes(page).items():
        for kind, figures in claimed(row[2]).items():
            assert figures, f"{recipe}: {row[2]}"
            assert in_order(figures, measured(results[recipe])[kind]), f"{recipe}: {kind} {figures}"
            told += len(figures)
        if recipe in results:
            assert claimed(row[2]), f"{recipe}: {row[2]} has no figure"
    assert told >= len(results)


@pytest.mark.parametrize("page", RECIPES)
def test_minutes_of_a_recipe_are_those_of_the_results(page):
    results = of_recipes("docs/results.md")
    for recipe, [row] in of_recipes(page).items():
        if recipe in results:
            minutes = {round(one) for other in results[recipe] for one in numbers(other[-1])}
            told = set(numbers(row[4]))
            assert told, recipe
            assert told <= minutes, recipe


@pytest.mark.parametrize("page", RECIPES)
def test_work_of_a_recipe_is_that_of_the_results(page):
    results = of_recipes("docs/results.md")
    for recipe, [row] in of_recipes(page).items():
        if recipe in results:
            [work] = [one for other in results[recipe] for one in numbers(other[-2])]
            assert round(work, 2) == Decimal(row[3]), recipe


def test_both_languages_have_the_same_figures():
    english, korean = (
        {recipe: (claimed(row[2]), numbers(f"{row[3]} {row[4]}")) for recipe, [row] in of_recipes(page).items()}
        for page in RECIPES
    )
    assert english == korean


def test_means_of_the_results_are_means():
    rows = [row for rows in of_recipes("docs/results.md").values() for row in rows if "mean" in row[2]]
    assert rows
    for row in rows:
        *seeds, mean = numbers(row[2])
        assert round(sum(seeds) / len(seeds), 2) == mean, row[2]


def test_figures_are_told_apart():
    for english, korean in (
        ("38.5 greedy, 39.9 with a beam of 5", "그리디 38.5, 빔 5에서 39.9"),
        ("35.8, 52.5, 28.4 with a beam of 5", "빔 5에서 35.8, 52.5, 28.4"),
    ):
        assert claimed(english) == claimed(korean)
    assert claimed("38.5 greedy, 39.9 with a beam of 5") == {"greedy": [Decimal("38.5")], "beam": [Decimal("39.9")]}
    assert not in_order([Decimal("39.9")], [Decimal("40.04")])
    assert in_order([Decimal("1.0"), Decimal("3.0")], [Decimal("1.04"), Decimal("2.04"), Decimal("2.96")])
    assert not in_order([Decimal("3.0"), Decimal("1.0")], [Decimal("1.04"), Decimal("2.04"), Decimal("2.96")])


@pytest.mark.parametrize("page", ["docs/presets.md", "docs/presets.ko.md"])
def test_sizes_of_presets_are_those_of_the_plan(page):
    [table] = tables(page)
    results = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    assert len(table) > 5
    for preset, parameters, memory, speed, _ in table[2:]:
        command = ["plan", preset.strip("`"), "--pairs", "29000", "--hardware", "cpu", "--measured", "5000"]
        planned = CliRunner().invoke(app, command).stdout
        [count] = re.findall(r"^model +([\d,]+) parameters", planned, flags=re.MULTILINE)
        assert f"{int(count.replace(',', '')) / 1e6:.1f}M" == parameters
        assert re.search(rf"^memory +{re.escape(memory)} at most", planned, flags=re.MULTILINE), planned
        assert not speed or f"| {speed} |" in results
