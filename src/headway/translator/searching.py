"""From texts to `Translation`s: the search for ids, what a translation must have, and its pieces."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import NamedTuple

from headway.decoding import Hypothesis, Phrase, RequiredPhrases, Searcher, SearchOptions
from headway.devices import EngineName
from headway.errors import UserError
from headway.storage import Aligner, ModelInfo
from headway.text.protected import joined, may_hold_protected
from headway.text.tokenizer import Piece
from headway.threads import current_threads
from headway.translator.aligning import align, character_links
from headway.translator.codec import Codec, languages_of
from headway.translator.engines import Engines
from headway.translator.glossary import Glossary
from headway.translator.required_phrases import ProtectedText
from headway.translator.translation import Pieces, Translation, with_alternatives

MOST_PHRASES = 2_000
"""Phrases whose ids are kept."""


class _Sought(NamedTuple):
    """A source whose translation is sought."""

    ids: list[int]
    prefix: list[int]
    phrases: tuple[Phrase, ...] = ()
    """Phrases that the translation must contain."""
    free_first: bool = True
    """Whether an ordinary search is tried, whose hypotheses stay if all have the phrases: the model seldom copies
    protected text by itself."""
    has_terms: bool = False
    """Whether terms of a glossary are among the phrases."""


class TextSearcher:
    """Searches for texts in place of ids."""

    def __init__(self, info: ModelInfo, engines: Engines, codec: Codec) -> None:
        self._info, self._engines, self._codec = info, engines, codec
        self._phrase = lru_cache(MOST_PHRASES)(codec.phrase)
        self._checked: Glossary | None = None
        """The last glossary that was found good."""

    def translate(
        self,
        texts: Sequence[str],
        options: SearchOptions,
        prefixes: Sequence[list[int]],
        glossaries: Sequence[Glossary],
    ) -> list[Translation]:
        """The translation of each text. Where none has all protected text of its source, it is made of those of the
        words between. Links and tags are put into the translation of the text without them."""
        given = {
            i: ProtectedText.of(text, self._info.source_tokenizer)
            for i, (text, glossary) in enumerate(zip(texts, glossaries, strict=True))
            if glossary.terms or may_hold_protected(text)
        }
        sources = self._codec.sources(texts)
        readable = {i: ids for i, ids in enumerate(sources) if ids and len(ids) <= self._codec.longest_source}
        searched = [i for i in readable if i not in given or not given[i].is_split]
        hypotheses = self._search(
            [
                self._sought(readable[i], self._codec.opening(texts[i]) + prefixes[i], given.get(i), glossaries[i])
                for i in searched
            ],
            options,
        )
        translations = self._enclosing(given, sources, options, prefixes, glossaries)
        for i, some in zip(searched, hypotheses, strict=True):
            every = [self._from_hypothesis(one, texts[i], readable[i]) for one in some]
            best, *others = [one for one in every if i not in given or given[i].is_kept_by(one.text)] or [None]
            if best is not None:
                translations[i] = replace(best, alternatives=others)
        lost = [i for i in readable if i in given and i not in translations]
        if lost:
            runs = [(run, glossaries[i]) for i in lost for run in given[i].runs]
            texts_of_runs, glossaries_of_runs = [run for run, _ in runs], [glossary for _, glossary in runs]
            of_runs = iter(self.translate(texts_of_runs, options, [[]] * len(runs), glossaries_of_runs))
            rebuilt = []
            for i in lost:
                made = [next(of_runs) for _ in given[i].runs]
                one = given[i].from_runs(self._codec.decode(prefixes[i]), made, glossaries[i])
                reread = partial(self._reread, texts[i], readable[i])
                rebuilt += with_alternatives([one], partial(map, reread)) if made else [one]
            translations.update(zip(lost, with_alternatives(rebuilt, self._scored), strict=True))
        return [translations.get(i) or self._untranslated(text, sources[i]) for i, text in enumerate(texts)]

    def _enclosing(
        self,
        given: Mapping[int, ProtectedText],
        sources: Sequence[list[int] | None],
        options: SearchOptions,
        prefixes: Sequence[list[int]],
        glossaries: Sequence[Glossary],
    ) -> dict[int, Translation]:
        """Translations of the texts whose links and tags can be placed in that of the text without them, by number."""
        layouts = {i: layout for i, text in given.items() if (layout := text.layout) is not None and text.runs}
        if not layouts:
            return {}
        texts = [given[i].tag + layout.plain for i, layout in layouts.items()]
        found = self.translate(texts, options, [prefixes[i] for i in layouts], [glossaries[i] for i in layouts])
        pairs = list(zip(layouts.items(), found, strict=True))
        self.align_together([one for (_, layout), one in pairs if layout.needs_alignment])
        made = {}
        for (i, layout), translation in pairs:
            every, needed = [], layout.needs_alignment
            for each in (translation, *translation.alternatives):
                links = character_links(each.source_tokens, each.tokens, each.alignment) if needed else []
                elements = layout.placed(each.text, links, len(given[i].tag))
                if elements is not None and given[i].is_kept_by(text := joined(elements)):
                    plain = replace(each, text=text, alternatives=[], _pieces=Pieces())
                    every.append(self._reread(given[i].text, sources[i] or [], plain))
            if every:
                made[i] = replace(every[0], alternatives=every[1:])
        return made

    def check_glossary(self, glossary: Glossary, options: SearchOptions) -> None:
        """Raises UserError where a search with these options can't follow it."""
        if not glossary.terms:
            return
        self._engines.check("glossary")
        if options.sample is not None:
            raise UserError("a glossary needs a beam: leave sample out")
        if options.no_repeat_ngram:
            raise UserError("a glossary may demand what no_repeat_ngram forbids: give one of them")
        if glossary is not self._checked:
            for term in glossary.terms:
                if self._phrase(term.target, capital=True) is None:
                    problem = f"the model's vocabulary can't write {term.target!r}"
                    raise UserError(f"glossary: {problem}; choose another target")
            self._checked = glossary

    def _sought(self, ids: list[int], prefix: list[int], given: ProtectedText | None, glossary: Glossary) -> _Sought:
        if given is None:
            return _Sought(ids, prefix)
        terms = given.terms(glossary)
        phrases = [self._phrase(one.text, inside=one.inside, closed=one.closed) for one in given.spans]
        phrases += [self._phrase(term.target, capital=True) for term in terms]
        possible = tuple(one for one in phrases if one is not None)  # as far as the model can write them
        return _Sought(ids, prefix, possible, not given.spans, bool(terms))

    def _search(self, sources: list[_Sought], options: SearchOptions) -> list[list[Hypothesis]]:
        """The hypotheses of each source, best first. The engine that finds them doesn't depend on the other sources.
        Sampling and CTranslate2 don't heed phrases."""
        usual = self._engines.able(*options.changed)
        found: dict[int, list[Hypothesis]] = {}

        def search(searcher: Searcher, chosen: list[int], required: RequiredPhrases | None = None) -> None:
            some = [sources[i] for i in chosen]
            ids, prefixes = [one.ids for one in some], [one.prefix for one in some]
            caps = [self._codec.length_cap(len(one.ids), len(one.prefix), options.max_length) for one in some]
            found.update(zip(chosen, searcher.search(ids, options, caps, prefixes, required), strict=True))

        for has_terms in (False, True):
            alike = [i for i, one in enumerate(sources) if one.has_terms == has_terms]
            if not alike:
                continue
            searcher = self._engines.able("glossary") if has_terms else usual
            if options.sample is not None or not searcher.takes_phrases or not any(sources[i].phrases for i in alike):
                search(searcher, alike)
                continue
            required = RequiredPhrases([one.phrases for one in sources], self._codec.word_parts)
            search(searcher, [i for i in alike if sources[i].free_first or not sources[i].phrases])
            left = [i for i in alike if i not in found or not all(required.found_in(i, one.ids) for one in found[i])]
            search(searcher, left, required.of(left))
        return [found[i] for i in range(len(sources))]

    def _untranslated(self, text: str, source: list[int] | None) -> Translation:
        """The empty translation of a text that is blank or too long."""
        pieces = Pieces(find_source=partial(self._source_pieces, text) if source else list)
        return Translation("", None, "blank" if source == [] else "too_long", _pieces=pieces)

    def _source_pieces(self, text: str) -> list[Piece]:
        return self._info.source_tokenizer.encoded_pieces(text, tagged=True)

    def _from_hypothesis(self, hypothesis: Hypothesis, source_text: str, source: list[int]) -> Translation:
        find_target = partial(self._info.target_tokenizer.decoded_pieces, hypothesis.ids)
        pieces = self._pieces(source_text, (source, hypothesis.ids), find_target)
        text = self._codec.decode(hypothesis.ids)
        return Translation(text, hypothesis.score, hypothesis.stopped, _pieces=pieces)

    def _scored(self, translations: Sequence[Translation]) -> list[Translation]:
        """The translations with the scores of their texts, where the model can read these."""
        pairs = [one._pieces.ids for one in translations if one._pieces.ids[0]]
        scores = iter(self._engines.own.score([source for source, _ in pairs], [target for _, target in pairs]))
        return [replace(one, score=next(scores)) if one._pieces.ids[0] else one for one in translations]

    def _reread(self, source_text: str, source: list[int], translation: Translation) -> Translation:
        """The translation with the pieces of its text, if the model can read it and its source."""
        target = self._codec.translation(source_text, translation.text)
        if target is None or max(len(source), len(target)) > self._codec.longest_source:
            return translation
        find_target = partial(self._codec.translation_pieces, source_text, translation.text)
        return replace(translation, _pieces=self._pieces(source_text, (source, target), find_target))

    def _pieces(self, source_text: str, ids: tuple[list[int], list[int]], target: Callable[[], list[Piece]]) -> Pieces:
        """ids: of source and translation; target: finds the pieces of the translation."""
        tags, body = self.split_tag(source_text)
        tag, _ = self._info.source_tokenizer.split_tag(source_text)
        return Pieces(
            find_target=target,
            find_source=partial(self._source_pieces, source_text),
            find_alignment=lambda: self.align([ids], [tags])[0],
            source_text=body,
            languages=languages_of(self._info, tag),
            ids=ids,
            tags=tags,
        )

    def align_together(self, translations: Sequence[Translation]) -> None:
        """Finds the alignments of all of them, alternatives too, in few calls of the model."""
        every = [one for first in translations for one in (first, *first.alternatives)]
        pieces = [one._pieces for one in every if one._pieces.ids[0]]
        alignments = self.align([one.ids for one in pieces], [one.tags for one in pieces])
        for one, alignment in zip(pieces, alignments, strict=True):
            one.alignment = alignment

    def align(self, pairs: Sequence[tuple[list[int], list[int]]], skipped: Sequence[int]) -> list[list[int | None]]:
        """For each token of each target the number of its source token. pairs: ids without <eos>."""
        check_process(self._engines.name)
        sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
        return align(self._engines.reader, self._info.aligner or Aligner(), sources, targets, skipped)

    def split_tag(self, text: str) -> tuple[int, str]:
        """The number of tokens in the tag of a source, and the text with spaces in its place."""
        tag, rest = self._info.source_tokenizer.split_tag(text)
        return int(bool(tag)), rest.rjust(len(text))


def check_process(engine: EngineName) -> None:
    """Raises UserError in a process that was forked from one with a model, unless it computes with one thread of torch,
    its own. A model that isn't used yet makes no difference: reading one starts the threads."""
    if os.getpid() != _first_process() and (engine != "torch" or current_threads() > 1):
        raise UserError(
            "this process was forked from one that had loaded a model, and threads don't survive a fork: start "
            'processes with multiprocessing.get_context("spawn"), or load models in the child processes alone'
        )


@cache
def _first_process() -> int:
    """Id of the process that called this first; forks inherit the cached value."""
    return os.getpid()
