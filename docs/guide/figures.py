"""Puts drawings and plots into the page as SVG, in the place of the images that name them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes  # pyright: ignore[reportMissingModuleSource, reportMissingImports]
from drawings import DRAWINGS
from drawings.page import shown
from sphinx.transforms.post_transforms import SphinxPostTransform  # pyright: ignore[reportMissingImports]

DRAWN = Path(__file__).parent / "drawn"
"""The files of the drawings, which git ignores."""
PLOTS = "jupyter_execute"
"""The folder of what cells have drawn."""


def write_drawings(app: Any) -> None:
    DRAWN.mkdir(exist_ok=True)
    for name, draw in DRAWINGS.items():
        (DRAWN / f"{name}.svg").write_text(draw(), encoding="utf-8")


class Figures(SphinxPostTransform):
    default_priority = 20  # after the choice among the forms of an output
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        for image in list(self.document.findall(nodes.image)):
            file = Path(self.app.srcdir, next(iter(image.get("candidates", {}).values()), image["uri"]))
            is_drawn = file.parent == DRAWN
            if file.suffix == ".svg" and (is_drawn or PLOTS in file.parts):
                svg = shown(file.read_text(encoding="utf-8"), self.config.language, image.get("alt", ""))
                look = "figure" if is_drawn else "figure plot"
                image.replace_self(nodes.raw("", f'<div class="{look}">{svg}</div>', format="html"))


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write_drawings)
    app.add_post_transform(Figures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
