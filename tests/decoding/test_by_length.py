"""Batches by length: every item once, in order of length, each batch as large as it may be."""

from itertools import chain, pairwise

from hypothesis import given
from hypothesis import strategies as st

from headway.decoding.searcher import batches_by_length

PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30)


@given(PAIRS, st.integers(1, 6), st.integers(0, 80), st.booleans())
def test_all_in_order_and_each_batch_as_large_as_it_may_be(lengths, most, places, longest_first):
    def fits(count, longest):
        return count <= most and count * sum(longest) <= places

    def may_be(batch):
        return fits(len(batch), [max(lengths[i][side] for i in batch) for side in (0, 1)])

    numbers = range(len(lengths))
    batches = batches_by_length(numbers, lengths.__getitem__, fits, longest_first=longest_first)
    sign = -1 if longest_first else 1
    wanted = sorted(numbers, key=lambda i: (sign * lengths[i][0], sign * lengths[i][1], i))
    assert list(chain.from_iterable(batches)) == wanted
    assert all(may_be(batch) for batch in batches if len(batch) > 1)
    assert not any(may_be([*batch, following[0]]) for batch, following in pairwise(batches))
