"""Models of ours in CTranslate2, through the command line."""

import re

import ctranslate2
import pytest
import sacrebleu
import sentencepiece

from tests.interop.test_argos import as_argos, installed
from tests.system.running import complaint, run_headway


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))


def test_the_engine_translates_and_evaluates_as_ours_does(trained, corpus, tmp_path):
    text = corpus.file("test.src").read_text() + "\ncat ☃ 한글\n"
    options = ["--beam-size", 4, "--length-penalty", 0]
    ours, theirs = (
        run_headway("translate", trained, *options, "--engine", engine, input_=text)
        for engine in ("torch", "ctranslate2")
    )
    assert (theirs.code, theirs.out, theirs.err) == (0, ours.out, ours.err)
    assert len(list((tmp_path / "cache").iterdir())) == 1
    test_set = ["--source", corpus.file("test.src"), "--reference", corpus.file("test.tgt")]
    ours, theirs = (
        run_headway("evaluate", trained, *test_set, *options, "--engine", engine) for engine in ("torch", "ctranslate2")
    )
    assert (theirs.code, theirs.out) == (0, ours.out)
    refused = complaint("translate", trained, "--sample", "seed=2", "--engine", "ctranslate2", input_="cat\n")
    assert "sampling needs engine torch or auto" in refused


@pytest.mark.parametrize("to", ["ctranslate2", "argos"])
def test_what_int8_costs_is_told(to, with_languages, corpus, tmp_path):
    """As sacreBLEU says of translations that are made with the packages themselves."""
    output = tmp_path / "x.argosmodel"
    test_set = ["--source", corpus.file("test.src"), "--reference", corpus.file("test.tgt")]
    command = ["export", with_languages, "--to", to, "--quantization", "int8", "--output", output]
    outcome = run_headway(*command, *test_set)
    assert outcome.code == 0, outcome.err
    found = re.match(r"BLEU (\S+) as exported, (\S+) in headway: (\S+), greedy; (\d+) of 100 lines", outcome.out)
    assert found, outcome.out
    lines, references = (corpus.file(f"test.{side}").read_text().splitlines() for side in ("src", "tgt"))
    ours = run_headway("translate", with_languages, "--beam-size", 1, input_="".join(f"{line}\n" for line in lines))
    if to == "argos":
        theirs = as_argos(installed(output, tmp_path / "here"), lines, beam_size=1)
    else:
        tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(output / "tokenizer.spm"))
        results = ctranslate2.Translator(str(output)).translate_batch(
            [[*tokenizer.encode(line, out_type=str), "<eos>"] for line in lines], beam_size=1
        )
        theirs = [tokenizer.decode(result.hypotheses[0]) for result in results]
    mine, exported = (sacrebleu.corpus_bleu(texts, [references]).score for texts in (ours.out.splitlines(), theirs))
    same = sum(one == other for one, other in zip(ours.out.splitlines(), theirs, strict=True))
    assert found.groups() == (f"{exported:.2f}", f"{mine:.2f}", f"{exported - mine:+.2f}", str(same))


def test_a_test_set_that_is_none_is_told_before_anything_is_written(trained, corpus, tmp_path):
    output = tmp_path / "out"
    command = ["export", trained, "--to", "ctranslate2", "--output", output]
    assert "needs the --source" in complaint(*command, "--reference", corpus.file("test.tgt"))
    assert "lines" in complaint(*command, "--source", corpus.file("test.src"), "--reference", corpus.file("train.tgt"))
    assert not output.exists()


def test_a_vocabulary_map_is_that_of_the_shortlist(trained, corpus, tmp_path):
    """As the engine uses it."""
    text = ("--source", corpus.file("train.src"), "--target", corpus.file("train.tgt"))
    assert run_headway("shortlist", trained, *text, "--output", tmp_path / "short").code == 0
    exported = run_headway("export", tmp_path / "short", "--to", "ctranslate2", "--output", tmp_path / "mapped")
    assert exported.code == 0, exported
    source = corpus.file("test.src").read_text()
    translated = run_headway("translate", tmp_path / "short", "--engine", "ctranslate2", input_=source)
    assert translated.code == 0, translated
    [kept] = (tmp_path / "cache").iterdir()
    assert (kept / "vmap.txt").read_bytes() == (tmp_path / "mapped" / "vmap.txt").read_bytes()
