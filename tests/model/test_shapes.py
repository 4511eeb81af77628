"""The shapes of weights without torch are those of the model itself."""

import torch
from hypothesis import given
from tests.properties.models import configs

from headway.model import Transformer
from headway.model.shapes import weight_shapes


@given(configs())
def test_they_are_those_of_the_model(config):
    with torch.device("meta"):
        model = Transformer(config)
    assert weight_shapes(config) == {name: tuple(one.shape) for name, one in model.named_parameters()}
