"""`evaluate` with metrics of one's own, on two small models that nobody trained."""

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from headway.cli import app
from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.storage import StoredModel, save_model
from headway.text.words import WordTokenizer

TOY = """
def ratio(sources, translations, references):
    print("called with", len(sources))
    return [len(one) / (1 + len(other)) for one, other in zip(translations, references)]

def whole(sources, translations, references):
    return 0.25

def broken(sources, translations, references):
    return translations[0] + 1
"""


@pytest.fixture
def folder(own_folder) -> Path:
    """Two models, a test set, and a module of metrics; the current folder."""
    words = WordTokenizer(["a", "b", "c"])
    for seed, name in enumerate(("ours", "other")):
        torch.manual_seed(seed)
        model = Transformer(ModelConfig(7, 7, d_model=8, num_heads=2, d_ff=12, encoder_layers=1, decoder_layers=1))
        save_model(
            own_folder / name,
            StoredModel(
                model=model,
                source_tokenizer=words,
                target_tokenizer=words,
                source_language="en",
                target_language="ko",
                decoding={"max_length": 6},
                card="",
            ),
        )
    (own_folder / "test.en").write_text("a b\nc\nb a c\n")
    (own_folder / "test.ko").write_text("b a\nc\nc a b\n")
    (own_folder / "toy.py").write_text(TOY)
    return own_folder


def evaluate(*arguments: str) -> tuple[str, str]:
    """What goes to the two streams."""
    files = ("--source", "test.en", "--reference", "test.ko", "--device", "cpu", "--output", "found")
    done = CliRunner().invoke(app, ["evaluate", "ours", *files, *arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0
    return done.stdout, done.stderr


@pytest.mark.parametrize("name", ["test.jsonl", "test.tsv"])
def test_keys_and_columns_are_told_by_the_model_s_languages(folder, name):
    """Here the target comes first."""
    sides = list(zip(*((folder / f"test.{one}").read_text().split("\n")[:-1] for one in ("en", "ko")), strict=True))
    (folder / "test.tsv").write_text("".join(f"{ko}\t{en}\n" for en, ko in [("en", "ko"), *sides]))
    objects = ({"translation": {"ko": ko, "en": en}} for en, ko in sides)
    (folder / "test.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in objects))
    plain, _ = evaluate("--json")
    done = CliRunner().invoke(app, ["evaluate", "ours", "--source", name, "--device", "cpu", "--json"])
    assert done.stdout == plain
    assert "`en` is the source and `ko` the target" in done.stderr
    scored = [
        ["score", "ours", *files] for files in (("--source", name), ("--source", "test.en", "--target", "test.ko"))
    ]
    assert CliRunner().invoke(app, scored[0]).stdout == CliRunner().invoke(app, scored[1]).stdout != ""


def ratio(folder: Path, translations: str) -> float:
    found, references = ((folder / name).read_text().split("\n")[:-1] for name in (translations, "test.ko"))
    return sum(len(one) / (1 + len(other)) for one, other in zip(found, references, strict=True)) / 3


def test_metrics_stand_beside_the_scores(folder):
    out, _ = evaluate("--metric", "toy:ratio", "--metric", "toy:whole", "--metric", "toy:ratio")
    lines = [line.split() for line in out.splitlines() if not line.startswith("called")]
    assert [line[0] for line in lines] == ["BLEU", "chrF", "TER", "toy:ratio", "toy:whole"]
    assert float(lines[3][1]) == pytest.approx(ratio(folder, "found"), abs=1e-4)
    assert lines[4][1:] == ["0.2500"]


def test_as_json_and_against_another_model(folder):
    out, err = evaluate("--metric", "toy:ratio", "--metric", "toy:whole", "--compare", "other", "--json")
    document = json.loads(out)
    assert err.count("called with 3") == 2
    assert document["metrics"] == {"toy:ratio": pytest.approx(ratio(folder, "found")), "toy:whole": 0.25}
    assert [one["metric"] for one in document["comparison"]] == ["BLEU", "chrF", "toy:ratio", "toy:whole"]
    by_lines, whole = document["comparison"][2:]
    assert by_lines["score"] == document["metrics"]["toy:ratio"]
    assert 0 < by_lines["p_value"] <= 1
    assert (whole["score"], whole["other"], whole["p_value"]) == (0.25, 0.25, None)
    (folder / "found").rename("again")
    text, _ = evaluate("--metric", "toy:ratio", "--metric", "toy:whole", "--compare", "again")
    assert f"toy:ratio {ratio(folder, 'found'):.4f} against {ratio(folder, 'found'):.4f}: +0.0000, p = 1.000" in text
    assert text.endswith("toy:whole 0.2500 against 0.2500: +0.0000, one score of all lines, so chance can't be told\n")


def test_without_metrics_the_document_is_as_it_was(folder):
    assert list(json.loads(evaluate("--json")[0])) == [
        "bleu",
        "chrf",
        "bleu_signature",
        "chrf_signature",
        "ter",
        "ter_signature",
        "lines",
        "numbers",
    ]


def test_lines_with_wrong_numbers_are_counted(folder):
    """No translation has a number: the model can't write any."""
    (folder / "test.en").write_text("a 20\nc 30\nb a c\n")
    (folder / "test.ko").write_text("20 a\nc 31\nc a b\n")
    assert json.loads(evaluate("--json")[0])["numbers"] == {"lines": 2, "wrong": 2, "references": 1}
    assert "wrong numbers: 2 of 2 lines with numbers; references 1\n" in evaluate()[0]


def test_a_broken_metric_is_told_in_a_line(folder):
    with pytest.raises(UserError, match=r"metric toy:broken: fails: TypeError: .* \(toy.py, line 10\)"):
        evaluate("--metric", "toy:broken")
    with pytest.raises(UserError, match="module toy has no function absent"):
        evaluate("--metric", "toy:absent")
