"""What a glossary does to a test set: terms honoured, BLEU and time, beside translating without it.

    python benchmarks/glossaries.py MODEL data/multi30k/raw test_2016_flickr de en

Two glossaries are made of the data alone. `reference`: for each sentence the words of its reference that the model's
own translation lacks, each with the source word that it most likely translates; what a translator who knows the text
would demand. `training`: the nouns that are frequent in the training text (German writes them with a capital), each
with its likeliest translation, if it is the likeliest one of that, too; the same terms for every sentence, whatever its
reference says. Likely is what model 1 of Brown et al. (1993) says after it has read the training text
(`headway.text.shortlist`). Time is that of the processor, by one thread, each way in turns.

Last, protected text: in each sentence that has a noun whose likeliest translation is in the reference, `{name}` stands
for both. BLEU of these pairs is compared with that of the pairs as they were.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from pathlib import Path

import torch
from sacrebleu import corpus_bleu

from headway.data.corpus import read_lines
from headway.text.shortlist import learn_shortlist
from headway.text.tokenizer import CONTROL_PIECES
from headway.text.words import WordTokenizer
from headway.translator import Translation, Translator
from headway.translator.glossary import Glossary

MOST_WORDS = 20_000
FREQUENT = 30
"""Occurrences that a noun of the training glossary has, at least."""
SHORTEST = 3
"""Letters of a term, at least."""


class Dictionary:
    """The likeliest translations of words."""

    def __init__(self, source: list[str], target: list[str]) -> None:
        sides = [[" ".join(words(line)) for line in lines] for lines in (source, target)]
        tokenizers = [WordTokenizer.train(lines, MOST_WORDS, 2, lowercase=False) for lines in sides]
        encoded = zip(*(one.encode_all(lines) for one, lines in zip(tokenizers, sides, strict=True)), strict=True)
        self._source, self._target = (one.vocabulary for one in tokenizers)
        self._table = learn_shortlist(encoded, *tokenizers).of_token
        self._ids = {word: id_ for id_, word in enumerate(self._source)}

    def translations(self, word: str, most: int) -> list[str]:
        """Likeliest first; none for a word that is unknown."""
        if word not in self._ids:
            return []
        found = self._table[self._ids[word]][:most].tolist()
        return [self._target[id_] for id_ in found if id_ >= len(CONTROL_PIECES)]


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def reference_glossary(source: str, reference: str, own: str, dictionary: Dictionary) -> Glossary:
    """Words of the reference that its own translation lacks."""
    missing = Counter(words(reference)) - Counter(words(own))
    pairs: dict[str, str] = {}
    for word in words(source):
        for target in dictionary.translations(word, 5):
            if missing[target] and len(target) >= SHORTEST and word not in pairs:
                pairs[word] = target
                missing[target] -= words(source).count(word)
    return Glossary.of(pairs.items())


def training_glossary(source: list[str], dictionary: Dictionary, back: Dictionary) -> Glossary:
    """Frequent nouns. A word that begins a sentence may be no noun. back: the dictionary of the other direction."""
    counts = Counter(word for line in source for word in words(line)[1:] if word[0].isupper() and len(word) >= SHORTEST)
    frequent = [word for word, count in counts.items() if count >= FREQUENT]
    likeliest = {word: found[0] for word in frequent if (found := dictionary.translations(word, 1))}
    return Glossary.of((word, target) for word, target in likeliest.items() if back.translations(target, 1) == [word])


def honoured(glossary: Glossary, source: str, translation: str) -> tuple[int, int]:
    """Terms that the translation has, as whole words, and those that the source has. A term may begin the translation
    with a capital."""
    wanted = Counter(term.target for term in glossary.find(source))

    def occurrences(term: str) -> int:
        capital = rf"|\A{re.escape(term[0].upper() + term[1:])}" if term.islower() else ""
        return len(re.findall(rf"(?:(?<!\w){re.escape(term)}{capital})(?!\w)", translation))

    return sum(min(count, occurrences(term)) for term, count in wanted.items()), sum(wanted.values())


def with_placeholders(source: str, reference: str, dictionary: Dictionary) -> tuple[str, str] | None:
    """The pair with `{name}` in place of the last noun that stands once, and its translation in the reference."""
    of_source, of_reference = Counter(words(source)), Counter(words(reference))
    for word in reversed(words(source)):
        for target in dictionary.translations(word, 1):
            if word[0].isupper() and of_source[word] == of_reference[target] == 1 and len(target) >= SHORTEST:
                return re.sub(rf"\b{word}\b", "{name}", source), re.sub(rf"\b{target}\b", "{name}", reference)
    return None


def protected(translator: Translator, sources: list[str], references: list[str], dictionary: Dictionary) -> None:
    """Prints what placeholders cost."""
    pairs = {i: with_placeholders(*pair, dictionary) for i, pair in enumerate(zip(sources, references, strict=True))}
    changed = {i: pair for i, pair in pairs.items() if pair is not None}
    found = [one.text for one in translator.translate([source for source, _ in changed.values()])]
    plain = [one.text for one in translator.translate([sources[i] for i in changed])]
    figures = {
        "sentences with a placeholder": len(changed),
        "kept": sum(one.count("{name}") == 1 for one in found),
        "BLEU": round(corpus_bleu(found, [[reference for _, reference in changed.values()]]).score, 2),
        "BLEU as they were": round(corpus_bleu(plain, [[references[i] for i in changed]]).score, 2),
    }
    print(json.dumps(figures), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("test")
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--rounds", type=int, default=3, help="timings in turns; each figure is the fastest")
    arguments = parser.parse_args()

    def lines(name: str, language: str) -> list[str]:
        return list(read_lines(arguments.folder / f"{name}.{language}"))

    train, test = ([lines(name, arguments.source), lines(name, arguments.target)] for name in ("train", arguments.test))
    torch.set_num_threads(1)
    dictionary = Dictionary(*train)
    translator = Translator.load(arguments.model, device="cpu")
    sources, references = test
    free = translator.translate(sources)
    glossaries = {
        "reference": [
            reference_glossary(source, reference, own.text, dictionary)
            for source, reference, own in zip(sources, references, free, strict=True)
        ],
        "training": [training_glossary(train[0], dictionary, Dictionary(*train[::-1]))] * len(sources),
    }

    def bleu(translations: list[Translation]) -> float:
        return corpus_bleu([one.text for one in translations], [references]).score

    for name, each in glossaries.items():
        seconds = {"without": float("inf"), "with": float("inf")}
        found = free
        for kind in ["without", "with"] * arguments.rounds:
            start = time.process_time()
            found = translator.translate(sources, glossary=each if kind == "with" else None)
            seconds[kind] = min(seconds[kind], time.process_time() - start)
        of = {"with": found, "without": free}
        counts = {
            kind: [honoured(*one) for one in zip(each, sources, (t.text for t in of[kind]), strict=True)] for kind in of
        }
        terms = sum(count for _, count in counts["with"])
        figures = {
            "glossary": name,
            "terms": terms,
            "sentences with terms": sum(count > 0 for _, count in counts["with"]),
            "sentences": len(sources),
            "honoured": round(sum(there for there, _ in counts["with"]) / terms, 4),
            "honoured without": round(sum(there for there, _ in counts["without"]) / terms, 4),
            "BLEU": round(bleu(found), 2),
            "BLEU without": round(bleu(free), 2),
            "time ratio": round(seconds["with"] / seconds["without"], 2),
            "seconds without": round(seconds["without"], 2),
        }
        print(json.dumps(figures), flush=True)
    protected(translator, sources, references, dictionary)


if __name__ == "__main__":
    main()
