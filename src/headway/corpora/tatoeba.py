"""Korean - English sentences of tatoeba.org as manythings.org/anki publishes them, split so that nothing leaks.

Many sentences have several translations: pairs that share a sentence, on either side and whatever its case and
punctuation, stay in the same part. CC BY 2.0 France; who wrote which pair goes into `attribution.tsv`.
"""

import hashlib
import io
import zipfile
from collections import defaultdict
from pathlib import Path

from headway.corpora import SPLITS, SplitCorpus, download, files_of, write_lines
from headway.errors import UserError

URL = "https://www.manythings.org/anki/kor-eng.zip"
FILE = "kor.txt"
SHA256 = "6c9d8de3e500306997e4083274fb0038ef521651ffb2b7923e4e607a59d09dbc"
"""The checksum of the version on which published scores were measured; the site adds sentences now and then."""
TEST, VALID = 0.10, 0.05
"""Shares of the pairs; the rest is for training."""
FILES = files_of("ko", "en")

Pair = tuple[str, str, str]


def lay_out(output: Path, source: Path | None) -> tuple[dict[str, int], bool]:
    """Writes train, valid and test, `.ko` and `.en`, and `attribution.tsv` under `output`.

    Takes kor.txt from the folder `source`, or downloads it where it is None. Returns the pairs of each part, and
    whether it is the version that published scores were measured on. Raises UserError.
    """
    if source is None:
        remedy = f"download it elsewhere and give the folder of {FILE}"
        data = download(URL, lambda archive: zipfile.ZipFile(io.BytesIO(archive)).read(FILE), remedy)
    elif (source / FILE).is_file():
        data = (source / FILE).read_bytes()
    else:
        raise UserError(f"{source}: has no {FILE}")
    parts = split_pairs(_parsed(data))
    SplitCorpus("en", "ko", {part: [pair[:2] for pair in pairs] for part, pairs in parts.items()}).write(output)
    write_lines(output / "attribution.tsv", ["\t".join(pair) for pairs in parts.values() for pair in pairs])
    return {part: len(pairs) for part, pairs in parts.items()}, hashlib.sha256(data).hexdigest() == SHA256


def split_pairs(pairs: list[Pair]) -> dict[str, list[Pair]]:
    """Train, valid and test. The part of a pair depends only on the sentences with which it is connected."""
    groups = _connected(pairs)
    parts: dict[str, list[Pair]] = {part: [] for part in SPLITS}
    for pair in pairs:
        digest = hashlib.sha256(groups[_key(pair[0])].encode()).digest()
        place = int.from_bytes(digest[:8]) / 2**64
        parts["test" if place < TEST else "valid" if place < TEST + VALID else "train"].append(pair)
    return parts


def _connected(pairs: list[Pair]) -> dict[str, str]:
    """The alphabetically first of the sentences with which each is connected by shared sentences."""
    neighbours: dict[str, set[str]] = defaultdict(set)
    for english, korean, _ in pairs:
        neighbours[_key(english)].add(f"ko:{_key(korean)}")
        neighbours[f"ko:{_key(korean)}"].add(_key(english))
    first: dict[str, str] = {}
    for start in sorted(neighbours):
        waiting = [] if start in first else [start]
        while waiting:
            sentence = waiting.pop()
            if sentence not in first:
                first[sentence] = start
                waiting += neighbours[sentence]
    return first


def _key(sentence: str) -> str:
    return "".join(char for char in sentence.casefold() if char.isalnum()) or sentence


def _parsed(data: bytes) -> list[Pair]:
    try:
        lines = data.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError:
        raise UserError(f"{FILE}: is not UTF-8 text") from None
    pairs = []
    for number, line in enumerate(lines, start=1):
        columns = line.split("\t")
        if len(columns) != 3:
            raise UserError(f"{FILE}, line {number}: must be English, TAB, Korean, TAB, attribution")
        pairs.append((columns[0].strip(), columns[1].strip(), columns[2]))
    return pairs
