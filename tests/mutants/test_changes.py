"""The changes themselves: each is one that runs, and what people read stays as it is."""

import ast
import tomllib
from pathlib import Path

import pytest

from tests.mutants.changes import changes
from tests.mutants.reaching import telling

SOURCE = Path(__file__).parents[2] / "src" / "headway"
EQUIVALENT = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text(encoding="utf-8"))["equivalent"]


def told(source: str) -> set[str]:
    return {str(change) for change in changes(source)}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("x = a < b", {"< -> <=", "< -> >="}),
        ("x = a and b", {"and -> or"}),
        ("x = 'é' + y; z = a - b", {"- -> +", "'é' -> 'Xé'"}),
        ("x = not y", {"not y -> y"}),
        ("x = 3", {"3 -> 4", "3 -> 2"}),
        ("x = True", {"True -> False"}),
        ("f(a, b)", {"f(a, b) -> pass", "f(a, b) -> f(b, a)"}),
        ("x = f(a, k=b)", {"f(a, k=b) -> f(a)"}),
        ("x = max(a, b)", set()),
        ("def f(a: int = 1) -> 'Text': ...", {"1 -> 2", "1 -> 0"}),
        ("if a:\n    raise ValueError('1 < 2')", {"a -> (not (a))", "raise ValueError('1 < 2') -> pass"}),
        ("def f():\n    '''A text: 1 < 2.'''", set()),
        ("x = f'{a + 1}'", set()),
        ("x: Literal['a'] = y", set()),
        ("T = TypeVar('T', A, B)", set()),
        ("self.x = y", {"self.x = y -> pass"}),
        ("x += y", {"x += y -> pass", "+= -> -="}),
        ("x = [a for a in b if c]", {"c -> (not (c))"}),
    ],
)
def test_what_is_changed(source, found):
    assert told(source) == found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_each_leaves_a_file_that_can_be_run(path):
    source = path.read_text(encoding="utf-8")
    for change in changes(source)[::41]:
        assert ast.dump(ast.parse(change.applied(source))) != ast.dump(ast.parse(source)), change
    ast.parse(telling(source, path.name))


def test_every_equivalent_one_is_there():
    lines = {(path.name, line.strip()) for path in SOURCE.rglob("*.py") for line in path.read_text().splitlines()}
    for one in EQUIVALENT:
        assert (one["file"], one["code"]) in lines, one
        assert one["reason"]
