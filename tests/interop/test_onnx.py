"""The exported graphs, run by ONNX Runtime, are the model, at all lengths.

Exporting takes seconds, so here are two configurations, which differ in everything; tests/faults has all of them.
"""

import copy
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from headway.decoding import Constraints, TorchEngine, beam_search, greedy
from headway.decoding.engine import padded
from headway.errors import UserError
from headway.interop import onnx as interop
from headway.interop.onnx import export_onnx
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel
from headway.text.subwords import SubwordTokenizer
from headway.text.words import WordTokenizer
from headway.translator import Translator

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")
loop = pytest.importorskip("headway.interop.onnx_translate")

LINES = ["the cat sat on the mat", "a dog ran after", "한글 문장 하나"] * 20
PLAIN, OTHER = 0, 1
VARIANTS = [
    {"max_length": 300},
    {
        "tokenizer": "tags",
        "norm": "pre",
        "activation": "swish",
        "positions": "learned",
        "share_embeddings": "none",
        "output_bias": True,
        "decoder_num_heads": 2,
        "decoder_d_ff": 48,
        "pad_id": 2,
        "max_length": 300,
    },
]
LENGTHS = (1, 2, 40, 257)
"""Of sources, in pieces, beside the longest; <eos> is one more."""


TOKENIZERS = {
    "pieces": lambda: SubwordTokenizer.train(LINES, "bpe", 300),
    "tags": lambda: SubwordTokenizer.train(LINES, "bpe", 300, ["ko", "en"]),
    "words": lambda: WordTokenizer.train(LINES, 20, 1, lowercase=True),
}


def stored(tokenizer="pieces", **changes) -> StoredModel:
    tokenizer = TOKENIZERS[tokenizer]()
    options = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1, **changes}
    model = Transformer(ModelConfig(tokenizer.vocab_size, tokenizer.vocab_size, **options)).eval()
    with torch.no_grad():
        model.target_embedding.weight.mul_(3)  # so that no two candidates are close
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return StoredModel(
        model=model, source_tokenizer=tokenizer, target_tokenizer=tokenizer, source_language="en", target_language="en"
    )


@pytest.fixture(scope="module")
def exports(tmp_path_factory) -> Callable[[int], tuple[StoredModel, Path]]:
    """Each variant and its export, made when it is first asked for."""

    @cache
    def export(variant: int) -> tuple[StoredModel, Path]:
        torch.manual_seed(variant)
        one, folder = stored(**VARIANTS[variant]), tmp_path_factory.mktemp("onnx") / "out"
        export_onnx(one, folder)
        return one, folder

    return export


def random_sources(one: StoredModel, lengths=LENGTHS) -> list[list[int]]:
    """The longest, too; the last piece of the vocabulary and the unknown one are among them."""
    last = one.model.config.source_vocab_size - 1
    if lengths is LENGTHS:
        lengths = (*LENGTHS, one.model.config.max_length - 1)
    sources = [torch.randint(4, last + 1, (length,)).tolist() for length in lengths]
    for source in sources:
        source[len(source) // 2] = last
        source[0] = source[0] if len(source) < 3 else 1
    return sources


def greedy_ids(model, sources: list[list[int]], max_lengths: list[int], no_repeat: int = 0) -> list[list[int]]:
    return [found[0].ids for found in loop.beam_search(model, sources, max_lengths, 1, 0.0, no_repeat)]


def forced_logits(model, sources: list[list[int]], targets: np.ndarray) -> np.ndarray:
    """(batch, target length, vocabulary), one step after the other"""
    state = model.start(sources)
    return np.stack([model.logits(state, tokens.tolist()) for tokens in targets.T], axis=1)


def eager_logits(one: StoredModel, sources: list[list[int]], targets: np.ndarray) -> np.ndarray:
    config = one.model.config
    rows = nn.utils.rnn.pad_sequence(
        [torch.tensor([*source, config.eos_id]) for source in sources], batch_first=True, padding_value=config.pad_id
    )
    with torch.inference_mode():
        return one.model(rows, torch.from_numpy(targets)).numpy()


def assert_the_same_model(one: StoredModel, folder: Path) -> None:
    config, model = one.model.config, loop.Model(folder, threads=1)
    sources = random_sources(one)
    targets = torch.randint(4, config.target_vocab_size, (len(sources), 6)).numpy()
    targets[:, 0] = config.bos_id
    wanted = eager_logits(one, sources, targets)
    np.testing.assert_allclose(forced_logits(model, sources, targets), wanted, atol=1e-4, rtol=0)
    for source, target, logits in zip(sources, targets, wanted, strict=True):  # alone, as in the batch
        alone = forced_logits(model, [source], target[None])
        np.testing.assert_allclose(alone, logits[None], atol=1e-4, rtol=0)
    rows = nn.utils.rnn.pad_sequence(
        [torch.tensor([*source, config.eos_id]) for source in sources], batch_first=True, padding_value=config.pad_id
    )
    ours = greedy(TorchEngine(one.model, one.target_tokenizer.never_generated), rows, [20] * len(sources))
    assert greedy_ids(model, sources, [20] * len(sources)) == [hypothesis.ids for hypothesis in ours]


@pytest.mark.parametrize("variant", range(len(VARIANTS)))
def test_logits_and_greedy_ids_are_equal(variant, exports):
    assert_the_same_model(*exports(variant))


def test_a_decoder_step_is_right_at_every_length(exports):
    one, folder = exports(PLAIN)
    model = loop.Model(folder, threads=1)
    [source] = random_sources(one, [3])
    target = torch.randint(4, one.model.config.target_vocab_size, (1, one.model.config.max_length)).numpy()
    target[:, 0] = one.model.config.bos_id
    wanted = eager_logits(one, [source], target)
    np.testing.assert_allclose(forced_logits(model, [source], target), wanted, atol=1e-4, rtol=0)


@pytest.mark.parametrize("variant", [PLAIN, OTHER])
@pytest.mark.parametrize(("beam_size", "alpha", "no_repeat"), [(1, 0.0, 0), (4, 0.0, 0), (4, 1.0, 0), (4, 1.0, 2)])
def test_beams_are_equal(exports, variant, beam_size, alpha, no_repeat):
    one, folder = exports(variant)
    model = loop.Model(folder, threads=1)
    engine = TorchEngine(one.model, one.target_tokenizer.never_generated)
    sources = random_sources(one, [1, 2, 5, 9, 30, 257])
    caps = [12, 3, 12, 7, 12, 12]
    together = loop.beam_search(model, sources, caps, beam_size, alpha, no_repeat)
    for source, cap, found in zip(sources, caps, together, strict=True):
        row = torch.tensor([[*source, 3]])
        constraints = Constraints(no_repeat_ngram=no_repeat)
        [[ours]] = beam_search(engine, row, [cap], beam_size=beam_size, alpha=alpha, constraints=constraints)
        theirs = loop.beam_search(model, [source], [cap], beam_size, alpha, no_repeat)[0][0]
        assert theirs.ids == found[0].ids == ours.ids
        assert theirs.score == pytest.approx(ours.score, abs=1e-3)


class Table:
    """A model whose next token depends on the last one alone, for our search and for the exported one; also its own
    state."""

    bos_id, eos_id = 2, 3

    def __init__(self, log_probabilities: torch.Tensor) -> None:
        self._table = log_probabilities

    def start(self, _) -> "Table":
        return self

    def step(self, _, tokens: torch.Tensor) -> torch.Tensor:
        return self._table[tokens]

    def log_probabilities(self, _, tokens: list[int]) -> np.ndarray:
        return self._table[tokens].numpy()

    def select(self, *_) -> "Table":
        return self


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 3.0])
@pytest.mark.parametrize("beam_size", [1, 2, 3, 5, 9])
def test_the_search_is_ours(beam_size, alpha):
    """Of translations of many lengths, ended by <eos> and by the cap."""
    lengths = set()
    for cap in [1, 2, 7] * 40:
        table = Table(torch.randn(8, 8).mul(2).log_softmax(-1))
        table._table[:, [0, 2]] = -torch.inf
        [[ours]] = beam_search(table, torch.tensor([[3]]), [cap], beam_size=beam_size, alpha=alpha)
        theirs = loop.beam_search(table, [[]], [cap], beam_size, alpha)[0][0]
        assert theirs.ids == ours.ids
        assert theirs.score == pytest.approx(ours.score, abs=1e-5)
        lengths.add(len(theirs.ids))
        [alone] = greedy(table, torch.tensor([[3]]), [cap])
        assert greedy_ids(table, [[]], [cap]) == [alone.ids]
        lengths.add(len(alone.ids))
    assert len(lengths) > 2
    assert 0 not in lengths


def test_weights_that_are_shared_are_stored_once(exports):
    one, folder = exports(PLAIN)
    parameters = sum(parameter.nbytes for parameter in one.model.parameters())
    positions = one.model.config.max_length * one.model.config.d_model * 4
    assert (folder / "weights.bin").stat().st_size <= parameters + positions
    for name in ("encoder.onnx", "decoder.onnx"):
        onnx.checker.check_model(folder / name, full_check=True)
        graph = (folder / name).read_bytes()
        assert len(graph) < 50_000
        assert b".py" not in graph  # no word of the machine that exported it


@pytest.mark.parametrize("no_repeat", [1, 2, 3])
def test_greedy_search_repeats_nothing(exports, no_repeat):
    one, folder = exports(PLAIN)
    sources = random_sources(one)
    rows = padded([[*source, 3] for source in sources], 0)
    engine, constraints = TorchEngine(one.model, [1]), Constraints(no_repeat_ngram=no_repeat)
    ours = greedy(engine, rows, [20] * len(sources), constraints)
    model = loop.Model(folder, threads=1)
    assert greedy_ids(model, sources, [20] * len(sources), no_repeat) == [one.ids for one in ours]
    free = greedy_ids(model, sources, [20] * len(sources))
    assert no_repeat > 1 or free != [one.ids for one in ours]


def test_words(tmp_path):
    tokenizer = TOKENIZERS["words"]()
    (tmp_path / "words.json").write_bytes(tokenizer.to_bytes())
    words = loop.Words(tmp_path / "words.json")
    for text in ["The cat sat", "a 한글 zebra", "", "  dog ", "e\u0301", "the\u200b c\xadat \u200d \ufeff", "\u200d"]:
        assert words.encode(text) == tokenizer.encode(text)
    assert words.decode([0, 5, 1, 2, 7, 3]) == tokenizer.decode([0, 5, 1, 2, 7, 3])


def test_text_is_read_and_written_as_ours(exports):
    """Marks in another order, the space mark, tags, blank lines, line breaks spelled by bytes, what is too long."""
    one, folder = exports(OTHER)
    tokenizer = one.source_tokenizer
    subwords = loop.Subwords(folder / "tokenizer.spm")
    texts = [
        "q\u0323\u0307",
        "a▁b",
        ">>ko<< the cat",
        "the >>ko<< cat",
        " >>ko<<",
        ">>xx<< a",
        "한글",
        "  ",
        "the\tcat\r\n sat\u2028on  \x85the",
        "\ufeff>>ko<<\u200b the c\xadat",
        "\u200b\ufeff\xad\x00",
        "\u200d\ufe0f \u3164",
        "a\u200db",
    ]
    for text in texts:
        assert subwords.encode(text) == tokenizer.encode(text, tagged=True)
    newline, mark = tokenizer.encode("x")[:1], tokenizer.encode("▁")
    lines = [*newline, *(tokenizer.vocabulary.index(f"<0x{byte:02X}>") for byte in (0x0A, 0x0D)), *mark, 0, 2, 3, 4]
    assert subwords.decode(lines) == tokenizer.decode(lines).replace("\n", " ").replace("\r", " ")
    given = [">>ko<< the cat", "", f">>en<< {'the mat ' * 600}", ">>en<< 한글"]
    ours = Translator(one, device="cpu").translate(given, max_length=30)
    theirs = list(loop.TextTranslator(folder).translate(given, 5, 1.0, 30))
    assert theirs[2] == ("", "is longer than 299 tokens")
    assert [text for text, _ in theirs] == [one.text for one in ours]
    assert ours[2].stopped == "too_long"


def run_program(folder: Path, data: bytes, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-I", folder / "translate.py", *arguments], input=data, capture_output=True, check=False
    )


def test_what_can_not_be_translated_is_told_and_the_code_is_2(exports):
    folder = exports(PLAIN)[1]
    lines = ["the cat", "mat " * 300, "", "x" * 64 * 301, "a dog"]
    done = run_program(folder, "".join(f"{line}\n" for line in lines).encode(), "--max-length", "3")
    assert done.returncode == 2
    out = done.stdout.decode().split("\n")
    assert [bool(line) for line in out] == [True, False, False, False, True, False]
    assert done.stderr.decode().splitlines() == [
        f"line {n} is longer than 299 tokens; its translation is left blank" for n in (2, 4)
    ]


@pytest.mark.parametrize(
    ("variant", "data", "reason"),
    [
        (PLAIN, b"the cat\na d\xffg\n", "standard input, line 2: byte 0xff is not UTF-8; convert the file"),
        (PLAIN, "the cat\n".encode("utf-16-le"), "standard input, line 1: has a NUL in every second byte, as UTF-16"),
        (
            OTHER,
            b">>ko<< a\nthe cat\n",
            "line 2 doesn't begin with the tag of a target language; its translation is left blank",
        ),
    ],
)
def test_what_is_wrong_is_one_line(exports, variant, data, reason):
    done = run_program(exports(variant)[1], data)
    [line] = done.stderr.decode().splitlines()
    assert done.returncode == 2
    assert reason in line


def test_a_program_that_waits_gets_its_answer(exports):
    """And standard error that is closed costs a notice alone."""
    command = [sys.executable, "-I", str(exports(OTHER)[1] / "translate.py"), "--max-length", "3", "--beam-size", "1"]
    texts = [b">>ko<< the cat\n", b"no tag\n>>en<< a dog\n", b"\n>>en<< the"]
    alone = run_program(exports(OTHER)[1], b"".join(texts), *command[3:])
    shell = ["/bin/sh", "-c", f"exec {shlex.join(command)} 2>&-"]
    with subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        alarm = threading.Timer(60, process.kill)
        alarm.start()
        found = b""
        for text in texts:
            process.stdin.write(text)
            process.stdin.flush()
            found += b"".join(process.stdout.readline() for _ in range(text.count(b"\n")))
        process.stdin.close()
        found += process.stdout.read()
        alarm.cancel()
    assert (process.returncode, found) == (alone.returncode, alone.stdout) == (2, found)
    assert [bool(line) for line in found.split(b"\n")] == [True, False, True, False, True, False]


@given(st.lists(st.text("aé\r ", max_size=5), max_size=8), st.booleans(), st.booleans(), st.data())
def test_lines_are_whole_however_they_arrive(lines, marked, ended, data):
    rest = b"\xef\xbb\xbf" * marked + "\n".join([*lines, ""][: None if ended else -1]).encode()
    pieces = []
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        pieces, rest = [*pieces, rest[:size]], rest[size:]
    with patch.object(loop.os, "read", lambda *_: pieces.pop(0) if pieces else b""):
        found = [line for some in loop.arriving_lines() for line in some]
    wanted = [line.removesuffix("\r") for line in lines]
    assert found == (wanted if ended or not lines or lines[-1] else wanted[:-1])


def test_search_options_travel_along(exports):
    one, folder = exports(PLAIN)
    (folder / "config.json").rename(folder / "before.json")
    try:
        one = replace(one, decoding={"beam_size": 2, "length_penalty": 0.3, "max_length": 40, "no_repeat_ngram": 1})
        interop._save_rest(one, folder)
        text = "the cat sat on the mat"
        [ours] = Translator(one, device="cpu").translate([text])
        assert run_program(folder, text.encode()).stdout.decode() == f"{ours.text}\n"
        [free] = Translator(one, device="cpu").translate([text], no_repeat_ngram=0)
        assert free.text != ours.text
    finally:
        (folder / "before.json").replace(folder / "config.json")


def test_the_exported_program_needs_neither_torch_nor_headway(exports):
    program = exports(PLAIN)[1] / "translate.py"
    check = (
        "import runpy, sys; runpy.run_path(sys.argv[1]); sys.exit(any(m in sys.modules for m in ('torch', 'headway')))"
    )
    subprocess.run([sys.executable, "-c", check, program], check=True)


def test_an_export_that_differs_is_not_left(exports, tmp_path, monkeypatch):
    another, graphs = exports(PLAIN)

    def save(_, folder):
        for name in ("encoder.onnx", "decoder.onnx", "weights.bin"):
            shutil.copy(graphs / name, folder)

    monkeypatch.setattr(interop, "_save_graphs", save)
    with torch.no_grad():
        changed = replace(another, model=copy.deepcopy(another.model))
        changed.model.decoder.layers[0].feed_forward.outer.weight.mul_(1.1)
    with pytest.raises(UserError, match="ONNX Runtime gives other scores"):
        export_onnx(changed, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_what_it_can_not_be_is_refused(tmp_path):
    with pytest.raises(UserError, match="decoder_layers"):
        export_onnx(stored(decoder_layers=0), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime", "onnxscript"])
def test_a_missing_package_is_named(missing, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UserError, match=re.escape(f"{missing} is not installed: pip install 'headway[onnx]'")):
        export_onnx(stored(), tmp_path / "out")
