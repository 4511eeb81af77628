"""chrF between texts is sacreBLEU's of single sentences."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from headway.evaluation import chrf_between

TEXTS = st.lists(st.text("abc 가é", max_size=15) | st.text(max_size=10), min_size=1, max_size=5)


@given(TEXTS)
@example(["", " ", "a", "a a", "the cat sat on the mat", "the cat sat there"])
def test_it_is_sacrebleus(texts):
    chrf = CHRF()
    wanted = [[chrf.sentence_score(one, [other]).score for other in texts] for one in texts]
    assert chrf_between(texts) == pytest.approx(np.array(wanted), abs=1e-9)
