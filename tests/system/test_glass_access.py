"""For everyone: axe finds nothing in any view, and Korean breaks its lines between words."""

import pytest

from tests.system.browsing import VIEWS, found_by_axe

BROKEN = """() => {
  const walker = document.createTreeWalker(document.querySelector(".glass"), NodeFilter.SHOW_TEXT);
  const broken = [];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const hidden = ".unseen, details:not([open]) > :not(summary)";
    if (!node.parentElement.checkVisibility() || node.parentElement.closest(hidden)) continue;
    for (const { 0: word, index } of node.data.matchAll(/[가-힣]+/gu)) {
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      if (new Set([...range.getClientRects()].map((one) => one.top)).size > 1) broken.push(word);
    }
  }
  return broken;
}"""
"""The Korean words that stand in two lines."""


@pytest.fixture(scope="module")
def document(random):
    analyses = ["erasure", "contributions", "logit_lens", "decoder_lens"]
    found = random.inspect("the cat sat on the mat", cases="usual", order=True, analyses=analyses).to_dict()
    moment = {"translation": "a dog", "score": -1.5, "training_loss": 2.0, "validation_loss": 2.5}
    moment |= {name: found[name] for name in ("attention", "arrays")}
    pair = {name: found[name] for name in ("source", "target", "start")}
    return found | {"training": {**pair, "moments": [{"step": step, **moment} for step in (0, 50)]}}


@pytest.mark.parametrize(("language", "scheme"), [("en", "light"), ("ko", "dark")])
def test_axe_finds_nothing_in_any_view(opened, document, language, scheme):
    window = opened(document, language, scheme=scheme, reduced_motion="reduce")
    assert found_by_axe(window.page) == {}


@pytest.mark.parametrize("width", [390, 1280])
def test_korean_breaks_lines_between_words(opened, document, width):
    window = opened(document, "ko", width=width, reduced_motion="reduce")
    for view in [*VIEWS, "training"]:
        window.view(view)
        assert window.page.evaluate(BROKEN) == [], view
