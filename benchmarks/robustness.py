"""How much BLEU does noise in the source cost a model, and how much of it does training with noise win back?

    python benchmarks/robustness.py MODEL [MODEL ...] --source test.de --reference test.en [--seed 7] [--lines N]

Translates the test set as it is, and with each kind of noise of `headway perturb`, by every model with its own search
options. Prints a Markdown table: BLEU of each model, what noise costs on average, and, for every model after the first,
how much of the first one's loss it doesn't have. The last column tells how models bear single words, the most frequent
of the test set: the share whose translation has at most two words. A model that has read sentences alone tends to write
one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from headway.data.corpus import read_lines
from headway.data.noise import KINDS, perturbed
from headway.evaluation import score_translations
from headway.text.words import word_spans
from headway.translator import Translator

SINGLE_WORDS = 300
"""The most frequent ones."""


def bleu_by_kind(translator: Translator, sources: list[str], references: list[str], seed: int) -> dict[str, float]:
    sets = {"clean": sources, **{kind: [perturbed(text, kind, seed) for text in sources] for kind in KINDS}}
    found = {}
    for name, texts in sets.items():
        translations = [one.text for one in translator.translate(texts)]
        found[name] = score_translations(translations, references).bleu
        print(f"  {name}: {found[name]:.2f}", flush=True)
    return found


def short_answers(translator: Translator, sources: list[str]) -> float:
    """The share of single words whose translation has one word or two."""
    counts: dict[str, int] = {}
    for text in sources:
        for start, end in word_spans(text):
            if (word := text[start:end].strip(".,:;!?\"'()")).isalpha():
                counts[word] = counts.get(word, 0) + 1
    words = sorted(counts, key=lambda word: (-counts[word], word))[:SINGLE_WORDS]
    lengths = [len(one.text.split()) for one in translator.translate(words)]
    return sum(1 <= length <= 2 for length in lengths) / len(lengths)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--lines", type=int)
    given = parser.parse_args()
    sources, references = (list(read_lines(file))[: given.lines] for file in (given.source, given.reference))
    rows, short = [], []
    for model in given.models:
        print(model, flush=True)
        translator = Translator.load(model)
        rows.append(bleu_by_kind(translator, sources, references, given.seed))
        short.append(short_answers(translator, sources))
    print(f"\n| Model | clean | {' | '.join(KINDS)} | mean loss | won back | single words |")
    print(f"|---|{'---|' * (len(KINDS) + 4)}")
    first = rows[0]
    for model, row, share in zip(given.models, rows, short, strict=True):
        losses = {kind: first["clean"] - row[kind] for kind in KINDS}  # against one and the same clean score
        mean, mean_first = (sum(one["clean"] - one[kind] for kind in KINDS) / len(KINDS) for one in (row, first))
        won = 1 - sum(losses.values()) / len(KINDS) / mean_first if row is not first and mean_first else None
        cells = [f"{row[name]:.2f}" for name in ("clean", *KINDS)]
        cells += [f"{mean:.2f}", "" if won is None else f"{won:.0%}", f"{share:.0%}"]
        print(f"| {model} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
