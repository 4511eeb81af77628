"""Translates with a model that headway exported to ONNX; needs onnxruntime, numpy and sentencepiece, and nothing else.

    python translate.py < source.txt > translation.txt

The model is two graphs. encoder.onnx reads a source and gives what the decoder's attention to it needs, once a
sentence. decoder.onnx reads one token of each hypothesis, and gives the logits of the next one and the keys and values
of all tokens so far, which its next call gets again. `beam_search` is all that stands around them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import sentencepiece

ROWS = 32
"""Hypotheses of the sentences that are translated together."""
BLOCK = 1 << 16
"""Bytes that are read at once."""
BOM = b"\xef\xbb\xbf"
CHARACTERS_PER_PIECE = 64
"""A text with more for each piece that the model can read is too long, whatever its pieces are."""


@dataclass
class Cache:
    """What the decoder remembers of translations in the making, one a row."""

    source: np.ndarray
    """Ids with <eos>, padded. (rows, source length)"""
    memory_keys: np.ndarray
    """What the source answers to each decoder layer. (layers, rows, source length, d_model)"""
    memory_values: np.ndarray
    keys: np.ndarray
    """Of the tokens so far. (layers, rows, length, d_model)"""
    values: np.ndarray

    def select(self, rows: Sequence[int]) -> Cache:
        """The given rows, in this order; one may stand there several times."""
        cache = (self.memory_keys, self.memory_values, self.keys, self.values)
        return Cache(self.source[rows], *(array[:, rows] for array in cache))


class Model:
    """The two graphs and config.json of an exported folder."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        """`threads` is of each graph; 0: one a core."""
        self.config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._encoder: Any
        self._decoder: Any
        self._encoder, self._decoder = (
            onnxruntime.InferenceSession(folder / f"{name}.onnx", options, providers=["CPUExecutionProvider"])
            for name in ("encoder", "decoder")
        )
        self.bos_id: int = self.config["bos_id"]
        self.eos_id: int = self.config["eos_id"]

    def start(self, sources: Sequence[Sequence[int]]) -> Cache:
        """sources: ids without <eos>"""
        width = max(map(len, sources)) + 1
        source = np.full((len(sources), width), self.config["pad_id"], dtype=np.int64)
        for row, ids in zip(source, sources, strict=True):
            row[: len(ids) + 1] = [*ids, self.eos_id]
        memory_keys, memory_values = self._encoder.run(["memory_keys", "memory_values"], {"source": source})
        nothing = memory_keys[:, :, :0]
        return Cache(source, memory_keys, memory_values, nothing, nothing)

    def logits(self, state: Cache, tokens: Sequence[int]) -> np.ndarray:
        """Reads one token a row, <bos> first; logits of the next (rows, vocabulary). Changes the state."""
        inputs = {"tokens": np.array(tokens, dtype=np.int64), **vars(state)}
        logits, state.keys, state.values = self._decoder.run(["logits", "new_keys", "new_values"], inputs)
        return logits

    def log_probabilities(self, state: Cache, tokens: Sequence[int]) -> np.ndarray:
        """As `logits`, but log-probabilities, and -inf for what no translation may have. (rows, vocabulary)"""
        log_probabilities = log_softmax(self.logits(state, tokens))
        log_probabilities[:, self.config["never_generated"]] = -np.inf
        return log_probabilities


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """(..., vocabulary) -> the same"""
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def constrain(log_probabilities: np.ndarray, rows: Sequence[Sequence[int]], eos_id: int, n: int) -> None:
    """-inf for <eos> as the first token, and for a token that would complete a run of n ids which its row has already;
    0: none. (rows, vocabulary)"""
    if not rows[0]:
        log_probabilities[:, eos_id] = -np.inf
    for row, ids in enumerate(rows if n else ()):
        last = ids[len(ids) - n + 1 :]
        for start in range(len(ids) - n + 1):
            if ids[start : start + n - 1] == last:
                log_probabilities[row, ids[start + n - 1]] = -np.inf


@dataclass
class ScoredIds:
    """A translation of one of the sentences, or its beginning, as ids without control ids."""

    sentence: int
    ids: list[int]
    score: float
    """Total log-probability, that of <eos> included where it has ended."""


def length_penalty(length: int, alpha: float) -> float:
    """GNMT's; a hypothesis is ranked by its score divided by this. `length` counts <eos>."""
    return ((5.0 + length) / 6.0) ** alpha


def beam_search(
    model: Model,
    sources: Sequence[Sequence[int]],
    max_lengths: Sequence[int],
    beam_size: int,
    alpha: float,
    no_repeat_ngram: int = 0,
) -> list[list[ScoredIds]]:
    """The hypotheses of each sentence that have ended, best first, none empty. A beam of 1 without penalty (`alpha` 0)
    is greedy search. No run of `no_repeat_ngram` tokens comes twice in a translation; 0: any may.

    At each step the `beam_size` likeliest continuations of a sentence go on; one that is <eos> has ended. Its search
    ends when `beam_size` have ended, one of them as the likeliest of its step, when none that goes on can become
    better, or at its `max_length` of tokens, where <eos> is all that may follow.
    """

    def worth(hypothesis: ScoredIds) -> float:
        return hypothesis.score / length_penalty(len(hypothesis.ids) + 1, alpha)

    rows = [ScoredIds(sentence, [], 0.0) for sentence in range(len(sources))]
    ended: list[list[ScoredIds]] = [[] for _ in sources]
    leader_ended: set[int] = set()
    state, tokens = model.start(sources), [model.bos_id] * len(rows)
    while rows:
        log_probabilities = model.log_probabilities(state, tokens)  # (rows, vocabulary)
        constrain(log_probabilities, [one.ids for one in rows], model.eos_id, no_repeat_ngram)
        length, going_on = len(rows[0].ids) + 1, []
        for sentence, group in groupby(range(len(rows)), key=lambda row: rows[row].sentence):
            beam, done, most = list(group), ended[sentence], max_lengths[sentence]
            likely = [  # one of each hypothesis's continuations may be <eos>, so one more is looked at
                (rows[row].score + float(log_probabilities[row, token]), row, token)
                for row in beam
                for token in largest(log_probabilities[row], beam_size + 1)
            ]
            likely = sorted((one for one in likely if one[0] > -np.inf), key=lambda one: -one[0])[: 2 * beam_size]
            done += [
                replace(rows[row], score=score) for score, row, token in likely[:beam_size] if token == model.eos_id
            ]
            if likely and likely[0][2] == model.eos_id:
                leader_ended.add(sentence)
            likely = [one for one in likely if one[2] != model.eos_id][:beam_size]
            best_ended = max(map(worth, done), default=-np.inf)
            best_running = likely[0][0] if likely else -np.inf
            enough = len(done) >= beam_size and sentence in leader_ended
            if enough or best_running / length_penalty(most + 1, alpha) <= best_ended:
                continue
            if length <= most:
                going_on += likely
                continue
            there = [one.ids for one in done]
            cut = [(rows[row], float(log_probabilities[row, model.eos_id])) for row in beam]
            done += [replace(one, score=one.score + eos) for one, eos in cut if one.ids not in there]
        rows = [ScoredIds(rows[row].sentence, [*rows[row].ids, token], score) for score, row, token in going_on]
        tokens, state = [token for _, _, token in going_on], state.select([row for _, row, _ in going_on])
    likeliest = [sorted(some, key=lambda one: -one.score)[:beam_size] for some in ended]
    return [sorted(some, key=worth, reverse=True) for some in likeliest]


def largest(values: np.ndarray, count: int) -> list[int]:
    """The places of the largest values, largest first. values: (n,)"""
    count = min(count, len(values))
    places = np.flatnonzero(values >= np.partition(values, -count)[-count])
    return places[np.argsort(-values[places], kind="stable")][:count].tolist()


INVISIBLE = (
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
    r"\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
)
"""Controls, zero-width spaces, byte order marks, soft hyphens and marks of direction, which a model doesn't see."""
UNSEEN = (
    rf"{INVISIBLE}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c\u200d\u2800\u3164\ufe00-\ufe0f\uffa0"
    r"\U000e0000-\U000e0fff"
)
"""Characters that show nothing where they stand alone."""
BLANK = re.compile(rf"[\s{UNSEEN}]*")
"""A text that shows nothing."""


def visible(text: str) -> str:
    """The text as a model sees it: without invisible characters, and white space of any kind in a row as one space."""
    text = re.sub(rf"(?<!\S)[{UNSEEN}]++(?!\S)|[{INVISIBLE}]++", "", text)
    return re.sub(r"\s+", lambda run: run.group() if set(run.group()) == {" "} else " ", text)


class Subwords:
    """Text to ids and back by sentencepiece, as the model was trained with."""

    _TAG = re.compile(rf"[\s{INVISIBLE}]*(>>\S+?<<)[\s{INVISIBLE}]*")
    _CONTROLS = 4  # <pad>, <unk>, <sos>, <eos>; tags of target languages follow

    def __init__(self, file: Path) -> None:
        self._processor = processor = sentencepiece.SentencePieceProcessor(model_file=str(file))
        tags = takewhile(processor.is_control, range(self._CONTROLS, processor.get_piece_size()))
        self.tags: dict[str, int] = {processor.id_to_piece(id_): id_ for id_ in tags}

    def encode(self, text: str) -> list[int]:
        """The ids of a text, which may begin with the tag of a target language."""
        tag = self.tag_of(text)
        text = text[tag.end() :] if tag else text
        if BLANK.fullmatch(text):
            return []
        text = unicodedata.normalize("NFKC", visible(text))
        ids = self._processor.encode(text.replace("▁", "\ufdd0"))  # sentencepiece would take U+2581 for a space
        return [self.tags[tag[1]], *ids] if tag and ids else ids

    def tag_of(self, text: str) -> re.Match[str] | None:
        """The tag of a target language that the text begins with."""
        tag = self._TAG.match(text)
        return tag if tag and tag[1] in self.tags else None

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, on one line."""
        of_text = [id_ for id_ in ids if id_ >= self._CONTROLS + len(self.tags)]
        text = self._processor.decode(of_text).replace("\ufdd0", "▁")
        return text.replace("\n", " ").replace("\r", " ")


class Words:
    """Text to ids and back, by white space."""

    _CONTROLS = ("<pad>", "<unk>", "<sos>", "<eos>")

    def __init__(self, file: Path) -> None:
        document = json.loads(file.read_text(encoding="utf-8"))
        self._lowercase: bool = document["lowercase"]
        self._words: list[str] = [*self._CONTROLS, *document["words"]]
        self._ids = {word: id_ for id_, word in enumerate(self._words) if id_ >= len(self._CONTROLS)}

    def encode(self, text: str) -> list[int]:
        """The ids of a text; 1 is <unk>."""
        text = unicodedata.normalize("NFC", visible(text.lower() if self._lowercase else text))
        return [self._ids.get(word, 1) for word in text.split() if not BLANK.fullmatch(word)]

    def decode(self, ids: Sequence[int]) -> str:
        """The words of ids, <unk> among them."""
        return " ".join(self._words[id_] for id_ in ids if id_ == 1 or id_ >= len(self._CONTROLS))


class TextTranslator:
    """Text in, text out."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        self.model = Model(folder, threads)
        self._source, self._target = (
            (Subwords if file.endswith(".spm") else Words)(folder / file)
            for file in (self.model.config["tokenizer"][side] for side in ("source", "target"))
        )
        self.longest: int = self.model.config["max_length"] - 1  # <eos> and <bos> take a place

    def translate(
        self, texts: Sequence[str], beam_size: int, alpha: float, max_length: int | None, no_repeat_ngram: int = 0
    ) -> Iterator[str | None]:
        """One translation for each text, blank for a blank text, None for one that is longer than the model can read,
        or doesn't say into which language."""
        together = max(1, ROWS // beam_size)
        for start in range(0, len(texts), together):
            encoded = [self._encode(text) for text in texts[start : start + together]]
            sources = [ids for ids in encoded if ids]
            caps = [min(max_length or 2 * len(ids) + 50, self.longest) for ids in sources]
            alpha = alpha if beam_size > 1 else 0.0  # greedy search has none
            found = iter(beam_search(self.model, sources, caps, beam_size, alpha, no_repeat_ngram) if sources else ())
            for ids in encoded:
                yield self._target.decode(next(found)[0].ids) if ids else None if ids is None else ""

    def lacks_tag(self, text: str) -> bool:
        """Whether a text lacks the tag of one of the model's target languages."""
        if not isinstance(self._source, Subwords) or not self._source.tags or BLANK.fullmatch(text):
            return False
        return self._source.tag_of(text) is None

    def _encode(self, text: str) -> list[int] | None:
        """The ids; None where they are too many, or the text lacks its tag."""
        if self.lacks_tag(text) or len(text) > CHARACTERS_PER_PIECE * (self.longest + 1):
            return None
        ids = self._source.encode(text)
        return ids if len(ids) <= self.longest else None


def arriving_lines() -> Iterator[list[str]]:
    """The lines of standard input, as many at a time as have arrived, because a program may wait for the answer. They
    end at a line feed alone. Raises ValueError, after the lines before."""
    number, arrived, block = 0, bytearray(), b"\n"
    while block:
        block = os.read(0, BLOCK)
        end = block.rfind(b"\n") + 1
        arrived += block[:end]
        if end or not block:
            lines: list[str] = []
            try:
                for line in BytesIO(arrived if number else arrived.removeprefix(BOM)):
                    number += 1
                    lines.append(decoded(line, number))
            finally:
                yield lines
            arrived.clear()
        arrived += block[end:]


def decoded(line: bytes, number: int) -> str:
    """The text of a line of UTF-8. Raises ValueError."""
    if (zeros := line.count(0)) >= 4 and zeros * 3 >= len(line) > zeros:
        raise ValueError(f"standard input, line {number}: has a NUL in every second byte, as UTF-16; convert it")
    try:
        return line.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        byte = f"byte 0x{line[error.start]:02x}"
        raise ValueError(f"standard input, line {number}: {byte} is not UTF-8; convert the file") from None


def tell(text: str) -> None:
    """Writes a line to standard error; it is lost where that is closed or full."""
    with suppress(OSError):
        os.write(2, f"{text}\n".encode())


def main() -> int:
    """Lines of standard input to standard output. Returns 2 where a line can't be translated, otherwise 0."""
    folder = Path(__file__).parent
    options: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))["decoding"]
    parser = argparse.ArgumentParser(description="Translates the lines of standard input.")
    parser.add_argument("--beam-size", type=int, default=options["beam_size"], help="1: greedy search")
    parser.add_argument("--length-penalty", type=float, default=options["length_penalty"])
    parser.add_argument("--max-length", type=int, default=options["max_length"], help="most tokens of a translation")
    parser.add_argument("--no-repeat-ngram", type=int, default=options["no_repeat_ngram"], help="0: any may come twice")
    parser.add_argument("--threads", type=int, default=0, help="0: one a core")
    chosen = parser.parse_args()
    if chosen.beam_size < 1 or (chosen.max_length is not None and chosen.max_length < 1):
        parser.error("--beam-size and --max-length must be at least 1")
    if chosen.no_repeat_ngram < 0 or not 0 <= chosen.length_penalty <= 10:
        parser.error("--no-repeat-ngram must be at least 0, and --length-penalty between 0 and 10")
    translator = TextTranslator(folder, chosen.threads)
    search = (chosen.beam_size, chosen.length_penalty, chosen.max_length, chosen.no_repeat_ngram)
    code, number = 0, 0
    try:
        for lines in arriving_lines():
            for text, found in zip(lines, translator.translate(lines, *search), strict=True):
                number += 1
                if found is None:
                    code = 2
                    lacks = "doesn't begin with the tag of a target language"
                    reason = lacks if translator.lacks_tag(text) else f"is longer than {translator.longest} tokens"
                    tell(f"line {number} {reason}; its translation is left blank")
                sys.stdout.buffer.write(f"{found or ''}\n".encode())
            sys.stdout.buffer.flush()
    except ValueError as error:
        tell(f"translate.py: {error}")
        return 2
    return code


if __name__ == "__main__":
    sys.exit(main())
