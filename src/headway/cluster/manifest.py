"""The manifest of a cluster's job: the lines of the inputs, and the output file for each group of them.

A folder of translations holds `manifest.json` and one file per shard, `part-00000.txt` and so on. In order they are the
translations of all inputs. A shard appears by a rename when it is complete, so the missing files are what is left to
do after any interruption. Next to it, `part-00000.notices` lists the lines without a complete translation, if there are
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
from headway.translator.lines import JobNotice

FORMAT_VERSION = 2
MOST_SHARDS = 10_000
"""Maximum number of shards of a job. With more chunks than that, several become one shard."""


@dataclass(frozen=True)
class TextShard:
    """Lines of one input, and the name of their translations."""

    name: str
    file: int
    span: Span


@dataclass(frozen=True)
class Manifest:
    """Everything that defines a job. The files in the folder say what is done."""

    folder: Path
    inputs: list[dict[str, Any]]
    """The `path`, the `size` in bytes and the `sha256` of each input."""
    shards: list[TextShard]
    models: list[str]

    @property
    def lines(self) -> int:
        return sum(shard.span.lines for shard in self.shards)

    def missing(self) -> list[TextShard]:
        present = {file.name for file in self.folder.iterdir()}
        return [shard for shard in self.shards if f"{shard.name}.txt" not in present]

    def failed(self) -> int:
        """The number of lines left blank in all finished shards."""
        return sum(json.loads(file.read_bytes())["failed"] for file in self.folder.glob("part-*.notices"))


def open_manifest(
    folder: Path, inputs: Sequence[Path], identity: dict[str, Any], notice: Callable[[JobNotice], None]
) -> Manifest:
    """The manifest in the folder, or a new one. identity: what must stay the same for a job to continue. Raises
    UserError if the folder is of another job or holds something else."""
    file, remedy = folder / "manifest.json", "choose another --output"
    described = [{"path": str(path), "size": path.stat().st_size, "sha256": checksum(path)} for path in inputs]
    if file.exists():
        document = parse_json(file.read_bytes(), file)
        try:
            before = {**document["job"], "inputs": document["inputs"]}
            spans = [(number, Span(*numbers)) for number, *numbers in document["shards"]]
        except (KeyError, TypeError, ValueError):
            raise UserError(f"{file}: isn't a manifest of this version; {remedy}") from None
        same_version = document.get("format_version") == FORMAT_VERSION
        refuse_other_job(file, before, {**identity, "inputs": described}, remedy, same_version=same_version)
    else:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"{folder}: is not empty and holds no translations; {remedy}")
        notice(JobNotice(f"counting the lines of {len(inputs)} file{'s' * (len(inputs) > 1)}"))
        spans = list(_spans(inputs))
        folder.mkdir(parents=True, exist_ok=True)
        shards = [[number, *asdict(span).values()] for number, span in spans]
        write_json(file, {"format_version": FORMAT_VERSION, "job": identity, "inputs": described, "shards": shards})
    digits = max(5, len(str(len(spans) - 1)))
    shards = [TextShard(f"part-{i:0{digits}}", number, span) for i, (number, span) in enumerate(spans)]
    return Manifest(folder, described, shards, identity["model"])


def _spans(inputs: Sequence[Path]) -> Iterator[tuple[int, Span]]:
    """The index of a file and lines of it, one chunk or several, so that lines are batched as in a single process."""
    spans_of_files = [list(_chunk_spans(path)) for path in inputs]
    together = -(-sum(map(len, spans_of_files)) // MOST_SHARDS) or 1
    for number, spans in enumerate(spans_of_files):
        for start in range(0, len(spans), together):
            yield number, replace(spans[start], lines=sum(one.lines for one in spans[start : start + together]))


def _chunk_spans(path: Path) -> Iterator[Span]:
    """The chunks of a file. Raises UserError if it isn't text."""
    first, offset = 1, 0
    with closing(open_bytes(path)) as stream:
        for chunk in chunks(decode_lines(stream, str(path)), len):
            yield Span(offset, first, len(chunk))
            first, offset = first + len(chunk), stream.tell()
