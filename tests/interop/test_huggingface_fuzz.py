"""Folders that pretend to be Hugging Face models: each is taken and works, or is refused in one line."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.errors import UserError
from headway.interop.huggingface import import_huggingface
from headway.translator import Translator
from tests.faults.fuzzing import spoilt_bytes, spoilt_json, spoilt_model, spoilt_weights
from tests.interop.test_huggingface import opus

pytest.importorskip("transformers")

FEW = settings(max_examples=settings().max_examples // 3, suppress_health_check=list(HealthCheck))
TINY = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
SPOIL = {
    "config.json": lambda data: spoilt_json(json.loads(data)),
    "generation_config.json": lambda data: spoilt_json({**json.loads(data), "num_beams": 2, "max_length": 9}),
    "tokenizer_config.json": lambda data: spoilt_json({**json.loads(data), "unk_token": "<unk>"}),
    "vocab.json": lambda data: spoilt_json(json.loads(data)) | spoilt_bytes(data),
    "source.spm": spoilt_model,
    "model.safetensors": spoilt_weights,
}
"""What is spoilt, and how."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("spoilt") / "hf"
    opus(folder, **TINY)
    return folder


def outcome(folder: Path) -> str:
    """Whether it was taken. Raises whatever is no good complaint."""
    output = folder.parent / "ours"
    try:
        import_huggingface(folder, output)
        translator = Translator.load(output, device="cpu")
        tag = "".join(f">>{language}<< " for language in translator.target_languages[:1])
        translator.translate([f"{tag}the cat", ""], max_length=3)
    except UserError as error:
        if "\n" in str(error) or len(str(error)) > 1000:
            raise AssertionError("a complaint of more than a line") from error
        return "refused"
    finally:
        shutil.rmtree(output, ignore_errors=True)
    return "taken"


@pytest.mark.parametrize("name", SPOIL)
def test_it_is_taken_or_refused_in_one_line(name, folder):
    before = (folder / name).read_bytes()
    assert outcome(folder) == "taken"
    outcomes = []

    @FEW
    @given(SPOIL[name](before))
    def spoil(data: bytes) -> None:
        (folder / name).write_bytes(data)
        outcomes.append(outcome(folder))

    try:
        spoil()
    finally:
        (folder / name).write_bytes(before)
    assert "refused" in outcomes


@given(
    fields=st.dictionaries(st.sampled_from(["num_beams", "length_penalty", "max_length"]), st.floats() | st.integers())
)
@FEW
def test_numbers_of_a_search(fields, folder):
    file = folder / "generation_config.json"
    before = file.read_bytes()
    try:
        file.write_text(json.dumps({**json.loads(before), **fields}))
        outcome(folder)
    finally:
        file.write_bytes(before)
