"""The recipe's sections `data` and `tokenizer`: the corpora, their preparation for training, and the tokenizer that is
learned from them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from glob import has_magic
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FieldSerializationInfo,
    PrivateAttr,
    field_serializer,
    model_validator,
)

from headway.data.batches import CorpusShare
from headway.data.corpus import CorpusFiles, as_corpus, check_files
from headway.data.noise import KINDS, VERSIONS, NoiseKind, perturbed
from headway.data.pair_noise import Pair, PairNoiseKind, joined_pairs, titled, with_code, with_tags
from headway.text.characters import is_unicode
from headway.text.domain import LONGEST_DOMAIN
from headway.text.tokenizer import TokenizerKind

Corpus = TypeVar("Corpus", bound="ParallelFiles")


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, protected_namespaces=())


def listed(value: Any) -> Any:
    return value if isinstance(value, list) else [] if value is None else [value]


def _rising(bounds: tuple[int, int]) -> tuple[int, int]:
    if not 0 <= bounds[0] <= bounds[1]:
        raise ValueError("must be the fewest and the most, such as [1, 200]")
    return bounds


def _unique(kinds: list[Any]) -> list[Any]:
    return list(dict.fromkeys(kinds))


def _of_unicode(file: Path) -> Path:
    if not is_unicode(str(file)):
        raise ValueError("its name is not UTF-8; rename it")
    return file


def _without_brackets(code: str) -> str:
    if re.search(r"[\s<>()\[\]{}]", code):
        raise ValueError("must be a language code such as ko, without white space and brackets")
    return code


FileName = Annotated[Path, AfterValidator(_of_unicode)]
OptionalFiles = Annotated[list[FileName], BeforeValidator(listed)]
Files = Annotated[OptionalFiles, Field(min_length=1)]
LanguageName = Annotated[str, AfterValidator(_without_brackets)]
Range = Annotated[tuple[int, int], AfterValidator(_rising)]
DuplicateOf = Literal["pair", "source", "target"]


class ParallelFiles(Section):
    source: Files
    """One text file, or a list; .gz, .xz and .zst work too. A .tsv, .jsonl, .csv, .xlsx, .po, .mo,
    .tmx or .xliff file holds both sides. A pattern such as `part-*.de.gz` stands for all matching files, in sorted
    order."""
    target: OptionalFiles = []
    """The translations, line for line, in as many files or patterns. Leave it out for files that hold both sides."""
    tag: LanguageName = ""
    """The target language of this corpus, such as `ko`, for a model with several target languages. Its source texts
    then begin with `>>ko<<`, and so must every text to be translated into that language. Fine-tuning M2M-100, NLLB and
    mBART-50 needs both languages in the model's codes, such as `eng_Latn:kor_Hang`."""
    _swapped: bool = PrivateAttr(default=False)

    @property
    def is_swapped(self) -> bool:
        """Whether source and target have changed places."""
        return self._swapped

    def swapped(self) -> Self:
        """The corpus of the other direction. A file with both sides stays the source."""
        other = self.model_copy(update={"source": self.target, "target": self.source} if self.target else {})
        other._swapped = not self._swapped
        return other

    @model_validator(mode="after")
    def _in_pairs(self) -> ParallelFiles:
        check_files(self.source, self.target)
        return self


class TrainingFiles(ParallelFiles):
    weight: float = Field(1.0, gt=0, le=1000)
    """Number of times each pair of this corpus occurs in an epoch. 0.5 means a random half, which each epoch draws
    anew."""


class SyntheticFiles(TrainingFiles):
    """A corpus with one side that a model writes before training."""

    @model_validator(mode="after")
    def _named_singly(self) -> SyntheticFiles:
        named = [file for file in (*self.source, *self.target) if has_magic(file.name)]  # a folder may have any name
        if patterns := [file for file in named if not file.exists()]:
            raise ValueError(f"{patterns[0]} is a pattern; name each file, and the file of its translations")
        return self


class MonolingualFiles(SyntheticFiles):
    source: Files
    """The file to write the translations of `target` to. It is made once, for all recipes that name it."""
    target: OptionalFiles = Field(..., min_length=1)
    """Text in the target language, one sentence per line: one file or a list, each with a source file to make."""
    reverse: Path
    """Model or run directory that translates `target` into the source language."""
    sample: bool = False
    """Sample the translations instead of using the reverse model's own search."""


class DistilledFiles(SyntheticFiles):
    source: Files
    """Text in the source language, one sentence per line: one file or a list, each with a target file to make. It may
    be that of `data.train`."""
    target: OptionalFiles = Field(..., min_length=1)
    """The file to write the translations of `source` to. It is made once, for all recipes that name it."""
    teacher: Path
    """Model or run directory that translates `source` into the target language."""


@dataclass(frozen=True)
class Synthesis:
    """Files with one side of a corpus, and the files for the other side, which a model writes before training."""

    given: list[Path]
    written: list[Path]
    writer: Path
    """The model or run directory that translates."""
    key: str
    """The recipe's key for the writer."""
    languages: tuple[str, str]
    """The languages of the given and the written text."""
    sample: bool = False
    """Whether to sample the translations instead of using the model's own search."""


class FiltersSection(Section):
    words: Range | None = None
    """Minimum and maximum number of words on each side, such as `[1, 200]`. Other pairs are dropped."""
    characters: Range | None = None
    """Minimum and maximum number of characters on each side, for languages without spaces between words."""
    max_ratio: float | None = Field(default=None, gt=1)
    """Drop pairs with one side more than this many times as long as the other, in characters. Sides of up to 20
    characters always pass."""
    copies: bool = False
    """Drop pairs with the same text on both sides, except code and acronyms, such as `=SUM(A1)` or `GMT-12`."""
    script: bool = False
    """Drop pairs with a side written mostly in another script than that of its language, apart from markup, code, and
    words that both sides have."""
    language: float | None = Field(default=None, gt=0, lt=1)
    """Drop pairs with a side of 30 letters or more that lingua assigns to its language with less than this confidence,
    among the languages of the same script (extra `detect`). 0.1 drops text that is clearly in another language."""
    overlap: Literal["pair", "side"] | None = None
    """Drop pairs that also occur in `data.valid` or `data.held_out`: the same `pair`, or the same text on a `side`."""
    duplicates: Annotated[list[DuplicateOf], BeforeValidator(listed), AfterValidator(_unique)] = []
    """Drop repetitions of a `pair`, a `source`, a `target`, or a list of them, among the pairs that pass the other
    filters. Takes 8 bytes of memory per pair and entry, for a hash of 64 bits."""


class NoiseSection(Section):
    share: float = Field(default=0.0, ge=0, le=1)
    """The share of the source sentences that get noise, such as 0.3. The training text is prepared eight times with
    different noise, and each epoch uses the next version."""
    kinds: Annotated[list[NoiseKind], BeforeValidator(listed), AfterValidator(_unique), Field(min_length=1)] = [*KINDS]
    """One or two of these kinds are applied to such a sentence: `lower` or `upper` case, `typos` in one word of ten, no
    final `punctuation`, no `diacritics`."""
    pairs: dict[PairNoiseKind, Annotated[float, Field(gt=0, le=1)]] = {}
    """Noise of both sides: kinds with the shares of the pairs that get them, such as `{copy: 0.05, tags: 0.1}`. `title`
    capitalises all words, `copy` makes a line of code, addresses or numbers, `tags` puts tags, placeholders, code and
    other numbers at aligned places, `joined` joins two or three sentences. The other pairs get that of `share`."""

    @model_validator(mode="after")
    def _some(self) -> NoiseSection:
        if not self.share and not self.pairs:
            raise ValueError("needs share or pairs")
        if sum(self.pairs.values()) > 1:
            raise ValueError("the shares of pairs are more than 1 together")
        return self

    def applied(self, text: str, version: int) -> str:
        """The text with the noise of this version of it, or as it is."""
        random = Random(f"noise {version}\n{text}")  # other numbers than for the typos
        if random.random() >= self.share:
            return text
        count = min(random.choice((1, 2)), len(self.kinds))
        for kind in random.sample(self.kinds, count):
            text = perturbed(text, kind, version)
        return text

    def applied_to_pair(
        self, pair: Pair, version: int, dictionary: Mapping[str, str], sentences: Sequence[Pair]
    ) -> Pair:
        """The pair with the noise of this version of it. dictionary: by `dictionary_of`; sentences: by `sentences_of`,
        to join with it."""
        random = Random(f"pairs {version}\n{pair[0]}\n{pair[1]}" if self.pairs else 0)
        drawn = random.random()
        for kind, share in self.pairs.items():
            drawn -= share
            if drawn < 0:
                match kind:
                    case "title":
                        return titled(pair[0]), titled(pair[1])
                    case "copy":
                        return with_code(pair, random)
                    case "tags":
                        return with_tags(pair, dictionary, random)
                    case "joined":
                        return joined_pairs(pair, sentences, random)
        return (self.applied(pair[0], version), pair[1]) if self.share else pair


class DataSection(Section):
    train: Annotated[list[TrainingFiles], BeforeValidator(listed)] = []
    """One corpus, or a list of them. It may be left out if there is `data.monolingual` or `data.distilled`."""
    monolingual: Annotated[list[MonolingualFiles], BeforeValidator(listed)] = []
    """Text in the target language only, one corpus or a list, for back-translation. Preparation translates it with a
    model of the other direction, and training uses these pairs together with those of `data.train`."""
    distilled: Annotated[list[DistilledFiles], BeforeValidator(listed)] = []
    """Source text, one corpus or a list, for sequence-level distillation. Preparation translates it with a teacher, and
    training uses these pairs together with those of `data.train`."""
    valid: Annotated[list[ParallelFiles], BeforeValidator(listed), Field(min_length=1)]
    """Validation text, one corpus or a list. The run is never trained on it; it chooses the best model and decides when
    to stop."""
    held_out: Annotated[list[ParallelFiles], BeforeValidator(listed)] = []
    """Text for later tests, one corpus or a list. Only `data.filters.overlap` uses it."""
    both_directions: bool = False
    """Train and validate on each pair in both directions, without a tag. Such a model is a good one to start from, for
    either direction (`start` of a stage)."""
    filters: FiltersSection = FiltersSection()
    """Filters for training pairs; all are off by default."""
    noise: NoiseSection | None = None
    """Noise in the training text, so that the model learns to translate noisy text; by default none. The tokenizer is
    learned from noisy text, too."""
    temperature: float = Field(1.0, ge=1, le=100)
    """Balances corpora of different sizes. A corpus's share of an epoch is proportional to (pairs times weight) to the
    power of 1 / temperature: 1 keeps the proportions, 100 makes the shares nearly equal. The length of an epoch doesn't
    change."""
    prepared: Path | None = None
    """Folder that `headway prepare` made from this recipe; by default the run prepares its own data."""
    source_language: LanguageName = ""
    """Language code such as `de`; by default that of `training.init_from`, or else the suffix of the training file, if
    it is a code and both sides differ."""
    target_language: LanguageName = ""
    """Language code; by default that of `training.init_from`, or else the suffix of the training file, or `mul` if the
    corpora have tags."""
    domain: str = Field("", max_length=LONGEST_DOMAIN)
    """The subject of the text, such as `captions of photographs`, for the model card and the page of a server."""

    @model_validator(mode="after")
    def _tags(self) -> DataSection:
        if not self.corpora:
            raise ValueError("train is missing")
        tags = {files.tag for files in self.corpora}
        if "" in tags and len(tags) > 1:
            raise ValueError("some training corpora have a tag and others don't; give each its tag")
        for files in self.valid:
            if files.tag not in tags:
                known = ", ".join(map(repr, sorted(tags)))
                raise ValueError(f"a validation corpus has tag {files.tag!r}, the training corpora have {known}")
        if self.both_directions and (tags != {""} or self.monolingual or self.distilled):
            raise ValueError("both_directions is for data.train without tags, monolingual and distilled")
        return self

    @field_serializer("train", "monolingual", "distilled", "valid", "held_out")
    def _serialized(self, corpora: list[ParallelFiles], info: FieldSerializationInfo) -> Any:
        plain = [files.model_dump(mode=info.mode, exclude_defaults=True) for files in corpora]
        return plain[0] if len(plain) == 1 else plain

    @property
    def corpora(self) -> list[TrainingFiles]:
        return self._directed([*self.train, *self.monolingual, *self.distilled])

    @property
    def validation(self) -> list[ParallelFiles]:
        return self._directed(self.valid)

    def _directed(self, corpora: list[Corpus]) -> list[Corpus]:
        """The corpora, in both directions if `both_directions`. Their order doesn't depend on the direction of the
        recipe, so recipes of either direction make the same model."""
        if not self.both_directions:
            return corpora
        others = [one.swapped() for one in corpora]
        return [*corpora, *others] if self.source_language > self.target_language else [*others, *corpora]

    @property
    def versions(self) -> int:
        """The versions in which the training text is prepared. An epoch takes one of each pair."""
        return VERSIONS if self.noise else 1

    @property
    def syntheses(self) -> list[Synthesis]:
        """The translations that models write before training."""
        found = []
        for one in self.monolingual:
            source, target = self.languages_of(one)
            key = "data.monolingual.reverse"
            found.append(Synthesis(one.target, one.source, one.reverse, key, (target, source), one.sample))
        for one in self.distilled:
            key = "data.distilled.teacher"
            found.append(Synthesis(one.source, one.target, one.teacher, key, self.languages_of(one)))
        return found

    @property
    def languages(self) -> list[tuple[str, str]]:
        """Source and target language of each training corpus."""
        return [self.languages_of(corpus) for corpus in self.corpora]

    def languages_of(self, corpus: ParallelFiles) -> tuple[str, str]:
        source, target = self._languages_of_files(corpus)
        return (target, source) if corpus.is_swapped else (source, target)

    def _languages_of_files(self, corpus: ParallelFiles) -> tuple[str, str]:
        source, _, target = corpus.tag.rpartition(":")
        return source or self.source_language, target or self.target_language

    def files_of(self, corpus: ParallelFiles) -> CorpusFiles:
        """The corpus's files on disk. Raises UserError for a pattern that matches nothing."""
        files = as_corpus(corpus.source, corpus.target, self._languages_of_files(corpus))
        return replace(files, swapped=corpus.is_swapped and not corpus.target)

    def shares_of(self, sizes: Sequence[int]) -> list[CorpusShare]:
        """The shares of the training corpora in an epoch, by weights and temperature; sizes: their pairs."""
        weights = [corpus.weight for corpus in self.corpora]
        if self.temperature != 1:
            pairs = [size * weight for size, weight in zip(sizes, weights, strict=True)]
            tempered = [count ** (1 / self.temperature) for count in pairs]
            weights = [share / sum(tempered) * sum(pairs) / size for share, size in zip(tempered, sizes, strict=True)]
        return [CorpusShare(size, weight) for size, weight in zip(sizes, weights, strict=True)]

    @property
    def tags(self) -> list[str]:
        """The target languages of texts with tags; none if there is a single target language."""
        return sorted({files.tag for files in self.corpora if files.tag})


class TokenizerSection(Section):
    kind: TokenizerKind = "bpe"
    """Subwords by `bpe` or `unigram`, or whole words (`word`)."""
    vocab_size: int = Field(8000, ge=1)
    """Maximum number of tokens in each vocabulary."""
    joint: bool = True
    """One vocabulary for both languages."""
    min_frequency: int = Field(1, ge=1)
    """Words that occur less often are unknown (kind `word`)."""
    lowercase: bool = False
    """Convert all text to lower case (kind `word`)."""

    @model_validator(mode="after")
    def _possible(self) -> TokenizerSection:
        if self.kind != "word":
            for name in ("min_frequency", "lowercase"):
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(f"{name} is for kind: word, but kind is {self.kind}")
        return self


@dataclass(frozen=True)
class PreparationOptions:
    """The keys of a recipe for the preparation of its text."""

    data: DataSection
    tokenizer: TokenizerSection
    max_length: int
    """The model's maximum length, in tokens."""
    tokens_per_batch: int
    init_from: Path | None
