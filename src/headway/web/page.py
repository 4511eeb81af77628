"""The page of an export: a folder's index.html, and one file with everything inside."""

from __future__ import annotations

import base64
import html
from importlib.resources import files

from headway.glass.standalone import digest, needed, style_sheet
from headway.web.modules import modules, script

TITLE = "headway"
ENTRIES = ("web/hosted.js", "web/worker.js")
"""Of a folder's page, and of its worker."""
STYLES = (("glass", "palette.css"), ("glass", "glass.css"), ("web", "web.css"))
"""Room and name of each style sheet."""
FROM_A_DISK = 'if (location.protocol === "file:") document.getElementById("from-a-disk").hidden = false;'
"""Runs where a browser loads no modules."""
NEEDS_A_HOST = (
    ("en", "This folder needs a static host: put it on any web server, or run python3 -m http.server in it."),
    ("en", "A page that opens by double click is made by headway export MODEL --to web --output FILE.html."),
    (
        "ko",
        "이 폴더는 웹 서버에 올려야 열립니다. 정적 호스트에 올리거나 폴더 안에서 python3 -m http.server를 실행하세요.",
    ),
    ("ko", "두 번 눌러 여는 한 파일은 headway export MODEL --to web --output FILE.html로 만듭니다."),
)


def folder_files() -> dict[str, str]:
    """The files of a folder's page by their paths, all but the model. Raises UserError."""
    texts = modules()
    notices = "\n".join(f'<p lang="{language}">{html.escape(text)}</p>' for language, text in NEEDS_A_HOST)
    policy = f"default-src 'none'; script-src 'self' 'wasm-unsafe-eval' '{digest(FROM_A_DISK)}'; style-src 'self'; "
    policy += "connect-src 'self'; worker-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
    head = "".join(f'<link rel="stylesheet" href="{room}/{name}">\n' for room, name in STYLES)
    head += '<script type="module" src="web/hosted.js"></script>'
    body = f'<main>\n<div id="from-a-disk" hidden>\n{notices}\n</div>\n</main>\n<script>{FROM_A_DISK}</script>'
    return {
        "index.html": _document(policy, head, body),
        **{f"{room}/{name}": _style(room, name) for room, name in STYLES},
        **{name: texts[name] for entry in ENTRIES for name in needed(texts, entry)},
    }


def one_file(model: bytes) -> str:
    """The page with the model, as HTML that opens without a server. Raises UserError."""
    style = "".join(_style(room, name) for room, name in STYLES)
    page, worker = script("web/one_file.js"), script("web/worker.js")
    for name, text in (("script", page), ("script", worker), ("style", style)):
        if f"</{name}" in text.lower() or "<!--" in text:
            raise ValueError(f"the page's {name} holds </{name} or <!--, which would end it or hide its end")
    policy = f"default-src 'none'; script-src '{digest(page)}' 'wasm-unsafe-eval'; style-src '{digest(style)}'; "
    policy += "worker-src blob:; img-src data:; base-uri 'none'; form-action 'none'"
    body = f"""<main></main>
<script type="text/plain" id="worker">{worker}</script>
<script type="text/plain" id="model">{base64.b64encode(model).decode("ascii")}</script>
<script>{page}</script>"""
    return _document(policy, f"<style>{style}</style>", body)


def model_in(page: str) -> bytes:
    """The model in a page of one file."""
    return base64.b64decode(page.partition('id="model">')[2].partition("</script>")[0])


def _document(policy: str, head: str, body: str) -> str:
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{TITLE}</title>
<link rel="icon" href="data:,">
{head}
</head>
<body>
{body}
</body>
</html>
"""


def _style(room: str, name: str) -> str:
    return style_sheet(files(f"headway.{room}") / "page", name)
