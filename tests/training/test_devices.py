"""A run on an accelerator: it learns what it learns on the CPU, and its steps don't wait for the device."""

import os
import re
import shutil

import pytest
import torch
from tests.pretend_device import InFixedOrder, PretendTensor, Products
from tests.training.test_loop import StopAfter, begin, finish, log, losses, recipe, run
from tests.training.test_loop import files as files  # noqa: PLC0414  # a fixture
from tests.training.test_stages import document
from tests.training.test_stages import files as stage_files  # a fixture

from headway.devices import fixed_order
from headway.errors import UserError
from headway.recipe.reading import make_recipe
from headway.storage import load_model
from headway.storage.steps import step_folders
from headway.training import finishing, loop
from headway.training.checkpoint import random_states
from headway.training.loop import read_steps, run_loop, take_step, train
from headway.training.processes import Interrupted, StopRequests
from headway.training.reporter import Reporter
from headway.training.run import mean_loss

__all__ = ["files", "stage_files"]

WAYS = [
    {"ema_decay": 0.9},
    {"optimizer": "muon"},
    {"precision": "bf16"},
    {"precision": "fp16"},
    {"tokens_per_micro_batch": 64},
    {"risk_samples": 2, "max_steps": 8},
]


def named(way):
    return way if isinstance(way, str) else "-".join(map(str, next(iter(way.items()))))


def without_dropout(recipe):
    """Devices draw other numbers."""
    return recipe.model_copy(update={"model": recipe.model.model_copy(update={"dropout": 0.0})})


@pytest.mark.parametrize(
    ("way", "kind"), [(way, "cuda") for way in WAYS] + [(WAYS[1], "mps"), (WAYS[5], "mps")], ids=named
)
def test_a_run_on_a_device_is_that_of_the_cpu(files, tmp_path, pretend_device, way, kind):
    """With validations and checkpoints, also if it is cut off and goes on."""
    if "risk_samples" in way:
        run(recipe(files, max_steps=8), tmp_path / "first")
        way = {**way, "init_from": str(tmp_path / "first")}
    way = {"max_steps": 12, **way}
    run(without_dropout(recipe(files, **way)), tmp_path / "cpu")
    pretend_device(kind)
    wanted = without_dropout(recipe(files, **way, device=kind))
    assert {one.device.type for one in begin(wanted, tmp_path / "begun").model.parameters()} == {kind}
    run(wanted, tmp_path / "whole")
    with pytest.raises(Interrupted):
        run(wanted, tmp_path / "parts", StopAfter(5))
    run(wanted, tmp_path / "parts")
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    steps, found = zip(*losses(tmp_path / "whole"), strict=True)
    of_cpu, expected = zip(*losses(tmp_path / "cpu"), strict=True)
    assert steps == of_cpu
    assert found == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("way", WAYS[:5], ids=named)
def test_a_step_makes_one_copy_of_each_batch_and_no_wait(files, tmp_path, pretend_device, way):
    """Its results are read later, at once."""
    opened = begin(recipe(files, **way, device=pretend_device("cuda").type), tmp_path / "run")
    plan = opened.train.plan.beginning()[0]
    read_steps(opened, [take_step(opened, plan[0])], None, Reporter(quiet=True))
    PretendTensor.waits.clear()
    PretendTensor.copies = 0
    taken = [take_step(opened, step) for step in plan[1:4]]
    assert not PretendTensor.waits
    assert PretendTensor.copies == sum(len(step) for step in plan[1:4])
    read_steps(opened, taken, None, Reporter(quiet=True))
    mean_loss(opened.loss_of, opened.valid, opened.dtype, opened.ranks)
    assert PretendTensor.waits == {"tolist": 2}


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
@pytest.mark.parametrize(("precision", "dtype"), [("auto", torch.bfloat16), ("fp32", torch.float32)])
def test_all_products_of_a_step_are_in_the_precision(files, tmp_path, pretend_device, optimizer, precision, dtype):
    """So with `auto` there are none that TF32 would speed up; with fp32 TF32 stays off."""
    pretend_device("cuda")
    opened = begin(recipe(files, device="cuda", precision=precision, optimizer=optimizer), tmp_path / "run")
    with Products() as products:
        take_step(opened, opened.train.plan.beginning()[0][0])
    assert products.dtypes == {dtype}
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize("way", WAYS[:2], ids=named)
def test_a_deterministic_run_needs_nothing_that_cuda_has_no_such_algorithm_for(
    files, tmp_path, pretend_device, monkeypatch, way
):
    """From the first step to the translations of the last validation. What follows in the process may need it."""
    pretend_device("cuda")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    asked = []

    def counted(*arguments):
        asked.append(torch.are_deterministic_algorithms_enabled())
        return take_step(*arguments)

    monkeypatch.setattr(loop, "take_step", counted)
    with InFixedOrder():
        train(
            recipe(files, **way, max_steps=8, device="cuda", deterministic=True), tmp_path / "run", Reporter(quiet=True)
        )
    assert asked == [True] * 8
    assert not torch.are_deterministic_algorithms_enabled()
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] in (":4096:8", ":16:8")
    assert sum("valid_bleu" in entry for entry in log(tmp_path / "run")) == 1


def test_sampling_has_no_deterministic_algorithm_on_cuda(files, tmp_path, pretend_device):
    """So minimum risk is refused with it."""
    run(recipe(files, max_steps=8), tmp_path / "first")
    way = {"risk_samples": 2, "max_steps": 8, "init_from": str(tmp_path / "first")}
    with pytest.raises(UserError, match="deterministic goes without risk_samples"):
        recipe(files, **way, deterministic=True)
    pretend_device("cuda")
    with (
        fixed_order(asked=True),
        InFixedOrder(),
        pytest.raises(RuntimeError, match="cumsum does not have a deterministic"),
    ):
        run(recipe(files, **way, device="cuda"), tmp_path / "second")


def test_a_run_reads_several_steps_at_once(files, tmp_path, pretend_device, monkeypatch):
    """As many as take a second, but all before a validation, a checkpoint and an epoch, which has four steps here."""
    pretend_device("cuda")
    numbers = []

    def reading(run, taken, log, reporter):
        numbers.append([one.step for one in taken])
        return read_steps(run, taken, log, reporter)

    monkeypatch.setattr(loop, "read_steps", reading)
    monkeypatch.setattr(loop, "MOST_UNREAD", 3)
    monkeypatch.setattr(loop, "SECONDS_UNREAD", 1e9)
    opened = recipe(files, device="cuda", validate_every=8, save_every=5, max_steps=16)
    run(opened, tmp_path / "run")
    assert [part for part in numbers if part] == [[1], [2, 3, 4], [5], [6, 7, 8], [9, 10], [11, 12], [13, 14, 15], [16]]
    assert [step for step, _ in losses(tmp_path / "run")] == [*range(1, 9), 8, *range(9, 17), 16]


def test_a_number_that_is_not_finite_is_told_with_its_step(files, tmp_path, pretend_device, monkeypatch):
    """Though later steps were made: nothing of them is saved."""
    pretend_device("cuda")
    real, made = loop.train_step, []

    def seventh_is_infinite(*arguments, **options):
        made.append(real(*arguments, **options))
        return made[-1]._replace(losses=made[-1].losses * float("inf")) if len(made) == 7 else made[-1]

    monkeypatch.setattr(loop, "SECONDS_UNREAD", 1e9)
    monkeypatch.setattr(loop, "train_step", seventh_is_infinite)
    with pytest.raises(UserError, match=r"^step 7, epoch 2, batch 3: the loss is not finite"):
        run(recipe(files, device="cuda", save_every=5, validate_every=20), tmp_path / "run")
    assert len(made) == 8
    assert [path.name for path in step_folders(tmp_path / "run" / "checkpoints")] == ["step-00000005"]


def test_a_run_on_the_second_card_uses_nothing_of_the_first(files, tmp_path, pretend_device):
    """Neither its generator of random numbers, which a checkpoint would take, nor what it can compute."""
    device = pretend_device("cuda", 1, bf16=[0])
    first, second = (torch.Generator().manual_seed(seed).get_state() for seed in (5, 6))
    for number, state in enumerate((first, second)):
        with torch.cuda.device(f"cuda:{number}"):
            torch.cuda.set_rng_state(state)
    opened = begin(recipe(files, device=str(device), precision="auto", max_steps=4, save_every=2), tmp_path / "run")
    assert opened.dtype == torch.float16
    finish(opened)
    assert torch.equal(random_states()["cuda"], second)
    assert {one.device for one in opened.model.parameters()} == {device}


@pytest.mark.parametrize(("precision", "dtype"), [("auto", "float16"), ("bf16", "bfloat16"), ("fp32", "float32")])
def test_a_card_without_bf16(files, tmp_path, pretend_device, capfd, precision, dtype):
    """`auto` is fp16, and bf16 is warned of."""
    pretend_device("cuda", bf16=())
    opened = begin(recipe(files, device="cuda", precision=precision), tmp_path / "run")
    told = " ".join(capfd.readouterr().err.split())
    assert f"parameters, cuda, {dtype}" in told
    assert ("emulates it slowly" in told) == (precision == "bf16")
    assert (opened.scaler is not None) == (dtype == "float16")


def test_fp16_leaves_out_steps_whose_gradients_are_too_large(files, tmp_path, monkeypatch):
    """And goes on with half the scale, also after a resume; not for ever."""
    opened = begin(recipe(files, precision="fp16", save_every=8), tmp_path / "run")
    assert opened.scaler is not None
    opened.scaler.load_state_dict({**opened.scaler.state_dict(), "scale": 2.0**32})
    finish(opened)
    norms = [entry["gradient_norm"] for entry in log(tmp_path / "run") if "loss" in entry]
    skipped = norms.index(next(filter(None, norms)))
    assert 0 < skipped < 24
    assert None not in norms[skipped:]
    assert opened.scaler.get_scale() == 2.0 ** (32 - skipped)
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-00000024")
    again = begin(recipe(files, precision="fp16", save_every=8), tmp_path / "run")
    assert again.scaler is not None
    assert again.scaler.get_scale() == 2.0 ** (32 - skipped)
    again.scaler.load_state_dict({**again.scaler.state_dict(), "scale": 2.0**120})
    monkeypatch.setattr(loop, "MOST_SKIPPED", 5)
    with pytest.raises(UserError, match=r"step 22, .* a gradient is not finite"):
        run_loop(again, StopRequests(), Reporter(quiet=True))


@pytest.mark.parametrize(("kind", "precision"), [("mps", "fp32"), ("cuda", "fp16")])
def test_stages_on_a_device(stage_files, tmp_path, pretend_device, monkeypatch, capfd, kind, precision):
    """Both directions, minimum risk, a student of its teacher's translations, and the end of the run; the card has no
    bf16."""
    pretend_device(kind, bf16=())
    monkeypatch.setattr(finishing, "FEWEST", 4)
    given = document(stage_files)
    given["training"] |= {"device": "auto", "precision": "auto", "finish": True}
    train(make_recipe(given), tmp_path / "run", Reporter())
    told = " ".join(capfd.readouterr().err.split())
    names = {"fp32": "float32", "fp16": "float16"}
    assert len(re.findall(rf"parameters,( [\d,]+ of them trained,)? {kind}, {names[precision]}", told)) == 4
    assert f"(torch, {precision}, threads" in load_model(tmp_path / "run").card
