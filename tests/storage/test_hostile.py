"""A model directory from a stranger is refused with one line, before memory is taken for it."""

import ast
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from tests.faults.hostile import (
    CONTROL,
    NORMAL,
    UNKNOWN,
    change_config,
    controls,
    field,
    make_directory,
    normalizer,
    piece,
    replace,
    safetensors,
    split_safetensors,
    subword_model,
    word_tokenizer,
)

from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.storage import find_model, load_model, save_model
from headway.storage.model_directory import model_fingerprint
from headway.storage.tensors import LARGEST_HEADER, load_tensors
from headway.text.subwords import SubwordTokenizer

ROOT = Path(__file__).parent.parent.parent
WEIGHTS = "model.safetensors"
ALIGNMENT = {"layer": 0, "head": None, "shifted": False, "eos_is_nothing": True}
SCORES = dict.fromkeys(("fp32_bleu", "int8_bleu", "fp32_chrf", "int8_chrf"), 36)
INT8 = {"pairs": 9, **SCORES, "bleu_p_value": 0.5, "chrf_p_value": 0.5}


@pytest.fixture
def folder(tmp_path) -> Path:
    return make_directory(tmp_path / "m")


def refusal(folder: Path) -> str:
    """What is wrong with the directory: one line, which names the place."""
    with pytest.raises(UserError) as error:
        load_model(folder)
    assert str(folder) in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 600
    return str(error.value)


def test_what_is_valid_is_taken(folder, tmp_path):
    assert load_model(folder).source_language == "en"
    assert load_model(make_directory(tmp_path / "w", word_tokenizer())).target_language == "ko"


class Trap:
    """Whoever unpickles it makes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self):
        return os.mkdir, (str(self.file),)


def padded(data: bytes, size: int) -> bytes:
    return data + bytes(size - len(data))


def test_a_pickle_is_never_read(folder, tmp_path):
    sprung = tmp_path / "sprung"
    trap = pickle.dumps(Trap(sprung))
    size = (folder / WEIGHTS).stat().st_size
    torch.save({"weights": torch.zeros(3), "trap": Trap(sprung)}, tmp_path / "zip")
    for data in (trap, padded(trap, size), padded((tmp_path / "zip").read_bytes(), size)):
        replace(folder, WEIGHTS, data)
        assert WEIGHTS in refusal(folder)
    assert "not a safetensors file" in refusal(folder)
    for name in ("config.json", "tokenizer.spm", "decoding.json"):
        replace(make_directory(tmp_path / name), name, trap)
        assert name in refusal(tmp_path / name)
    for name in ("pytorch_model.bin", "model.pkl", "optimizer.pt", "data.npy"):  # what isn't the model's is left alone
        (make_directory(tmp_path / "extra") / name).write_bytes(trap)
        load_model(tmp_path / "extra")
    assert not sprung.exists()
    pickle.loads(trap)
    assert sprung.exists()  # the trap would have worked


def test_no_code_of_ours_reads_or_writes_a_pickle():
    modules = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert not {part for name in names for part in name.split(".")} & modules, file
            if isinstance(node, ast.ImportFrom) and node.module == "torch":
                assert not {"load", "save"} & set(names), file
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert (node.value.id, node.attr) not in {("torch", "load"), ("torch", "save")}, file
            if isinstance(node, ast.Call):
                assert "allow_pickle" not in [keyword.arg for keyword in node.keywords], file
                assert not (isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec")), file


def with_first(header, **changes):
    first = min(header, key=lambda name: header[name]["data_offsets"])
    return {**header, first: {**header[first], **changes}}


def with_turned_embedding(header):
    embedding = header["source_embedding.weight"]
    return {**header, "source_embedding.weight": {**embedding, "shape": embedding["shape"][::-1]}}


HEADERS = {
    "not JSON": (lambda header: b"\x80\x04junk", "is not JSON"),
    "nested": (lambda header: b'{"a":' * 100_000, "is not JSON"),
    "a list": (lambda header: b"[]", "must hold a JSON object"),
    "a tensor twice": (
        lambda header: json.dumps(header).encode()[:-1] + b"," + json.dumps(header).encode()[1:],
        "stands twice",
    ),
    "a member twice": (
        lambda header: json.dumps(header).encode().replace(b'"dtype":', b'"dtype": "F32", "dtype":', 1),
        "'dtype' stands twice",
    ),
    "a negative size": (lambda header: with_first(header, shape=[-1, 8]), "not a readable safetensors file"),
    "a size that is no number": (lambda header: with_first(header, shape=[True, 8]), "not a readable"),
    "more than 64 bits": (lambda header: with_first(header, shape=[2**63, 2**63]), "not a readable"),
    "an unknown type": (lambda header: with_first(header, dtype="PICKLE"), "not a readable safetensors file"),
    "overlapping": (lambda header: with_first(header, data_offsets=[0, 9 * 8 * 4]), "not a readable safetensors file"),
    "outside": (lambda header: with_first(header, data_offsets=[2**40, 2**40 + 4]), "not a readable"),
    "another shape": (with_turned_embedding, "is F32 (8, 279), it should be F32 (279, 8)"),
    "another type": (lambda header: with_first(header, dtype="I32"), "is I32"),
    "another name": (lambda header: {f"x{name}": kind for name, kind in header.items()}, "lacks tensor"),
    "none": (lambda header: {}, "not a readable safetensors file"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_wrong_header_is_refused_before_a_weight_is_read(folder, case, monkeypatch):
    change, message = HEADERS[case]
    header, tensors = split_safetensors((folder / WEIGHTS).read_bytes())
    replace(folder, WEIGHTS, safetensors(change(header), tensors))
    monkeypatch.setattr("safetensors.numpy.load_file", None)
    monkeypatch.setattr("headway.storage.stored_model.Transformer", never_made)
    assert message in refusal(folder)


def never_made(config: ModelConfig) -> Transformer:
    raise AssertionError("a model takes memory before its file is found right")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop("encoder.layers.0.self_attention.key.bias"), "lacks tensor 'encoder"),
        (lambda weights: weights.update(extra=torch.zeros(1)), "has unknown tensor 'extra'"),
        (lambda weights: weights.update(extra=torch.zeros(3_000_000)), "has .* bytes, but the model"),
        (lambda weights: next(iter(weights.values())).view(-1)[:1].fill_(float("nan")), "not finite"),
        (lambda weights: next(iter(weights.values())).view(-1)[:1].fill_(float("-inf")), "not finite"),
    ],
)
def test_other_weights_are_refused(folder, change, message):
    weights = load((folder / WEIGHTS).read_bytes())
    change(weights)
    replace(folder, WEIGHTS, save(weights))
    with pytest.raises(UserError, match=message):
        load_model(folder)


def test_tensors_are_those_that_are_wanted(tmp_path):
    wanted = {"a": torch.arange(3.0), "step": torch.tensor(7), "state": torch.arange(9, dtype=torch.uint8)}
    file = tmp_path / "x.safetensors"
    file.write_bytes(save(wanted))
    meta = {name: tensor.to("meta") for name, tensor in wanted.items()}
    found = load_tensors(file, meta)
    assert all(torch.equal(found[name], tensor) for name, tensor in wanted.items())
    for name, other in (("a", torch.zeros(4)), ("step", torch.tensor(7.0)), ("b", torch.zeros(1))):
        with pytest.raises(UserError, match=name):
            load_tensors(file, {**meta, name: other})


CONFIGS = {
    "d_model of a billion": ({"d_model": 10**9}, "d_model=1000000000: must be at most"),
    "d_model beyond 64 bits": ({"d_model": 10**40}, "d_model=1000"),
    "layers without end": ({"encoder_layers": 10**9}, "encoder_layers=1000000000: must be at most"),
    "the most of everything": (
        {"d_model": 2**16, "d_ff": 2**20, "encoder_layers": 256, "decoder_layers": 256},
        "bytes, but the model of config.json has weights of",
    ),
    "heads that don't divide": ({"num_heads": 3}, "d_model=8 is not divisible by num_heads=3"),
    "no heads": ({"num_heads": 0}, "num_heads=0"),
    "negative layers": ({"decoder_layers": -1}, "decoder_layers=-1: must be at least 0"),
    "true for 1": ({"encoder_layers": True}, "encoder_layers=True: must be a valid integer"),
    "1.0 for 1": ({"encoder_layers": 1.0}, "encoder_layers=1.0: must be a valid integer"),
    "a number as text": ({"d_ff": "12"}, "d_ff='12'"),
    "dropout of 1": ({"dropout": 1.0}, "dropout=1.0"),
    "endless dropout": ({"dropout": 1e999}, "is no number"),
    "an unknown field": ({"colour": 1}, "model.colour is unknown"),
    "a control id that is none": ({"eos_id": 10**6}, "eos_id=1000000"),
    "another size": ({"d_ff": 13}, "it should be F32 (13"),
    "a long value": ({"activation": "x" * 100_000}, "activation='xxx"),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_an_impossible_model_is_refused(folder, case, monkeypatch):
    changes, message = CONFIGS[case]
    change_config(folder, lambda config: config["model"].update(changes))
    monkeypatch.setattr("headway.storage.stored_model.Transformer", never_made)
    assert message in refusal(folder)


def test_the_shapes_of_a_model_cost_nothing():
    """Neither memory nor the second that torch's compiler takes to load."""
    script = """
import resource, sys, torch
from headway.model import ModelConfig, Transformer
before, modules = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(sys.modules)
with torch.device("meta"):
    model = Transformer(ModelConfig(2**24, 2**24, d_model=2**16, d_ff=2**20, encoder_layers=9))
assert sum(parameter.nbytes for parameter in model.parameters()) > 10**12
assert len(sys.modules) - modules < 20
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda config: config.update(format_version=2), "format_version 2 is newer than what this version"),
        (lambda config: config.update(format_version=0), "format_version 0 is not one that headway ever wrote"),
        (lambda config: config.update(format_version=True), "format_version True is not one"),
        (lambda config: config.update(format_version=1.0), "format_version 1.0 is not one"),
        (lambda config: config.update(format_version="1"), "format_version '1' is not one"),
        (lambda config: config.pop("format_version"), "format_version None is not one"),
        (lambda config: config.update(run="rm -rf"), "run is unknown"),
        (lambda config: config.update(training_flops=None), "training_flops=None: must be a valid number"),
        (lambda config: config.update(training_flops=-1.0), "training_flops=-1.0: must be at least 0"),
        (lambda config: config.update(training_flops=1e308 * 10), "is not JSON"),
        (lambda config: config.update(alignment=None), "alignment=None: must be an object"),
        (lambda config: config.update(alignment={"layer": 0}), "must have the members layer, head, shifted, eos"),
        (lambda config: config.update(alignment=ALIGNMENT | {"layer": 99}), "layer must be null or 0 to"),
        (
            lambda config: config.update(alignment=ALIGNMENT | {"head": -1}),
            "alignment.head=-1: must be at least 0",
        ),
        (lambda config: config.update(alignment=ALIGNMENT | {"head": 99}), "head must be null or 0 to 1"),
        (
            lambda config: config.update(alignment=ALIGNMENT | {"head": True}),
            "head=True: must be a valid integer",
        ),
        (
            lambda config: config.update(alignment=ALIGNMENT | {"shifted": 1}),
            "shifted=1: must be a valid boolean",
        ),
        (lambda config: config.update(int8=True), "int8=True: must be an object"),
        (lambda config: config.update(int8={"pairs": 9}), "int8.fp32_bleu is missing"),
        (lambda config: config.update(int8=INT8 | {"pairs": 0}), "int8.pairs=0: must be at least 1"),
        (lambda config: config.update(int8=INT8 | {"pairs": 1.5}), "int8.pairs=1.5: must be a valid integer"),
        (lambda config: config.update(int8=INT8 | {"pairs": 10**99}), "0: must be at most 9007199254740992"),
        (
            lambda config: config.update(int8=INT8 | {"fp32_bleu": "36"}),
            "int8.fp32_bleu='36': must be a valid number",
        ),
        (
            lambda config: config.update(int8=INT8 | {"int8_chrf": 101}),
            "int8.int8_chrf=101: must be at most 100",
        ),
        (
            lambda config: config.update(int8=INT8 | {"chrf_p_value": 1.1}),
            "int8.chrf_p_value=1.1: must be at most 1",
        ),
        (
            lambda config: config.update(int8=INT8 | {"bleu_p_value": True}),
            "int8.bleu_p_value=True: must be a valid number",
        ),
        (lambda config: config.update(model=[1]), "model=[1]: must be an object"),
        (lambda config: config.pop("model"), "model is missing"),
        (lambda config: config.update(source_language="\x1b[2J"), "must be printable"),
        (lambda config: config.update(target_language=["ko"]), "target_language=['ko']: must be a valid string"),
        (lambda config: config["tokenizer"].update(more={}), "tokenizer.more is unknown"),
        (lambda config: config["tokenizer"].pop("target"), "tokenizer.target is missing"),
        (
            lambda config: config["tokenizer"].update(source="../tokenizer.spm"),
            "tokenizer.source='../tokenizer.spm': must be 'tok",
        ),
        (lambda config: config["tokenizer"].update(target="/dev/zero"), "tokenizer.target='/dev/zero': must be"),
        (lambda config: config["tokenizer"].update(target=None), "tokenizer.target=None: must be 'tokenizer.spm'"),
        (
            lambda config: config["tokenizer"].update(source="model.safetensors"),
            "tokenizer.source='model.safetensors': must be",
        ),
        (lambda config: config["tokenizer"].update(source="source.spm"), "must have exactly the checksums"),
        (lambda config: config["sha256"].update({"../x": "0"}), "must have exactly the checksums"),
        (lambda config: config["sha256"].pop("README.md"), "must have exactly the checksums"),
        (lambda config: config["sha256"].update({WEIGHTS: 0}), "sha256.model.safetensors=0: must be a valid string"),
        (lambda config: config["sha256"].update({WEIGHTS: "0" * 64}), "its checksum differs"),
    ],
)
def test_a_wrong_config_is_refused(folder, change, message):
    change_config(folder, change)
    assert message in refusal(folder)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"format_version": 1, "format_version": 1}', "'format_version' stands twice"),
        (b'{"format_version": 1, "model": {"d_model": 1, "d_model": 2}}', "'d_model' stands twice"),
        (b'{"format_version": NaN}', "NaN is no number"),
        (b'{"a":' * 100_000, "is not JSON"),
        (b"[" * 900_000, "is not JSON"),
        (b'{"format_version": 1' + b"0" * 10_000 + b"}", "is not JSON"),
        ('{"format_version": 1}'.encode("utf-16"), "is not JSON"),
        (b"\xff{}", "is not JSON"),
        (b"", "is not JSON"),
        (b"null", "must hold a JSON object"),
        (b" " * (2**20 + 1), "more than the 1,048,576"),
    ],
)
@pytest.mark.parametrize("name", ["config.json", "best.json"])
def test_json_means_one_thing(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    assert message in refusal(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colour": 1}, "colour is unknown"),
        ({"self": 1}, "self is unknown"),
        ({"beam_size": True}, "beam_size=True"),
        ({"beam_size": 10**9}, "beam_size=1000000000: must be at most 1000"),
        ({"beam_size": 2.0}, "beam_size=2.0"),
        ({"max_length": 10**9}, "max_length=1000000000: must be at most"),
        ({"length_penalty": True}, "length_penalty=True"),
        ({"length_penalty": -1}, "length_penalty=-1"),
        ({"n_best": 9}, "n_best=9 is more than beam_size"),
        ({"sample": {"temperature": 1.0}}, "sample can't be a default"),
    ],
)
def test_wrong_search_options_are_refused(folder, options, message):
    replace(folder, "decoding.json", json.dumps(options).encode())
    assert message in refusal(folder)


def with_later_texts(spec: bytes) -> bytes:
    """Each rule gives its text without the first byte."""
    size = (1024).to_bytes(4, "little")
    before, after = spec.split(size, 1)
    nodes = np.frombuffer(after[:1024], "<u4").copy()
    nodes[nodes >> 31 == 1] += 1  # leaves
    return before + size + nodes.tobytes() + after[1024:]


SUBWORDS = {
    "junk": (b"junk", "not a sentencepiece model"),
    "empty": (b"", "not a sentencepiece model (it is empty)"),
    "a piece that is no text": (subword_model(more=[piece(b"\xff\xfe")]), "not a sentencepiece model"),
    "an empty piece": (subword_model(more=[piece("")]), "must not be empty"),
    "a piece with a zero": (subword_model(more=[piece("a\0b")]), "null character"),
    "a piece twice": (subword_model(more=[piece("the")]), "already defined"),
    "a score that is none": (subword_model(more=[piece("new", float("nan"))]), "a score is not finite"),
    "an endless score": (subword_model(more=[piece("new", float("inf"))]), "a score is not finite"),
    "text as <eos>": (subword_model([*controls()[:3], piece("<eos>", kind=NORMAL)]), "id 3 is not a control symbol"),
    "<pad> that is text": (subword_model([piece("x"), *controls()[1:]]), "id 0 is not a control symbol"),
    "another <unk>": (
        subword_model([piece("<unk>", kind=UNKNOWN), *(piece(f"<{i}>", kind=CONTROL) for i in range(3))]),
        "id 0 is not a control symbol",
    ),
    "rules that explode": (subword_model(rules={"a": "y" * 100_000}), "gives more than 256 bytes"),
    "exploding rules before good ones": (
        field(3, normalizer({"a": "y" * 100_000})) + subword_model(),
        "gives more than 256 bytes",
    ),
    "an exploding denormalizer": (
        subword_model() + field(5, normalizer({"a": "y" * 100_000})),
        "gives more than 256 bytes",
    ),
    "damaged rules": (subword_model() + field(3, field(2, b"\xff" * 100)), "rules of normalisation are damaged"),
    "rules that lead out": (
        subword_model() + field(3, field(2, (1024).to_bytes(4, "little") + b"\xff\xff\xff\x7f" * 256 + b"x\0")),
        "",
    ),
    "rules that give half a text": (subword_model() + field(3, with_later_texts(normalizer())), "where no text begins"),
    "rules that give no text": (subword_model().replace("صلى".encode(), b"\xff" * 6), "bytes that are not UTF-8"),
    "a group": (subword_model() + b"\x0b\x0c", "a field of an unknown kind"),
    "a number without an end": (subword_model() + b"\x80" * 20, "a number has no end"),
    "a number of a field that wraps": (subword_model() + b"\x9a\x80\x80\x80\x10\x00", "number is too large"),
    "cut": (subword_model()[:-1], "it ends too early"),
}


@pytest.mark.parametrize("case", SUBWORDS)
def test_a_hostile_sentencepiece_model_is_refused(folder, case):
    data, message = SUBWORDS[case]
    replace(folder, "tokenizer.spm", data)
    assert message in refusal(folder)


@pytest.mark.parametrize("rule", ["nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf", "identity"])
def test_the_normalisers_of_sentencepiece_are_taken(rule):
    import sentencepiece

    spec = sentencepiece.SentencePieceNormalizer(rule_name=rule).serialized_normalizer_spec()
    assert SubwordTokenizer(subword_model() + field(3, spec)).encode("the cat")


def test_an_exploding_rule_would_work(folder):
    import sentencepiece

    harmful = sentencepiece.SentencePieceProcessor(model_proto=subword_model(rules={"a": "y" * 100_000}))
    assert len(harmful.normalize("a" * 100)) > 10**7


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"words": "the cat", "lowercase": False}, "not a word vocabulary"),
        ({"words": {"the": 1}, "lowercase": False}, "not a word vocabulary"),
        ({"words": ["the", 1], "lowercase": False}, "not a word vocabulary"),
        ({"words": ["the"], "lowercase": 0}, "not a word vocabulary"),
        ({"words": ["the", "\ud800"], "lowercase": False}, "not a word vocabulary"),
        ({"words": ["the", "the"], "lowercase": False}, "stands twice"),
        ({"words": ["the", ""], "lowercase": False}, "is blank or holds a space"),
        ({"words": ["the", "a\nb"], "lowercase": False}, "is blank or holds a space"),
        ({"words": ["the", "cat"], "lowercase": False}, "tokenizer has 6 tokens, but source_vocab_size is 10"),
    ],
)
def test_a_hostile_word_vocabulary_is_refused(tmp_path, document, message):
    folder = make_directory(tmp_path / "m", word_tokenizer())
    replace(folder, "tokenizer.vocab.json", json.dumps(document).encode())
    assert message in refusal(folder)


FILES = ["config.json", WEIGHTS, "tokenizer.spm", "decoding.json", "README.md"]


@pytest.mark.parametrize("name", FILES)
def test_a_link_out_of_the_directory_is_not_followed(folder, tmp_path, name):
    (folder / name).rename(tmp_path / "elsewhere")
    for target in (tmp_path / "elsewhere", Path("../elsewhere"), Path("around/elsewhere"), tmp_path / "nothing"):
        (folder / "around").unlink(missing_ok=True)
        (folder / "around").symlink_to(tmp_path)
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)
        assert f"{name}: is a link out of its folder" in refusal(folder)


def test_links_within_the_directory_are_followed(folder):
    """As Kubernetes has them: `..data` changes its target when a volume is updated."""
    card = load_model(folder).card
    (folder / "..2026").mkdir()
    (folder / "..data").symlink_to("..2026")
    for file in [file for file in folder.iterdir() if file.is_file()]:
        file.rename(folder / "..2026" / file.name)
        file.symlink_to(f"..data/{file.name}")
    assert load_model(folder).card == card
    assert model_fingerprint(folder) == model_fingerprint(folder / "..2026")
    (folder / "..2026" / WEIGHTS).unlink()
    assert f"{WEIGHTS}: leads to no file" in refusal(folder)
    (folder / "..2026" / WEIGHTS).symlink_to(WEIGHTS)
    assert f"{WEIGHTS}: can't be read" in refusal(folder)
    if hasattr(os, "mkfifo"):
        (folder / "..2026" / WEIGHTS).unlink()
        os.mkfifo(folder / "..2026" / WEIGHTS)
        assert f"{WEIGHTS}: is a folder, a pipe or a device" in refusal(folder)


def test_the_cache_of_the_hub_is_followed_and_nothing_that_looks_like_it(folder, tmp_path):
    snapshot, blobs = tmp_path / "models--me--de-en" / "snapshots" / "5a", tmp_path / "models--me--de-en" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, file in enumerate(folder.iterdir()):
        file.rename(blobs / str(number))
        (snapshot / file.name).symlink_to(f"../../blobs/{number}")
    assert load_model(snapshot).source_language == "en"
    (snapshot / "deeper").mkdir()
    for file in [file for file in snapshot.iterdir() if file.is_symlink()]:
        (snapshot / "deeper" / file.name).symlink_to(f"../../../blobs/{file.readlink().name}")
    assert load_model(snapshot / "deeper").source_language == "en"
    blobs.rename(tmp_path / "private")
    blobs.symlink_to(tmp_path / "private")
    assert "is a link out of its folder" in refusal(snapshot)
    blobs.unlink()
    (tmp_path / "private").rename(blobs)
    snapshot.parent.rename(tmp_path / "models--me--de-en" / "other")
    assert "is a link out of its folder" in refusal(tmp_path / "models--me--de-en" / "other" / "5a")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
@pytest.mark.parametrize("name", FILES)
def test_a_pipe_is_not_waited_for(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert f"{name}: is a folder, a pipe or a device" in refusal(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_folder_and_nothing_are_no_file(folder, name):
    (folder / name).unlink()
    assert name in refusal(folder) if name != "config.json" else "is not a model directory" in refusal(folder)
    (folder / name).mkdir()
    assert f"{name}: is a folder, a pipe or a device" in refusal(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_huge_file_is_not_read(folder, name):
    os.truncate(folder / name, 2**40)
    assert "1,099,511,627,776 bytes" in refusal(folder)


def test_an_absurd_header_is_not_read(folder, tmp_path):
    header, tensors = split_safetensors((folder / WEIGHTS).read_bytes())
    for length in (2**63, 2**40, len(tensors) * 1000, LARGEST_HEADER + 1):
        replace(folder, WEIGHTS, length.to_bytes(8, "little") + json.dumps(header).encode() + tensors)
        assert f"its header would have {length:,} bytes" in refusal(folder)
    file = tmp_path / "x.safetensors"
    file.write_bytes((LARGEST_HEADER + 1).to_bytes(8, "little") + bytes(LARGEST_HEADER + 10))
    with pytest.raises(UserError, match="its header would have"):
        load_tensors(file, {})


def test_a_run_leads_nowhere_else(tmp_path):
    outside, run = make_directory(tmp_path / "outside"), tmp_path / "run"
    make_directory(run / "models" / "good")
    (run / "models" / "link").symlink_to(outside)
    (run / "models" / "loop").symlink_to(run / "models" / "loop")
    (run / "best.json").write_text('{"model": "good"}')
    assert load_model(run).card
    (tmp_path / "my link").symlink_to(run)  # how the user comes to it is the user's business
    assert load_model(tmp_path / "my link").card
    for name, message in (("link", "link: is a link out of"), ("loop", "can't be read")):
        (run / "best.json").write_text(json.dumps({"model": name}))
        assert message in refusal(run)
    for name in ("..", ".", "", "../../outside", str(outside), "good/", "a\0b", None, 1, ["good"]):
        (run / "best.json").write_text(json.dumps({"model": name}))
        assert "which is not in" in refusal(run)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "best.json").write_text('{"model": "good"}')
    assert "which is not in" in refusal(tmp_path / "other")
    (tmp_path / "other" / "models").symlink_to(run / "models")
    assert "or lies behind one" in refusal(tmp_path / "other")
    (run / "best.json").unlink()
    (run / "best.json").symlink_to(outside / "config.json")
    with pytest.raises(UserError, match=r"best\.json: is a link out of"):
        find_model(run)


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    stored = load_model(make_directory(tmp_path / "m"))
    stored.source_language = "\x1b[2J"
    with pytest.raises(UserError, match="source_language"):
        save_model(tmp_path / "n", stored)
    stored.source_language, stored.decoding = "en", {"colour": 1}
    with pytest.raises(UserError, match="colour"):
        save_model(tmp_path / "n", stored)
    assert not (tmp_path / "n").exists()


def test_the_last_of_many_members_is_seen_to_stand_twice(tmp_path):
    members = ",".join(f'"{number}": 0' for number in range(80_000))
    (tmp_path / "config.json").write_text(f'{{{members}, "79999": 0}}')
    assert "'79999' stands twice" in refusal(tmp_path)


def test_a_card_that_is_no_text_is_harmless(folder):
    replace(folder, "README.md", b"\xff\xfe\0")
    assert load_model(folder).card == "\ufffd\ufffd\0"


def test_spoilt_directories(tmp_path):
    """A small number of the inputs of tests/faults/test_fuzz.py, always the same ones."""
    command = [sys.executable, "-m", "tests.faults.fuzzing", tmp_path, "60"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("'refused'") == 5
