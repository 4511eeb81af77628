"""The manifest of a cluster's job: which lines of which input become which file of the output.

A folder of translations holds `manifest.json` and one file per shard, `part-00000.txt` and so on. In order they are the
translations of all inputs. A shard appears by a rename when it is complete, so the missing files are what is left to
do, whatever was killed. Next to it, `part-00000.notices` lists the lines without a complete translation, if there are
any.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from headway.data.compressed import open_bytes
from headway.data.corpus import decode_lines
from headway.data.lines import Span, chunks
from headway.errors import UserError
from headway.storage.atomic import write_json
from headway.storage.checksums import checksum
from headway.storage.untrusted import parse_json
from headway.translator.job import refuse_other_job

FORMAT_VERSION = 2
MANIFEST_FILE = "manifest.json"
MOST_SHARDS = 10_000
"""Most shards of a job. With more chunks than that, several become one shard."""


@dataclass(frozen=True)
class TextShard:
    """Lines of one input, and the name of their translations."""

    name: str
    file: int
    """The index of the input."""
    span: Span


@dataclass(frozen=True)
class Manifest:
    """Everything that defines a job. The files in the folder say what is done."""

    folder: Path
    inputs: list[dict[str, Any]]
    """The `path`, the `size` in bytes and the `sha256` of each input."""
    shards: list[TextShard]

    @property
    def lines(self) -> int:
        return sum(shard.span.lines for shard in self.shards)

    def missing(self) -> list[TextShard]:
        """The shards that are not translated yet."""
        present = {file.name for file in self.folder.iterdir()}
        return [shard for shard in self.shards if f"{shard.name}.txt" not in present]

    def failed(self) -> int:
        """The number of lines left blank in all finished shards."""
        return sum(
            json.loads(file.read_text(encoding="utf-8"))["failed"] for file in self.folder.glob("part-*.notices")
        )


def open_manifest(
    folder: Path, inputs: Sequence[Path], identity: dict[str, Any], notice: Callable[[str], None]
) -> Manifest:
    """The manifest in the folder, or a new one. identity: what must stay the same for a job to continue. Raises
    UserError if the folder is of another job or holds something else."""
    file = folder / MANIFEST_FILE
    described = [{"path": str(path), "size": path.stat().st_size, "sha256": checksum(path)} for path in inputs]
    if file.exists():
        return _known(file, described, identity)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: is not empty and holds no translations; choose another --output")
    notice(f"counting the lines of {len(inputs)} file{'s' * (len(inputs) > 1)}")
    shards = _shards(inputs)
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "format_version": FORMAT_VERSION,
        "job": identity,
        "inputs": described,
        "shards": [[shard.file, *asdict(shard.span).values()] for shard in shards],
    }
    write_json(file, document)
    return Manifest(folder, described, shards)


def _known(file: Path, described: list[dict[str, Any]], identity: dict[str, Any]) -> Manifest:
    document = parse_json(file.read_bytes(), file)
    try:
        before, inputs = document["job"], document["inputs"]
        spans = [(number, Span(*numbers)) for number, *numbers in document["shards"]]
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{file}: isn't a manifest of this version; choose another --output") from None
    refuse_other_job(
        file,
        {**before, "inputs": inputs},
        {**identity, "inputs": described},
        same_version=document.get("format_version") == FORMAT_VERSION,
        remedy="choose another --output",
    )
    return Manifest(file.parent, inputs, _named(spans))


def _named(spans: list[tuple[int, Span]]) -> list[TextShard]:
    digits = max(5, len(str(len(spans) - 1)))
    return [TextShard(f"part-{i:0{digits}}", file, span) for i, (file, span) in enumerate(spans)]


def _shards(inputs: Sequence[Path]) -> list[TextShard]:
    """Shards of one chunk each, or of several, so that lines are batched as in a single process."""
    of_files = [list(_chunk_spans(path)) for path in inputs]
    together = -(-sum(map(len, of_files)) // MOST_SHARDS) or 1
    parts = [
        (file, spans[start : start + together])
        for file, spans in enumerate(of_files)
        for start in range(0, len(spans), together)
    ]
    return _named([(file, replace(part[0], lines=sum(one.lines for one in part))) for file, part in parts])


def _chunk_spans(path: Path) -> Iterator[Span]:
    """The chunks of a file. Raises UserError for what isn't text."""
    first, offset = 1, 0
    with closing(open_bytes(path)) as stream:
        for chunk in chunks(decode_lines(stream, str(path)), len):
            yield Span(offset, first, len(chunk))
            first, offset = first + len(chunk), stream.tell()
