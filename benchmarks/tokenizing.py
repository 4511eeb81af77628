"""Does a tokenizer in JavaScript give the ids of sentencepiece?

    python benchmarks/tokenizing.py FILE... [--lines 10000] [--vocabulary 8000]

Trains a BPE and a unigram model on the lines, and counts the lines that get sentencepiece's ids, in Unicode's composed
form (NFC) and its decomposed one (NFD), which file names of macOS have. Contenders: the page's tokenizer; with the
same model in their form, Hugging Face's in JavaScript (`@huggingface/tokenizers`, which `npm ci --prefix tests`
installs) and in Rust (`tokenizers`). Of those in JavaScript also the milliseconds that all lines take. Needs node.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import unicodedata
from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import BPE, Unigram

from headway.page.export import modules
from headway.page.model_file import tokenizer_description
from headway.text.subwords import SubwordTokenizer

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--vocabulary", type=int, default=8000)
    options = parser.parse_args()
    each = -(-options.lines // len(options.files))
    lines = [line for file in options.files for line in file.read_text(encoding="utf-8").splitlines()[:each]]
    for kind in ("bpe", "unigram"):
        ours = SubwordTokenizer.train(lines, kind, options.vocabulary)
        theirs = hugging_face(ours.to_bytes())
        for form in ("NFC", "NFD"):
            texts = [unicodedata.normalize(form, line) for line in lines]
            wanted = SentencePieceProcessor(model_proto=ours.to_bytes()).encode(texts)  # type: ignore[call-arg]
            found = in_node({"page": tokenizer_description(ours), "peer": json.loads(theirs.to_str())}, texts)
            found["tokenizers"] = {"ids": [one.ids for one in theirs.encode_batch(texts)], "milliseconds": None}
            for name, said in found.items():
                same = sum(one == other for one, other in zip(said["ids"], wanted, strict=True))
                time = f", {said['milliseconds']:.0f} ms" if said["milliseconds"] else ""
                print(f"{kind}, {form}, {len(texts):,} lines: {name}: {same:,} equal{time}")


def hugging_face(model: bytes) -> Tokenizer:
    """The model as `SentencePieceUnigramTokenizer.from_spm` and transformers' converters of BPE have it."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)  # type: ignore[attr-defined]
    scores = {piece.piece: piece.score for piece in proto.pieces}
    ids = {piece: id_ for id_, piece in enumerate(scores)}
    if proto.trainer_spec.model_type == proto.trainer_spec.UNIGRAM:
        tokenizer = Tokenizer(Unigram(list(scores.items()), proto.trainer_spec.unk_id, byte_fallback=True))
    else:
        halves = [(one[:at], one[at:]) for one in sorted(ids, key=lambda one: ids[one]) for at in range(1, len(one))]
        merges = [pair for pair in halves if pair[0] in ids and pair[1] in ids]
        tokenizer = Tokenizer(BPE(ids, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    rules = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    tokenizer.normalizer = normalizers.Sequence(  # type: ignore[assignment]
        [rules, normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")  # type: ignore[assignment]
    return tokenizer


def in_node(tokenizers: dict[str, Any], texts: list[str]) -> dict[str, dict[str, Any]]:
    """-> ids and milliseconds of each"""
    with tempfile.TemporaryDirectory() as name:
        for path, text in modules().items():
            file = Path(name, path)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        Path(name, "package.json").write_text('{"type": "module"}')
        peer = HERE.parent / "tests" / "node_modules" / "@huggingface" / "tokenizers" / "dist" / "tokenizers.mjs"
        command = ["node", HERE / "tokenizing.mjs", Path(name, "tokenizer", "tokenizer.js"), peer]
        given = json.dumps({"tokenizers": tokenizers, "texts": texts})
        return json.loads(subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
