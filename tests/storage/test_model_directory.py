"""Model directories: what is written is read back, what is damaged is refused."""

import json
import os
import sys
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.storage import Aligner, StoredModel, find_model, load_model, read_model, save_model
from headway.storage.atomic import write_directory
from headway.storage.model_directory import checksum
from headway.text.subwords import SubwordTokenizer, fingerprint
from headway.text.words import WordTokenizer

LINES = ["the cat sat on the mat", "a dog ran after the cat"] * 20


def stored(joint=True, **changes) -> StoredModel:
    if joint:
        source = target = SubwordTokenizer.train(LINES, "bpe", 290)
    else:
        source, target = WordTokenizer(["a", "b"]), WordTokenizer(["c", "d", "e"])
        changes = {"share_embeddings": "decoder", **changes}
    options = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, **changes}
    config = ModelConfig(source.vocab_size, target.vocab_size, **options)
    return StoredModel(
        model=Transformer(config).eval(),
        source_tokenizer=source,
        target_tokenizer=target,
        source_language="en",
        target_language="ko",
        decoding={"max_length": 7},
        card="# card\n",
    )


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("changes", [{}, {"positions": "learned", "output_bias": True}, {"norm": "pre"}])
def test_round_trip(tmp_path, joint, changes):
    model = stored(joint, **changes)
    save_model(tmp_path / "m", model)
    copy = load_model(tmp_path / "m")
    assert copy.model.config == model.model.config
    source, target = torch.tensor([[4, 5, 3]]), torch.tensor([[2, 4]])
    assert torch.equal(copy.model(source, target), model.model(source, target))
    weights = read_model(tmp_path / "m").weights()
    assert weights.keys() == model.weights().keys()
    assert all((weights[name] == weight).all() for name, weight in model.weights().items())
    assert fingerprint(copy.source_tokenizer) == fingerprint(model.source_tokenizer)
    assert fingerprint(copy.target_tokenizer) == fingerprint(model.target_tokenizer)
    assert (copy.source_language, copy.target_language) == ("en", "ko")
    assert copy.decoding == {"max_length": 7}
    assert copy.card == "# card\n"


@pytest.mark.parametrize("domain", ["", "captions of photographs", "날짜"])
def test_the_domain_is_kept(tmp_path, domain):
    save_model(tmp_path / "m", replace(stored(), domain=domain))
    assert load_model(tmp_path / "m").domain == domain


@pytest.mark.parametrize(("domain", "message"), [("two\nlines", "be printable"), ("x" * 101, "have at most 100")])
def test_a_domain_is_a_few_words(tmp_path, domain, message):
    with pytest.raises(UserError, match=f"domain=.*: must {message}"):
        save_model(tmp_path / "m", replace(stored(), domain=domain))


def test_shared_parameters_count_once():
    model = stored()
    weights = {weight.data_ptr(): weight.numel() for weight in model.model.state_dict().values()}
    assert model.num_parameters == sum(weights.values())


@pytest.mark.parametrize("aligner", [None, Aligner(), Aligner(0, 1, True, False), Aligner(0, None, False, True)])
def test_the_aligner_is_kept(tmp_path, aligner):
    save_model(tmp_path / "m", replace(stored(), aligner=aligner))
    assert load_model(tmp_path / "m").aligner == aligner


def test_an_aligner_of_another_model_is_not_saved(tmp_path):
    with pytest.raises(UserError, match="layer must be null or 0 to 0"):
        save_model(tmp_path / "m", replace(stored(), aligner=Aligner(layer=1)))
    assert not (tmp_path / "m").exists()


def test_files_are_those_of_the_design(tmp_path):
    save_model(tmp_path / "m", stored())
    assert {file.name for file in (tmp_path / "m").iterdir()} == {
        "config.json", "model.safetensors", "tokenizer.spm", "decoding.json", "README.md"
    }  # fmt: skip
    save_model(tmp_path / "w", stored(joint=False))
    names = {file.name for file in (tmp_path / "w").iterdir()}
    assert {"source.vocab.json", "target.vocab.json"} < names
    assert json.loads((tmp_path / "m" / "config.json").read_text())["format_version"] == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no umask")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_files_may_be_read_by_whom_the_umask_says(tmp_path, umask, mode):
    """The weights, too, as which a container or another user serves them."""
    before = os.umask(umask)
    try:
        save_model(tmp_path / "model", stored())
    finally:
        os.umask(before)
    assert {oct(file.stat().st_mode & 0o777) for file in (tmp_path / "model").iterdir()} == {oct(mode)}


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.spm", "decoding.json", "README.md"])
def test_a_flipped_bit_is_noticed_and_named(tmp_path, name):
    save_model(tmp_path / "m", stored())
    file = tmp_path / "m" / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(UserError, match=rf"{name}: its checksum differs"):
        load_model(tmp_path / "m")


def rewrite_weights(folder, change):
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    config["sha256"]["model.safetensors"] = checksum(folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))


ATTENTION, FEED_FORWARD = "encoder.layers.0.self_attention", "encoder.layers.0.feed_forward"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop(f"{ATTENTION}.key.bias"), "lacks tensor"),
        (lambda weights: weights.update(extra=torch.zeros(1)), "has unknown tensor 'extra'"),
        (lambda weights: weights.update({f"{FEED_FORWARD}.inner.weight": torch.zeros(3, 3)}), r"\(3, 3\)"),
        (lambda weights: weights.update({f"{ATTENTION}.key.bias": torch.full((16,), float("nan"))}), "not finite"),
        (lambda weights: weights.update({f"{ATTENTION}.key.bias": torch.zeros(16, dtype=torch.int32)}), "I32"),
    ],
)
def test_wrong_weights_are_refused(tmp_path, change, message):
    save_model(tmp_path / "m", stored())
    rewrite_weights(tmp_path / "m", change)
    for load in (load_model, lambda path: read_model(path).weights()):
        with pytest.raises(UserError, match=message):
            load(tmp_path / "m")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("format_version", 2, "format_version 2"),
        ("model", {"d_model": 3}, "vocab_size"),
        ("model", 7, "model=7: must be"),
        ("tokenizer", {"source": "../x", "target": "x"}, "tokenizer.source=.*: must be"),
        ("sha256", {}, "checksums"),
        ("sha256", {"model.safetensors": ""}, "checksums"),
        ("tokenizer", {"source": ["x"], "target": "x"}, "tokenizer.source=.*: must be"),
    ],
)
def test_wrong_config_is_refused(tmp_path, key, value, message):
    save_model(tmp_path / "m", stored())
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps({**config, key: value}))
    with pytest.raises(UserError, match=message):
        load_model(tmp_path / "m")


def test_what_is_no_model_says_so(tmp_path):
    with pytest.raises(UserError, match="no such folder"):
        find_model(tmp_path / "absent")
    with pytest.raises(UserError, match="is not a model directory"):
        find_model(tmp_path)
    (tmp_path / "recipe.yaml").write_text("")
    with pytest.raises(UserError, match="no model yet"):
        find_model(tmp_path)


def test_a_run_directory_means_its_best(tmp_path):
    for step in (1, 2):
        save_model(tmp_path / "models" / f"step-0000000{step}", stored())
    (tmp_path / "best.json").write_text('{"model": "step-00000001"}')
    assert find_model(tmp_path).name == "step-00000001"
    (tmp_path / "best.json").write_text('{"model": "../elsewhere"}')
    with pytest.raises(UserError, match="elsewhere"):
        find_model(tmp_path)


def test_a_directory_appears_whole_or_not_at_all(tmp_path):
    def fail():
        with write_directory(tmp_path / "d") as folder:
            (folder / "half").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert not list(tmp_path.iterdir())
    with write_directory(tmp_path / "d") as folder:
        (folder / "whole").write_text("x")
        assert not (tmp_path / "d").exists()
    assert [path.name for path in tmp_path.rglob("*")] == ["d", "whole"]
