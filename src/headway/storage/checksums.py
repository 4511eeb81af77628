"""Checksums of a folder's files, in a file `SHA256SUMS` that `sha256sum --check` reads too."""

import hashlib
import re
from pathlib import Path

SUMS_FILE = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  ([^/\n]+)\n")


def checksum(file: Path) -> str:
    """SHA-256 of the file, in hexadecimal."""
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_checksums(folder: Path) -> None:
    """Writes the checksums of all files of the folder."""
    files = sorted(file for file in folder.iterdir() if file.name != SUMS_FILE)
    (folder / SUMS_FILE).write_bytes("".join(f"{checksum(file)}  {file.name}\n" for file in files).encode())


def find_damage(folder: Path) -> str | None:
    """The first fault of a folder with checksums; None if all of its files, and no others, are as they were written."""
    try:
        text = (folder / SUMS_FILE).read_bytes().decode("utf-8")
        sums = {name: sum_ for sum_, name in _LINE.findall(text)}
        if not text or text != "".join(f"{sum_}  {name}\n" for name, sum_ in sums.items()):
            return f"{SUMS_FILE} is damaged"
        if names := sums.keys() ^ {file.name for file in folder.iterdir() if file.name != SUMS_FILE}:
            return f"{min(names)} is {'missing' if min(names) in sums else 'not one of its files'}"
        return next((f"{name} is damaged" for name, sum_ in sums.items() if checksum(folder / name) != sum_), None)
    except UnicodeDecodeError:
        return f"{SUMS_FILE} is damaged"
    except OSError as error:
        return f"{Path(error.filename or SUMS_FILE).name} can't be read ({error.strerror})"
