"""A model with a larger vocabulary, to be trained further: only its embeddings and its output layer grow.

A new row is the mean of the rows of the pieces that stood in its place (Gee et al. 2022,
https://arxiv.org/abs/2402.09977). Logits of old tokens stay the same. A new token's logit is the mean of its parts'
logits and never above them all, so greedy search gives the same until training.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch

from headway.errors import UserError
from headway.model import Transformer
from headway.model.config import IMPOSSIBLE
from headway.recipe.inherited import UNKNOWN_LANGUAGES
from headway.storage import StoredModel, with_int8
from headway.storage.stored_model import load_named_weights, named_weights
from headway.text.characters import is_too_long
from headway.text.growing import Grown, NewPiece, grow, learn_pieces
from headway.text.tokenizer import UNK_ID, Tokenizer, fingerprint, language_tag


def extend_model(
    stored: StoredModel,
    pieces: int = 0,
    source_texts: Iterable[str] = (),
    target_texts: Iterable[str] = (),
    languages: Sequence[str] = (),
) -> StoredModel:
    """The model with up to `pieces` more pieces (or words) for each vocabulary, learned from the texts of its side, and
    with tags of more target languages. The first of these give the model's own language a tag, too. Drops shortlist
    and calibration, which lack the new tokens. Raises UserError."""
    source, target = stored.source_tokenizer, stored.target_tokenizer
    tags, longest = _new_languages(stored, languages), stored.config.max_length
    source_texts, target_texts = (
        [text for text in texts if not is_too_long(text, longest)] for texts in (source_texts, target_texts)
    )
    if fingerprint(source) == fingerprint(target):
        grown = grow(source, learn_pieces(source, [*source_texts, *target_texts], pieces), tags)
        sides = grown, grown
    else:
        learned = learn_pieces(source, source_texts, pieces), learn_pieces(target, target_texts, pieces)
        if source.vocabulary == target.vocabulary:
            sides = _grown_together(source, target, *learned, tags)
        else:
            sides = grow(source, learned[0], tags), grow(target, learned[1])
    model = _grown_model(stored.model, *sides)
    before, now = stored.config, model.config
    added = f" and tags of target languages ({', '.join(tags)})" if tags else ""
    note = (
        f"Its vocabulary was extended{added}, from {before.source_vocab_size:,} source and "
        f"{before.target_vocab_size:,} target tokens to {now.source_vocab_size:,} and {now.target_vocab_size:,}; the "
        "scores above are those before."
    )
    old = with_int8(stored, None)
    return replace(
        old,
        model=model,
        source_tokenizer=sides[0].tokenizer,
        target_tokenizer=sides[1].tokenizer,
        target_language="mul" if tags else stored.target_language,
        card=f"{old.card.rstrip()}\n\n{note}\n",
        shortlist=None,
        calibration=None,
    )


def _new_languages(stored: StoredModel, languages: Sequence[str]) -> list[str]:
    tags, own = stored.source_tokenizer.target_tags, stored.target_language
    for language in languages:
        if stored.source_tokenizer.kind == "word":
            raise UserError(f"{language}: whole words have no tags of languages; the model needs subwords")
        if not re.fullmatch(r"[^\s<>]+", language):
            raise UserError(f"{language!r}: is not the code of a language, such as ko")
        if language in tags:
            raise UserError(f"{language}: the model has the tag {language_tag(language)} already")
        if language == own:
            raise UserError(f"{language}: the model's own language gets a tag when another is added; leave it out")
    first = [own] if languages and not tags and own not in (*UNKNOWN_LANGUAGES, "mul") else []
    return list(dict.fromkeys([*first, *languages]))


def _grown_together(
    source: Tokenizer, target: Tokenizer, own: Sequence[NewPiece], others: Sequence[NewPiece], tags: Sequence[str]
) -> tuple[Grown, Grown]:
    """Two tokenizers with one vocabulary, as Marian's models have: both get all new pieces, and find their own."""
    of_source, of_target = ({piece.text: piece for piece in pieces} for pieces in (own, others))
    texts = list({**of_source, **of_target})
    return (
        grow(source, [of_source.get(text) or of_target[text] for text in texts], tags, of_target.keys() - of_source),
        grow(target, [of_target.get(text) or of_source[text] for text in texts], tags, of_source.keys() - of_target),
    )


def _grown_model(model: Transformer, source: Grown, target: Grown) -> Transformer:
    sizes = {"source_vocab_size": source.tokenizer.vocab_size, "target_vocab_size": target.tokenizer.vocab_size}
    larger, weights = Transformer(replace(model.config, **sizes)), named_weights(model)
    sides = {"source_embedding.weight": source, "target_embedding.weight": target, "output.weight": target}
    for name, side in sides.items():
        if name in weights:  # a shared one has its first name
            weights[name] = torch.stack([weights[name][ids].mean(0) for ids in side.rows])
    if (bias := weights.get("output.bias")) is not None:
        possible = bias.masked_fill(bias < IMPOSSIBLE / 2, bias[UNK_ID].item())
        weights["output.bias"] = torch.stack([(possible if ids[1:] else bias)[ids].mean() for ids in target.rows])
    load_named_weights(larger, weights, "the extended model")
    return larger.eval()
