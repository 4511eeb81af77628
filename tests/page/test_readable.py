"""Numbers as the page writes them, and as it reads them."""

import json
import subprocess

import pytest

from tests.page.scripts import MODULES

SCRIPT = """
const { readable, decimal } = await import(process.argv[1]);
const { readMatrix } = await import(process.argv[2]);
const { short } = await import(process.argv[3]);
const written = (value, digits) => [readable(value, digits), decimal(value, digits), short(value)];
const { number, digits, text } = JSON.parse(process.argv[4]);
console.log(JSON.stringify(text === undefined ? written(number, digits) : readMatrix(text, 8)));
"""


@pytest.fixture
def asked(tmp_path):
    for module in (MODULES / "views").glob("*.js"):
        (tmp_path / module.name).write_bytes(module.read_bytes())
    (tmp_path / "package.json").write_text('{"type": "module"}')
    modules = [(tmp_path / name).as_uri() for name in ("numbers.js", "arithmetic.js", "scene_words.js")]

    def ask(question):
        command = ["node", "--input-type=module", "-e", SCRIPT, *modules, json.dumps(question)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout)

    return ask


@pytest.mark.parametrize(
    ("number", "digits", "written"),
    [
        (-0.02, 1, ["0.0", "0.0", "−0.02"]),  # of int8, whose numbers are 0.02 apart
        (-0.004, 2, ["0.00", "0.00", "0.00"]),
        (-1.25, 2, ["−1.25", "−1.25", "−1.25"]),
        (0, 1, ["0.0", "0.0", "0"]),
    ],
)
def test_a_zero_has_no_sign(asked, number, digits, written):
    assert asked({"number": number, "digits": digits}) == written


def test_what_the_page_writes_can_be_typed(asked):
    [written, *_] = asked({"number": -0.00012, "digits": 3})
    assert written == "−1.2e−4"
    assert asked({"text": f"{written} 2\n−3, 4"}) == {"matrix": [[-0.00012, 2], [-3, 4]]}
