"""Analyses of one translation that was looked into: texts to ids, then `headway.insight.analyses`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from headway.errors import UserError
from headway.insight import Outcome, TranslationRecord, analyses
from headway.insight.analyses import Analyses, AskContrast, AskedAnalysis, AskHeadImportance, AskPatching, Reading
from headway.model import Transformer


@dataclass
class Analyst:
    """Analyses a record's translation. What several analyses need is computed once."""

    model: Transformer
    """Of which the record is."""
    record: TranslationRecord
    asked: Sequence[AskedAnalysis]
    source_ids: Callable[[str], list[int]]
    """Of a text in the source language, <eos> last. Raises UserError."""
    target_ids: Callable[[str], list[int]]
    """Of a text in the target language, <eos> last. Raises UserError."""
    greedy: Callable[[Transformer], Outcome]
    """How another model translates the record's source."""

    def analyses(self) -> Analyses:
        """Those that are asked for. Raises UserError."""
        kinds = {one.kind for one in self.asked}
        if len(kinds) < len(self.asked):
            raise UserError("analyses: each can be asked for once")
        return Analyses(**{kind: getattr(self, kind) for kind in kinds})

    @cached_property
    def contributions(self) -> analyses.Contributions:
        return analyses.contributions(self.model, self.record.arrays)

    @cached_property
    def erasure(self) -> analyses.Erasure:
        return analyses.erasure(self.model, self._reading)

    @cached_property
    def contrast(self) -> analyses.Contrast:
        instead = next((one.instead for one in self.asked if isinstance(one, AskContrast)), None)
        return analyses.contrast(self.model, self._reading, {} if instead is None else self._foil(instead))

    @cached_property
    def logit_lens(self) -> analyses.LogitLens:
        return analyses.logit_lens(self.model, self._reading)

    @cached_property
    def decoder_lens(self) -> analyses.DecoderLens:
        given = analyses.given_by_encoder_layer(self.model, self._reading)
        return analyses.DecoderLens(given, [self.greedy(cut) for cut in analyses.cut_encoders(self.model)])

    @cached_property
    def patching(self) -> analyses.Patching:
        [asked] = (one for one in self.asked if isinstance(one, AskPatching))
        other = self._reading.source.new_tensor(self.source_ids(asked.other))
        return analyses.patching(self.model, self._reading, other, asked.other)

    @cached_property
    def head_importance(self) -> analyses.HeadImportance:
        [asked] = (one for one in self.asked if isinstance(one, AskHeadImportance))
        sources = [self.source_ids(source) for source, _ in asked.pairs]
        return analyses.head_importance(self.model, sources, [self.target_ids(target) for _, target in asked.pairs])

    @cached_property
    def faithfulness(self) -> analyses.Faithfulness:
        """Of attention, the mean of all layers and heads, and of every attribution."""
        attributions = {
            "contributions": self.contributions.source,
            "erasure": self.erasure.effect,
            "contrast_erasure": self.contrast.erasure,
            "contrast_gradient_x_input": self.contrast.gradient_x_input,
        }
        if "cross" in self.record.attention:
            attributions = {"attention": self.record.attention["cross"].mean(axis=(0, 1)), **attributions}
        return analyses.faithfulness(self.model, self._reading, attributions, self.contrast.foils)

    @cached_property
    def _reading(self) -> Reading:
        return Reading.of(self.model, self.record.source.ids, self.record.target.ids)

    def _foil(self, instead: str) -> dict[int, int]:
        """The first token of another translation that differs, by its step. Raises UserError."""
        for step, (given, foil) in enumerate(zip(self.record.target.ids, self.target_ids(instead), strict=False)):
            if given != foil:  # at the latest where one of them ends, since <eos> stands there alone
                return {step: foil}
        raise UserError(f"contrast: {instead!r} is the translation itself, so that there is no other word to ask about")
