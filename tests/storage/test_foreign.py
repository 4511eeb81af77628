"""A model of another program in place of a model directory: the message says what it is, and what to do."""

import json

import pytest
from tests.faults.hostile import make_directory

from headway.errors import UserError
from headway.storage import find_model, load_model

MARIAN = {"model_type": "marian", "architectures": ["MarianMTModel"], "d_model": 512}
EXPORTED = "which headway can't read; give the model directory, or import the Hugging Face model"
KINDS = {
    "Hugging Face": ({"config.json": json.dumps(MARIAN), "model.safetensors": ""}, "headway import {} --output MODEL"),
    "Hugging Face, pickled": ({"config.json": json.dumps(MARIAN), "pytorch_model.bin": ""}, "headway import {}"),
    "CTranslate2": (
        {"config.json": '{"add_source_eos": true}', "model.bin": ""},
        f"is a CTranslate2 model, {EXPORTED}",
    ),
    "older CTranslate2": ({"model.bin": ""}, f"is a CTranslate2 model, {EXPORTED}"),
    "ONNX": ({"config.json": '{"format_version": 1}', "encoder.onnx": ""}, f"is an ONNX export, {EXPORTED}"),
    "web": ({"index.html": "", "model.headway": ""}, f"is a web export, {EXPORTED}"),
    "fairseq": ({"checkpoint_best.pt": "", "dict.de.txt": ""}, "is a checkpoint of another toolkit"),
    "JoeyNMT": ({"best.ckpt": "", "config.yaml": ""}, "is a checkpoint of another toolkit"),
    "Marian": ({"model.npz": "", "vocab.spm": ""}, "is a checkpoint of another toolkit"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_another_program_is_named(tmp_path, kind):
    files, says = KINDS[kind]
    folder = tmp_path / "m"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    with pytest.raises(UserError) as error:
        load_model(folder)
    assert str(error.value).startswith(f"{folder}: is a")
    assert says.format(folder) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("en_de.argosmodel", f"is a package for Argos Translate, {EXPORTED}"),
        ("model.bin", "is a CTranslate2 model"),
        ("checkpoint_best.pt", "is a checkpoint of another toolkit"),
        ("model.npz", "is a checkpoint of another toolkit"),
        ("notes.txt", "is not a model directory"),
    ],
)
def test_a_file_of_another_program_is_named(tmp_path, name, says):
    (tmp_path / name).write_bytes(b"\0")
    with pytest.raises(UserError, match=says):
        find_model(tmp_path / name)


def test_a_file_of_a_model_names_its_folder(tmp_path):
    folder = make_directory(tmp_path / "m")
    with pytest.raises(UserError, match=f"give its folder, {folder}"):
        load_model(folder / "model.safetensors")
    (folder / "old.pt").write_bytes(b"\0")  # what lies beside a model is no concern
    assert load_model(folder).source_language == "en"
