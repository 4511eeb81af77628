"""Lines of 28 scripts have the same tokens as in sentencepiece and transformers, and come back the same."""

from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from benchmarks.pretrained_folder import write_folder

from headway.text.tokenizer import UNK_ID
from tests.interop.reading import read_huggingface
from tests.interop.scripts import lines_of_all
from tests.interop.test_multilingual import PAIRS, ours, rows_of, transformers

TINY: dict[str, Any] = {"d_model": 8, "encoder_attention_heads": 1, "decoder_attention_heads": 1, "encoder_ffn_dim": 8}
TINY |= {"encoder_layers": 1, "decoder_layers": 1, "decoder_ffn_dim": 8}


def differing(kind: str, lines: list[str], tokens: int, folder: Path) -> list[str]:
    """The lines that transformers splits otherwise than headway. Each must be split as sentencepiece itself does, of
    which transformers' M2M100Tokenizer makes use, but not the other two; and come back as in transformers."""
    write_folder(folder, kind, lines[::2], tokens, **TINY)
    stored, rows = read_huggingface(folder), rows_of(folder)
    theirs = transformers.AutoTokenizer.from_pretrained(folder, src_lang=PAIRS[kind][0])
    original = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.bpe.model"))
    found = []
    for line in lines:
        ids = stored.target_tokenizer.encode(line)
        assert [rows[id_] for id_ in ids] == theirs.convert_tokens_to_ids(original.encode(line, out_type=str)), line
        if UNK_ID not in ids:
            assert stored.target_tokenizer.decode(ids) == theirs.decode([rows[id_] for id_ in ids]), line
        if [*(rows[id_] for id_ in ours(stored, kind, line)), 2] != theirs(line)["input_ids"]:
            found.append(line)
    return found


@pytest.mark.parametrize("kind", PAIRS)
def test_lines_of_28_scripts_have_their_tokens(kind, tmp_path):
    lines = lines_of_all(320)
    assert len(differing(kind, lines, 3000, tmp_path)) <= (0 if kind == "M2M100Tokenizer" else 2)


def test_invisible_characters_between_words_are_the_spaces_that_training_had(tmp_path):
    """U+200B stands between words of Khmer and Thai, U+200F beside numbers in Arabic."""
    write_folder(tmp_path, "NllbTokenizer", lines_of_all(400), 2000, **TINY)
    tokenizer = read_huggingface(tmp_path).source_tokenizer
    spaced, invisible = "ខ្មែរ ភាសា 27 /3", "ខ្មែរ\u200bភាសា\u200b27\u200f/3\u200b"
    assert tokenizer.encode(invisible) == tokenizer.encode(spaced)
    assert tokenizer.encoded_pieces(invisible) == tokenizer.encoded_pieces(spaced)
