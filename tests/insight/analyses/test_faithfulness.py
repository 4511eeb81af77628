"""Deletion curves against models that don't know the deleted tokens."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.insight.analyses.erasing import MODELS, TARGETS, WORDS, logarithms, read, without
from tests.properties.models import SEEDS, random_model

from headway.insight.analyses.faithfulness import faithfulness
from headway.insight.analyses.reading import Reading
from headway.model import ModelConfig


@settings(max_examples=15)
@given(MODELS, SEEDS, WORDS, TARGETS, st.randoms(use_true_random=False))
def test_a_curve_is_the_probability_without_the_first_of_the_ranking(config, seed, words, target, randomness):
    model, reading = read(config, seed, words, target)
    steps, count = len(reading.given), len(words)
    ranks = [randomness.sample(range(count + 1), count + 1) for _ in range(steps)]  # <eos> among them
    foils = [4 + id_ % 8 for id_ in reading.given.tolist()]
    found = faithfulness(model, reading, {"some": np.array(ranks, dtype=np.float32)}, foils)
    assert found.erased == sorted({0, count, *(one for one in (1, 2, 4) if one < count)})
    for point, deleted in enumerate(found.erased):
        tokens, against = [], []
        for step, row in enumerate(ranks):
            order = sorted(range(count), key=lambda place, row=row: -row[place])
            with without(model, [words[place] for place in order[:deleted]]):
                both = logarithms(model, reading)[step, [reading.given[step], foils[step]]].exp()
            tokens.append(float(both[0]))
            against.append(float(both[0] / both.sum()))
        np.testing.assert_allclose(found.probability.curves["some"][point], np.mean(tokens), atol=1e-6)
        np.testing.assert_allclose(found.against_foil.curves["some"][point], np.mean(against), atol=1e-6)
    for one in (found.probability, found.against_foil):
        assert set(one.curves) == {"some", "random"}
        assert one.areas["some"] == np.mean(one.curves["some"][1:])
        ends = [[curve[0], curve[-1]] for curve in one.curves.values()]
        np.testing.assert_allclose(ends[0], ends[1], atol=1e-9)


def test_the_order_that_the_truth_gives_falls_faster_than_a_random_one():
    """A decoder that reads one place alone: its keys are the positions."""
    sizes = {"d_model": 8, "num_heads": 1, "d_ff": 9, "encoder_layers": 0, "decoder_layers": 1}
    model = random_model(ModelConfig(12, 12, max_length=32, share_embeddings="none", **sizes), 1)
    place, words = 2, [4, 5, 6, 7, 8, 9]
    with torch.no_grad():
        attention = model.decoder.layers[0].cross_attention
        position = model.source_positions(len(words) + 1)[place]
        attention.query.weight.zero_()
        attention.query.bias.copy_(1e3 * position)
        attention.key.weight.copy_(torch.eye(8))
        attention.key.bias.zero_()
        model.source_embedding.weight *= 0.05
        attention.output.weight *= 50
    reading = Reading.of(model, [*words, 3], [3])
    before = logarithms(model, reading)
    with without(model, [words[place]]):
        best = int((before - logarithms(model, reading))[0].argmax())  # what loses most with the place
    reading = Reading.of(model, [*words, 3], [best])
    truth = np.zeros((1, len(words) + 1), dtype=np.float32)
    truth[0, place] = 1.0
    found = faithfulness(model, reading, {"truth": truth, "opposite": -truth}, [4 if best != 4 else 5])
    areas = found.probability.areas
    curve = found.probability.curves["truth"]
    np.testing.assert_allclose(curve[1:], curve[-1], atol=1e-9)  # once the place is gone, nothing is left to lose
    assert areas["truth"] < areas["random"] < areas["opposite"]
