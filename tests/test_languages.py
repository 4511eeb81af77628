"""Codes of languages: what they say, and which ones mean the same."""

import json

import pytest
from babel.core import Locale

from headway.languages import english_name, is_language, likely_script, read_code, same_language
from tests.language_data import FILE, from_babel


@pytest.mark.parametrize(
    ("code", "parts", "script"),
    [
        ("de", ("de", "", ""), "Latn"),
        ("DE", ("de", "", ""), "Latn"),
        ("deu", ("de", "", ""), "Latn"),
        ("ger", ("de", "", ""), "Latn"),
        ("de-AT", ("de", "", "AT"), "Latn"),
        ("de_AT.UTF-8", ("de", "", "AT"), "Latn"),
        ("de_DE@euro", ("de", "", "DE"), "Latn"),
        ("de-1996", ("de", "", ""), "Latn"),
        ("de-u-co-phonebk", ("de", "", ""), "Latn"),
        ("en-x-FR-latn", ("en", "", ""), "Latn"),
        ("es-419", ("es", "", "419"), "Latn"),
        ("zh", ("zh", "", ""), "Hans"),
        ("zho", ("zh", "", ""), "Hans"),
        ("chi", ("zh", "", ""), "Hans"),
        ("cmn", ("zh", "", ""), "Hans"),
        ("zh-CN", ("zh", "", "CN"), "Hans"),
        ("zh_TW", ("zh", "", "TW"), "Hant"),
        ("zh_Hans", ("zh", "Hans", ""), "Hans"),
        ("ZH-hant-hk", ("zh", "Hant", "HK"), "Hant"),
        ("zh-Latn", ("zh", "Latn", ""), "Latn"),
        ("zh-yue", ("yue", "", ""), "Hant"),
        ("zh-cmn-Hans-CN", ("zh", "Hans", "CN"), "Hans"),
        ("ja-JP", ("ja", "", "JP"), "Jpan"),
        ("kor", ("ko", "", ""), "Kore"),
        ("kor_Hang", ("ko", "Hang", ""), "Hang"),
        ("sr", ("sr", "", ""), "Cyrl"),
        ("sr-Latn", ("sr", "Latn", ""), "Latn"),
        ("no", ("nb", "", ""), "Latn"),
        ("nob", ("nb", "", ""), "Latn"),
        ("iw", ("he", "", ""), "Hebr"),
        ("nds", ("nds", "", ""), "Latn"),
        ("de-home", ("de", "", ""), "Latn"),
        ("sh", ("sr", "Latn", ""), "Latn"),
        ("sr@latin", ("sr", "Latn", ""), "Latn"),
        ("en_XX", ("en", "", ""), "Latn"),  # mBART's, of no region
        ("zt", ("zh", "Hant", ""), "Hant"),  # LibreTranslate's
        ("pb", ("pt", "", "BR"), "Latn"),
        ("sr_RS.UTF-8@latin", ("sr", "Latn", "RS"), "Latn"),
        ("uz_UZ@cyrillic", ("uz", "Cyrl", "UZ"), "Cyrl"),
        ("source", ("source", "", ""), ""),
        ("mul", ("mul", "", ""), ""),
        ("", ("", "", ""), ""),
    ],
)
def test_the_parts_of_a_code_and_its_script(code, parts, script):
    assert read_code(code) == parts
    assert likely_script(code) == script


@pytest.mark.parametrize("code", ["de", "zh_CN", "deu", "ksw", "yue", "tok", "sr-Latn", "no", "EN"])
def test_languages(code):
    assert is_language(code)


@pytest.mark.parametrize(
    "code", ["txt", "TXT", "src", "tgt", "trg", "tsv", "csv", "jsonl", "text", "", "rr", "source", "und", "gz", "de en"]
)
def test_what_is_no_language(code):
    assert not is_language(code)


def test_the_data_are_those_of_babel():
    assert json.loads(FILE.read_text(encoding="utf-8")) == from_babel()


def test_every_language_that_babel_names_is_one():
    codes = [code for code in Locale("en").languages if len(code) in (2, 3)]
    assert len(codes) > 500
    assert {code for code in codes if not is_language(code)} <= {"mis", "mul", "und", "zxx"}


@pytest.mark.parametrize(
    ("code", "known", "meant"),
    [
        ("de", ["en", "de"], "de"),
        ("DE", ["de"], "de"),
        ("de-DE", ["de"], "de"),
        ("de_AT", ["de-DE", "de"], "de"),
        ("de", ["de-AT", "de-DE"], "de-AT"),
        ("deu", ["de"], "de"),
        ("de", ["deu_Latn"], "deu_Latn"),
        ("deu-AT", ["de", "de-AT"], "de-AT"),
        ("zh_CN", ["zh-TW", "zh-CN"], "zh-CN"),
        ("zh-CN", ["zh-Hant", "zh-Hans"], "zh-Hans"),
        ("zh_TW", ["zh-Hans", "zh-Hant"], "zh-Hant"),
        ("zh", ["zh-Hant", "zh-Hans"], "zh-Hans"),
        ("zh-TW", ["zh"], None),
        ("zh-yue", ["zh"], None),
        ("pt-PT", ["pt-BR"], None),
        ("pt", ["pt-BR"], "pt-BR"),
        ("sr-Latn", ["sr"], None),
        ("no", ["nb"], "nb"),
        ("nor", ["nb"], "nb"),
        ("tgl_Latn", ["tl"], "tl"),
        ("tl", ["fil"], "fil"),
        ("mo", ["ro"], "ro"),
        ("hbs", ["sh"], "sh"),
        ("sh", ["sr", "sr-Latn"], "sr-Latn"),
        ("sr", ["sh"], None),
        ("cn", ["zh-Hant", "zh"], "zh"),
        ("kor_Hang", ["ko"], "ko"),
        ("zho_Hani", ["zh-Hant", "zh"], "zh"),
        ("zh_TW", ["zh-Hans", "zh-Hani-TW"], "zh-Hani-TW"),
        ("ja", ["ja-Hrkt"], "ja-Hrkt"),
        ("ja-Hira", ["ja_Kana"], "ja_Kana"),
        ("de-Latf", ["de"], "de"),
        ("ur", ["urd_Aran"], "urd_Aran"),
        ("vi-Hani", ["vi"], None),
        ("en-x-plain", ["en", "en-x-plain"], "en-x-plain"),
        ("EN_x_plain", ["en", "en-x-plain"], "en-x-plain"),
        ("en-US", ["en_XX"], "en_XX"),
        ("zt", ["zho_Hans", "zho_Hant"], "zho_Hant"),
        ("pb", ["pt_XX"], "pt_XX"),
        ("source", ["source", "target"], "source"),
        ("Source", ["source", "target"], "source"),
        ("upper", ["rev"], None),
        ("", ["de"], None),
        ("de", [], None),
    ],
)
def test_the_known_code_that_is_meant(code, known, meant):
    assert same_language(code, known) == meant


def test_english_names():
    assert english_name("de") == "German"
    assert english_name("zh_Hans") == english_name("zh-Hans") == "Chinese (Simplified)"
    assert english_name("pt_br") == "Portuguese (Brazil)"
    assert english_name("zh-yue") == "Cantonese"
    assert english_name("fil") == "Filipino"
    assert english_name("xx") == "xx"
    assert english_name("src") == "src", "no Sardinian"
