"""What every export asks of the tool that will run the model."""

import math
import weakref
from contextlib import nullcontext

import pytest
import torch

from headway.decoding import TorchEngine, greedy
from headway.decoding.ctranslate2_model import export_ctranslate2
from headway.decoding.faithful import LONGEST_PROBED, _probes, check_faithful
from headway.errors import UserError
from headway.interop.huggingface import export_huggingface
from headway.interop.onnx import export_onnx
from headway.model import ModelConfig, Transformer
from headway.model.attention import MultiHeadAttention, ScaledDotProductAttention
from headway.storage import ModelDirectory, StoredModel, read_model, save_model
from headway.text.subwords import SubwordTokenizer
from tests.decoding.test_ctranslate2_model import stored


class Ours:
    """What is exported is the model itself, with a fault. `kind` names it."""

    def __init__(self, stored: StoredModel, kind: str) -> None:
        self.stored, self.kind = stored, kind
        self.engine = TorchEngine(stored.model, stored.target_tokenizer.never_generated)

    def translate(self, source, max_length):
        row = torch.tensor([[*source, self.stored.config.eos_id]])
        [found] = greedy(self.engine, row, [max_length])
        match self.kind:
            case "ends early":
                return found.ids[: max_length // 2]
            case "is empty":
                return []
            case "has another last token":
                return [*found.ids[:-1], 4 + (found.ids[-1] == 4)]
            case "has what is never generated":
                return [*found.ids[:-1], self.stored.config.unk_id]
        return found.ids

    def score(self, source, target):
        config = self.stored.config
        row, given = torch.tensor([[*source, config.eos_id]]), [*target, config.eos_id]
        with torch.inference_mode():
            steps = self.stored.model(row, torch.tensor([[config.bos_id, *target]]))[0].log_softmax(-1)
        scores = steps[range(len(given)), given].tolist()
        match self.kind:
            case "scores its end higher":
                scores[-1] += 2e-3
            case "scores nothing":
                scores[0] = math.nan
        return scores


FAULTS = {
    "": None,
    "ends early": "finds other tokens likelier",
    "is empty": "finds other tokens likelier",
    "has another last token": "finds other tokens likelier",
    "has what is never generated": "finds other tokens likelier",
    "scores its end higher": "gives other scores",
    "scores nothing": "gives other scores",
}


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("read", [False, True])
def test_each_fault_is_found(kind, read, tmp_path, monkeypatch):
    """Of a model in memory and of one that was read. Without a fault every token is the likeliest one."""
    monkeypatch.setattr("headway.decoding.faithful.TIE", 0.0)
    torch.manual_seed(1)
    one = stored(output_bias=True, max_length=60)
    with torch.no_grad():
        one.model.output.bias[one.config.unk_id] = 50.0  # likelier than any other token, and never generated
    save_model(tmp_path / "model", one)
    model = read_model(tmp_path / "model") if read else one
    reason = FAULTS[kind]
    expected = pytest.raises(UserError, match=reason) if reason else nullcontext()
    with expected:
        check_faithful(model, lambda: Ours(one, kind), "the tool")


def test_the_weights_are_read_once_the_exported_model_is_gone(tmp_path, monkeypatch):
    """So that a large model isn't in memory twice."""
    save_model(tmp_path / "model", one := stored(max_length=60))
    opened = [Ours(one, "")]
    alive, read = weakref.ref(opened[0]), ModelDirectory.weights
    left = []
    monkeypatch.setattr(ModelDirectory, "weights", lambda model: [left.append(alive()), read(model)][1])
    check_faithful(read_model(tmp_path / "model"), opened.pop, "the tool")
    assert left == [None]


def test_a_translation_has_a_token_before_its_end():
    one = stored(output_bias=True, max_length=60)
    with torch.no_grad():
        one.model.output.bias[one.config.eos_id] = 50.0
    check_faithful(one, lambda: Ours(one, ""), "the tool")
    with pytest.raises(UserError, match="finds other tokens likelier"):
        check_faithful(one, lambda: Ours(one, "is empty"), "the tool")


def test_the_longest_source_is_bounded():
    """Attention over the million tokens of a `max_length` would never end."""
    lengths = [len(source) for source in _probes(ModelConfig(290, 290, max_length=2**20))]
    assert max(lengths) == LONGEST_PROBED


class Placed(ScaledDotProductAttention):
    """Queries and keys know their places, as in a relative scheme that nobody has taught the exports."""

    def forward(self, queries, keys, values, mask=None, *, return_weights=False):
        queries, keys = (x * torch.arange(1, x.size(1) + 1)[:, None] for x in (queries, keys))
        return super().forward(queries, keys, values, mask, return_weights=return_weights)


@pytest.mark.parametrize("export", [export_ctranslate2, export_huggingface, export_onnx])
def test_a_model_that_attends_otherwise_is_refused(export, tmp_path):
    for package in ("ctranslate2", "transformers", "onnxscript"):
        pytest.importorskip(package)
    pieces = SubwordTokenizer.train(["the cat sat on the mat", "a dog ran"] * 20, "bpe", 300)
    sizes = {"source_vocab_size": pieces.vocab_size, "target_vocab_size": pieces.vocab_size, "max_length": 20}
    model = Transformer(ModelConfig(d_model=8, num_heads=2, d_ff=8, encoder_layers=1, decoder_layers=1, **sizes))
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.core = Placed(2)
    one = StoredModel(
        model=model, source_tokenizer=pieces, target_tokenizer=pieces, source_language="de", target_language="en"
    )
    with pytest.raises(UserError, match="gives other scores than headway"):
        export(one, tmp_path / "export")
    assert not list(tmp_path.iterdir())
