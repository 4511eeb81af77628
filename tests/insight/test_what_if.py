"""Edits against truths that know nothing of them: what the paper's equations say without a part."""

from types import SimpleNamespace
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.properties.models import EXACT, PAD, SEEDS, attention_by, configs, random_model, random_words

from headway.decoding import TorchEngine, beam_search, greedy
from headway.errors import UserError
from headway.insight.editing import RecomputingEngine, edited_model, prefix_logits
from headway.insight.recording import record_pass, recording_copy
from headway.insight.what_if import (
    HeadOff,
    LookAheadOff,
    PositionsOff,
    ScalingOff,
    SwapWords,
    edited_text,
    read_edits,
    usual_cases,
)
from headway.model import ModelConfig

SIZES = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 8}
MODELS = configs(**SIZES)


def ids(config, source_words=5, target_words=4):
    return torch.tensor([[*random_words(source_words), config.eos_id]]), torch.tensor(
        [[config.bos_id, *random_words(target_words)]]
    )


def logits(model, source, target):
    with torch.inference_mode():
        return model(source, target)


def heads_of(config, kind):
    return config.num_heads if kind == "encoder" else config.decoder_num_heads or config.num_heads


@given(MODELS, SEEDS, st.sampled_from(["encoder", "decoder", "cross"]), st.integers(0, 1), st.data())
def test_a_head_that_is_off_gives_nothing(config, seed, kind, layer, data):
    head = data.draw(st.integers(0, heads_of(config, kind) - 1))
    model = random_model(config, seed)
    source, target = ids(config)
    before = logits(model, source, target)
    found = logits(edited_model(model, [HeadOff(attention=kind, layer=layer, head=head)]), source, target)
    assert torch.equal(logits(model, source, target), before)  # the model itself is as it was
    stack = model.encoder if kind == "encoder" else model.decoder
    attention = getattr(stack.layers[layer], "cross_attention" if kind == "cross" else "self_attention")
    size = config.d_model // attention.num_heads

    def silence(_, inputs):
        return (inputs[0].unflatten(-1, (-1, size)).index_fill(-2, torch.tensor([head]), 0.0).flatten(-2),)

    attention.output.register_forward_pre_hook(silence)
    torch.testing.assert_close(found, logits(model, source, target), **EXACT)
    assert not torch.allclose(found, before, atol=1e-9)


@given(MODELS, SEEDS, st.permutations(range(5)))
def test_without_positions_the_order_of_the_source_makes_no_difference(config, seed, order):
    model = edited_model(random_model(config, seed), [PositionsOff()])
    source, target = ids(config)
    shuffled = torch.cat([source[:, :-1][:, order], source[:, -1:]], dim=1)
    torch.testing.assert_close(logits(model, shuffled, target), logits(model, source, target), **EXACT)
    seen = {}
    logits(recording_copy(model, lambda name, tensor: seen.update({name: tensor})), source, target)
    with torch.inference_mode():
        assert torch.equal(seen["decoder.input"], model.target_norm(seen["target_embedding.scaled"]))


@given(MODELS, SEEDS)
def test_without_the_look_ahead_mask_each_token_sees_all(config, seed):
    model = random_model(config, seed)
    edited = edited_model(model, [LookAheadOff()])
    source, target = ids(config)
    with torch.inference_mode():
        memory = model.encode(source)
        wanted = model.output(model.decode(target, memory))
        torch.testing.assert_close(logits(edited, source, target), wanted, **EXACT)
        torch.testing.assert_close(edited.encode(source), memory, **EXACT)
        given = []
        [found] = greedy(RecomputingEngine(edited), source, [6])
        while len(given) < len(found.ids) + 1:
            read = torch.tensor([[config.bos_id, *given]])
            last = model.output(model.decode(read, memory))[0, -1]
            last[[one for one in (PAD, config.bos_id) if one != config.eos_id]] = -torch.inf
            if not given:
                last[config.eos_id] = -torch.inf
            given.append(int(last.argmax()))
    assert found.ids == given[: len(found.ids)]
    assert found.stopped == "max_length" or given[-1] == config.eos_id


@given(MODELS, SEEDS)
def test_without_scaling_scores_are_products(config, seed):
    model = random_model(config, seed)
    source, target = ids(config)
    found = logits(edited_model(model, [ScalingOff()]), source, target)
    with attention_by("readable"), patch("headway.model.attention.math", SimpleNamespace(sqrt=lambda _: 1.0)):
        wanted = logits(model, source, target)
    torch.testing.assert_close(found, wanted, **EXACT)


@given(MODELS, SEEDS, st.sampled_from([1, 3]))
def test_an_engine_that_recomputes_finds_what_the_cached_one_does(config, seed, width):
    edits = [HeadOff(attention="decoder", layer=1, head=0), PositionsOff(), ScalingOff()]
    model = edited_model(random_model(config, seed), edits)
    source = torch.cat([ids(config)[0] for _ in range(2)])
    found = beam_search(RecomputingEngine(model), source, [6, 9], beam_size=width, n_best=width)
    wanted = beam_search(TorchEngine(model, dtype=torch.float64), source, [6, 9], beam_size=width, n_best=width)
    for ours, theirs in zip(found, wanted, strict=True):
        assert [one.ids for one in ours] == [one.ids for one in theirs]
        assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], abs=1e-4)


@given(MODELS, SEEDS)
def test_what_sees_ahead_is_scored_by_what_it_had_read(config, seed):
    """Of a model without the look-ahead mask: each token by a pass over those before it, alone and beside padding."""
    model = random_model(config, seed)
    source, target = ids(config)
    given = [*target[0, 1:].tolist(), config.eos_id]
    with torch.inference_mode():
        memory = model.encode(source)
        steps = [model.output(model.decode(target[:, : end + 1], memory))[0, -1] for end in range(len(given))]
    wanted = [float(logits.float().log_softmax(-1)[token]) for logits, token in zip(steps, given, strict=True)]
    edited = edited_model(model, [LookAheadOff()])
    rows = [config.bos_id, *given, PAD, PAD], [config.bos_id, given[0], config.eos_id, *[PAD] * len(given)]
    pairs = torch.tensor(rows)
    logits = prefix_logits(edited, source.expand(2, -1), pairs[:, :-1])
    found = logits.float().log_softmax(-1).gather(2, pairs[:, 1:, None])[:, :, 0]
    assert found[0, : len(given)].tolist() == pytest.approx(wanted, abs=1e-4)
    assert found[1, 0].item() == pytest.approx(wanted[0], abs=1e-4)
    arrays = record_pass(edited, source[0].tolist(), given, rereads=True)
    torch.testing.assert_close(torch.from_numpy(arrays["logits"]), torch.stack(steps).float(), atol=1e-4, rtol=1e-4)
    assert arrays["decoder.layers.0.self_attention.weights"][:, 0, -1].min() > 0.0  # the last step's pass sees all


@given(MODELS, SEEDS)
def test_edited_models_share_what_is_not_changed(config, seed):
    model = random_model(config, seed)
    for edit, changed in (
        (HeadOff(attention="cross", layer=1, head=0), {"decoder.layers.1.cross_attention.output.weight"}),
        (PositionsOff(), set()),
        (LookAheadOff(), set()),
        (ScalingOff(), {name for name in dict(model.named_parameters()) if ".query." in name}),
    ):
        own = {id(one) for one in model.parameters()}
        edited = edited_model(model, [edit])
        assert {name for name, one in edited.named_parameters() if id(one) not in own} == changed


@pytest.mark.parametrize(
    ("text", "first", "second", "swapped"),
    [
        ("Ein  kleiner Hund läuft.", 1, 2, "Ein  Hund kleiner läuft."),
        ("Ein Hund läuft.", 2, 0, "läuft. Hund Ein"),
        (" a b ", 0, 1, " b a "),
        ("a b", 1, 1, "a b"),
        ("나는 집에 간다", 0, 2, "간다 집에 나는"),
    ],
)
def test_words_change_places_and_spaces_stay(text, first, second, swapped):
    assert edited_text(text, [SwapWords(first=first, second=second)]) == swapped


def test_edits_from_json_and_back():
    document = [
        {"kind": "head_off", "attention": "cross", "layer": 2, "head": 0},
        {"kind": "positions_off"},
        {"kind": "look_ahead_off"},
        {"kind": "scaling_off"},
        {"kind": "swap_words", "first": 0, "second": 1},
    ]
    edits = read_edits(document)
    assert [edit.model_dump() for edit in edits] == document
    assert [type(edit) for edit in edits] == [HeadOff, PositionsOff, LookAheadOff, ScalingOff, SwapWords]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"kind": "positions_off"}, "edits: must be a valid list"),
        ([{"kind": "dropout_off"}], r"edits\.0: .*'dropout_off'.*'positions_off'"),
        ([{"layer": 1}], r"edits\.0: .*kind"),
        ([{"kind": "head_off", "attention": "cross", "layer": 0}], r"edits\.0\.head_off\.head: Field required"),
        ([{"kind": "head_off", "attention": "self", "layer": 0, "head": 0}], r"attention: must be 'encoder'"),
        ([{"kind": "head_off", "attention": "cross", "layer": -1, "head": 0}], "must be at least 0"),
        ([{"kind": "positions_off", "side": "source"}], r"side: Extra inputs are not permitted"),
    ],
)
def test_json_that_is_no_list_of_edits_is_one_line(document, message):
    with pytest.raises(UserError, match=message) as caught:
        read_edits(document)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (HeadOff(attention="encoder", layer=2, head=0), "encoder attention has no layer 2, only 2, from 0"),
        (HeadOff(attention="cross", layer=0, head=4), "cross attention has no head 4, only 4, from 0"),
    ],
)
def test_what_the_model_does_not_have_can_not_be_switched_off(edit, message):
    config = ModelConfig(12, 12, num_heads=2, decoder_num_heads=4, d_ff=8, **SIZES)
    with pytest.raises(UserError, match=message):
        edited_model(random_model(config, 1), [edit])
    with pytest.raises(UserError, match="no word 3, the text has 2"):
        edited_text("a b", [SwapWords(first=0, second=3)])


def test_the_usual_cases_are_every_head_and_part_and_pairs_of_words():
    config = ModelConfig(12, 12, num_heads=2, decoder_num_heads=4, d_ff=8, **SIZES)
    cases = usual_cases(config, "a b c")
    assert len(cases) == 7 + 2 * 2 + 2 * 4 + 2 * 4 + 3  # three parts make seven combinations
    assert len({repr(case) for case in cases}) == len(cases)
    model = random_model(config, 1)
    for case in cases:
        edited_model(model, case)
        edited_text("a b c", case)
    long = usual_cases(config, " ".join("abcdefghijkl"))
    swaps = [edit for edit, *_ in long if isinstance(edit, SwapWords)]
    assert [(edit.first, edit.second) for edit in swaps] == [(place, place + 1) for place in range(11)]
