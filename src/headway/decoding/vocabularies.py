"""The vocabularies of a model as other tools get them, and the pieces that they must never generate."""

from __future__ import annotations

from headway.storage import StoredModel
from headway.text.tokenizer import CONTROL_PIECES


def pieces_of(stored: StoredModel) -> tuple[list[str], list[str]]:
    """The source and the target vocabulary as other tools get them: by id, each piece once."""
    source, target = (list(side.vocabulary) for side in (stored.source_tokenizer, stored.target_tokenizer))
    for vocabulary in (source, target):
        vocabulary[: len(CONTROL_PIECES)] = CONTROL_PIECES
    return source, target


def never_generated(stored: StoredModel) -> list[str]:
    """The pieces that no translation may have."""
    config = stored.model.config
    never = {config.pad_id, config.bos_id, *stored.target_tokenizer.never_generated} - {config.eos_id}
    return [pieces_of(stored)[1][id_] for id_ in sorted(never)]
