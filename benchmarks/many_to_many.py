"""A many-to-many model in M2M-100's layout: made here, trained by headway, run by transformers, imported again.

    headway data multi30k
    python benchmarks/many_to_many.py [--text data/multi30k/raw] [--work runs/many-to-many] [--steps 4000] [--lines 200]
        [--only FROM:TO ...]

Makes an untrained M2M-100 folder whose tokenizer is learned from Multi30K's four languages, imports it, trains it on
the twelve directions, exports it as an M2M-100 folder and imports that. Prints, for all directions or some, BLEU on
test_2016_flickr with a beam of 4, and how many of the first --lines transformers translates to the same text, greedily
and with a beam of 4, both without a length penalty. A run that was cut off goes on.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from itertools import chain, islice, permutations
from pathlib import Path
from typing import Any

import yaml

from headway.data.corpus import read_lines
from pretrained_folder import write_folder
from quality import headway

LANGUAGES = ("de", "en", "fr", "cs")
DIRECTIONS = list(permutations(LANGUAGES, 2))
SIZES = {
    **{"d_model": 128, "encoder_layers": 4, "decoder_layers": 4, "encoder_ffn_dim": 256, "decoder_ffn_dim": 256},
    **{"encoder_attention_heads": 4, "decoder_attention_heads": 4, "max_position_embeddings": 256},
    **{"dropout": 0.0, "attention_dropout": 0.0, "init_std": 0.08},
}
"""As the preset tiny. So short a training needs no dropout."""
TOKENS = 8000
VALID = 20
"""Validation pairs of each direction."""
BEAMS = (1, 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, default=Path("data/multi30k/raw"))
    parser.add_argument("--work", type=Path, default=Path("runs/many-to-many"))
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--only", nargs="+", metavar="FROM:TO", default=[f"{one}:{other}" for one, other in DIRECTIONS])
    options = parser.parse_args()
    text, work = options.text.absolute(), options.work.absolute()
    if not (work / "untrained").exists():
        (work / "folder").mkdir(parents=True)
        lines = chain.from_iterable(read_lines(text / f"train.{language}") for language in LANGUAGES)
        write_folder(work / "folder", "M2M100Tokenizer", lines, TOKENS, **SIZES)
        headway("import", work / "folder", "--output", work / "untrained")
    recipe = work / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(recipe_of(text, work, options.steps)), encoding="utf-8")
    if not (work / "imported").exists():
        headway("train", recipe, "--resume", work / "run", threads=1)
        headway("export", work / "run", "--to", "huggingface", "--output", work / "exported")
        headway("import", work / "exported", "--output", work / "imported")
    print(f"| Direction | BLEU | equal of {options.lines}: greedy | beam 4 |\n|---|---|---|---|")
    for direction in options.only:
        source, target = direction.split(":")
        files = ("--source", test(text, source), "--reference", test(text, target))
        chosen = ("--target-language", direction)
        scores = headway("evaluate", work / "imported", *files, *chosen, "--beam-size", 4, "--json", threads=1)
        lines = list(islice(read_lines(test(text, source)), options.lines))
        print(f"| {source} -> {target} | {json.loads(scores)['bleu']:.2f}", end="", flush=True)
        for beam in BEAMS:
            here = ours(work / "imported", lines, chosen, beam)
            there = theirs(work / "exported", lines, source, target, beam)
            print(f" | {sum(map(str.__eq__, here, there))}", end="", flush=True)
        print(" |")


def recipe_of(text: Path, work: Path, steps: int) -> dict[str, Any]:
    """The twelve directions, each with a tag of both its languages."""
    for language in LANGUAGES:
        few = islice(read_lines(text / f"val.{language}"), VALID)
        (work / f"valid.{language}").write_text("".join(f"{line}\n" for line in few), encoding="utf-8")
    corpora = {
        split: [
            {"source": f"{folder}/{split}.{one}", "target": f"{folder}/{split}.{other}", "tag": f"{one}:{other}"}
            for one, other in DIRECTIONS
        ]
        for split, folder in (("train", text), ("valid", work))
    }
    training = {"init_from": str(work / "untrained"), "max_steps": steps, "validate_every": max(1, steps // 3)}
    training |= {"learning_rate": 2e-3, "schedule": "wsd", "warmup_steps": min(200, steps // 2)}
    return {"data": corpora, "training": {**training, "tokens_per_batch": 2048, "label_smoothing": 0.1}}


def test(text: Path, language: str) -> Path:
    return text / f"test_2016_flickr.{language}"


def ours(model: Path, lines: list[str], chosen: tuple[str, str], beam: int) -> list[str]:
    """Translated by headway, with torch, in fp32."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
        file.flush()
        exact = ("--engine", "torch", "--precision", "fp32", "--length-penalty", 0)
        return headway("translate", model, file.name, *chosen, "--beam-size", beam, *exact, threads=1).splitlines()


def theirs(folder: Path, lines: list[str], source: str, target: str, beam: int) -> list[str]:
    """Translated by transformers, as its users do."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, src_lang=source)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    options = {"num_beams": beam, "length_penalty": 0.0, "early_stopping": "never" if beam > 1 else False}
    options["forced_bos_token_id"] = tokenizer.get_lang_id(target)
    found = (model.generate(**tokenizer(line, return_tensors="pt"), **options)[0] for line in lines)
    return [tokenizer.decode(ids, skip_special_tokens=True) for ids in found]


if __name__ == "__main__":
    main()
