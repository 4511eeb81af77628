"""Adam with the paper's constants (section 5.3)."""

from __future__ import annotations

import torch

from headway.model import Transformer

BETA1 = 0.9
EPSILON = 1e-9


def make_optimizer(model: Transformer, beta2: float) -> torch.optim.Adam:
    """Adam; the learning rate is set anew before each step."""
    return torch.optim.Adam(model.parameters(), lr=0.0, betas=(BETA1, beta2), eps=EPSILON, fused=True)
