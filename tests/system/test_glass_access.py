"""For everyone: axe finds nothing in any view, and Korean breaks its lines between words."""

import pytest

from tests.system.conftest import ROOT

AXE = ROOT / "tests" / "node_modules" / "axe-core" / "axe.min.js"
VIEWS = ["translate", "machine", "heads", "steps", "needs", "whatIf", "numbers"]
FINDINGS = """async () => (await axe.run()).violations.map(({ id, nodes }) =>
  `${id}: ${nodes.slice(0, 3).map((one) => one.target + " " + one.failureSummary.split("\\n")[1]).join(" | ")}`)"""
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
    return random.inspect("the cat sat on the mat", cases="usual", order=True, analyses=analyses).to_dict()


@pytest.mark.skipif(not AXE.is_file(), reason="packages of npm aren't installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_axe_finds_nothing_in_any_view(opened, document, language, scheme):
    window = opened(document, language, scheme=scheme, reduced_motion="reduce")
    page = window.page
    page.evaluate(AXE.read_text(encoding="utf-8"))
    for view in VIEWS:
        window.view(view)
        assert page.evaluate(FINDINGS) == [], view
    page.click("#glass-tab-machine")
    page.click(".decoder [data-place=cross]")
    assert page.evaluate(FINDINGS) == [], "an open block"
    page.click(".tool-tour")
    assert page.evaluate(FINDINGS) == [], "the tour"
    for _ in range(9):
        page.keyboard.press("ArrowRight")
    assert page.evaluate(FINDINGS) == [], "its end"


@pytest.mark.parametrize("width", [390, 1280])
def test_korean_breaks_lines_between_words(opened, document, width):
    window = opened(document, "ko", width=width, reduced_motion="reduce")
    for view in VIEWS:
        window.view(view)
        assert window.page.evaluate(BROKEN) == [], view
