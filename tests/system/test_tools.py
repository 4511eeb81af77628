"""The commands around training and translating, as a person runs them."""

import gzip
import json
import math
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.system.conftest import QUICK
from tests.system.running import complaint, run_headway


def lines(outcome):
    assert outcome.code == 0, outcome.err
    return outcome.out.splitlines()


def test_score_is_that_of_translate(corpus, trained, tmp_path):
    exact = "--precision", "fp32", "--json"
    found = [json.loads(line) for line in lines(run_headway("translate", trained, corpus.file("test.src"), *exact))]
    hypotheses = tmp_path / "found"
    hypotheses.write_text("".join(f"{one['text']}\n" for one in found))
    scores = lines(run_headway("score", trained, "--source", corpus.file("test.src"), "--target", hypotheses))
    assert len(scores) == len(found) == 100
    equal = [abs(float(score) - one["score"]) < 0.01 for score, one in zip(scores, found, strict=True)]
    assert sum(equal) >= 95  # the others are spelt by pieces that the tokenizer would not choose


def test_score_of_odd_lines(trained, tmp_path):
    (tmp_path / "a.tsv").write_text("ant\tant\n\n\tbee\nant\t\n" + "ant bee " * 2000 + "\tant\n")
    outcome = run_headway("score", trained, "--source", tmp_path / "a.tsv")
    assert outcome.code == 2
    scores = [float(line) for line in outcome.out.splitlines()]
    assert (scores[1], scores[2], math.isnan(scores[4])) == (0.0, -math.inf, True)
    assert "line 5 is longer than" in outcome.err


def test_sampling_prefix_and_repeats(trained):
    first, second, third = (
        run_headway("translate", trained, "--sample", f"temperature=3,seed={seed}", input_="ant bee cat\n").out
        for seed in (1, 1, 2)
    )
    assert first == second != third
    assert run_headway("translate", trained, "--prefix", "fox", input_="ant bee\ncat\n").out.count("fox") == 2
    assert lines(run_headway("translate", trained, "--no-repeat-ngram", "1", input_="ant ant\n")) != ["ant ant"]
    assert "'heat=1' is not one of temperature=NUMBER" in complaint("translate", trained, "--sample", "heat=1")
    assert "sampling follows no beam" in complaint("translate", trained, "--sample", "seed=1", "--beam-size", "3")
    assert "--target-language ko" in complaint("translate", trained, "--target-language", "ko")


def test_sampled_translations_are_evaluated(corpus, trained, tmp_path):
    """Those that `translate` writes with the same options."""
    how = "--sample", "temperature=2,seed=1"
    files = "--source", corpus.file("test.src"), "--reference", corpus.file("test.tgt")
    run_headway("evaluate", trained, *files, *how, "--output", tmp_path / "evaluated")
    run_headway("translate", trained, corpus.file("test.src"), *how, "--output", tmp_path / "translated")
    run_headway("translate", trained, corpus.file("test.src"), "--output", tmp_path / "searched")
    evaluated, translated, searched = (
        (tmp_path / name).read_text() for name in ("evaluated", "translated", "searched")
    )
    assert evaluated == translated != searched


def test_a_glossary(corpus, trained, tmp_path):
    """Terms that the model would never use; lines without them are translated as ever."""
    terms = tmp_path / "terms.tsv"
    terms.write_text("ant\tgnu gnu\n\nelk\tjay\n")
    source = corpus.file("test.src").read_text().splitlines()
    free = lines(run_headway("translate", trained, corpus.file("test.src")))
    found = lines(run_headway("translate", trained, corpus.file("test.src"), "--glossary", terms))
    for text, without, one in zip(source, free, found, strict=True):
        words = text.split()
        if not {"ant", "elk"} & set(words):
            assert one == without
        assert len(re.findall(r"\bgnu gnu\b", one)) >= words.count("ant")
        assert len(re.findall(r"\bjay\b", one)) >= words.count("elk")
    assert found != free
    terms.write_text("ant\tgnu\nelk jay\n")
    assert "terms.tsv, line 2: must be a source term, a TAB" in complaint("translate", trained, "--glossary", terms)
    terms.write_text("ant\t½\n")
    assert "can't write '½'" in complaint("translate", trained, "--glossary", terms)


def test_an_ensemble_and_an_average(corpus, trained, tmp_path):
    averaged = tmp_path / "averaged"
    lines(run_headway("average", trained, "--last", "2", "--output", averaged))
    assert "is there already" in complaint("average", trained, "--last", "2", "--output", averaged)
    assert "--last 99" in complaint("average", trained, "--last", "99", "--output", tmp_path / "x")
    source, reference = corpus.file("test.src"), corpus.file("test.tgt")
    outcome = run_headway(
        "evaluate", trained, "--ensemble", averaged, "--source", source, "--reference", reference, "--json"
    )
    assert json.loads(outcome.out)["bleu"] > 90


def test_evaluate_compares(corpus, trained, tmp_path):
    source, reference = corpus.file("test.src"), corpus.file("test.tgt")
    arguments = ("evaluate", trained, "--source", source, "--reference", reference)
    against_source = json.loads(run_headway(*arguments, "--compare", source, "--json").out)
    for comparison in against_source["comparison"]:
        assert comparison["score"] > comparison["other"]
        assert comparison["p_value"] < 0.05
    text = run_headway(*arguments, "--compare", trained).out
    assert "+0.00, p = 1.000 (may be chance)" in text
    assert "TER " in text
    (tmp_path / "short").write_text("one\n")
    assert "short has 1 lines, but there are 100" in complaint(*arguments, "--compare", tmp_path / "short")


def test_both_sides_in_one_file_and_a_start_from_a_model(corpus, trained, tmp_path):
    for split in ("train", "valid"):
        sides = [corpus.file(f"{split}.{side}").read_text().splitlines() for side in ("src", "tgt")]
        pairs = [{"source": source, "target": target} for source, target in zip(*sides, strict=True)]
        (tmp_path / f"{split}.jsonl").write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs))
    files = ("--source", tmp_path / "train.jsonl", "--valid-source", tmp_path / "valid.jsonl")
    run = tmp_path / "tuned"
    outcome = run_headway("train", *files, "--out", run, "--init-from", trained, "training.max_steps=1")
    assert outcome.code == 0, outcome.err
    bleu = [json.loads(line).get("valid_bleu") for line in (run / "log.jsonl").read_text().splitlines()][-1]
    assert bleu > 80  # one step from a model that knows the task
    other = ("train", *files, "--out", tmp_path / "other", "--init-from", trained, "training.max_steps=1")
    assert "model.d_ff is" in complaint(*other, "model.preset=base")
    new = ("train", "--source", corpus.file("train.src"), *files[2:], "--out", tmp_path / "new")
    assert "target is missing" in complaint(*new)


def test_several_languages_in_one_model(corpus, tmp_path):
    """The reverse task as one language, copying as the other."""
    recipe = tmp_path / "recipe.yaml"
    (tmp_path / "r").symlink_to(corpus.folder)
    recipe.write_text(
        "data:\n"
        "  train:\n"
        "    - {source: r/train.src, target: r/train.tgt, tag: rev}\n"
        "    - {source: r/train.src, target: r/train.src, tag: same, weight: 0.5}\n"
        "  valid:\n"
        "    - {source: r/valid.src, target: r/valid.tgt, tag: rev}\n"
        "    - {source: r/valid.src, target: r/valid.src, tag: same}\n"
        "  source_language: src\n"
    )
    run = tmp_path / "run"
    limits = ("training.schedule=cosine", "training.max_steps=450", "training.tokens_per_batch=1500")
    outcome = run_headway("train", recipe, "--out", run, *QUICK, *limits)
    assert outcome.code == 0, outcome.err
    assert lines(run_headway("translate", run, input_=">>rev<< ant bee cat\n>>same<< ant bee cat\n\n")) == [
        "cat bee ant",
        "ant bee cat",
        "",
    ]
    for tag, reference in (("rev", "test.tgt"), ("same", "test.src")):
        options = ("--source", corpus.file("test.src"), "--reference", corpus.file(reference), "--target-language", tag)
        assert json.loads(run_headway("evaluate", run, *options, "--json").out)["bleu"] > 80
    outcome = run_headway("translate", run, input_="ant\n>>same<< bee\n")
    assert (outcome.code, outcome.out) == (2, "\nbee\n")
    assert "line 1 doesn't begin with the tag of a target language, such as >>rev<<" in outcome.err


def test_check_names_the_lines(tmp_path):
    (tmp_path / "a.src").write_text("".join(f"satz {i} hier\n" for i in range(20)) + "\nsatz 3 hier\n")
    (tmp_path / "a.tgt").write_text("".join(f"sentence {i} here\n" for i in range(20)) + "x\nsentence 3 here\n")
    files = ("--source", tmp_path / "a.src", "--target", tmp_path / "a.tgt")
    text = run_headway("check", *files).out
    assert "22 pairs" in text
    assert f"{tmp_path}/a.src:21" in text
    assert f"{tmp_path}/a.src:22" in text
    names = {finding["name"] for finding in json.loads(run_headway("check", *files, "--json").out)["findings"]}
    assert names == {"blank", "repeated pair"}


@pytest.mark.parametrize("what", ["positions", "masks", "schedule"])
def test_draw_as_text_and_as_pictures(what, tmp_path):
    assert len(lines(run_headway("draw", what))) > 10
    for suffix in ("svg", "png"):
        lines(run_headway("draw", what, "--output", tmp_path / f"a.{suffix}"))
        assert (tmp_path / f"a.{suffix}").stat().st_size > 2000


def test_draw_the_small_table_and_what_has_no_meaning():
    text = run_headway("draw", "positions", "--max-length", "4", "--d-model", "8").out
    assert text.splitlines()[4].split()[:5] == ["1", "0.84147", "0.54030", "0.09983", "0.99500"]
    assert "--max-length has no meaning for schedule" in complaint("draw", "schedule", "--max-length", "4")
    assert "there are positions, masks and schedule" in complaint("draw", "cats")


def test_inspect_in_every_form(trained, tmp_path):
    text = run_headway("inspect", trained, "ant bee cat").out
    assert "encoder-decoder attention, layer 2, mean of its heads" in text
    assert text.splitlines()[2].split()[-2:] == ["cat", "<eos>"]  # the columns
    options = ("--kind", "all", "--layers", "all", "--heads", "1,2")
    for suffix in ("svg", "png"):
        lines(run_headway("inspect", trained, "ant bee cat", *options, "--output", tmp_path / f"a.{suffix}"))
    file = tmp_path / "a.json"
    kept = sorted(path.name for path in (trained / "models").iterdir())
    lines(run_headway("inspect", trained, "ant bee cat", "--last", len(kept), "--output", file))
    assert "a .json file holds every map" in complaint("inspect", trained, "ant", *options, "--output", file)
    record = json.loads(file.read_text())
    assert "".join(token["piece"] for token in record["source"]["tokens"]) == "▁ant▁bee▁cat<eos>"
    assert [record["target"]["text"]] == lines(run_headway("translate", trained, input_="ant bee cat\n"))
    assert (
        record["arrays"]["encoder.layers.1.self_attention.weights"]["shape"][1:]
        == [len(record["source"]["tokens"])] * 2
    )
    best = json.loads((trained / "best.json").read_text())["model"]
    assert [moment["name"] for moment in record["history"]] == [name for name in kept if name != best]
    assert f"step-{record['inspected_step']:08}" == best
    assert record["arrays"]["logits"]["shape"][0] == len(record["target"]["tokens"])
    growing = run_headway("inspect", trained, "ant bee cat", "--heads", "1", "--last", "2", "--words").out
    assert re.findall(r"layer 2, head 1, (step-\d+)\n", growing) == sorted({*kept[-2:], best})
    for model, last in ((trained, len(kept) + 1), (trained / "models" / kept[0], 1)):
        assert f"--last {last} needs a run directory" in complaint("inspect", model, "ant", "--last", last)
    given = run_headway("inspect", trained, "ant bee", "--target", "fox fox fox", "--kind", "cross, decoder").out
    assert given.count("fox") >= 5
    for option, value in (("--kind", "cat"), ("--layers", "3"), ("--heads", "0")):
        assert f"{option} {value}" in complaint("inspect", trained, "ant", option, value)
    assert "must end in" in complaint("inspect", trained, "ant", "--output", tmp_path / "a.gif")


def test_inspect_analyses_a_translation(trained, tmp_path):
    asked = ("contributions", "erasure", "contrast", "logit_lens", "decoder_lens", "faithfulness", "head_importance")
    options = [part for name in asked for part in ("--analysis", name)]
    text = run_headway("inspect", trained, "ant bee cat", *options).out
    titles = (
        "(ALTI+)",
        "erasure: ",
        "contrast: ",
        "logit lens: ",
        "DecoderLens: ",
        "over 50 sentences",
        "faithfulness: ",
    )
    places = [text.index(title) for title in titles]
    assert places == sorted(places)
    file = tmp_path / "record.json"
    other = ("--analysis", "patching=bee ant cat", "--output", file)
    lines(run_headway("inspect", trained, "ant bee cat", *options, *other))
    record = json.loads(file.read_text())
    assert set(record["analyses"]) == {*asked, "patching"}
    assert record["analyses"]["head_importance"]["sentences"] == 50
    assert record["arrays"]["analyses.patching.encoder"]["shape"][1] == len(record["source"]["tokens"])
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("ant bee\tbee ant\ncat\tcat\n")
    text = run_headway("inspect", trained, "ant", "--analysis", f"head_importance={pairs}").out
    assert "over 2 sentences" in text
    best = trained / "models" / json.loads((trained / "best.json").read_text())["model"]
    for model, value, problem in (
        (trained, "guess", "choose one of contributions, erasure"),
        (trained, "erasure=x", "erasure takes no text"),
        (trained, "patching", "needs another sentence"),
        (trained, "patching=ant bee cat dog", "as many tokens"),
        (trained, "head_importance=x.tsv", "x.tsv"),
        (best, "head_importance", "has no validation pairs"),
    ):
        assert problem in complaint("inspect", model, "ant", "--analysis", value)
    assert "a .svg file shows attention" in complaint(
        "inspect", trained, "ant", "--analysis", "erasure", "--output", tmp_path / "a.svg"
    )


def test_a_model_moves_as_one_folder(trained, tmp_path):
    best = json.loads((trained / "best.json").read_text())["model"]
    shutil.copytree(trained / "models" / best, tmp_path / "moved")
    assert lines(run_headway("translate", tmp_path / "moved", input_="ant bee\n")) == ["bee ant"]


def test_outputs_that_can_not_be_written_are_refused_first(corpus, trained, tmp_path):
    for arguments in (
        ("translate", trained, corpus.file("test.src")),
        ("evaluate", trained, "--source", corpus.file("test.src"), "--reference", corpus.file("test.tgt")),
        ("inspect", trained, "ant"),
        ("draw", "masks"),
    ):
        assert "is a folder" in complaint(*arguments, "--output", tmp_path)
        assert "no such folder" in complaint(*arguments, "--output", tmp_path / "no" / "a.svg")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_a_recipe_of_ones_own_is_no_run(corpus, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "recipe.yaml").write_text("training: {max_steps: 1}\n")
    assert "holds no run" in complaint("train", *corpus.train_options, "--out", tmp_path, "training.max_steps=1")
    assert "is not a run directory" in complaint("train", "--resume", tmp_path)
    assert (tmp_path / "data").is_dir()


def test_arguments_that_are_not_utf8(trained):
    assert complaint("show", b"\xff".decode("utf-8", "surrogateescape")).startswith("headway:")
    assert "UTF-8" in complaint("inspect", trained, b"\xff".decode("utf-8", "surrogateescape"))


def test_outputs_that_are_no_plain_files(corpus, trained, tmp_path):
    (tmp_path / "target").write_text("old\n")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert run_headway("translate", trained, "--output", tmp_path / "link", input_="ant bee\n").code == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "bee ant\n"
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True) as reader:
        assert run_headway("translate", trained, "--output", tmp_path / "pipe", input_="ant bee\n").code == 0
        assert reader.communicate(timeout=60)[0] == "bee ant\n"
    assert (tmp_path / "pipe").is_fifo()
    assert run_headway("translate", trained, "--output", tmp_path / "a.gz", input_="ant bee\n").code == 0
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"bee ant\n"
    assert "--output -: leave --output out, and results go to standard output" in complaint(
        "translate", trained, "--output", "-"
    )
    reference = tmp_path / "reference"
    shutil.copy(corpus.file("test.tgt"), reference)
    files = ("--source", corpus.file("test.src"), "--reference", reference)
    assert "is a file that is read here" in complaint("evaluate", trained, *files, "--output", reference)
    assert {path.name for path in tmp_path.iterdir()} == {"target", "link", "pipe", "a.gz", "reference"}


def test_a_full_disk_and_a_closed_input(trained):
    command = f"'{sys.executable}' -m headway translate '{trained}'"
    for redirection, message in (("> /dev/full", "No space left"), ("<&-", "standard input is closed")):
        script = f"echo ant | {command} {redirection}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
        assert message in done.stderr


def test_mistakes_that_must_not_pass_silently(corpus, trained, tmp_path):
    (tmp_path / "a.tsv").write_text("ant\tant\n")
    files = ("--source", tmp_path / "a.tsv", "--target", corpus.file("test.tgt"))
    assert "holds both sides" in complaint("score", trained, *files)
    train = ("train", *corpus.train_options, "--out", tmp_path / "run")
    assert "null is none at all" in complaint(*train, "training.max_steps=")
    assert "tokenizer.vocab_size=3 is too small" in complaint(*train, "training.max_steps=1", "tokenizer.vocab_size=3")
    assert "given: nonsense" in complaint(*train, "nonsense")
    assert "within the warm-up" in run_headway(*train, *QUICK, "training.max_steps=1").err


def test_a_split_is_the_same_in_every_process(tmp_path):
    """Whatever the order of Python's sets; and a killed one leaves nothing that the next can't begin with."""
    rows = [f"satz {n % 311} hat {n * n % 97} wörter\tsentence {n}\n" for n in range(900)]
    (tmp_path / "a.tsv").write_text("".join(rows))
    command = [sys.executable, "-m", "headway", "split", "a.tsv", "--source-language", "de", "--target-language", "en"]
    (tmp_path / "1.partial").mkdir()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [*command, "--output", seed], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    one, other = ({file.name: file.read_bytes() for file in (tmp_path / seed).iterdir()} for seed in ("1", "2"))
    assert one == other
    assert not (tmp_path / "1.partial").exists()
    assert "is split already" in run_headway(*command[3:], "--output", "2", cwd=tmp_path).err
