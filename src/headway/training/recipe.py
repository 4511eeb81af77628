"""The recipe: everything that decides a training run, in five sections of one YAML file.

Precedence is defaults < file < command line. Unknown keys are errors that suggest the nearest known one. Paths in a
file are relative to its folder, paths on the command line to the current one.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FieldSerializationInfo,
    ValidationError,
    create_model,
    field_serializer,
    model_validator,
)

from headway.devices import DeviceName, Precision
from headway.errors import UserError
from headway.model.config import PRESETS, ModelConfig
from headway.text.corpus import is_two_sided
from headway.text.tokenizer import TokenizerKind
from headway.training.initial import DECIDED_BY_TOKENIZER, initial_sections

DEFAULT_LEARNING_RATE = 1e-3
Schedule = Literal["paper", "inverse_sqrt", "cosine", "constant"]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, protected_namespaces=())


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


Corpus = TypeVar("Corpus")
OptionalFiles = Annotated[list[Path], BeforeValidator(_listed)]
Files = Annotated[OptionalFiles, Field(min_length=1)]
OneOrMore = Annotated[list[Corpus], BeforeValidator(_listed), Field(min_length=1)]


class ParallelFiles(Section):
    source: Files
    """One text file, or several; .gz too. A .tsv or .jsonl file holds both sides."""
    target: OptionalFiles = []
    """The translations: as many files, line for line; left out for .tsv and .jsonl."""
    tag: str = Field("", pattern=r"^[^\s<>]*$")
    """The target language of a corpus among several, such as `ko`: its source texts begin with `>>ko<<`, and so must
    texts to be translated into it."""

    @model_validator(mode="after")
    def _in_pairs(self) -> ParallelFiles:
        if not self.target:
            if one_sided := [file for file in self.source if not is_two_sided(file)]:
                raise ValueError(f"target is missing, and {one_sided[0]} isn't a .tsv or .jsonl file with both sides")
        elif len(self.source) != len(self.target):
            raise ValueError(f"{len(self.source)} source files but {len(self.target)} target files")
        return self


class TrainingFiles(ParallelFiles):
    weight: float = Field(1.0, gt=0, le=1000)
    """How often an epoch has each pair of this corpus: 2 is twice, 0.5 a random half, drawn anew each epoch."""


class DataSection(Section):
    train: OneOrMore[TrainingFiles]
    """One corpus, or a list of them."""
    valid: OneOrMore[ParallelFiles]
    """Never trained on: chooses the best model and stops the run. One corpus, or a list of them."""
    source_language: str = ""
    """A language code such as `de`; by default the suffix of the training file."""
    target_language: str = ""
    """By default the suffix of the training file, or `mul` where corpora have tags."""

    @model_validator(mode="after")
    def _tags(self) -> DataSection:
        tags = {files.tag for files in self.train}
        if "" in tags and len(tags) > 1:
            raise ValueError("some training corpora have a tag and others don't; give each its tag")
        for files in self.valid:
            if files.tag not in tags:
                known = ", ".join(map(repr, sorted(tags)))
                raise ValueError(f"a validation corpus has tag {files.tag!r}, the training corpora have {known}")
        return self

    @field_serializer("train", "valid")
    def _serialized(self, corpora: list[ParallelFiles], info: FieldSerializationInfo) -> Any:
        plain = [files.model_dump(mode=info.mode, exclude_defaults=True) for files in corpora]
        return plain if len(plain) > 1 else plain[0]

    @property
    def tags(self) -> list[str]:
        """The target languages that texts ask for by tags; none where there is one alone."""
        return sorted({files.tag for files in self.train if files.tag})


class TokenizerSection(Section):
    kind: TokenizerKind = "bpe"
    """Subwords by `bpe` or `unigram`, or whole words (`word`)."""
    vocab_size: int = Field(8000, ge=1)
    """At most so many pieces, on each side or together."""
    joint: bool = True
    """One vocabulary for both languages."""
    min_frequency: int = Field(1, ge=1)
    """Words that occur less often are unknown (kind `word`)."""
    lowercase: bool = False
    """Lower-case all text (kind `word`)."""

    @model_validator(mode="after")
    def _possible(self) -> TokenizerSection:
        if self.kind != "word":
            for name in ("min_frequency", "lowercase"):
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(f"{name} is for kind: word, but kind is {self.kind}")
        return self


def _model_fields() -> dict[str, Any]:
    """Every field of ModelConfig that isn't decided by the tokenizer; None means "as the preset"."""
    hints = get_type_hints(ModelConfig)
    names = [field.name for field in dataclasses.fields(ModelConfig) if field.name not in DECIDED_BY_TOKENIZER]
    return {name: (hints[name] | None, None) for name in names}


ModelSection: type[BaseModel] = create_model(
    "ModelSection",
    __base__=Section,
    preset=(Literal[tuple(PRESETS)], "small"),  # type: ignore[valid-type]
    **_model_fields(),
)


class TrainingSection(Section):
    max_steps: int | None = Field(None, ge=1)
    """Stop after so many optimizer steps; of the three limits, whichever comes first."""
    max_epochs: int | None = Field(None, ge=1)
    """Stop after so many times through the training pairs."""
    max_minutes: float | None = Field(None, gt=0)
    """Stop after so many minutes, cumulative over resumes."""
    tokens_per_batch: int = Field(4096, ge=1)
    """Padded source and target tokens of one optimizer step."""
    tokens_per_micro_batch: int | None = Field(None, ge=1)
    """Padded tokens that go through the model at once; bounds memory. By default a quarter of tokens_per_batch, because
    a step over sentences of one length alone learns that length."""
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
    max_gradient_norm: float = Field(1.0, ge=0)
    """Gradients are scaled down to this norm; 0: never."""
    seed: int = Field(1, ge=0)
    """Of weights, dropout and the order of batches."""
    validate_every: int | None = Field(None, ge=1)
    """In steps; by default once an epoch, but at least every 2,000 steps and not before 100."""
    save_every: int | None = Field(None, ge=1)
    """Checkpoint for --resume, in steps; by default at each validation."""
    best_by: Literal["valid_bleu", "valid_loss"] = "valid_bleu"
    """What makes a model the best."""
    patience: int | None = Field(None, ge=1)
    """Stop after so many validations without a better one; by default never."""
    ema_decay: float = Field(0.0, ge=0, lt=1)
    """Validate and keep the exponential moving average of the weights, such as 0.999; 0: the weights themselves."""
    init_from: Path | None = None
    """Model or run directory whose weights and tokenizers the run starts from."""
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
        if (self.tokens_per_micro_batch or 0) > self.tokens_per_batch:
            raise ValueError(
                f"tokens_per_micro_batch={self.tokens_per_micro_batch} is more than "
                f"tokens_per_batch={self.tokens_per_batch}"
            )
        return self

    @property
    def micro_batch_budget(self) -> int:
        """Padded tokens of a micro-batch; only a pair that alone is longer takes more."""
        return self.tokens_per_micro_batch or max(1, self.tokens_per_batch // 4)


class DecodingSection(Section):
    """The model's default search options, kept in its decoding.json. Validation in training is greedy."""

    beam_size: int = Field(5, ge=1)
    """Hypotheses that are followed side by side; 1 is greedy search."""
    length_penalty: float = Field(1.0, ge=0, le=10)
    """Alpha of GNMT's length penalty; 0 ranks by total log-probability."""
    max_length: int | None = Field(None, ge=1)
    """Most pieces of a translation; by default twice the source's and 50 more."""


class Recipe(Section):
    """A whole recipe."""

    data: DataSection
    tokenizer: TokenizerSection = TokenizerSection()  # type: ignore[call-arg]
    model: ModelSection = ModelSection()  # type: ignore[valid-type]
    training: TrainingSection
    decoding: DecodingSection = DecodingSection()  # type: ignore[call-arg]

    def model_options(self) -> dict[str, Any]:
        """Preset name and changes, for `ModelConfig.preset`."""
        options = self.model.model_dump(exclude_none=True)  # type: ignore[attr-defined]
        if not self.tokenizer.joint and "share_embeddings" not in PRESETS[options["preset"]]:
            options.setdefault("share_embeddings", "decoder")
        return {"name": options.pop("preset"), **options}

    def to_yaml(self) -> str:
        """The resolved recipe, every value written out."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which no key may stand twice; the second would replace the first silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_recipe(path: Path, overrides: Iterable[str] = ()) -> Recipe:
    """Reads a recipe; `overrides` are `key.path=value`. Raises UserError."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _UniqueKeys)
    except OSError as error:
        raise UserError(f"{path}: can't be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict):
        raise UserError(f"{path}: must hold the sections data, tokenizer, model, training, decoding")
    return make_recipe(_anchored(document, path.parent), overrides, origin=str(path))


def make_recipe(document: dict[str, Any], overrides: Iterable[str] = (), origin: str = "recipe") -> Recipe:
    """A recipe from nested dictionaries and `key.path=value` overrides; relative paths are to the current folder.
    Raises UserError."""
    changes: dict[str, Any] = {}
    for override in overrides:
        _set(changes, override)
    document = _with_initial_sections(_anchored(_merged(document, changes), Path.cwd()))
    try:
        recipe = Recipe.model_validate(document)
    except ValidationError as error:
        raise UserError(f"{origin}: {_first_problem(error)}") from None
    _check_model(recipe, origin)
    return _resolved(recipe)


def _with_initial_sections(document: dict[str, Any]) -> dict[str, Any]:
    """Where a run starts from a model, what the sections `model` and `tokenizer` leave open is that model's; a preset
    leaves nothing open. Its vocabulary is taken whole."""
    training, model, tokenizer = (document.get(section) or {} for section in ("training", "model", "tokenizer"))
    if not all(isinstance(section, dict) for section in (training, model, tokenizer)):
        return document
    path, resolved = training.get("init_from"), _model_fields().keys() <= model.keys()
    if not isinstance(path, str) or resolved:  # of a run that goes on, all is written out
        return document
    initial = initial_sections(Path(path))
    if "preset" not in model:
        document = {**document, "model": {**initial["model"], **model}}
    vocab_size = {"vocab_size": initial["tokenizer"]["vocab_size"]}
    return {**document, "tokenizer": {**initial["tokenizer"], **tokenizer, **vocab_size}}


def _resolved(recipe: Recipe) -> Recipe:
    """With what follows from other keys written out: languages, the preset's sizes, the learning rate."""
    languages = {
        f"{side}_language": getattr(recipe.data, f"{side}_language") or _language_of(recipe.data, side)
        for side in ("source", "target")
    }
    config = ModelConfig.preset(**recipe.model_options(), source_vocab_size=4, target_vocab_size=4).to_dict()
    sizes = {name: config[name] for name in _model_fields()}
    rate = recipe.training.learning_rate
    if rate is None and recipe.training.schedule != "paper":
        rate = DEFAULT_LEARNING_RATE
    return recipe.model_copy(
        update={
            "data": recipe.data.model_copy(update=languages),
            "model": recipe.model.model_copy(update=sizes),
            "training": recipe.training.model_copy(update={"learning_rate": rate}),
        }
    )


def _language_of(data: DataSection, side: str) -> str:
    """The language of a side, by the suffix of its first file."""
    files: list[Path] = getattr(data.train[0], side)
    if side == "target" and data.tags:
        return "mul"
    if not files or is_two_sided(files[0]):
        return side
    file = files[0].with_suffix("") if files[0].suffix == ".gz" else files[0]
    return file.suffix.lstrip(".") or side


def _check_model(recipe: Recipe, origin: str) -> None:
    """Impossible sizes are told before any work starts."""
    size = max(recipe.tokenizer.vocab_size, 4)
    try:
        config = ModelConfig.preset(**recipe.model_options(), source_vocab_size=size, target_vocab_size=size)
    except ValueError as error:
        raise UserError(f"{origin}: model: {error}") from None
    if config.share_embeddings == "all" and not recipe.tokenizer.joint:
        raise UserError(f"{origin}: model.share_embeddings: all needs one vocabulary; set tokenizer.joint: true")
    if recipe.data.tags and recipe.tokenizer.kind == "word":
        raise UserError(f"{origin}: data.train: tags need tokenizer.kind: bpe or unigram")
    if recipe.decoding.max_length is not None and recipe.decoding.max_length >= config.max_length:
        raise UserError(
            f"{origin}: decoding.max_length={recipe.decoding.max_length} must be less than "
            f"model.max_length={config.max_length}"
        )


def _set(document: dict[str, Any], override: str) -> None:
    path, equals, value = override.partition("=")
    keys = path.split(".")
    if not equals or not all(keys):
        raise UserError(f"{override!r}: must be key.path=value, such as training.max_steps=1000")
    try:
        parsed = yaml.safe_load(value)
    except yaml.YAMLError:
        raise UserError(f"{override!r}: the value is not YAML") from None
    for key in keys[:-1]:
        document = document.setdefault(key, {})
        if not isinstance(document, dict):
            raise UserError(f"{override!r}: {key} is given a value and a key below it")
    document[keys[-1]] = parsed


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        below = merged.get(key)
        merged[key] = _merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _anchored(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The document with the paths of its data section made absolute, relative to `folder`."""

    def anchor(value: Any) -> Any:
        if isinstance(value, list):
            return [anchor(below) for below in value]
        if not isinstance(value, str):
            return value
        path = Path(value)
        with suppress(RuntimeError):  # a name that begins with `~`
            path = path.expanduser()
        return str((folder / path).absolute())

    def anchored_corpora(value: Any) -> Any:
        if isinstance(value, list):
            return [anchored_corpora(corpus) for corpus in value]
        if not isinstance(value, dict):
            return value
        return {key: anchor(below) if key in ("source", "target") else below for key, below in value.items()}

    document = dict(document)
    data, training = document.get("data"), document.get("training")
    if isinstance(data, dict):
        document["data"] = {
            key: anchored_corpora(value) if key in ("train", "valid") else value for key, value in data.items()
        }
    if isinstance(training, dict) and "init_from" in training:
        document["training"] = {**training, "init_from": anchor(training["init_from"])}
    return document


def _first_problem(error: ValidationError) -> str:
    problems = error.errors()
    problem = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
    place = [str(part) for part in problem["loc"] if part != 0]  # the first corpus is mostly the only one
    name = ".".join(place)
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(place[-1], _known_keys(place[:-1]), n=1, cutoff=0.5)
        return f"unknown key {name}" + (f"; did you mean {'.'.join([*place[:-1], near[0]])}?" if near else "")
    if problem["type"] == "missing":
        return f"{name} is missing"
    message = problem["msg"].removeprefix("Value error, ")
    given = problem["input"]
    return f"{name}: {message}" + ("" if isinstance(given, (dict, list, BaseModel)) else f" (given: {given!r})")


def _known_keys(place: list[str]) -> list[str]:
    section: Any = Recipe
    for part in place:
        if not part.isdigit():  # the number of a corpus among several
            annotation = section.model_fields[part].annotation
            section = next(iter(get_args(annotation)), annotation)  # that of a list's items
    return list(section.model_fields)


CHANGEABLE = {
    f"training.{name}"
    for name in ("max_steps", "max_epochs", "max_minutes", "patience", "save_every", "validate_every")
}
"""What a resumed run may do otherwise than before."""


def refuse_changes(before: Recipe, after: Recipe) -> None:
    """Raises UserError with the list of differences that would make a resumed run another one."""
    old, new = _flat(before.model_dump(mode="json")), _flat(after.model_dump(mode="json"))
    changed = [
        f"{key} ({old.get(key)} -> {new.get(key)})"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key) and key not in CHANGEABLE
    ]
    if changed:
        raise UserError(f"a resumed run can't change {', '.join(changed)}; start a new run with another --out")
    limits = ("training.max_steps", "training.max_epochs")
    if after.training.schedule == "cosine" and any(old.get(key) != new.get(key) for key in limits):
        raise UserError(
            "schedule: cosine falls to zero at the last step, so a resumed run can't change max_steps or max_epochs: "
            "the learning rate would jump; start a new run with --init-from"
        )


def _flat(document: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in document.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
