"""The page of an export: the ES modules of page and engine, a folder's index.html, and one file with everything."""

import base64
import html
from functools import cache

from headway.errors import UserError
from headway.page.standalone import PAGE, digest, html_page, inline, joined, modules_of, needed, style_sheet

TITLE = "headway"
ON_IDS = "engine/on_ids.js"
ENTRIES = ("views/hosted.js", "engine/worker.js")
"""Of a folder's page, and of its worker."""
STYLES = ("palette.css", "glass.css", "web.css")
FROM_A_DISK = 'if (location.protocol === "file:") document.getElementById("from-a-disk").hidden = false;'
"""Runs where a browser loads no modules."""
NO_ICON = '<link rel="icon" href="data:,">'
NEEDS_A_HOST = (
    ("en", "This folder needs a static host: put it on any web server, or run python3 -m http.server in it."),
    ("en", "A page that opens by double click is made by headway export MODEL --to web --output FILE.html."),
    (
        "ko",
        "이 폴더는 웹 서버에 올려야 열립니다. 정적 호스트에 올리거나 폴더 안에서 python3 -m http.server를 실행하세요.",
    ),
    ("ko", "두 번 눌러 여는 한 파일은 headway export MODEL --to web --output FILE.html로 만듭니다."),
)


def modules() -> dict[str, str]:
    """The text of each ES module by its path in an export. Raises UserError."""
    return {**modules_of("views", "engine", "tokenizer"), "engine/kernel_code.js": kernel_module()}


def script(entry: str) -> str:
    """One script of a module and all that it imports. Raises UserError."""
    return joined(modules(), entry)


@cache
def kernel_module() -> str:
    """engine/kernel_code.js, which exports the bytes of kernel.wat, assembled. Raises UserError.

    It is assembled when a model is exported, not when the wheel is made: whoever exports has the extra `web` anyway, to
    check what was exported, and so a repository and a wheel hold the same files.
    """
    try:
        from wasmtime import wat2wasm
    except ImportError:
        raise UserError("wasmtime is not installed: pip install 'headway[web]'") from None
    text = (PAGE / "engine" / "kernel.wat").read_text(encoding="utf-8")
    numbers = ", ".join(map(str, wat2wasm(text)))
    return f"// Made of kernel.wat.\n\nexport const code = Uint8Array.of({numbers});\n"


def folder_files() -> dict[str, str]:
    """The files of a folder's page by their paths, all but the model. Raises UserError."""
    texts = modules()
    notices = "\n".join(f'<p lang="{language}">{html.escape(text)}</p>' for language, text in NEEDS_A_HOST)
    policy = f"script-src 'self' 'wasm-unsafe-eval' '{digest(FROM_A_DISK)}'; style-src 'self'; "
    policy += "connect-src 'self'; worker-src 'self'; img-src data:"
    head = "".join(f'<link rel="stylesheet" href="views/{name}">\n' for name in STYLES)
    head += '<script type="module" src="views/hosted.js"></script>'
    body = f'<main>\n<div id="from-a-disk" hidden>\n{notices}\n</div>\n</main>\n<script>{FROM_A_DISK}</script>'
    return {
        "index.html": html_page(TITLE, policy, f"{NO_ICON}\n{head}", body, "en"),
        **{f"views/{name}": style_sheet(name) for name in STYLES},
        **{name: texts[name] for entry in ENTRIES for name in needed(texts, entry)},
    }


def one_file(model: bytes) -> str:
    """The page with the model, as HTML that opens without a server. Raises UserError."""
    style = inline("style", "".join(map(style_sheet, STYLES)))
    page, worker = (inline("script", script(name)) for name in ("views/one_file.js", "engine/worker.js"))
    policy = f"script-src '{digest(page)}' 'wasm-unsafe-eval'; style-src '{digest(style)}'; "
    policy += "worker-src blob:; img-src data:"
    body = f"""<main></main>
<script type="text/plain" id="worker">{worker}</script>
<script type="text/plain" id="model">{base64.b64encode(model).decode("ascii")}</script>
<script>{page}</script>"""
    return html_page(TITLE, policy, f"{NO_ICON}\n<style>{style}</style>", body, "en")


def model_in(page: str) -> bytes:
    """The model in a page of one file."""
    return base64.b64decode(page.partition('id="model">')[2].partition("</script>")[0])
