"""Do both engines give the same translations, and the same BLEU?

    python benchmarks/engines.py MODEL SOURCE REFERENCE [--sentences 2000] [--precision fp32] [--options JSON ...]

Each of the options, those of `Translator.translate`, is tried with torch in fp32 and with CTranslate2. For each: the
lines that differ, the lists of the n best that differ, by how much scores of the same translation differ at most, and
BLEU of both.
"""

import argparse
import json
from itertools import islice
from pathlib import Path
from typing import Any

from headway.data.corpus import read_lines
from headway.evaluation import score_translations
from headway.translator import Translation, Translator

OPTIONS: list[dict[str, Any]] = [
    {"beam_size": 1},
    *({"beam_size": 5, "length_penalty": penalty} for penalty in (0, 0.6, 1, 1.5)),
    {"beam_size": 4, "length_penalty": 0.6},
    {"beam_size": 2},
    {"beam_size": 10},
    {"beam_size": 5, "n_best": 5},
    {"beam_size": 5, "no_repeat_ngram": 2},
    {"beam_size": 5, "max_length": 10},
    {"beam_size": 5, "n_best": 5, "max_length": 10},
    {"beam_size": 5, "n_best": 5, "prefix": "a man"},
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--precision", choices=("fp32", "bf16", "int8"), default="fp32", help="of CTranslate2")
    parser.add_argument("--options", type=json.loads, nargs="+", default=OPTIONS)
    chosen = parser.parse_args()
    sources, references = (
        list(islice(read_lines(file), chosen.sentences)) for file in (chosen.source, chosen.reference)
    )
    torch = Translator.load(chosen.model, device="cpu", engine="torch", precision="fp32")
    ctranslate2 = Translator.load(chosen.model, device="cpu", engine="ctranslate2", precision=chosen.precision)
    print(f"{len(sources)} sentences; BLEU of torch and CTranslate2")
    for options in chosen.options:
        ours, theirs = (translator.translate(sources, **options) for translator in (torch, ctranslate2))
        pairs = list(zip(ours, theirs, strict=True))
        lines = sum(one.text != other.text for one, other in pairs)
        lists = sum(texts(one) != texts(other) for one, other in pairs)
        scores = (abs((one.score or 0) - (other.score or 0)) for one, other in pairs if one.tokens == other.tokens)
        bleu = (score_translations([one.text for one in some], references).bleu for some in (ours, theirs))
        print(
            f"{json.dumps(options)}: {lines} lines and {lists} lists differ, scores by {max(scores, default=0):.4f}, "
            f"BLEU {' and '.join(f'{one:.2f}' for one in bleu)}",
            flush=True,
        )


def texts(translation: Translation) -> list[str]:
    return [translation.text, *(one.text for one in translation.alternatives)]


if __name__ == "__main__":
    main()
