"""What does fine-tuning on a small domain gain, and what does the general model lose?

    headway data multi30k && headway train multi30k-de-en
    python benchmarks/fine_tuning.py [--general runs/multi30k-de-en] [--work runs/fine-tuning] [--steps 600]
        [--general-text data/multi30k/raw] [--messages /usr/share/locale/de/LC_MESSAGES] [--only NAME ...]

The general model describes pictures (Multi30K, German to English). The domain is PostgreSQL's messages and their
German translation, which Debian's packages of PostgreSQL install: other words, other sentences, `%s` in them. A split
never parts messages that are alike but for case, numbers and punctuation. Fine-tunes the general model on the messages
alone, on the messages mixed with a fifth of its old training text, and the same after `headway extend`; a name with
`adapter` in it, such as `mixed, adapter`, trains one of rank 16 in place of all weights. Scores each with a beam of 5
on the messages and on test_2016_flickr, and prints a Markdown table. A run that was cut off goes on.
"""

from __future__ import annotations

import argparse
import gettext
import hashlib
import json
import re
from pathlib import Path

import yaml

from quality import headway

PARTS = re.compile(r"(postgres|psql|pg_\w+|pgscripts|plpgsql)-\d+\.mo")
TEST, VALID = 1000, 300
"""Messages, about: those that are alike stay together."""
MIXED_STEPS = 4 / 3
"""Steps of a mixed run for each step without mixing, which half makes up for the general text in them."""
GENERAL_WEIGHT = 0.2
NEW_PIECES = 1000
ADAPTER, ADAPTER_RATE = {"kind": "lora", "rank": 16}, 3e-3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--general", type=Path, default=Path("runs/multi30k-de-en"))
    parser.add_argument("--general-text", type=Path, default=Path("data/multi30k/raw"))
    parser.add_argument("--messages", type=Path, default=Path("/usr/share/locale/de/LC_MESSAGES"))
    parser.add_argument("--work", type=Path, default=Path("runs/fine-tuning"))
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--only", nargs="+", default=["pure", "mixed", "mixed, new pieces"])
    options = parser.parse_args()
    domain, general = options.work / "messages", options.general_text
    if not domain.exists():
        write_messages(options.messages, domain)
    tests = domain / "test", general / "test_2016_flickr"
    before = [bleu(options.general, test) for test in tests]
    scores = {}
    for name in options.only:
        run = options.work / name.replace(", ", "-").replace(" ", "-")
        start = extended(options.general, domain, options.work) if "new pieces" in name else options.general
        mixed = general if name.startswith("mixed") else None
        steps = round(options.steps * MIXED_STEPS) if mixed else options.steps
        recipe = options.work / f"{run.name}.yaml"
        recipe.write_text(
            yaml.safe_dump(fine_tuning(start, domain, mixed, steps, adapter="adapter" in name)), encoding="utf-8"
        )
        headway("train", recipe, "--resume", run, threads=1)
        scores[name] = [bleu(run, test) for test in tests]
    print("| Model | messages, BLEU | gain | Flickr, BLEU | lost |\n|---|---|---|---|---|")
    print(f"| general | {before[0]:.2f} | | {before[1]:.2f} | |")
    for name, (found, kept) in scores.items():
        print(f"| {name} | {found:.2f} | {found - before[0]:.2f} | {kept:.2f} | {before[1] - kept:.2f} |")


def write_messages(folder: Path, output: Path) -> None:
    """Train, valid and test of what PostgreSQL says, one message a line."""
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
    splits: dict[str, list[tuple[str, str]]] = {"test": [], "valid": [], "train": []}
    for key in sorted(alike, key=lambda key: hashlib.sha256(key.encode()).digest()):
        split = "test" if len(splits["test"]) < TEST else "valid" if len(splits["valid"]) < VALID else "train"
        splits[split] += alike[key].items()
    output.mkdir(parents=True)
    for split, pairs in splits.items():
        for language, place in (("en", 0), ("de", 1)):
            (output / f"{split}.{language}").write_text("".join(f"{pair[place]}\n" for pair in pairs), "utf-8")


def fine_tuning(
    start: Path, domain: Path, general: Path | None, steps: int, *, adapter: bool = False
) -> dict[str, object]:
    """A recipe; what it doesn't say is the model's."""
    train, valid = [corpus(domain, "train")], [corpus(domain, "valid")]
    if general:
        train.append({**corpus(general, "train"), "weight": GENERAL_WEIGHT})
        valid.append(corpus(general, "val"))
    options = {"init_from": str(start.absolute()), "max_steps": steps, "validate_every": max(1, steps // 2)}
    options |= {"learning_rate": 5e-4, "schedule": "cosine", "warmup_steps": min(100, steps // 2)}
    if adapter:
        options |= {"adapter": ADAPTER, "learning_rate": ADAPTER_RATE}
    return {"data": {"train": train, "valid": valid}, "training": options}


def corpus(folder: Path, split: str) -> dict[str, object]:
    return {side: str((folder / f"{split}.{code}").absolute()) for side, code in (("source", "de"), ("target", "en"))}


def extended(general: Path, domain: Path, work: Path) -> Path:
    """The general model with pieces of the messages."""
    output = work / "extended"
    if not output.exists():
        text = ("--source", domain / "train.de", "--target", domain / "train.en")
        headway("extend", general, "--add-pieces", NEW_PIECES, *text, "--output", output)
    return output


def bleu(model: Path, test: Path) -> float:
    files = ("--source", f"{test}.de", "--reference", f"{test}.en")
    return json.loads(headway("evaluate", model, *files, "--json", threads=1))["bleu"]


if __name__ == "__main__":
    main()
