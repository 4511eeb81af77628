"""Our model as a directory of Hugging Face, checked there."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F

from headway.decoding import SearchOptions
from headway.decoding.ctranslate2_model import pieces_of
from headway.decoding.faithful import check_faithful, never_generated
from headway.errors import UserError
from headway.interop.huggingface import names
from headway.model import ModelConfig, Transformer
from headway.model.positions import sinusoidal_table
from headway.storage import StoredModel
from headway.storage.atomic import write_directory, write_json
from headway.storage.untrusted import clipped
from headway.text.tokenizer import CONTROL_PIECES, UNK_ID, fingerprint

ARCHITECTURES = {"marian": "MarianMTModel", "pegasus": "PegasusForConditionalGeneration"}


def export_huggingface(stored: StoredModel, output: Path) -> None:
    """Writes a directory that `AutoModelForSeq2SeqLM` and `AutoTokenizer` of transformers load, whole or not at all,
    and checks that it is the same model there. Raises UserError."""
    transformers = import_transformers()
    _check_exportable(stored)
    with write_directory(output) as folder:
        _save_tokenizer(stored, folder)
        write_json(folder / names.CONFIG_FILE, _their_config(stored))
        write_json(folder / names.GENERATION_FILE, _their_generation(stored))
        save_file(_their_weights(stored.model), folder / names.WEIGHTS_FILE, metadata={"format": "pt"})
        (folder / names.CARD_FILE).write_text(_card(stored), encoding="utf-8")
        with _quiet(transformers):
            check_faithful(stored, HuggingFaceModel(stored, folder), "Hugging Face Transformers")
            _check_tokenizer(stored, folder, transformers)


def import_transformers() -> Any:
    """The package. Raises UserError where it isn't installed."""
    try:
        import transformers
    except ImportError:
        raise UserError("Hugging Face Transformers is not installed: pip install 'headway[huggingface]'") from None
    return transformers


def _check_exportable(stored: StoredModel) -> None:
    config = stored.model.config
    if config.positions != "sinusoidal":
        raise UserError(
            f"Hugging Face has no such model with positions={config.positions}; train with model.positions=sinusoidal"
        )
    if "word" in (stored.source_tokenizer.kind, stored.target_tokenizer.kind):
        raise UserError(
            "Hugging Face's tokenizer for such models is made of sentencepiece models, this one splits words; train "
            "with tokenizer.kind=bpe or unigram"
        )
    if config.norm == "pre" and config.share_embeddings != "all":
        raise UserError(
            "Hugging Face's pre-norm model (Pegasus) has one matrix for all embeddings, this model has "
            f"share_embeddings={config.share_embeddings}; train with model.share_embeddings=all, or norm=post"
        )


def _their_config(stored: StoredModel) -> dict[str, Any]:
    config = stored.model.config
    [model_type] = [name for name, norm in names.NORMS.items() if norm == config.norm]
    return {
        "architectures": [ARCHITECTURES[model_type]],
        "model_type": model_type,
        "vocab_size": config.source_vocab_size,
        "decoder_vocab_size": config.target_vocab_size,
        "share_encoder_decoder_embeddings": config.share_embeddings == "all",
        "tie_word_embeddings": config.share_embeddings != "none",
        **{theirs: getattr(config, ours) for ours, theirs in names.SAME_FIELDS.items()},
        **{
            theirs: getattr(config, f"decoder_{ours}") or getattr(config, ours)
            for ours, theirs in names.DECODER_FIELDS.items()
        },
        "activation_function": config.activation,
        "scale_embedding": True,
        "is_encoder_decoder": True,
        "dtype": "float32",
        **_control_ids(config),
    }


def _control_ids(config: ModelConfig) -> dict[str, int]:
    return {
        "pad_token_id": config.pad_id,
        "bos_token_id": config.bos_id,
        "eos_token_id": config.eos_id,
        "decoder_start_token_id": config.bos_id,
        "forced_eos_token_id": config.eos_id,
    }


def _their_generation(stored: StoredModel) -> dict[str, Any]:
    config, options = stored.model.config, SearchOptions(**stored.decoding)
    longest = config.max_length - 1 if options.max_length is None else min(options.max_length, config.max_length - 1)
    return {
        **_control_ids(config),
        "suppress_tokens": never_generated(stored),
        "num_beams": options.beam_size,
        "length_penalty": names.LENGTH_PENALTY_FACTOR * options.length_penalty,
        "min_length": 2,  # with the start symbol; shorter than this, <eos> can't be next
        "max_length": longest + 2,  # with the start symbol and <eos>
        "no_repeat_ngram_size": options.no_repeat_ngram,
    }


def _save_tokenizer(stored: StoredModel, folder: Path) -> None:
    joint = fingerprint(stored.source_tokenizer) == fingerprint(stored.target_tokenizer)
    tokenizers = {"source": stored.source_tokenizer, "target": stored.target_tokenizer}
    for (side, tokenizer), pieces in zip(tokenizers.items(), pieces_of(stored), strict=True):
        (folder / f"{side}.spm").write_bytes(tokenizer.to_bytes())
        if side == "source" or not joint:
            write_json(folder / names.VOCABULARY_FILES[side], {piece: id_ for id_, piece in enumerate(pieces)})
    write_json(
        folder / names.TOKENIZER_FILE,
        {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": stored.source_language,
            "target_lang": stored.target_language,
            "separate_vocabs": not joint,
            **dict(zip(("pad_token", "unk_token", "bos_token", "eos_token"), CONTROL_PIECES, strict=True)),
            "model_max_length": stored.model.config.max_length,
            "split_special_tokens": True,  # a control symbol that stands in a text is text
            "clean_up_tokenization_spaces": False,
        },
    )


def _card(stored: StoredModel) -> str:
    config = stored.model.config
    return f"""---
library_name: transformers
pipeline_tag: translation
---

# Translation from {stored.source_language} to {stored.target_language}

A Transformer (Vaswani et al., 2017), exported by headway. When it was exported, it gave the same scores and the same
greedy translations as in headway.

    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    model = AutoModelForSeq2SeqLM.from_pretrained(FOLDER)
    batch = tokenizer([TEXT], return_tensors="pt", padding=True)
    print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))

Texts may have {config.max_length - 1} tokens. `length_penalty` has another formula here than in headway, so a beam
search may prefer a longer or a shorter translation; with `length_penalty=0` the two are equal.

## The card of the model

{stored.card}"""


class HuggingFaceModel:
    """What was exported. Raises UserError where the package isn't installed."""

    def __init__(self, stored: StoredModel, folder: Path) -> None:
        transformers = import_transformers()
        with _quiet(transformers):
            self._model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, local_files_only=True).eval()
        self._start, self._end = stored.model.config.bos_id, stored.model.config.eos_id

    def translate(self, source: list[int], max_length: int) -> list[int]:
        options = {"num_beams": 1, "do_sample": False, "no_repeat_ngram_size": 0, "max_new_tokens": max_length + 1}
        [found] = self._model.generate(**self._inputs(source), **options).tolist()
        return found[1 : found.index(self._end, 1)]  # the last one is <eos>, by force where need be

    @torch.inference_mode()
    def score(self, source: list[int], target: list[int]) -> list[float]:
        read, given = torch.tensor([[self._start, *target]]), torch.tensor([*target, self._end])
        logits = self._model(**self._inputs(source), decoder_input_ids=read).logits[0]  # (target length + 1, vocab)
        return F.log_softmax(logits.float(), dim=-1).gather(1, given[:, None])[:, 0].tolist()

    def _inputs(self, source: list[int]) -> dict[str, Tensor]:
        ids = torch.tensor([[*source, self._end]])
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def _check_tokenizer(stored: StoredModel, folder: Path, transformers: Any) -> None:
    """Raises UserError unless texts of the vocabulary's own words have the same ids, and come back the same."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    for mine, side in ((stored.source_tokenizer, "text"), (stored.target_tokenizer, "text_target")):
        words = [word for piece in mine.vocabulary if (word := piece.removeprefix("▁")).isalnum()]
        words = [word for word in words if UNK_ID not in mine.encode(word)]
        for start in range(0, len(words), 100):
            text = " ".join(words[start : start + 100])
            wanted = mine.encode(text)
            found = tokenizer(**{side: text}, truncation=False)["input_ids"][:-1]
            if found != wanted or (side == "text_target" and tokenizer.decode(found) != mine.decode(wanted)):
                raise UserError(
                    f"Hugging Face's tokenizer splits {clipped(text)!r} otherwise than headway's; nothing was "
                    "exported. Is this a version that headway was tested with?"
                )


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """No progress bars of the package, and nothing on standard error that is not an error."""
    log = transformers.utils.logging
    verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity(logging.ERROR)
    log.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.set_verbosity(verbosity)
        if bars:
            log.enable_progress_bar()


def _their_weights(model: Transformer) -> dict[str, Tensor]:
    config, order = model.config, names.sines_first(model.config.d_model)
    ours = {name: parameter.detach().cpu() for name, parameter in model.named_parameters(remove_duplicate=False)}
    weights = {
        name: ours[mine] if residual is None else ours[mine].index_select(residual, order)
        for mine, (name, residual) in names.weight_names(config).items()
    }
    for one, *copies in names.embedding_matrices(config.share_embeddings == "all", config.share_embeddings != "none"):
        for copy in copies:
            weights[one] = weights.pop(copy)
    if names.BIAS in weights:
        weights[names.BIAS] = weights[names.BIAS][None]
    if config.norm == "pre":  # Pegasus calls a file without its sinusoids incomplete, Marian doesn't look for them
        weights |= {name: sinusoidal_table(config.max_length, config.d_model)[:, order] for name in names.POSITIONS}
    return {name: weight.contiguous() for name, weight in weights.items()}
