"""A shortlist in a model directory: what is written is read back, what doesn't fit the model is refused."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tests.storage.test_model_directory import stored

from headway.errors import UserError
from headway.storage import load_model, save_model
from headway.storage.atomic import remove_directory
from headway.storage.model_directory import checksum
from headway.text.shortlist import Shortlist

pytestmark = pytest.mark.usefixtures("held_files_stay")


def with_shortlist():
    one = stored()
    size = one.model.config.target_vocab_size
    table = np.random.default_rng(1).integers(-1, size, (size, 5)).astype(np.int32)
    one.shortlist = Shortlist(table, np.array([4, 9], dtype=np.int32))
    return one


def test_round_trip(tmp_path):
    one = with_shortlist()
    save_model(tmp_path / "m", one)
    found = load_model(tmp_path / "m").shortlist
    assert found is not None
    assert (found.of_token == one.shortlist.of_token).all()
    assert found.always.tolist() == [4, 9]
    remove_directory(tmp_path / "m")
    assert (found.of_token == one.shortlist.of_token).all()
    save_model(tmp_path / "n", stored())
    assert load_model(tmp_path / "n").shortlist is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {"of_token": t["of_token"]}, "is not a shortlist"),
        (lambda t: {**t, "more": t["always"]}, "has unknown tensor"),
        (lambda t: {**t, "of_token": t["of_token"][1:]}, "is not a shortlist"),
        (lambda t: {**t, "of_token": t["of_token"].long()}, "is not a shortlist"),
        (lambda t: {**t, "of_token": t["of_token"].repeat(1, 60)}, "is not a shortlist"),
        (lambda t: {**t, "of_token": t["of_token"] + 10_000}, "of_token has an id"),
        (lambda t: {**t, "of_token": t["of_token"] - 1}, "of_token has an id"),
        (lambda t: {**t, "always": t["always"] - 5}, "always has an id"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, change, message):
    one = with_shortlist()
    save_model(tmp_path / "m", one)
    file, config = tmp_path / "m" / "shortlist.safetensors", tmp_path / "m" / "config.json"
    tensors = {name: torch.from_numpy(getattr(one.shortlist, name)).clone() for name in ("of_token", "always")}
    save_file({name: tensor.clone() for name, tensor in change(tensors).items()}, file)
    document = json.loads(config.read_text())
    document["sha256"][file.name] = checksum(file)
    config.write_text(json.dumps(document))
    with pytest.raises(UserError, match=message):
        load_model(tmp_path / "m")


def test_a_file_that_the_model_does_not_name_is_ignored(tmp_path):
    save_model(tmp_path / "m", stored())
    (tmp_path / "m" / "shortlist.safetensors").write_bytes(b"junk")
    assert load_model(tmp_path / "m").shortlist is None


def test_damage_is_noticed(tmp_path):
    save_model(tmp_path / "m", with_shortlist())
    file = tmp_path / "m" / "shortlist.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(UserError, match="checksum differs"):
        load_model(tmp_path / "m")
