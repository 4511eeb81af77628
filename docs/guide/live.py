"""Parts of the page at work in a chapter: `live`, a directive with the address of a view (docs/glass-box.md) and a
caption. All show one translation of a small model, which is trained when the guide is built."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes  # pyright: ignore[reportMissingModuleSource, reportMissingImports]
from kept import kept
from labels import label
from sphinx.util.docutils import SphinxDirective  # pyright: ignore[reportMissingImports]

PAGE = "_static/live.html"
TEXT = "Saturday, March 7, 2026"
RECIPE: dict[str, Any] = {
    "tokenizer": {"kind": "bpe", "vocab_size": 600},
    "model": {"preset": "tiny", "d_model": 64, "d_ff": 128, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0},
    "training": {
        "max_steps": 400,
        "tokens_per_batch": 2048,
        "schedule": "cosine",
        "learning_rate": 4e-3,
        "warmup_steps": 80,
        "validate_every": 400,
    },
}


class Live(SphinxDirective):
    """A view in a frame, the caption, and a link to the view in a page of its own."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        def word(text: str) -> str:
            return escape(label(text, self.config.language))

        address = escape(f"{PAGE}#{self.arguments[0]}&lang={self.config.language}")
        frame = f'<iframe src="{address}" loading="lazy" title="{word("A small model at work")}"></iframe>'
        link = f'<p><a href="{address}" target="_blank">{word("Open it in a page of its own")}</a></p>'
        parts = [
            nodes.raw("", frame, format="html"),
            *self.parse_content_to_nodes(),
            nodes.raw("", link, format="html"),
        ]
        return [nodes.container("", *parts, classes=["live"])]


def small_model() -> Path:
    """A run of a model that writes English dates in Korean; trained unless it is there already."""
    from headway.corpora.dates import dates_corpus
    from headway.page.watching import Watcher
    from headway.recipe.reading import make_recipe
    from headway.training.loop import train
    from headway.training.reporter import Reporter

    folder = kept("model", Path(__file__))
    run, data = folder / "run", folder / "data"
    if not (folder / "ready").exists():
        data.mkdir(parents=True, exist_ok=True)
        dates_corpus("en", "ko", sizes=(12_000, 200, 200)).write(data)
        files = {
            part: {side: str(data / f"{part}.{code}") for side, code in (("source", "en"), ("target", "ko"))}
            for part in ("train", "valid")
        }
        languages = {"source_language": "en", "target_language": "ko"}
        train(make_recipe({"data": {**files, **languages}, **RECIPE}), run, Reporter(quiet=True), Watcher())
        (folder / "ready").touch()
    return run


def write_page(app: Any, problem: Exception | None) -> None:
    """Writes the page of the frames, in the language of the site."""
    if problem is not None or app.builder.name != "html":
        return
    from headway import Translator
    from headway.page.document import logits_entry, record_document
    from headway.page.standalone import ENTRY, modules_of, page_of, style_sheet

    record = Translator.load(small_model()).inspect(TEXT, beam_size=4)
    document = record_document(record, "layers")
    document["arrays"]["logits"] = logits_entry(record)
    modules, here = modules_of("views"), Path(__file__).parent
    modules[ENTRY] += (here / "live.js").read_text(encoding="utf-8")
    style = style_sheet() + (here / "live.css").read_text(encoding="utf-8")
    page = page_of(document, modules, style, app.config.language)
    (Path(app.outdir) / PAGE).write_text(page, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("live", Live)
    app.connect("build-finished", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
