"""How large and how fast is a model in the browser, and is it the model?

    python benchmarks/web.py MODEL SOURCE REFERENCE [--lines 500] [--sentences 30] [--onnxruntime-web FOLDER]

Exports the model as a page and opens it in Chromium: bytes; milliseconds from opening the page to a model that is
ready; milliseconds a sentence of about 20 pieces by greedy search and with a beam of 5, with the kernel of WebAssembly
and without, as one waits and of processor time (Linux). Then translates lines with float32 and int8 weights, and
compares them with headway's translations and in BLEU.

FOLDER is onnxruntime-web as `npm pack onnxruntime-web` and `tar` leave it (`package/dist`): the same model, exported to
ONNX, takes turns on the same sentences in the same browser, with one thread, and with as many steps as our search took.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from headway import Translator
from headway.evaluation import score_translations
from headway.interop.onnx import export_onnx
from headway.page.export import export_web
from headway.storage import load_model
from static_host import static_host

PIECES = 20
"""Of the sentences that are timed, <eos> included: those that are nearest to it."""
HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--lines", type=int, default=500)
    parser.add_argument("--sentences", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--onnxruntime-web", type=Path)
    options = parser.parse_args()
    stored = load_model(options.model)
    sources = options.source.read_text(encoding="utf-8").splitlines()
    off = [abs(len(ids) + 1 - PIECES) for ids in stored.source_tokenizer.encode_all(sources)]
    timed = [sources[i] for i in sorted(range(len(sources)), key=off.__getitem__)[: options.sentences]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for precision in ("int8", "float32"):
            export_web(stored, folder / precision, precision, examples=timed[:1])
        export_web(stored, folder / "page.html", "int8", examples=timed[:1])
        peer = options.onnxruntime_web
        if peer:
            export_onnx(stored, folder / "onnx")
            shutil.copytree(peer, folder / "ort", ignore=shutil.ignore_patterns("*.map"))
            shutil.copy(HERE / "web_onnx.js", folder)
        for precision in ("int8", "float32"):
            (folder / precision / "empty.html").write_text("<!doctype html><title>empty</title>")
        with static_host(folder) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page()
            report_size(folder, peer)
            report_ready(page, folder / "page.html", options.rounds)
            report_speed(page, address, timed, options.rounds, with_peer=peer is not None)
            lines = slice(options.lines)
            references = options.reference.read_text(encoding="utf-8").splitlines()[lines]
            report_quality(page, address, options.model, sources[lines], references)
            browser.close()


def report_size(folder: Path, peer: Path | None) -> None:
    print(f"one file, int8: {(folder / 'page.html').stat().st_size:,} bytes")
    for precision in ("int8", "float32"):
        total = sum(file.stat().st_size for file in (folder / precision).rglob("*") if file.is_file())
        print(f"folder, {precision}: {total:,} bytes, model {(folder / precision / 'model.headway').stat().st_size:,}")
    if peer:
        runtime = sum((peer / f"ort{name}").stat().st_size for name in RUNTIME)
        model = sum(file.stat().st_size for file in (folder / "onnx").iterdir())
        print(f"onnxruntime-web: {runtime:,} bytes, and the model in ONNX {model:,}")


RUNTIME = (".wasm.min.mjs", "-wasm-simd-threaded.mjs", "-wasm-simd-threaded.wasm")


def report_ready(page: Page, file: Path, rounds: int) -> None:
    ready, shown = [], []
    for _ in range(rounds + 1):
        page.goto(file.as_uri())
        page.wait_for_selector("[role=tabpanel]")
        ready.append(page.evaluate("performance.getEntriesByName('headway-ready')[0].startTime"))
        shown.append(page.evaluate("performance.now()"))
    print(f"ready after {times(ready[1:])}, the first record is shown after {times(shown[1:])}")


def report_speed(page: Page, address: str, texts: list[str], rounds: int, *, with_peer: bool) -> None:
    """In turns. Processor time is that of all threads of the browser's renderers: what else runs on the machine hardly
    changes it."""
    page.goto(f"{address}/int8/empty.html")
    page.evaluate(LOAD, [texts, with_peer])
    pids = renderers(os.getpid())
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for _ in range(rounds + 1):
        for contender in ("kernel", "plain", *(["peer"] if with_peer else [])):
            for beam_size in (1, 5):
                before = processor_time(pids)
                taken = page.evaluate(TIME, [contender, texts, beam_size])
                used = (processor_time(pids) - before) / len(texts)
                found.setdefault((contender, beam_size), []).append((statistics.median(taken), used))
    for (contender, beam_size), (_, *each) in found.items():  # the first round warms up
        medians, used = zip(*each, strict=True)
        print(f"{contender}, beam {beam_size}: {times(medians)} a sentence, median of {len(texts)}")
        print(f"  processor time {times(used)}, mean")


def renderers(pid: int) -> list[int]:
    """Of the browser that a process has started, on Linux."""
    found = [pid] if b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes() else []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += renderers(int(child))
    return found


def processor_time(pids: list[int]) -> float:
    """Milliseconds that all threads of the processes have run."""
    total = 0
    for file in (one for pid in pids for one in Path(f"/proc/{pid}/task").glob("*/schedstat")):
        with suppress(OSError):  # the thread has ended
            total += int(file.read_text().split()[0])
    return total / 1e6


LOAD = """async ([texts, withPeer]) => {
  const { load } = await import("./engine/load.js");
  window.models = { kernel: await load("model.headway"), plain: await load("model.headway", { withKernel: false }) };
  if (!withPeer) return;
  window.peer = await (await import("../web_onnx.js")).open("../onnx/", "../ort/");
  window.searches = { 1: [], 5: [] }; // ids of the source, and steps that our search took
  for (const beamSize of [1, 5]) {
    for (const text of texts) {
      const { source_tokens, tokens } = await models.kernel.translate(text, { beamSize });
      const record = await models.kernel.inspect(text, { beamSize, arrays: "none" });
      const steps = beamSize === 1 ? tokens.length + 1 : record.beam.steps.length;
      searches[beamSize].push([[...source_tokens.map(({ id }) => id), 3], steps]);
    }
  }
}"""

TIME = """async ([contender, texts, beamSize]) => {
  const taken = [];
  for (const [number, text] of texts.entries()) {
    const start = performance.now();
    if (contender === "peer") await peer.search(...searches[beamSize][number], beamSize);
    else await models[contender].translate(text, { beamSize });
    taken.push(performance.now() - start);
  }
  return taken;
}"""


def report_quality(page: Page, address: str, model: Path, sources: list[str], references: list[str]) -> None:
    translator = Translator.load(model, engine="torch", precision="fp32", device="cpu")
    for beam_size in (1, 5):
        ours = [one.text for one in translator.translate(sources, beam_size=beam_size)]
        bleu = score_translations(ours, references).bleu
        print(f"beam {beam_size}, {len(sources)} lines: BLEU {bleu:.2f} in headway, fp32")
        for precision in ("float32", "int8"):
            page.goto(f"{address}/{precision}/empty.html")
            found = page.evaluate(TRANSLATE, [sources, beam_size])
            same = sum(one == other for one, other in zip(found, ours, strict=True))
            bleu = score_translations(found, references).bleu
            print(f"  {precision} in the page: {bleu:.2f}, {same} lines are equal")


TRANSLATE = """async ([texts, beamSize]) => {
  const { load } = await import("./engine/load.js");
  const model = await load("model.headway");
  const found = [];
  for (const text of texts) found.push((await model.translate(text, { beamSize })).text);
  model.close();
  return found;
}"""


def times(milliseconds: Sequence[float]) -> str:
    return f"{statistics.median(milliseconds):.0f} ms ({min(milliseconds):.0f} to {max(milliseconds):.0f})"


if __name__ == "__main__":
    main()
