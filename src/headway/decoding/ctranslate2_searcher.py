"""Translating with CTranslate2: the model is exported once, kept in a cache, and run there."""

from collections.abc import Sequence
from itertools import chain, compress
from typing import Any

from headway.decoding import Hypothesis, SearchOptions
from headway.decoding.ctranslate2_cache import exported
from headway.decoding.ctranslate2_model import ModelPieces, load_ctranslate2
from headway.decoding.searcher import RequiredPhrases, batches_by_length, ranked, search_batches
from headway.errors import UserError
from headway.storage import AnyModel
from headway.threads import current_threads

COMPUTE_TYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "int8": "int8"}
SENTENCES_PER_BATCH, ACCELERATOR_SENTENCES = 32, 64
"""Maximum batch sizes on CPU and elsewhere."""
LOGITS_PER_BATCH = 2**24
"""Maximum number of logits of a batch that is scored, padding counted: all are in memory at once."""
SHORT = 16
"""Sources with fewer tokens have batches of their own: with AVX-512, oneDNN has another kernel for the attention in
such batches, padding counted, and int8 would round its sums to other numbers."""
LIMIT_STEP = 32
"""A batch has one limit on the length, but each sentence has its own, unless `max_length` is given. So a sentence is
searched up to the next multiple of this in any batch, and again if the translation exceeds its own limit."""
IMPOSSIBLE = -1e9
"""Tokens that can't be generated, and places of the beam that a prefix leaves empty, have lower scores."""


def can_compute(precision: str, device: str) -> bool:
    """Whether CTranslate2 computes in one of COMPUTE_TYPES on this device here."""
    import ctranslate2

    kind, _, number = device.partition(":")
    found = kind == "cpu" or (kind == "cuda" and ctranslate2.get_cuda_device_count() > int(number or 0))
    return found and COMPUTE_TYPES[precision] in ctranslate2.get_supported_compute_types(kind, int(number or 0))


class CTranslate2Searcher:
    """A `Searcher` that runs CTranslate2, on CPU with a worker of one thread for each core. CTranslate2 returns the
    whole beam without its own length penalty, and `ranked` applies headway's.

    Its scores are higher than those of `score`: probabilities are among the tokens that may be generated, without <eos>
    as the first, and with a shortlist, on CPU, among those that the sentences of a batch may have.
    """

    takes_phrases = False

    def __init__(self, model: AnyModel, device: str, precision: str, threads: int) -> None:
        """device: such as `cpu` or `cuda:1`; precision: one of COMPUTE_TYPES; threads: on CPU. Raises UserError where
        CTranslate2 can't run this model so here."""
        import ctranslate2

        kind, _, index = device.partition(":")
        if kind not in ("cpu", "cuda"):
            raise UserError(f"engine ctranslate2 doesn't run on {kind}; use --device cpu")
        if not can_compute(precision, device):
            raise UserError(f"engine ctranslate2 can't compute in {precision} on this {kind}")
        self._workers = threads if kind == "cpu" else 1
        with exported(model, ctranslate2.__version__) as folder:
            self._engine = load_ctranslate2(
                folder,
                device=kind,
                device_index=int(index or 0),
                compute_type=COMPUTE_TYPES[precision],
                inter_threads=self._workers,
            )
        self._pieces = ModelPieces(model)
        self._end_id = model.config.eos_id
        self._longest, self._target_vocabulary = model.config.max_length, model.config.target_vocab_size
        self._is_stopped = False
        self._use_map = model.shortlist is not None and kind == "cpu"
        self._most = SENTENCES_PER_BATCH if kind == "cpu" else ACCELERATOR_SENTENCES
        if kind == "cuda":  # its libraries may be missing or too old, and are loaded only when the model runs
            try:
                self._engine.translate_batch([[self._pieces.source_end]], max_decoding_length=1)
            except RuntimeError as error:
                raise UserError(f"engine ctranslate2 on cuda: {error}; use --engine torch") from error

    def search(
        self,
        sources: Sequence[list[int]],
        options: SearchOptions,
        caps: Sequence[int],
        prefixes: Sequence[list[int]],
        required: RequiredPhrases | None = None,
    ) -> list[list[Hypothesis]]:
        assert required is None
        limits = [cap + 1 for cap in caps]  # with <eos>
        if options.max_length is None:
            limits = [min(-(-limit // LIMIT_STEP) * LIMIT_STEP, self._longest) for limit in limits]
        found = self._found(sources, prefixes, limits, options)
        # hypotheses longer than a cap are replaced by those that are unfinished there; with twice the patience none
        # that had finished before is lost
        cut = [i for i, cap in enumerate(caps) if any(len(one.ids) > cap for one in found[i])]
        of_cut = [sources[i] for i in cut], [prefixes[i] for i in cut], [caps[i] for i in cut]
        for i, some in zip(cut, self._found(*of_cut, options, 2 if options.beam_size > 1 else 1), strict=True):
            short = [one for one in found[i] if len(one.ids) <= caps[i]]
            found[i] = short + [one for one in some if one.ids not in [other.ids for other in short]]
        given = self._pieces.given
        if options.beam_size > 1:
            self._end_after_prefixes(found, sources, prefixes, options)
        partial = [
            i for i in range(len(sources)) if i in cut or options.no_repeat_ngram or not given.issuperset(prefixes[i])
        ]
        rescored = [(i, one) for i in partial for one in found[i]]
        totals = self.score([sources[i] for i, _ in rescored], [one.ids for _, one in rescored])
        for (_, one), total in zip(rescored, totals, strict=True):
            one.score = total
        return [ranked(some, options.beam_size, options.length_penalty)[: options.n_best] for some in found]

    def stop(self) -> None:
        """Makes searches in other threads raise KeyboardInterrupt."""
        self._is_stopped = True

    def score(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[float]:
        most, scores = LOGITS_PER_BATCH // self._target_vocabulary, [0.0] * len(sources)
        lengths = [max(map(len, pair)) + 1 for pair in zip(sources, targets, strict=True)]
        batches = batches_by_length(
            range(len(sources)), lambda i: (lengths[i],), lambda count, longest: count * longest[0] <= most
        )
        running = [
            self._kept_to_a_worker(
                self._engine.score_batch(
                    self._source_pieces([sources[i] for i in batch]),
                    [self._pieces.of_target(targets[i]) for i in batch],
                    asynchronous=True,
                    max_input_length=0,
                )
            )
            for batch in batches
        ]
        for i, future in zip(chain(*batches), chain(*running), strict=True):
            self._raise_if_stopped()
            log_probabilities = [*future.result().log_probs]
            left = (id_ not in self._pieces.given for id_ in (*targets[i], self._end_id))
            scores[i] = sum(compress(log_probabilities, left))
        return scores

    def _end_after_prefixes(
        self,
        found: list[list[Hypothesis]],
        sources: Sequence[list[int]],
        prefixes: Sequence[list[int]],
        options: SearchOptions,
    ) -> None:
        """Adds the prefixes that a beam may end with: CTranslate2 ends right after a prefix only if <eos> is likeliest
        there. As no end, <eos> is among the `beam_size` likeliest tokens or not."""
        lacking = [
            i
            for i, prefix in enumerate(prefixes)
            if not self._pieces.given.issuperset(prefix) and all(one.ids != prefix for one in found[i])
        ]
        given = [prefixes[i] for i in lacking]
        limits = [len(prefix) + 1 for prefix in given]
        ends = self._found([sources[i] for i in lacking], given, limits, options, end_token=self._pieces.never[0])
        for i, some in zip(lacking, ends, strict=True):
            found[i] += [one for one in some if one.stopped == "eos"]

    def _found(
        self,
        sources: Sequence[list[int]],
        prefixes: Sequence[list[int]],
        limits: Sequence[int],
        options: SearchOptions,
        patience: int = 1,
        end_token: Sequence[str] | None = None,
    ) -> list[list[Hypothesis]]:
        """The hypotheses of a search up to the limits, finished and unfinished. Scores leave out prefixes, and are
        among the tokens that `no_repeat_ngram` leaves."""
        running: list[tuple[int, Any]] = []
        for batch in _batches(list(map(len, sources)), limits, self._most):
            self._raise_if_stopped()
            given = any(prefixes[i] for i in batch)
            has_language = any(self._pieces.given.issuperset(prefixes[i][:1]) for i in batch if prefixes[i])
            futures = self._engine.translate_batch(
                self._source_pieces([sources[i] for i in batch]),
                target_prefix=[self._pieces.of_target(prefixes[i]) for i in batch] if given else None,
                asynchronous=True,
                beam_size=options.beam_size,
                patience=patience,
                num_hypotheses=options.beam_size * patience,
                length_penalty=0,
                no_repeat_ngram_size=options.no_repeat_ngram,
                min_decoding_length=1 + has_language,  # no translation is empty
                max_decoding_length=limits[batch[0]],
                max_input_length=0,
                suppress_sequences=self._pieces.never,
                use_vmap=self._use_map
                and not given,  # with a map CTranslate2 4.8.5 replaces tokens of a prefix by others
                return_scores=True,
                return_end_token=True,
                end_token=end_token,
            )
            running += zip(batch, self._kept_to_a_worker(futures), strict=True)
        found: list[list[Hypothesis]] = [[] for _ in sources]
        for i, one in ((i, future.result()) for i, future in running):
            self._raise_if_stopped()
            for pieces, score in zip(one.hypotheses, one.scores, strict=True):
                if score > IMPOSSIBLE:
                    ended = pieces[-1] == self._pieces.end
                    ids = [self._pieces.ids[piece] for piece in (pieces[:-1] if ended else pieces)]
                    found[i].append(Hypothesis(ids, score, "eos" if ended else "max_length"))
        return found

    def _kept_to_a_worker(self, futures: list[Any]) -> list[Any]:
        """The results of a batch. A thread that may use one core alone, as those of a server, waits for them, so that
        its other batches leave the workers to other threads."""
        if current_threads() < self._workers:
            for one in futures:
                one.result()
        return futures

    def _raise_if_stopped(self) -> None:
        if self._is_stopped:
            raise KeyboardInterrupt

    def _source_pieces(self, sources: Sequence[list[int]]) -> list[list[str]]:
        return [[*self._pieces.of_source(source), self._pieces.source_end] for source in sources]


def _batches(lengths: Sequence[int], limits: Sequence[int], most: int) -> list[list[int]]:
    """The numbers of the sources in batches of one limit, the highest limits first; see SHORT."""
    kinds = [(limit, length + 1 >= SHORT) for length, limit in zip(lengths, limits, strict=True)]
    of_kind = ([i for i, other in enumerate(kinds) if other == kind] for kind in sorted(set(kinds), reverse=True))
    return [batch for alike in of_kind for batch in search_batches(alike, lengths.__getitem__, most)]
