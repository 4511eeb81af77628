"""Reads rows of tables: .csv, and the first sheet of .xlsx."""

import csv
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from headway.data.compressed import LONGEST_LINE, damages, plain_name
from headway.data.memories import formats_extra, in_one_line
from headway.errors import UserError

LARGEST, MOST_ROWS, MOST_COLUMNS = 1 << 30, 1 << 20, 256
"""Most bytes of the parts of a workbook, most rows of its sheet, and most columns."""
HEAD = 100
"""Rows by which the delimiter is found."""
csv.field_size_limit(LONGEST_LINE)  # of the whole process


def read_rows(stream: IO[bytes], lines: Iterator[str], file: Path) -> Iterator[tuple[int, list[str]]]:
    """The line, or in a sheet the row, at which each row ends, and its cells, each in one line without TABs; a blank
    row has none. lines: the decoded lines of the stream, which are read for .csv alone. Raises UserError."""
    rows = _rows_of_sheet(stream, file) if plain_name(file).suffix.lower() == ".xlsx" else _rows_of_lines(lines, file)
    for number, cells in rows:
        plain = [in_one_line(cell).replace("\t", " ") for cell in cells]
        yield number, plain if any(plain) else []


def _rows_of_lines(lines: Iterator[str], file: Path) -> Iterator[tuple[int, list[str]]]:
    head = list(islice(lines, HEAD))
    delimiter = _delimiter(head)
    reader = csv.reader((f"{line}\n" for line in chain(head, lines)), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as error:
        raise UserError(f"{file}, line {reader.line_num}: isn't part of a .csv file ({error})") from None


def _delimiter(head: Sequence[str]) -> str:
    """The sign between cells: the one that divides most rows into the same number of cells. The last row may go on
    after the head."""
    alike = dict.fromkeys(",;\t", 0)
    for delimiter in alike:
        try:
            rows = [*csv.reader((f"{line}\n" for line in head), delimiter=delimiter)]
        except csv.Error:
            continue
        counts = Counter(len(row) for row in (rows[:-1] if len(head) == HEAD else rows) if len(row) > 1)
        alike[delimiter] = max(counts.values(), default=0)
    return max(alike, key=alike.__getitem__)


def _rows_of_sheet(stream: IO[bytes], file: Path) -> Iterator[tuple[int, list[str]]]:
    with formats_extra(file):
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    of_parts = zipfile.BadZipFile, InvalidFileException, SyntaxError, RuntimeError  # XML; encrypted or unknown archives
    broken = (*damages(), *of_parts, ValueError, LookupError, TypeError, AttributeError)
    try:
        _check_size(stream, file)
        sheet: Any = load_workbook(stream, read_only=True, data_only=True).worksheets[0]
        sheet.reset_dimensions()  # programs write wrong ones
        width = 0
        for number, values in enumerate(sheet.iter_rows(values_only=True), start=1):
            _check_size_of_sheet(number, len(values), file)
            cells = ["" if value is None else str(value) for value in values]
            while cells and not cells[-1].strip():
                cells.pop()
            width = width or len(cells)
            yield number, cells + [""] * (width - len(cells))
    except UserError:
        raise
    except broken as error:
        raise UserError(f"{file}: can't be read as .xlsx ({' '.join(str(error).split())[:100]})") from None


def _check_size(stream: IO[bytes], file: Path) -> None:
    """Raises UserError for a workbook that takes too much memory."""
    with zipfile.ZipFile(stream) as parts:
        if sum(part.file_size for part in parts.infolist()) > LARGEST:
            raise UserError(f"{file}: unpacks to more than {LARGEST >> 20} MiB; divide it")
    stream.seek(0)


def _check_size_of_sheet(rows: int, columns: int, file: Path) -> None:
    if rows > MOST_ROWS or columns > MOST_COLUMNS:
        raise UserError(f"{file}: has more than {MOST_ROWS:,} rows or {MOST_COLUMNS} columns")
