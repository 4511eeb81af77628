"""Built-in data: generated corpora, and public ones with checksums."""

import http.client
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from headway.errors import UserError

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class SplitCorpus:
    """Pairs for each split: `train`, `valid`, `test`."""

    source_language: str
    target_language: str
    pairs: dict[str, list[tuple[str, str]]]
    alignments: dict[str, list[str]] = field(default_factory=dict)
    """Alignments of the pairs in Pharaoh format, if known."""

    def write(self, folder: Path) -> None:
        """Writes `train.en`, `train.ko`, ...: one sentence a line; and `train.align`, ...: one alignment a line."""
        for split, pairs in self.pairs.items():
            for side, language in enumerate((self.source_language, self.target_language)):
                write_lines(folder / f"{split}.{language}", [pair[side] for pair in pairs])
            if split in self.alignments:
                write_lines(folder / f"{split}.align", self.alignments[split])


def files_of(*languages: str) -> tuple[str, ...]:
    """The names of the files of text of a corpus: `train.en`, `train.ko`, ..."""
    return tuple(f"{split}.{language}" for split in SPLITS for language in languages)


def write_lines(file: Path, lines: Iterable[str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def download(url: str, unpack: Callable[[bytes], bytes], remedy: str) -> bytes:
    """The published file, unpacked. Raises UserError."""
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "headway"})
        with urllib.request.urlopen(request, timeout=60) as response:
            return unpack(response.read())
    except (OSError, EOFError, KeyError, zlib.error, zipfile.BadZipFile, http.client.HTTPException) as error:
        raise UserError(f"{url}: can't be downloaded ({error}); {remedy} with --from") from None
