"""Adam with the paper's constants (section 5.3), and Muon for the matrices of the layers."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from headway.model import Transformer
from headway.recipe.optimizers import MUON_ROUNDS, OptimizerName
from headway.recipe.sizes import layer_matrices

BETA1 = 0.9
EPSILON = 1e-9
MOMENTUM = 0.95
COEFFICIENTS = 3.4445, -4.7750, 2.0315
"""For Newton and Schulz's iteration: singular values end near 1, between 0.7 and 1.2, after few rounds."""
LIKE_ADAM = 0.2
"""Root mean square of an update of Adam's, as a share of the learning rate (Liu et al., 2025)."""


def make_optimizers(
    model: Transformer, name: OptimizerName, beta2: float, dtype: torch.dtype = torch.float32
) -> list[torch.optim.Optimizer]:
    """The optimizers of a model, whose learning rate is set before each step: Adam, with `muon` only for embeddings,
    biases and normalisation, and Muon for the matrices of the layers. beta2: of Adam. dtype: of Muon's products."""
    matrices = layer_matrices(model) if name == "muon" else []
    chosen = set(matrices)
    others = [weight for weight in trained_weights(model).values() if weight not in chosen]
    adam = torch.optim.Adam(others, lr=0.0, betas=(BETA1, beta2), eps=EPSILON, fused=True)
    return [adam, Muon(matrices, dtype)] if matrices else [adam]


def trained_weights(model: nn.Module) -> dict[str, nn.Parameter]:
    """The weights that training changes, by name: all, or those of an adapter."""
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def state_like(optimizer: torch.optim.Optimizer, parameter: Tensor) -> dict[str, Tensor]:
    """Tensors with the shapes of an optimizer's state of a weight."""
    if isinstance(optimizer, Muon):
        return {"momentum": parameter}
    return {"step": torch.zeros((), dtype=torch.float32), "exp_avg": parameter, "exp_avg_sq": parameter}


class Muon(torch.optim.Optimizer):
    """Each step moves a matrix by its gradient's momentum, orthogonalised: all directions count alike, however small
    their part in the gradient (Jordan et al., 2024, https://kellerjordan.github.io/posts/muon/). The updates are as
    large as Adam's, so both use one learning rate (Liu et al., 2025, https://arxiv.org/abs/2502.16982).

    `torch.optim.Muon` does the same for one matrix after the other. Here matrices of a shape are processed together,
    and `found_inf`, 1.0, skips the next step on the device, as in fused optimizers.
    """

    found_inf: Tensor

    def __init__(self, matrices: Iterable[nn.Parameter], dtype: torch.dtype) -> None:
        super().__init__(matrices, {"lr": 0.0})
        self.dtype = dtype
        self.found_inf = torch.zeros(())

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]  # no closure
        (group,) = self.param_groups
        shapes: dict[tuple[int, ...], list[nn.Parameter]] = {}
        for matrix in group["params"]:
            if matrix.grad is not None:
                shapes.setdefault(tuple(sorted(matrix.shape)), []).append(matrix)
        for (_, length), matrices in shapes.items():
            skipped = self.found_inf.to(matrices[0].device).bool()
            updates = []
            for matrix in matrices:
                assert matrix.grad is not None
                if "momentum" not in self.state[matrix]:
                    self.state[matrix]["momentum"] = torch.zeros_like(matrix)
                momentum = self.state[matrix]["momentum"]
                gradient = torch.where(skipped, momentum, matrix.grad)  # leaves the momentum as it was
                momentum.lerp_(gradient, 1 - MOMENTUM)
                updates.append(_wide(gradient.lerp(momentum, MOMENTUM)))
            size = -LIKE_ADAM * length**0.5 * group["lr"] * ~skipped
            for matrix, update in zip(matrices, orthogonalized(torch.stack(updates), self.dtype), strict=True):
                _wide(matrix).add_(update * size)


def orthogonalized(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    """Roughly the nearest matrices with orthonormal rows: (n, rows, columns), rows <= columns -> the same."""
    a, b, c = COEFFICIENTS
    x = (matrices / torch.linalg.vector_norm(matrices, dim=(1, 2), keepdim=True).clamp(min=1e-7)).to(dtype)
    for _ in range(MUON_ROUNDS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x


def _wide(matrix: Tensor) -> Tensor:
    """The matrix, or its transpose if it has more rows than columns."""
    return matrix if matrix.size(0) <= matrix.size(1) else matrix.mT
