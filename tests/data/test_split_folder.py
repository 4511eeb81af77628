"""The folder of a split corpus: whole or not at all, made once, and only from what it says."""

import gzip
import json
import random
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from headway.cli import app
from headway.data.corpus import CorpusFiles
from headway.data.splitting import split_corpus
from headway.errors import UserError


def texts(count: int, seed: int = 1) -> list[str]:
    chooser = random.Random(seed)
    return [" ".join("".join(chooser.choices("abcdefghij", k=6)) for _ in range(6)) for _ in range(count)]


@pytest.fixture
def corpus(tmp_path):
    sources = texts(200)
    (tmp_path / "a.de").write_text("".join(f"{one}\n" for one in sources))
    (tmp_path / "a.en").write_text("".join(f"{one.upper()} x\n" for one in sources))
    return CorpusFiles([tmp_path / "a.de"], [tmp_path / "a.en"])


def run(*arguments: object) -> str:
    """What the command tells."""
    done = CliRunner().invoke(app, ["split", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stderr


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_parts_and_record(corpus, tmp_path):
    told = []
    found = split_corpus(corpus, tmp_path / "out", ("de", "en"), tell=told.append)
    names = {f"{part}.{code}" for part in ("train", "valid", "test") for code in ("de", "en")}
    assert contents(tmp_path / "out").keys() == names | {"split.json", "SHA256SUMS"}
    assert found.counts == {"train": 160, "valid": 20, "test": 20}
    assert all(pair.target == f"{pair.source.upper()} x" for pair in found.parts["valid"].pairs())
    assert len(list(found.parts["train"].pairs())) == 160
    assert found.summary() == "200 pairs: train 160, valid 20, test 20"
    before = contents(tmp_path / "out")
    again = split_corpus(corpus, tmp_path / "out", ("de", "en"), tell=told.append)
    assert again == found
    assert told == [f"{tmp_path / 'out'}: is split already"]
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("change", ["input", "output", "foreign", "file"])
def test_a_folder_with_something_else_is_refused(corpus, tmp_path, change):
    out = tmp_path / "out"
    if change == "file":
        out.write_text("mine")
    elif change == "foreign":
        out.mkdir()
        (out / "train.de").write_text("mine")
    else:
        split_corpus(corpus, out, ("de", "en"), tell=print)
        changed = tmp_path / "a.de" if change == "input" else out / "valid.de"
        changed.write_text(changed.read_text().replace("a", "b"))
    before = out.read_text() if out.is_file() else contents(out)
    wanted = {"input": r"other text .* \(inputs\)", "output": "valid.de is damaged"}.get(
        change, "holds no split corpus"
    )
    with pytest.raises(UserError, match=wanted):
        split_corpus(corpus, out, ("de", "en"), tell=print)
    assert (out.read_text() if out.is_file() else contents(out)) == before


def test_a_fault_in_the_last_line_leaves_nothing(tmp_path):
    file = tmp_path / "a.tsv"
    file.write_text("".join(f"{one}\tx\n" for one in texts(50)) + "no tab\n")
    with pytest.raises(UserError, match=r"a.tsv, line 51: has no TAB"):
        run(file, "--output", tmp_path / "out", "--source-language", "de", "--target-language", "en")
    assert [one.name for one in tmp_path.iterdir()] == ["a.tsv"]


def test_all_forms_give_the_same(corpus, tmp_path):
    """Two files; .tsv with other columns, in two compressed parts by a pattern; .jsonl with languages as keys."""
    run("--source", *corpus.sources, "--target", *corpus.targets, "--output", tmp_path / "two")
    pairs = [(pair.source, pair.target) for pair in corpus.pairs()]
    for number in range(2):
        rows = [f"where\t{one}\t{other}\n" for one, other in pairs[number * 70 : 70 + number * 200]]
        (tmp_path / f"part-{number}.tsv.gz").write_bytes(gzip.compress("".join(rows).encode()))
    languages = "--source-language", "de", "--target-language", "en"
    run(tmp_path / "part-*.tsv.gz", "--column", 2, "--column", 3, *languages, "--output", tmp_path / "columns")
    objects = [json.dumps({"translation": {"de": one, "en": other}}) for one, other in pairs]
    (tmp_path / "a.jsonl").write_text("".join(f"{one}\n" for one in objects))
    run(tmp_path / "a.jsonl", "--output", tmp_path / "objects")
    own = {"split.json", "SHA256SUMS"}
    two, columns, objects = (
        {name: data for name, data in contents(tmp_path / name).items() if name not in own}
        for name in ("two", "columns", "objects")
    )
    assert two == columns == objects


def test_documents(tmp_path):
    """Of a column, a field; the names of the columns say the languages."""
    lines = texts(200)
    (tmp_path / "a.tsv").write_text("page\tDe\tEnglish\n" + "".join(f"{n // 5}\t{t}\tx\n" for n, t in enumerate(lines)))
    told = run(tmp_path / "a.tsv", "--document", 1, "--output", tmp_path / "tsv")
    assert told.splitlines()[-1] == "200 pairs: train 160, valid 20, test 20"
    objects = [{"source": one, "target": "x", "page": str(number // 5)} for number, one in enumerate(lines)]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in objects))
    languages = "--source-language", "de", "--target-language", "en"
    run(tmp_path / "a.jsonl", "--document", "page", *languages, "--output", tmp_path / "jsonl")
    for name in ("train.de", "valid.de", "test.de"):
        assert (tmp_path / "tsv" / name).read_text() == (tmp_path / "jsonl" / name).read_text()
    pages = {lines.index(line) // 5 for line in (tmp_path / "tsv" / "valid.de").read_text().splitlines()}
    assert len(pages) == 4


def test_a_corpus_of_near_texts_is_split_all_the_same(tmp_path):
    """Such as dates and other forms: there what is near is what is to be learnt."""
    (tmp_path / "a.de").write_text("".join(f"Seite {n % 90} von {n // 90}\n" for n in range(900)))
    (tmp_path / "a.en").write_text("".join(f"page {n}\n" for n in range(900)))
    told = run("--source", tmp_path / "a.de", "--target", tmp_path / "a.en", "--output", tmp_path / "out").splitlines()
    assert "only identical ones are left out" in told[0]
    assert told[1] == "900 pairs: train 720, valid 90, test 90"


def test_one_language_on_both_sides(corpus, tmp_path):
    told: list[str] = []
    split_corpus(corpus, tmp_path / "out", ("en", "eng"), tell=told.append)
    assert [line for line in told if line.startswith("warning: source and target are both English")] == told[:1] == told
    split_corpus(corpus, tmp_path / "variants", ("en_GB", "en_US"), tell=told.append)
    assert len(told) == 1
    train = split_corpus(corpus, tmp_path / "same", ("en", "en"), tell=told.append).parts["train"]
    assert [file.name for file in (*train.sources, *train.targets)] == ["train.source", "train.target"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--output is missing"),
        (("--output", "out"), "give either PAIRS"),
        (("a.tsv", "--target", "a.en", "--output", "out"), "give either PAIRS"),
        (
            ("a.de", "--output", "out", "LANGUAGES"),
            "a.de: target is missing; give its translation, or one file of both sides",
        ),
        (
            ("a.tsv", "--output", "out"),
            "a.tsv: doesn't say its languages; give --source-language CODE --target-language",
        ),
        (("--source", "a.de", "--target", "a.txt", "--output", "out"), "give --target-language CODE"),
        (("a.tsv", "--column", "2", "--output", "out"), "--column: give that of the source and"),
        (("a.tsv", "--column", "2", "--column", "2", "--output", "out"), "--column: give that of the source and"),
        (("a.tsv", "--document", "0", "--output", "out", "LANGUAGES"), "columns are counted from 1"),
        (("a.tsv", "--document", "00", "--output", "out", "LANGUAGES"), "--document 00: columns are counted from 1"),
        (("a.jsonl", "--column", "2", "--column", "3", "--output", "out"), "a.jsonl: has no columns"),
        (("none.tsv", "--output", "out", "LANGUAGES"), "none.tsv: no such file"),
        (("a.tsv", "--output", "out", "LANGUAGES"), "a.tsv: has 1 different usable sources"),
        (("a.tsv", "--column", 2, "--column", 3, "--output", "out", "LANGUAGES"), "a.tsv, line 1: has only 2 columns"),
        (("a.tsv", "--document", "3", "--output", "out", "LANGUAGES"), "line 1: has only 2 columns"),
        (
            ("--source", "a.de", "--target", "a.txt", "--document", "1", "--output", "out", "LANGUAGES"),
            "only files with both sides",
        ),
        (
            ("none.tsv", "--output", "out", "--source-language", "a/b", "--target-language", "en"),
            "a/b: isn't a language",
        ),
        (
            ("none.tsv", "--output", "out", "--source-language", "de", "--target-language", "English"),
            "English: isn't a language code; did you mean en?",
        ),
        (
            ("none.tsv", "--output", "out", "--source-language", "xx", "--target-language", "en"),
            "xx: isn't a language code; use one such as de",
        ),
    ],
)
def test_what_is_refused(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tsv").write_text("ein Hund\ta dog\n")
    (tmp_path / "a.jsonl").write_text('{"source": "a", "target": "b"}\n')
    for name in ("a.de", "a.txt"):
        (tmp_path / name).write_text("ein Hund\n")
    both = "--source-language", "de", "--target-language", "en"
    given = [word for one in arguments for word in (both if one == "LANGUAGES" else (one,))]
    with pytest.raises(UserError, match=re.escape(message)):
        run(*given)
    assert not (tmp_path / "out").exists()


def test_no_torch_is_needed():
    code = "import sys; sys.modules['torch'] = None; import headway.data.splitting"
    subprocess.run([sys.executable, "-c", code], check=True)
