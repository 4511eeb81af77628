"""What a message shows of a difference."""

from headway.storage.changes import SHOWN, first_change


def test_the_leaf_is_named_with_both_values():
    before = {"data": {"filters": {"words": [1, 9], "copies": True}}, "seed": 1}
    assert first_change(before, before) is None
    now = {"data": {"filters": {"words": [3, 9], "copies": True}}, "seed": 2}
    assert first_change(before, now) == "data.filters.words ([1, 9] -> [3, 9])"
    assert first_change(before, {"data": before["data"]}) == "seed (1 -> null)"


def test_long_values_are_shown_where_they_differ():
    before = {"files": [f"part-{number}.de" for number in range(50)]}
    now = {"files": [*before["files"][:40], "other.de"]}
    found = first_change(before, now)
    assert "part-40" in found
    assert "other.de" in found
    assert len(found) < 3 * SHOWN
