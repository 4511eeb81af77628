"""`inspect --source`: one JSON line per line of a file, compared with scores of models that lack a word's embedding."""

import io
import json
from contextlib import contextmanager

import pytest
import torch
from typer.testing import CliRunner

from headway import Translator
from headway.cli import analysing, app
from headway.data.lines import Line
from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel, load_model, save_model
from headway.text.words import WordTokenizer

SOURCES = ["a b c", "", "d", "c a", "b d a c"]
TARGETS = ["c b", "", "a a", "d", "b"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    words = WordTokenizer(["a", "b", "c", "d"])
    torch.manual_seed(3)
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 12, "encoder_layers": 1, "decoder_layers": 2, "max_length": 6}
    stored = StoredModel(
        model=Transformer(ModelConfig(8, 8, share_embeddings="none", **sizes)).eval(),
        source_tokenizer=words,
        target_tokenizer=words,
        source_language="en",
        target_language="ko",
        decoding={"max_length": 4},
    )
    folder = tmp_path_factory.mktemp("models") / "words"
    save_model(folder, stored)
    return folder


@pytest.fixture
def sides(tmp_path):
    for name, lines in (("source", SOURCES), ("target", TARGETS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return ["--source", str(tmp_path / "source"), "--target", str(tmp_path / "target")]


def table(model, *options, code=0, **more):
    done = CliRunner().invoke(app, ["inspect", str(model), "--device", "cpu", *options], **more)
    assert done.exit_code == code, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def score(stored, source, target):
    [total] = Translator(stored, device="cpu", engine="torch").score([source], [target])
    return total


def test_each_line_has_the_analyses_of_its_own_pair(model, sides):
    rows = table(model, *sides, "--analysis", "erasure", "--analysis", "contributions")
    assert [(row["line"], row["source"], row["target"]) for row in rows] == [
        (number, *pair) for number, pair in enumerate(zip(SOURCES, TARGETS, strict=True), start=1)
    ]
    assert [row["line"] for row in rows if row["analyses"] is None] == [2]  # it is blank
    stored = load_model(model)
    for row in rows:
        if row["analyses"] is None:
            continue
        assert row["score"] == pytest.approx(score(stored, row["source"], row["target"]), abs=1e-4)
        assert row["source_tokens"] == [*row["source"].split(), "<eos>"]
        for place, word in enumerate(row["source"].split()):
            weight = stored.model.source_embedding.weight
            id_ = stored.source_tokenizer.vocabulary.index(word)
            with torch.no_grad():
                kept = weight[id_].clone()
                weight[id_] = 0.0
                without = score(stored, row["source"], row["target"])
                weight[id_] = kept
            lost = sum(effect[place] for effect in row["analyses"]["erasure"]["effect"])
            assert lost == pytest.approx(row["score"] - without, abs=1e-4)
        shares = row["analyses"]["contributions"]
        for source, target in zip(shares["source"], shares["target"], strict=True):
            assert sum(source) + sum(target) == pytest.approx(1, abs=1e-4)


def test_without_a_target_it_is_the_models_own(model, sides):
    rows = table(model, *sides[:2], "--analysis", "logit_lens")
    found = Translator.load(model, device="cpu", engine="torch").translate(SOURCES)
    assert [row["target"] or "" for row in rows] == [one.text for one in found]


def test_a_line_that_is_too_long_is_said_and_the_others_are_kept(model, tmp_path):
    output = tmp_path / "table.jsonl"
    lines = ["a", "a b c d a b c d", "b"]
    options = ["--source", "-", "--analysis", "erasure", "--output", str(output)]
    done = CliRunner().invoke(app, ["inspect", str(model), *options], input="\n".join(lines))
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "line 2: text of 8 tokens" in done.stderr
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["source"] for row in rows] == lines
    assert [row["analyses"] is None for row in rows] == [False, True, False]


def test_a_line_is_written_before_the_next_is_read(model, monkeypatch):
    out = io.StringIO()

    @contextmanager
    def writer(_):
        yield out

    def lines(*_):
        for number in range(1, 4):
            assert out.getvalue().count("\n") == number - 1
            yield Line(number, "a b")

    monkeypatch.setattr(analysing.files, "writer", writer)
    monkeypatch.setattr(analysing.files, "input_lines", lines)
    analysing.write_table(
        model, lambda: Translator.load(model, device="cpu", engine="torch"), ["erasure"], "-", None, None, None
    )
    assert out.getvalue().count("\n") == 3


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--source", "a"], "needs --analysis"),
        (["--source", "a", "--analysis", "head_importance"], "not --source"),
        (["--source", "a", "--analysis", "erasure", "--output", "a.html"], r"ends in \.jsonl"),
        (["--source", "a", "--analysis", "erasure", "--words"], "for maps"),
        (["--source", "missing", "--analysis", "erasure"], "missing: no such file"),
        (["a b", "--source", "a"], "not both"),
        (["a b", "--analysis", "erasure", "--last", "2"], "takes the place of maps"),
        (["a b", "--analysis", "erasure", "--heads", "1"], "takes the place of maps"),
        (["a b", "--heads", "9"], "must be mean, all, or numbers from 1 to"),
        ([], "give a SENTENCE"),
    ],
)
def test_what_can_not_be_a_table_is_refused(model, options, problem):
    done = CliRunner().invoke(app, ["inspect", str(model), *options])
    with pytest.raises(UserError, match=problem):
        raise done.exception or AssertionError(done.output)


def test_heads_are_measured_over_the_pairs_whose_sides_the_model_can_read(model, tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("a b\tc\nb\ta b c d a b c\na b c d a b c\td\n\td\nc d\ta\n")
    done = CliRunner().invoke(app, ["inspect", str(model), "a b", "--analysis", f"head_importance={pairs}"])
    assert done.exit_code == 0, done.exception
    assert "over 2 sentences" in done.stdout
