"""Work is never lost: twenty kills, at least five of them inside a save, change not a bit."""

import pytest

from tests.faults.killing import Kills, check_exact_resume


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_twenty_kills_change_nothing(corpus, tmp_path, precision):
    kills = check_exact_resume(corpus, tmp_path, 240, precision, Kills(total=20, inside_a_save=8), seed=5)
    print(f"{precision}: {kills}")
