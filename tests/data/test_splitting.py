"""Where the pairs of a corpus go: all of them somewhere, no source on two sides, whatever the order."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from headway.data import splitting
from headway.data.corpus import CorpusFiles
from headway.data.lines import Layout
from headway.data.splitting import OVERLAP, NearTexts, Splitter, compared, shingles
from headway.errors import UserError

WORDS = [
    "Der",
    "Hund",
    "läuft",
    "schnell",
    "über",
    "die",
    "grüne",
    "Wiese",
    "und",
    "bellt",
    "nachts",
    "학교에",
    "갔다",
    "3",
    "17",
]
PARTS = "valid", "test"

texts = st.lists(st.sampled_from([*WORDS, "!", "  ", "Ｈund"]), max_size=6).map(" ".join)
rows = st.lists(st.tuples(texts, texts, st.sampled_from(["", *map(str, range(40))])), min_size=25, max_size=120)
varied = st.integers(0, 2**32).map(lambda seed: made(random.Random(seed)))


def made(chooser: random.Random) -> list[tuple[str, str, str]]:
    """Rows with enough different sources."""
    sources = [" ".join(chooser.choices(WORDS, k=chooser.randint(3, 9))) for _ in range(150)]
    return [(one, f"t {chooser.randrange(4)}", str(chooser.randrange(30))) for one in chooser.choices(sources, k=200)]


def written(folder: Path, rows: list[tuple[str, str, str]], files: int = 1) -> CorpusFiles:
    """Rows as .jsonl files."""
    paths = [folder / f"{number}.jsonl" for number in range(files)]
    for number, path in enumerate(paths):
        objects = [{"source": one, "target": other, "page": page} for one, other, page in rows[number::files]]
        path.write_text("".join(json.dumps(one) + "\n" for one in objects))
    return CorpusFiles(paths, [])


def split(corpus: CorpusFiles, document: Layout | None = None) -> dict[str, list[tuple[str, str]]]:
    splitter = Splitter(corpus, ("de", "en"), document)
    found = splitter.measuring()
    return {**found, "train": list(splitter.training()), "left out": [("", "")] * splitter.left_out.total()}


def sets(found: dict[str, list[tuple[str, str]]]) -> dict[str, Counter[tuple[str, str]]]:
    return {part: Counter(pairs) for part, pairs in found.items()}


PAGES = [None, Layout(field="page")]


@pytest.mark.parametrize("document", PAGES)
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(varied)
def test_every_pair_is_somewhere_and_no_source_on_two_sides(document, tmp_path, rows):
    found = split(written(tmp_path, rows), document)
    assert sum(map(len, found.values())) == len(rows)
    given = Counter((one, other) for one, other, _ in rows)
    for part in (*PARTS, "train"):
        assert Counter(found[part]) <= given
    keys = {part: [compared(one) for one, _ in found[part]] for part in (*PARTS, "train")}
    assert not set(keys["valid"]) & set(keys["test"])
    assert not set(keys["train"]) & {*keys["valid"], *keys["test"]}
    for part in PARTS:
        assert len(set(keys[part])) == len(keys[part]) > 0
    measured = [shingles(key) for part in PARTS for key in keys[part]]
    for own in map(shingles, keys["train"]):
        assert all(len(own & other) < OVERLAP * len(own | other) for other in measured)


@pytest.mark.parametrize("document", PAGES)
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(varied, st.randoms(), st.integers(1, 4))
def test_neither_order_nor_files_matter(document, tmp_path, rows, chooser, files):
    one = sets(split(written(tmp_path, rows), document))
    chooser.shuffle(rows)
    assert sets(split(written(tmp_path, rows, files), document)) == one


def test_documents_stay_whole(tmp_path):
    chooser = random.Random(2)
    rows = [(" ".join(chooser.choices("abcdefghijklmnop", k=20)), f"{n}", str(n // 10)) for n in range(600)]
    found = split(written(tmp_path, rows), PAGES[1])
    page = {source: page for source, _, page in rows}
    pages = {part: Counter(page[one] for one, _ in found[part]) for part in (*PARTS, "train")}
    for part in PARTS:
        assert len(pages[part]) == 6
        assert set(pages[part].values()) == {10}
        assert not set(pages[part]) & set(pages["train"])


def test_a_large_document_trains(tmp_path, monkeypatch):
    chooser = random.Random(2)
    texts = [" ".join(chooser.choices("abcdefghijklmnop", k=20)) for _ in range(300)]
    rows = [(one, "t", "large" if n < 150 else str(n // 15)) for n, one in enumerate(texts)]
    found = split(written(tmp_path, rows), PAGES[1])
    assert {one for one, _ in found["train"]} >= set(texts[:150])
    monkeypatch.setattr(splitting, "PAIRS", 20)
    rows = [(one, "t", str(n // 28) if n < 140 else str(n)) for n, one in enumerate(texts)]
    found = split(written(tmp_path, rows), PAGES[1])
    assert {one for one, _ in found["train"]} >= set(texts[:140])  # smaller ones suffice
    assert len(found["valid"]) == len(found["test"]) == 20
    rows = [(one, "t", str(n // 28)) for n, one in enumerate(texts)]
    found = split(written(tmp_path, rows), PAGES[1])
    assert len(found["valid"]) == len(found["test"]) == 28
    rows = [(one, "t", str(n // 60)) for n, one in enumerate(texts)]
    with pytest.raises(UserError, match="documents with up to 30 pairs have too few to set 20 apart"):
        split(written(tmp_path, rows), PAGES[1])


def test_shares(tmp_path, monkeypatch):
    """A tenth each, and no more than a thousand, of the different sources."""
    monkeypatch.setattr(splitting, "NearTexts", frozenset)
    numbers = [(f"{number:05} {number * 7919 % 10007:05}", "t", "") for number in range(12000)]
    for count, wanted in ((10, 1), (999, 99), (12000, 1000)):
        found = split(written(tmp_path, numbers[:count] + numbers[:5]))
        assert len(found["valid"]) == len(found["test"]) == wanted
        assert len(found["train"]) + len(found["left out"]) == count + 5 - 2 * wanted
    with pytest.raises(UserError, match="has 9 different usable sources"):
        split(written(tmp_path, numbers[:9] * 3))


def test_a_grown_corpus_moves_no_pair_from_test_to_validation(tmp_path):
    rows = made(random.Random(3))
    small, large = split(written(tmp_path, rows[:100])), split(written(tmp_path, rows))
    for one, other in (PARTS, PARTS[::-1]):
        assert not {source for source, _ in small[one]} & {source for source, _ in large[other]}


def test_what_cannot_measure(tmp_path):
    """Copied and long pairs: in no part that measures, and where their source is apart, in none."""
    chooser = random.Random(4)
    sources = [" ".join(chooser.choices("abcdefghijklmnop", k=20)) for _ in range(100)]
    rows = [(one, "t", "") for one in sources]
    bad = [(one, other, "") for one in sources for other in ("", one, "t" * 501)]
    found = split(written(tmp_path, rows + bad))
    assert {other for part in PARTS for _, other in found[part]} == {"t"}
    assert len(found["valid"]) == len(found["test"]) == 10
    assert len(found["left out"]) == 20 * 2 + 100  # the blank ones are in no part at all
    with pytest.raises(UserError, match="has 0 different usable sources"):
        split(written(tmp_path, bad))


@pytest.mark.parametrize("near", [True, False])
def test_blank_pairs_are_left_out_and_counted_once(tmp_path, near):
    rows = made(random.Random(7))
    blank = [("", "t"), ("  ", " "), (rows[0][0], ""), (rows[1][0], "\u200b"), ("", "")]
    splitter = Splitter(written(tmp_path, rows + [(*pair, "") for pair in blank]), ("de", "en"))
    found = splitter.measuring()
    list(splitter.training())
    train = list(splitter.training(near=near))
    assert splitter.left_out["blank"] == len(blank)
    assert not {pair for pairs in (*found.values(), train) for pair in pairs} & set(blank)


def test_copies_measure_within_a_language(tmp_path):
    rows = [(one, one, "") for one, _, _ in made(random.Random(5))]
    splitter = Splitter(written(tmp_path, rows), ("en_GB", "eng"))
    assert len(splitter.measuring()["test"]) >= 10


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ein Hund läuft.", "ein  HUND läuft!"),
        ("Ｈａｌｌｏ Ｗｅｌｔ", "Hallo, Welt"),
        ("학교에 갔다.", "학교에갔다"),
        ("학교".encode().decode(), "\u1112\u1161\u11a8\u1100\u116d"),
        ("Stra\u00dfe", "STRASSE"),
        ("so\u00adft", "soft"),
    ],
)
def test_the_same_text(one, other):
    assert compared(one) == compared(other)


@pytest.mark.parametrize(("one", "other"), [("?", "!"), ("Zimmer 1", "Zimmer 2"), ("का", "कि"), ("1", "2")])
def test_not_the_same_text(one, other):
    assert compared(one) != compared(other)


@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), max_size=12), st.integers(0, 99))
@example(["3", "17"], 0)
@settings(deadline=None)
def test_near_texts_are_those_that_a_comparison_with_all_finds(found, seed):
    chooser = random.Random(seed)
    keys = [compared(one) for one in found]
    given_keys, others = keys[::2], keys[1::2] + [compared(" ".join(chooser.choices(WORDS, k=5))) for _ in range(9)]
    near = NearTexts(given_keys)
    for key in (*others, *given_keys):
        own = shingles(key)
        alike = [len(own & shingles(one)) / len(own | shingles(one)) for one in given_keys]
        assert (key in near) == (max(alike, default=0) >= OVERLAP)


@pytest.mark.parametrize(
    ("given_text", "text", "is_near"),
    [
        ("Error 404 in line 3", "Error 500 in line 17", True),
        (
            "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt Fenster.",
            "Ein Mann in einem blauen Hemd steht auf der Leiter und putzt ein Fenster.",
            True,
        ),
        ("나는 어제 친구와 함께 학교에 가서 책을 읽었다.", "나는 어제 친구와 함께 학교에 가서 책을 읽었습니다.", True),
        ("톰이 물속으로 뛰어들지 않았어.", "톰은 물속으로 뛰어들진 않았어.", True),
        ("Tom is tall.", "Tom is small.", False),
        ("나는 사과를 좋아한다.", "나는 여름을 좋아한다.", False),
        ("1990", "1991", False),
    ],
)
def test_what_is_near(given_text, text, is_near):
    assert (compared(text) in NearTexts([compared(given_text)])) == is_near
