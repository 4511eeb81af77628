from checking import require
from positions import sinusoidal_table


def test_sinusoidal_table():
    require("sinusoidal_table", sinusoidal_table)
