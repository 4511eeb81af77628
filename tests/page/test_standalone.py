"""The page of one record: one script of all modules, known by its hash, and text that stays text."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from py_mini_racer import MiniRacer

from headway.page.standalone import grouped, inert, joined, needed, page_of

HOSTILE = "</script><!-- <img src=x onerror=alert(1)> \u202e \u2028 & ]]>"


class Elements(HTMLParser):
    """Every element with its attributes and the text in it, as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs), []))
        self._inside = True

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, data):
        if self._inside:
            self.found[-1][2].append(data)

    def texts(self, tag: str, **attributes: str) -> list[str]:
        return [
            "".join(text)
            for name, given, text in self.found
            if name == tag and all(given.get(key) == value for key, value in attributes.items())
        ]


def document(text: str) -> dict:
    arrays = {name: {"dtype": "bool", "shape": [1], "data": "AQ=="} for name in ("source_positions", "encoder.output")}
    arrays |= {f"encoder.layers.{layer}.input": {"same_as": "encoder.output"} for layer in (0, 1, 10)}
    arrays["history.0.encoder.layers.1.self_attention.weights"] = {"same_as": text}
    return {"source": {"text": text}, "pieces": [text], "arrays": arrays}


def test_the_policy_knows_exactly_the_script_and_the_style():
    page = page_of(document("a"), {"views/standalone.js": "const a = 'ü';\n"}, "body { margin: 0 }\n")
    elements = Elements(page)
    [policy] = [given["content"] for tag, given, _ in elements.found if given.get("http-equiv")]
    scripts = [text for tag, given, text in elements.found if tag == "script" and "type" not in given]
    assert len(scripts) == 1
    for directive, text in (("script-src", "".join(scripts[0])), ("style-src", elements.texts("style")[0])):
        wanted = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{wanted}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert not re.search("unsafe|img-src|data:|blob:", policy)
    assert page.index("Content-Security-Policy") < page.index("<style") < page.index("<script")


def test_hostile_text_stays_text_and_comes_back():
    given = document(HOSTILE)
    page = page_of(given, {"views/standalone.js": ""}, "")
    elements = Elements(page)
    assert [tag for tag, _, _ in elements.found] == [
        *("html", "head", "meta", "meta", "meta", "title", "style", "body", "main"),
        *("script",) * 7,
    ]
    [index] = elements.texts("script", id="record")
    assert json.loads(index)["pieces"] == [HOSTILE]
    [title] = elements.texts("title")
    assert title.startswith(HOSTILE[:60])


def test_arrays_stand_in_groups_by_layer():
    given = document("a")
    elements = Elements(page_of(given, {"views/standalone.js": ""}, ""))
    groups = json.loads(elements.texts("script", id="record")[0])["arrays"]
    assert set(groups) == {"rest", "encoder.layers.0", "encoder.layers.1", "encoder.layers.10", "history.0"}
    for name, members in groups.items():
        [text] = elements.texts("script", id=f"arrays.{name}")
        assert json.loads(text) == {member: given["arrays"][member] for member in members}
    assert sorted(name for members in groups.values() for name in members) == sorted(given["arrays"])
    assert grouped({}) == {}


def test_inert_json_is_the_same_json():
    value = {HOSTILE: [HOSTILE, 1.5, None, "한"]}
    assert json.loads(inert(value)) == value
    assert not re.search(r"[<>&]", inert(value))
    with pytest.raises(ValueError, match="JSON"):
        inert(float("nan"))


def test_modules_come_once_and_after_those_that_they_need():
    modules = {
        "main.js": 'import { a } from "./a.js";\nimport {\n  c,\n  C as b,\n} from "./b.js";\na(b, c);\n',
        "a.js": 'import { c as d } from "./b.js";\nexport function a() {}\nexport const e = d;\n',
        "b.js": "export const c = 1;\nexport class C extends Object {}\nexport async function f() {}\n",
        "unused.js": "nothing",
    }
    script = joined(modules, "main.js")
    first, second, third = (script.index(text) for text in ("const c = 1", "function a()", "a(b, c);"))
    assert first < second < third
    assert "nothing" not in script
    assert script.count("class C") == 1
    assert "const { c: d } = module0;" in script
    assert "  C: b,\n} = module0;" in script
    assert "return {c, C, f};" in script
    assert "return {a, e};" in script
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)


@pytest.mark.parametrize(
    "line",
    [
        'import x from "./b.js";',
        'import "./b.js";',
        'import { a } from "b";',
        'import { a } from "../b.js";',
        'import { a } from "https://example.org/b.js";',
        "export default function () {}",
        "export let a = 1;",
        "export { first };",
        'import * as b from "./b.js";',
        'export { a } from "./b.js";',
        'export * from "./b.js";',
        "  export const a = 1;",
        'const b = await import("./b.js");',
        "const here = import.meta.url;",
    ],
)
def test_a_form_that_can_not_be_joined_is_refused_with_its_place(line):
    with pytest.raises(ValueError, match=r"page/main\.js:2: .*can't be joined|imports .* not there"):
        joined({"main.js": f"const first = 1;\n{line}\n", "b.js": ""}, "main.js")


def test_circles_and_missing_modules_are_refused():
    circle = {"a.js": 'import { b } from "./b.js";', "b.js": 'import { a } from "./a.js";'}
    with pytest.raises(ValueError, match=r"a\.js: imports itself by way of b\.js"):
        joined(circle, "a.js")
    with pytest.raises(ValueError, match=r"a\.js: imports c\.js, which is not there"):
        joined({"a.js": 'import { c } from "./c.js";'}, "a.js")


@pytest.mark.parametrize("text", ["const a = '</SCRIPT>';", "// <!--"])
def test_a_script_that_would_end_itself_is_refused(text):
    with pytest.raises(ValueError, match="would end it"):
        page_of(document("a"), {"views/standalone.js": text}, "")


def test_modules_of_several_folders():
    """`../` leads out of a folder, and two modules of one name stay apart."""
    modules = {
        "web/page.js": 'import { one } from "../glass/words.js";\nimport { two } from "./words.js";\nall = one + two;',
        "web/words.js": 'export const two = "b";\n',
        "glass/words.js": 'import { more } from "./more.js";\nexport const one = `a${more}`;\n',
        "glass/more.js": 'export const more = "!";\n',
        "glass/unused.js": "nonsense(",
    }
    assert needed(modules, "web/page.js") == ["glass/more.js", "glass/words.js", "web/words.js", "web/page.js"]
    context = MiniRacer()
    context.eval(f"let all = null;\n{joined(modules, 'web/page.js')}")
    assert context.eval("all") == "a!b"
    with pytest.raises(ValueError, match=r"web/page\.js: imports glass/words\.js, which is not there"):
        joined({"web/page.js": modules["web/page.js"]}, "web/page.js")
