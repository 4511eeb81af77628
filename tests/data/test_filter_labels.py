"""The benchmark of filters counts right, on pairs whose verdicts are plain."""

import gzip
import sys
from collections import Counter

import pytest
from benchmarks.filters import LABELS, main, measured, pair_id

PAIRS = {
    ("Merge the cells", "Merge the cells"): ("copies", "bad"),
    ("Print", "Print"): ("copies", "good"),  # by this label, the filter errs
    ("Wrap", "Wraps"): ("script", "bad"),
    ("Dog", "고양이"): ("kept", "bad"),
    ("Cat", "고양이"): ("kept", "good"),
}


def test_each_pair_stands_for_its_group():
    labels = {pair_id(*pair): label for pair, label in PAIRS.items()}
    rows = measured([*PAIRS, *PAIRS, ("an", "other")], labels, {"copies": 20, "script": 5, "kept": 10}, ("en", "ko"))
    found = {row.name: (row.dropped, row.precision, row.recall) for row in rows}
    assert found["copies"] == (20, 0.5, 0.5)
    assert found["script"] == found["all"] == (25, 15 / 25, 15 / 20)
    assert found["max_ratio"] == (0, 0, 0)


def test_pairs_that_are_gone_are_told(tmp_path, monkeypatch):
    corpus = tmp_path / "train.tsv.gz"
    with gzip.open(corpus, "wt", encoding="utf-8") as file:
        file.write("app\tCat\t고양이\n")
    monkeypatch.setattr(sys, "argv", ["filters.py", str(corpus)])
    with pytest.raises(SystemExit, match="600 of 600 labelled pairs aren't in the corpus"):
        main()


def test_the_labels_are_ids_alone():
    rows = [line.split("\t") for line in LABELS.read_text(encoding="utf-8").splitlines()]
    assert all(len(one) == 12 and int(one, 16) >= 0 for one, _, _ in rows)
    assert Counter(group == "kept" for _, group, _ in rows) == {True: 300, False: 300}
    assert {label for _, _, label in rows} == {"good", "bad"}
