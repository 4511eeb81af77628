"""Low-rank adapters, LoRA (Hu et al. 2021, https://arxiv.org/abs/2106.09685), by the library peft: each matrix W of
attention and feed-forward becomes W + (alpha / rank) B A, and only the thin matrices A and B are trained. B starts at
zero, so the first step has the model as it was."""

import copy
from importlib.util import find_spec

import torch
from torch import nn

from headway.errors import UserError
from headway.model import Transformer

ALPHA = 2
"""alpha / rank: the factor of B A."""


def need_peft() -> None:
    """Raises UserError if peft isn't installed."""
    if find_spec("peft") is None:
        raise UserError("training.adapter needs an extra package: pip install 'headway[adapters]'")


def add_adapter(model: Transformer, rank: int, dtype: torch.dtype) -> None:
    """Freezes the model and puts an adapter beside each linear layer of its encoder and decoder. dtype: of products; if
    it is bf16, frozen matrices and embeddings are stored in it."""
    from peft import LoraConfig, inject_adapter_in_model
    from peft.tuners.lora import LoraLayer

    stacks = [(name, module) for name, module in model.named_modules() if name.startswith(("encoder.", "decoder."))]
    layers = [name for name, module in stacks if isinstance(module, nn.Linear)]
    inject_adapter_in_model(LoraConfig(r=rank, lora_alpha=ALPHA * rank, target_modules=layers), model)
    in_bf16 = dtype == torch.bfloat16
    for module in model.modules():
        if isinstance(module, LoraLayer):
            module.cast_input_dtype_enabled = False  # an fp32 copy of each input, which autocast makes bf16 again
        elif isinstance(module, nn.Linear | nn.Embedding) and not module.weight.requires_grad and in_bf16:
            module.weight.data = module.weight.data.bfloat16()


def merged(model: Transformer) -> Transformer:
    """A copy in fp32 with adapters added to their matrices."""
    from peft.tuners.lora import LoraLayer

    copied = copy.deepcopy(model).float()
    for name, layer in list(copied.named_modules()):
        if isinstance(layer, LoraLayer):
            layer.merge()
            copied.set_submodule(name, layer.get_base_layer())
    return copied
