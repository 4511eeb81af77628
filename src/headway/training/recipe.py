"""The recipe: everything that decides a training run, in five sections. `training.reading` makes one of YAML."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

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
    """One text file, or several; .gz, .xz and .zst too. A .tsv or .jsonl file holds both sides. A pattern such as
    `part-*.de.gz` is all files of such a name, in sorted order."""
    target: OptionalFiles = []
    """The translations: as many files or patterns, line for line; left out for .tsv and .jsonl."""
    tag: str = Field("", pattern=r"^[^\s<>]*$")
    """The target language of a corpus among several, such as `ko`: its source texts begin with `>>ko<<`, and so must
    texts to be translated into it."""

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
    """How often an epoch has each pair of this corpus: 2 is twice, 0.5 a random half, drawn anew each epoch."""


class MonolingualFiles(TrainingFiles):
    source: Files
    """The file to make: the translations of `target`. It is made once, for all recipes that name it."""
    target: OptionalFiles = Field(..., min_length=1)
    """Text of the target language, one sentence a line: one file, or several, each with a source file to make."""
    reverse: Path
    """Model or run directory that translates `target` into the source language."""
    sample: bool = False
    """Draw the translations at random, in place of the reverse model's own search."""

    @model_validator(mode="after")
    def _named_singly(self) -> MonolingualFiles:
        if patterns := [file for file in (*self.source, *self.target) if is_pattern(file)]:
            raise ValueError(f"{patterns[0]} is a pattern; name each file, and the file of its translations")
        return self


Range = Annotated[tuple[int, int], AfterValidator(_rising)]


class FiltersSection(Section):
    words: Range | None = None
    """Fewest and most words of a side, such as `[1, 200]`: a pair with fewer or more is dropped."""
    characters: Range | None = None
    """Fewest and most characters of a side, for languages without spaces between words."""
    max_ratio: float | None = Field(None, gt=1)
    """How many times as long as the other a side may be, in characters; sides of up to 20 are never dropped for it."""
    copies: bool = False
    """Drop pairs whose sides are the same text."""
    script: bool = False
    """Drop pairs with a side whose letters are mostly of another script than its language's."""
    language: float | None = Field(None, gt=0, lt=1)
    """Drop pairs with a side that is in its language with less than this confidence, by lingua among the languages of
    its script (extra `detect`); 0.1 drops what is clearly in another language."""
    overlap: Overlap | None = None
    """Drop pairs that are in `data.valid` or `data.held_out`, too: the same `pair`, or the same text on a `side`."""
    duplicates: Annotated[list[DuplicateOf], BeforeValidator(_listed)] = []
    """Drop what stood in the text before and passed the other filters: `pair`, `source`, `target` or a list of them.
    Takes 8 bytes of memory for each pair and entry, by hashes of 64 bits."""

    def chosen(self) -> Filters:
        """As `text.filters` takes them."""
        return Filters(**{**self.model_dump(), "duplicates": tuple(dict.fromkeys(self.duplicates))})


class NoiseSection(Section):
    share: float = Field(gt=0, le=1)
    """The share of the source sentences that get noise, such as 0.3."""
    kinds: Annotated[list[NoiseKind], BeforeValidator(_listed), Field(min_length=1)] = list(KINDS)
    """One of these, or two, are applied to such a sentence: `lower` and `upper` case, `typos` in one word of ten, no
    final `punctuation`, no `diacritics`."""
    versions: int = Field(8, ge=2, le=1000)
    """The training text is prepared so many times, each time with other noise, and each epoch takes the next; as often
    as `tokenizer.segmentations` if that is more. Prepared data grow with it."""

    def chosen(self) -> Noise:
        """As `text.encoding` takes it."""
        return Noise(self.share, tuple(dict.fromkeys(self.kinds)))


class DataSection(Section):
    train: OneOrMore[TrainingFiles]
    """One corpus, or a list of them."""
    monolingual: Annotated[list[MonolingualFiles], BeforeValidator(_listed)] = []
    """Text of the target language alone, one corpus or a list of them. Preparing translates it by a model of the other
    direction, and its pairs are trained on beside those of `data.train` (back-translation)."""
    valid: OneOrMore[ParallelFiles]
    """Never trained on: chooses the best model and stops the run. One corpus, or a list of them."""
    held_out: Annotated[list[ParallelFiles], BeforeValidator(_listed)] = []
    """Text that is tested on later, one corpus or a list of them: for `data.filters.overlap` alone."""
    filters: FiltersSection = FiltersSection()  # type: ignore[call-arg]
    """Which training pairs are left out; all filters are off unless they are set."""
    noise: NoiseSection | None = None
    """Noise in the sources that are trained on, so that the model learns to translate it; by default none."""
    temperature: float = Field(1.0, ge=1, le=100)
    """Share of a corpus in an epoch: in proportion to its pairs times its weight, to the power of 1 / temperature. 1
    leaves sizes as they are, 100 makes them nearly equal; the epoch stays as long."""
    prepared: Path | None = None
    """Folder made by `headway prepare` from this recipe, to train on; by default the run makes its own."""
    source_language: str = ""
    """A language code such as `de`; by default that of `training.init_from`, else the suffix of the training file."""
    target_language: str = ""
    """By default that of `training.init_from`, else the suffix of the training file, or `mul` where corpora have
    tags."""
    domain: str = Field("", max_length=LONGEST_DOMAIN)
    """What the text is about, such as `captions of photographs`. The model card and the page of a server say it."""

    @model_validator(mode="after")
    def _tags(self) -> DataSection:
        tags = {files.tag for files in self.corpora}
        if "" in tags and len(tags) > 1:
            raise ValueError("some training corpora have a tag and others don't; give each its tag")
        for files in self.valid:
            if files.tag not in tags:
                known = ", ".join(map(repr, sorted(tags)))
                raise ValueError(f"a validation corpus has tag {files.tag!r}, the training corpora have {known}")
        return self

    @field_serializer("train", "monolingual", "valid", "held_out")
    def _serialized(self, corpora: list[ParallelFiles], info: FieldSerializationInfo) -> Any:
        plain = [files.model_dump(mode=info.mode, exclude_defaults=True) for files in corpora]
        return plain[0] if len(plain) == 1 else plain

    @property
    def corpora(self) -> list[TrainingFiles]:
        """All that is trained on."""
        return [*self.train, *self.monolingual]

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
    """The largest number of tokens, on each side or together."""
    joint: bool = True
    """One vocabulary for both languages."""
    min_frequency: int = Field(1, ge=1)
    """Words that occur less often are unknown (kind `word`)."""
    sample_pairs: int = Field(1_000_000, ge=1)
    """Training pairs that it is learned from, at most: where there are more, as many of each corpus, as far as it has
    them, drawn at random. The draw is always the same."""
    lowercase: bool = False
    """Lower-case all text (kind `word`)."""
    segmentations: int = Field(1, ge=1, le=1000)
    """More than 1: the training text is prepared so many times, each time cut into pieces at random, and each epoch
    takes the next (`bpe`, `unigram`). Prepared data grow with it."""
    segmentation_alpha: float = Field(0.1, gt=0, lt=1)
    """For `segmentations`. `bpe`: the probability that a merge is left out (BPE-dropout). `unigram`: the exponent of a
    segmentation's probability; the smaller, the more random."""

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
    """Stop after this many optimizer steps; of the three limits, whichever comes first."""
    max_epochs: int | None = Field(None, ge=1)
    """Stop after this many times through the training pairs."""
    max_minutes: float | None = Field(None, gt=0)
    """Stop after this many minutes, cumulative over resumes."""
    tokens_per_batch: int = Field(4096, ge=1)
    """Source and target tokens of one optimizer step, padding included. Sentences share rows of a fixed length, so some
    5% are padding."""
    tokens_per_micro_batch: int | None = Field(None, ge=1)
    """Those of them that go through the model at once; bounds memory. By default all."""
    learning_rate: float | None = Field(None, gt=0)
    """The highest of the run; 1e-3 by default. `schedule: paper` has its own."""
    schedule: Schedule = "inverse_sqrt"
    """After a linear warm-up: `inverse_sqrt`, `cosine` to zero at the last step, `constant`; or `paper`, equation 3:
    inverse_sqrt whose highest rate is (d_model * warmup_steps) ** -0.5."""
    warmup_steps: int = Field(1000, ge=0)
    """Steps in which the rate rises from 0 to its highest."""
    adam_beta2: float = Field(0.98, gt=0, lt=1)
    """How long Adam remembers the size of gradients; 0.98 is the paper's, 0.999 is steadier at a constant rate."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Probability that the target is spread over the whole vocabulary (section 5.4)."""
    consistency: float = Field(0.0, ge=0)
    """Weight of the divergence between predictions with and without some tokens (SimCut), such as 3; 0: none. A step
    then does twice the work and takes twice the memory. The logged loss includes it."""
    cutoff_probability: float = Field(0.05, ge=0, lt=1)
    """Share of the tokens, on both sides, that are cut off for `consistency`."""
    max_gradient_norm: float = Field(1.0, ge=0)
    """Gradients are scaled down to this norm; 0: never."""
    seed: int = Field(1, ge=0, lt=2**63)
    """Of weights, dropout and the order of batches."""
    validate_every: int | None = Field(None, ge=1)
    """In steps; by default once an epoch, but at least every 2,000 steps and not before 100."""
    save_every: int | None = Field(None, ge=1)
    """Checkpoint for --resume, in steps; by default at each validation."""
    best_by: BestBy = "valid_bleu"
    """What makes a model the best."""
    patience: int | None = Field(None, ge=1)
    """Stop after this many validations without a better one; by default never."""
    ema_decay: float = Field(0.0, ge=0, lt=1)
    """Validate and keep the exponential moving average of the weights, such as 0.999; 0: the weights themselves."""
    init_from: Path | None = None
    """Model or run directory whose weights and tokenizers the run starts from. What the recipe leaves open of languages
    and of the sections `model`, `tokenizer` and `decoding` is this model's."""
    tensorboard: bool = False
    """Also write the log for TensorBoard, into the run's folder `tensorboard` (needs the extra `track`)."""
    precision: Precision = "auto"
    """Of matrix products; `auto`: bf16 where the processor has it."""
    device: DeviceName = "auto"
    """`cuda`, `mps` or `cpu`; `auto`: the first of them that is there."""

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
    """Hypotheses that are followed side by side; 1 is greedy search."""
    length_penalty: float = Field(SearchOptions.length_penalty, ge=0, le=10)
    """Alpha of GNMT's length penalty; 0 ranks by total log-probability."""
    max_length: int | None = Field(None, ge=1, le=SearchOptions.LONGEST)
    """Most pieces of a translation; by default twice the source's and 50 more."""
    no_repeat_ngram: int = Field(SearchOptions.no_repeat_ngram, ge=0)
    """No run of so many pieces occurs twice in a translation; 0: any may."""


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
