"""Spoils model directories by chance, loads each, and uses what was loaded.

    python -m tests.faults.fuzzing FOLDER COUNT [TARGET ...] [--seed N]

A program of its own, because native code that fails takes its whole process along. It ends with an error at the first
input that gives anything but a `UserError`, takes 5 seconds, or takes a gigabyte; the input is then in FOLDER.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from headway import Translator
from headway.errors import UserError
from headway.storage import load_model
from tests.faults.hostile import (
    TEXTS,
    field,
    make_directory,
    number,
    replace,
    safetensors,
    split_safetensors,
    word_tokenizer,
)

SECONDS, BYTES = 5, 2**30
"""What one input may take."""

Draw = Callable[..., Any]


@st.composite
def spoilt_bytes(draw: Draw, data: bytes) -> bytes:
    """The bytes with a few small accidents."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, max(0, len(data) - 1)))
        end = start + draw(st.integers(1, 16))
        accident = draw(st.sampled_from(["flip", "cut", "remove", "repeat", "insert", "overwrite"]))
        if accident == "flip" and data:
            data = data[:start] + bytes([data[start] ^ 1 << draw(st.integers(0, 7))]) + data[start + 1 :]
        elif accident == "cut":
            data = data[:start]
        elif accident == "remove":
            data = data[:start] + data[end:]
        elif accident == "repeat":
            data = data[:end] + data[start:end] * draw(st.integers(1, 100)) + data[end:]
        elif accident == "insert":
            data = data[:start] + draw(st.binary(max_size=16)) + data[start:]
        else:
            data = data[:start] + draw(st.binary(min_size=end - start, max_size=end - start)) + data[end:]
    return data


ODD_VALUES = [0, -1, 1, True, 1.0, 0.5, -0.0, 1e308, float("nan"), float("inf"), 2**24, 2**31, 2**63, 10**30]
ODD_VALUES += ["", "..", "../x", "/dev/zero", "tokenizer.spm", "\0", "\ud800", "x" * 5000, "F64", "I32", None, [], {}]
values = st.recursive(
    st.sampled_from(ODD_VALUES) | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@st.composite
def spoilt_json(draw: Draw, document: Any) -> bytes:
    """The document with other values, more and fewer members, a member twice, or with accidents to its bytes."""
    document = json.loads(json.dumps(document))
    for _ in range(draw(st.integers(1, 2))):
        container, key = draw(st.sampled_from(list(places(document)) or [(document, "")]))
        change = draw(st.sampled_from(["value", "value", "value", "removal", "addition"]))
        if change == "removal" and container:
            del container[key]
        elif change == "addition" and isinstance(container, dict):
            container[draw(st.text(max_size=8))] = draw(values)
        elif container:
            container[key] = draw(values)
    text = json.dumps(document, ensure_ascii=draw(st.booleans()))
    if draw(st.integers(0, 9)) == 0:
        text = text.replace("{", '{"x": 1, "x": 2, ', 1)
    data = text.encode("utf-8", "surrogatepass")
    return draw(spoilt_bytes(data)) if draw(st.integers(0, 4)) == 0 else data


def places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of the document that holds a value: an object or a list, and the key or index."""
    members = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in members:
        yield document, key
        if isinstance(value, (dict, list)):
            yield from places(value)


@st.composite
def messages(draw: Draw, depth: int = 2) -> bytes:
    """A protobuf message of fields that sentencepiece knows by number, whatever stands in them."""
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        key = draw(st.sampled_from([1, 2, 3, 4, 5, 6, 24, 26, 35, 40, 44, 45, 53]))
        inner = messages(depth=depth - 1) if depth else st.nothing()
        value = draw(st.binary(max_size=40) | st.integers(0, 2**64) | inner)
        parts.append(field(key, value) if draw(st.integers(0, 9)) else number(key << 3 | draw(st.integers(0, 7))))
    return b"".join(parts)


@st.composite
def spoilt_model(draw: Draw, model: bytes) -> bytes:
    """A sentencepiece model with accidents anywhere or among its rules of normalisation, which come last, or with
    further fields, which replace those before them."""
    where = draw(st.sampled_from(["anywhere", "rules", "fields"]))
    if where == "anywhere":
        return draw(spoilt_bytes(model))
    if where == "rules":
        return model[:-1200] + draw(spoilt_bytes(model[-1200:]))
    return draw(messages()) + model + draw(messages())


@st.composite
def spoilt_weights(draw: Draw, data: bytes) -> bytes:
    """Weights with another header, or with accidents to it; header and length may still fit."""
    header, tensors = split_safetensors(data)
    if draw(st.booleans()):
        return safetensors(draw(spoilt_json(header)), tensors)
    size = len(data) - len(tensors)
    return draw(spoilt_bytes(data[:size])) + tensors[draw(st.sampled_from([0, 0, 0, 1, 4])) :]


TARGETS = {
    "config": ("subwords", "config.json", lambda data: spoilt_json(json.loads(data))),
    "decoding": ("subwords", "decoding.json", lambda data: spoilt_json(json.loads(data))),
    "header": ("subwords", "model.safetensors", spoilt_weights),
    "subwords": ("subwords", "tokenizer.spm", spoilt_model),
    "words": ("words", "tokenizer.vocab.json", lambda data: spoilt_json(json.loads(data))),
}
"""What can be spoilt: the directory, the file, how."""


def use(folder: Path) -> bool:
    """Loads the directory and uses what it holds; whether it was taken. Raises whatever is not a good complaint."""
    try:
        stored = load_model(folder)
    except UserError as error:
        if len(str(error)) > 600:
            raise AssertionError("a complaint of more than a line") from error
        return False
    for tokenizer in (stored.source_tokenizer, stored.target_tokenizer):
        for text in TEXTS:
            ids = tokenizer.encode(text, tagged=True)
            assert all(0 <= id_ < tokenizer.vocab_size for id_ in ids)
            tokenizer.encoded_pieces(text, tagged=True)
            tokenizer.decode(ids).encode()
        tokenizer.decoded_pieces(range(tokenizer.vocab_size))
    tag = f">>{stored.source_tokenizer.target_tags[0]}<< " if stored.source_tokenizer.target_tags else ""
    Translator(stored, device="cpu").translate([f"{tag}the cat", ""], max_length=3)
    return True


class Trial:
    """One target, its valid bytes, and what became of the inputs."""

    def __init__(self, folder: Path, target: str) -> None:
        directory, self.name, spoil = TARGETS[target]
        self.folder = make_directory(folder / target, word_tokenizer() if directory == "words" else None)
        assert use(self.folder)
        self.config = (self.folder / "config.json").read_bytes()
        self.inputs = spoil((self.folder / self.name).read_bytes())
        self.counts: Counter[str] = Counter()
        self.slowest = 0.0

    def __call__(self, data: bytes) -> None:
        (self.folder / "config.json").write_bytes(self.config)
        replace(self.folder, self.name, data)
        start = time.perf_counter()
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        self.counts["taken" if use(self.folder) else "refused"] += 1
        faulthandler.cancel_dump_traceback_later()
        self.slowest = max(self.slowest, time.perf_counter() - start)


def limit_memory() -> None:
    """From here on the process can have a gigabyte more than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("targets", nargs="*", default=list(TARGETS))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    trials = [Trial(options.folder, target) for target in options.targets]
    limit_memory()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for target, trial in zip(options.targets, trials, strict=True):
        run_trial(trial, options.count, options.seed)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"{target}: {dict(trial.counts)}, slowest {trial.slowest:.2f} s, memory grew by {grown:.0f} MB")


def run_trial(trial: Trial, count: int, number: int) -> None:
    """So many inputs, by the seed. The first failure ends it; there is nothing to shrink."""

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(trial.inputs)
    def run(data: bytes) -> None:
        trial(data)

    run()


if __name__ == "__main__":
    main()
