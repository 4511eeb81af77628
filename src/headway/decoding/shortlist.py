"""An engine for one batch with only the target tokens that the translations of its sources may have."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from headway.decoding.engine import TorchEngine
from headway.decoding.phrases import Phrase, RequiredPhrases
from headway.decoding.searcher import Hypothesis
from headway.decoding.step import DecoderState

LOT = 128
"""The number of tokens of a batch is a multiple of this: oneDNN compiles its products for each number."""


class ShortlistEngine:
    """The part of an `Engine` that search needs. Its ids are places in `tokens`, and its probabilities those among the
    tokens of a sentence, whatever other sentences the batch has."""

    def __init__(self, engine: TorchEngine, allowed: np.ndarray) -> None:
        """allowed: which target ids the translation of each sentence may have, (sentences, vocabulary), bool. <eos> is
        always among them; what the engine never generates isn't."""
        listed = np.any(allowed, axis=0)
        listed[[engine.bos_id, engine.eos_id]] = True
        allowed = allowed.copy()
        allowed[:, engine.never], allowed[:, engine.eos_id] = False, True
        more = np.flatnonzero(~listed)[: -int(listed.sum()) % LOT]
        self.tokens = np.sort(np.concatenate([np.flatnonzero(listed), more]))
        """The target id of each place."""
        self._places = np.full(allowed.shape[1], -1)
        self._places[self.tokens] = np.arange(len(self.tokens))
        forbidden = np.where(allowed[:, None, self.tokens], np.float32(0), np.float32(-np.inf))
        self._engine = engine
        self._ids = torch.from_numpy(self.tokens).to(engine.device)
        self._forbidden = torch.from_numpy(forbidden).to(engine.device)
        self._output = engine.output_of(self._ids)
        self.bos_id, self.eos_id = int(self._places[engine.bos_id]), int(self._places[engine.eos_id])

    def places(self, ids: Sequence[int]) -> list[int]:
        """The places of target ids that are in the list."""
        return self._places[list(ids)].tolist()

    def required(self, required: RequiredPhrases) -> RequiredPhrases:
        """The same with places; the ids of all phrases are in the list."""

        def placed(one: Phrase) -> Phrase:
            return Phrase(tuple(self.places(one.ids)), one.ends_word, tuple(self.places(one.initial)))

        return RequiredPhrases(
            [tuple(map(placed, each)) for each in required.phrases], required.word_parts[self.tokens]
        )

    def restore(self, found: Sequence[Sequence[Hypothesis]]) -> None:
        """Puts the target ids in place of the places."""
        for hypothesis in (one for some in found for one in some):
            hypothesis.ids = self.tokens[hypothesis.ids].tolist()

    def start(self, source: Tensor) -> DecoderState:
        state = self._engine.start(source)
        state.forbidden = self._forbidden
        return state

    @torch.inference_mode()
    def step(self, state: DecoderState, tokens: Tensor) -> Tensor:
        logits = self._output(self._engine.hidden(state, self._ids[tokens])).float()  # (rows, tokens)
        assert state.forbidden is not None
        by_sentence = logits.view(len(state.forbidden), state.width, -1).add_(state.forbidden)
        return by_sentence.log_softmax(dim=-1).flatten(0, 1)

    def select(self, state: DecoderState, rows: Tensor) -> None:
        self._engine.select(state, rows)

    def score(self, source: Tensor, target: Tensor) -> Tensor:
        """The score among the whole vocabulary; target: ids, not places."""
        return self._engine.score(source, target)
