from checking import require
from masks import causal_mask, padding_mask, target_mask


def test_padding_mask():
    require("padding_mask", padding_mask)


def test_causal_mask():
    require("causal_mask", causal_mask)


def test_target_mask():
    require("target_mask", target_mask)
