"""How much BLEU does noise in the source cost a model, and how much of it does training with noise win back?

    python benchmarks/robustness.py MODEL [MODEL ...] --source test.de --reference test.en [--seed 7] [--lines N]
    python benchmarks/robustness.py MODEL [MODEL ...] --source test.en --reference test.ko --pairs

Translates the test set as it is, and with each kind of noise of `headway perturb`, by every model with its own search
options. Prints a Markdown table: BLEU of each model, what noise costs on average, and, for every model after the first,
how much of the first one's loss it doesn't have. The last column tells how models bear single words, the most frequent
of the test set: the share whose translation has at most two words. A model that has read sentences alone tends to write
one.

--pairs measures what noise of both sides (`data.noise.pairs`) is for. BLEU by characters and chrF of the test set as it
is, with each word capitalised on both sides, and three sentences at a time: in one line that isn't split, and one by
one. Of lines of code, addresses and numbers, and of test lines with one of them at their end, the share that keeps it;
of test lines with a tag, placeholder or code at an aligned place, the share that keeps all of it. Then the test set
itself: the segments that keep all tags, placeholders and code that the reference keeps, and those with wrong numbers
where the reference has the right ones.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path
from random import Random

from headway.data.corpus import read_lines
from headway.data.noise import KINDS, perturbed
from headway.data.pair_noise import Pair, code_of, dictionary_of, sentences_of, titled, with_tags
from headway.evaluation import score_translations
from headway.text.numbers import check_numbers
from headway.text.protected import Atom, split_protected
from headway.text.words import word_spans
from headway.translator import Translator

SINGLE_WORDS = 300
"""The most frequent ones."""
LINES_TO_COPY = 200
TOGETHER = 3
"""Sentences in a line."""
_CODE = re.compile(
    r"""(?x) --?[A-Za-z][\w-]*=[!-~]+ | (?<![\w-])--[a-z][\w-]+ | (?:[A-Za-z]:|\\)\\[!-~]+
    | (?<![\w<])/[\w.-]+(?:/[\w.-]+)+ | \b\w+\(\) | \b[A-Za-z]\w*_\w+\b | \b(?:[a-z]+|[A-Z][a-z]+)[A-Z]\w+\b
    | \*\.\w+ | \b\w+\.[a-z]{3,4}\b | \b\d+(?:\.\d+){2,}\b""",
    re.ASCII,
)
"""Paths, options, calls, names of programs, files and versions."""


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


def parts_of(text: str) -> dict[str, Counter[str]]:
    """The tags, the other protected text and the code of a text."""
    atoms = [one.raw for one in split_protected(text) if isinstance(one, Atom)]
    words = " ".join(one for one in split_protected(text) if isinstance(one, str))
    tags = Counter(one for one in atoms if one.startswith("<"))
    return {"tags": tags, "placeholders": Counter(atoms) - tags, "code": Counter(_CODE.findall(words))}


def has_all(text: str, parts: Counter[str]) -> bool:
    return all(text.count(part) >= count for part, count in parts.items())


def put_in(before: Pair, after: Pair) -> Counter[str]:
    """What a pair has on both sides since it was changed."""
    found, had = (Counter(re.findall(r"<[^<>]*>|[^\s<>]+", source)) for source, _ in (after, before))
    return Counter({part: count for part, count in (found - had).items() if part in after[1]})


def row_of_pairs(translator: Translator, pairs: list[Pair], seed: int) -> dict[str, str]:
    def translated(texts: list[str]) -> list[str]:
        return [one.text for one in translator.translate(texts)]

    def measured(found: list[str], references: list[str]) -> str:
        scores = score_translations(found, references, "char")
        return f"{scores.bleu:.2f}, {scores.chrf:.2f}"

    def scored(name: str, some: list[Pair]) -> list[str]:
        found = translated([source for source, _ in some])
        row[name] = measured(found, [target for _, target in some])
        return found

    row: dict[str, str] = {}
    random, dictionary = Random(seed), dictionary_of(pairs)
    as_they_are = scored("clean", pairs)
    scored("title", [(titled(source), titled(target)) for source, target in pairs])
    sentences = sentences_of(pairs) or pairs
    together = [sentences[first : first + TOGETHER] for first in range(0, len(sentences), TOGETHER)]
    joined = [(" ".join(one for one, _ in some), " ".join(other for _, other in some)) for some in together]
    scored("joined", joined)
    alone = dict(zip([source for source, _ in pairs], as_they_are, strict=True))
    one_by_one = [" ".join(alone[source] for source, _ in some) for some in together]
    row["one by one"] = measured(one_by_one, [target for _, target in joined])
    lines = [code_of(random) for _ in range(LINES_TO_COPY)]
    copies = translated(lines)
    row["copied"] = f"{sum(map(str.__eq__, lines, copies)) / len(lines):.1%}"
    texts = [source.rstrip(" .!?:") for source, _ in pairs[:LINES_TO_COPY]]
    found = translated([f"{text}: {line}" for text, line in zip(texts, lines, strict=False)])
    row["code at the end"] = f"{sum(line in text for line, text in zip(lines, found, strict=False)) / len(found):.1%}"
    tagged = [with_tags(pair, dictionary, random) for pair in pairs]
    put = [put_in(*both) for both in zip(pairs, tagged, strict=True)]
    kept = [has_all(text, parts) for text, parts in zip(translated([one for one, _ in tagged]), put, strict=True)]
    row["tags put in"] = f"{sum(kept) / len(kept):.1%}"

    languages = translator.info.source_language, translator.info.target_language
    counts = {name: [0, 0] for name in ("tags", "placeholders", "code", "all of them", "wrong numbers")}
    for (source, target), text in zip(pairs, as_they_are, strict=True):
        parts = parts_of(source)
        parts["all of them"] = sum(parts.values(), Counter())
        for name, some in parts.items():
            if some and has_all(target, some):
                counts[name][0] += has_all(text, some)
                counts[name][1] += 1
        if any(map(str.isdecimal, source)) and not check_numbers(source, target, languages):
            counts["wrong numbers"][0] += bool(check_numbers(source, text, languages))
            counts["wrong numbers"][1] += 1
    return row | {name: f"{some} of {of}" for name, (some, of) in counts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--lines", type=int)
    parser.add_argument("--pairs", action="store_true")
    given = parser.parse_args()
    sources, references = (list(read_lines(file))[: given.lines] for file in (given.source, given.reference))
    if given.pairs:
        pairs = [*zip(sources, references, strict=True)]
        table = [row_of_pairs(Translator.load(model), pairs, given.seed) for model in given.models]
        print(f"\n| Model | {' | '.join(table[0])} |\n|---|{'---|' * len(table[0])}")
        for model, row in zip(given.models, table, strict=True):
            print(f"| {model} | {' | '.join(row.values())} |")
        return
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
