"""Multi30K, task 1 (Elliott et al. 2016, W16-3210; 2017, W17-4718; Barrault et al. 2018): 29,000 picture captions in
German, English, French and Czech. For research and education, not for commerce."""

import gzip
import hashlib
import zlib
from pathlib import Path

from headway.corpora import download
from headway.errors import UserError

URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1"
ELSEWHERE = "download the corpus elsewhere and give its folder"
SHA256 = {
    line.split()[1]: line.split()[0]
    for line in Path(__file__).with_suffix(".sha256").read_text(encoding="ascii").splitlines()
}
"""Checksums of the uncompressed text: raw/ as published, tok/ lower-cased, normalised and tokenised by the authors."""


def lay_out(output: Path, source: Path | None) -> list[Path]:
    """Puts the corpus under `output` as `raw/train.de`, `tok/train.de`, ..., and returns the files.

    Takes the files from the folder `source`, or downloads them where it is None. Every file's checksum must be right;
    nothing is written otherwise. Raises UserError.
    """
    contents = {}
    for name, checksum in SHA256.items():
        is_raw = name.startswith("raw/")  # raw/train.de is published compressed, tok/ with a longer name
        plain = name if is_raw else ".lc.norm.tok.".join(name.split("."))
        published = f"{plain}.gz"
        there, unpack = (published, gzip.decompress) if is_raw else (plain, bytes)
        data = download(f"{URL}/{there}", unpack, ELSEWHERE) if source is None else _find(source, published)
        found = hashlib.sha256(data).hexdigest()
        if found != checksum:
            raise UserError(f"{published}: checksum {found[:12]}... is not that of the corpus; get the file anew")
        contents[output / name] = data
    for file, data in contents.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return list(contents)


def _find(folder: Path, published: str) -> bytes:
    """The file in the folder: with or without `raw/`, with or without `.gz`."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    bare = published.removeprefix("raw/")
    for candidate in [folder / form for name in (published, bare) for form in (name, name.removesuffix(".gz"))]:
        if candidate.is_file():
            data = candidate.read_bytes()
            try:
                return gzip.decompress(data) if candidate.suffix == ".gz" else data
            except (OSError, EOFError, zlib.error) as error:
                raise UserError(f"{candidate}: can't be read ({error})") from None
    raise UserError(
        f"{folder}: has no {published} (nor {bare.removesuffix('.gz')}); "
        "it must be like the folder data/task1 of the repository multi30k/dataset on GitHub"
    )
