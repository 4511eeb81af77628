"""What heads do: heads that do one thing alone have the figures that one would write down."""

import numpy as np
import pytest

from headway.insight.maps import measure_heads
from headway.storage import Aligner
from headway.translator.aligning import alignment


def looking_at(keys, count) -> np.ndarray:
    """A map whose row i looks at keys[i] alone; None: everywhere alike."""
    rows = [np.full(count, 1.0 / count) if key is None else np.eye(count)[key] for key in keys]
    return np.array(rows, dtype=np.float32)


def test_a_head_for_each_measure():
    size = 4
    heads = [
        looking_at([0, 0, 1, 2], size),  # the token before; the first has none and looks at itself
        looking_at([1, 2, 3, 3], size),  # the token after
        looking_at([0, 1, 2, 3], size),  # itself
        looking_at([None] * 4, size),
    ]
    [[before, after, itself, even]] = measure_heads("encoder", np.stack(heads)[None])
    assert (before.previous, before.next, before.same, before.entropy) == (1.0, 0.0, 0.25, 0.0)
    assert (after.previous, after.next, after.same) == (0.0, 1.0, 0.25)
    assert (after.control, itself.control) == (0.5, 0.25)
    assert (itself.same, itself.previous, itself.next) == (1.0, 0.0, 0.0)
    assert even.entropy == pytest.approx(2.0)
    assert (even.previous, even.same, even.control, even.aligned) == (0.25, 0.25, 0.25, None)


def test_the_decoders_control_symbol_is_its_first_key():
    [[head]] = measure_heads("decoder", looking_at([0, 0, 0], 3)[None, None])
    assert (head.control, head.previous, head.same) == (1.0, 0.5, pytest.approx(1 / 3))


def test_aligned_is_where_the_others_together_look_and_never_the_end():
    """Three target tokens, four source tokens; two heads agree on 2, 0, 1, though both give <eos> a good deal."""
    agreeing = 0.55 * looking_at([2, 0, 1], 4) + 0.45 * looking_at([3, 3, 3], 4)
    other = 0.1 * looking_at([1, 1, 2], 4) + 0.9 * looking_at([3, 3, 3], 4)
    maps = np.stack([np.stack([agreeing, agreeing]), np.stack([agreeing, other])]).astype(np.float32)
    assert alignment(maps) == [2, 0, 1]
    [[first, _], [_, last]] = measure_heads("cross", maps)
    assert first.aligned == pytest.approx(0.55)
    assert first.control == pytest.approx(0.45)
    assert first.next == pytest.approx(0.45 / 3)  # of the token aligned with 2, whose next is <eos>
    assert last.aligned == pytest.approx(0.0)
    assert last.next == pytest.approx((0.9 + 0.1 + 0.1) / 3)
    assert last.previous == pytest.approx(0.05)  # of the two that have a token before theirs
    assert first.same is None


def test_a_head_has_no_say_in_what_it_is_measured_by():
    """The first head alone gives key 1 the most of all; the others together look at key 0."""
    loud, quiet = looking_at([1, 1], 3), 0.4 * looking_at([0, 0], 3) + 0.6 * looking_at([None] * 2, 3)
    maps = np.stack([loud, quiet])[None].astype(np.float32)
    assert alignment(maps) == [1, 1]
    [[first, second]] = measure_heads("cross", maps)
    assert (first.aligned, first.next) == (0.0, 1.0)
    assert second.aligned == pytest.approx(0.2)


def test_the_diagonal_goes_from_corner_to_corner():
    [[head, _]] = measure_heads("cross", np.stack([looking_at([0, 2, 4], 5), looking_at([0, 0, 0], 5)])[None])
    assert head.diagonal == 1.0
    [[own]] = measure_heads("encoder", looking_at([0, 1], 2)[None, None])
    assert own.diagonal is None


def test_a_choice_of_layer_head_and_step_aligns():
    """Layer 1 head 0 gives 2, 0, nothing; the step that reads a token is the one after."""
    chosen = looking_at([3, 2, 0, 3], 4)
    maps = np.stack([np.stack([looking_at([1] * 4, 4)] * 2), np.stack([chosen, looking_at([0] * 4, 4)])])
    assert alignment(maps, Aligner(1, 0, eos_is_nothing=True)) == [None, 2, 0, None]
    assert alignment(maps, Aligner(1, 0, shifted=True, eos_is_nothing=True)) == [2, 0, None, None]
    assert alignment(maps, Aligner(0)) == [1, 1, 1, 1]
    _, [head, other] = measure_heads("cross", maps, Aligner(1, 0, eos_is_nothing=True))
    assert (head.aligned, head.control, other.aligned) == (0.0, 0.5, 0.5)  # the head itself is measured by the others
    assert other.previous == 0.0  # of the one token whose aligned token has one before it
    shifted, _ = measure_heads("cross", maps, Aligner(1, 0, True, True))[1]
    assert shifted.aligned == 0.0


def test_a_single_token_has_nothing_before_or_after():
    [[head]] = measure_heads("encoder", np.ones((1, 1, 1, 1), dtype=np.float32))
    assert (head.previous, head.next, head.same, head.control, head.entropy) == (0.0, 0.0, 1.0, 1.0, 0.0)
    [[cross]] = measure_heads("cross", np.ones((1, 1, 2, 1), dtype=np.float32))
    assert cross.aligned == 1.0
