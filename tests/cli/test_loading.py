"""What is read and worked on together is bounded, by lines and by characters."""

from headway.cli.loading import CHARACTERS_AT_ONCE, LINES_AT_ONCE, chunks


def test_chunks_keep_the_order_and_both_bounds():
    lines = ["a"] * 5000 + ["b" * (CHARACTERS_AT_ONCE // 2)] * 5 + ["c"]
    found = list(chunks(lines, len))
    assert [line for chunk in found for line in chunk] == lines
    assert [len(chunk) for chunk in found[:2]] == [LINES_AT_ONCE] * 2
    assert max(sum(map(len, chunk)) for chunk in found) < 1.6 * CHARACTERS_AT_ONCE
    assert [len(chunk) for chunk in chunks(lines[:3], len, 1)] == [1, 1, 1]
    assert list(chunks([], len)) == []
