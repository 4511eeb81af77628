"""A run on text of one's own, from the files to the recipe: parts are set apart, and a recipe is chosen for them.

Until the recipe is there, `choosing.json` says what was asked for, and a run that goes on chooses again.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from headway.storage.atomic import write_json
from headway.storage.untrusted import read_json
from headway.text.corpus import as_corpus
from headway.text.splitting import split_corpus
from headway.training.choosing import SHARE_OF_END, Measured, Text, choose, measure
from headway.training.recipe import Recipe
from headway.training.run_directory import write_recipe

ASKED = "choosing.json"
CHOICES = "choices.txt"
"""The file with the reasons of a run's recipe."""
TEXT = "text"
"""The folder with the parts of the text."""
MINUTES = 30.0


@dataclass(frozen=True)
class Asked:
    """What a run is asked for where it has no recipe. Files are absolute."""

    source: list[str]
    target: list[str]
    """None where the source files hold both sides."""
    valid_source: list[str]
    """None where a part is to be set apart."""
    valid_target: list[str]
    overrides: list[str]
    minutes: float
    fast: bool

    @classmethod
    def read(cls, run: Path) -> Asked:
        return cls(**read_json(run / ASKED))


def is_asked(run: Path) -> bool:
    """Whether a run was begun in the folder that has no recipe yet."""
    return (run / ASKED).is_file()
