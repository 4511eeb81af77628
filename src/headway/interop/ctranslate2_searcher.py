"""Translating with CTranslate2 (extra `ctranslate2`): the model is exported once, kept in a cache, and run there.

The cache is `$HEADWAY_CACHE`, else `headway` in the user's cache folder; where that can't be written, the model is
exported each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from headway.decoding import Hypothesis, SearchOptions
from headway.errors import UserError
from headway.interop.ctranslate2 import export_ctranslate2, import_ctranslate2, never_generated, pieces_of
from headway.storage import StoredModel
from headway.storage.checksums import find_damage, write_checksums
from headway.storage.model_directory import named_weights

COMPUTE_TYPES = {"fp32": "float32", "bf16": "bfloat16", "int8": "int8"}
LENGTH_PENALTY = 1.0
"""Scores are divided by length ** LENGTH_PENALTY, which isn't GNMT's penalty (chosen in docs/interop.md)."""
SENTENCES_PER_BATCH = 64


class CTranslate2Searcher:
    """A `Searcher` that CTranslate2 is. On CPU every core has batches of its own: so many workers of one thread.

    Its scores are of the probabilities among the tokens that may be generated: a trifle higher than `score` gives.
    """

    def __init__(self, stored: StoredModel, device: torch.device, precision: str) -> None:
        """Raises UserError where CTranslate2 is not installed, or can't run this model so here."""
        ctranslate2 = import_ctranslate2()
        if device.type not in ("cpu", "cuda"):
            raise UserError(f"engine ctranslate2 doesn't run on {device.type}; use --device cpu")
        precision = "bf16" if precision == "auto" and device.type == "cuda" else precision.replace("auto", "fp32")
        compute_type = COMPUTE_TYPES[precision]
        if compute_type not in ctranslate2.get_supported_compute_types(device.type):
            raise UserError(f"engine ctranslate2 can't compute in {precision} on this {device.type}")
        with _exported(stored, ctranslate2.__version__) as folder:
            self._engine = ctranslate2.Translator(
                str(folder),
                device=device.type,
                compute_type=compute_type,
                inter_threads=torch.get_num_threads() if device.type == "cpu" else 1,
                intra_threads=1,
            )
        self._source, self._target = pieces_of(stored)
        self._ids = {piece: id_ for id_, piece in enumerate(self._target)}
        self._never = [[piece] for piece in never_generated(stored)]
        self._source_end = self._source[stored.model.config.eos_id]
        self._end = self._target[stored.model.config.eos_id]

    default_length_penalty = LENGTH_PENALTY

    def search(
        self,
        sources: Sequence[list[int]],
        options: SearchOptions,
        caps: Sequence[int],
        prefixes: Sequence[list[int]],
    ) -> list[list[Hypothesis]]:
        if options.sample is not None:
            raise UserError("engine ctranslate2 has no sample that depends on its seed alone; use engine torch")
        if not sources:
            return []
        results = self._engine.translate_batch(
            self._source_pieces(sources),
            target_prefix=self._target_pieces(prefixes) if any(prefixes) else None,
            max_batch_size=SENTENCES_PER_BATCH,
            beam_size=options.beam_size,
            num_hypotheses=options.n_best,
            length_penalty=options.length_penalty,
            no_repeat_ngram_size=options.no_repeat_ngram,
            min_decoding_length=0,
            max_decoding_length=max(caps) + 1,
            max_input_length=0,
            suppress_sequences=self._never,
            return_scores=True,
            return_end_token=True,
        )
        found = [
            [self._hypothesis(pieces, score, cap, options) for pieces, score in zip(*hypotheses, strict=True)]
            for hypotheses, cap in zip(((one.hypotheses, one.scores) for one in results), caps, strict=True)
        ]
        self._score_what_was_cut(sources, found)
        return found

    def score(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[float]:
        if not sources:
            return []
        results = self._engine.score_batch(
            self._source_pieces(sources),
            self._target_pieces(targets),
            max_batch_size=SENTENCES_PER_BATCH,
            max_input_length=0,
        )
        return [sum(result.log_probs) for result in results]

    def _hypothesis(self, pieces: list[str], score: float, cap: int, options: SearchOptions) -> Hypothesis:
        total = score * len(pieces) ** options.length_penalty
        ended = pieces[-1:] == [self._end]
        ids = [self._ids[piece] for piece in (pieces[:-1] if ended else pieces)]
        return (
            Hypothesis(ids, total, "eos") if ended and len(ids) <= cap else Hypothesis(ids[:cap], total, "max_length")
        )

    def _score_what_was_cut(self, sources: Sequence[list[int]], found: list[list[Hypothesis]]) -> None:
        """Gives hypotheses that the cap has ended the score that <eos> after them makes."""
        cut = [
            (source, one) for source, some in zip(sources, found, strict=True) for one in some if one.stopped != "eos"
        ]
        if cut:
            scores = self.score([source for source, _ in cut], [one.ids for _, one in cut])
            for (_, hypothesis), score in zip(cut, scores, strict=True):
                hypothesis.score = score

    def _source_pieces(self, sources: Sequence[list[int]]) -> list[list[str]]:
        names, end = self._source, self._source_end
        return [[*[names[id_] for id_ in source], end] for source in sources]

    def _target_pieces(self, targets: Sequence[list[int]]) -> list[list[str]]:
        names = self._target
        return [[names[id_] for id_ in target] for target in targets]


@contextmanager
def _exported(stored: StoredModel, version: str) -> Iterator[Path]:
    """The exported model, from the cache where it is there as it was written."""
    try:
        folder = _cached(stored, cache_folder() / f"ctranslate2-{version}-{_fingerprint(stored)}")
    except OSError:  # a home that can't be written
        with tempfile.TemporaryDirectory(prefix="headway-") as temporary:
            export_ctranslate2(stored, Path(temporary) / "model")
            yield Path(temporary) / "model"
    else:
        yield folder


def cache_folder() -> Path:
    """What can be made again is kept here."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("HEADWAY_CACHE") or user / "headway")


def _fingerprint(stored: StoredModel) -> str:
    """Of all that is exported."""
    found = hashlib.sha256(json.dumps(stored.model.config.to_dict(), sort_keys=True).encode())
    for tokenizer in (stored.source_tokenizer, stored.target_tokenizer):
        found.update(tokenizer.to_bytes())
    for weight in named_weights(stored.model).values():
        found.update(weight.cpu().numpy().tobytes())
    return found.hexdigest()[:32]


def _cached(stored: StoredModel, folder: Path) -> Path:
    if folder.is_dir() and find_damage(folder) is None:
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:  # other processes may be making it, too
        made = Path(temporary) / "model"
        export_ctranslate2(stored, made)
        write_checksums(made)
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    return folder
