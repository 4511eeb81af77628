"""A model with a larger vocabulary, to be trained further, or with a smaller one: only its embeddings and its output
layer change.

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
from headway.storage.stored_model import made_of, named_weights
from headway.text.characters import is_too_long
from headway.text.growing import Changed, NewPiece, grow, keep, learn_pieces, needed_ids
from headway.text.subwords import SubwordTokenizer, Tokenizer, fingerprint
from headway.text.tokenizer import UNK_ID, language_tag


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
    added = f" and tags of target languages ({', '.join(tags)})" if tags else ""
    extended = _changed(stored, *sides, f"extended{added}")
    return replace(extended, target_language="mul") if tags else extended


def cut_model(stored: StoredModel, texts: Iterable[str]) -> StoredModel:
    """The model with the tokens that texts like these need alone, of both sides (`needed_ids`); they keep their tokens,
    and these their logits. Drops shortlist and calibration. Raises UserError."""
    source, target = stored.source_tokenizer, stored.target_tokenizer
    if not (isinstance(source, SubwordTokenizer) and isinstance(target, SubwordTokenizer)):
        raise UserError("a vocabulary of whole words can't be cut; the model needs subwords")
    texts = [text for text in texts if not is_too_long(text, stored.config.max_length)]
    needed = needed_ids(source, texts)
    others = needed if fingerprint(source) == fingerprint(target) else needed_ids(target, texts)
    if source.vocabulary == target.vocabulary:
        needed = others = needed | others
    return _changed(stored, keep(source, needed), keep(target, others), "cut to what some languages need")


def _changed(stored: StoredModel, source: Changed, target: Changed, how: str) -> StoredModel:
    model = _changed_model(stored.model, source, target)
    before, now = stored.config, model.config
    note = (
        f"Its vocabulary was {how}, from {before.source_vocab_size:,} source and {before.target_vocab_size:,} target "
        f"tokens to {now.source_vocab_size:,} and {now.target_vocab_size:,}; the scores above are those before."
    )
    old = with_int8(stored, None)
    return replace(
        old,
        model=model,
        source_tokenizer=source.tokenizer,
        target_tokenizer=target.tokenizer,
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
) -> tuple[Changed, Changed]:
    """Two tokenizers with one vocabulary, as Marian's models have: both get all new pieces, and find their own."""
    of_source, of_target = ({piece.text: piece for piece in pieces} for pieces in (own, others))
    texts = list({**of_source, **of_target})
    return (
        grow(source, [of_source.get(text) or of_target[text] for text in texts], tags, of_target.keys() - of_source),
        grow(target, [of_target.get(text) or of_source[text] for text in texts], tags, of_source.keys() - of_target),
    )


def _changed_model(model: Transformer, source: Changed, target: Changed) -> Transformer:
    sizes = {"source_vocab_size": source.tokenizer.vocab_size, "target_vocab_size": target.tokenizer.vocab_size}
    sides = {"source_embedding.weight": source, "target_embedding.weight": target, "output.weight": target}
    weights = {name: weight if name in sides else weight.clone() for name, weight in named_weights(model).items()}
    for name, side in sides.items():
        if name in weights:  # a shared one has its first name
            weights[name] = torch.stack([weights[name][ids].mean(0) for ids in side.rows])
    if (bias := weights.get("output.bias")) is not None:
        possible = bias.masked_fill(bias < IMPOSSIBLE / 2, bias[UNK_ID].item())
        weights["output.bias"] = torch.stack([(possible if ids[1:] else bias)[ids].mean() for ids in target.rows])
    return made_of(weights, replace(model.config, **sizes))
