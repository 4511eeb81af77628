"""The pretended device refuses what an accelerator refuses, and computes the same."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from headway.model import ModelConfig, Transformer
from tests.properties.models import random_batch, randomised

CONFIG = ModelConfig(12, 12, d_model=8, num_heads=2, d_ff=8, encoder_layers=1, decoder_layers=1, dropout=0.0)


def test_tensors_of_two_devices_do_not_meet(pretend_device):
    device = pretend_device("cuda")
    there, here = torch.ones(3, device=device), torch.ones(3)
    assert there.device == torch.device("cuda", 0)
    assert there.device == there.mul(2).device == there.new_zeros(3).device == here.to(there).device
    assert there.cpu().device == there.to("cpu").device == there.new_zeros(3, device="cpu").device == here.device
    for meet in (
        lambda: there + here,
        lambda: here * there,
        lambda: torch.cat([there, here]),
        lambda: torch.where(here > 0, there, there),
        lambda: nn.functional.linear(there, here[None]),
        lambda: here[there.long()],
        lambda: there.index_fill_(0, torch.tensor([1]), 0.0),
    ):
        with pytest.raises(RuntimeError, match="found cuda:0 and cpu"):
            meet()
    assert (there * torch.tensor(2.0)).tolist() == [2.0, 2.0, 2.0]
    assert there[torch.tensor([0, 2])].device == there.device
    assert here.copy_(there * 5).tolist() == [5.0, 5.0, 5.0]


def test_arrays_are_made_on_the_cpu_alone(pretend_device):
    device = pretend_device("mps")
    tensor = torch.ones(3, device=device)
    for convert in (tensor.numpy, lambda: np.asarray(tensor), lambda: tensor[:1].detach().numpy()):
        with pytest.raises(TypeError, match="convert mps:0 device type tensor to numpy"):
            convert()
    assert tensor.cpu().numpy().tolist() == [1.0, 1.0, 1.0]
    tensor.cpu().fill_(7.0)
    assert tensor.tolist() == [1.0, 1.0, 1.0]


def test_apples_gpu_has_no_double_precision(pretend_device):
    device = pretend_device("mps")
    tensor = torch.ones(3, device=device)
    for widen in (
        tensor.double,
        lambda: tensor.to(torch.float64),
        lambda: torch.ones(3, dtype=torch.float64).to("mps"),
    ):
        with pytest.raises(TypeError, match="float64"):
            widen()
    assert tensor.cpu().double().dtype == torch.float64


def test_modules_move_with_the_weights_they_share_and_learn_as_on_the_cpu(pretend_device):
    model = randomised(Transformer(CONFIG)).float()
    here, weight = copy.deepcopy(model), model.output.weight
    model.to(pretend_device("cuda"))
    assert model.output.weight is model.target_embedding.weight is weight
    assert isinstance(weight, nn.Parameter)
    source, target = random_batch([(3, 2), (5, 4)], CONFIG.bos_id)
    with pytest.raises(RuntimeError, match="found cuda:0 and cpu"):
        model(source, target)
    for one in (model, here):
        device = one.output.weight.device
        one(source.to(device), target.to(device)).logsumexp(-1).sum().backward()
        torch.optim.Adam(one.parameters(), lr=0.1, fused=True).step()
    assert {parameter.grad.device for parameter in model.parameters()} == {torch.device("cuda", 0)}
    back = copy.deepcopy(model).cpu()
    assert {type(parameter) for parameter in back.parameters()} == {nn.Parameter}
    for name, parameter in here.named_parameters():
        torch.testing.assert_close(back.get_parameter(name), parameter, msg=name)
