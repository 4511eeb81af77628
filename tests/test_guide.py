"""The guide as text: its cells are Python that finds what it imports, the code it shows is there, every chapter is
listed and translated. `make docs` builds it, and so runs it."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from babel.messages.pofile import read_po

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs" / "guide"
CHAPTERS = sorted(path for path in GUIDE.glob("*.md") if path.name not in ("index.md", "paper.md", "reference.md"))
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?P<options>(?::[^\n]*\n)*)(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"^```\{literalinclude\} (?P<file>\S+)\n(?P<options>.*?)^```$", re.DOTALL | re.MULTILINE)
OPTION = re.compile(r"^:([\w-]+): (.*)$", re.MULTILINE)


def text_of(chapter: Path) -> str:
    return chapter.read_text(encoding="utf-8")


def cells(chapter: Path) -> list[str]:
    return [match["code"] for match in CELL.finditer(text_of(chapter))]


def definitions(tree: ast.Module) -> set[str]:
    """Names of functions and classes, those of methods as `Class.method`."""
    found = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return found


def names(tree: ast.Module) -> set[str]:
    """Those and the constants of a module."""
    targets = [
        target for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign)) for target in _targets(node)
    ]
    return definitions(tree) | {target.id for target in targets if isinstance(target, ast.Name)}


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def of_chapters(paths):
    return pytest.mark.parametrize("chapter", paths, ids=lambda path: path.stem)


@of_chapters(CHAPTERS)
def test_cells_are_python_and_import_what_there_is(chapter):
    assert cells(chapter)
    for code in cells(chapter):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "headway":
                module = importlib.import_module(node.module)
                for alias in node.names:
                    assert hasattr(module, alias.name), f"{node.module} has no {alias.name}"


@of_chapters(CHAPTERS)
def test_lines_of_cells_fit_the_page(chapter):
    for code in cells(chapter):
        assert max(map(len, code.splitlines())) <= 92


@of_chapters(CHAPTERS)
def test_code_that_is_shown_is_there(chapter):
    shown = list(SHOWN.finditer(text_of(chapter)))
    assert shown, "a chapter shows the code it is about"
    for match in shown:
        file = (GUIDE / match["file"]).resolve()
        options = dict(OPTION.findall(match["options"]))
        source = file.read_text(encoding="utf-8")
        assert options["caption"] == str(file.relative_to(ROOT))
        assert "pyobject" in options or "start-at" in options, "never a whole file, never by line numbers"
        if "pyobject" in options:
            assert options["pyobject"] in definitions(ast.parse(source))
        if "start-at" in options:
            assert source.count(options["start-at"]) == 1
            assert options["end-at"] in source[source.index(options["start-at"]) :]


@of_chapters(CHAPTERS)
def test_exercises_have_answers(chapter):
    _, _, exercises = text_of(chapter).partition("\n## Exercises\n")
    asked = len(re.findall(r"^\d\. ", exercises, flags=re.MULTILINE))
    assert asked >= 2
    assert exercises.count("{admonition} Answer\n:collapsible: closed\n") == asked


@of_chapters(CHAPTERS)
def test_common_mistakes_stand_behind_the_idea(chapter):
    headings = re.findall(r"^## (.+)$", text_of(chapter), flags=re.MULTILINE)
    assert headings[:2] == ["The idea", "What popular explanations get wrong"]


@pytest.fixture
def drawings(monkeypatch):
    monkeypatch.syspath_prepend(GUIDE)
    return importlib.import_module("drawings").DRAWINGS


IMAGE = re.compile(r"^```\{image\} drawn/(?P<name>[\w-]+)\.svg\n:alt: (?P<alt>.+)\n```$", re.MULTILINE)
LIVE = re.compile(r"^```\{live\} (?P<address>\S+)\n(?P<caption>.+)\n```$", re.MULTILINE)


def test_every_drawing_stands_in_a_chapter_and_is_described(drawings):
    images = [match for chapter in CHAPTERS for match in IMAGE.finditer(text_of(chapter))]
    assert sorted(match["name"] for match in images) == sorted(drawings)
    assert all(len(match["alt"]) > 40 for match in images)


def labels_of(svg: str) -> list[str]:
    """What a drawing says in words. Tokens of an example are the same in every language."""
    elements = [one for one in ElementTree.fromstring(svg).iter() if one.tag.endswith(("}text", "}tspan"))]
    return [one.text for one in elements if one.get("class") != "token" and re.search("[A-Za-z]{3}", one.text or "")]


def test_drawings_are_pictures_with_korean_labels_of_their_own(drawings):
    label, known = importlib.import_module("labels").label, importlib.import_module("labels").KOREAN
    for name, draw in drawings.items():
        for words in labels_of(draw()):
            assert words in ("model", "softmax") or re.search("[가-힣]", label(words, "ko")), f"{name}: {words}"
            assert label(words, "en") == words
    assert label("head 2 of 4", "ko") == "헤드 2/4"
    assert all(words.count("#") == korean.count("#") for words, korean in known.items())


def test_what_is_drawn_stays_within_its_picture(drawings):
    for name, draw in drawings.items():
        root = ElementTree.fromstring(draw())
        width, height = map(float, root.attrib["viewBox"].split()[2:])
        for one in root.iter():
            if "transform" in one.attrib or not {"x", "y"} <= set(one.attrib):
                continue
            right, bottom = (float(one.get(side, 0)) for side in ("width", "height"))
            x, y = float(one.attrib["x"]), float(one.attrib["y"])
            assert 0 <= x <= x + right <= width, name
            assert 0 <= y <= y + bottom <= height or one.tag.endswith("}text"), name


def test_plots_take_the_colours_of_the_page_and_korean_labels(drawings):
    shown = importlib.import_module("drawings.page").shown
    plot = """<?xml version="1.0"?>
<svg viewBox="0 0 9 9"><metadata>2026</metadata><g id="figure_1"><defs><clipPath id="p0a1b2c"/></defs>
<path style="stroke: #000000" clip-path="url(#p0a1b2c)"/>
<text style="font: 12px 'DejaVu Sans', sans-serif; text-anchor: middle">loss &amp;lt;</text>
<text style="font: 12px 'DejaVu Sans', sans-serif">temperature 0.25</text></g></svg>"""
    page = shown(plot, "ko", 'a "curve"')
    assert page.startswith('<svg role="img" aria-label="a &quot;curve&quot;" viewBox')
    assert "stroke: currentColor" in page
    assert "DejaVu" not in page
    assert "metadata" not in page
    assert 'id="p0a1b2c"' in page
    assert "figure_1" not in page
    assert ">온도 0.25<" in page
    assert ">loss &amp;lt;<" in page, "what isn't a label stays"


def test_results_are_kept_until_the_code_changes(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(GUIDE)
    module = importlib.import_module("kept")
    guide, code = tmp_path / "docs" / "guide", tmp_path / "src" / "one.py"
    for file in (code, tmp_path / "constraints.txt", guide / "matplotlibrc"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "HERE", guide)
    folder = module.kept("outputs")
    folder.mkdir(parents=True)
    assert module.kept("outputs") == folder
    assert folder.exists()
    code.write_text("2")
    assert module.kept("outputs") != folder
    assert not folder.exists()


def test_live_parts_open_views_that_there_are():
    views = re.search(
        r"^const VIEWS = \{(.*?)^\};", text_of(ROOT / "src/headway/page/views/box.js"), re.DOTALL | re.MULTILINE
    )
    assert views
    names = re.findall(r"^  (\w+):", views[1], flags=re.MULTILINE)
    parts = {chapter.stem: match for chapter in CHAPTERS for match in LIVE.finditer(text_of(chapter))}
    assert len(parts) >= 10
    for match in parts.values():
        assert re.match(r"view=(\w+)", match["address"])[1] in names  # type: ignore[index]


def test_every_chapter_is_listed():
    listed = re.findall(r"^[\w-]+$", text_of(GUIDE / "index.md"), flags=re.MULTILINE)
    assert sorted(listed) == sorted(path.stem for path in GUIDE.glob("*.md") if path.name != "index.md")


@of_chapters(sorted(GUIDE.glob("*.md")))
def test_every_heading_is_translated(chapter):
    """`make docs` checks every sentence."""
    with (GUIDE / "locale" / "ko" / "LC_MESSAGES" / f"{chapter.stem}.po").open("rb") as file:
        catalogue = read_po(file)
    text = CELL.sub("", text_of(chapter))
    for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE):
        message = catalogue.get(heading)
        assert message is not None
        assert message.string, heading


ANCHOR = re.compile(r"`([\w/]+\.py): ([\w.]+)`")
NUMBERED = [
    *(f"Equation {n}" for n in (1, 2, 3)),
    *(f"Figure {n}" for n in range(1, 6)),
    *(f"Table {n}" for n in range(1, 5)),
]


def rows_of_paper() -> list[str]:
    return [line for line in text_of(GUIDE / "paper.md").splitlines() if line.startswith("|")]


@pytest.mark.parametrize("numbered", NUMBERED)
def test_all_of_the_paper_is_on_the_map(numbered):
    rows = [row for row in rows_of_paper() if re.match(rf"\| {numbered}\b", row)]
    assert rows
    assert numbered == "Table 4" or all(ANCHOR.search(row) for row in rows)


def test_places_on_the_map_exist():
    anchors = [anchor for row in rows_of_paper() for anchor in ANCHOR.findall(row)]
    assert len(anchors) > 30
    for file, name in anchors:
        source = (ROOT / "src" / "headway" / file).read_text(encoding="utf-8")
        assert name in names(ast.parse(source)), f"{file} has no {name}"


TARGET = re.compile(r"^\.\. auto(?P<kind>module|class|function):: (?P<name>[\w.]+)$", re.MULTILINE)
API = sorted((GUIDE / "reference").glob("api-*.md"))


@of_chapters(API)
def test_the_reference_names_what_there_is(chapter):
    found = TARGET.findall(text_of(chapter))
    assert found
    for kind, name in found:
        module, _, attribute = (name, "", "") if kind == "module" else name.rpartition(".")
        assert not attribute or hasattr(importlib.import_module(module), attribute), name
        assert importlib.import_module(module).__doc__, module


def test_every_page_of_the_reference_is_listed():
    listed = re.findall(r"^reference/([\w-]+)$", text_of(GUIDE / "reference.md"), flags=re.MULTILINE)
    assert sorted(listed) == sorted(path.stem for path in API)


def test_links_of_the_site_that_lead_nowhere_are_named(tmp_path):
    pages = {
        "a.html": '<h1 id="top"></h1><a href="b.html#x">1</a><a href="#top">2</a><a href="https://x/">3</a>',
        "b.html": '<p id="y"></p><img src="none.svg"><a href="../outside.html">4</a><a href="a.html#top">5</a>',
    }
    for name, page in pages.items():
        (tmp_path / name).write_text(page)
    command = [sys.executable, GUIDE / "check_links.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    a, b = tmp_path / "a.html", tmp_path / "b.html"
    assert sorted(done.stderr.splitlines()) == [
        f"{a}: b.html#x has no such place",
        f"{b}: ../outside.html leads nowhere",
        f"{b}: none.svg leads nowhere",
    ]


def test_the_public_names_are_in_the_reference():
    documented = {name for path in API for _, name in TARGET.findall(text_of(path))}
    modules = [importlib.import_module(name) for name in documented if name.startswith("headway.model")]
    assert "headway.translator.Translator" in documented
    assert {"ModelConfig", "Transformer"} <= {name for module in modules for name in module.__all__}
