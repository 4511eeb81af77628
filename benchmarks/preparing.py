"""How fast is `headway prepare`, against the tokenizer alone on all cores?

    python benchmarks/preparing.py [--source FILE --target FILE] [--pairs 1000000] [--processes N] [--rounds 3]

The text is the lines of the files, again and again, with a number appended to each, so that no two are the same.
"Alone" is N processes that tokenise their part of it from memory to memory, as fast as the tokenizer can. Preparing
reads the text, filters, tokenises in as many processes and writes everything to disk; its time has all in it but the
learning of the vocabulary: start of the processes, checksums. Medians of the rounds, in turns. Imports that load torch
are in functions, because every process loads what a module imports at its top.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import statistics
import tempfile
import time
from itertools import cycle, islice
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import TYPE_CHECKING

from headway.text.subwords import SubwordTokenizer
from headway.threads import usable_cores

if TYPE_CHECKING:
    from headway.recipe.recipe import Recipe

MAX_LENGTH = 1024
AT_ONCE = 2**14
FILTERS = {
    "words": [1, 200],
    "max_ratio": 9,
    "copies": True,
    "script": True,
    "overlap": "pair",
    "duplicates": ["pair"],
}


def long_text(source: Path, target: Path, pairs: int, folder: Path) -> tuple[Path, Path]:
    """Two files with so many lines."""
    made = folder / f"long{source.suffix}", folder / f"long{target.suffix}"
    for file, longer in zip((source, target), made, strict=True):
        lines = file.read_text(encoding="utf-8").split("\n")[:-1]
        with open(longer, "w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(f"{line} {number}\n" for number, line in enumerate(islice(cycle(lines), pairs)))
    return made


def tokenise(
    model: bytes, files: tuple[Path, Path], part: slice, ready: Barrier, seconds: multiprocessing.Queue
) -> None:
    """One process of those that tokenise alone."""
    tokenizer = SubwordTokenizer(model)
    sides = [file.read_text(encoding="utf-8").split("\n")[:-1][part] for file in files]
    ready.wait()
    start = time.perf_counter()
    for side in sides:
        for first in range(0, len(side), AT_ONCE):
            tokenizer.encode_all(side[first : first + AT_ONCE])
    seconds.put(time.perf_counter() - start)


def seconds_alone(tokenizer: SubwordTokenizer, files: tuple[Path, Path], processes: int) -> float:
    """Until the last of the processes has tokenised its part."""
    context = multiprocessing.get_context("spawn")
    ready, seconds = context.Barrier(processes), context.Queue()
    model = tokenizer.to_bytes()
    started = [
        context.Process(target=tokenise, args=(model, files, slice(first, None, processes), ready, seconds))
        for first in range(processes)
    ]
    for process in started:
        process.start()
    slowest = max(seconds.get() for _ in started)
    for process in started:
        process.join()
    return slowest


def seconds_of_preparing(recipe: Recipe, tokenizer: SubwordTokenizer, processes: int, folder: Path) -> float:
    from headway.data.prepare import prepare_folder
    from headway.training.synthetic import write_synthetic

    options = recipe.preparation(MAX_LENGTH)
    start = time.perf_counter()
    prepare_folder(options, folder, print, write_synthetic, (tokenizer, tokenizer), processes=processes)
    spent = time.perf_counter() - start
    shutil.rmtree(folder)
    return spent


def main() -> None:
    from headway.bench.machine import versions
    from headway.recipe.reading import make_recipe

    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, default=Path("data/multi30k/raw/train.de"))
    parser.add_argument("--target", type=Path, default=Path("data/multi30k/raw/train.en"))
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=usable_cores())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files = long_text(options.source, options.target, options.pairs, folder)
        valid = [folder / f"valid{file.suffix}" for file in files]
        for file, few in zip(files, valid, strict=True):
            with open(file, encoding="utf-8", newline="\n") as stream:
                few.write_text("".join(f"x {line}" for line in islice(stream, 1000)), encoding="utf-8", newline="\n")
        lines = [line for file in (options.source, options.target) for line in file.read_text("utf-8").split("\n")]
        tokenizer = SubwordTokenizer.train(lines, "bpe", 8000)
        document = {
            "data": {
                "train": {"source": str(files[0]), "target": str(files[1])},
                "valid": {"source": str(valid[0]), "target": str(valid[1])},
                "source_language": "de",
                "target_language": "en",
            },
            "training": {"max_steps": 1},
        }
        plain = make_recipe(document)
        filtered = make_recipe({**document, "data": {**document["data"], "filters": FILTERS}})
        spent: dict[str, list[float]] = {"alone": [], "prepare": [], "prepare with filters": []}
        for _ in range(options.rounds):
            spent["alone"].append(seconds_alone(tokenizer, files, options.processes))
            for name, recipe in (("prepare", plain), ("prepare with filters", filtered)):
                spent[name].append(seconds_of_preparing(recipe, tokenizer, options.processes, folder / "prepared"))
    rates = {name: options.pairs / statistics.median(seconds) for name, seconds in spent.items()}
    for name, rate in rates.items():
        print(f"{name}: {rate:,.0f} pairs/s, {rate / rates['alone']:.0%} of the tokenizer alone")
    if options.json:
        found = {"machine": versions("sentencepiece"), "processes": options.processes, "pairs_per_second": rates}
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
