"""The commands that make a model of another: aligner, average, calibrate, extend, import and shortlist."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from headway.cli import options
from headway.cli.evaluate import TestSet, refuse_endless
from headway.cli.files import last_models, load_translator, parallel_pairs, tell
from headway.data.corpus import is_two_sided, read_lines
from headway.errors import UserError
from headway.text.characters import is_blank

if TYPE_CHECKING:
    from headway.storage import StoredModel

PAIRS = 500
"""Maximum number of pairs by which the attention that aligns is chosen."""


def aligner(
    model: options.Model,
    output: options.NewModel,
    source: options.Source,
    target: options.Translation = None,
    device: options.Device = "auto",
) -> None:
    """Choose the attention that aligns words best.

    For imported models; training makes the choice itself. Reads the first 500 pairs that have text on both
    sides, needs no known alignments, and writes the model with the choice.

    \b
    headway aligner models/en-de --source valid.en --target valid.de --output models/en-de-aligned
    """
    from headway.storage import save_model
    from headway.translator.lines import tag_fault

    options.check_new(output)
    translator = load_translator(model, device)
    pairs = parallel_pairs([source], [target], model)
    texts = list(islice((pair for pair in pairs if not is_blank(pair.source) and not is_blank(pair.target)), PAIRS))
    for pair in texts:
        if fault := tag_fault(translator, pair.source):
            raise UserError(f"{pair.file}, line {pair.line}: {fault}")
    chosen = translator.choose_aligner([pair.source for pair in texts], [pair.target for pair in texts])
    save_model(output, replace(translator.stored, aligner=chosen))
    tell(f"{output}: written, words are aligned by {chosen}")


def average(
    run: Annotated[Path, Argument(metavar="RUN", help="Run directory.")],
    output: options.NewModel,
    last: Annotated[int | None, Option(min=1, help="Number of last models. Default: all that were kept.")] = None,
) -> None:
    """Average a run's last models into one.

    The mean of their weights is often better than each of them.

    \b
    headway average runs/multi30k-de-en --last 5 --output models/averaged
    """
    from headway.recipe.reading import is_run
    from headway.training.averaging import average_models

    if not is_run(run):
        raise UserError(f"{run}: is not a run directory")
    models = last_models(run, last)
    if not models:
        raise UserError(f"{run}: has no model yet")
    options.check_new(output)
    average_models(models, output)
    tell(f"mean of {', '.join(model.name for model in models)} in {output}")


def calibrate(
    model: options.Model,
    output: options.NewModel,
    source: options.Source,
    reference: options.Translation = None,
    target_language: options.TargetLanguage = None,
    device: options.Device = "auto",
    engine: options.Engine = "auto",
    threads: options.Threads = None,
) -> None:
    """Calibrate a model's confidence in its translations.

    Translates text that the model wasn't trained on, such as the validation set, and learns to tell translations
    with a chrF of 60 or more from others. Writes the model with this calibration, which `translate --confidence`
    uses. Also measures what int8 costs in quality, as training does: `--precision auto` then uses int8 if it
    translates as well.

    \b
    headway calibrate runs/mine --source valid.de --reference valid.en --output models/mine-calibrated
    headway translate models/mine-calibrated input.de --confidence
    """
    from headway.storage.model_directory import write_model
    from headway.translator import Translator
    from headway.translator.confidence import learn_calibration
    from headway.translator.int8 import judge_int8

    options.check_new(output)
    test_set = TestSet(source, reference, None, model, target_language)
    translator = load_translator(model, device, engine=engine, threads=threads)
    refuse_endless(test_set.file, test_set.references, translator)
    sources, info = test_set.tagged(translator), translator.info
    info = judge_int8(info, sources, test_set.references, test_set.tokenization(info), tell)
    translator = Translator(info, device=translator.device, engine=translator.engine)  # type: ignore[arg-type]
    translations = translator.translate(sources)  # in the precision that the model has from now on
    found = learn_calibration(translator.engines.reader, info, translations, test_set.references)
    del translator  # with its copies of the weights
    write_model(output, replace(info, calibration=found), info.config, info.weights())
    tell(f"{output}: written, calibrated")


def import_(
    folder: Annotated[Path, Argument(metavar="DIR", help="Hugging Face directory of a model.")],
    output: options.NewModel,
) -> None:
    """Import a model from Hugging Face, such as OPUS-MT.

    Reads Marian and Pegasus folders, also those that `headway export` wrote, and M2M-100, NLLB and mBART-50.

    \b
    headway import opus-mt-en-de --output models/en-de
    headway import nllb-200-distilled-600M --output models/nllb
    """
    from headway.interop.huggingface import import_huggingface

    options.check_new(output)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; give one that was downloaded from Hugging Face")
    import_huggingface(folder, output)
    tell(f"{output}: written")


def shortlist(
    model: options.Model,
    output: options.NewModel,
    source: Annotated[Path, Option(help="Training text, a sentence per line; or a file of both sides, such as .tsv.")],
    target: options.Translation = None,
) -> None:
    """Make a model translate faster on CPU.

    Learns from training text which target tokens each source token may become, and writes the model with this list.
    The engine ctranslate2 then computes only the tokens on the lists of a batch's sentences, so a translation may
    depend on the sentences beside it.

    \b
    headway shortlist runs/mine --source train.de --target train.en --output models/mine-short
    """
    from headway.storage import load_model, save_model, with_int8
    from headway.text.shortlist import learn_shortlist
    from headway.translator.codec import Codec

    options.check_new(output)
    stored = load_model(model)
    codec = Codec(stored, stored.config.max_length)
    pairs = parallel_pairs([source], [target], model)
    ids = ((codec.source(pair.source) or [], codec.target(pair.target) or []) for pair in pairs)
    found = learn_shortlist(ids, stored.source_tokenizer, stored.target_tokenizer)
    save_model(output, replace(with_int8(stored, None), shortlist=found))
    tell(f"{output}: written, with a shortlist")


def extend(
    model: options.Model,
    output: options.NewModel,
    add_pieces: Annotated[int, Option(min=0, metavar="N", help="Maximum new tokens (or words) per vocabulary.")] = 0,
    source: Annotated[options.Files, options.files("New text, or files that hold both sides, such as .tsv.")] = None,
    target: Annotated[options.Files, options.files("New text in the target language.")] = None,
    add_language: Annotated[
        list[str] | None, Option(metavar="CODE", help="New target language, selected by >>CODE<<. May be repeated.")
    ] = None,
    keep_text: Annotated[
        options.Files, options.files("Cut the vocabulary to what this text needs; files may hold both sides.")
    ] = None,
) -> None:
    """Give a model a larger vocabulary or a smaller one.

    Learns tokens that are frequent in new text, and adds tags of target languages; a model with tags needs one in
    front of each text. The new tokens and tags are useful only after `headway train --init-from`. Old text keeps
    its tokens.

    `--keep-text` cuts a vocabulary of many languages to those of the text, such as the training text of both sides.
    A token stays if every three neighbouring characters of it are in a word of the text; single characters and tags of
    languages always stay. The text is tokenised as before, and a translation of tokens that stay is the same. The model
    takes less memory and time.

    \b
    headway extend runs/mine --add-pieces 1000 --source new.de --target new.en --output models/larger
    headway extend models/de-en --add-language fr --add-pieces 2000 --target new.fr --output models/de-en-fr
    headway extend models/nllb --keep-text mine.en --keep-text mine.ko --output models/nllb-en-ko
    """
    from headway.storage import load_model, save_model
    from headway.training.extending import cut_model, extend_model

    files = [*(source or []), *(target or [])]
    if not (add_pieces or add_language or keep_text):
        raise UserError("nothing to do: give --add-pieces N with new text, --add-language CODE, or --keep-text FILE")
    if add_pieces and not files:
        raise UserError("--add-pieces needs new text to learn them from: --source or --target, or both")
    if files and not add_pieces:
        raise UserError("--source and --target are for --add-pieces, which is missing")
    options.check_new(output)
    stored = cut = load_model(model)
    sides = _texts(source or [], target or [], model)
    if add_pieces and not any(text.strip() for texts in sides for text in texts):
        raise UserError(f"{files[0]}: has no text to learn tokens from")
    if keep_text:
        texts = (text for file in keep_text for side in _texts([file], [], model) for text in side)
        kept = [text for text in texts if not is_blank(text)]
        if not kept:
            raise UserError(f"{keep_text[0]}: has no text to cut the vocabulary to")
        cut = cut_model(stored, kept)
        _tell_share_kept(stored, kept)
    is_larger = bool(add_pieces or add_language)
    extended = extend_model(cut, add_pieces, *sides, languages=add_language or []) if is_larger else cut
    save_model(output, extended)
    _tell_change(stored, extended, sides)
    tell(f"{output}: written" + (f"; go on with `headway train RECIPE --init-from {output}`" if is_larger else ""))


def _tell_share_kept(stored: StoredModel, texts: list[str]) -> None:
    """Prints how much other text would keep its tokens: a tenth of this, with a vocabulary cut to the rest."""
    from headway.text.growing import needed_ids
    from headway.text.subwords import SubwordTokenizer

    assert isinstance(stored.source_tokenizer, SubwordTokenizer)  # `cut_model` refuses others
    ids = needed_ids(stored.source_tokenizer, [text for number, text in enumerate(texts) if number % 10])
    others = stored.source_tokenizer.encode_all(texts[::10])
    share = sum(ids.issuperset(one) for one in others) / len(others)
    tell(f"of other lines such as these, about {share:.1%} keep their tokens")


def _texts(source: list[Path], target: list[Path], model: Path) -> list[list[str]]:
    two_sided = next(filter(is_two_sided, [*source, *target]), None)
    if two_sided is None:
        return [list(chain.from_iterable(map(read_lines, files))) for files in (source, target)]
    if target:
        raise UserError(f"{two_sided}: holds both sides; give it as --source, without --target")
    pairs = list(parallel_pairs(source, [], model))
    return [[pair.source for pair in pairs], [pair.target for pair in pairs]]


def _tell_change(stored: StoredModel, extended: StoredModel, texts: list[list[str]]) -> None:
    """Prints the size of each vocabulary, and the length of the new text in its tokens, before and after."""
    for side, of_side in zip(("source", "target"), texts, strict=True):
        before, now = getattr(stored, f"{side}_tokenizer"), getattr(extended, f"{side}_tokenizer")
        line = f"{side}: {before.vocab_size:,} -> {now.vocab_size:,} tokens"
        if of_side:
            lengths = [sum(map(len, tokenizer.encode_all(of_side))) for tokenizer in (before, now)]
            line += f"; the new text has {lengths[0]:,} -> {lengths[1]:,}"
        tell(line)
    if extended.source_tokenizer.target_tags and not extended.source_tokenizer.many_sources:
        tags = " ".join(f">>{language}<<" for language in extended.source_tokenizer.target_tags)
        tell(f"tags of target languages: {tags}")
    for name, command in (("shortlist", "shortlist"), ("calibration", "calibrate")):
        if getattr(stored, name) is not None:
            tell(f"notice: the {name} is left out; after training, make one by `headway {command}`")
