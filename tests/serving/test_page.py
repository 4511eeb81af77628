"""The server's page and the glass box in it: each has rules of its own."""

import json
import re
from pathlib import Path

from py_mini_racer import MiniRacer

import headway
from headway.page.standalone import modules_of, needed, style_sheet

PACKAGE = Path(headway.__file__).parent
SERVER = PACKAGE / "page" / "served"


def test_no_rule_of_the_server_is_about_the_glass_box():
    rules, scripts = _selectors((SERVER / "page.css").read_text()), modules_of("views")
    own, glass = _classes(rules), _classes(_selectors(style_sheet()))
    texts = "".join(scripts[name] for name in needed(scripts, "views/glass.js"))
    given = " ".join(re.findall(r'class: ["`]([^"`]*)', texts))
    assert {"side", "masthead"} <= own, "the style sheet was read"
    assert {"panel", "view"} <= glass & set(given.split())
    assert own & (glass | set(given.split())) == set()
    tags = "h2|a|button|select|input|textarea|details|summary"
    bare = [rule for rule in rules if "#glass" not in rule and re.search(rf"(^|,\s*)({tags})(:[\w-]+)?(,|$)", rule)]
    assert bare == [], "these elements are in the box too"


def test_the_description_has_all_its_sentences_in_korean(serve):
    script = (SERVER / "docs_ko.js").read_text().replace("export const", "const")
    korean = json.loads(MiniRacer().eval(f"{script}; JSON.stringify(Object.keys(korean))"))
    assert set(korean) == _sentences(serve().get("/openapi.json").json())


def test_codes_of_models_name_languages_in_a_browser_too():
    """Which knows them with `-` alone."""
    scripts = "".join((SERVER / name).read_text().replace("export ", "") for name in ("words.js", "sentences.js"))
    context = MiniRacer()
    context.eval(scripts)
    names = [context.eval(f"languageName('en', '{code}')") for code in ("zh_TW", "zh-TW", "xx", "de")]
    assert names[0] == names[1] != "zh_TW"
    assert names[2:] == ["xx", "German"]
    found = context.eval("segmenter('ja_JP', 'word').resolvedOptions().locale")
    assert found == context.eval("segmenter('ja-JP', 'word').resolvedOptions().locale")
    assert context.eval("segmenter(undefined, 'word') instanceof Intl.Segmenter")


def _sentences(description: dict) -> set[str]:
    found = {description["info"]["description"]}
    for route in (route for methods in description["paths"].values() for route in methods.values()):
        found.add(route["description"])
        for content in route.get("requestBody", {"content": {}})["content"].values():
            found |= {field["description"] for field in content["schema"]["properties"].values()}
    return found


def _selectors(sheet: str) -> list[str]:
    text = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    return [selector.strip() for selector in re.findall(r"([^{}]+)\{", text)]


def _classes(selectors: list[str]) -> set[str]:
    return {name for selector in selectors for name in re.findall(r"\.([a-zA-Z][\w-]*)", selector)}
