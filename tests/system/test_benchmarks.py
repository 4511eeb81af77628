"""Every benchmark runs, at sizes of seconds, and says what its page says that it says."""

import json
import os
import random
import re
import runpy
import shutil
import signal
import subprocess
import sys
from xml.etree import ElementTree

import pytest
import sacrebleu
import yaml
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from benchmarks.glossaries import honoured
from benchmarks.questions import right

from headway.storage import load_model, save_model
from headway.translator import Translator
from headway.translator.confidence import learn_calibration
from headway.translator.glossary import Glossary
from headway.translator.reading import TorchReader
from tests.faults.killing import wait_until
from tests.system.conftest import ROOT, TINY, reversed_pairs
from tests.system.running import run_script


def benchmark(name, *arguments):
    """What it printed."""
    outcome = run_script(ROOT / "benchmarks" / f"{name}.py", *arguments, cwd=ROOT, timeout=300)
    assert outcome.code == 0, outcome.err
    return outcome.out


@pytest.fixture(scope="module")
def recipe(corpus, tmp_path_factory):
    """Of a run of seconds: some hundred pairs."""
    folder = tmp_path_factory.mktemp("recipe")
    files = {}
    for split, count in (("train", 800), ("valid", 10)):
        files[split] = {"source": f"{split}.src", "target": f"{split}.tgt"}
        for name in files[split].values():
            lines = corpus.file(name).read_text().splitlines(keepends=True)[:count]
            (folder / name).write_text("".join(lines))
    training = {"max_epochs": 1, "tokens_per_batch": 500, "warmup_steps": 10, "finish": False}
    path = folder / "reverse.yaml"
    model = dict(change.removeprefix("model.").split("=") for change in TINY)
    model = {key: int(value) if value.isdigit() else value for key, value in model.items()}
    files |= {"source_language": "src", "target_language": "tgt"}
    document = {"data": files, "tokenizer": {"vocab_size": 300}, "model": model, "training": training}
    document["decoding"] = {"beam_size": 1, "max_length": 8}
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.mark.parametrize(
    ("translation", "there"),
    [("Men and men", 2), ("men, men", 2), ("Men and Men", 1), ("the Men", 0), ("MEN", 0), ("Mention men", 1)],
)
def test_a_term_of_small_letters_may_begin_a_translation_with_a_capital(translation, there):
    """Twice demanded; other capitals are other words."""
    assert honoured(Glossary.of([("Mann", "men")]), "Mann an Mann", translation) == (there, 2)


def test_training(recipe, tmp_path):
    sizes = ["--preset", "tiny", "--rounds", "1", "--warm-up", "0", "--steps", "2", "--tokens", "300"]
    for order, peers in (("length", ["textbook", "textbook tuned"]), ("random", ["textbook"])):
        found = tmp_path / "found.json"
        benchmark("training", "--recipe", recipe, *sizes, "--order", order, "--only", *peers, "--json", found)
        rows = json.loads(found.read_text())["rows"]
        assert [row["name"] for row in rows] == ["headway", *peers]
        assert all(0 < row["share_of_peak"] < 1 and row["target_tokens_per_second"] > 0 for row in rows)


def test_engines(tmp_path):
    text = tmp_path / "text"
    text.write_text("Der alte Hund malt den roten Ball.\nDer kleine Vogel sieht den großen Baum.\n")
    said = benchmark("engines", ROOT / "tests" / "golden" / "model", text, text, "--options", '{"beam_size": 1}', "{}")
    assert said.count("0 lines and 0 lists differ") == 2
    assert said.startswith("2 sentences")


OTHER_CODE = """
import json, sys, time
from pathlib import Path
run = Path(sys.argv[sys.argv.index("--output") + 1])
run.mkdir()
with (run / "log.jsonl").open("w", buffering=1) as log:
    for step in range(20):
        log.write(json.dumps({"step": step, "epoch": 1, "loss": 1.0}) + "\\n")
        time.sleep(0.05)
"""
"""Of a checkout before: what the benchmark reads of a training."""


def test_running(recipe, tmp_path):
    found, other = tmp_path / "found.json", tmp_path / "other"
    (other / "src" / "headway").mkdir(parents=True)
    (other / "src" / "headway" / "__init__.py").touch()
    (other / "src" / "headway" / "__main__.py").write_text(OTHER_CODE)
    conditions = ["quiet", "busy", "two"]
    said = benchmark(
        *("running", "--recipe", recipe, "--before", other, "--rounds", "1", "--json", found),
        *("--conditions", *conditions, "--", "training.seed=2"),
    )
    rows = json.loads(found.read_text())["rows"]
    assert [(row["condition"], row["code"]) for row in rows] == [
        (condition, code) for condition in conditions for code in ("now", "before")
    ]
    assert min(row["later"] for row in rows) > 0
    assert min(row["mib"] for row in rows if row["code"] == "now") > 100 > max(row["mib"] for row in rows[1::2]) > 0
    assert said.count("times as fast as before") == 3
    assert said.count("of the quiet speed") == 2


def test_translating(trained, corpus):
    said = benchmark("translating", trained, corpus.file("test.src"), "--sentences", "10", "--rounds", "1")
    assert "headway bf16" in said
    assert "textbook" in said


def test_students(trained, corpus, tmp_path, monkeypatch):
    """Of a model and itself: the same lines and BLEU; with another beam, another row."""
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    files = [corpus.file("test.src"), corpus.file("test.tgt")]
    named = [f"{trained}:{beam}" for beam in (1, 1, 2)]
    said = benchmark("students", *files, *named, "--rounds", "1", "--batches", "8", "32", "--precision", "fp32")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in said.splitlines() if line.startswith("|")]
    first, second, third = rows[2:]
    assert [row[2] for row in rows[2:]] == ["1", "1", "2"]
    assert all(row[3] in ("8", "32") for row in rows[2:])
    assert first[5] == first[7] == "1.00"
    number = [{place: float(row[place].replace(",", "")) for place in range(4, 8)} for row in (first, third)]
    assert number[1][5] == pytest.approx(number[1][4] / number[0][4], rel=0.02, abs=0.0051)  # two decimals are shown
    assert number[1][7] == pytest.approx(number[1][6] / number[0][6], abs=0.01 + 0.1 / number[0][6])
    assert second[9] == "100 of 100"
    assert second[8] == first[8]
    sources, references = (file.read_text().splitlines() for file in files)
    translations = [one.text for one in Translator.load(trained).translate(sources, beam_size=1)]
    assert float(first[8]) == pytest.approx(sacrebleu.corpus_bleu(translations, [references]).score, abs=0.005)
    assert third[9].endswith("of 100")


def test_equal_minutes(trained, corpus, tmp_path):
    """Of models that are trained already, and Marian after seconds; the picture has a point and a label for each row,
    the faster further to the right."""
    train, test = ([corpus.file(f"{part}.{side}") for side in ("src", "tgt")] for part in ("train", "test"))
    folder, found = tmp_path / "folder", tmp_path / "found.json"
    for name in ("headway", "headway-fast", "vocabulary"):
        shutil.copytree(trained, folder / name)
    code = (
        "import sys; from pathlib import Path; from equal_minutes import MARIAN, train_peer; run, *texts, weights = "
        "map(Path, sys.argv[1:]); train_peer(MARIAN, run, texts, 0.1, 0.001, weights)"
    )
    arguments = [folder / "vocabulary", *train, folder / "Hugging Face Marian.safetensors"]
    subprocess.run([sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT / "benchmarks", check=True)
    names = ["headway", "headway --fast", "Hugging Face Marian"]
    spent = {name: {"minutes": 0.1, "processor_minutes": 0.05} for name in names}
    (folder / "spent.json").write_text(json.dumps(spent))
    sizes = ["--minutes", "0.1", "--rounds", "1", "--folder", folder, "--json", found]
    said = benchmark("equal_minutes", *train, "--valid", *test, "--test", *test, *sizes)
    rows = json.loads(found.read_text())["rows"]
    assert [row["name"] for row in rows] == names
    assert rows[0]["bleu"] == rows[1]["bleu"]
    assert all(f"| {row['name']} | {row['bleu']:.2f} |" in said for row in rows)
    assert all(row["processor_minutes"] > 0 and row["sentences_per_second"] > 0 for row in rows)
    benchmark("equal_minutes", "--draw", found, "--output", tmp_path)
    for name, word in (("equal-minutes.svg", "sentences"), ("equal-minutes.ko.svg", "문장")):
        picture = ElementTree.parse(tmp_path / name).getroot()
        places = [float(one.get("cx")) for one in picture.iter("{http://www.w3.org/2000/svg}circle")]
        speeds = [row["sentences_per_second"] for row in rows]
        by_speed = [places[i] for i in sorted(range(len(rows)), key=speeds.__getitem__)]
        assert by_speed == sorted(by_speed)  # two that are nearly as fast share a place
        assert by_speed[0] < by_speed[-1]
        labels = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}text")]
        assert {row["name"] for row in rows} <= set(labels)
        assert sum(word in (label or "") for label in labels) >= len(rows)


def test_deploying(trained, corpus, tmp_path):
    found = tmp_path / "found.json"
    benchmark("deploying", trained, corpus.file("train.src"), "--lines", "60", "--rounds", "1", "--json", found)
    figures = json.loads(found.read_text())
    assert figures["whole"]["equal lines"] >= 57  # of 60: both run the same model
    for both in (figures["whole"], figures["first line"]):
        assert both["ratio"] == pytest.approx(both["direct"] / both["headway"])
    serving = figures["headway serve"]
    assert 0 < serving["ready, s"] < serving["first translation, s"]
    assert serving["one sentence, ms"] < 1000 * serving["first translation, s"]
    assert serving["lines/s in lists"] > 0


def test_growing(trained, corpus, tmp_path):
    for split, name in (("train", "train"), ("valid", "val")):
        for suffix, language in (("src", "de"), ("tgt", "en")):
            (tmp_path / f"{name}.{language}").write_bytes(corpus.file(f"{split}.{suffix}").read_bytes())
    said = benchmark(
        "growing", trained, "--corpus", tmp_path, "--sizes", "500", "1000", "--steps", "4", "--length", "20"
    )
    assert "with 500 pairs" in said
    assert "of 20" in said
    assert "with 1,000" in said


def test_preparing(corpus, tmp_path):
    found = tmp_path / "found.json"
    files = ["--source", corpus.file("train.src"), "--target", corpus.file("train.tgt")]
    said = benchmark("preparing", *files, "--pairs", "60000", "--processes", "2", "--rounds", "1", "--json", found)
    assert said.count("of the tokenizer alone") == 3
    assert min(json.loads(found.read_text())["pairs_per_second"].values()) > 0


def test_planning():
    said = benchmark("planning", "--pairs", "2000", "30000")
    assert "2,000 pairs: first step" in said
    assert "pairs 30,000" in said
    assert "anonymous memory above that of the first" in said


def test_revisions(trained, corpus):
    """Against the revision that is checked out."""
    few = ["--sentences", "20", "--rounds", "2", "--only", "greedy, alone", "inspect", "headway translate"]
    texts = corpus.file("test.src"), corpus.file("test.tgt")
    said = benchmark("revisions", trained, *texts, "--before", "HEAD", *few)
    jobs = ["greedy, alone ", "inspect: ", "headway translate "]
    assert [line.startswith(job) for line, job in zip(said.splitlines(), jobs, strict=True)] == [True] * 3


def test_explaining(trained, corpus, tmp_path):
    texts = corpus.file("test.src"), corpus.file("test.tgt")
    known, found = tmp_path / "test.align", tmp_path / "found.json"
    known.write_text("\n".join(["0-0"] * 100) + "\n")
    said = benchmark("explaining", trained, *texts, "--alignments", known, "--sentences", "6", "--json", found)
    assert "the model's aligner" in said
    report = json.loads(found.read_text())
    assert {"attention", "erasure", "value zeroing", "integrated gradients", "random"} <= report["methods"].keys()
    assert {"source's share", "gain", "log-probability"} == report["warnings"].keys()
    assert report["seconds"].keys() >= {"record", "erasure", "head_importance"}


def test_questions(trained, tmp_path):
    asked = benchmark("questions", trained, "ant bee cat dog elk fox").splitlines()
    assert [line.split()[0] for line in asked] == [str(number) for number in range(1, 41)]
    answers = tmp_path / "answers.txt"
    count = len(Translator.load(trained, device="cpu").inspect("ant bee cat dog elk fox").source.tokens)
    answers.write_text(f"{count}\n" + "-\n" * 39)
    said = benchmark("questions", trained, "ant bee cat dog elk fox", "--answers", answers)
    assert said.endswith("\n1 of 40 right\n")
    assert asked[0] not in said
    assert asked[1] in said


@pytest.mark.parametrize(
    ("answer", "truth", "good"),
    [
        ("0.41", [0.4149], True),
        ("0.41", [0.4161], False),
        ("41.5%", [0.4149], True),
        ("<0.1%", [0.0004], True),
        ("<0.1%", [0.002], False),
        ("−1.50", [-1.5], True),
        ("8,000", [8000], True),
        ("Hund, 0.9", ["▁Hund", 0.9], True),
        ("Hund", ["▁Hund", 0.9], False),
        (",, −7.1", [",", -7.1], True),
        ("2, 1, 0.5", [2, 1, 0.5], True),
        ("-", [0.0], False),
    ],
)
def test_an_answer_is_right_if_the_truth_rounds_to_it(answer, truth, good):
    assert right(answer, truth) == good


def test_serving(trained, corpus):
    few = ["--seconds", "1", "--only", "steady", "lists"]
    assert "sentences/s" in benchmark("serving", trained, corpus.file("test.src"), *few)


def test_attacks(trained, corpus, tmp_path):
    """The victim is answered whatever the attacker does."""
    found, names = tmp_path / "found.json", ["slow_bodies", "short_lines"]
    few = ["--only", *names, "--seconds", "2", "--json", found]
    command = [sys.executable, ROOT / "benchmarks" / "attacks", trained, corpus.file("test.src"), *few]
    subprocess.run([*map(str, command)], check=True, cwd=ROOT, timeout=300, capture_output=True)
    rows = json.loads(found.read_text())["rows"]
    assert [row["attack"] for row in rows] == names
    for row in rows:
        assert row["answered"] == 1
        assert 0 <= row["answered in time"] <= 1
        assert row["quiet, 95%, ms"] > 0
        assert row["beside it, ms"] > 0
        assert row["errors"] == 0


@pytest.mark.parametrize(
    ("beside", "answered", "in_time", "middle"),
    [
        ([0.1] * 10, 1.0, 1.0, 100.0),
        ([0.1, 0.2, 0.5, float("inf")], 0.75, 0.5, 200.0),
        ([float("inf")] * 4, 0.0, 0.0, None),
    ],
)
def test_shares_of_a_victim(beside, answered, in_time, middle):
    """In time is three times of what 95% took when nobody attacked: 0.1 s each."""
    attacks = runpy.run_path(str(ROOT / "benchmarks" / "attacks"), run_name="attacks")
    found = attacks["shares"]([0.1] * 20, beside)
    assert (found["answered"], found["answered in time"], found["beside it, ms"]) == (answered, in_time, middle)
    assert found["quiet, ms"] == found["quiet, 95%, ms"] == 100.0


def test_web(trained, corpus):
    few = ["--lines", "10", "--sentences", "3", "--rounds", "1"]
    said = benchmark("web", trained, corpus.file("test.src"), corpus.file("test.tgt"), *few)
    assert "one file, int8:" in said
    assert "ready after" in said
    assert "kernel, beam 5:" in said
    assert "plain, beam 1:" in said
    assert len(re.findall(r"float32 in the page: [\d.]+, 10 lines are equal", said)) == 2


@pytest.mark.skipif(not (ROOT / "tests" / "node_modules").is_dir(), reason="packages of npm aren't installed")
def test_tokenizing(tmp_path):
    """Korean in both forms: the page alone is sentencepiece wherever a text needs bytes or is decomposed."""
    chance = random.Random(1)
    often = [chr(chance.randrange(0xAC00, 0xD7A4)) for _ in range(60)]
    texts = [" ".join("".join(chance.choices(often, k=3)) for _ in range(4)) for _ in range(300)]
    (tmp_path / "text.ko").write_text("".join(f"{text}\n" for text in [*texts, "헉 🚂"]), encoding="utf-8")
    said = benchmark("tokenizing", tmp_path / "text.ko", "--vocabulary", 400)
    assert len(re.findall("page: 301 equal", said)) == 4
    assert re.findall(r"NF[CD], 301 lines: peer: (\d+) equal", said) == ["301", "301", "300", "300"]
    assert re.findall(r"NFD, 301 lines: tokenizers: (\d+) equal", said) == ["0", "0"]


def test_robustness(trained, corpus):
    files = ["--source", corpus.file("test.src"), "--reference", corpus.file("test.tgt"), "--lines", "20"]
    rows = benchmark("robustness", trained, trained, *files).splitlines()[-2:]
    assert [row.count("|") for row in rows] == [11, 11]
    assert rows[1].split("|")[2:9] == rows[0].split("|")[2:9]
    assert rows[1].split("|")[9].strip() == "0%"
    *_, row = benchmark("robustness", trained, *files, "--pairs").splitlines()
    assert re.match(r"\| .* \|( [\d.]+, [\d.]+ \|){4}( [\d.]+% \|){3}( \d+ of \d+ \|){5}$", row)


def test_confidence(trained, corpus, tmp_path):
    """Every second reference is what a model itself says, so that there are acceptable translations and others."""
    sides = [corpus.file("test.src"), tmp_path / "half.tgt"]
    stored = load_model(trained)
    translations = Translator(stored, device="cpu").translate(sides[0].read_text().splitlines())
    references = [one.text if number % 2 else "-" for number, one in enumerate(translations)]
    sides[1].write_text("".join(f"{line}\n" for line in references))
    stored.calibration = learn_calibration(TorchReader(stored.model), stored, translations, references)
    save_model(tmp_path / "calibrated", stored)
    more = ["--noise", "--outside", f"targets={sides[1]}"]
    said = benchmark("confidence", tmp_path / "calibrated", "--test", *sides, *more)
    assert re.search(r"expected calibration error +0\.\d{4}", said)
    assert len(re.findall(r"^\| .* \| [\d.]+% \|$", said, re.M)) == 7


def test_quality(recipe, corpus, tmp_path):
    """Each row once, with each of its seeds, which the table has in their order; what was finished isn't run again,
    what is new is; work adds up; only translations of the same text are compared."""
    test = {"source": str(corpus.file("test.src")), "reference": str(corpus.file("test.tgt")), "tokenize": "none"}
    rows = [
        {"name": "plain", "recipe": str(recipe), "seeds": [1, 2], "tests": [test]},
        {"name": "smoothed", "like": "plain", "seeds": [1], "changes": ["training.label_smoothing=0.3"], "tests": []},
        {"name": "later", "recipe": str(recipe), "after": "smoothed"},
        {"name": "named", "recipe": str(recipe), "changes": ["training.init_from=$WORK/plain-$SEED"], "tests": [test]},
    ]
    table, work = tmp_path / "table.yaml", tmp_path / "work"
    table.write_text(yaml.safe_dump(rows[:1]))
    assert "| plain | 2 | test.src, none |" in benchmark("quality", table, "--work", work, "--seeds", 2)
    before = (work / "finished.jsonl").read_bytes()
    table.write_text(yaml.safe_dump(rows))
    with pytest.raises(AssertionError, match="later needs smoothed, which isn't finished with seed 1"):
        benchmark("quality", table, "--work", work, "--only", "later")
    lines = benchmark("quality", table, "--work", work).splitlines()
    assert (work / "finished.jsonl").read_bytes().startswith(before)
    found = {
        (one["name"], one["seed"]): one for one in map(json.loads, (work / "finished.jsonl").read_bytes().splitlines())
    }
    assert list(found) == [("plain", 2), ("plain", 1), ("smoothed", 1), ("later", 1), ("named", 1)]
    other, plain, smoothed, later, named = found.values()
    assert plain["petaflop"] == pytest.approx(other["petaflop"], rel=0.1)
    assert smoothed["petaflop"] == pytest.approx(plain["petaflop"], rel=0.1)
    assert later["petaflop"] == pytest.approx(2 * plain["petaflop"], rel=0.1)
    assert named["petaflop"] == pytest.approx(2 * plain["petaflop"], rel=0.1)
    assert len(lines) == 6
    [bleu, lower] = [
        f"{plain['scores'][0][key]:.2f}, {other['scores'][0][key]:.2f}: **" for key in ("bleu", "bleu_lowercased")
    ]
    assert f"| plain | 1, 2 | test.src, none | {bleu}" in lines[2]
    assert f"| {lower}" in lines[2]
    assert [line.count("(p = ") for line in lines[2:]] == [0, 0, 1, 1]
    done = (work / "finished.jsonl").read_bytes()
    recipe.write_text(recipe.read_text() + "# a remark changes nothing\n")
    benchmark("quality", table, "--work", work)
    assert (work / "finished.jsonl").read_bytes() == done
    with pytest.raises(AssertionError, match="no such row has one of these seeds"):
        benchmark("quality", table, "--work", work, "--seeds", 9)
    table.write_text(yaml.safe_dump([{**rows[0], "changes": ["training.label_smoothing=0.2"]}, *rows[1:]]))
    for only in ("plain", "named"):
        with pytest.raises(AssertionError, match=r"plain was run with other settings: changes \(null -> "):
            benchmark("quality", table, "--work", work, "--only", only)


def test_quality_of_stages(recipe, corpus, tmp_path):
    """A run in stages is trained once, and each stage is scored."""
    text = yaml.safe_load(recipe.read_text())
    first = {"name": "first", "training": {"max_steps": 3}}
    text["stages"] = [first, {"name": "second", "start": "first", "training": {"max_steps": 4}}]
    recipe = recipe.with_name("stages.yaml")
    recipe.write_text(yaml.safe_dump(text))
    test = {"source": str(corpus.file("test.src")), "reference": str(corpus.file("test.tgt")), "tokenize": "none"}
    rows = [
        {"name": "whole", "recipe": str(recipe), "tests": [test]},
        {"name": "part", "of": "whole", "stage": "first"},
    ]
    (tmp_path / "table.yaml").write_text(yaml.safe_dump(rows))
    with pytest.raises(AssertionError, match="part needs whole, which isn't finished with seed 1"):
        benchmark("quality", tmp_path / "table.yaml", "--work", tmp_path / "work", "--only", "part")
    lines = benchmark("quality", tmp_path / "table.yaml", "--work", tmp_path / "work").splitlines()
    whole, part = (json.loads(line) for line in (tmp_path / "work" / "finished.jsonl").read_bytes().splitlines())
    assert (whole["steps"], part["steps"]) == (4, 3)
    assert whole["petaflop"] == pytest.approx(7 / 3 * part["petaflop"], rel=0.1)
    assert whole["minutes"] > part["minutes"]
    assert "(p = " in lines[3]


def test_quality_that_is_interrupted_saves(recipe, tmp_path):
    """As Ctrl-C does it: the whole group of processes gets the signal."""
    row = {"name": "long", "recipe": str(recipe), "changes": ["training.max_epochs=1000"]}
    (tmp_path / "table.yaml").write_text(yaml.safe_dump([row]))
    command = [sys.executable, ROOT / "benchmarks" / "quality.py", tmp_path / "table.yaml", "--work", tmp_path / "work"]
    run = tmp_path / "work" / "long-1"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        wait_until(process, lambda: (run / "log.jsonl").exists() and (run / "log.jsonl").read_text().count("\n") > 3)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in said
    assert said.endswith("stopped; the same command goes on\n")
    assert list((run / "checkpoints").glob("step-*"))


def test_quality_in_quick_runs(recipe, corpus, tmp_path):
    """A stage, and one that learns from its translations, too."""
    said = f"{{source: {recipe.parent / 'train.src'}, target: $WORK/made-$SEED.tgt, teacher: $WORK/first-$SEED}}"
    rows = [
        {"name": "first", "recipe": str(recipe), "seeds": [1, 2]},
        {"name": "last", "recipe": str(recipe), "after": "first", "changes": [f"data.distilled={said}"]},
    ]
    (tmp_path / "table.yaml").write_text(yaml.safe_dump(rows))
    shown = benchmark("quality", tmp_path / "table.yaml", "--work", tmp_path / "work", "--quick").splitlines()
    assert [line.split(" | ")[:2] for line in shown[2:]] == [["| first", "1"], ["| last", "1"]]
    finished = [json.loads(line) for line in (tmp_path / "work" / "quick" / "finished.jsonl").read_text().splitlines()]
    assert [one["steps"] for one in finished] == [100, 100]
    assert all(len(line.split()) <= 5 for line in (tmp_path / "work" / "quick" / "made-1.tgt").read_text().splitlines())
    again = benchmark("quality", tmp_path / "table.yaml", "--work", tmp_path / "work", "--quick", "--print")
    assert again.splitlines() == shown


def test_fine_tuning(trained, corpus, tmp_path):
    """Of a model that reverses words, on messages that are words in their order."""
    general, messages = tmp_path / "general", tmp_path / "messages"
    general.mkdir()
    messages.mkdir()
    for split, name in (("train", "train"), ("valid", "val"), ("valid", "test_2016_flickr")):
        for side, language in (("src", "de"), ("tgt", "en")):
            (general / f"{name}.{language}").write_text(corpus.file(f"{split}.{side}").read_text())
    catalog = Catalog(locale="de")
    for number, (source, _) in enumerate(reversed_pairs(1500, 5)):
        catalog.add(f"{source} said {chr(97 + number % 26)}{chr(97 + number // 26 % 26)}", source)
    with open(messages / "psql-15.mo", "wb") as file:
        write_mo(file, catalog)
    found = benchmark(
        *("fine_tuning", "--general", trained, "--general-text", general, "--messages", messages),
        *("--work", tmp_path / "work", "--steps", "3", "--only", "mixed, new pieces"),
    )
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in found.splitlines()[2:]]
    assert [row[0] for row in rows] == ["general", "mixed, new pieces"]
    for _, domain, gain, kept, lost, seconds, memory in rows[1:]:
        assert float(gain) == pytest.approx(float(domain) - float(rows[0][1]), abs=0.011)
        assert float(lost) == pytest.approx(float(rows[0][3]) - float(kept), abs=0.011)
        assert 0 < int(seconds.removesuffix(" s")) < 300
        assert 100 < int(memory.removesuffix(" MiB")) < 4000
    parts = {
        split: (tmp_path / "work" / "messages" / f"{split}.en").read_text() for split in ("train", "valid", "test")
    }
    assert not {*parts["train"].splitlines()} & {*parts["test"].splitlines(), *parts["valid"].splitlines()}

    said = [
        ("gimp", "ant bee cat", "Ameise"),
        ("help:gimp", "a b c", "x"),
        ("gimp", "a b c\\n", "x"),
        ("gimp", "ant", "x"),
    ]
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.en-de.tsv").write_text("".join("\t".join(row) + "\n" for row in said * 2))
    found = benchmark(
        *("fine_tuning", "--general", trained, "--general-text", general, "--pairs", tmp_path, "--direction", "en:de"),
        *("--work", tmp_path / "other", "--steps", "2", "--only", "pure, adapter", "--adapter-rate", "1e-3"),
    )
    assert found.splitlines()[-1].startswith("| pure, adapter | ")
    assert (tmp_path / "other" / "messages" / "train.de").read_text() == "Ameise\n"
    recipe = yaml.safe_load((tmp_path / "other" / "pure-adapter.yaml").read_text())
    assert recipe["data"]["train"][0]["source"].endswith("train.en")
    assert (recipe["training"]["learning_rate"], recipe["training"]["adapter"]["rank"]) == (1e-3, 16)
