"""Every score is sacreBLEU's."""

import sacrebleu

from headway.evaluation import score_translations

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
