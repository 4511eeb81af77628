"""Adapters: what is trained, what stays as it was, and what a run keeps of them."""

import copy
import sys

import pytest
import torch
from safetensors.torch import load_file
from tests.training.test_loop import StopAfter, begin, finish, recipe, run, weights
from tests.training.test_loop import files as files  # noqa: PLC0414  # a fixture
from torch.func import functional_call

from headway.devices import autocast
from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.recipe.sizes import adapter_weights
from headway.storage import load_model
from headway.storage.checksums import write_checksums
from headway.storage.steps import step_folders, step_of
from headway.training.adapters import add_adapter, merged
from headway.training.checkpoint import best_steps
from headway.training.processes import Interrupted
from headway.training.step import accumulate
from headway.translator import Translator

pytest.importorskip("peft")

RANK = 3
CPU = torch.device("cpu")
KINDS = (
    {},
    {"norm": "pre", "positions": "fairseq", "activation": "gelu"},
    {"norm": "pre", "positions": "learned", "norm_embeddings": True, "share_embeddings": "none", "output_bias": True},
    {"decoder_num_heads": 4, "decoder_d_ff": 24, "share_embeddings": "decoder", "encoder_layers": 0},
)
IDS = torch.tensor([[4, 5, 6, 7, 3], [8, 9, 3, 0, 0]])


@pytest.fixture(scope="module")
def base(files, tmp_path_factory):
    """A run that has learned a part of its task."""
    folder = tmp_path_factory.mktemp("base") / "run"
    run(recipe(files, max_steps=80, validate_every=80), folder)
    return folder


def adapted(files, base, **training):
    return recipe(files, **{"init_from": str(base), "adapter": {"rank": RANK}, **training})


def by_hand(frozen: dict[str, torch.Tensor], adapter: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """W + (alpha / rank) B A for each matrix that has an adapter, with alpha = 2 rank."""
    whole = dict(frozen)
    for name, a in adapter.items():
        layer, found, rest = name.partition(".lora_A")
        if found:
            whole[f"{layer}.weight"] = frozen[f"{layer}.weight"] + 2 * adapter[f"{layer}.lora_B{rest}"] @ a
    return whole


def trained(model):
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def frozen(model):
    """With the names that they have without adapters."""
    found = {name: weight for name, weight in model.named_parameters() if not weight.requires_grad}
    return {name.replace(".base_layer", ""): weight.detach().clone() for name, weight in found.items()}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_at_the_start_it_is_the_model_that_it_starts_from(files, base, tmp_path, precision):
    """To the last bit; in bf16, once the embeddings are rounded, as autocast rounds the matrices by itself."""
    model = begin(adapted(files, base, precision=precision), tmp_path / "run").model.eval()
    plain, dtype = load_model(base).model, torch.bfloat16 if precision == "bf16" else torch.float32
    if precision == "bf16":
        with torch.no_grad():
            plain.target_embedding.weight.copy_(plain.target_embedding.weight.bfloat16())
    assert {model.target_embedding.weight.dtype, model.encoder.layers[0].feed_forward.inner.weight.dtype} == {dtype}
    assert model.output.weight is model.target_embedding.weight is model.source_embedding.weight
    assert {weight.dtype for weight in trained(model).values()} == {torch.float32}
    with autocast(CPU, dtype):
        found, wanted = model(IDS, IDS), plain(IDS, IDS)
    assert torch.equal(found, wanted) if precision == "fp32" else torch.allclose(found, wanted, atol=0.05)


def test_only_the_adapter_is_trained(files, base, tmp_path):
    """Attention and feed-forward of all layers have one, and all of it moves."""
    opened = begin(adapted(files, base), tmp_path / "run")
    before, first = frozen(opened.model), {name: one.detach().clone() for name, one in trained(opened.model).items()}
    assert before.keys() == dict(load_model(base).model.named_parameters()).keys()
    assert len(first) == 2 * (6 + 10)
    assert sum(one.numel() for one in first.values()) == adapter_weights(opened.model.config, RANK)
    assert all(not one.any() for name, one in first.items() if "lora_B" in name)
    finish(opened)
    for name, weight in frozen(opened.model).items():
        assert torch.equal(weight, before[name]), name
    assert not any(torch.equal(weight, first[name]) for name, weight in trained(opened.model).items())
    in_adam = {weight for one in opened.optimizers for group in one.param_groups for weight in group["params"]}
    assert in_adam == set(trained(opened.model).values())


def test_gradients_are_those_of_the_merged_weights(files, base, tmp_path):
    """By torch alone: A and B as variables of the plain model's weights W + 2 B A."""
    opened = begin(adapted(files, base), tmp_path / "run")
    for weight in trained(opened.model).values():
        torch.nn.init.normal_(weight, std=0.1)
    batch = opened.train.tensors(next(opened.train.plan.steps(0))[0])
    opened.loss_of.eval()
    loss = accumulate(opened.loss_of, [batch], 1, torch.float32)
    adapter = {name: weight.detach().clone().requires_grad_() for name, weight in trained(opened.model).items()}
    plain = Transformer(opened.model.config).eval()
    whole = by_hand(frozen(opened.model), adapter)
    logits = functional_call(plain, whole, (IDS, IDS))
    opened.model.eval()
    assert torch.allclose(opened.model(IDS, IDS), logits, atol=1e-5)
    with opened.finished_model():
        for name, weight in opened.model.named_parameters():
            assert torch.allclose(weight, whole[name], atol=1e-6), name
        assert torch.allclose(opened.loss_of(*batch), loss[0], rtol=1e-5)
        assert torch.allclose(opened.model.eval()(IDS, IDS), logits, atol=1e-5)
    logits.square().sum().backward()
    opened.model.zero_grad()
    opened.model(IDS, IDS).square().sum().backward()
    for name, weight in trained(opened.model).items():
        assert torch.allclose(weight.grad, adapter[name].grad, rtol=1e-3, atol=1e-3), name
    assert all(weight.grad is None for weight in opened.model.parameters() if not weight.requires_grad)


def test_checkpoints_have_the_adapter_and_the_best_model_has_it_merged(files, base, tmp_path):
    progress = run(adapted(files, base, learning_rate=1e-2, ema_decay=0.9, best_by="valid_loss"), tmp_path / "run")
    names, config = None, load_model(base).config
    for checkpoint in step_folders(tmp_path / "run" / "checkpoints"):
        adapter, average = (load_file(checkpoint / f"{name}.safetensors") for name in ("weights", "average"))
        names = set(adapter)
        assert all(".lora_" in name for name in names)
        assert sum(one.numel() for one in adapter.values()) == adapter_weights(config, RANK)
        assert average.keys() == names
        moments = load_file(checkpoint / "optimizer.safetensors")
        assert {name.rpartition("/")[0] for name in moments} == names
    kept = [step_of(path.name) for path in step_folders(tmp_path / "run" / "models")]
    assert kept == sorted(best_steps(tmp_path / "run" / "checkpoints")) == [16, 24]
    assert progress.best_step == progress.step
    whole = by_hand(dict(load_model(base).model.named_parameters()), average)
    best = load_model(tmp_path / "run")
    assert best.config == config
    assert "lora, rank 3, merged" in best.card
    for name, weight in best.model.named_parameters():
        assert torch.allclose(weight, whole[name], atol=1e-6), name
    assert torch.equal(best.model.target_embedding.weight, load_model(base).model.target_embedding.weight)
    assert Translator.load(tmp_path / "run").translate(["one two"])[0].text


def test_a_resumed_run_is_the_uninterrupted_one(files, base, tmp_path):
    wanted = adapted(files, base)
    run(wanted, tmp_path / "whole")
    with pytest.raises(Interrupted):
        run(wanted, tmp_path / "parts", StopAfter(10))
    run(wanted, tmp_path / "parts")
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    assert (tmp_path / "parts/best.json").read_text() == (tmp_path / "whole/best.json").read_text()
    parts, whole = (load_model(tmp_path / name).weights_checksum for name in ("parts", "whole"))
    assert parts == whole


def test_it_learns(files, base, tmp_path):
    progress = run(adapted(files, base, learning_rate=1e-2, best_by="valid_loss"), tmp_path / "run")
    first = run(adapted(files, base, learning_rate=1e-9, max_steps=1), tmp_path / "first")
    assert progress.best_loss < first.best_loss - 0.05


def test_it_goes_on_only_above_the_same_model(files, base, tmp_path):
    """Wherever that is now."""
    run(recipe(files, max_steps=1), tmp_path / "before")
    run(adapted(files, tmp_path / "before", max_steps=1), tmp_path / "run")
    (tmp_path / "before").rename(tmp_path / "base")
    assert run(adapted(files, tmp_path / "base", max_steps=2), tmp_path / "run").step == 2
    [model] = step_folders(tmp_path / "base" / "models")
    [other] = step_folders(base / "models")
    for file in model.iterdir():
        file.unlink()
    for file in other.iterdir():
        (model / file.name).write_bytes(file.read_bytes())
    write_checksums(model)
    with pytest.raises(UserError, match="base: is another model than when the run began"):
        run(adapted(files, tmp_path / "base", max_steps=3), tmp_path / "run")


def test_without_peft_it_says_what_to_install(files, base, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(UserError, match=r"pip install 'headway\[adapters\]'"):
        begin(adapted(files, base), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ({"init_from": None}, "adapter needs init_from"),
        ({"optimizer": "muon"}, "optimizer: adam"),
        ({"risk_samples": 2}, "without risk_samples"),
        ({"adapter": {"rank": 0}}, r"training.adapter.rank"),
        ({"adapter": {"kind": "ia3"}}, r"training.adapter.kind"),
    ],
)
def test_what_it_is_not_for(files, base, training, message):
    with pytest.raises(UserError, match=message):
        adapted(files, base, **training)


@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_every_kind_of_model_takes_one(changes):
    """It then computes the same, with its matrices and embeddings in bf16 if products are; biases, normalisation and
    learned positions stay in fp32, and so do the sums of residual connections."""
    plain = Transformer(
        ModelConfig(9, 9, **{"d_model": 8, "num_heads": 2, "encoder_layers": 1, "d_ff": 16, **changes})
    ).eval()
    in_fp32, in_bf16 = copy.deepcopy(plain), copy.deepcopy(plain)
    add_adapter(in_fp32, RANK, torch.float32)
    add_adapter(in_bf16, RANK, torch.bfloat16)
    ids = torch.tensor([[4, 5, 6, 7, 3], [8, 3, 0, 0, 0]])
    assert torch.equal(in_fp32(ids, ids), plain(ids, ids))
    for name, weight in in_bf16.named_parameters():
        wide = weight.requires_grad or weight.dim() == 1 or "positions" in name
        assert weight.dtype == (torch.float32 if wide else torch.bfloat16), name
    again = dict(merged(in_fp32).named_parameters())
    assert again.keys() == dict(plain.named_parameters()).keys()
    assert all(torch.equal(weight, again[name]) for name, weight in plain.named_parameters())
    rounded = dict(merged(in_bf16).named_parameters())
    assert all(torch.allclose(weight, rounded[name], rtol=2**-8) for name, weight in plain.named_parameters())


def test_what_is_in_bf16_reaches_the_adapter_in_bf16():
    """Without a copy in fp32, which would take the memory that bf16 saves."""
    model = Transformer(ModelConfig(9, 9, d_model=8, num_heads=2, encoder_layers=1, decoder_layers=1, d_ff=16))
    add_adapter(model, RANK, torch.bfloat16)
    layer = model.encoder.layers[0].feed_forward.outer
    given = []
    for one in (layer.get_base_layer(), layer.lora_A["default"]):
        one.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
    with autocast(CPU, torch.bfloat16):
        model(IDS.clamp(max=8), IDS.clamp(max=8))
    assert [one.dtype for one in given] == [torch.bfloat16] * 2
    assert given[0].data_ptr() == given[1].data_ptr()
