"""The languages of a recipe: as it gives them, else by the names of its files."""

import re

import pytest

from headway.errors import UserError
from headway.recipe.reading import load_recipe, make_recipe

NAMED = "data.source_language=de", "data.target_language=en"


@pytest.mark.parametrize(
    ("source", "target", "changes", "languages"),
    [
        ("train.de", "train.en", [], ("de", "en")),
        ("train.de.gz", "train.en.xz", [], ("de", "en")),
        ("part-*.de*", "part-*.en.gz*", [], ("de", "en")),
        ("train.nds", "train.eng", [], ("nds", "eng")),
        ("a.ksw_Mymr", "a.eng_Latn", [], ("ksw_Mymr", "eng_Latn")),
        ("a.zh_CN", "a.zh-TW", [], ("zh_CN", "zh-TW")),
        ("newstest.zh_CN", "newstest.ja-JP", [], ("zh_CN", "ja-JP")),
        ("a.txt", "b.txt", NAMED, ("de", "en")),
        ("a.src", "b.tgt", ["data.source_language=txt", "data.target_language=txt"], ("txt", "txt")),
        ("a.en", "b.en", ["data.source_language=en", "data.target_language=en"], ("en", "en")),
        ("a.de", "b.txt", NAMED[1:], ("de", "en")),
        ("a.ko", "b.rr", ["data.target_language=rr"], ("ko", "rr")),
        ("a.tsv", None, NAMED, ("de", "en")),
        ("a.en", "b.fr", NAMED[:1], ("de", "fr")),
    ],
)
def test_languages_by_the_names_of_files(source, target, changes, languages):
    data = recipe_of_files(source, target, changes).data
    assert (data.source_language, data.target_language) == languages


@pytest.mark.parametrize(
    ("source", "target", "changes", "keys"),
    [
        *(
            (*names, [], "data.source_language=... data.target_language=...")
            for names in [
                ("a.txt", "b.txt"),
                ("src-train.txt", "tgt-train.txt"),
                ("a.src", "a.tgt"),
                ("a.src.gz", "a.trg.gz"),
                ("a.en", "b.en"),
                ("a.deu", "b.de"),
                ("a.zh_CN", "b.zh-CN"),
                ("a", "b"),
                ("a.tsv", None),
                ("a.jsonl.gz", None),
            ]
        ),
        ("a.de", "b.txt", [], "data.target_language=..."),
        ("a.raw", "b.en", [], "data.source_language=..."),
        ("a.en", "b.en", ["data.source_language=en"], "data.target_language=..."),
    ],
)
def test_names_of_files_that_tell_no_two_languages_are_asked_about(source, target, changes, keys):
    names = source if target is None else f"{source} and {target}"
    with pytest.raises(UserError, match=rf"^{re.escape(f'{names}: the file names')} .*; set {re.escape(keys)}"):
        recipe_of_files(source, target, changes)


def recipe_of_files(source, target, changes):
    files = {"source": source} if target is None else {"source": source, "target": target}
    return make_recipe({"data": {"train": files, "valid": files}, "training": {"max_steps": 1}}, changes)


COMMON = "bak tok new old dev bin doc seg all val org one two par lab tag sub cat win dos srt pot tab dic lex tex"


@pytest.mark.parametrize("suffix", [*COMMON.split(), "BAK"])
def test_a_common_suffix_is_no_language(suffix):
    with pytest.raises(UserError, match=r"a\.de and b\.\w+: .* set data\.target_language=\.\.\. "):
        recipe_of_files("a.de", f"b.{suffix}", [])


@pytest.mark.parametrize("language", ["'  '", "'>>x<<'", "a b", "'[x]'", "de(1)"])
@pytest.mark.parametrize("key", ["source_language", "target_language", "train.tag"])
def test_a_language_with_white_space_or_brackets_is_refused(key, language):
    with pytest.raises(UserError) as error:
        recipe_of_files("a.de", "b.en", [f"data.{key}={language}"])
    assert f"data.{key}: must be a language code such as ko, without white space and br" in str(error.value)


@pytest.mark.parametrize("place", ["data.", "training.", ""])
@pytest.mark.parametrize(
    ("word", "told"), [("no", "no is false in YAML"), ("on", "yes is true in YAML"), ("1", "1 is no text in YAML")]
)
def test_a_key_that_is_no_text_in_yaml_is_told(place, word, told, tmp_path):
    files = "train: {source: a.en, target: a.de}, valid: {source: b.en, target: b.de}"
    sections = {"data.": f"data: {{{files}%s}}", "training.": "training: {max_steps: 1%s}", "": "tokenizer: {}%s"}
    lines = [
        text % ((f"\n{word}: x" if one == "" else f", {word}: x") if one == place else "")
        for one, text in sections.items()
    ]
    (tmp_path / "r.yaml").write_text("\n".join(lines))
    with pytest.raises(UserError) as error:
        load_recipe(tmp_path / "r.yaml")
    assert str(error.value).endswith(f"r.yaml: {place[:-1] or 'recipe'}: keys must be text: {told}")


@pytest.mark.parametrize(
    ("line", "key", "meaning"),
    [
        ("source_language: no", "data.source_language", "no is false"),
        ("target_language: off", "data.target_language", "no is false"),
        ("target_language: on", "data.target_language", "yes is true"),
        ("train: {source: a.en, target: b.de, tag: no}", "data.train.tag", "no is false"),
        ("valid: [{source: a.en, target: [b.de, no]}]", "data.valid.target.1", "no is false"),
    ],
)
def test_no_in_yaml_is_told_as_what_it_is(line, key, meaning, tmp_path):
    files = {"train": "{source: a.en, target: a.de}", "valid": "{source: b.en, target: b.de}"}
    lines = {**{name: f"{name}: {value}" for name, value in files.items()}, line.partition(":")[0]: line}
    (tmp_path / "r.yaml").write_text("\n  ".join(["data:", *lines.values()]) + "\ntraining: {max_steps: 1}\n")
    with pytest.raises(UserError) as error:
        load_recipe(tmp_path / "r.yaml")
    assert f"r.yaml: {key}: {meaning} in YAML: write " in str(error.value)


def test_no_in_quotes_is_norwegian():
    assert recipe_of_files("a.de", "b.en", ['data.source_language="no"']).data.source_language == "no"
    with pytest.raises(UserError, match=r"^data\.source_language=no: data\.source_language: no is false in YAML"):
        recipe_of_files("a.de", "b.en", ["data.source_language=no"])
