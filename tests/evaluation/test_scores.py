"""Every score is sacreBLEU's."""

import pytest
import sacrebleu

from headway.errors import UserError
from headway.evaluation import (
    Measured,
    compare_measured,
    compare_translations,
    evenly,
    score_margins,
    score_translations,
    tokenization,
)

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


def test_a_comparison_has_the_scores_and_tells_chance_from_difference():
    ours = [f"the cat {i} sat on the mat ." for i in range(60)]
    worse = [line if i % 2 else f"a dog {i} ran" for i, line in enumerate(ours)]
    one_word = [*ours[:-1], "the cat 59 sat on the rug ."]
    references = [f"the cat {i} sat on a mat ." for i in range(60)]
    for other, differs in ((worse, True), (one_word, False), (ours, False)):
        for comparison in compare_translations(ours, other, references):
            corpus_score = sacrebleu.corpus_bleu if comparison.metric == "BLEU" else sacrebleu.corpus_chrf
            assert comparison.score == pytest.approx(corpus_score(ours, [references]).score)
            assert comparison.other == pytest.approx(corpus_score(other, [references]).score)
            assert (comparison.p_value < 0.05) == differs
            assert "bs:1000" in comparison.signature


@pytest.mark.parametrize("seed", ["abc", "-1", ""])
def test_a_seed_in_the_environment_that_is_none(monkeypatch, seed):
    monkeypatch.setenv("SACREBLEU_SEED", seed)
    measured = Measured("toy:metric", 0.5, (0.0, 1.0))
    for compare in (
        lambda: compare_translations(HYPOTHESES, HYPOTHESES, REFERENCES),
        lambda: compare_measured(measured, measured),
        lambda: score_margins(HYPOTHESES, REFERENCES),
    ):
        with pytest.raises(UserError, match=f"SACREBLEU_SEED={seed}: .* a whole number there, or none"):
            compare()


def test_systems_without_a_score_do_not_differ():
    """Neither has an n-gram of the references, so no sample differs either."""
    ours, other, references = ([word] * 20 for word in ("a", "b", "the cat sat on the mat"))
    bleu, _ = compare_translations(ours, other, references)
    assert (bleu.score, bleu.other, bleu.p_value) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("languages", "wanted"),
    [
        *(
            (code, "zh")
            for code in (
                "zh",
                "zh-CN",
                "zh_TW",
                "zh-Hans",
                "ZH-hant",
                "zho",
                "cmn",
                "yue",
                "wuu",
                "lzh",
                "cn",
                "zh-Bopo",
                "zh-Hanb",
                "zh-Hani",
            )
        ),
        *(
            (code, "char")
            for code in (
                "ja",
                "ja-JP",
                "jpn",
                "th",
                "th_TH",
                "lo",
                "km",
                "my",
                "shn",
                "bo",
                "tha",
                "jp",
                "ja-Hira",
                "ja-Hrkt",
            )
        ),
        *(
            (code, "13a")
            for code in ("ko", "ko-KR", "kor", "de", "en", "vi", "hi", "ar", "zh-Latn", "txt", "source", "")
        ),
        ("de fr cs", "13a"),
        ("de zh_CN", "zh"),
        ("de zh ja", "char"),
    ],
)
def test_tokenisation_follows_from_the_language(languages, wanted):
    assert tokenization(*(languages.split() or [""])) == wanted
    assert tokenization(*languages.split(), tokenized=True) == "none"


@pytest.mark.parametrize(
    ("code", "plain", "wrong", "right"),
    [
        ("zh-CN", "zh", "两个男人在公园里看一只很大的狗。", "两个男人在公园里看一只很小的狗。"),
        ("ja_JP", "ja", "公園で二人の男が大きな犬を見ています。", "公園で二人の男が小さな犬を見ています。"),
        ("th-TH", "th", "ผู้ชายสองคนดูสุนัขตัวใหญ่ในสวน", "ผู้ชายสองคนดูสุนัขตัวเล็กในสวน"),
        ("km", "khm", "បុរសពីរនាក់កំពុងមើលឆ្កែធំមួយនៅក្នុងសួន", "បុរសពីរនាក់កំពុងមើលឆ្កែតូចមួយនៅក្នុងសួន"),
    ],
)
def test_text_without_spaces_has_a_bleu_between_none_and_all(code, plain, wrong, right):
    """A code with a region scores as one without."""
    bleu, of_plain = (score_translations([wrong], [right], tokenization(one)).bleu for one in (code, plain))
    assert 20 < bleu == of_plain < 95
    assert score_translations([right], [right], tokenization(code)).bleu == pytest.approx(100)


def test_even_distances():
    assert evenly(range(10), 3) == [0, 3, 6]
    assert evenly(range(2), 3) == [0, 1]
    assert evenly([], 3) == []
