"""Every score is sacreBLEU's."""

import json
import subprocess
import sys

import pytest
import sacrebleu

from headway.evaluation import compare_translations, score_translations

HYPOTHESES = ["the cat sat on the mat .", "a dog , running"]
REFERENCES = ["the cat is on the mat .", "a dog is running"]


def test_scores_are_those_of_sacrebleu_called_apart():
    scores = score_translations(HYPOTHESES, REFERENCES)
    assert scores.bleu == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], force=True).score
    assert scores.chrf == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert "tok:13a" in scores.bleu_signature
    assert f"version:{sacrebleu.__version__}" in scores.bleu_signature


def test_tokenised_text_is_scored_as_it_is():
    scores = score_translations(HYPOTHESES, REFERENCES, tokenize="none")
    assert scores.bleu == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize="none", force=True).score
    assert "tok:none" in scores.bleu_signature


def test_ter_comes_where_it_is_asked_for():
    assert score_translations(HYPOTHESES, REFERENCES).ter is None
    scores = score_translations(HYPOTHESES, REFERENCES, with_ter=True)
    assert scores.ter == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score


def test_a_comparison_is_that_of_sacrebleus_own_program(tmp_path):
    ours = [f"the cat {i} sat on the mat ." for i in range(40)]
    other = [line if i % 3 else f"a dog {i} ran" for i, line in enumerate(ours)]
    references = [f"the cat {i} sat on a mat ." for i in range(40)]
    for name, lines in (("ours", ours), ("other", other), ("references", references)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    command = [sys.executable, "-m", "sacrebleu", tmp_path / "references", "-i", tmp_path / "ours", tmp_path / "other"]
    options = ["-m", "bleu", "chrf", "--paired-bs", "--paired-bs-n", "1000", "-f", "json"]
    done = subprocess.run([*command, *options], capture_output=True, check=True, text=True)
    systems = json.loads(done.stdout)
    for comparison in compare_translations(ours, other, references):
        wanted = [system[comparison.metric] for system in systems]
        assert comparison.score == pytest.approx(wanted[0]["score"], abs=0.06)
        assert comparison.other == pytest.approx(wanted[1]["score"], abs=0.06)
        assert comparison.p_value == pytest.approx(wanted[1]["p_value"], abs=1e-6)
