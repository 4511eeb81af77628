"""The corpus of transliteration: its rules are those of published romanizations, its splits are apart."""

import re
import unicodedata
from collections import Counter
from itertools import pairwise

import pytest

from headway.corpora.romanization import SPLITS, romanization_corpus, romanized

OFFICIAL = """
    구미 Gumi, 영동 Yeongdong, 백암 Baegam, 옥천 Okcheon, 합덕 Hapdeok, 호법 Hobeop, 구리 Guri,
    설악 Seorak, 칠곡 Chilgok, 임실 Imsil, 울릉 Ulleung, 대관령 Daegwallyeong, 백마 Baengma,
    종로 Jongno, 왕십리 Wangsimni, 별내 Byeollae, 신라 Silla, 묵호 Mukho, 압구정 Apgujeong,
    낙동강 Nakdonggang, 죽변 Jukbyeon, 낙성대 Nakseongdae, 합정 Hapjeong, 샛별 Saetbyeol,
    울산 Ulsan, 부산 Busan, 세종 Sejong, 광희문 Gwanghuimun, 속리산 Songnisan, 금강 Geumgang,
    독도 Dokdo, 경복궁 Gyeongbokgung, 무량수전 Muryangsujeon, 연화교 Yeonhwagyo,
    극락전 Geungnakjeon, 안압지 Anapji, 남한산성 Namhansanseong, 화랑대 Hwarangdae,
    현충사 Hyeonchungsa, 오죽헌 Ojukheon, 촉석루 Chokseongnu, 종묘 Jongmyo, 다보탑 Dabotap, 팔당 Paldang,
    집현전 Jiphyeonjeon, 남산 Namsan, 불국사 Bulguksa, 독립문 Dongnimmun
"""
"""Examples of the Notification 2000-8 itself. Those with a final consonant that the corpus lacks are left out, and
신문로, which no rule of letters gives."""
OF_PLACES = """
    서울 Seoul, 제주 Jeju, 인천 Incheon, 대구 Daegu, 대전 Daejeon, 광주 Gwangju, 수원 Suwon,
    전주 Jeonju, 춘천 Chuncheon, 강릉 Gangneung, 경주 Gyeongju, 여수 Yeosu, 목포 Mokpo,
    의정부 Uijeongbu, 평창 Pyeongchang, 서귀포 Seogwipo, 동작 Dongjak, 을지로 Euljiro,
    충무로 Chungmuro, 잠실 Jamsil, 한라산 Hallasan, 강남 Gangnam, 신촌 Sinchon, 선릉 Seolleung,
    국립 Gungnip, 청량리 Cheongnyangni
"""
"""As signs and maps write them."""

SILENT = "\u110b"
"""The initial ㅇ of a syllable that begins with a vowel."""


@pytest.fixture(scope="module")
def corpus():
    return romanization_corpus(sizes=(3000, 300, 300))


@pytest.mark.parametrize("pair", [pair.strip() for text in (OFFICIAL, OF_PLACES) for pair in text.split(",")])
def test_a_name_is_written_as_it_is_published(pair):
    hangul, roman = pair.split()
    assert romanized(hangul) == roman


def test_no_name_is_there_twice(corpus):
    names = Counter(name for pairs in corpus.pairs.values() for name, _ in pairs)
    assert set(names.values()) == {1}
    assert [len(corpus.pairs[split]) for split in SPLITS] == [3000, 300, 300]


def test_names_are_composed_syllables(corpus):
    for name, roman in corpus.pairs["train"]:
        assert 2 <= len(name) <= 4
        assert all(unicodedata.name(one).startswith("HANGUL SYLLABLE") for one in name)
        assert roman.isascii()
        assert roman.isalpha()
        assert roman[0].isupper()
        assert roman[1:].islower()


def test_no_syllable_is_lost(corpus):
    """Consonants change one another, but each syllable keeps a group of vowel letters, unless two vowels meet."""
    for name, roman in corpus.pairs["train"]:
        parts = [unicodedata.normalize("NFD", syllable) for syllable in name]
        if not any(len(one) == 2 and other[0] == SILENT for one, other in pairwise(parts)):
            assert len(re.findall("[yw]?[aeiou]+", roman.lower())) == len(name), (name, roman)


def test_it_is_the_same_every_time_and_another_by_another_seed(corpus):
    assert romanization_corpus(sizes=(3000, 300, 300)) == corpus
    assert romanization_corpus(sizes=(3000, 300, 300), seed=2) != corpus


def test_files_have_a_name_a_line(corpus, tmp_path):
    corpus.write(tmp_path / "data")
    for split in SPLITS:
        sides = [(tmp_path / "data" / f"{split}.{suffix}").read_text("utf-8").splitlines() for suffix in ("ko", "rr")]
        assert list(zip(*sides, strict=True)) == corpus.pairs[split]
