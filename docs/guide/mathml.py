"""Formulas as MathML, which browsers show by themselves: no script, nothing to download."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert  # pyright: ignore[reportMissingImports]


def inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
