"""The recipe: all settings of a training run, in five sections, and the stages of a model that takes several trainings.
`recipe.reading` reads it from YAML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, FieldSerializationInfo, field_serializer, model_validator

from headway.data.options import DataSection, DistilledFiles, PreparationOptions, Section, TokenizerSection, listed
from headway.decoding.options import DefaultOptions
from headway.devices import DEVICE, Precision
from headway.model import config
from headway.recipe.optimizers import OptimizerName

DEFAULT_LEARNING_RATE = 1e-3
RETIRED: dict[str, Any] = {
    "tokenizer.segmentations": 1,
    "tokenizer.segmentation_alpha": 0.1,
    "tokenizer.sample_pairs": 1_000_000,
    "data.noise.versions": 8,
    "training.tensorboard": False,
}
"""Keys of earlier versions with their defaults. Only these values are still taken."""
Schedule = Literal["paper", "inverse_sqrt", "cosine", "constant", "wsd"]
BestBy = Literal["valid_bleu", "valid_loss"]


class ModelSection(Section):
    """Fields of `ModelConfig` except those that the tokenizer decides. None: the preset's value."""

    preset: config.PresetName = "small"
    """Size of the model. Other keys of the section change it."""
    d_model: config.Width | None = None
    num_heads: config.Heads | None = None
    encoder_layers: config.Layers | None = None
    decoder_layers: config.Layers | None = None
    d_ff: config.InnerWidth | None = None
    decoder_num_heads: config.Heads | None = None
    decoder_d_ff: config.InnerWidth | None = None
    dropout: config.Dropout | None = None
    attention_dropout: config.Dropout | None = None
    feedforward_dropout: config.Dropout | None = None
    activation: config.Activation | None = None
    norm: config.Norm | None = None
    positions: config.PositionKind | None = None
    norm_embeddings: bool | None = None
    max_length: config.MaxLength | None = None
    share_embeddings: config.Sharing | None = None
    output_bias: bool | None = None
    core: str | None = None
    """Class of your own that computes self-attention, `module:Class` as in `training.loss`. The finished model needs
    it: `--core` names it wherever the model is used."""


MODEL_KEYS = ModelSection.model_fields.keys() - {"preset"}


class AdapterSection(Section):
    kind: Literal["lora"] = "lora"
    """`lora`: each matrix W of attention and feed-forward becomes W + 2 B A, with two thin matrices B and A ([Hu et
    al., 2021](https://arxiv.org/abs/2106.09685))."""
    rank: int = Field(16, ge=1, le=1024)
    """Number of columns of B and of rows of A."""


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
    """Learning rate after the linear warm-up: `inverse_sqrt`, `cosine` (reaches zero at the last step), `constant`,
    `wsd` (constant, then `decay_steps`; without max_steps or max_epochs constant until `headway train --resume RUN
    --minutes N --finish`), or `paper` (equation 3: inverse_sqrt with a highest rate of (d_model * warmup_steps) **
    -0.5)."""
    decay_steps: int | None = Field(None, ge=1)
    """Number of steps before the last one in which the learning rate falls to zero, as 1 - sqrt; by default a fifth of
    all with `schedule: wsd`, and none with others."""
    warmup_steps: int = Field(1000, ge=0)
    """Number of steps in which the learning rate rises from 0 to its highest value."""
    optimizer: OptimizerName = "adam"
    adam_beta2: float = Field(0.98, gt=0, lt=1)
    """Decay of Adam's average of squared gradients; the paper uses 0.98, and 0.999 is steadier at a constant rate."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Share of the target probability that is spread over the whole vocabulary (section 5.4)."""
    loss: str | None = None
    """Loss of your own, `module:Class` with a subclass of `headway.training.loss.TranslationLoss`, from the current
    folder or an installed package. The finished model doesn't need it."""
    risk_samples: int = Field(0, ge=0, le=1000)
    """Minimum-risk training: translations that are sampled of each sentence, such as 8; 0 turns it off. The better ones
    by sentence BLEU become likelier. It is a second, short training, from a model in `training.init_from`. With
    n samples a step takes about 4n/3 times the work. Label smoothing doesn't apply, and the logged loss is the mean
    risk, 1 - BLEU."""
    max_gradient_norm: float = Field(1.0, ge=0)
    """Gradients with a larger norm are scaled down to this norm; 0 turns it off."""
    seed: int = Field(1, ge=0, lt=2**63)
    """Seed of the initial weights, of dropout and of the order of batches."""
    validate_every: int | None = Field(None, ge=1)
    """Steps between validations; by default an epoch, but at least 100 and at most 2,000 steps."""
    save_every: int | None = Field(None, ge=1)
    """Steps between checkpoints for --resume; by default one at each validation."""
    best_by: BestBy = "valid_bleu"
    """Score that decides which model is the best. Between models whose BLEU is below 1, which is noise, the loss
    decides."""
    patience: int | None = Field(None, ge=1)
    """Stop after this many validations without improvement; by default never."""
    ema_decay: float = Field(0.0, ge=0, lt=1)
    """Decay of an exponential moving average of the weights, such as 0.999. The average is then validated and saved
    instead of the weights. 0 turns it off."""
    init_from: Path | None = None
    """Model or run directory to start from, with its weights and tokenizers. This model also gives the languages and
    the values of `model`, `tokenizer` and `decoding` that the recipe doesn't set. A recipe with fewer `encoder_layers`
    or `decoder_layers` takes that model's first layers, as a student may take its teacher's."""
    adapter: AdapterSection | None = None
    """Trains a small adapter (extra `adapters`) and leaves all weights of `training.init_from` as they are: much less
    memory. Checkpoints have the adapter alone, models have it merged. By default all weights are trained."""
    finish: bool = False
    """At the end, choose beam size and length penalty on the validation text, calibrate confidence, and measure the
    model on `data.held_out`, or else on the validation text: all in the model card. A run on text alone does so."""
    precision: Precision = "auto"
    """Precision of matrix products; `auto`: bf16 if the device supports it, else fp16 on CUDA and fp32 elsewhere."""
    device: Annotated[str, Field(pattern=DEVICE)] = "auto"
    """`cuda`, `mps` or `cpu`; `auto` is the first of these that is available. `cuda:1` is the second such device."""
    deterministic: bool = False
    """Train with only those algorithms of torch that add in a fixed order: slower, but meant to make two runs on CUDA
    equal bit for bit, as they always are on CPU."""

    @model_validator(mode="after")
    def _possible(self) -> TrainingSection:
        if self.schedule == "paper" and self.learning_rate is not None:
            raise ValueError("schedule: paper has its own learning rate; leave learning_rate out or use inverse_sqrt")
        if self.schedule == "paper" and self.warmup_steps < 1:
            raise ValueError("schedule: paper needs warmup_steps of at least 1")
        if self.decay_steps is not None and self.schedule == "cosine":
            raise ValueError("schedule: cosine falls to zero by itself; leave decay_steps out or use wsd")
        if self.adapter and (self.risk_samples or self.optimizer != "adam"):
            raise ValueError("adapter goes with optimizer: adam and without risk_samples")
        if self.deterministic and self.risk_samples:
            raise ValueError("deterministic goes without risk_samples: CUDA has no such algorithm for sampling")
        if self.risk_samples == 1:
            raise ValueError("risk_samples must be 0 or at least 2; each is compared with the others")
        if (self.tokens_per_micro_batch or 0) > self.tokens_per_batch:
            given = f"tokens_per_micro_batch={self.tokens_per_micro_batch}"
            raise ValueError(f"{given} is more than tokens_per_batch={self.tokens_per_batch}")
        return self

    def check_alone(self) -> None:
        """Raises ValueError if a key is missing that one training needs; sections that stages change may lack it."""
        if self.max_steps is None and self.max_epochs is None:
            if self.max_minutes is None and self.patience is None:
                raise ValueError("training: nothing ends the run: set max_steps, max_epochs, max_minutes or patience")
            last_step = "last step: set max_steps or max_epochs"
            if self.schedule == "cosine":
                raise ValueError(f"training: schedule: cosine must know its {last_step}, or use wsd")
            if self.decay_steps is not None:
                raise ValueError(f"training: decay_steps must know the {last_step}")
        if self.risk_samples and self.init_from is None:
            raise ValueError("training: risk_samples needs init_from: the samples of an untrained model teach nothing")
        if self.adapter and self.init_from is None:
            raise ValueError("training: adapter needs init_from: the model whose weights it leaves as they are")

    @property
    def adapter_rank(self) -> int:
        """0 without an adapter."""
        return self.adapter.rank if self.adapter else 0

    @property
    def micro_batch_budget(self) -> int:
        """Tokens of a micro-batch, padding included; only a longer pair takes more."""
        return self.tokens_per_micro_batch or self.tokens_per_batch

    @property
    def passes(self) -> float:
        """About how many training passes each token takes; drawing a sample takes a third of one."""
        return self.risk_samples * 4 / 3 if self.risk_samples else 1


def _folder_name(name: str) -> str:
    if not re.fullmatch(r"[\w-]+", name):
        raise ValueError("must be a name of letters, digits, - and _, which becomes that of a folder")
    return name


class Stage(Section):
    """One of several consecutive trainings of a model. Its keys replace those of the recipe's sections."""

    name: Annotated[str, AfterValidator(_folder_name)]
    """Name of its folder, `stages/NAME` in the run directory. It is a run of its own."""
    start: str | None = None
    """Earlier stage whose best model it starts from, with its weights and vocabulary, as by `training.init_from`."""
    teacher: str | None = None
    """Earlier stage whose best model translates the sources of `data.train`. The stage is trained on these pairs beside
    the others, as by `data.distilled`."""
    data: dict[str, Any] = Field({})
    """Keys of the section `data` that are others in this stage, such as `both_directions: true`."""
    tokenizer: dict[str, Any] = Field({})
    """The same of `tokenizer`."""
    model: dict[str, Any] = Field({})
    """The same of `model`."""
    training: dict[str, Any] = Field({})
    """The same of `training`."""
    decoding: dict[str, Any] = Field({})
    """The same of `decoding`."""


class Recipe(Section):
    """A whole recipe."""

    data: DataSection
    tokenizer: TokenizerSection = TokenizerSection()  # type: ignore[call-arg]
    model: ModelSection = ModelSection()
    training: TrainingSection
    decoding: DefaultOptions = DefaultOptions()
    """By default those of `training.init_from`. Validation in training is greedy."""
    stages: Annotated[list[Stage], BeforeValidator(listed)] = Field([])
    """Trainings that make the model one after another; without them there is one, by the sections alone. On the command
    line `stages.NAME=null` leaves one out, and `stages=null` all."""

    @model_validator(mode="after")
    def _possible(self) -> Recipe:
        if not self.stages:
            self.training.check_alone()
            self._check_measured_tag()
        elif self.data.prepared:
            raise ValueError("data.prepared isn't for a recipe with stages: each prepares its own text")
        earlier: list[str] = []
        for stage in self.stages:
            if stage.teacher and (self.model.core or any("core" in one.model for one in self.stages)):
                raise ValueError(f"stage {stage.name}: teacher: a model with model.core translates no text for others")
            if stage.name in earlier:
                raise ValueError(f"stages: two are named {stage.name}")
            for key, name in (("start", stage.start), ("teacher", stage.teacher)):
                if name is not None and name not in earlier:
                    known = f"there are {', '.join(earlier)}" if earlier else "there is none"
                    raise ValueError(f"stage {stage.name}: {key}: {name} is no earlier stage; {known}")
            earlier.append(stage.name)
        return self

    def _check_measured_tag(self) -> None:
        """Raises ValueError if the end of the run would measure a model with tags on text whose tag it doesn't know. A
        model to start from may know more."""
        tag, known = self.measured_tag, self.data.tags
        if tag is not None and known and tag not in known and not (tag and self.training.init_from):
            wanted = ", ".join(map(repr, known))
            raise ValueError(f"data.held_out: the first corpus has tag {tag!r}, the training corpora have {wanted}")

    @property
    def measured_tag(self) -> str | None:
        """The tag of the held-out text that the end of the run measures the model on; None without such text."""
        return self.data.held_out[0].tag if self.training.finish and self.data.held_out else None

    @field_serializer("stages")
    def _serialized(self, stages: list[Stage], info: FieldSerializationInfo) -> Any:
        return [stage.model_dump(mode=info.mode, exclude_defaults=True) for stage in stages]

    @model_validator(mode="before")
    @classmethod
    def _without_retired(cls, document: Any) -> Any:
        """Leaves out retired keys at their defaults, which recipes of earlier runs have written out."""
        return without_retired(document)

    def changed(self, changes: dict[str, dict[str, Any]]) -> Recipe:
        """The recipe with some keys changed, by section. Raises ValidationError."""
        sections = self.model_dump(mode="json")
        return Recipe.model_validate(sections | {name: sections[name] | keys for name, keys in changes.items()})

    def of_stage(self, stage: Stage, run: Path) -> Recipe:
        """The stage's recipe, in the run directory of all stages. Raises ValidationError."""
        changes = stage.model_dump(include=set(Recipe.model_fields))
        if stage.start is not None:
            changes["training"]["init_from"] = str(stage_folder(run, stage.start))
        return with_teacher(self.model_copy(update={"stages": []}).changed(changes), stage, run)

    def preparation(self, max_length: int) -> PreparationOptions:
        """The keys that decide the preparation of text, for a model of this `max_length`."""
        training = self.training
        return PreparationOptions(self.data, self.tokenizer, max_length, training.tokens_per_batch, training.init_from)

    def model_options(self) -> dict[str, Any]:
        """Preset name and changes, for `ModelConfig.preset`."""
        options = self.model.model_dump(exclude_none=True)
        if not self.tokenizer.joint and "share_embeddings" not in config.PRESETS[options["preset"]]:
            options.setdefault("share_embeddings", "decoder")
        return {"name": options.pop("preset"), **options}

    def transformer_config(self, vocab_sizes: tuple[int, int] = (4, 4)) -> config.ModelConfig:
        """The model's config, with vocabularies of source and target of these sizes. The default, the control symbols
        alone, serves where there is no tokenizer yet. Raises ValueError for an impossible one."""
        source, target = vocab_sizes
        return config.ModelConfig.preset(**self.model_options(), source_vocab_size=source, target_vocab_size=target)

    def to_yaml(self) -> str:
        """The resolved recipe, every value written out."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def without_retired(value: Any, path: str = "") -> Any:
    """The value at the path in a recipe, such as `data.noise.`, without retired keys that are at their defaults."""
    if not isinstance(value, dict):
        return value
    kept = {key: below for key, below in value.items() if RETIRED.get(f"{path}{key}", ...) != below}
    return {key: without_retired(below, f"{path}{key}.") for key, below in kept.items()}


def stage_folder(run: Path, name: str) -> Path:
    """The run directory of a stage, inside that of all stages."""
    return (run / "stages" / name).absolute()


def with_teacher(recipe: Recipe, stage: Stage, run: Path) -> Recipe:
    """The stage's recipe with the files of its teacher's translations. Raises ValidationError."""
    if stage.teacher is None:
        return recipe
    folder = stage_folder(run, stage.name)
    distilled = [
        DistilledFiles(
            source=corpus.source,
            target=[folder / f"distilled-{number}-{place}" for place in range(len(corpus.source))],
            teacher=stage_folder(run, stage.teacher),
            **corpus.model_dump(include={"tag", "weight"}),
        )
        for number, corpus in enumerate(recipe.data.train)
    ]
    sections = recipe.data.model_dump() | {"distilled": [*recipe.data.distilled, *distilled]}
    return recipe.model_copy(update={"data": DataSection.model_validate(sections)})
