"""The exported graphs, run by ONNX Runtime, are the model: for every configuration, at all lengths."""

import re
import socket
import subprocess
import sys

import numpy as np
import pytest
import torch

from headway.decoding import TorchEngine, beam_search, greedy
from headway.errors import UserError
from headway.interop import onnx as interop
from headway.interop.onnx import export_onnx
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel
from headway.text.batches import pad
from headway.text.tokenizer import SubwordTokenizer, WordTokenizer
from headway.translator import Translator

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")
loop = pytest.importorskip("headway.interop.onnx_translate")

LINES = ["the cat sat on the mat", "a dog ran after", "한글 문장 하나"] * 20
PIECES = 300
VARIANTS = [
    {},
    {"norm": "pre", "encoder_layers": 0},
    {"activation": "gelu", "positions": "learned", "decoder_num_heads": 2},
    {"activation": "swish", "output_bias": True, "share_embeddings": "none", "decoder_d_ff": 48},
    {"share_embeddings": "decoder", "norm": "pre", "positions": "learned", "pad_id": 2, "output_bias": True},
]
LENGTHS = (1, 2, 40, 257, 1023)
"""Of sources, in pieces; <eos> is one more."""


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("the network is not to be used")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def stored(tokenizer=None, **changes) -> StoredModel:
    tokenizer = tokenizer or SubwordTokenizer.train(LINES, "bpe", PIECES)
    options = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2, **changes}
    model = Transformer(ModelConfig(tokenizer.vocab_size, tokenizer.vocab_size, **options)).eval()
    with torch.no_grad():
        model.target_embedding.weight.mul_(3)  # so that no two candidates are close
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return StoredModel(model, tokenizer, tokenizer, "en", "en")


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> tuple[StoredModel, loop.Model]:
    torch.manual_seed(0)
    one = stored()
    folder = tmp_path_factory.mktemp("onnx") / "out"
    export_onnx(one, folder)
    return one, loop.Model(folder, threads=1)


def random_sources(one: StoredModel, lengths=LENGTHS) -> list[list[int]]:
    """The last piece of the vocabulary and the unknown one among them."""
    last = one.model.config.source_vocab_size - 1
    sources = [torch.randint(4, last + 1, (length,)).tolist() for length in lengths]
    for source in sources:
        source[len(source) // 2] = last
        source[0] = source[0] if len(source) < 3 else 1
    return sources


def forced_logits(model, sources: list[list[int]], targets: np.ndarray) -> np.ndarray:
    """(batch, target length, vocabulary), one step after the other"""
    state = model.start(sources)
    return np.stack([model.logits(state, tokens.tolist()) for tokens in targets.T], axis=1)


def eager_logits(one: StoredModel, sources: list[list[int]], targets: np.ndarray) -> np.ndarray:
    config = one.model.config
    rows = torch.from_numpy(pad([[*source, config.eos_id] for source in sources], config.pad_id))
    with torch.inference_mode():
        return one.model(rows, torch.from_numpy(targets)).numpy()


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_logits_and_greedy_ids_are_equal(changes, tmp_path):
    one = stored(**changes)
    config = one.model.config
    export_onnx(one, tmp_path / "out")
    model = loop.Model(tmp_path / "out", threads=1)
    sources = random_sources(one)
    targets = torch.randint(4, config.target_vocab_size, (len(sources), 6)).numpy()
    targets[:, 0] = config.bos_id
    wanted = eager_logits(one, sources, targets)
    np.testing.assert_allclose(forced_logits(model, sources, targets), wanted, atol=1e-4, rtol=0)
    for source, target, logits in zip(sources, targets, wanted, strict=True):  # alone, as in the batch
        alone = forced_logits(model, [source], target[None])
        np.testing.assert_allclose(alone, logits[None], atol=1e-4, rtol=0)
    rows = torch.from_numpy(pad([[*source, config.eos_id] for source in sources], config.pad_id))
    ours = greedy(TorchEngine(one.model, one.target_tokenizer.never_generated), rows, [20] * len(sources))
    assert loop.greedy(model, sources, [20] * len(sources)) == [hypothesis.ids for hypothesis in ours]


def test_a_decoder_step_is_right_at_every_length(plain):
    one, model = plain
    [source] = random_sources(one, [3])
    target = torch.randint(4, one.model.config.target_vocab_size, (1, one.model.config.max_length)).numpy()
    target[:, 0] = one.model.config.bos_id
    wanted = eager_logits(one, [source], target)
    np.testing.assert_allclose(forced_logits(model, [source], target), wanted, atol=1e-4, rtol=0)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("beam_size", [1, 4])
def test_beams_are_equal(plain, beam_size, alpha):
    one, model = plain
    engine = TorchEngine(one.model, one.target_tokenizer.never_generated)
    for source in random_sources(one, [1, 2, 5, 9, 30, 257]):
        row = torch.tensor([[*source, 3]])
        [[ours]] = beam_search(engine, row, [12], beam_size=beam_size, alpha=alpha)
        theirs = loop.beam_search(model, source, 12, beam_size, alpha)[0]
        assert theirs.ids == ours.ids
        assert theirs.score == pytest.approx(ours.score, abs=1e-3)


def test_weights_that_are_shared_are_stored_once(plain, tmp_path):
    one, _ = plain
    export_onnx(one, tmp_path / "out")
    parameters = sum(parameter.nbytes for parameter in one.model.parameters())
    positions = one.model.config.max_length * one.model.config.d_model * 4
    assert (tmp_path / "out" / "weights.bin").stat().st_size <= parameters + positions
    graphs = sum((tmp_path / "out" / f"{name}.onnx").stat().st_size for name in ("encoder", "decoder"))
    assert graphs < 150_000
    for name in ("encoder", "decoder"):
        onnx.checker.check_model(tmp_path / "out" / f"{name}.onnx", full_check=True)


def test_words(tmp_path):
    one = stored(WordTokenizer.train(LINES, 20, 1, lowercase=True))
    export_onnx(one, tmp_path / "out")
    texts = ["The cat sat", "a 한글 zebra", "", "  dog "]
    ours = Translator(one, device="cpu").translate(texts, max_length=9)
    theirs = loop.Translator(tmp_path / "out").translate(texts, 5, 1.0, 9)
    assert list(theirs) == [translation.text for translation in ours]


def test_text_is_read_and_written_as_ours(tmp_path):
    """Marks in another order, the space mark, tags, blank lines, line breaks spelled by bytes, what is too long."""
    tokenizer = SubwordTokenizer.train(LINES, "bpe", PIECES, ["ko", "en"])
    one = stored(tokenizer, max_length=40)
    export_onnx(one, tmp_path / "out")
    subwords = loop.Subwords(tmp_path / "out" / "tokenizer.spm")
    texts = [
        "q\u0323\u0307",
        "a▁b",
        ">>ko<< the cat",
        "the >>ko<< cat",
        " >>ko<<",
        ">>xx<< a",
        "한글",
        "  ",
    ]
    for text in texts:
        assert subwords.encode(text) == tokenizer.encode(text, tagged=True)
    newline, mark = tokenizer.encode("x")[:1], tokenizer.encode("▁")
    lines = [*newline, *(tokenizer.vocabulary.index(f"<0x{byte:02X}>") for byte in (0x0A, 0x0D)), *mark, 0, 2, 3, 4]
    assert subwords.decode(lines) == tokenizer.decode(lines).replace("\n", " ").replace("\r", " ")
    given = [">>ko<< the cat", "", f">>en<< {'the mat ' * 60}", ">>en<< 한글"]
    ours = Translator(one, device="cpu").translate(given)
    assert list(loop.Translator(tmp_path / "out").translate(given, 5, 1.0, None)) == [one.text for one in ours]
    assert ours[2].text == ""


def test_the_exported_program_needs_neither_torch_nor_headway(tmp_path):
    export_onnx(stored(), tmp_path / "out")
    program = tmp_path / "out" / "translate.py"
    check = (
        "import runpy, sys; runpy.run_path(sys.argv[1]); sys.exit(any(m in sys.modules for m in ('torch', 'headway')))"
    )
    subprocess.run([sys.executable, "-c", check, program], check=True)


def test_an_export_that_differs_is_not_left(tmp_path, monkeypatch):
    real = interop._move_weights

    def spoilt(proto, *arguments):
        for tensor in proto.graph.initializer:
            if len(tensor.raw_data) >= interop.LEAST_SHARED:
                values = np.frombuffer(tensor.raw_data, dtype=np.float32)
                tensor.raw_data = (values * np.float32(1.01)).tobytes()
        real(proto, *arguments)

    monkeypatch.setattr(interop, "_move_weights", spoilt)
    with pytest.raises(UserError, match="ONNX Runtime gives other scores"):
        export_onnx(stored(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_what_it_can_not_be_is_refused(tmp_path):
    with pytest.raises(UserError, match="decoder_layers"):
        export_onnx(stored(decoder_layers=0), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime", "onnxscript"])
def test_a_missing_package_is_named(missing, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UserError, match=re.escape(f"{missing} is not installed: pip install 'headway[onnx]'")):
        export_onnx(stored(), tmp_path / "out")
