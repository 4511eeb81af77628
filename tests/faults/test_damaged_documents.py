"""1,000 damaged files of each kind."""

import pytest

from headway.documents.kinds import KINDS
from tests.documents import test_damaged


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_one_line(kind, monkeypatch):
    monkeypatch.setattr(test_damaged, "COUNT", 1000)
    test_damaged.test_damage_is_one_line(kind)
