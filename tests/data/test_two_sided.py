"""Files that hold both sides in the forms that spreadsheets, pandas and Hugging Face write."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.data.corpus import CorpusFiles, read_chunks
from headway.data.two_sided import HEAD
from headway.errors import UserError

DE_EN = ("de", "en")


def pairs_of(path, languages=("", "")):
    """The pairs with their lines, which chunks must hold, too."""
    found = list(CorpusFiles([path], [], languages).pairs())
    in_chunks = [pair for chunk in read_chunks([CorpusFiles((path,), (), languages)]) for pair in chunk.pairs()]
    assert in_chunks == found
    return [(pair.source, pair.target, pair.line) for pair in found]


def table(folder, *rows):
    (folder / "a.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return folder / "a.tsv"


def objects(folder, *documents):
    (folder / "a.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in documents), encoding="utf-8")
    return folder / "a.jsonl"


@pytest.mark.parametrize(
    ("row", "languages", "data", "pair"),
    [
        ("source\ttarget", DE_EN, "ja\tyes", ("ja", "yes")),
        ("\ufeffSource\tTarget", DE_EN, "ja\tyes", ("ja", "yes")),
        ("src\ttgt", ("", ""), "ja\tyes", ("ja", "yes")),
        ("target_text\tsource_text", DE_EN, "yes\tja", ("ja", "yes")),
        ("text\ttranslation", DE_EN, "ja\tyes", ("ja", "yes")),
        ("de\ten", DE_EN, "ja\tyes", ("ja", "yes")),
        ("en\tde", DE_EN, "yes\tja", ("ja", "yes")),
        ("en\tde", ("source", "target"), "yes\tja", ("yes", "ja")),
        ("German\tEnglish", ("de-DE", "en_GB"), "ja\tyes", ("ja", "yes")),
        ("eng\tdeu", DE_EN, "yes\tja", ("ja", "yes")),
        ("zh_TW\ten", ("zh", "en"), "x\ty", ("x", "y")),
        ("id\tde\ten", DE_EN, "7\tja\tyes", ("ja", "yes")),
        ("id\tde\ten", ("", ""), "7\tja\tyes", ("ja", "yes")),
        ("score\ttarget\tsource", DE_EN, "0.7\tyes\tja", ("ja", "yes")),
        ('"source"\t"target"', DE_EN, '"ja"\t"yes"', ("ja", "yes")),
    ],
)
def test_a_first_row_of_names_is_no_pair_and_says_which_columns(tmp_path, row, languages, data, pair):
    path = table(tmp_path, row, data)
    assert pairs_of(path, languages) == [(*pair, 2)]
    [notice, *_] = CorpusFiles([path], [], languages).notices()
    assert notice.startswith(f"{path}: the first row names the columns: `")


SOURCES = ["source", "src", "Source Text", "src_text", "source_sentence", "text", "sentence", "original"]
TARGETS = ["target", "tgt", "trg", "Target Text", "tgt_text", "target_sentence", "translation", "reference", "ref"]


@pytest.mark.parametrize("source", SOURCES)
def test_names_that_people_give_to_columns_are_known(tmp_path, source):
    for target in TARGETS:
        assert pairs_of(table(tmp_path, f"{target}\t{source}", "yes\tja")) == [("ja", "yes", 2)]


@pytest.mark.parametrize(
    ("row", "languages"),
    [
        ("es\tit", DE_EN),  # codes of other languages are words
        ("man\tman", ("", "")),
        ("Source\tQuelle", DE_EN),
        ("de\tEin Hund läuft.", DE_EN),
        ("no\tno", ("no", "en")),
        ("text\tsentence", DE_EN),
        ("target\ttarget", DE_EN),
        ("source\t", DE_EN),
    ],
)
def test_a_first_row_of_words_is_a_pair(tmp_path, row, languages):
    path = table(tmp_path, row, "ja\tyes")
    assert pairs_of(path, languages) == [(*row.split("\t"), 1), ("ja", "yes", 2)]
    assert list(CorpusFiles([path], [], languages).notices()) == []


def test_names_may_stand_in_the_first_row_alone(tmp_path):
    assert pairs_of(table(tmp_path, "", "source\ttarget")) == [("", "", 1), ("source", "target", 2)]
    assert pairs_of(table(tmp_path, "a\tb", "source\ttarget")) == [("a", "b", 1), ("source", "target", 2)]


def test_rows_below_names_have_as_many_columns(tmp_path):
    with pytest.raises(UserError, match=r"a\.tsv, line 3: has 3 columns, but the lines before have 2"):
        pairs_of(table(tmp_path, "source\ttarget", "a\tb", "c\td\te"))


TEXTS = st.text(st.sampled_from('ab"\t .,'), min_size=1).map(lambda text: f"{text}.")


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=12), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_what_csv_writes_is_read_as_it_was(tmp_path_factory, texts, quoting):
    """Python's csv module quotes as pandas and spreadsheets do. The first text leaves no doubt that fields are."""
    texts = [('Er sagt: "Ja"', "He says:\tyes"), *texts]
    written = io.StringIO()
    csv.writer(written, delimiter="\t", quoting=quoting, lineterminator="\n").writerows(texts)
    path = tmp_path_factory.getbasetemp() / "a.tsv"
    path.write_text(written.getvalue(), encoding="utf-8", newline="")
    assert [pair[:2] for pair in pairs_of(path)] == texts
    assert list(CorpusFiles([path], []).notices()) == [
        f"{path}: fields are quoted, so quotation marks around them and doubled ones inside are no text"
    ]


@pytest.mark.parametrize(
    "rows",
    [
        ['"Ja", sagte er.\t"Yes," he said.'],
        ['"Hallo."\t"Hello."', "ja\tyes"],
        ['"Hallo."\t"Hello."'] * 9,
        ['"Er sagte ""Ja""."\tx', 'Der "Hund"\tx'],  # a quoted file would have quoted this, too
        ['"Er sagte ""Ja""."\tx', '"Das ist\tx'],
        ['"\t"'],
        ['"Ja" und\t', "\t"],
    ],
)
def test_quotation_marks_of_text_stay(tmp_path, rows):
    path = table(tmp_path, *rows)
    assert [pair[:2] for pair in pairs_of(path)] == [tuple(row.split("\t")) for row in rows]
    assert list(CorpusFiles([path], []).notices()) == []


def test_marks_after_a_head_of_blank_lines_are_text(tmp_path):
    """Nothing shows there that fields are quoted."""
    path = table(tmp_path, *[""] * HEAD, '"a"\t"b"')
    assert pairs_of(path)[-1] == ('"a"', '"b"', HEAD + 1)


def test_ten_rows_of_nothing_but_quoted_fields_are_quoted(tmp_path):
    assert [pair[:2] for pair in pairs_of(table(tmp_path, *['"Hallo."\t"Hello."'] * 10))] == [("Hallo.", "Hello.")] * 10


def test_a_line_break_within_a_quoted_field_is_named(tmp_path):
    rows = ['"Er sagte ""Ja""."\tx'] * 1000
    with pytest.raises(UserError, match=r"a\.tsv, line 1001: has a quoted text without its end; is there a line break"):
        pairs_of(table(tmp_path, *rows, 'ja\t"yes', 'and no"\tx'))


@pytest.mark.parametrize(
    ("document", "languages"),
    [
        ({"translation": {"de": "ja", "en": "yes"}}, DE_EN),
        ({"translation": {"en": "yes", "de": "ja"}}, DE_EN),
        ({"id": "7", "translation": {"en": "yes", "de": "ja", "fr": "oui"}}, DE_EN),
        ({"translation": {"de": "ja", "en": "yes"}}, ("source", "target")),
        ({"translation": {"de": "ja", "en": "yes"}}, ("de", "mul")),
        ({"translation": {"de_DE": "ja", "en_XX": "yes"}}, DE_EN),
        ({"en": "yes", "de": "ja"}, DE_EN),
        ({"id": "7", "en": "yes", "de": "ja"}, DE_EN),
        ({"de": "ja", "en": "yes"}, ("", "")),
    ],
)
def test_keys_that_are_languages_say_source_and_target(tmp_path, document, languages):
    other = {key: value if isinstance(value, str) else dict(reversed(value.items())) for key, value in document.items()}
    path = objects(tmp_path, document, other)
    assert pairs_of(path, languages) == [("ja", "yes", 1), ("ja", "yes", 2)]
    [notice] = CorpusFiles([path], [], languages).notices()
    assert notice.startswith(f"{path}: `de")
    assert "is the source and `en" in notice


@pytest.mark.parametrize("names", [("de", "en"), ("src", "tgt"), ("source", "target")])
def test_a_first_object_without_text_tells_the_keys_and_is_named(tmp_path, names):
    source, target = names
    path = objects(
        tmp_path, {"translation": {source: None, target: "b"}}, {"translation": {source: "ja", target: "yes"}}
    )
    with pytest.raises(
        UserError, match=rf"line 1: is not an object with texts `{source}` and `{target}` in `translation`"
    ):
        pairs_of(path, DE_EN)


def test_files_that_were_joined_have_byte_order_marks_in_them(tmp_path):
    path = tmp_path / "joined.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"source": "ja", "target": "yes"}\n' * 2)
    assert pairs_of(path, ("", "")) == [("ja", "yes", 1), ("ja", "yes", 2)]


def test_source_and_target_come_before_languages(tmp_path):
    path = objects(tmp_path, {"en": "x", "de": "y", "source": "ja", "target": "yes"})
    assert pairs_of(path, DE_EN) == [("ja", "yes", 1)]
    assert list(CorpusFiles([path], [], DE_EN).notices()) == []


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([{"translation": {"de": "a", "en": "b", "fr": "c"}}], "has de, en, fr in `translation`, of which source and"),
        ([{"translation": {"fr": "a", "es": "b"}}], "has fr, es in `translation`"),
        ([{"translation": {"de": 1}}], "line 1: is not an object with texts `source` and `target`"),
        ([{"translation": "x"}], "line 1: is not an object with texts `source` and `target`"),
        ([{"fr": "a", "es": "b"}], "line 1: is not an object with texts `source` and `target`"),
        (
            [{"translation": {"de": "a", "en": "b"}}, {"de": "a", "en": "b"}],
            "line 2: is not an object with texts `de` and `en` in `translation`",
        ),
        ([{"de": "a", "en": "b"}, {"de": "a", "en": None}], "line 2: is not an object with texts `de` and `en`$"),
    ],
)
def test_keys_that_can_not_be_told(tmp_path, documents, message):
    path = objects(tmp_path, *documents)
    with pytest.raises(UserError, match=message):
        pairs_of(path, ("", "") if "fr" in str(documents) and "de" in str(documents) else DE_EN)
