"""What every export asks of the tool that will run the model."""

import pytest
import torch

from headway.decoding.ctranslate2_model import export_ctranslate2
from headway.errors import UserError
from headway.interop.huggingface import export_huggingface
from headway.interop.onnx import export_onnx
from headway.model import ModelConfig, Transformer
from headway.model.attention import MultiHeadAttention, ScaledDotProductAttention
from headway.storage import StoredModel
from headway.text.subwords import SubwordTokenizer


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
    stored = StoredModel(
        model=model, source_tokenizer=pieces, target_tokenizer=pieces, source_language="de", target_language="en"
    )
    with pytest.raises(UserError, match="gives other scores than headway"):
        export(stored, tmp_path / "export")
    assert not list(tmp_path.iterdir())
