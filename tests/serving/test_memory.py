"""The memory that a server may take, as it says at its start."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import UserError
from headway.model import ModelConfig
from headway.serving.batcher import WORK_PER_BATCH
from headway.serving.memory import batch_memory, check_memory, most_memory
from headway.serving.service import Search, work_of
from headway.serving.settings import Settings
from headway.translator.codec import Codec
from headway.translator.glossary import Glossary

BASE = ModelConfig(37_000, 37_000)
TORCH: Any = SimpleNamespace(engine="torch")
STORED: Any = SimpleNamespace(target_tokenizer=SimpleNamespace(many_sources=False))


def translator(device="cpu", config=BASE, parameters=63_000_000, engine="ctranslate2"):
    return SimpleNamespace(device=device, engine=engine, info=SimpleNamespace(config=config, num_parameters=parameters))


@given(
    st.sampled_from(["torch", "ctranslate2"]),
    st.integers(1, 16),
    st.integers(1, 64),
    st.integers(1, 80),
    st.integers(1, 12),
    st.sampled_from([64, 512, 1024]),
    st.integers(100, 64_000),
)
def test_a_batch_takes_no_less_than_its_arrays(engine, beam, sentences, length, layers, width, vocabulary):
    """Whatever the batcher may put together of sentences whose tokens are single bytes: the keys and values of all
    hypotheses at their longest, and their logits, twice, because a step makes the next from the last."""
    text = "x" * length
    sentences = min(sentences, max(1, WORK_PER_BATCH // work_of(Search(TORCH, beam, 1), text)))
    config = ModelConfig(vocabulary, vocabulary, d_model=width, decoder_layers=layers)
    places = sentences * beam * Codec(STORED, config.max_length).length_cap(length, 0, None)
    arrays = 4 * (places * 2 * layers * width + sentences * beam * vocabulary)
    assert batch_memory(config, engine, sentences) > arrays


@given(st.text(max_size=60), st.integers(1, 16))
def test_work_bounds_the_places_of_hypotheses(text, beam):
    """Of texts in any script: a token is a byte at least, after Unicode's compatible forms."""
    longest = Codec(STORED, 2**20).length_cap(len(normalize("NFKC", text).encode()), 0, None)
    assert 2 * work_of(Search(TORCH, beam, 1), text) >= beam * longest


def test_required_phrases_widen_the_beam():
    plain, with_terms = Search(TORCH, 4, 1), Search(TORCH, 4, 1, Glossary.of([("a", "b")]))
    assert work_of(plain, "{name} ist da.") > 4 * work_of(plain, "Name ist da..")
    assert work_of(with_terms, "Er ist da.") > 4 * work_of(plain, "Er ist da.")
    ctranslate2 = replace(plain, translator=SimpleNamespace(engine="ctranslate2"))
    assert work_of(ctranslate2, "{name} ist da.") == work_of(ctranslate2, "Name ist da...")


def test_more_of_anything_takes_more():
    settings = Settings()
    one = most_memory([(BASE, 63_000_000, "ctranslate2")], settings, 1)
    assert most_memory([(BASE, 63_000_000, "ctranslate2")], settings, 2) > one + 1e9
    assert most_memory([(BASE, 63_000_000, "ctranslate2")] * 2, settings, 1) > one + 4 * 63e6
    assert most_memory([(BASE, 63_000_000, "ctranslate2")], Settings(batch_size=1), 1) < one - 0.4e9
    assert most_memory([(BASE, 63_000_000, "torch")], settings, 1) > one


def test_a_server_says_what_it_may_take_and_does_not_start_without(monkeypatch):
    monkeypatch.setattr("headway.serving.memory.usable_memory", lambda: 64e9)
    said = check_memory([translator()], Settings(), 2)
    [total, requests] = map(float, re.findall(r"([\d.]+) GB", said))
    assert requests == pytest.approx((512 + 256) * Settings.max_body / 1e9, abs=0.06)
    needed = most_memory([(BASE, 63_000_000, "ctranslate2")], Settings(), 2)
    assert total == pytest.approx(needed / 1e9 + requests, abs=0.11)
    least = most_memory([(BASE, 63_000_000, "ctranslate2")], Settings(), 0)
    monkeypatch.setattr("headway.serving.memory.usable_memory", lambda: least)
    assert f"this process is limited to {least / 1e9:.1f} GB: fewer --threads" in check_memory(
        [translator()], Settings(), 2
    )
    monkeypatch.setattr("headway.serving.memory.usable_memory", lambda: least - 1)
    with pytest.raises(UserError, match="serve fewer or smaller models") as refused:
        check_memory([translator()], Settings(), 2)
    assert "\n" not in str(refused.value)
    assert "isn't estimated" in check_memory([translator("cuda")], Settings(), 1)
