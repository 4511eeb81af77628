"""The speed of a translation, beside peers: models of one configuration with random weights, all of which write
`TOKENS` tokens for each sentence. Tokenisation counts for headway alone."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from headway.bench.contenders import Contender, race
from headway.bench.machine import device_name, fastest_dtype, matrix_peak, versions
from headway.bench.peers import HuggingFaceMarian, TorchTransformer
from headway.bench.training import ROUNDS, SECONDS, memories, speeds
from headway.decoding.engine import padded
from headway.devices import EngineName, TranslatingPrecision, pick_device, translating_dtype
from headway.model import ModelConfig, Transformer
from headway.recipe.recipe import Recipe
from headway.recipe.sizes import forward_work
from headway.storage import StoredModel
from headway.text.tokenizer import BOS_ID, CONTROL_PIECES, EOS_ID, PAD_ID
from headway.text.words import WordTokenizer
from headway.translator import Translator

TOKENS = 30
"""Length of a source without its end, and of a translation with it."""
FEWEST, MOST = 8, 1024
"""Sentences of a round: as many as headway translates in about the time of a round."""
PEERS_BATCH = 64
NEVER = -1e4
"""Bias of the end symbol in a peer's model, which is stopped after `TOKENS`."""
Translate = Callable[[int, int], None]
"""Translates the first sentences, as many as it is asked for, with a beam of this size."""


def ending_model(config: ModelConfig) -> Transformer:
    """A model with random weights whose translations have `TOKENS` tokens with <eos>. One number of the decoder's
    hidden states comes from the position alone, and its sign makes <eos> impossible or certain.

    config: with learned positions. A model that never ends would have CTranslate2 search all sentences twice, as it
    does where a translation is too long.
    """
    model = Transformer(config)
    with torch.no_grad():
        model.target_embedding.weight[:, 0] = model.output.weight[:, 0] = 0.0
        model.output.weight[EOS_ID] = 0.0
        model.output.weight[EOS_ID, 0] = 1e3
        positions = model.get_parameter("target_positions.weight")
        positions[: TOKENS - 1, 0], positions[TOKENS - 1 :, 0] = -3.0, 3.0
        for name, parameter in model.decoder.named_parameters():
            if name.endswith(("output.weight", "output.bias", "outer.weight", "outer.bias")):
                parameter[0] = 0.0
            elif name.endswith("norm.weight"):
                parameter[0] = 2.0  # else the number fades from norm to norm
    return model


def make_headway(
    config: ModelConfig, device: str, precision: TranslatingPrecision, engine: EngineName, sources: list[list[int]]
) -> Translate:
    words = WordTokenizer([f"w{number}" for number in range(config.source_vocab_size - len(CONTROL_PIECES))])
    stored = StoredModel(
        model=ending_model(config),
        source_tokenizer=words,
        target_tokenizer=words,
        source_language="de",
        target_language="en",
    )
    with tempfile.TemporaryDirectory() as cache:
        os.environ["HEADWAY_CACHE"] = cache  # CTranslate2's form of this model is needed once
        translator = Translator(stored, device=device, precision=precision, engine=engine)
    texts = [words.decode(source) for source in sources]

    def translate(count: int, beam_size: int) -> None:
        translator.translate(texts[:count], beam_size=beam_size)

    return translate


def make_hugging_face(
    config: ModelConfig, device_of: str, precision: TranslatingPrecision, sources: list[list[int]]
) -> Translate:
    """`generate` of transformers."""
    device = torch.device(device_of)
    net: Any = HuggingFaceMarian(config).model
    net.final_logits_bias[0, EOS_ID] = NEVER
    net.to(device, translating_dtype(precision, device)).eval()

    @torch.inference_mode()
    def translate(count: int, beam_size: int) -> None:
        for rows in _batches(sources[:count], device):
            net.generate(
                input_ids=rows,
                attention_mask=rows != PAD_ID,
                num_beams=beam_size,
                max_new_tokens=TOKENS,
                do_sample=False,
                eos_token_id=EOS_ID,
                pad_token_id=PAD_ID,
            ).tolist()

    return translate


def make_torch(
    config: ModelConfig, device_of: str, precision: TranslatingPrecision, sources: list[list[int]]
) -> Translate:
    """The loop of a textbook, greedy, which runs the whole decoder for each token."""
    device = torch.device(device_of)
    net = TorchTransformer(config).to(device, translating_dtype(precision, device)).eval()

    @torch.inference_mode()
    def translate(count: int, beam_size: int) -> None:
        for rows in _batches(sources[:count], device):
            memory, padding = net.encode(rows), rows == PAD_ID
            ids = torch.full((len(rows), 1), BOS_ID, device=device)
            for _ in range(TOKENS):
                logits = net.logits(net.hidden(ids, memory, padding)[:, -1])
                ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
            ids.tolist()

    return translate


def _batches(sources: list[list[int]], device: torch.device) -> list[torch.Tensor]:
    starts = range(0, len(sources), PEERS_BATCH)
    return [
        padded([[*source, EOS_ID] for source in sources[start : start + PEERS_BATCH]], PAD_ID).to(device)
        for start in starts
    ]


def bench_translating(recipe: Recipe, precision: TranslatingPrecision = "auto") -> dict[str, Any]:
    """Measures translations with the recipe's model on its device, with its beam and greedy. Raises UserError."""
    size, beam_size = recipe.tokenizer.vocab_size, recipe.decoding.beam_size
    device = torch.device(pick_device(recipe.training.device))
    options = {**recipe.model_options(), "positions": "learned"}
    config = ModelConfig.preset(**options, source_vocab_size=size, target_vocab_size=size)
    random = np.random.default_rng(1)
    sources = random.integers(len(CONTROL_PIECES), size, (MOST, TOKENS)).tolist()
    of_all = config, str(device), precision
    made: dict[str, tuple[Callable[..., Translate], tuple[Any, ...]]] = {
        "headway": (make_headway, (*of_all, "torch", sources))
    }
    if importlib.util.find_spec("ctranslate2"):
        made["headway, ctranslate2"] = make_headway, (*of_all, "ctranslate2", sources)
        if device.type == "cpu":
            made["headway, ctranslate2 int8"] = make_headway, (config, "cpu", "int8", "ctranslate2", sources)
    if importlib.util.find_spec("transformers"):
        made["Hugging Face generate"] = make_hugging_face, (*of_all, sources)
    racing = [Contender(name, make, *given, device=str(device)) for name, (make, given) in made.items()]
    headway, count = racing[0], FEWEST
    headway.work(count, beam_size)
    while count < MOST and headway.work(count, beam_size)[0] < SECONDS / 2:
        count = min(4 * count, MOST)
    dtype, rows = fastest_dtype(device), list[dict[str, Any]]()
    peak = matrix_peak(dtype, device)
    textbook = Contender("torch.nn.Transformer", make_torch, *of_all, sources, device=str(device))
    for beam in sorted({1, beam_size}):
        taking_part = [*racing, textbook] if beam == 1 else racing
        requests = count, beam
        seconds, failures = race(taking_part, lambda _, asked=requests: asked, ROUNDS, warm_up=1)
        work = sum(forward_work(config, 1, beam, TOKENS, TOKENS))
        of_beam = speeds(taking_part, seconds, failures, count * TOKENS, work / peak)
        rows += [{"name": one["name"], "beam_size": beam, **one} for one in of_beam]
    memory = memories([*racing, textbook], {row["name"] for row in rows if "failed" in row})
    return {
        **versions("transformers", "ctranslate2"),
        "device": f"{device} ({device_name(device)})",
        "precision": precision,
        "products": str(dtype).removeprefix("torch."),
        "vocabulary": size,
        "sentences": count,
        "peak_tflops": peak / 1e12,
        "rows": [{**row, "memory_mib": memory.get(row["name"])} for row in rows],
    }
