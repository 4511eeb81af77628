"""A model as a page that translates in the browser alone (extra `web`): a folder for any static host, or one file."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import headway
from headway.decoding import SearchOptions
from headway.decoding.faithful import check_faithful
from headway.errors import UserError, needing_extra
from headway.page.document import plain
from headway.page.model_file import PRECISIONS, Precision, model_file, tokenizer_description
from headway.page.standalone import PAGE, digest, html_page, inline, joined, modules_of, needed, style_sheet
from headway.storage import Aligner
from headway.storage.atomic import write_directory, write_file
from headway.storage.steps import step_of
from headway.text.subwords import fingerprint

if TYPE_CHECKING:
    from headway.insight.analyses.head_importance import HeadImportance
    from headway.insight.order import WordOrder
    from headway.storage import StoredModel

FORMAT, FORMAT_VERSION = "headway-web", 1
MODEL_FILE, ONE_FILE_SUFFIX = "model.headway", ".html"
LARGEST = 100_000_000
"""Maximum bytes of a model file: a larger page would load too long and take too much of a phone's memory."""
ENTRIES = ("views/hosted.js", "engine/worker.js")
"""Entry modules of a folder's page and of its worker."""
STYLES = ("palette.css", "glass.css", "web.css")
FROM_A_DISK = 'if (location.protocol === "file:") document.getElementById("from-a-disk").hidden = false;'
"""A script that runs where a browser loads no modules."""
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


class JavaScriptModel:
    """A model file as the browser's engine runs it, by V8 within Python, on ids alone; a source has no <eos>."""

    def __init__(self, file: bytes, *, bos_id: int, eos_id: int, kernel: bool = True) -> None:
        """kernel: whether WebAssembly multiplies. Raises UserError where V8 isn't installed."""
        with needing_extra("web"):
            from py_mini_racer import MiniRacer
        self._context: Any = MiniRacer()
        self._context.eval(script("engine/on_ids.js"))
        self._context.eval(f"globalThis.file = new Uint8Array({len(file)})")[:] = file
        self._eos, self._bos = [eos_id], [bos_id]
        self.kernel: bool = self._run("open", f"file, {json.dumps(kernel)}")
        """Whether WebAssembly does multiply."""

    def translate(self, source: list[int], max_length: int, opening: Sequence[int] = ()) -> list[int]:
        """Greedy search."""
        assert not opening  # models with such translations are refused
        return self.call("greedy", [*source, *self._eos], max_length)["ids"]

    def score(self, source: list[int], target: list[int]) -> list[float]:
        """The log-probability of each token of the target, and of <eos> after it."""
        return self.call("score", [*source, *self._eos], [*self._bos, *target, *self._eos])

    def call(self, function: str, *arguments: Any) -> Any:
        """Calls a function of engine/on_ids.js. Arguments and result are JSON."""
        return self._run(function, ", ".join(map(json.dumps, arguments)))

    def _run(self, function: str, arguments: str) -> Any:
        return json.loads(self._context.eval(f"JSON.stringify(onIds.{function}({arguments}))"))


def export_web(
    stored: StoredModel,
    output: Path,
    precision: Precision = "int8",
    examples: Sequence[str] = (),
    order: WordOrder | None = None,
    heads: HeadImportance | None = None,
    training: dict[str, Any] | None = None,
) -> None:
    """Writes a folder, or one file if `output` ends in .html, whole or not at all. examples: sentences that the page
    offers; order, heads and training: word order, the importance of heads and moments of the training, which it shows.
    Checks in float32 that the page's engine computes what the model does. Raises UserError."""
    check_for_page(stored)
    about, weights = {**_about(stored, examples, order, heads), "training": training}, stored.weights()
    file = model_file(about, weights, precision)
    if len(file) > LARGEST:
        smaller = "" if precision == "int8" else "; --precision int8 takes a quarter of float32's bytes"
        raise UserError(
            f"the model takes {len(file) / 1e6:,.0f} MB in {precision}, a page can have {LARGEST / 1e6:,.0f}: it would "
            f"load too long, and a phone has no memory for it{smaller}"
        )
    exact = file if precision == "float32" else model_file(about, weights, "float32")
    check_faithful(stored, lambda: _opened(stored, exact), "the page's engine")
    if output.suffix == ONE_FILE_SUFFIX:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_file(output, _one_file(file).encode("utf-8"))
        return
    with write_directory(output, len(file)) as folder:
        for name, text in _folder_files().items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        (folder / MODEL_FILE).write_bytes(file)
        (folder / "README.md").write_text(stored.card, encoding="utf-8")


def check_for_page(stored: StoredModel) -> None:
    """Raises UserError for a model that the page's engine doesn't have."""
    if stored.source_tokenizer.many_sources:
        raise UserError("a page can't choose between many source languages, as this model does; serve it instead")
    if stored.config.positions == "fairseq" or stored.config.norm_embeddings:
        raise UserError("a page has neither positions=fairseq nor norm_embeddings; serve the model instead")


def open_web(stored: StoredModel, output: Path) -> JavaScriptModel:
    """The exported model. Raises UserError."""
    if output.suffix != ONE_FILE_SUFFIX:
        return _opened(stored, (output / MODEL_FILE).read_bytes())
    data = output.read_text(encoding="utf-8").partition('id="model">')[2].partition("</script>")[0]
    return _opened(stored, base64.b64decode(data))


def as_precision(name: str | None) -> Precision:
    """The precision of that name, by default int8. Raises UserError."""
    wanted = name or "int8"
    if wanted not in PRECISIONS:
        raise UserError(f"precision {wanted!r} is unknown; there are {', '.join(PRECISIONS)}")
    return cast(Precision, wanted)


def modules() -> dict[str, str]:
    """The text of each ES module by its path in an export. Raises UserError."""
    return {**modules_of("views", "engine", "tokenizer"), "engine/kernel_code.js": kernel_module()}


def script(entry: str) -> str:
    """One script of a module and all that it imports. Raises UserError."""
    return joined(modules(), entry)


@cache
def kernel_module() -> str:
    """engine/kernel_code.js, which exports the bytes of kernel.wat, assembled. Raises UserError.

    It is assembled when a model is exported, not when the wheel is made: an export needs the extra `web` anyway, to
    check its result, and so a repository and a wheel hold the same files.
    """
    with needing_extra("web"):
        from wasmtime import wat2wasm
    text = (PAGE / "engine" / "kernel.wat").read_text(encoding="utf-8")
    numbers = ", ".join(map(str, wat2wasm(text)))
    return f"// Made of kernel.wat.\n\nexport const code = Uint8Array.of({numbers});\n"


def _opened(stored: StoredModel, file: bytes) -> JavaScriptModel:
    config = stored.model.config
    return JavaScriptModel(file, bos_id=config.bos_id, eos_id=config.eos_id)


def _about(
    stored: StoredModel, examples: Sequence[str], order: WordOrder | None, heads: HeadImportance | None
) -> dict[str, Any]:
    """The header of the model file, beside its tensors."""
    source, target = stored.source_tokenizer, stored.target_tokenizer
    joint = fingerprint(source) == fingerprint(target)
    measured = None
    if heads is not None:  # with its arrays by the ends of their names in a record
        arrays = {name: array.tolist() for name, array in heads.arrays()}
        measured = {"fields": plain(heads.document([])), "arrays": arrays}
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "headway": headway.__version__,
        "source_language": stored.source_language,
        "target_language": stored.target_language,
        "domain": stored.domain,
        "config": stored.model.config.to_dict(),
        "decoding": SearchOptions(**stored.decoding).kept_by("web"),
        "tokenizers": {
            "source": tokenizer_description(source),
            "target": None if joint else tokenizer_description(target),
        },
        "never_generated": target.never_generated,
        "alignment": vars(stored.aligner or Aligner()),
        "order": plain(order),
        "head_importance": measured,
        "step": step_of(stored.name),
        "examples": list(examples),
        "card": stored.card,
    }


def _folder_files() -> dict[str, str]:
    """The files of a folder's page by their paths, all but the model. Raises UserError."""
    texts = modules()
    notices = "\n".join(f'<p lang="{language}">{html.escape(text)}</p>' for language, text in NEEDS_A_HOST)
    policy = f"script-src 'self' 'wasm-unsafe-eval' '{digest(FROM_A_DISK)}'; style-src 'self'; "
    policy += "connect-src 'self'; worker-src 'self'; img-src data:"
    head = "".join(f'<link rel="stylesheet" href="views/{name}">\n' for name in STYLES)
    head += '<script type="module" src="views/hosted.js"></script>'
    body = f'<main>\n<div id="from-a-disk" hidden>\n{notices}\n</div>\n</main>\n<script>{FROM_A_DISK}</script>'
    return {
        "index.html": html_page("headway", policy, f"{NO_ICON}\n{head}", body, "en"),
        **{f"views/{name}": style_sheet(name) for name in STYLES},
        **{name: texts[name] for entry in ENTRIES for name in needed(texts, entry)},
    }


def _one_file(model: bytes) -> str:
    """The page with the model, as HTML that opens without a server. Raises UserError."""
    style = inline("style", "".join(map(style_sheet, STYLES)))
    page, worker = (inline("script", script(name)) for name in ("views/one_file.js", "engine/worker.js"))
    policy = f"script-src '{digest(page)}' 'wasm-unsafe-eval'; style-src '{digest(style)}'; "
    policy += "worker-src blob:; img-src data:"
    body = f"""<main></main>
<script type="text/plain" id="worker">{worker}</script>
<script type="text/plain" id="model">{base64.b64encode(model).decode("ascii")}</script>
<script>{page}</script>"""
    return html_page("headway", policy, f"{NO_ICON}\n<style>{style}</style>", body, "en")
