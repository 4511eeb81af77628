"""An estimate of the memory that a server may take, and the refusal to start where not even its models fit."""

from collections.abc import Collection, Sequence

from headway.decoding.searcher import TOKENS_PER_BATCH
from headway.devices import EngineName, has_torch
from headway.errors import UserError
from headway.model.config import ModelConfig
from headway.serving.admission import MOST_BODIES
from headway.serving.batcher import OVERHEAD, WORK_PER_BATCH
from headway.serving.settings import WIDEST_BEAM, Settings
from headway.threads import usable_memory
from headway.translator import Translator

FLOAT = 4  # bytes
SCORED = 2**25  # logits of given translations, and what is made of them at the same time
LIBRARIES, TORCH_LIBRARIES = 250e6, 350e6  # bytes of Python and all that is imported, and of torch with its kernels


COPIES: dict[EngineName, tuple[float, float]] = {"ctranslate2": (1.5, 3), "torch": (4.5, 6)}
"""Factors by which an engine takes more memory than its caches and its logits, as was measured: a step of search makes
copies, and the heap has gaps, because caches grow."""
COPIES_OF_WEIGHTS = 2
"""Copies of the weights for each engine: with CTranslate2 those that align, too; with torch the decoder's step's."""


def batch_memory(config: ModelConfig, engine: EngineName, batch_size: int) -> float:
    """The most bytes of one call of the model, n = WORK_PER_BATCH, each array as often as COPIES says:

    places  = min(2 n, batch_size * (WIDEST_BEAM + 1) * max_length), of all hypotheses, as `work_of` counts them
    cache   = places * 2 * decoder_layers * d_model, keys and values of the places before
    sources = TOKENS_PER_BATCH * (2 d_ff + (8 + 2 decoder_layers) d_model), if the beam is small
    logits  = places / (2 OVERHEAD) * target_vocab_size, because each hypothesis counts for at least 2 OVERHEAD places
    """
    of_cache, of_logits = COPIES[engine]
    places = min(2 * WORK_PER_BATCH, batch_size * (WIDEST_BEAM + 1) * config.max_length)
    cache = places * 2 * config.decoder_layers * config.d_model
    sources = TOKENS_PER_BATCH * (2 * config.d_ff + (8 + 2 * config.decoder_layers) * config.d_model)
    logits = places / (2 * OVERHEAD) * config.target_vocab_size
    return FLOAT * (of_cache * max(cache, sources) + of_logits * logits + SCORED)


def most_memory(models: Sequence[tuple[ModelConfig, int, EngineName]], settings: Settings, workers: int) -> float:
    """The most bytes of a server on CPU, without bodies: libraries, weights, and a batch of the largest model for each
    worker. Weights are those of the engine and of torch where it may be loaded later, for glossaries and to inspect,
    and with CTranslate2 those that align. models: config, number of parameters and engine of each."""
    with_torch = has_torch() or any(engine == "torch" for _, _, engine in models)
    found = LIBRARIES + with_torch * TORCH_LIBRARIES
    for _, parameters, engine in models:
        found += FLOAT * parameters * COPIES_OF_WEIGHTS * (1 + (with_torch and engine != "torch"))
    return found + workers * max(batch_memory(config, engine, settings.batch_size) for config, _, engine in models)


def check_memory(translators: Collection[Translator], settings: Settings, workers: int) -> str:
    """A line on how much memory the server may take, and may have. Raises UserError if not even the models fit."""
    models: list[tuple[ModelConfig, int, EngineName]] = [
        (one.info.config, one.info.num_parameters, one.engine) for one in translators if one.device == "cpu"
    ]
    if not models:
        return "the server's memory isn't estimated, because no model is on CPU"
    least, there = most_memory(models, settings, 0), usable_memory()
    if least > there:
        raise UserError(
            f"serve: the models take about {least / 1e9:.1f} GB, and this process is limited to {there / 1e9:.1f} GB "
            "(of the machine or its cgroup): serve fewer or smaller models"
        )
    bodies = (MOST_BODIES + settings.max_requests) * settings.max_body
    most = most_memory(models, settings, workers) + bodies
    line = f"may take about {most / 1e9:.1f} GB of memory, {bodies / 1e9:.1f} GB of them for requests"
    if most <= there:
        return line
    return (
        f"{line}; this process is limited to {there / 1e9:.1f} GB: fewer --threads and a smaller --max-body take less"
    )
