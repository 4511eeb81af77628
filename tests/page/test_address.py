"""Links that hold the view, read without a browser."""

import json
import subprocess
from pathlib import Path

import pytest

import headway.page

PAGE = Path(headway.page.__file__).parent / "views"
SCRIPT = """
const { readAddress } = await import(process.argv[1]);
const kept = { block: null, layers: { encoder: 0, decoder: 0 }, heads: {} };
const record = {
    attention: {}, source: { tokens: [] }, steps: [], model: { config: { encoder_layers: 3, decoder_layers: 3 } },
};
readAddress({ record, chosen: {}, kept: () => kept }, process.argv[2]);
console.log(JSON.stringify({ layers: kept.layers, names: Object.getOwnPropertyNames(kept.layers) }));
"""


@pytest.mark.parametrize(
    ("block", "layers"),
    [
        ("decoder%20cross", {"encoder": 0, "decoder": 1}),
        ("toString%20x", {"encoder": 0, "decoder": 0}),
        ("__proto__", {"encoder": 0, "decoder": 0}),
    ],
)
def test_an_address_chooses_layers_of_stacks_that_there_are(tmp_path, block, layers):
    for module in PAGE.glob("*.js"):
        (tmp_path / module.name).write_bytes(module.read_bytes())
    (tmp_path / "package.json").write_text('{"type": "module"}')
    address = f"view=machine&block={block}&layer=2"
    command = ["node", "--input-type=module", "-e", SCRIPT, (tmp_path / "address.js").as_uri(), address]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout)
    assert answer == {"layers": layers, "names": list(layers)}
