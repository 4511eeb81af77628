"""The commands for text: data gets a corpus, split divides one, check finds doubtful lines, perturb adds noise."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from headway.cli import options
from headway.cli.files import input_lines, parallel_pairs, print_json, tell, write_as_they_arrive
from headway.cli.options import Files, Pairs, files
from headway.data.check import check_corpus
from headway.data.corpus import ANY_PAIRS, as_corpus
from headway.data.lines import Layout, Line
from headway.data.noise import KINDS, perturbed
from headway.errors import UserError

CORPORA = ("multi30k", "tatoeba-ko-en", "dates", "romanization")


def data(
    name: Annotated[
        str, Argument(metavar="NAME", help="multi30k, tatoeba-ko-en, dates (the demo's), romanization (Korean names).")
    ],
    source: Annotated[
        Path | None, Option("--from", metavar="FOLDER", help="Folder with the published files. Default: download them.")
    ] = None,
    output: Annotated[Path | None, options.output("Folder for the corpus. Default: data/NAME.", "FOLDER")] = None,
    languages: Annotated[str | None, Option(help="Locales of the dates corpus, source-target. Default: en-ko.")] = None,
) -> None:
    """Get a corpus and put it where the recipes expect it.

    Checksums verify that it is the corpus on which the published scores were measured.

    \b
    headway data multi30k                            downloads it
    headway data multi30k --from ~/downloads/multi30k
    headway data tatoeba-ko-en
    headway data dates --languages en-fr
    headway data romanization
    """
    from headway.corpora import multi30k, romanization, tatoeba

    output = output or Path("data") / name
    if name not in CORPORA:
        raise UserError(f"corpus {name!r} is unknown; there are {', '.join(CORPORA[:-1])} and {CORPORA[-1]}")
    if languages is not None and name != "dates":
        raise UserError(f"--languages {languages}: only the corpus dates takes languages; leave it out for {name}")
    match name:
        case "multi30k":
            tell(f"{len(multi30k.lay_out(output, source))} files in {output}")
        case "tatoeba-ko-en":
            counts, as_published = tatoeba.lay_out(output, source)
            tell(f"pairs: {', '.join(f'{part} {count:,}' for part, count in counts.items())}, in {output}")
            if not as_published:
                tell("notice: not the version that the recipe's score was measured on")
        case "dates" | "romanization" if source is not None:
            raise UserError(f"{name} is generated; leave --from out")
        case "dates":
            from headway.corpora.dates import dates_corpus

            dates_corpus(*parse_languages(languages or "en-ko")).write(output)
            tell(f"train, valid and test in {output}")
        case "romanization":
            romanization.romanization_corpus().write(output)
            tell(f"train, valid and test in {output}")


def parse_languages(languages: str) -> tuple[str, str]:
    """`en-ko` to the two locales; the parts of a locale are joined by `_`, as in `en_GB-ko`."""
    source, _, target = languages.partition("-")
    if not (source and target):
        raise UserError(f"--languages {languages}: must be source-target, such as en-ko or en_GB-ko")
    if source == target:
        raise UserError(f"--languages {languages}: the two must differ")
    return source, target


def split(
    pairs: Pairs = None,
    output: Annotated[Path | None, options.output("Folder to make.", "FOLDER")] = None,
    source: Annotated[Files, files("Text, one sentence per line.")] = None,
    target: Annotated[Files, files("Its translation, line for line, in as many files.")] = None,
    source_language: Annotated[
        str, Option(metavar="CODE", help="Language of the source. Default: by the files' names or columns.")
    ] = "",
    target_language: Annotated[str, Option(metavar="CODE", help="Language of the target, likewise.")] = "",
    column: options.Columns = None,
    document: options.Document = None,
) -> None:
    """Split a corpus into parts for training, validation and testing.

    About 1,000 pairs are for validation and 1,000 for testing, or a tenth each of fewer than 10,000. All translations
    of a source are in one part. Training pairs are left out if their source is nearly the same as one in the other
    parts. The same text is always split in the same way.

    \b
    headway split corpus.tsv --source-language de --target-language en --output split
    headway split --source corpus.de --target corpus.en --output split
    headway split corpus.tsv --column 2 --column 3 --document 1 --source-language en --target-language ko --output split
    """
    from headway.data.splitting import split_corpus

    if output is None:
        raise UserError("--output is missing: the folder to make")
    if bool(pairs) == bool(source) or (pairs and target):
        raise UserError(f"give either PAIRS ({ANY_PAIRS}) or --source with its --target")
    columns = _columns_of(column, target)
    corpus = replace(as_corpus(pairs or source or [], target or []), columns=columns)
    named = corpus.named_languages()
    languages = {"source": source_language or named[0], "target": target_language or named[1]}
    if missing := [f"--{side}-language CODE" for side, code in languages.items() if not code]:
        raise UserError(f"{corpus.sources[0]}: doesn't say its languages; give {' '.join(missing)}, such as de")
    sides = languages["source"], languages["target"]
    tell(split_corpus(corpus, output, sides, document=options.layout_of(document, "--document"), tell=tell).summary())


def check(
    pairs: Pairs = None,
    source: Annotated[Files, files("Text, one sentence per line.")] = None,
    target: Annotated[Files, files("Its translation, line for line.")] = None,
    valid_source: Annotated[Files, files("Text for validation or testing.")] = None,
    valid_target: Annotated[Files, files("The translation of the validation or test text.")] = None,
    source_language: Annotated[str, Option(metavar="CODE", help="Language of the source, for files of several.")] = "",
    target_language: Annotated[str, Option(metavar="CODE", help="Language of the target, likewise.")] = "",
    column: options.Columns = None,
    as_json: options.JsonOutput = False,
) -> None:
    """Find lines that look wrong in a parallel corpus.

    Checks lengths and their ratios, scripts, encoding and repeats, and names the lines.

    \b
    headway check --source train.de --target train.en
    headway check app.po
    headway check --source train.de --target train.en --valid-source test.de --valid-target test.en
    """
    if valid_target and not valid_source:
        raise UserError("--valid-target needs its --valid-source")
    if bool(pairs) == bool(source) or (pairs and target):
        raise UserError(f"give either PAIRS ({ANY_PAIRS}) or --source with its --target")
    given, languages = pairs or source or [], (source_language, target_language)
    columns = _columns_of(column, [*(target or []), *(valid_target or [])])
    read = list(parallel_pairs(given, target or [], lenient=True, languages=languages, columns=columns))
    held_out = ()
    if valid_source:
        held_out = parallel_pairs(valid_source, valid_target or [], lenient=True, languages=languages, columns=columns)
    if not read:
        raise UserError(f"{given[0]}: is empty, or has no pairs")
    found = check_corpus(read, held_out)
    if as_json:
        print_json(asdict(found))
        return
    typer.echo(f"{found.pairs:,} pairs, {found.character_ratio:.2f} target characters for each source character")
    for name, side in (("source", found.source), ("target", found.target)) if found.usable else ():
        longest = f"at most {side.longest_words} ({side.longest_place})"
        mean = side.words / found.usable
        typer.echo(f"{name}: {side.words:,} words, {mean:.1f} a line, {longest}, mainly {side.script}")
    for finding in found.findings:
        places = ", ".join(finding.places) + ", ..." * (finding.count > len(finding.places))
        typer.echo(f"{finding.count:>7,}  {finding.name}: {finding.meaning}\n         {places}")
    if not found.findings:
        typer.echo("nothing to doubt")


def _columns_of(column: list[int] | None, target: Files) -> tuple[int, int] | None:
    """The columns of files that hold both sides. Raises UserError, also if there are others."""
    if column and target:
        raise UserError(f"--column chooses columns of files that hold both sides; leave it out with {target[0]}")
    return options.columns_of(column)


def perturb(
    kind: Annotated[
        str, Argument(metavar="KIND", help="lower, upper, typos, punctuation (none at the end), diacritics (none).")
    ],
    file: Annotated[str, Argument(metavar="[FILE|-]", help="Text, one sentence per line, also .gz, .xz, .zst.")] = "-",
    seed: Annotated[int, Option(help="Random seed of the typos; the same seed gives the same typos.")] = 1,
    output: Annotated[Path | None, options.output("Write the text to this file.")] = None,
) -> None:
    """Make a noisy copy of a test set, to measure robustness.

    The noise of a line depends only on its text and the seed. data.noise in a recipe trains with the same kinds of
    noise.

    \b
    headway perturb typos test.de --output test.typos.de
    headway perturb upper test.de
    headway evaluate runs/mine --source test.typos.de --reference test.en
    """
    if kind not in KINDS:
        raise UserError(f"KIND {kind}: unknown; choose one of {', '.join(KINDS)}")
    options.check_output(output)

    def noisy(lines: list[Line]) -> str:
        return "".join(f"{perturbed(line.text, kind, seed)}\n" for line in lines)

    write_as_they_arrive(input_lines(file, Layout()), file, output, noisy)
