"""What every export asks before it begins."""

import pytest

from headway.decoding.ctranslate2_model import export_ctranslate2
from headway.errors import UserError
from headway.interop.huggingface import export_huggingface
from headway.interop.onnx import export_onnx
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel
from headway.text.words import WordTokenizer


@pytest.mark.parametrize("export", [export_ctranslate2, export_huggingface, export_onnx])
def test_positions_that_act_inside_attention_are_refused_by_name(export, tmp_path):
    words = WordTokenizer.train(["a b c"], 10, 1, False)
    sizes = {"source_vocab_size": words.vocab_size, "target_vocab_size": words.vocab_size}
    model = Transformer(ModelConfig(d_model=8, num_heads=2, d_ff=8, encoder_layers=1, decoder_layers=1, **sizes))
    object.__setattr__(model.config, "positions", "rotary")  # as a scheme that is added later
    stored = StoredModel(
        model=model, source_tokenizer=words, target_tokenizer=words, source_language="de", target_language="en"
    )
    with pytest.raises(UserError, match="rotary"):
        export(stored, tmp_path / "export")
    assert not (tmp_path / "export").exists()
