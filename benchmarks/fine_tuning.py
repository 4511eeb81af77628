"""What does fine-tuning on a small domain gain, and what does the general model lose?

    headway data multi30k && headway train multi30k-de-en
    python benchmarks/fine_tuning.py [--general runs/multi30k-de-en] [--work runs/fine-tuning] [--steps 600]
        [--general-text data/multi30k/raw] [--messages /usr/share/locale/de/LC_MESSAGES | --pairs FOLDER]
        [--direction de:en] [--rate 5e-4] [--adapter-rate 3e-3] [--only NAME ...]

The general model describes pictures (Multi30K, German to English). The domain is PostgreSQL's messages and their
German translation, which Debian's packages of PostgreSQL install: other words, other sentences, `%s` in them. A split
never parts messages that are alike but for case, numbers and punctuation. --pairs: other messages, 8,000 of those in
the folder's train.en-de.tsv, with its valid and test, in three columns: program (or help page), English, German.

Fine-tunes the general model on the messages alone, on the messages mixed with a fifth of its old training text, and the
same after `headway extend`; a name with `adapter` in it, such as `mixed, adapter`, trains one of rank 16 in place of
all weights. A model with tokens of languages gets the direction as its tag. Scores each with the model's beam on the
messages and on test_2016_flickr, and prints a Markdown table, with the processor time and peak memory of the training.
A run that was cut off goes on.
"""

from __future__ import annotations

import argparse
import gettext
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import yaml

from headway.data.corpus import read_lines
from headway.storage import read_model
from quality import headway

PARTS = re.compile(r"(postgres|psql|pg_\w+|pgscripts|plpgsql)-\d+\.mo")
TEST, VALID = 1000, 300
"""Messages, about: those that are alike stay together."""
MIXED_STEPS = 4 / 3
"""Steps of a mixed run for each step without mixing, which half makes up for the general text in them."""
GENERAL_WEIGHT = 0.2
NEW_PIECES = 1000
ADAPTER = {"kind": "lora", "rank": 16}
PAIRS, SHORTEST, LONGEST = 8000, 3, 30
"""Training pairs of --pairs, and the words of their English."""
Splits = dict[str, list[tuple[str, str]]]
"""Pairs of English and German."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--general", type=Path, default=Path("runs/multi30k-de-en"))
    parser.add_argument("--general-text", type=Path, default=Path("data/multi30k/raw"))
    parser.add_argument("--messages", type=Path, default=Path("/usr/share/locale/de/LC_MESSAGES"))
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--direction", choices=["de:en", "en:de"], default="de:en")
    parser.add_argument("--work", type=Path, default=Path("runs/fine-tuning"))
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--adapter-rate", type=float, default=3e-3)
    parser.add_argument("--only", nargs="+", default=["pure", "mixed", "mixed, new pieces"])
    options = parser.parse_args()
    domain, general = options.work / "messages", options.general_text
    if not domain.exists():
        write_splits(messages(options.messages) if options.pairs is None else pairs(options.pairs), domain)
    tag = options.direction if read_model(options.general).source_tokenizer.many_sources else ""
    sides, tests = options.direction.split(":"), (domain / "test", general / "test_2016_flickr")
    before = [bleu(options.general, test, sides, tag) for test in tests]
    rows = []
    for name in options.only:
        run = options.work / name.replace(", ", "-").replace(" ", "-")
        start = extended(options.general, domain, options.work) if "new pieces" in name else options.general
        mixed = general if name.startswith("mixed") else None
        steps = round(options.steps * MIXED_STEPS) if mixed else options.steps
        training = {"learning_rate": options.rate}
        if "adapter" in name:
            training = {"learning_rate": options.adapter_rate, "adapter": ADAPTER}
        recipe = options.work / f"{run.name}.yaml"
        document = fine_tuning(start, domain, mixed, steps, sides, tag, training)
        recipe.write_text(yaml.safe_dump(document), encoding="utf-8")
        cost = trained(recipe, run)
        rows.append((name, *(bleu(run, test, sides, tag) for test in tests), *cost))
    print("| Model | messages, BLEU | gain | Flickr, BLEU | lost | processor time | peak memory |")
    print("|---|---|---|---|---|---|---|")
    print(f"| general | {before[0]:.2f} | | {before[1]:.2f} | | | |")
    for name, found, kept, seconds, mib in rows:
        lost = f"{found - before[0]:.2f} | {kept:.2f} | {before[1] - kept:.2f}"
        print(f"| {name} | {found:.2f} | {lost} | {seconds:.0f} s | {mib:.0f} MiB |")


def trained(recipe: Path, run: Path) -> tuple[float, float]:
    """Trains, and returns the seconds of the processor and the peak memory in MiB of the whole command."""
    command = [sys.executable, "-m", "headway", "train", recipe, "--resume", run, "--threads", "1"]
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(process.returncode)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def messages(folder: Path) -> Splits:
    """What PostgreSQL says, each message once."""
    alike: dict[str, dict[str, str]] = {}
    for file in sorted(folder.iterdir()):
        if PARTS.fullmatch(file.name):
            with open(file, "rb") as stream:
                catalog: dict[object, str] = gettext.GNUTranslations(stream)._catalog  # type: ignore[attr-defined]
            for message, translation in catalog.items():
                if isinstance(message, str):  # not a plural form
                    english, german = message.rpartition("\x04")[2].strip(), translation.strip()
                    if len(english.split()) >= 3 and "\n" not in english + german and english != german:
                        alike.setdefault(re.sub("[^a-z]+", " ", english.lower()), {})[english] = german
    if not alike:
        raise SystemExit(f"{folder}: has no German messages of PostgreSQL; install postgresql and postgresql-client")
    splits: Splits = {"test": [], "valid": [], "train": []}
    for key in sorted(alike, key=lambda key: hashlib.sha256(key.encode()).digest()):
        split = "test" if len(splits["test"]) < TEST else "valid" if len(splits["valid"]) < VALID else "train"
        splits[split] += alike[key].items()
    return splits


def pairs(folder: Path) -> Splits:
    """Messages of programs without those of help pages and those with line breaks."""
    splits: Splits = {}
    for split, most in (("test", TEST), ("valid", VALID), ("train", PAIRS)):
        rows = [line.split("\t") for line in read_lines(folder / f"{split}.en-de.tsv")]
        chosen = {
            (english, german): None
            for origin, english, german in rows
            if not origin.startswith("help:") and "\\" not in english + german and english != german
            if SHORTEST <= len(english.split()) <= LONGEST
        }
        splits[split] = list(chosen)[:: max(1, len(chosen) // most)][:most]
    return splits


def write_splits(splits: Splits, output: Path) -> None:
    """One message a line."""
    output.mkdir(parents=True)
    for split, pairs in splits.items():
        for language, place in (("en", 0), ("de", 1)):
            (output / f"{split}.{language}").write_text("".join(f"{pair[place]}\n" for pair in pairs), "utf-8")


def fine_tuning(
    start: Path,
    domain: Path,
    general: Path | None,
    steps: int,
    sides: Iterable[str],
    tag: str,
    training: dict[str, object],
) -> dict[str, object]:
    """A recipe; what it doesn't say is the model's."""

    def corpus(folder: Path, split: str) -> dict[str, object]:
        files = [str((folder / f"{split}.{code}").absolute()) for code in sides]
        return {**dict(zip(("source", "target"), files, strict=True)), **({"tag": tag} if tag else {})}

    train, valid = [corpus(domain, "train")], [corpus(domain, "valid")]
    if general:
        train.append({**corpus(general, "train"), "weight": GENERAL_WEIGHT})
        valid.append(corpus(general, "val"))
    options = {"init_from": str(start.absolute()), "max_steps": steps, "validate_every": max(1, steps // 2)}
    options |= {"schedule": "cosine", "warmup_steps": min(100, steps // 2), **training}
    return {"data": {"train": train, "valid": valid}, "training": options}


def extended(general: Path, domain: Path, work: Path) -> Path:
    """The general model with pieces of the messages."""
    output = work / "extended"
    if not output.exists():
        text = ("--source", domain / "train.de", "--target", domain / "train.en")
        headway("extend", general, "--add-pieces", NEW_PIECES, *text, "--output", output)
    return output


def bleu(model: Path, test: Path, sides: Iterable[str], tag: str) -> float:
    source, target = (f"{test}.{code}" for code in sides)
    files = ("--source", source, "--reference", target, *(("--target-language", tag) if tag else ()))
    return json.loads(headway("evaluate", model, *files, "--json", threads=1))["bleu"]


if __name__ == "__main__":
    main()
