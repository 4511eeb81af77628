"""The glass box in Debian's Chromium: pages of records, alone and beside a live model, and what goes wrong in them."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import torch

from headway import Translator
from headway.errors import UserError
from headway.insight.analyses import NAMES
from headway.insight.what_if import read_edits
from headway.page.standalone import modules_of, page_of, style_sheet
from tests.translator.test_translator import translator

CHROMIUM = shutil.which("chromium")
AXE = Path(__file__).parent.parent / "node_modules" / "axe-core" / "axe.min.js"
FINDINGS = """async () => (await axe.run()).violations.map(({ id, nodes }) =>
  `${id}: ${nodes.slice(0, 3).map((one) => one.target + " " + one.failureSummary.split("\\n")[1]).join(" | ")}`)"""
FOCUSED = """() => {
  const one = document.activeElement;
  const { outlineStyle, boxShadow } = getComputedStyle(one);
  one.dataset.reached = one.type === "radio" || outlineStyle !== "none" || boxShadow !== "none" ? "seen" : "unseen";
}"""
ANSWERED = "() => [...document.querySelectorAll('#glass-view .status')].every((one) => !one.textContent)"
"""What is asked of a model is told of until it has come."""
UNREACHED = """() => {
  const all = document.querySelectorAll(".glass :is(button, select, textarea, summary, input, [tabindex='0'])");
  const asked = [...all].filter((one) => one.checkVisibility() && !one.disabled && one.tabIndex >= 0);
  const left = asked.filter((one) => (one.type !== "radio" || one.checked) && one.dataset.reached !== "seen");
  return left.map((one) => one.outerHTML.slice(0, 120));
}"""
VIEWS = ["translate", "machine", "heads", "steps", "needs", "whatIf", "numbers"]
"""The views of a box, in the order of their tabs; with moments of a training "training" stands before the last."""
FOLDER = files("headway.page") / "views"
ORIGIN = "http://glass.test"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"
HOST = """<!doctype html><meta charset="utf-8"><title>host</title>
<main><div id="place"></div></main><script type="module" src="/host.js"></script>"""
HOST_SCRIPT = """import { mount } from "/glass/glass.js";
const ask = async (text, options) => {
  const answer = await fetch("/inspect", { method: "POST", body: JSON.stringify({ text, ...options }) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
};
const [language, text] = decodeURIComponent(location.hash.slice(1)).split(":");
const record = await ask(text, {});
await mount(document.getElementById("place"), { record, inspect: ask, analyses: ANALYSES, language });
""".replace("ANALYSES", json.dumps(NAMES))
OBSERVERS = """
window.shifts = [];
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
let chosen = -Infinity; // a choice in a list, which is no input to the browser when a test makes it
document.addEventListener("change", () => { chosen = performance.now(); }, true);
new PerformanceObserver((list) => {
  for (const one of list.getEntries())
    if (!one.hadRecentInput && one.startTime - chosen > 500) window.shifts.push(one.value);
}).observe({ type: "layout-shift", buffered: true });
"""


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser; the test is skipped where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium isn't installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def random_translator(**sizes) -> Translator:
    """Of random weights; its translations are of five tokens at most."""
    torch.manual_seed(7)
    found = translator(**{"encoder_layers": 2, "decoder_layers": 2, **sizes})
    return Translator(replace(found.stored, decoding={"max_length": 5}), device="cpu")


class Window:
    """One page, as a person has it, and what went wrong in it."""

    def __init__(self, browser: Any, width: int = 1280, height: int = 900, scheme: str = "light", **context) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.page.add_init_script(OBSERVERS)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def close(self, *, may_move: bool = False) -> None:
        """Nothing was said, nothing blocked, nothing fetched from elsewhere, nothing moved by itself: what moves more
        than half a second after a click counts as such, so that the answers of a model may let things move."""
        violations, shifts = self.page.evaluate("[window.violations, window.shifts]")
        origins = {url if url.startswith("file:") else "/".join(url.split("/")[:3]) for url in self.asked}
        self.context.close()
        assert self.said == []
        assert violations == []
        assert len(origins) == 1
        assert may_move or sum(shifts) < 0.01

    def view(self, name: str) -> Any:
        """Opens one of the views. -> its panel"""
        self.page.click(f"#glass-tab-{name}")
        if name == "needs":
            self.open_more()
        return self.page.locator("#glass-view")

    def open_more(self) -> None:
        """Opens the analyses below the first of What it needs."""
        if self.page.locator(".more:not([open])").count():
            self.page.click(".more > summary")

    def count(self, selector: str, count: int) -> None:
        """Waits until there are so many."""
        self._expect(self.page.locator(selector)).to_have_count(count)

    def contains(self, selector: str, text: str) -> None:
        """Waits until it says so."""
        self._expect(self.page.locator(selector)).to_contain_text(text)

    @property
    def _expect(self) -> Any:
        from playwright.sync_api import expect

        return expect

    def texts(self, selector: str) -> list[str]:
        return [text.strip() for text in self.page.locator(selector).all_inner_texts()]


def wait_until(page: Any, expression: str, argument: Any = None) -> None:
    """Waits until the expression, or the function of the argument, is true. Playwright's own waiting evaluates text in
    the page, which the page's policy forbids but for the first time."""
    deadline = time.monotonic() + 20
    while not page.evaluate(expression, argument):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(20)


def found_by_axe(page: Any) -> dict[str, list[str]]:
    """Opens each view of a box, all parts that open in it, what a live model computes on demand, a block of the
    machine, and the tour from its first stop to its end. -> what axe finds there, by the place; the test is skipped
    where axe isn't installed."""
    if not AXE.is_file():
        pytest.skip("packages of npm aren't installed")
    found: dict[str, list[str]] = {}

    def look(place: str) -> None:
        page.wait_for_timeout(300)  # what is painted part by part, and quick answers
        if some := page.evaluate(FINDINGS):
            found[place] = some

    page.evaluate(AXE.read_text(encoding="utf-8"))
    for tab in page.locator(".glass [role=tab]").all():
        tab.click()
        page.evaluate("for (const one of document.querySelectorAll('#glass-view details')) one.open = true")
        page.wait_for_timeout(300)
        asked = page.locator("#glass-view :is(.try-all, .analysis-place button):visible").all()
        for one in asked:
            one.click()
        wait_until(page, ANSWERED)
        look(str(tab.get_attribute("id")))
    page.click("#glass-tab-machine")
    page.click(".decoder [data-place=cross]")
    look("an open block")
    page.click(".tool-tour")
    page.keyboard.press("ArrowRight")  # where to is asked of a live model
    page.locator(".tour .reveal button").first.click()
    look("the tour")
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    look("its end")
    page.keyboard.press("Escape")
    return found


def unreached(page: Any) -> dict[str, list[str]]:
    """Goes through each view of a box with the Tab key. -> what can't be reached so, or isn't seen to have the focus"""
    found: dict[str, list[str]] = {}
    for tab in page.locator(".glass [role=tab]").all():
        tab.click()
        page.wait_for_timeout(300)
        count = page.locator("a, button, select, textarea, summary, input, [tabindex='0']").count()
        for _ in range(count + 10):  # also by way of the browser's own parts
            page.keyboard.press("Tab")
            page.evaluate(FOCUSED)
        if some := page.evaluate(UNREACHED):
            found[str(tab.get_attribute("id"))] = some
    return found


def write_page(document: dict[str, Any], path: Path, language: str | None = None) -> str:
    """The page of a document, alone. -> its address"""
    page = page_of(document, modules_of("views"), style_sheet(), language)
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


def read_page(path: Path) -> dict[str, Any]:
    """The document that a page holds."""
    text = path.read_text(encoding="utf-8")
    parts = dict(re.findall(r'<script type="application/json" id="([^"]+)">(.*?)</script>', text))
    document = json.loads(parts.pop("record"))
    document["arrays"] = {name: one for part in parts.values() for name, one in json.loads(part).items()}
    return document


def open_live(window: Window, model: Translator, text: str, language: str = "en") -> list[dict[str, Any]]:
    """The box in a page of a server with a live model. -> the requests to inspect, as they come"""
    requests: list[dict[str, Any]] = []

    def inspect(body: dict[str, Any]) -> str:
        requests.append(body)
        edits = read_edits(body.get("edits", []))
        cases = [read_edits(case) for case in body.get("cases", [])]
        options = {"edits": edits, "cases": cases, "order": body.get("order", False)}
        options["analyses"] = body.get("analyses", [])
        record = model.inspect(body["text"], body.get("translation"), **options)
        return json.dumps(record.to_dict(arrays=body.get("arrays", "layers")), ensure_ascii=False)

    def answer(route) -> None:
        path = route.request.url.removeprefix(ORIGIN)
        headers = {"Content-Security-Policy": POLICY}
        if path == "/inspect":
            try:
                route.fulfill(body=inspect(json.loads(route.request.post_data)), content_type="application/json")
            except UserError as error:
                route.fulfill(status=400, body=str(error))
        elif path.startswith("/glass/"):
            kind = "text/css" if path.endswith(".css") else "text/javascript"
            route.fulfill(body=(FOLDER / path.removeprefix("/glass/")).read_text(encoding="utf-8"), content_type=kind)
        elif path == "/host.js":
            route.fulfill(body=HOST_SCRIPT, content_type="text/javascript")
        elif path == "/":
            route.fulfill(body=HOST, content_type="text/html", headers=headers)
        else:
            route.fulfill(status=204)

    window.context.route("**/*", answer)
    window.page.goto(f"{ORIGIN}/#{language}:{text}")
    window.page.wait_for_selector("[role=tabpanel]")
    return requests
