from checking import require
from greedy import greedy


def test_greedy():
    require("greedy", greedy)
