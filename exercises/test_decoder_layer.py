from checking import require
from decoder_layer import decoder_layer


def test_decoder_layer():
    require("decoder_layer", decoder_layer)
