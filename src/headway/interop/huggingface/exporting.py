"""Exports a model as a directory of Hugging Face, and checks it with the package."""

import logging
import warnings
from collections.abc import Iterator, Sequence
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
from headway.errors import UserError, needing_extra
from headway.interop.huggingface import names
from headway.interop.huggingface.multilingual import TOKENIZERS, write_vocabulary, written_ids
from headway.model.positions import sinusoidal_table
from headway.storage import StoredModel
from headway.storage.atomic import write_directory, write_json
from headway.storage.untrusted import clipped
from headway.text.subwords import fingerprint
from headway.text.tokenizer import BOS_ID, CONTROL_PIECES, UNK_ID

ARCHITECTURES = {
    "marian": "MarianMTModel",
    "pegasus": "PegasusForConditionalGeneration",
    "m2m_100": "M2M100ForConditionalGeneration",
    "mbart": "MBartForConditionalGeneration",
}
"""The class of each model_type."""


def export_huggingface(stored: StoredModel, output: Path) -> None:
    """Writes a directory that `AutoModelForSeq2SeqLM` and `AutoTokenizer` of transformers load, whole or not at all,
    and checks that it is the same model there. Raises UserError."""
    transformers = import_transformers()
    model_type = _model_type(stored)
    with write_directory(output) as folder, _quiet(transformers):
        tokens: list[str] = []
        if model_type in TOKENIZERS:
            tokens = write_vocabulary(folder, stored, model_type)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            if tokenizer.is_fast:  # this file loads faster, and without protobuf
                tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))
        else:
            _save_tokenizer(stored, folder)
        _save_configs(stored, folder, model_type)
        save_file(_renamed_weights(stored, model_type), folder / names.WEIGHTS_FILE, metadata={"format": "pt"})
        card = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
        options = f", src_lang={stored.source_language!r}" if tokens else ""
        forced = f", forced_bos_token_id=tokenizer.convert_tokens_to_ids({tokens[-1]!r})" if tokens else ""
        longest = stored.model.config.max_length - 1 - len(tokens[:1])
        card = card.format(**vars(stored), longest=longest, options=options, forced=forced)
        (folder / names.CARD_FILE).write_text(card, encoding="utf-8")
        check_faithful(stored, lambda: HuggingFaceModel(stored, folder), "Hugging Face Transformers")
        _check_tokenizer(stored, folder, tokens, transformers)


def import_transformers() -> Any:
    """The package. Raises UserError if it isn't installed."""
    with needing_extra("huggingface"):
        import transformers
    return transformers


def _model_type(stored: StoredModel) -> str:
    """The one of ARCHITECTURES that the model is. Raises UserError if there is none."""
    config, many = stored.model.config, stored.source_tokenizer.many_sources
    found = [
        name
        for name, fields in names.MODELS.items()
        if (name in TOKENIZERS) == many and all(getattr(config, field) == one for field, one in fields.items())
    ]
    if not found:
        raise UserError(f"Hugging Face has no model with positions={config.positions}; use model.positions=sinusoidal")
    if "word" in (stored.source_tokenizer.kind, stored.target_tokenizer.kind):
        raise UserError("Hugging Face has no tokenizer that splits words; train with tokenizer.kind=bpe or unigram")
    if config.norm == "pre" and config.share_embeddings != "all":
        raise UserError(
            "Hugging Face's pre-norm models have one matrix for all embeddings, this model has "
            f"share_embeddings={config.share_embeddings}; train with model.share_embeddings=all, or norm=post"
        )
    return found[0]


def _save_configs(stored: StoredModel, folder: Path, model_type: str) -> None:
    config, search = stored.model.config, SearchOptions(**stored.decoding).kept_by("huggingface")
    longest = min(search["max_length"] or config.max_length, config.max_length - 1)
    ids, many = written_ids(stored), stored.source_tokenizer.many_sources
    control_ids = {
        "pad_token_id": ids[config.pad_id],
        "bos_token_id": ids[BOS_ID if many else config.bos_id],
        "eos_token_id": ids[config.eos_id],
        "decoder_start_token_id": ids[config.bos_id],
        "forced_eos_token_id": ids[config.eos_id],
    }
    fields = {name: getattr(config, field) for field, name in names.SAME_FIELDS.items()}
    for field, name in names.DECODER_FIELDS.items():
        fields[name] = getattr(config, f"decoder_{field}") or getattr(config, field)
    document = {
        "architectures": [ARCHITECTURES[model_type]],
        "model_type": model_type,
        "vocab_size": config.source_vocab_size,
        "decoder_vocab_size": config.target_vocab_size,
        "share_encoder_decoder_embeddings": config.share_embeddings == "all",
        "tie_word_embeddings": config.share_embeddings != "none",
        **fields,
        "activation_function": config.activation,
        "scale_embedding": True,
        "is_encoder_decoder": True,
        "dtype": "float32",
        **control_ids,
    }
    languages = range(len(CONTROL_PIECES), len(CONTROL_PIECES) + len(stored.target_tokenizer.target_tags) * many)
    generation = {
        **control_ids,
        "suppress_tokens": [ids[id_] for id_ in never_generated(stored) if id_ not in languages],
        **search,
        "length_penalty": names.LENGTH_PENALTY_FACTOR * search["length_penalty"],
        "min_length": 2 + many,  # with the start symbol and the language's token; <eos> can't be next
        "max_length": longest + 2,  # with the start symbol and <eos>
    }
    write_json(folder / names.CONFIG_FILE, document)
    write_json(folder / names.GENERATION_FILE, generation)


def _save_tokenizer(stored: StoredModel, folder: Path) -> None:
    joint = fingerprint(stored.source_tokenizer) == fingerprint(stored.target_tokenizer)
    tokenizers = {"source": stored.source_tokenizer, "target": stored.target_tokenizer}
    for (side, tokenizer), pieces in zip(tokenizers.items(), pieces_of(stored), strict=True):
        (folder / f"{side}.spm").write_bytes(tokenizer.to_bytes())
        if side == "source" or not joint:
            write_json(folder / names.VOCABULARY_FILES[side], {piece: id_ for id_, piece in enumerate(pieces)})
    document = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": stored.source_language,
        "target_lang": stored.target_language,
        "separate_vocabs": not joint,
        **dict(zip(("pad_token", "unk_token", "bos_token", "eos_token"), CONTROL_PIECES, strict=True)),
        "model_max_length": stored.model.config.max_length,
        "split_special_tokens": True,  # a control symbol that stands in a text is text
        "clean_up_tokenization_spaces": False,
    }
    write_json(folder / names.TOKENIZER_FILE, document)


class HuggingFaceModel:
    """An exported model, run by transformers. Raises UserError if the package isn't installed."""

    def __init__(self, stored: StoredModel, folder: Path) -> None:
        transformers = import_transformers()
        with _quiet(transformers):
            self._model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, local_files_only=True).eval()
        self._ids = torch.tensor(written_ids(stored))
        self._start, self._end = stored.model.config.bos_id, stored.model.config.eos_id
        self._never = self._ids[never_generated(stored)].tolist()

    def translate(self, source: list[int], max_length: int, opening: Sequence[int] = ()) -> list[int]:
        options = {"num_beams": 1, "do_sample": False, "no_repeat_ngram_size": 0, "suppress_tokens": self._never}
        options |= {"min_length": 2 + len(opening), "max_length": max_length + 2}
        options["decoder_input_ids"] = self._theirs([self._start, *opening])
        [found] = self._ids.argsort()[self._model.generate(**self._inputs(source), **options)].tolist()
        return found[1 : found.index(self._end, 1)]  # the last one is <eos>, by force if necessary

    @torch.inference_mode()
    def score(self, source: list[int], target: list[int]) -> list[float]:
        read, given = self._theirs([self._start, *target]), self._theirs([*target, self._end])[0]
        logits = self._model(**self._inputs(source), decoder_input_ids=read).logits[0]  # (target length + 1, vocab)
        return F.log_softmax(logits.float(), dim=-1).gather(1, given[:, None])[:, 0].tolist()

    def _inputs(self, source: list[int]) -> dict[str, Tensor]:
        ids = self._theirs([*source, self._end])
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def _theirs(self, ids: list[int]) -> Tensor:
        return self._ids[ids][None]  # (1, length)


def _check_tokenizer(stored: StoredModel, folder: Path, tokens: list[str], transformers: Any) -> None:
    """Raises UserError unless languages and texts of the vocabulary's own words have the same ids, and the texts come
    back the same. tokens: of the languages, with the first of which each text then begins."""
    exported = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    ids, remedy = written_ids(stored), "nothing was exported. Is this a version that headway was tested with?"
    languages = ids[len(CONTROL_PIECES) :][: len(tokens)]
    if exported.convert_tokens_to_ids(tokens) != languages:
        raise UserError(f"Hugging Face's {type(exported).__name__} has other languages than the model; {remedy}")
    if tokens:
        exported.src_lang = exported.tgt_lang = stored.source_tokenizer.target_tags[0]
    for tokenizer, side in ((stored.source_tokenizer, "text"), (stored.target_tokenizer, "text_target")):
        words = [word for piece in tokenizer.vocabulary if (word := piece.removeprefix("▁")).isalnum()]
        words = [word for word in words if UNK_ID not in tokenizer.encode(word)]
        for start in range(0, len(words), 100):
            text = " ".join(words[start : start + 100])
            wanted = tokenizer.encode(text)
            found = exported(**{side: text}, truncation=False)["input_ids"][:-1]
            same = found == [*languages[:1], *(ids[id_] for id_ in wanted)]
            if same and side == "text_target":
                same = exported.decode(found[len(tokens[:1]) :]) == tokenizer.decode(wanted)
            if not same:
                raise UserError(f"Hugging Face's tokenizer splits {clipped(text)!r} otherwise than headway's; {remedy}")


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Hides the package's progress bars, warnings and messages that are not errors."""
    log = transformers.utils.logging
    verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity(logging.ERROR)
    log.disable_progress_bar()
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        log.set_verbosity(verbosity)
        if bars:
            log.enable_progress_bar()


def _renamed_weights(stored: StoredModel, model_type: str) -> dict[str, Tensor]:
    config, order = stored.model.config, names.sines_first(stored.model.config.d_model)
    parameters = {
        name: parameter.detach().cpu() for name, parameter in stored.model.named_parameters(remove_duplicate=False)
    }
    weights = {
        name: parameters[own] if residual is None else parameters[own].index_select(residual, order)
        for own, (name, residual) in names.weight_names(config).items()
    }
    for one, *copies in names.embedding_matrices(config.share_embeddings == "all", config.share_embeddings != "none"):
        for copy in copies:
            weights[one] = weights.pop(copy)
    if model_type in TOKENIZERS:
        rows = torch.tensor(written_ids(stored)).argsort()
        weights |= {name: weights[name][rows] for name in (names.SHARED, names.BIAS) if name in weights}
    if names.BIAS in weights:
        weights[names.BIAS] = weights[names.BIAS][None]
    if model_type == "mbart":
        weights |= {name: F.pad(weights[name], (0, 0, names.LEARNED_OFFSET, 0)) for name in names.POSITIONS}
    if model_type == "pegasus":  # which calls a file without its sinusoids incomplete, Marian doesn't look for them
        weights |= {name: sinusoidal_table(config.max_length, config.d_model)[:, order] for name in names.POSITIONS}
    return {name: weight.contiguous() for name, weight in weights.items()}
