"""Ids on disk as earlier versions wrote them: one shard, of int32, with the number of pairs of each corpus."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from headway.text.subwords import Tokenizer


def write_ids(folder: Path, corpora: Sequence[Sequence[tuple[str, str]]], tokenizer: Tokenizer) -> None:
    """The ids of all pairs of source and target. The folder needn't exist."""
    folder.mkdir(parents=True, exist_ok=True)
    for side, name in enumerate(("source", "target")):
        ids = [tokenizer.encode(pair[side]) for corpus in corpora for pair in corpus]
        np.array([id_ for one in ids for id_ in one], dtype="<i4").tofile(folder / f"{name}.ids")
        np.cumsum([0, *map(len, ids)], dtype="<i8").tofile(folder / f"{name}.offsets")
    np.array([len(corpus) for corpus in corpora], dtype="<i8").tofile(folder / "sizes")
