"""The same text for the same version, engine and precision, whatever it is translated with."""

import random
from pathlib import Path

import pytest
import torch

from headway.decoding import ctranslate2_searcher
from headway.translator import Translator
from tests.decoding.test_ctranslate2_searcher import ending

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "one", "dog", "ran", "after", "it", "한국어", "☃"]
GENERATOR = random.Random(4)
TEXTS = [" ".join(GENERATOR.choices(WORDS, k=GENERATOR.choice([1, 2, 3, 5, 9, 20, 30]))) for _ in range(60)]
OTHER_KERNELS = "oneDNN with AVX-512 computes it, whatever CTranslate2 does elsewhere"


def computes_with_onednn_and_avx512() -> bool:
    cpu = Path("/proc/cpuinfo")
    return cpu.exists() and "AuthenticAMD" in (text := cpu.read_text()) and "avx512bw" in text


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return ending()


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize(
    ("engine", "precision"),
    [
        ("torch", "fp32"),
        ("ctranslate2", "fp32"),
        pytest.param(
            "ctranslate2",
            "int8",
            marks=pytest.mark.skipif(not computes_with_onednn_and_avx512(), reason=OTHER_KERNELS),
        ),
    ],
)
def test_a_text_is_translated_as_it_is_alone(model, tmp_path, monkeypatch, engine, precision, beam_size):
    """In batches of any size, in any order, with neighbours of any length."""
    if engine == "ctranslate2":
        pytest.importorskip("ctranslate2")
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    translator = Translator(model, device="cpu", engine=engine, precision=precision)

    def translated(order, size):
        batches = [order[start : start + size] for start in range(0, len(order), size)]
        found = {}
        for places in batches:
            some = translator.translate([TEXTS[i] for i in places], beam_size=beam_size, max_length=20)
            found.update(zip(places, (one.text for one in some), strict=True))
        return [found[i] for i in range(len(TEXTS))]

    everyone = list(range(len(TEXTS)))
    alone = translated(everyone, 1)
    assert len(set(alone)) > 10
    for size in (2, 7, 60):
        assert translated(everyone, size) == alone
        assert translated(random.Random(size).sample(everyone, len(everyone)), size) == alone
        assert translated(sorted(everyone, key=lambda i: len(TEXTS[i])), size) == alone


def test_short_sources_share_no_batch_with_others():
    """In int8, a kernel for them alone would round otherwise."""
    lengths = [GENERATOR.randrange(1, 40) for _ in range(500)]
    batches = ctranslate2_searcher._batches(lengths, [64] * 500, 64)
    assert sorted(i for batch in batches for i in batch) == list(range(500))
    assert {len({lengths[i] + 1 < 16 for i in batch}) for batch in batches} == {1}
    assert len(batches) <= 500 // 64 + 2
