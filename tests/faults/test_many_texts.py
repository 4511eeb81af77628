"""The properties of tests/text, over very many inputs."""

from hypothesis import given, settings

from tests.text.test_corpus import BYTES, PAIRS, WAYS, check_any_bytes, check_any_lines
from tests.text.test_tokenizer import MARKS, TEXTS, check_any_text

MANY = settings(max_examples=20_000, deadline=None)


@MANY
@given(source=BYTES, target=BYTES)
def test_any_bytes_are_paired_rightly_or_named(tmp_path_factory, source, target):
    check_any_bytes(tmp_path_factory.getbasetemp(), source, target)


@MANY
@given(pairs=PAIRS, source_way=WAYS, target_way=WAYS)
def test_whatever_the_lines_hold_and_however_they_are_written_each_has_its_partner(
    tmp_path_factory, pairs, source_way, target_way
):
    check_any_lines(tmp_path_factory.getbasetemp(), pairs, source_way, target_way)


@MANY
@given(text=TEXTS | MARKS)
def test_any_text_comes_back_and_equivalent_texts_are_the_same(text):
    check_any_text(text)
