"""Commands and functions that need no torch give what torch gave."""

import importlib.util
import json
import math
import re
from importlib.metadata import distribution
from pathlib import Path

import pytest

from headway import Translator
from tests.runtime.conftest import EXPECTED, GREEDY, MODEL, TEXTS, headway, output

pytestmark = pytest.mark.runtime
FP32 = ("--precision", "fp32", "--beam-size", 1)
LARGEST = 330e6
"""Bytes of an installation without extras."""


def close(number: float):
    """CTranslate2 gives the tokens that no translation may have no probability; the others have it."""
    return pytest.approx(number, rel=2e-3)


def test_torch_is_not_installed():
    assert importlib.util.find_spec("torch") is None


def test_an_installation_is_small():
    """Of every package that `pip install headway` brings, all files."""
    needed, found = ["headway"], {}
    while needed:
        name = needed.pop()
        if name not in found:
            found[name] = distribution(name)
            needed += [re.split(r"[^\w.-]", one)[0] for one in found[name].requires or () if ";" not in one]
    sizes = {name: sum(file.locate().stat().st_size for file in one.files or ()) for name, one in found.items()}
    assert {"ctranslate2", "numpy", "sentencepiece", "sacrebleu", "lxml"} <= sizes.keys()
    assert sum(sizes.values()) < LARGEST, sizes
    assert not {"torch", "babel"} & {name.lower() for name in sizes}


def test_translations_with_their_scores(source):
    lines = output("translate", MODEL, source, "--json", *FP32).splitlines()
    for line, wanted in zip(map(json.loads, lines), GREEDY, strict=True):
        assert [token["text"] for token in line["tokens"]] == wanted["tokens"]
        assert (line["text"], line["score"]) == (wanted["text"], close(wanted["score"]))


def test_the_best_of_a_beam_have_the_scores_of_given_translations(source):
    lines = output("translate", MODEL, source, "--json", "--n-best", 3, "--precision", "fp32").splitlines()
    translator = Translator.load(MODEL, precision="fp32")
    for text, line in zip(TEXTS, map(json.loads, lines), strict=True):
        found = {one["text"]: one["score"] for one in (line, *line["alternatives"])}
        assert len(found) == 3
        assert translator.score([text] * 3, list(found)) == [close(score) for score in found.values()]


@pytest.mark.parametrize("name", ["model", "run"])
def test_greedy_search_from_standard_input(name):
    found = output("translate", MODEL.with_name(name), "--beam-size", 1, *FP32, text="\n".join(TEXTS))
    assert found.splitlines() == [one["text"] for one in EXPECTED[name]["greedy"]]


def test_a_model_from_torch_stays_as_it_is(source, tmp_path):
    """A read-only folder, and an output that appears whole."""
    before = {file.name: file.read_bytes() for file in MODEL.iterdir()}
    output("translate", MODEL, source, "--output", tmp_path / "out", *FP32)
    assert (tmp_path / "out").read_text(encoding="utf-8").splitlines() == [one["text"] for one in GREEDY]
    assert {file.name: file.read_bytes() for file in MODEL.iterdir()} == before


def test_lines_are_split_into_sentences(tmp_path):
    file = tmp_path / "in.de"
    file.write_text(f"{TEXTS[0]} {TEXTS[1]}\n", encoding="utf-8")
    assert output("translate", MODEL, file, "--split", *FP32) == f"{GREEDY[0]['text']} {GREEDY[1]['text']}\n"


def test_alignments():
    """Of words, from the attention of torch: every token is aligned with the source token that it attends to most."""
    found = Translator.load(MODEL, precision="fp32").translate(TEXTS, alignments=True, beam_size=1)
    assert [one.alignment for one in found] == [one["alignment"] for one in GREEDY]
    printed = output("translate", MODEL, "--alignments", *FP32, text=TEXTS[0])
    links = [tuple(map(int, link.split("-"))) for link in printed.rpartition(" ||| ")[2].split()]
    assert links
    assert {one for one, _ in links} <= set(range(7))
    assert {other for _, other in links} <= set(range(7))


def test_given_translations_are_scored(source, tmp_path):
    target = tmp_path / "given.en"
    target.write_text("The old dog paints the red ball.\n" * len(TEXTS), encoding="utf-8")
    scores = map(float, output("score", MODEL, "--source", source, "--target", target).splitlines())
    assert list(scores) == [pytest.approx(score, rel=1e-4) for score in EXPECTED["model"]["score"]]


def test_the_model_is_measured(source, reference):
    given = ("evaluate", MODEL, "--source", source, "--reference", reference, *FP32)
    found = json.loads(output(*given, "--json", "--compare", reference))
    assert found["bleu"] == pytest.approx(100)


def test_confidence(calibrated):
    """By the calibration: the logistic function of the mean log-probability."""
    lines = output("translate", calibrated, "--confidence", "--json", *FP32, text="\n".join(TEXTS)).splitlines()
    for line, wanted in zip(map(json.loads, lines), GREEDY, strict=True):
        mean = wanted["score"] / (len(wanted["tokens"]) + 1)
        assert line["confidence"] == pytest.approx(1 / (1 + math.exp(-mean)), abs=2e-3)


@pytest.mark.parametrize(
    ("format", "document", "translation"),
    [
        ("text", "{0}\n\n- {1}\n", "{0}\n\n- {1}\n"),
        ("html", "<h1>{0}</h1><p class='a'>{1}</p>", "<h1>{0}</h1><p class='a'>{1}</p>"),
    ],
)
def test_documents(format, document, translation):
    translator = Translator.load(MODEL, precision="fp32")
    found = translator.translate_document(document.format(*TEXTS), format=format, beam_size=1).text
    assert found == translation.format(*(one["text"] for one in GREEDY))


def test_a_worker_of_a_cluster(source, tmp_path):
    from headway.cluster.manifest import open_manifest
    from headway.cluster.worker import Work, Worker
    from headway.data.lines import Layout
    from headway.translator.lines import LineOptions

    work = Work(MODEL, (), "cpu", "fp32", "auto", Layout(), LineOptions(search={"beam_size": 1}))
    identity = work.identity()
    manifest = open_manifest(tmp_path / "out", [source], identity, lambda _: None)
    worker = Worker(work, manifest)
    assert [worker.translate(shard).error for shard in manifest.shards] == [""]
    worker._reader.close()
    written = "".join(Path(manifest.folder / f"{shard.name}.txt").read_text("utf-8") for shard in manifest.shards)
    assert written.splitlines() == [one["text"] for one in GREEDY]


def test_a_cluster_says_what_it_needs(source, tmp_path):
    done = headway("translate", MODEL, source, "--output", tmp_path / "out", "--cluster", "local")
    assert done.returncode == 2
    assert "pip install 'headway[ray]'" in done.stderr


def test_a_model_is_shown():
    assert "de -> en" in output("show", MODEL)
    assert json.loads(output("show", MODEL, "--json"))


def test_text_is_checked_and_disturbed(source, reference):
    output("check", "--source", source, "--target", reference)
    assert len(output("perturb", "upper", source).splitlines()) == len(TEXTS)
