"""Constraints on translations: a prefix and no repeated n-grams, as in fairseq and CTranslate2. Tokens that aren't
allowed have log-probabilities of -inf."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headway.decoding.engine import tensor_on


@dataclass(frozen=True)
class Constraints:
    """Constraints on the translations of one batch. A prefix may contain repetitions that `no_repeat_ngram` forbids."""

    prefixes: Sequence[Sequence[int]] = ()
    """The ids that each translation begins with, included in its score; empty if there are no prefixes. An id that no
    translation may have, such as the token of its language, is given: its log-probability is 0."""
    no_repeat_ngram: int = 0
    """No sequence of this many ids occurs twice in a translation; 0 turns it off."""

    def apply(self, log_probabilities: Tensor, tokens: Tensor, sentences: Sequence[int]) -> Tensor:
        """log_probabilities: (rows, vocabulary) of the next token, tokens: (rows, length) with <bos> first,
        sentences: the sentence of each row -> (rows, vocabulary) with -inf for tokens that are not allowed."""
        place = tokens.size(1) - 1
        forced = [
            self.prefixes[sentence][place] if self.prefixes and place < len(self.prefixes[sentence]) else -1
            for sentence in sentences
        ]
        repeats = self._repeats(tokens, log_probabilities.size(1))
        if max(forced) < 0:
            return log_probabilities.masked_fill(repeats, -torch.inf)
        forced_ids = tensor_on(tokens.device, np.array(forced))[:, None]  # (rows, 1); -1: none
        others = torch.arange(log_probabilities.size(1), device=tokens.device) != forced_ids
        given = ~others & log_probabilities.isneginf()
        forbidden = torch.where(forced_ids >= 0, others, repeats)
        return log_probabilities.masked_fill(forbidden, -torch.inf).masked_fill(given, 0.0)

    def _repeats(self, tokens: Tensor, vocabulary: int) -> Tensor:
        """(rows, vocabulary): True where the token would complete an n-gram that the row already has."""
        n, given = self.no_repeat_ngram, tokens[:, 1:]
        repeats = torch.zeros(len(tokens), vocabulary + 1, dtype=torch.bool, device=tokens.device)
        if n == 0 or given.size(1) < n:
            return repeats[:, :vocabulary]
        ngrams = given.unfold(1, n, 1)  # (rows, n-grams, n)
        last = given[:, given.size(1) - n + 1 :]  # (rows, n - 1)
        is_same = (ngrams[:, :, : n - 1] == last[:, None]).all(dim=-1)  # (rows, n-grams)
        repeats.scatter_(1, ngrams[:, :, -1].where(is_same, vocabulary), True)  # the others set the place at the end
        return repeats[:, :vocabulary]
