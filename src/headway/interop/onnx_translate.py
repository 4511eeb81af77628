"""Translates with a model that headway exported to ONNX. Needs only onnxruntime, numpy and sentencepiece.

    python translate.py < source.txt > translation.txt

encoder.onnx reads a source and gives the keys and values for the decoder's attention to it. decoder.onnx reads one
token of each hypothesis, and gives the logits of the next one, and the keys and values of all tokens for its next call.
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
"""A text with more characters for each piece that the model can read is too long, whatever its pieces are."""

State = dict[str, np.ndarray]
"""Inputs of the decoder, one row for each hypothesis: `source`, ids with <eos>, padded (rows, source length);
`memory_keys` and `memory_values` (layers, rows, source length, d_model); `keys` and `values` of the tokens so far
(layers, rows, length, d_model)."""


class Model:
    """The two graphs and config.json of an exported folder."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        """threads: of each graph; 0: one for each core."""
        self.config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session, cpu = onnxruntime.InferenceSession, ["CPUExecutionProvider"]
        self._encoder: Any = session(folder / "encoder.onnx", options, providers=cpu)
        self._decoder: Any = session(folder / "decoder.onnx", options, providers=cpu)
        self.bos_id: int = self.config["bos_id"]
        self.eos_id: int = self.config["eos_id"]

    def start(self, sources: Sequence[Sequence[int]]) -> State:
        """sources: ids without <eos>"""
        width = max(map(len, sources)) + 1
        source = np.full((len(sources), width), self.config["pad_id"], dtype=np.int64)
        for row, ids in zip(source, sources, strict=True):
            row[: len(ids) + 1] = [*ids, self.eos_id]
        keys, values = self._encoder.run(["memory_keys", "memory_values"], {"source": source})
        empty = keys[:, :, :0]
        return {"source": source, "memory_keys": keys, "memory_values": values, "keys": empty, "values": empty}

    def logits(self, state: State, tokens: Sequence[int]) -> np.ndarray:
        """Reads one token of each row, <bos> first; logits of the next (rows, vocabulary). Changes the state."""
        inputs = {"tokens": np.array(tokens, dtype=np.int64), **state}
        logits, state["keys"], state["values"] = self._decoder.run(["logits", "new_keys", "new_values"], inputs)
        return logits

    def log_probabilities(self, state: State, tokens: Sequence[int]) -> np.ndarray:
        """Log-probabilities by `logits`, -inf for tokens that no translation may have. (rows, vocabulary)"""
        log_probabilities = log_softmax(self.logits(state, tokens))
        log_probabilities[:, self.config["never_generated"]] = -np.inf
        return log_probabilities

    def select(self, state: State, rows: Sequence[int]) -> State:
        """The given rows in this order, some perhaps several times."""
        return {name: array[rows] if name == "source" else array[:, rows] for name, array in state.items()}


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """(..., vocabulary) -> the same"""
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def constrain(log_probabilities: np.ndarray, rows: Sequence[Sequence[int]], eos_id: int, n: int) -> None:
    """Sets to -inf <eos> as the first token, and tokens that would repeat a sequence of n ids of their row, unless n is
    0. (rows, vocabulary)"""
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
    """Total log-probability, with that of <eos> if it has ended."""


def beam_search(
    model: Model,
    sources: Sequence[Sequence[int]],
    max_lengths: Sequence[int],
    beam_size: int,
    alpha: float,
    no_repeat_ngram: int = 0,
) -> list[list[ScoredIds]]:
    """The hypotheses of each sentence that have ended, best first, none empty. A beam of 1 with `alpha` 0 is greedy
    search. No sequence of `no_repeat_ngram` tokens occurs twice in a translation; 0 turns it off.

    Each step keeps the `beam_size` likeliest continuations of a sentence; those with <eos> have ended. The search of a
    sentence ends when `beam_size` have ended, one of them as the likeliest of its step, when no other can become
    better, or at its `max_length` of tokens, after which only <eos> may follow.
    """

    def normalized(score: float, length: int) -> float:
        return score / ((5.0 + length + 1) / 6.0) ** alpha  # GNMT's length penalty, with <eos>

    rows = [ScoredIds(sentence, [], 0.0) for sentence in range(len(sources))]
    ended: list[list[ScoredIds]] = [[] for _ in sources]
    leader_ended: set[int] = set()
    state, tokens, eos_id = model.start(sources), [model.bos_id] * len(rows), model.eos_id
    while rows:
        log_probabilities = model.log_probabilities(state, tokens)  # (rows, vocabulary)
        constrain(log_probabilities, [one.ids for one in rows], eos_id, no_repeat_ngram)
        length, going_on = len(rows[0].ids) + 1, []
        for sentence, group in groupby(range(len(rows)), key=lambda row: rows[row].sentence):
            beam, done, most = list(group), ended[sentence], max_lengths[sentence]
            likely = [  # one more of each hypothesis, because one may be <eos>
                (rows[row].score + float(log_probabilities[row, token]), row, token)
                for row in beam
                for token in largest(log_probabilities[row], beam_size + 1)
            ]
            likely = sorted((one for one in likely if one[0] > -np.inf), key=lambda one: -one[0])[: 2 * beam_size]
            done += [replace(rows[row], score=score) for score, row, token in likely[:beam_size] if token == eos_id]
            if likely and likely[0][2] == eos_id:
                leader_ended.add(sentence)
            likely = [one for one in likely if one[2] != eos_id][:beam_size]
            best_ended = max((normalized(one.score, len(one.ids)) for one in done), default=-np.inf)
            best_running = likely[0][0] if likely else -np.inf
            enough = len(done) >= beam_size and sentence in leader_ended
            if enough or normalized(best_running, most) <= best_ended:
                continue
            if length <= most:
                going_on += likely
            else:
                known = [one.ids for one in done]
                finals = [rows[row].score + float(log_probabilities[row, eos_id]) for row in beam]
                cut = [replace(rows[row], score=score) for row, score in zip(beam, finals, strict=True)]
                done += [one for one in cut if one.ids not in known]
        rows = [ScoredIds(rows[row].sentence, [*rows[row].ids, token], score) for score, row, token in going_on]
        tokens, state = [token for _, _, token in going_on], model.select(state, [row for _, row, _ in going_on])
    likeliest = [sorted(some, key=lambda one: -one.score)[:beam_size] for some in ended]
    return [sorted(some, key=lambda one: -normalized(one.score, len(one.ids))) for some in likeliest]


def largest(values: np.ndarray, count: int) -> list[int]:
    """Indices of the largest values, largest first. values: (n,)"""
    count = min(count, len(values))
    places = np.flatnonzero(values >= np.partition(values, -count)[-count])
    return places[np.argsort(-values[places], kind="stable")][:count].tolist()


INVISIBLE = (
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
    r"\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
)
"""Characters that a model doesn't see: controls, zero-width spaces, byte order marks, soft hyphens and marks of
direction."""
UNSEEN = (
    rf"{INVISIBLE}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c\u200d\u2800\u3164\ufe00-\ufe0f\uffa0"
    r"\U000e0000-\U000e0fff"
)
"""Characters that show nothing on their own."""
BLANK = re.compile(rf"[\s{UNSEEN}]*")
"""A text that shows nothing."""


def visible(text: str) -> str:
    """The text as a model sees it: without invisible characters, and with one space for all adjacent white space."""
    text = re.sub(rf"(?<!\S)[{UNSEEN}]++(?!\S)|[{INVISIBLE}]++", "", text)
    return re.sub(r"\s+", lambda run: run.group() if set(run.group()) == {" "} else " ", text)


class Subwords:
    """Text to ids and back by the model's sentencepiece model."""

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
        pieces = [id_ for id_ in ids if id_ >= self._CONTROLS + len(self.tags)]
        return re.sub(r"[\r\n]", " ", self._processor.decode(pieces).replace("\ufdd0", "▁"))


class Words:
    """Text to ids and back, by white space."""

    def __init__(self, file: Path) -> None:
        document = json.loads(file.read_text(encoding="utf-8"))
        self._lowercase: bool = document["lowercase"]
        self._ids = {word: id_ for id_, word in enumerate(document["words"], 4)}
        self._words = {1: "<unk>"} | {id_: word for word, id_ in self._ids.items()}

    def encode(self, text: str) -> list[int]:
        text = unicodedata.normalize("NFC", visible(text.lower() if self._lowercase else text))
        return [self._ids.get(word, 1) for word in text.split() if not BLANK.fullmatch(word)]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self._words[id_] for id_ in ids if id_ in self._words)


class TextTranslator:
    """Text in, text out."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        self.model = Model(folder, threads)
        files = self.model.config["tokenizer"]
        self._source, self._target = (
            (Subwords if files[side].endswith(".spm") else Words)(folder / files[side]) for side in ("source", "target")
        )
        self.longest: int = self.model.config["max_length"] - 1  # <eos> and <bos> take a place

    def translate(
        self, texts: Sequence[str], beam_size: int, alpha: float, max_length: int | None, no_repeat_ngram: int = 0
    ) -> Iterator[tuple[str, str]]:
        """The translation of each text, and the reason if the model can't translate it, otherwise an empty text."""
        together = max(1, ROWS // beam_size)
        for start in range(0, len(texts), together):
            encoded = [self._encode(text) for text in texts[start : start + together]]
            sources = [ids for ids, _ in encoded if ids]
            caps = [min(max_length or 2 * len(ids) + 50, self.longest) for ids in sources]
            alpha = alpha if beam_size > 1 else 0.0  # greedy search has none
            found = iter(beam_search(self.model, sources, caps, beam_size, alpha, no_repeat_ngram) if sources else ())
            for ids, reason in encoded:
                yield self._target.decode(next(found)[0].ids) if ids else "", reason

    def _encode(self, text: str) -> tuple[list[int], str]:
        """The ids, none for a blank text, or the reason why there are none."""
        source = self._source
        if isinstance(source, Subwords) and source.tags and not BLANK.fullmatch(text) and not source.tag_of(text):
            return [], "doesn't begin with the tag of a target language"
        if len(text) <= CHARACTERS_PER_PIECE * (self.longest + 1) and len(ids := source.encode(text)) <= self.longest:
            return ids, ""
        return [], f"is longer than {self.longest} tokens"


def arriving_lines() -> Iterator[list[str]]:
    """The lines of standard input, as many at a time as have arrived, because a program may wait for the answer. Lines
    end at a line feed alone. Raises ValueError, after the lines before the error."""
    number, arrived, block = 0, bytearray(), b"\n"
    while block:
        block = os.read(0, BLOCK)
        arrived += block
        if b"\n" in block or not block:
            *ended, rest = bytes(arrived if number else arrived.removeprefix(BOM)).split(b"\n")
            lines, arrived = [], bytearray(rest)
            try:
                for line in [*ended, rest] if rest and not block else ended:
                    number += 1
                    lines.append(decoded(line, number))
            finally:
                yield lines


def decoded(line: bytes, number: int) -> str:
    """The text of a line of UTF-8. Raises ValueError."""
    if (zeros := line.count(0)) >= 4 and zeros * 3 >= len(line) > zeros:
        raise ValueError(f"standard input, line {number}: has a NUL in every second byte, as UTF-16; convert it")
    try:
        return line.decode().removesuffix("\r")
    except UnicodeDecodeError as error:
        byte = f"byte 0x{line[error.start]:02x}"
        raise ValueError(f"standard input, line {number}: {byte} is not UTF-8; convert the file") from None


def tell(text: str) -> None:
    """Writes a line to standard error, if that is open."""
    with suppress(OSError):
        os.write(2, f"{text}\n".encode())


def main() -> int:
    """Translates standard input to standard output. Returns 2 if a line can't be translated, otherwise 0."""
    folder = Path(__file__).parent
    options: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))["decoding"]
    parser = argparse.ArgumentParser(description="Translates the lines of standard input.")
    parser.add_argument("--beam-size", type=int, default=options["beam_size"], help="1: greedy search")
    parser.add_argument("--length-penalty", type=float, default=options["length_penalty"])
    parser.add_argument("--max-length", type=int, default=options["max_length"], help="most tokens of a translation")
    parser.add_argument("--no-repeat-ngram", type=int, default=options["no_repeat_ngram"], help="0: off")
    parser.add_argument("--threads", type=int, default=0, help="0: one for each core")
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
            for text, reason in translator.translate(lines, *search):
                number += 1
                if reason:
                    code = 2
                    tell(f"line {number} {reason}; its translation is left blank")
                sys.stdout.buffer.write(f"{text}\n".encode())
            sys.stdout.buffer.flush()
    except ValueError as error:
        tell(f"translate.py: {error}")
        return 2
    return code


if __name__ == "__main__":
    sys.exit(main())
