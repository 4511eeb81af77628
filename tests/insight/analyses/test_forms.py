"""The JSON form and the text of each analysis, byte by byte, from results that were written by hand."""

import json
from pathlib import Path

import numpy as np
import pytest

from headway.insight.analyses import NAMES, Analyses, names_by_sentence, request_class
from headway.insight.analyses.analysis import TokenNames
from headway.insight.analyses.contrast import Contrast
from headway.insight.analyses.contributions import Contributions
from headway.insight.analyses.decoder_lens import DecoderLens
from headway.insight.analyses.erasure import Erasure
from headway.insight.analyses.faithfulness import DeletionCurves, Faithfulness
from headway.insight.analyses.head_importance import HeadImportance
from headway.insight.analyses.logit_lens import LogitLens
from headway.insight.analyses.patching import Patching
from headway.insight.what_if import Outcome
from headway.page.document import plain

GOLDEN = Path(__file__).parents[2] / "golden" / "analyses"
NAMES_OF_TOKENS = TokenNames(["Hund", "<eos>"], ["dog", "<eos>"], ["<pad>", "▁dog", "▁cat", "<eos>"])
MATRIX = np.array([[0.9, 0.1], [0.25, 0.75]], dtype=np.float32)
STACK = np.stack([MATRIX, 1 - MATRIX])
CURVES = DeletionCurves({"erasure": [1.0, 0.5], "random": [1.0, 0.75]}, {"erasure": 0.5, "random": 0.75})
FOUND = Analyses(
    contributions=Contributions(MATRIX, 1 - MATRIX, STACK, STACK, STACK, [0.9, 1 / 3]),
    erasure=Erasure(MATRIX, [0, None], [1.5, float("inf")]),
    contrast=Contrast([2, 1], [4.8200004, -0.5], MATRIX),
    logit_lens=LogitLens(MATRIX, [[[1, 2], [3]], [[2, 1], [3]]], [[[0.75, 0.125], [1.0]], [[0.5, 0.25], [1.0]]]),
    decoder_lens=DecoderLens(MATRIX, [Outcome("cat", -15.36), Outcome("dog", -4.04)]),
    patching=Patching("Katze", 0, 1, 2, 3.0, -1.0, MATRIX, MATRIX[:, :1]),
    head_importance=HeadImportance({"cross": MATRIX}, {"cross": 1 - MATRIX}, 2, 7, -0.123456789),
    faithfulness=Faithfulness([0, 1], CURVES, CURVES),
)


@pytest.mark.parametrize("name", sorted(file.stem for file in GOLDEN.iterdir()))
def test_json_and_text_stay(name):
    found = FOUND.found()[name]
    form = json.dumps(plain(found.document(NAMES_OF_TOKENS.vocabulary)), ensure_ascii=False)
    written = "\n\n".join([form, *found.text(NAMES_OF_TOKENS)]) + "\n"
    assert written == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_every_analysis_has_a_request_of_its_kind():
    assert [request_class(name).model_fields["kind"].default for name in NAMES] == list(NAMES)
    assert [name for name in NAMES if name not in names_by_sentence()] == ["patching", "head_importance"]
