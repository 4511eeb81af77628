"""Metrics of one's own: their scores, their bootstrap, and one clear line for each slip."""

import random
import re
from pathlib import Path

import numpy as np
import pytest

from headway.errors import UserError
from headway.evaluation import Measured, compare_measured, load_metric

DOCS = Path(__file__).parent.parent.parent / "docs"
SOURCES, REFERENCES = ["eins", "zwei", "drei"], ["one", "two", "three"]


pytestmark = pytest.mark.usefixtures("own_folder")


def measure(body: str, name: str = "toy:metric") -> Measured:
    Path("toy.py").write_text(body)
    return load_metric(name).measure(SOURCES, REFERENCES[::-1], REFERENCES)


def returned(value: str) -> Measured:
    return measure(f"import numpy, torch\ndef metric(sources, translations, references):\n    return {value}\n")


@pytest.mark.parametrize("page", ["evaluation.md", "evaluation.ko.md"])
def test_that_of_the_docs(page, own_folder):
    blocks = re.findall(r"```python\n# (\w+)\.py.*?\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    for name, code in blocks:
        (own_folder / f"{name}.py").write_text(code)
    found = load_metric("my_metrics:exact").measure(SOURCES, ["ONE", "too", "three"], REFERENCES)
    assert found == Measured("my_metrics:exact", pytest.approx(2 / 3), (1.0, 0.0, 1.0))
    assert callable(load_metric("learned:comet").function)


def test_a_function_gets_the_three_texts_and_can_change_none_of_them():
    found = measure(
        "def metric(*texts):\n"
        "    assert [type(one) for one in texts] == [list] * 3, texts\n"
        "    score = sum(10 ** i for i, one in enumerate(texts) if one == [['eins', 'zwei', 'drei'], "
        "['three', 'two', 'one'], ['one', 'two', 'three']][i])\n"
        "    [one.clear() for one in texts]\n"
        "    return score\n"
    )
    assert found == Measured("toy:metric", 111.0, None)
    assert len(SOURCES) == len(REFERENCES) == 3


@pytest.mark.parametrize(
    ("value", "score", "lines"),
    [
        ("7", 7.0, None),
        ("True", 1.0, None),
        ("numpy.float32(0.5)", 0.5, None),
        ("torch.tensor(2.5)", 2.5, None),
        ("torch.tensor(2.5, requires_grad=True)", 2.5, None),
        ("torch.tensor([-1.0, 0.0, 1.0], dtype=torch.bfloat16)", 0.0, (-1.0, 0.0, 1.0)),
        ("[1, 2.5, 4]", 2.5, (1.0, 2.5, 4.0)),
        ("(0, 0, 3)", 1.0, (0.0, 0.0, 3.0)),
        ("numpy.array([1, 2, 6])", 3.0, (1.0, 2.0, 6.0)),
        ("torch.tensor([-1.0, 0.0, 1.0])", 0.0, (-1.0, 0.0, 1.0)),
    ],
)
def test_numbers_of_every_kind(value, score, lines):
    assert returned(value) == Measured("toy:metric", score, lines)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("None", "returned None; it must return a number, or a list of 3 numbers, one for each line"),
        ("'0.5'", "returned '0.5';"),
        ("['1', '2', '3']", r"returned \['1', '2', '3'\];"),
        ("[1, 2]", r"returned \[1, 2\];"),
        ("[[1], [2], [3]]", r"returned \[\[1\], \[2\], \[3\]\];"),
        ("[[1], [2, 3], 4]", r"returned \[\[1\], \[2, 3\], 4\];"),
        ("{'score': 1}", "returned {'score': 1};"),
        ("(x for x in sources)", "returned <generator object"),
        ("float('nan')", "returned a score that is not finite"),
        ("[1, float('inf'), float('nan')]", "returned a score that is not finite for line 2"),
        ("1 / 0", r"fails: ZeroDivisionError: division by zero \(toy.py, line 3\)"),
        ("sources[99]", r"fails: IndexError: list index out of range \(toy.py, line 3\)"),
        ("exit(3)", r"fails: SystemExit: 3"),
    ],
)
def test_what_a_function_does_wrong_is_one_line_that_names_it(value, told):
    with pytest.raises(UserError, match=f"^metric toy:metric: {told}"):
        returned(value)


@pytest.mark.parametrize(
    ("name", "body", "told"),
    [
        ("toy", "", "metric 'toy': must be module:function, such as my_module:name"),
        ("toy:", "", "metric 'toy:': must be module:function"),
        ("to y:metric", "", "must be module:function"),
        ("./toy:metric", "", "must be module:function"),
        ("absent:metric", "", "metric absent:metric: there is no module absent in /"),
        ("absent.below:metric", "", "there is no module absent in /"),
        ("toy.py:metric", "", r"there is no module toy\.py in /"),
        ("toy:metric", "", "metric toy:metric: module toy has no function metric"),
        ("toy:metric", "metric = 3", "module toy has no function, but a value, of the name metric"),
        ("toy:metric", "import absent", "module toy can't be imported: ModuleNotFoundError: No module named 'absent'"),
        ("toy:metric", "from os import absent", "module toy can't be imported: ImportError: cannot import name"),
        ("toy:metric", "x = 1\nx.y", r"can't be imported: AttributeError: .* \(toy.py, line 2\)"),
        ("toy:metric", "def metric(:", r"can't be imported: SyntaxError: .* \(toy.py, line 1\)"),
        ("toy:metric", "exit(0)", "module toy can't be imported: SystemExit"),
    ],
)
def test_what_cannot_be_loaded_is_one_line_that_names_it(name, body, told):
    with pytest.raises(UserError, match=told):
        measure(body, name)


def test_what_a_metric_prints_is_no_result(capsys):
    measure("print('loading')\ndef metric(*texts):\n    print('scoring')\n    return 1.0\n")
    seen = capsys.readouterr()
    assert (seen.out, seen.err) == ("", "loading\nscoring\n")


def bootstrap(ours: np.ndarray, other: np.ndarray) -> float:
    """Two-sided p of the difference of means, by drawing lines (Koehn 2004), written a second time."""
    chooser = random.Random(7)
    differences = []
    for _ in range(4000):
        lines = [chooser.randrange(len(ours)) for _ in ours]
        differences.append(abs(ours[lines].mean() - other[lines].mean()))
    centre = sum(differences) / len(differences)
    return sum(one - centre > abs(ours.mean() - other.mean()) for one in differences) / len(differences)


@pytest.mark.parametrize("shift", [0.0, 0.02, 0.1])
def test_a_comparison_is_that_of_a_bootstrap_over_lines(shift):
    chooser = np.random.default_rng(3)
    other = chooser.random(200)
    ours = other + chooser.normal(shift, 0.2, 200)
    comparison = compare_measured(*(Measured("toy:metric", one.mean(), tuple(one.tolist())) for one in (ours, other)))
    assert comparison.metric == "toy:metric"
    assert comparison.score == pytest.approx(ours.mean())
    assert comparison.other == pytest.approx(other.mean())
    assert comparison.p_value == pytest.approx(bootstrap(ours, other), abs=0.06)
    assert "bs:1000" in comparison.signature


def test_equal_scores_differ_by_chance_and_one_score_of_all_lines_tells_nothing_of_it():
    same = Measured("toy:metric", 0.5, (0.0, 1.0))
    assert compare_measured(same, same).p_value == 1.0
    comparison = compare_measured(Measured("toy:metric", 0.5, None), Measured("toy:metric", 0.4, None))
    assert (comparison.score, comparison.other, comparison.p_value) == (0.5, 0.4, None)
