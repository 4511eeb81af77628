"""The vocabulary of M2M-100, NLLB-200 and mBART-50, in headway's order, and back.

Their ids are fairseq's: <s>, <pad>, </s> and <unk>, then sentencepiece's pieces, the languages, <mask> and spare rows.
M2M-100 numbers the pieces in vocab.json. A source is the token of its language, the text and </s>; a translation begins
with the token of its own language.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.errors import UserError
from headway.interop.huggingface.names import SENTENCEPIECE_FILE, TOKENIZER_FILE, VOCABULARY_FILES
from headway.storage.atomic import write_json
from headway.storage.model_info import ModelInfo
from headway.storage.untrusted import clipped, parse_json, read_json, read_plain
from headway.text.characters import HALF_PAIR, is_unicode
from headway.text.sentencepiece_model import renumbered, text_pieces
from headway.text.subwords import SubwordTokenizer, Tokenizer
from headway.text.tokenizer import CONTROL_PIECES, language_token

CONTROLS = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
"""fairseq's ids of its control symbols."""
_CONTROL_IDS = [CONTROLS[name] for name in ("<pad>", "<unk>", "<s>", "</s>")]
"""The ids of the same symbols, in headway's order."""
TOKENIZERS = {"m2m_100": ("M2M100Tokenizer", "NllbTokenizer"), "mbart": ("MBart50Tokenizer",)}
"""The tokenizer_class of each model_type, without the ending Fast."""


def read_vocabulary(
    folder: Path, hf: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[SubwordTokenizer, list[int]]:
    """The tokenizer of both sides, and for each of its ids Hugging Face's. options: tokenizer_config.json. Raises
    UserError."""
    kind = str(options.get("tokenizer_class", "")).removesuffix("Fast")
    if kind not in TOKENIZERS[hf["model_type"]]:
        known = " or ".join(TOKENIZERS[hf["model_type"]])
        raise UserError(f"{folder}: its tokenizer_class is {clipped(repr(kind))}, headway imports {known}")
    if options.get("legacy_behaviour"):
        raise UserError(f"{folder}: legacy_behaviour puts languages after the text; headway has them before it")
    file = folder / SENTENCEPIECE_FILE
    if not os.path.lexists(file):
        raise UserError(f"{file}: is missing; the folder that was downloaded first has it")
    model = read_plain(file)
    try:
        found = text_pieces(model)
        ids = _numbered(folder, found) if kind == "M2M100Tokenizer" else {piece: 4 + i for i, piece in enumerate(found)}
        languages = _languages(folder, options, max(ids.values()) + 1)
        size, numbered = hf["vocab_size"], max(*ids.values(), *languages.values()) + 1
        if numbered > size:
            raise UserError(f"it has {numbered} tokens, but the model has {size}")
        free = {*range(size)} - {*ids.values(), *CONTROLS.values()}
        spare = sorted(free.difference(languages.values()))
        if len(spare) + len(languages) != len(free):
            raise UserError("its languages have ids of other tokens")
        symbols = [*CONTROL_PIECES, *map(language_token, languages), *(f"<spare{i}>" for i in range(len(spare)))]
        tokenizer = SubwordTokenizer(renumbered(model, symbols, list(ids)))
    except ValueError as error:  # UserError, of a number, or of UTF-8
        raise UserError(f"{folder}: its tokenizer can't be imported: {clipped(str(error))}") from None
    return tokenizer, [*_CONTROL_IDS, *languages.values(), *spare, *ids.values()]


def written_ids(info: ModelInfo) -> list[int]:
    """For each of headway's ids that in the exported files: with languages on both sides `write_vocabulary`'s, whose
    languages and spare rows follow the pieces, else the same."""
    tokenizer = info.source_tokenizer
    if not tokenizer.many_sources:
        return [*range(max(tokenizer.vocab_size, info.target_tokenizer.vocab_size))]
    first = len(_CONTROL_IDS) + len(_text_pieces(tokenizer))
    return [*_CONTROL_IDS, *range(first, tokenizer.vocab_size), *range(len(_CONTROL_IDS), first)]


def write_vocabulary(folder: Path, info: ModelInfo, model_type: str) -> list[str]:
    """Writes the files of the tokenizer, and returns the tokens of the languages. Raises UserError."""
    tokenizer, languages = info.source_tokenizer, info.source_tokenizer.target_tags
    kind = next(one for one in reversed(TOKENIZERS[model_type]) if one != "NllbTokenizer" or "_" in languages[0])
    pieces = _text_pieces(tokenizer)
    model = renumbered(tokenizer.to_bytes(), ["<unk>", "<s>", "</s>"], pieces)
    (folder / SENTENCEPIECE_FILE).write_bytes(model)
    tokens = [f"__{language}__" if kind == "M2M100Tokenizer" else language for language in languages]
    if kind == "M2M100Tokenizer":
        ids = {piece: id_ for id_, piece in enumerate([*CONTROLS, *pieces])}
        write_json(folder / VOCABULARY_FILES["source"], ids)
    options = {
        "tokenizer_class": kind,
        "src_lang": info.source_language if info.source_language in languages else languages[0],
        "additional_special_tokens": tokens,
        "split_special_tokens": True,  # a control symbol that stands in a text is text
        "clean_up_tokenization_spaces": False,
    }
    if kind == "NllbTokenizer":  # else transformers puts <mask> before the languages
        added = enumerate([*tokens, "<mask>"], start=len(CONTROLS) + len(pieces))
        options["added_tokens_decoder"] = {str(id_): {"content": token, "special": True} for id_, token in added}
    write_json(folder / TOKENIZER_FILE, options)
    return tokens


def read_ids(file: Path) -> dict[str, int]:
    """The ids of the pieces in vocab.json. Raises UserError unless they are the numbers from 0."""
    ids = parse_json(read_plain(file), file)
    if not all(type(id_) is int for id_ in ids.values()) or sorted(ids.values()) != list(range(len(ids))):
        raise UserError(f"{file}: its ids are not the numbers from 0 to {len(ids) - 1}")
    if not is_unicode("".join(ids)):
        raise UserError(f"{file}: {HALF_PAIR}")
    return ids


def _text_pieces(tokenizer: Tokenizer) -> list[str]:
    """The pieces after languages and spare rows."""
    return tokenizer.vocabulary[max(tokenizer.never_generated) + 1 :]


def _numbered(folder: Path, pieces: list[str]) -> dict[str, int]:
    """M2M-100's ids of sentencepiece's pieces; those that vocab.json lacks have that of <unk>."""
    file = folder / VOCABULARY_FILES["source"]
    ids = read_ids(file)
    if any(ids.get(name) != id_ for name, id_ in CONTROLS.items()):
        raise UserError(f"{file.name}: doesn't begin with {', '.join(CONTROLS)}")
    return {piece: ids.get(piece, CONTROLS["<unk>"]) for piece in pieces}


def _languages(folder: Path, options: Mapping[str, Any], first: int) -> dict[str, int]:
    """The ids of the languages: those that tokenizer_config.json gives, else they follow the pieces in the order of the
    file that names them."""
    added = options.get("added_tokens_decoder")
    added = added.items() if isinstance(added, dict) else ()
    given_ids = {str(one.get("content")): int(id_) for id_, one in added if isinstance(one, dict)}
    maps = folder / "special_tokens_map.json"
    more = read_json(maps) if os.path.lexists(maps) else {}
    for given in (options, more):
        for name in ("additional_special_tokens", "extra_special_tokens"):
            listed = given.get(name)
            every = listed if isinstance(listed, list) else []
            tokens = [str(one.get("content") if isinstance(one, dict) else one) for one in every]
            tokens = [token for token in dict.fromkeys(tokens) if token not in ("<mask>", *CONTROLS)]
            if tokens:
                ids = {token: given_ids.get(token, first + i) for i, token in enumerate(tokens)}
                return {token.removeprefix("__").removesuffix("__"): id_ for token, id_ in ids.items()}
    raise UserError("neither tokenizer_config.json nor special_tokens_map.json names languages")
