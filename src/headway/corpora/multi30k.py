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
    "raw/train.de": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    "raw/train.en": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    "raw/train.fr": "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
    "raw/train.cs": "2be68b38c8d586ff4f54eb13cc6e1baaaa053695b3f070d3038303a47f2268da",
    "raw/val.de": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    "raw/val.en": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    "raw/val.fr": "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
    "raw/val.cs": "d53827e469b0a1ca8d57e9e26b2b64c4bc4b33f5479c7b03ae87ae5c882c3e33",
    "raw/test_2016_flickr.de": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    "raw/test_2016_flickr.en": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
    "raw/test_2016_flickr.fr": "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
    "raw/test_2016_flickr.cs": "45adb85f688de8407fddcbe1b36dca15d12aab868149b337e2576f2d6d2ff8d8",
    "tok/train.de": "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505",
    "tok/train.en": "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119",
    "tok/val.de": "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00",
    "tok/val.en": "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec",
    "tok/test_2016_flickr.de": "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4",
    "tok/test_2016_flickr.en": "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2",
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
