"""Exports a package that Argos Translate and LibreTranslate install: CTranslate2's form of the model, and its
tokenizer.

Argos splits a text into sentences, encodes each with the package's one sentencepiece model, and gives up to 1,024
pieces to CTranslate2 without <eos>, so the model is told to add it.
"""

import copy
import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from headway.decoding.ctranslate2_model import CTranslate2Model, export_ctranslate2
from headway.decoding.faithful import Exported
from headway.errors import UserError
from headway.languages import english_name, is_language
from headway.storage import StoredModel
from headway.storage.atomic import TEMPORARY_SUFFIX, write_file, write_json
from headway.text.subwords import SubwordTokenizer, fingerprint

SUFFIX = ".argosmodel"
LONGEST = 1024
"""Tokens of a sentence that Argos gives to a model, <eos> included; the others are cut off."""


def export_argos(stored: StoredModel, output: Path, quantization: str | None = None) -> None:
    """Writes an `.argosmodel` file, whole or not at all. `quantization` is CTranslate2's, `int8` by default. Raises
    UserError, also for a model that Argos can't run."""
    _check_possible(stored)
    if output.suffix != SUFFIX:
        raise UserError(f"{output}: the name of a package for Argos Translate ends in {SUFFIX}")
    source, target = stored.source_language, stored.target_language
    metadata = {"package_version": "1.0", "argos_version": "1.11.0"}
    for side, language in (("from", source), ("to", target)):
        metadata |= {f"{side}_code": language, f"{side}_name": english_name(language)}
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=f"{output.name}.", suffix=TEMPORARY_SUFFIX) as temporary:
        folder = Path(temporary, f"translate-{source}_{target}-1_0")
        folder.mkdir()
        _save_model(stored, folder / "model", quantization or "int8")
        (folder / "model" / "tokenizer.spm").rename(folder / "sentencepiece.model")
        write_json(folder / "metadata.json", {**metadata, "type": "translate"})
        (folder / "README.md").write_text(stored.card, encoding="utf-8")
        archive = shutil.make_archive(str(folder), "zip", root_dir=temporary, base_dir=folder.name)
        write_file(output, Path(archive).read_bytes())


def open_argos(stored: StoredModel, file: Path) -> Exported:
    """The exported model, without Argos's own steps. Raises UserError."""
    with tempfile.TemporaryDirectory() as temporary:
        shutil.unpack_archive(file, temporary, "zip")
        [folder] = Path(temporary).iterdir()
        return CTranslate2Model(stored, folder / "model", adds_end=True)


def _check_possible(stored: StoredModel) -> None:
    config, source = stored.model.config, stored.source_tokenizer
    if not isinstance(source, SubwordTokenizer):
        raise UserError("Argos Translate has no word-level vocabularies; it needs tokenizer.kind bpe or unigram")
    if fingerprint(source) != fingerprint(stored.target_tokenizer):
        raise UserError("Argos Translate has one vocabulary for both languages; this model has two (tokenizer.joint)")
    if source.target_tags:
        raise UserError("Argos Translate gives no tag of a target language; this model needs one in front of each text")
    if config.positions == "learned" and config.max_length < LONGEST:
        limit = f"this one has learned positions for {config.max_length}"
        raise UserError(f"Argos Translate gives up to {LONGEST:,} tokens to a model; {limit}")
    for language in (stored.source_language, stored.target_language):
        if not is_language(language):
            raise UserError(f"Argos Translate needs the code of a language, such as en or de; {language!r} is none")


def _save_model(stored: StoredModel, folder: Path, quantization: str) -> None:
    """The model as CTranslate2 has it, which adds <eos> to each source by itself."""
    config, model = stored.model.config, copy.copy(stored.model)
    model.config = replace(config, max_length=max(LONGEST, config.max_length))  # sinusoidal positions have no end
    export_ctranslate2(replace(stored, model=model, shortlist=None), folder, quantization)
    probe = [config.source_vocab_size - 1, config.unk_id]
    given = CTranslate2Model(stored, folder).score(probe, probe)
    document = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    write_json(folder / "config.json", {**document, "add_source_eos": True})
    if CTranslate2Model(stored, folder, adds_end=True).score(probe, probe) != given:
        raise UserError("CTranslate2 doesn't add <eos> to a source as it is told to; nothing was exported")
