"""The recipe: everything that decides a training run, in five sections. `training.reading` makes one of YAML."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_type_hints

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FieldSerializationInfo,
    create_model,
    field_serializer,
    model_validator,
)

from headway.devices import DeviceName, Precision
from headway.model.config import PRESETS, ModelConfig
from headway.storage.model_directory import LONGEST_DOMAIN
from headway.text.chunks import CorpusFiles, as_corpus
from headway.text.corpus import is_pattern, is_two_sided
from headway.text.filters import DuplicateOf, Filters, Overlap
from headway.text.noise import KINDS, Noise, NoiseKind
from headway.text.tokenizer import TokenizerKind
from headway.translator import SearchOptions

DEFAULT_LEARNING_RATE = 1e-3
DECIDED_BY_TOKENIZER = ("source_vocab_size", "target_vocab_size", "pad_id", "unk_id", "bos_id", "eos_id")
"""Fields of ModelConfig that no recipe sets."""
Schedule = Literal["paper", "inverse_sqrt", "cosine", "constant"]
BestBy = Literal["valid_bleu", "valid_loss"]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, protected_namespaces=())


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _rising(bounds: tuple[int, int]) -> tuple[int, int]:
    if not 0 <= bounds[0] <= bounds[1]:
        raise ValueError("must be the fewest and the most, such as [1, 200]")
    return bounds


Corpus = TypeVar("Corpus")
OptionalFiles = Annotated[list[Path], BeforeValidator(_listed)]
Files = Annotated[OptionalFiles, Field(min_length=1)]
OneOrMore = Annotated[list[Corpus], BeforeValidator(_listed), Field(min_length=1)]


class ParallelFiles(Section):
    source: Files
    """One text file, or a list; .gz, .xz and .zst work too. A .tsv or .jsonl file holds both sides. A pattern such as
    `part-*.de.gz` stands for all matching files, in sorted order."""
    target: OptionalFiles = []
    """The translations, line for line, in as many files or patterns. Leave it out for .tsv and .jsonl."""
    tag: str = Field("", pattern=r"^[^\s<>]*$")
    """The target language of this corpus, such as `ko`, for a model with several target languages. Its source texts
    then begin with `>>ko<<`, and so must every text to be translated into that language."""

    @model_validator(mode="after")
    def _in_pairs(self) -> ParallelFiles:
        if not self.target:
            if one_sided := [file for file in self.source if not is_two_sided(file)]:
                raise ValueError(f"target is missing, and {one_sided[0]} isn't a .tsv or .jsonl file with both sides")
        elif two_sided := [file for file in (*self.source, *self.target) if is_two_sided(file)]:
            raise ValueError(f"{two_sided[0]} holds both sides; leave target out")
        elif len(self.source) != len(self.target):
            raise ValueError(f"{len(self.source)} source files but {len(self.target)} target files")
        return self

    def files(self) -> CorpusFiles:
        """Those on disk. Raises UserError for a pattern that matches nothing."""
        return as_corpus(self.source, self.target)


class TrainingFiles(ParallelFiles):
    weight: float = Field(1.0, gt=0, le=1000)
    """How often each pair of this corpus occurs in an epoch. 2 means twice; 0.5 means a random half, which each epoch
    draws anew."""


class SyntheticFiles(TrainingFiles):
    """A corpus with one side that a model writes before training."""

    target: OptionalFiles = Field(..., min_length=1)
    key: ClassVar[str]
    """Where a recipe names the model."""
    is_reversed: ClassVar[bool]
    """Whether the model translates from the recipe's target language."""

    @property
    def writer(self) -> Path:
        """The model or run directory that translates."""
        raise NotImplementedError

    @property
    def by_sampling(self) -> bool:
        """Whether translations are samples, not what the model's own search finds."""
        return False

    @property
    def given(self) -> list[Path]:
        """The text to translate, one sentence per line."""
        return self.target if self.is_reversed else self.source

    @property
    def written(self) -> list[Path]:
        """The file to write the translations of each to."""
        return self.source if self.is_reversed else self.target

    @model_validator(mode="after")
    def _named_singly(self) -> SyntheticFiles:
        if patterns := [file for file in (*self.source, *self.target) if is_pattern(file)]:
            raise ValueError(f"{patterns[0]} is a pattern; name each file, and the file of its translations")
        return self


class MonolingualFiles(SyntheticFiles):
    key = "data.monolingual.reverse"
    is_reversed = True
    source: Files
    """The file to write the translations of `target` to. It is made once, for all recipes that name it."""
    target: OptionalFiles = Field(..., min_length=1)
    """Text in the target language, one sentence per line: one file or a list, each with a source file to make."""
    reverse: Path
    """Model or run directory that translates `target` into the source language."""
    sample: bool = False
    """Sample the translations instead of using the reverse model's own search."""

    @property
    def writer(self) -> Path:
        return self.reverse

    @property
    def by_sampling(self) -> bool:
        return self.sample


class DistilledFiles(SyntheticFiles):
    key = "data.distilled.teacher"
    is_reversed = False
    source: Files
    """Text in the source language, one sentence per line: one file or a list, each with a target file to make. It may
    be that of `data.train`."""
    target: OptionalFiles = Field(..., min_length=1)
    """The file to write the translations of `source` to. It is made once, for all recipes that name it."""
    teacher: Path
    """Model or run directory that translates `source` into the target language."""

    @property
    def writer(self) -> Path:
        return self.teacher


Range = Annotated[tuple[int, int], AfterValidator(_rising)]


class FiltersSection(Section):
    words: Range | None = None
    """Minimum and maximum number of words on each side, such as `[1, 200]`. Other pairs are dropped."""
    characters: Range | None = None
    """Minimum and maximum number of characters on each side, for languages without spaces between words."""
    max_ratio: float | None = Field(None, gt=1)
    """Drop pairs with one side more than this many times as long as the other, in characters. Sides of up to 20
    characters always pass."""
    copies: bool = False
    """Drop pairs with the same text on both sides."""
    script: bool = False
    """Drop pairs with a side written mostly in another script than that of its language."""
    language: float | None = Field(None, gt=0, lt=1)
    """Drop pairs with a side that lingua assigns to its language with less than this confidence, among the languages
    of the same script (extra `detect`). 0.1 drops text that is clearly in another language."""
    overlap: Overlap | None = None
    """Drop pairs that also occur in `data.valid` or `data.held_out`: the same `pair`, or the same text on a `side`."""
    duplicates: Annotated[list[DuplicateOf], BeforeValidator(_listed)] = []
    """Drop repetitions of a `pair`, a `source`, a `target`, or a list of them, among the pairs that pass the other
    filters. Takes 8 bytes of memory per pair and entry, for a hash of 64 bits."""

    def chosen(self) -> Filters:
        """As `text.filters` takes them."""
        return Filters(**{**self.model_dump(), "duplicates": tuple(dict.fromkeys(self.duplicates))})


class NoiseSection(Section):
    share: float = Field(gt=0, le=1)
    """The share of the source sentences that get noise, such as 0.3."""
    kinds: Annotated[list[NoiseKind], BeforeValidator(_listed), Field(min_length=1)] = list(KINDS)
    """One or two of these kinds are applied to such a sentence: `lower` or `upper` case, `typos` in one word of ten, no
    final `punctuation`, no `diacritics`."""
    versions: int = Field(8, ge=2, le=1000)
    """Number of times that the training text is prepared, each time with different noise; each epoch uses the next
    version. If `tokenizer.segmentations` is larger, that number counts. Prepared data grow in proportion."""

    def chosen(self) -> Noise:
        """As `text.encoding` takes it."""
        return Noise(self.share, tuple(dict.fromkeys(self.kinds)))


class DataSection(Section):
    train: Annotated[list[TrainingFiles], BeforeValidator(_listed)] = []
    """One corpus, or a list of them. It may be left out if there is `data.distilled`."""
    monolingual: Annotated[list[MonolingualFiles], BeforeValidator(_listed)] = []
    """Text in the target language only, one corpus or a list, for back-translation. Preparation translates it with a
    model of the other direction, and training uses these pairs together with those of `data.train`."""
    distilled: Annotated[list[DistilledFiles], BeforeValidator(_listed)] = []
    """Source text, one corpus or a list, for sequence-level distillation. Preparation translates it with a teacher, and
    training uses these pairs together with those of `data.train`."""
    valid: OneOrMore[ParallelFiles]
    """Validation text, one corpus or a list. The run is never trained on it; it chooses the best model and decides when
    to stop."""
    held_out: Annotated[list[ParallelFiles], BeforeValidator(_listed)] = []
    """Text for later tests, one corpus or a list. Only `data.filters.overlap` uses it."""
    filters: FiltersSection = FiltersSection()  # type: ignore[call-arg]
    """Filters for training pairs; all are off by default."""
    noise: NoiseSection | None = None
    """Noise in the training sources, so that the model learns to translate noisy text; by default none."""
    temperature: float = Field(1.0, ge=1, le=100)
    """Balances corpora of different sizes. A corpus's share of an epoch is proportional to (pairs times weight) to the
    power of 1 / temperature: 1 keeps the proportions, 100 makes the shares nearly equal. The length of an epoch doesn't
    change."""
    prepared: Path | None = None
    """Folder that `headway prepare` made from this recipe; by default the run prepares its own data."""
    source_language: str = ""
    """Language code such as `de`; by default that of `training.init_from`, or else the suffix of the training file."""
    target_language: str = ""
    """Language code; by default that of `training.init_from`, or else the suffix of the training file, or `mul` if the
    corpora have tags."""
    domain: str = Field("", max_length=LONGEST_DOMAIN)
    """What the text is about, such as `captions of photographs`. The model card and the page of a server say it."""

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
        return self

    @field_serializer("train", "monolingual", "distilled", "valid", "held_out")
    def _serialized(self, corpora: list[ParallelFiles], info: FieldSerializationInfo) -> Any:
        plain = [files.model_dump(mode=info.mode, exclude_defaults=True) for files in corpora]
        return plain[0] if len(plain) == 1 else plain

    @property
    def corpora(self) -> list[TrainingFiles]:
        """All that is trained on."""
        return [*self.train, *self.synthetic]

    @property
    def synthetic(self) -> list[SyntheticFiles]:
        """The corpora with a side that a model writes."""
        return [*self.monolingual, *self.distilled]

    @property
    def languages(self) -> list[tuple[str, str]]:
        """Of each training corpus, source and target."""
        return [(self.source_language, files.tag or self.target_language) for files in self.corpora]

    @property
    def tags(self) -> list[str]:
        """The target languages that texts ask for by tags; none where there is one alone."""
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
    sample_pairs: int = Field(1_000_000, ge=1)
    """Maximum number of training pairs that the tokenizer is learned from. From a larger text a random sample is drawn,
    with the same number of pairs from each corpus that has enough. The sample is always the same."""
    lowercase: bool = False
    """Convert all text to lower case (kind `word`)."""
    segmentations: int = Field(1, ge=1, le=1000)
    """Number of times that the training text is prepared. If more than 1, each time with a random segmentation into
    tokens; each epoch uses the next version (`bpe`, `unigram`). Prepared data grow in proportion."""
    segmentation_alpha: float = Field(0.1, gt=0, lt=1)
    """For `segmentations`. `bpe`: the probability of skipping a merge (BPE-dropout). `unigram`: the exponent of a
    segmentation's probability; a smaller value gives more random segmentations."""

    @model_validator(mode="after")
    def _possible(self) -> TokenizerSection:
        if self.kind != "word":
            for name in ("min_frequency", "lowercase"):
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(f"{name} is for kind: word, but kind is {self.kind}")
        elif self.segmentations > 1:
            raise ValueError("segmentations is for kind: bpe or unigram; words are never cut")
        alpha = type(self).model_fields["segmentation_alpha"].default
        if self.segmentations == 1 and self.segmentation_alpha != alpha:
            raise ValueError("segmentation_alpha is for segmentations, of which there is 1")
        return self


def model_keys() -> dict[str, Any]:
    """Every field of ModelConfig that isn't decided by the tokenizer; None means "as the preset"."""
    hints = get_type_hints(ModelConfig)
    names = [field.name for field in dataclasses.fields(ModelConfig) if field.name not in DECIDED_BY_TOKENIZER]
    return {name: (hints[name] | None, None) for name in names}


ModelSection: type[BaseModel] = create_model(
    "ModelSection",
    __base__=Section,
    preset=(Literal[tuple(PRESETS)], "small"),  # type: ignore[valid-type]
    **model_keys(),
)


class TrainingSection(Section):
    max_steps: int | None = Field(None, ge=1)
    """Stop after this many optimizer steps. Of the three limits, the one reached first counts."""
    max_epochs: int | None = Field(None, ge=1)
    """Stop after this many passes over the training pairs."""
    max_minutes: float | None = Field(None, gt=0)
    """Stop after this many minutes, cumulative over resumes."""
    tokens_per_batch: int = Field(4096, ge=1)
    """Source and target tokens per optimizer step, padding included. Sentences share rows of a fixed length, so about
    5% is padding."""
    tokens_per_micro_batch: int | None = Field(None, ge=1)
    """Maximum number of these tokens that go through the model at once, to limit memory. By default all of them."""
    learning_rate: float | None = Field(None, gt=0)
    """Highest learning rate of the run; 1e-3 by default. `schedule: paper` computes its own."""
    schedule: Schedule = "inverse_sqrt"
    """Learning rate after the linear warm-up: `inverse_sqrt`, `cosine` (reaches zero at the last step), `constant`, or
    `paper` (equation 3: inverse_sqrt with a highest rate of (d_model * warmup_steps) ** -0.5)."""
    warmup_steps: int = Field(1000, ge=0)
    """Number of steps in which the learning rate rises from 0 to its highest value."""
    adam_beta2: float = Field(0.98, gt=0, lt=1)
    """Decay of Adam's average of squared gradients; the paper uses 0.98, and 0.999 is steadier at a constant rate."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Share of the target probability that is spread over the whole vocabulary (section 5.4)."""
    consistency: float = Field(0.0, ge=0)
    """Weight of SimCut's consistency loss, such as 3; 0 turns it off. It is the divergence between the predictions with
    and without some of the tokens. Doubles the work and the memory of a step. The logged loss includes it."""
    cutoff_probability: float = Field(0.05, ge=0, lt=1)
    """Share of the tokens, on both sides, that are left out for `consistency`."""
    max_gradient_norm: float = Field(1.0, ge=0)
    """Gradients are scaled down to this norm if theirs is larger; 0 turns it off."""
    seed: int = Field(1, ge=0, lt=2**63)
    """Seed of the initial weights, of dropout and of the order of batches."""
    validate_every: int | None = Field(None, ge=1)
    """Steps between validations; by default an epoch, but at least 100 and at most 2,000 steps."""
    save_every: int | None = Field(None, ge=1)
    """Steps between checkpoints for --resume; by default one at each validation."""
    best_by: BestBy = "valid_bleu"
    """Score that decides which model is the best."""
    patience: int | None = Field(None, ge=1)
    """Stop after this many validations without improvement; by default never."""
    ema_decay: float = Field(0.0, ge=0, lt=1)
    """Decay of an exponential moving average of the weights, such as 0.999. The average is then validated and saved
    instead of the weights. 0 turns it off."""
    init_from: Path | None = None
    """Model or run directory to start from, with its weights and tokenizers. This model also gives the languages and
    the values of `model`, `tokenizer` and `decoding` that the recipe doesn't set."""
    tensorboard: bool = False
    """Also write the log for TensorBoard, to the folder `tensorboard` of the run (needs the extra `track`)."""
    precision: Precision = "auto"
    """Precision of matrix products; `auto` is bf16 if the processor supports it."""
    device: DeviceName = "auto"
    """`cuda`, `mps` or `cpu`; `auto` is the first of these that is available."""

    @model_validator(mode="after")
    def _possible(self) -> TrainingSection:
        if self.max_steps is None and self.max_epochs is None and self.max_minutes is None and self.patience is None:
            raise ValueError("nothing ends the run: set max_steps, max_epochs, max_minutes or patience")
        if self.schedule == "paper" and self.learning_rate is not None:
            raise ValueError("schedule: paper has its own learning rate; leave learning_rate out or use inverse_sqrt")
        if self.schedule == "paper" and self.warmup_steps < 1:
            raise ValueError("schedule: paper needs warmup_steps of at least 1")
        if self.schedule == "cosine" and self.max_steps is None and self.max_epochs is None:
            raise ValueError("schedule: cosine must know its last step: set max_steps or max_epochs")
        cutoff = type(self).model_fields["cutoff_probability"].default
        if not self.consistency and self.cutoff_probability != cutoff:
            raise ValueError("cutoff_probability is for consistency, which is 0")
        if (self.tokens_per_micro_batch or 0) > self.tokens_per_batch:
            raise ValueError(
                f"tokens_per_micro_batch={self.tokens_per_micro_batch} is more than "
                f"tokens_per_batch={self.tokens_per_batch}"
            )
        return self

    @property
    def micro_batch_budget(self) -> int:
        """Tokens of a micro-batch, padding included; only a pair that alone is longer takes more."""
        return self.tokens_per_micro_batch or self.tokens_per_batch

    @property
    def passes(self) -> int:
        """How often each token of a step goes through the model."""
        return 2 if self.consistency else 1


class DecodingSection(Section):
    """The model's default search options, kept in its decoding.json; by default those of `training.init_from`.
    Validation in training is greedy."""

    beam_size: int = Field(SearchOptions.beam_size, ge=1, le=SearchOptions.WIDEST_BEAM)
    """Number of hypotheses that beam search keeps; 1 is greedy search."""
    length_penalty: float = Field(SearchOptions.length_penalty, ge=0, le=10)
    """Alpha of GNMT's length penalty; 0 ranks hypotheses by total log-probability."""
    max_length: int | None = Field(None, ge=1, le=SearchOptions.LONGEST)
    """Maximum number of tokens in a translation; by default twice the number of source tokens plus 50."""
    no_repeat_ngram: int = Field(SearchOptions.no_repeat_ngram, ge=0)
    """No sequence of this many tokens occurs twice in a translation; 0 turns it off."""


class Recipe(Section):
    """A whole recipe."""

    data: DataSection
    tokenizer: TokenizerSection = TokenizerSection()  # type: ignore[call-arg]
    model: ModelSection = ModelSection()  # type: ignore[valid-type]
    training: TrainingSection
    decoding: DecodingSection = DecodingSection()  # type: ignore[call-arg]

    @property
    def versions(self) -> int:
        """How often the training text is prepared. An epoch takes one version of each pair."""
        return max(self.tokenizer.segmentations, self.data.noise.versions if self.data.noise else 1)

    def model_options(self) -> dict[str, Any]:
        """Preset name and changes, for `ModelConfig.preset`."""
        options = self.model.model_dump(exclude_none=True)  # type: ignore[attr-defined]
        if not self.tokenizer.joint and "share_embeddings" not in PRESETS[options["preset"]]:
            options.setdefault("share_embeddings", "decoder")
        return {"name": options.pop("preset"), **options}

    def to_yaml(self) -> str:
        """The resolved recipe, every value written out."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
