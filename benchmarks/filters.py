"""Precision and recall of the filters that `headway train` chooses, on pairs of real messages that were judged by hand.

`tests/data/filter_labels.tsv` has a line for each: the hash of the pair, the group that it was drawn from at random
(the filter that dropped it, or `kept`; before copies of code were kept), and `good` or `bad`. Bad is what teaches a
wrong translation: text that isn't translated, or is the translation of another one. A copy is good if it has nothing to
translate, such as `=SUM(A1)`.

    python benchmarks/filters.py train.en-ko.tsv.gz [--language 0.1]
"""

import argparse
import gzip
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from headway.data.filters import filter_tests
from headway.data.options import FiltersSection

LABELS = Path(__file__).parent.parent / "tests" / "data" / "filter_labels.tsv"
FILTERS = FiltersSection(copies=True, max_ratio=6, script=True)
"""Those of `headway.training.own_text`, without duplicates, which are what they are."""
SIZES = {"kept": 110_618, "copies": 23_661, "script": 2_562, "max_ratio": 49}
"""The pairs of each group in the corpus when the labelled ones were drawn, each pair once."""


@dataclass(frozen=True)
class Row:
    """What a filter does, in pairs of the corpus."""

    name: str
    dropped: float
    precision: float
    """The share of bad pairs among those that it drops."""
    recall: float
    """The share of the bad pairs that it drops."""


def pair_id(source: str, target: str) -> str:
    return sha256(f"{source}\t{target}".encode()).hexdigest()[:12]


def measured(
    pairs: Iterable[tuple[str, str]],
    labels: dict[str, tuple[str, str]],
    sizes: dict[str, int],
    languages: tuple[str, str],
    filters: FiltersSection = FILTERS,
) -> list[Row]:
    """A row for each filter, and one for all. labels: group and label of a pair by its id. A labelled pair stands for
    as many pairs as its group had for each one drawn."""
    drawn = Counter(group for group, _ in labels.values())
    tests = filter_tests(filters, languages)
    weights = {name: {"good": 0.0, "bad": 0.0} for name in (*(name for name, _ in tests), "all")}
    total, seen = {"good": 0.0, "bad": 0.0}, set[str]()
    for source, target in pairs:
        known = labels.get(one := pair_id(source, target))
        if known is None or one in seen:
            continue
        seen.add(one)
        group, label = known
        weight = sizes[group] / drawn[group]
        total[label] += weight
        found = [name for name, test in tests if test(source, target)]
        for name in (*found, *(["all"] if found else [])):
            weights[name][label] += weight
    if len(seen) < len(labels):
        raise SystemExit(f"{len(labels) - len(seen)} of {len(labels)} labelled pairs aren't in the corpus")
    return [
        Row(name, sum(one.values()), one["bad"] / (sum(one.values()) or 1), one["bad"] / (total["bad"] or 1))
        for name, one in weights.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--language", type=float, help="least confidence of lingua; by default it isn't asked")
    options = parser.parse_args()
    lines = LABELS.read_text(encoding="utf-8").splitlines()
    labels = {one: (group, label) for one, group, label in (line.split("\t") for line in lines)}
    with gzip.open(options.corpus, "rt", encoding="utf-8", newline="\n") as file:
        sides = (line.rstrip("\n").split("\t")[-2:] for line in file)
        filters = FILTERS.model_copy(update={"language": options.language})
        rows = measured(((one, other) for one, other in sides), labels, SIZES, ("en", "ko"), filters)
    print("| Filter | Drops | of them bad | of all bad pairs |\n|---|---|---|---|")
    for row in rows:
        print(f"| `{row.name}` | {row.dropped:,.0f} | {row.precision:.1%} | {row.recall:.1%} |")


if __name__ == "__main__":
    main()
