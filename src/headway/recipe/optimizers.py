"""The optimizers that a recipe may name, with the memory and the work of each. `training/optim.py` makes them."""

from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

MUON_ROUNDS = 5
"""Rounds of Newton and Schulz's iteration in a step of Muon."""
OptimizerName = Annotated[
    Literal["adam", "muon"],
    Field(
        description="`adam` (section 5.3), or `muon`: the matrices of the layers get orthogonalised updates by Muon, "
        "all other weights those of Adam. From scratch Muon learns more from each step, which takes about 15% longer; "
        "its lead is large after some thousand steps and small at the end of a long training."
    ),
]


class Update(NamedTuple):
    """The cost of updating weights in one way."""

    kept: int
    """Numbers in the optimizer's state for each weight."""
    work: Callable[[int, int], int] = lambda short, long: 0
    """FLOPs of matrix products for a matrix with these sides, the shorter one first."""


ADAM = Update(2)
# in each round two products with the longer side of a matrix, and one without
MUON = Update(1, lambda short, long: MUON_ROUNDS * (4 * short * short * long + 2 * short**3))
UPDATES: dict[OptimizerName, tuple[Update, Update]] = {"adam": (ADAM, ADAM), "muon": (MUON, ADAM)}
"""The updates of each optimizer: of the matrices of the encoder and decoder layers, and of all other weights."""
