"""Translating with CTranslate2 (extra `ctranslate2`): the model is exported once, kept in a cache, and run there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.decoding import Hypothesis, SearchOptions
from headway.decoding.ctranslate2_cache import exported
from headway.decoding.ctranslate2_model import import_ctranslate2, load_ctranslate2, pieces_of
from headway.decoding.faithful import never_generated
from headway.errors import UserError
from headway.text.by_length import batches_by_length

if TYPE_CHECKING:
    from headway.storage import ModelDirectory, StoredModel

COMPUTE_TYPES = {"fp32": "float32", "bf16": "bfloat16", "int8": "int8"}
LENGTH_PENALTY = 1.0
"""Scores are divided by length ** LENGTH_PENALTY, which isn't GNMT's penalty (chosen in docs/interop.md)."""
SENTENCES_PER_BATCH = 64
TOKENS_PER_BATCH = 4096
"""Padded source tokens that are translated together, at most."""
SHORT = 16
"""With AVX-512, oneDNN computes the attention among fewer source tokens by another kernel, padding counted, and int8
would round its sums to other numbers. So shorter sources have batches of their own."""
CAP_STEP = 32
"""A batch has one limit on the length, but each sentence has its own, unless `max_length` is given. So a sentence is
searched up to the next multiple of this, whatever it is translated with, and what is longer than its limit is cut."""


def can_compute(precision: str, device: str) -> bool:
    """Whether CTranslate2 computes in one of COMPUTE_TYPES on this device here. Raises UserError where it isn't
    installed."""
    ctranslate2 = import_ctranslate2()
    found = device == "cpu" or (device == "cuda" and ctranslate2.get_cuda_device_count() > 0)
    return found and COMPUTE_TYPES[precision] in ctranslate2.get_supported_compute_types(device)


class CTranslate2Searcher:
    """A `Searcher` that CTranslate2 is. On CPU every core has batches of its own: so many workers of one thread.

    Its scores are of the probabilities among the tokens that may be generated, as the first of which it never takes
    <eos>: higher than `score` gives. With a shortlist, on CPU, these are the tokens that the sentences of a batch may
    have.
    """

    def __init__(self, model: ModelDirectory | StoredModel, device: str, precision: str, threads: int) -> None:
        """precision: one of COMPUTE_TYPES; threads: on CPU. Raises UserError where CTranslate2 is not installed, or
        can't run this model so here."""
        ctranslate2 = import_ctranslate2()
        if device not in ("cpu", "cuda"):
            raise UserError(f"engine ctranslate2 doesn't run on {device}; use --device cpu")
        if not can_compute(precision, device):
            raise UserError(f"engine ctranslate2 can't compute in {precision} on this {device}")
        with exported(model, ctranslate2.__version__) as folder:
            self._engine = load_ctranslate2(
                folder,
                device=device,
                compute_type=COMPUTE_TYPES[precision],
                inter_threads=threads if device == "cpu" else 1,
            )
        self._source, self._target = pieces_of(model)
        self._ids = {piece: id_ for id_, piece in enumerate(self._target)}
        self._never = [[self._target[id_]] for id_ in never_generated(model)]
        self._source_end = self._source[model.config.eos_id]
        self._end = self._target[model.config.eos_id]
        self._longest = model.config.max_length - 1
        self._use_map = model.shortlist is not None and device == "cpu"

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
        searched = list(caps)
        if options.max_length is None:
            searched = [min(-(-cap // CAP_STEP) * CAP_STEP, self._longest) for cap in caps]
        running = [
            (batch, self._start([sources[i] for i in batch], [prefixes[i] for i in batch], searched[batch[0]], options))
            for batch in _batches(list(map(len, sources)), searched)
        ]
        found: list[list[Hypothesis]] = [[] for _ in sources]
        for i, one in ((i, one.result()) for batch, results in running for i, one in zip(batch, results, strict=True)):
            both = zip(one.hypotheses, one.scores, strict=True)
            found[i] = [self._hypothesis(*each, caps[i], options.length_penalty) for each in both]
        self._finish_what_was_cut(sources, found, options)
        return found

    def score(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[float]:
        if not sources:
            return []
        results = self._engine.score_batch(
            self._source_pieces(sources),
            self._target_pieces(targets),
            max_batch_size=TOKENS_PER_BATCH,
            batch_type="tokens",
            max_input_length=0,
        )
        return [sum(result.log_probs) for result in results]

    def _start(
        self, sources: list[list[int]], prefixes: list[list[int]], most: int, options: SearchOptions
    ) -> list[Any]:
        """Lets a batch be translated meanwhile; for each source what its `result()` will be.

        CTranslate2 4.8.5 keeps the places of tokens from one list to the next, and would put other tokens in place of
        those of a prefix, so a batch with prefixes has no list.
        """
        return self._engine.translate_batch(
            self._source_pieces(sources),
            target_prefix=self._target_pieces(prefixes) if any(prefixes) else None,
            asynchronous=True,
            beam_size=options.beam_size,
            num_hypotheses=options.n_best,
            length_penalty=options.length_penalty,
            no_repeat_ngram_size=options.no_repeat_ngram,
            max_decoding_length=most,
            max_input_length=0,
            suppress_sequences=self._never,
            use_vmap=self._use_map and not any(prefixes),
            return_scores=True,
            return_end_token=True,
        )

    def _hypothesis(self, pieces: list[str], score: float, cap: int, length_penalty: float) -> Hypothesis:
        total = score * len(pieces) ** length_penalty
        ids = [self._ids[piece] for piece in pieces]
        if pieces[-1] == self._end and len(ids) <= cap + 1:
            return Hypothesis(ids[:-1], total, "eos")
        return Hypothesis(ids[:cap], total, "max_length")

    def _finish_what_was_cut(
        self, sources: Sequence[list[int]], found: list[list[Hypothesis]], options: SearchOptions
    ) -> None:
        """Gives hypotheses that were cut the score that <eos> after them makes, and their place among the others."""
        cut = [(i, one) for i, some in enumerate(found) for one in some if one.stopped != "eos"]
        if not cut:
            return
        of_cut, ids = [sources[i] for i, _ in cut], [one.ids for _, one in cut]
        ends_next = self._end_next(of_cut, ids, options.no_repeat_ngram)
        for (_, one), score, ends in zip(cut, self.score(of_cut, ids), ends_next, strict=True):
            one.score = score
            one.stopped = "eos" if ends else "max_length"
        penalty = options.length_penalty
        for i in {i for i, _ in cut}:
            different = {tuple(one.ids): one for one in found[i]}.values()
            found[i] = sorted(different, key=lambda one: -one.score / (len(one.ids) + 1) ** penalty)

    def _end_next(self, sources: list[list[int]], targets: list[list[int]], no_repeat_ngram: int) -> list[bool]:
        """Whether <eos> is the likeliest token after each target, of those that repeat no n-gram."""
        results = self._engine.translate_batch(
            self._source_pieces(sources),
            target_prefix=self._target_pieces(targets),
            max_batch_size=TOKENS_PER_BATCH,
            batch_type="tokens",
            beam_size=1,
            no_repeat_ngram_size=no_repeat_ngram,
            max_decoding_length=max(map(len, targets)) + 1,
            max_input_length=0,
            suppress_sequences=self._never,
            return_end_token=True,
        )
        return [result.hypotheses[0][len(target)] == self._end for result, target in zip(results, targets, strict=True)]

    def _source_pieces(self, sources: Sequence[list[int]]) -> list[list[str]]:
        return [[*[self._source[id_] for id_ in source], self._source_end] for source in sources]

    def _target_pieces(self, targets: Sequence[list[int]]) -> list[list[str]]:
        return [[self._target[id_] for id_ in target] for target in targets]


def _batches(lengths: Sequence[int], caps: Sequence[int]) -> list[list[int]]:
    """The places in batches of one cap, the highest first, and of similar length, the longest first."""
    kinds = [(cap, length + 1 >= SHORT) for length, cap in zip(lengths, caps, strict=True)]
    return [
        batch
        for kind in sorted(set(kinds), reverse=True)
        for batch in batches_by_length(
            [i for i in range(len(kinds)) if kinds[i] == kind],
            lambda i: (lengths[i] + 1,),
            lambda count, longest: count <= SENTENCES_PER_BATCH and count * longest[0] <= TOKENS_PER_BATCH,
            longest_first=True,
        )
    ]
