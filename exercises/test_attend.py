from attend import attend
from checking import require


def test_attend():
    require("attend", attend)


def test_attend_with_a_mask():
    require("attend with a mask", attend)
