"""What needs no tensor works where torch isn't installed: text, model directories, scores, documents, commands."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from headway.decoding import SearchOptions, TorchEngine, TorchSearcher
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel, load_model, save_model
from headway.text.words import WordTokenizer
from headway.translator.aligning import align, choose_aligner
from headway.translator.confidence import confidence_features
from headway.translator.reading import TorchReader
from tests.test_rooms import MODULES, room_of

BLOCKED = "import sys\nsys.modules['torch'] = None\n"
ROOMS = {
    "text",
    "storage",
    "evaluation",
    "documents",
    "cli",
    "errors",
    "languages",
    "devices",
    "threads",
    "decoding.options",
    "plain",
    "translator",
    "insight",
    "data",
    "page",
    "recipe",
    "serving",
    "cluster",
}
NEED_TORCH = {
    "headway.storage.stored_model",
    "headway.insight.editing",
    "headway.insight.recording",
    *(name for name in MODULES if name.startswith("headway.insight.analyses.") and not name.endswith(".analysis")),
    "headway.page.inspecting",
    "headway.page.watching",
    "headway.recipe.planning",
    "headway.recipe.sizes",
    "headway.recipe.choosing",
}
"""What runs a model in torch, or changes one."""
PAIRS = ([[4, 5, 6], [7]], [[6, 5], [4, 5, 7, 4]])
"""Sources and their translations as ids."""
READ = """
from headway.storage import read_model
directory = read_model(__import__("pathlib").Path(sys.argv[1]))
"""


def run(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + code, *arguments], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    words = WordTokenizer(["ein", "hund", "läuft", "."])
    torch.manual_seed(1)
    config = ModelConfig(words.vocab_size, words.vocab_size, d_model=8, num_heads=2, encoder_layers=1, decoder_layers=1)
    stored = StoredModel(
        model=Transformer(config),
        source_tokenizer=words,
        target_tokenizer=words,
        source_language="de",
        target_language="en",
    )
    path = tmp_path_factory.mktemp("model") / "model"
    save_model(path, stored)
    return path


def test_torch_is_really_missing():
    run("try:\n    import torch\nexcept ImportError:\n    pass\nelse:\n    raise SystemExit(1)")


def test_what_needs_torch_says_how_to_install_it():
    """In Python, and in a command, whose recipe is not even looked for."""
    code = """
for package, name in [("headway", "Transformer"), ("headway.model", "attend"), ("headway.storage", "load_model")]:
    try:
        getattr(__import__(package, fromlist=[name]), name)
    except ImportError as error:
        print(error)
"""
    remedy = "needs torch, which is not installed: pip install 'headway[torch]'"
    names = ("headway.Transformer", "headway.model.attend", "headway.storage.load_model")
    assert run(code) == "".join(f"{name} {remedy}\n" for name in names)
    command = "from headway.cli import main\nsys.argv = ['headway', 'train', 'recipe.yaml']\nmain()"
    done = subprocess.run([sys.executable, "-c", BLOCKED + command], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"headway: `headway train` {remedy}\n")


def test_another_module_that_is_missing_is_no_matter_of_torch():
    code = "sys.modules['headway.model.transformer'] = None\nimport headway.model\nheadway.model.Transformer"
    done = subprocess.run([sys.executable, "-c", BLOCKED + code], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "headway[torch]" not in done.stderr


def test_modules_that_compute_nothing_are_importable():
    names = sorted(
        name for name in MODULES.keys() - {"headway", "headway.__main__"} - NEED_TORCH if room_of(name) in ROOMS
    )
    run(
        f"from importlib import import_module\nfor name in {['headway.translator', *names]!r}:\n    import_module(name)"
    )


def test_a_text_is_tokenised_and_comes_back(folder):
    code = f"""{READ}
ids = directory.source_tokenizer.encode("ein hund läuft .")
print(directory.source_language, directory.num_parameters, directory.source_tokenizer.decode(ids))
"""
    parameters = sum(one.numel() for one in Transformer(ModelConfig(**config_of(folder))).parameters())
    assert run(code, str(folder)) == f"de {parameters} ein hund läuft .\n"


def config_of(folder: Path) -> dict:
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))["model"]


def test_a_damaged_directory_is_noticed(folder, tmp_path):
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    code = """
from headway.errors import UserError
from headway.storage import read_model
try:
    read_model(__import__("pathlib").Path(sys.argv[1]))
except UserError as error:
    print(error)
"""
    assert "its checksum differs" in run(code, str(copy))


def test_a_model_is_shown(folder):
    assert "de -> en" in run(
        "from headway.cli import main\nsys.argv = ['headway', 'show', sys.argv[1]]\nmain()", str(folder)
    )


def test_looking_inside_says_what_it_needs():
    code = """
from headway.errors import UserError
from headway.translator import Translator
try:
    Translator.inspect
except UserError as error:
    print(error)
"""
    assert run(code) == "inspect needs torch, which is not installed: pip install 'headway[torch]'\n"


def test_validation_pairs_of_a_run_that_was_prepared_elsewhere(tmp_path):
    (tmp_path / "prepared").mkdir()
    (tmp_path / "prepared" / "valid.json").write_text('[["Ein Hund.", "A dog."]]', encoding="utf-8")
    (tmp_path / "recipe.yaml").write_text("data: {prepared: prepared}", encoding="utf-8")
    code = "from headway.cli.files import *\nprint(validation_pairs(Path(sys.argv[1])))"
    assert run(code, str(tmp_path)) == "[('Ein Hund.', 'A dog.')]\n"


def test_translations_are_scored():
    code = "from headway.evaluation import score_translations\nprint(score_translations(['a b c d'], ['a b c d']).bleu)"
    assert float(run(code)) == pytest.approx(100)


def test_a_document_has_its_sentences():
    code = """
from headway.documents.parsing import parse_document
document = parse_document("Er kam. Sie ging.", "text", "de", lambda text: True)
print([one.layout.plain for one in document.sentences])
"""
    assert run(code) == "['Er kam.', 'Sie ging.']\n"


def test_words_are_aligned_and_confidence_has_its_features(folder):
    code = f"""{READ}
import json
from headway.translator.aligning import align, choose_aligner
from headway.translator.confidence import confidence_features
from headway.translator.reading import PlainReader
reader = PlainReader(directory.config, directory.weights())
aligner = choose_aligner(reader, *{PAIRS})
found = align(reader, aligner, *{PAIRS}, [0, 0]), confidence_features(reader, *{PAIRS}).tolist()
print(json.dumps([vars(aligner), *found]))
"""
    aligner, alignments, features = json.loads(run(code, str(folder)))
    reader = TorchReader(load_model(folder).model)
    wanted = choose_aligner(reader, *PAIRS)
    assert aligner == vars(wanted)
    assert alignments == align(reader, wanted, *PAIRS, [0, 0])
    np.testing.assert_allclose(features, confidence_features(reader, *PAIRS), rtol=0, atol=1e-5)


def test_ctranslate2_makes_its_form_and_translates(folder, tmp_path, monkeypatch):
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))
    code = f"""{READ}
import json
from headway.decoding import SearchOptions
from headway.decoding.ctranslate2_searcher import CTranslate2Searcher, can_compute
assert can_compute("fp32", "cpu") and not can_compute("fp32", "mps")
searcher = CTranslate2Searcher(directory, "cpu", "fp32", 1)
found = searcher.search({PAIRS[0]}, SearchOptions(beam_size=1), [5, 5], [[], []])
print(json.dumps([[one.ids for [one] in found], searcher.score(*{PAIRS})]))
"""
    ids, scores = json.loads(run(code, str(folder)))
    stored = load_model(folder)
    engine = TorchEngine(stored.model, stored.target_tokenizer.never_generated)
    ours = TorchSearcher(engine, stored.config.pad_id, torch.device("cpu"))
    assert ids == [one.ids for [one] in ours.search(PAIRS[0], SearchOptions(beam_size=1), [5, 5], [[], []])]
    assert scores == pytest.approx(ours.score(*PAIRS), abs=1e-4)
