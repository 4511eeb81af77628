"""Every kind of model, in every tool that can run it: the whole of what tests/interop shows of a few.

Norm, activation, positions and sharing in all combinations; what else there is takes its turn.
"""

from itertools import cycle, product

import pytest
import torch

from headway.decoding import TorchEngine
from headway.decoding.ctranslate2_model import export_ctranslate2
from headway.errors import UserError
from headway.interop.huggingface import export_huggingface
from headway.interop.onnx import export_onnx
from headway.translator import Translator
from tests.interop.reading import read_huggingface
from tests.interop.test_onnx import assert_the_same_model, stored

TOKENIZERS = ("pieces", "pieces", "tags", "words")
OTHERS = (
    {},
    {"output_bias": True},
    {"decoder_d_ff": 48, "encoder_layers": 2},
    {"decoder_num_heads": 2, "output_bias": True},
    {"encoder_layers": 0, "decoder_layers": 2},
    {"bos_id": 0},
    {"bos_id": 3, "output_bias": True},
)
COMBINATIONS = [
    {
        "norm": norm,
        "activation": activation,
        "positions": positions,
        "share_embeddings": share,
        "tokenizer": tokenizer,
        "max_length": 300,
        **others,
    }
    for (norm, activation, positions, share), tokenizer, others in zip(
        product(("post", "pre"), ("relu", "gelu", "swish"), ("sinusoidal", "learned"), ("all", "decoder", "none")),
        cycle(TOKENIZERS),
        cycle(OTHERS),
        strict=False,
    )
]
TEXTS = ["the cat", "a dog ran after the cat", "", "한글 mat", "the mat " * 40]


def model_of(combination):
    torch.manual_seed(1)
    return stored(**combination)


@pytest.mark.parametrize("combination", COMBINATIONS, ids=str)
def test_onnx(combination, tmp_path):
    pytest.importorskip("onnxscript")
    one = model_of(combination)
    export_onnx(one, tmp_path / "out")
    assert_the_same_model(one, tmp_path / "out")


@pytest.mark.parametrize("combination", COMBINATIONS, ids=str)
def test_ctranslate2(combination, tmp_path, monkeypatch):
    pytest.importorskip("ctranslate2")
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    one = model_of(combination)
    if combination.get("encoder_layers") == 0:
        with pytest.raises(UserError, match="encoder_layers is 0"):
            export_ctranslate2(one, tmp_path / "out")
        return
    step = TorchEngine.step  # CTranslate2's probabilities are those among the tokens that may be generated
    monkeypatch.setattr(TorchEngine, "step", lambda *given: step(*given).log_softmax(dim=-1))
    ours, theirs = Translator(one, device="cpu"), Translator(one, device="cpu", engine="ctranslate2")
    texts = [f">>ko<< {text}" if text and combination["tokenizer"] == "tags" else text for text in TEXTS]
    for options in ({"beam_size": 1}, {"beam_size": 4, "length_penalty": 0.0}):
        wanted, found = (one.translate(texts, max_length=20, **options) for one in (ours, theirs))
        for one_text, other in zip(wanted, found, strict=True):
            cut = "max_length" in (one_text.stopped, other.stopped)
            if options["beam_size"] == 1 or not cut:  # a beam that is cut is another one
                assert (other.text, other.stopped) == (one_text.text, one_text.stopped)


@pytest.mark.parametrize("combination", COMBINATIONS, ids=str)
def test_huggingface(combination, tmp_path):
    pytest.importorskip("transformers")
    one = model_of(combination)
    fits = combination["norm"] == "post" or combination["share_embeddings"] == "all"
    if combination["tokenizer"] == "words" or combination["positions"] == "learned" or not fits:
        with pytest.raises(UserError, match=r"splits words|positions=learned|share_embeddings"):
            export_huggingface(one, tmp_path / "out")
        return
    export_huggingface(one, tmp_path / "out")
    back = read_huggingface(tmp_path / "out")
    weights, found = (dict(model.named_parameters()) for model in (one.model, back.model))
    assert all(torch.equal(weights[name], found[name]) for name in weights)
