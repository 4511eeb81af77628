"""The speed of a translation, beside peers: models of one configuration with random weights, which never end a
sentence, so that all write `TOKENS` tokens for each. Tokenisation counts for headway alone."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headway.bench.contenders import Contender, race
from headway.bench.machine import device_name, fastest_dtype, matrix_peak, versions
from headway.bench.peers import HuggingFaceMarian, TorchTransformer
from headway.bench.training import ROUNDS, SECONDS, memories, speeds, vocabulary_size
from headway.decoding.ctranslate2_model import ModelPieces, export_ctranslate2, load_ctranslate2
from headway.decoding.engine import padded
from headway.devices import pick_device, translating_dtype
from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.recipe.recipe import Recipe
from headway.recipe.sizes import forward_work
from headway.storage import StoredModel
from headway.text.tokenizer import BOS_ID, CONTROL_PIECES, EOS_ID, PAD_ID
from headway.text.words import WordTokenizer
from headway.translator import Translator

TOKENS = 30
"""Length of a source and of a translation."""
FEWEST, MOST = 8, 1024
"""Sentences of a round: as many as headway translates in about the time of a round."""
PEERS_BATCH = 64
NEVER = -1e4
"""Bias of the end symbol."""
Translate = Callable[[int, int], None]
"""Translates the first sentences, as many as it is asked for, with a beam of this size."""


def random_model(config: ModelConfig) -> StoredModel:
    """A model that never ends a translation."""
    words = WordTokenizer([f"w{number}" for number in range(config.source_vocab_size - len(CONTROL_PIECES))])
    model = Transformer(config)
    with torch.no_grad():
        assert model.output.bias is not None
        model.output.bias[EOS_ID] = NEVER
    return StoredModel(
        model=model, source_tokenizer=words, target_tokenizer=words, source_language="de", target_language="en"
    )


def make_headway(config: ModelConfig, device: str, sources: list[list[int]]) -> Translate:
    stored = random_model(config)
    translator = Translator(stored, device=device, engine="torch")
    texts = [stored.source_tokenizer.decode(source) for source in sources]

    def translate(count: int, beam_size: int) -> None:
        translator.translate(texts[:count], beam_size=beam_size, max_length=TOKENS)

    return translate


def make_ctranslate2(config: ModelConfig, device: str, sources: list[list[int]], compute_type: str) -> Translate:
    """CTranslate2 by itself. headway's engine of this name searches again where a translation reaches its longest, as
    all do here."""
    stored, (kind, _, index) = random_model(config), device.partition(":")
    threads, pieces = torch.get_num_threads() if kind == "cpu" else 1, ModelPieces(stored)
    with tempfile.TemporaryDirectory() as folder:
        export_ctranslate2(stored, Path(folder) / "model")
        engine = load_ctranslate2(
            Path(folder) / "model",
            device=kind,
            device_index=int(index or 0),
            compute_type=compute_type,
            inter_threads=threads,
        )
    texts = [[*pieces.of_source(source), pieces.source_end] for source in sources]

    def translate(count: int, beam_size: int) -> None:
        engine.translate_batch(
            texts[:count],
            beam_size=beam_size,
            max_decoding_length=TOKENS,
            max_batch_size=min(PEERS_BATCH, -(-count // threads)),
        )

    return translate


def make_hugging_face(config: ModelConfig, device_of: str, sources: list[list[int]]) -> Translate:
    """`generate` of transformers."""
    device = torch.device(device_of)
    net: Any = HuggingFaceMarian(config).model
    net.final_logits_bias[0, EOS_ID] = NEVER
    net.to(device, translating_dtype("auto", device)).eval()

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


def make_torch(config: ModelConfig, device_of: str, sources: list[list[int]]) -> Translate:
    """The loop of a textbook, greedy, which runs the whole decoder for each token."""
    device = torch.device(device_of)
    net = TorchTransformer(config).to(device, translating_dtype("auto", device)).eval()

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


def bench_translating(recipe: Recipe, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measures translations with the recipe's model on its device, with its beam and greedy. CTranslate2 computes
    in int8 on CPU and in float16 on cuda. tell: as of `race`. Raises UserError."""
    size, beam_size = vocabulary_size(recipe), recipe.decoding.beam_size
    device = torch.device(pick_device(recipe.training.device))
    options = {**recipe.model_options(), "output_bias": True}
    config = ModelConfig.preset(**options, source_vocab_size=size, target_vocab_size=size)
    if config.max_length <= TOKENS:
        raise UserError(
            f"model.max_length={config.max_length}: the sentences have {TOKENS} tokens and an end; use more"
        )
    random = np.random.default_rng(1)
    sources = random.integers(len(CONTROL_PIECES), size, (MOST, TOKENS)).tolist()
    arguments = config, str(device), sources
    headway = Contender("headway, engine torch", make_headway, *arguments, device=str(device))
    racing = [headway]
    if compute_type := {"cpu": "int8", "cuda": "float16"}.get(device.type):
        name = f"CTranslate2 {compute_type}"
        racing.append(Contender(name, make_ctranslate2, *arguments, compute_type, device=str(device)))
    if importlib.util.find_spec("transformers"):
        racing.append(Contender("Hugging Face generate", make_hugging_face, *arguments, device=str(device)))
    count = FEWEST
    headway.work(count, beam_size)
    while count < MOST and headway.work(count, beam_size)[0] < SECONDS / 2:
        count = min(4 * count, MOST)
    dtype, rows = fastest_dtype(device), list[dict[str, Any]]()
    peak = matrix_peak(dtype, device)
    textbook = Contender("torch.nn.Transformer", make_torch, *arguments, device=str(device))
    for beam in sorted({1, beam_size}):
        taking_part = [*racing, textbook] if beam == 1 else racing
        requests = count, beam
        seconds, failures = race(taking_part, lambda _, asked=requests: asked, ROUNDS, warm_up=1, tell=tell)
        work = sum(forward_work(config, 1, beam, TOKENS, TOKENS))
        of_beam = speeds(taking_part, seconds, failures, count * TOKENS, work / peak)
        rows += [{"name": one["name"], "beam_size": beam, **one} for one in of_beam]
    memory = memories([*racing, textbook], {row["name"] for row in rows if "failed" in row})
    return {
        **versions("transformers", "ctranslate2"),
        "device": f"{device} ({device_name(device)})",
        "precision": "auto",
        "products": str(dtype).removeprefix("torch."),
        "vocabulary": size,
        "sentences": count,
        "peak_tflops": peak / 1e12,
        "rows": [{**row, "memory_mib": memory.get(row["name"])} for row in rows],
    }
