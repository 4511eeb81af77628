"""Makes a Hugging Face folder of M2M-100, NLLB-200 or mBART-50 with random weights and a tokenizer learned from text.

    python benchmarks/pretrained_folder.py M2M100Tokenizer --text train.de train.en --vocab-size 8000 \
        --output m2m d_model=256 encoder_layers=3 decoder_layers=3 encoder_ffn_dim=512 decoder_ffn_dim=512

The layout is that of the hub's folders: fairseq's ids are one above sentencepiece's, or stand in vocab.json, and all
languages of the kind follow. KEY=NUMBER is a field of transformers' config; vocab_size adds rows that no token has.
"""

import argparse
import io
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from headway.data.corpus import read_lines
from headway.text.sentencepiece_model import enlarged

SOURCE_LANGUAGES = {"M2M100Tokenizer": "en", "NllbTokenizer": "eng_Latn", "MBart50Tokenizer": "en_XX"}
"""The source language of each kind's folders, by the name of the tokenizer."""


def languages_of(kind: str) -> list[str]:
    """The tokens of all languages of the kind, in transformers' order."""
    from transformers.models.m2m_100 import tokenization_m2m_100
    from transformers.models.mbart50 import tokenization_mbart50
    from transformers.models.nllb import tokenization_nllb

    if kind == "M2M100Tokenizer":
        return [f"__{code}__" for code in tokenization_m2m_100.FAIRSEQ_LANGUAGE_CODES["m2m100"]]
    module = tokenization_nllb if kind == "NllbTokenizer" else tokenization_mbart50
    return list(module.FAIRSEQ_LANGUAGE_CODES)


def write_folder(
    folder: Path,
    kind: str,
    text: Iterable[str],
    tokens: int,
    languages: Sequence[str] = (),
    noise: float = 0.0,
    made_up: int = 0,
    **sizes: Any,
) -> None:
    """Writes the files into an existing folder.

    text: learned by sentencepiece, at most `tokens` tokens. languages: instead of all, for NLLB, which has no fixed
    list. noise: standard deviation of what is added to transformers' initial weights. made_up: tokens that no text has,
    in place of those of other languages. sizes: of transformers' config.
    """
    import transformers

    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text),
        model_writer=out,
        model_type="unigram" if kind == "MBart50Tokenizer" else "bpe",
        vocab_size=tokens,
        normalization_rule_name="nmt_nfkc",
        character_coverage=1.0,
        unk_id=0,
        bos_id=1,
        eos_id=2,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    fraction = 0.5 if kind == "MBart50Tokenizer" else 0.0  # unigram's scores are not whole numbers
    others = [(f"zq{number}", -1e6 - number - fraction) for number in range(made_up)]
    model = enlarged(out.getvalue(), [], 3, others)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [processor.id_to_piece(id_) for id_ in range(3, processor.get_piece_size())]
    codes, first = list(languages) or languages_of(kind), 4 + len(pieces)
    options = {"tokenizer_class": kind, "src_lang": SOURCE_LANGUAGES[kind], "additional_special_tokens": codes}
    if kind == "NllbTokenizer":  # without tokenizer.json transformers puts <mask> before the languages
        ids = {"<mask>": first} | {code: first + 1 + i for i, code in enumerate(codes)}
        options["added_tokens_decoder"] = {str(id_): {"content": code, "special": True} for code, id_ in ids.items()}
    (folder / "tokenizer_config.json").write_text(json.dumps(options), encoding="utf-8")
    if kind == "M2M100Tokenizer":
        random.Random(1).shuffle(pieces)
        ids = {piece: id_ for id_, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *pieces])}
        (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    fixed = {"scale_embedding": True, "decoder_start_token_id": 2, "activation_function": "relu"}
    name = "MBart" if kind == "MBart50Tokenizer" else "M2M100"
    config = getattr(transformers, f"{name}Config")(**{"vocab_size": first + len(codes) + 8, **fixed, **sizes})
    torch.manual_seed(1)
    model = getattr(transformers, f"{name}ForConditionalGeneration")(config)
    with torch.no_grad():
        for parameter in model.parameters() if noise else ():
            parameter.add_(noise * torch.randn_like(parameter))
        if noise and name == "MBart":
            model.final_logits_bias.normal_()
    model.save_pretrained(folder)


def _lines(files: Iterable[Path]) -> Iterator[str]:
    return chain.from_iterable(map(read_lines, files))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=SOURCE_LANGUAGES)
    parser.add_argument("sizes", nargs="*", metavar="KEY=NUMBER")
    parser.add_argument("--text", type=Path, nargs="+", required=True)
    parser.add_argument("--vocab-size", type=int, default=8000, help="tokens of the text")
    parser.add_argument("--made-up", type=int, default=0, help="tokens that no text has, as those of other languages")
    parser.add_argument("--languages", nargs="+", default=(), help="of NLLB, instead of all")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_intermixed_args()
    sizes = {key: json.loads(number) for key, _, number in (one.partition("=") for one in arguments.sizes)}
    arguments.output.mkdir(parents=True)
    names = ("languages", "made_up")
    options = {name: getattr(arguments, name) for name in names} | sizes
    write_folder(arguments.output, arguments.kind, _lines(arguments.text), arguments.vocab_size, **options)


if __name__ == "__main__":
    main()
