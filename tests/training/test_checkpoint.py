"""Checkpoints: damage of every kind is noticed, named, and costs no more than the way from the one before."""

import json
import os
import random
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from headway.errors import UserError
from headway.model import ModelConfig, Transformer
from headway.storage import atomic
from headway.storage.atomic import write_directory
from headway.storage.checksums import SUMS_FILE, find_damage, write_checksums
from headway.storage.steps import step_folders
from headway.training import checkpoint
from headway.training.averaging import MovingAverage
from headway.training.checkpoint import (
    GENERATORS,
    Progress,
    State,
    best_steps,
    last_checkpoint,
    load_checkpoint,
    random_states,
    read_state,
    save_checkpoint,
    states_of_ranks,
)
from headway.training.optim import make_optimizers
from headway.training.ranks import SingleProcess
from headway.training.run_directory import MARK, open_run, training_lock

pytestmark = pytest.mark.usefixtures("held_files_stay")

CUTS, FLIPS = 100, 100


def tiny():
    config = ModelConfig(
        source_vocab_size=7, target_vocab_size=7, d_model=8, num_heads=2, encoder_layers=1, decoder_layers=1, d_ff=8
    )
    model = Transformer(config)
    optimizers = make_optimizers(model, "adam", 0.98)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizers[0].step()
    return model, optimizers


@pytest.fixture
def folder(tmp_path):
    """Two checkpoints, after the steps 10 and 20."""
    model, optimizers = tiny()
    for step in (10, 20):
        save_checkpoint(tmp_path, model, optimizers, None, State(Progress(step=step), {}, "data", {}))
    return tmp_path


def newest(folder):
    return folder / "step-00000020"


def spoiled(folder, change):
    """The newest checkpoint after `change` of one of its files; the files take turns."""
    for file in sorted(newest(folder).iterdir()):
        data = file.read_bytes()
        for spoilt in change(data):
            file.write_bytes(spoilt)
            yield file
        file.write_bytes(data)
    assert find_damage(newest(folder)) is None


def test_every_cut_is_noticed(folder):
    chance = random.Random(1)
    files = len(list(newest(folder).iterdir()))

    def cuts(data):
        return [data[: chance.randrange(len(data))] for _ in range(CUTS // files + 1)]

    seen = [find_damage(newest(folder)) for _ in spoiled(folder, cuts)]
    assert len(seen) >= CUTS
    assert all(seen)


def test_every_flipped_bit_is_noticed(folder):
    chance = random.Random(2)
    files = len(list(newest(folder).iterdir()))

    def flips(data):
        for _ in range(FLIPS // files + 1):
            flipped = bytearray(data)
            flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            yield bytes(flipped)

    seen = [find_damage(newest(folder)) for _ in spoiled(folder, flips)]
    assert len(seen) >= FLIPS
    assert all(seen)


def test_every_bit_of_the_checksums_counts(folder):
    file = newest(folder) / SUMS_FILE
    data = file.read_bytes()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(bytes(flipped))
        assert find_damage(newest(folder)), bit


@pytest.mark.parametrize("name", [SUMS_FILE, "state.json", "weights.safetensors", "random.safetensors"])
def test_a_file_that_is_missing_is_noticed(folder, name):
    (newest(folder) / name).unlink()
    assert name in find_damage(newest(folder))


def test_a_file_too_many_is_noticed(folder):
    (newest(folder) / "extra").touch()
    assert find_damage(newest(folder)) == "extra is not one of its files"


def test_the_checkpoint_before_a_damaged_one_is_used(folder):
    (newest(folder) / "weights.safetensors").write_bytes(b"")
    notices = []
    assert last_checkpoint(folder, notices.append) == folder / "step-00000010"
    [notice] = notices
    assert notice.startswith(f"warning: {newest(folder)}: weights.safetensors is damaged; going on from step-00000010")
    assert [path.name for path in step_folders(folder)] == ["step-00000010"]
    assert (folder / "step-00000020.damaged").is_dir()
    assert last_checkpoint(folder, notices.append) == folder / "step-00000010"
    assert len(notices) == 1


def test_the_last_checkpoint_and_the_one_before_it_are_kept(folder):
    for step in (30, 40):
        save_checkpoint(folder, *tiny(), None, State(Progress(step=step), {}, "data", {}))
        assert [path.name for path in step_folders(folder)] == [f"step-{step - 10:08}", f"step-{step:08}"]


def test_where_all_are_damaged_nothing_is_touched(folder):
    for path in step_folders(folder):
        (path / "state.json").write_text("{}")
    with pytest.raises(UserError, match=r"step-00000020: state.json is damaged; step-00000010: state.json is damaged"):
        last_checkpoint(folder, print)
    assert len(step_folders(folder)) == 2


def test_a_checkpoint_gives_back_what_it_was_given(folder, tmp_path):
    model, optimizers = tiny()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    state = State(Progress(step=30, best_score=1.5), {"a": [1, None]}, "data", {"threads": 2, "torch": "2"})
    save_checkpoint(tmp_path, model, optimizers, None, state)
    drawn = torch.rand(5)
    other, other_optimizers = tiny()
    load_checkpoint(tmp_path / "step-00000030", other, other_optimizers, None)
    assert read_state(tmp_path / "step-00000030") == state
    assert torch.equal(torch.rand(5), drawn)
    for name, parameter in model.named_parameters():
        assert torch.equal(other.get_parameter(name), parameter)


def test_an_older_checkpoint_has_no_count_of_its_work_and_no_time_before_a_stage(folder):
    document = json.loads((newest(folder) / "state.json").read_text())
    assert document["progress"].pop("flops") is not None
    del document["progress"]["minutes_before"]
    (newest(folder) / "state.json").write_text(json.dumps(document))
    progress = read_state(newest(folder)).progress
    assert (progress.flops, progress.minutes_before) == (None, 0)


def test_a_checkpoint_of_a_newer_headway_is_refused(folder):
    document = json.loads((newest(folder) / "state.json").read_text())
    (newest(folder) / "state.json").write_text(json.dumps({**document, "format_version": 2}))
    with pytest.raises(UserError, match="format_version 2"):
        read_state(newest(folder))


def without(name):
    return lambda document: document.pop(name)


def progress(**changes):
    return lambda document: document["progress"].update(changes)


STATES = {
    "format_version None is not one": without("format_version"),
    "format_version True is not one": lambda document: document.update(format_version=True),
    "progress is missing": without("progress"),
    "made_with is missing": without("made_with"),
    "progress.step is missing": lambda document: document["progress"].pop("step"),
    "progress.colour is unknown": progress(colour=1),
    "colour is unknown": lambda document: document.update(colour=1),
    "progress.step='20': must be a valid integer": progress(step="20"),
    "progress.epoch=-1: must be at least 0": progress(epoch=-1),
    "progress.step_in_epoch=1.5: must be a valid integer": progress(step_in_epoch=1.5),
    "progress.best_step=None: must be a valid integer": progress(best_step=None),
    "progress.best_score='high': must be a valid number": progress(best_score="high"),
    "progress.flops=-1.0: must be at least 0": progress(flops=-1.0),
    "progress.minutes=True: must be a valid number": progress(minutes=True),
    "progress=[]: must be": lambda document: document.update(progress=[]),
    "recipe=None: must be an object": lambda document: document.update(recipe=None),
    "data=5: must be a valid string": lambda document: document.update(data=5),
    "made_with.threads": lambda document: document.update(made_with={"threads": [2]}),
    "made_with.device": lambda document: document.update(made_with={"device": True}),
}


@pytest.mark.parametrize("message", STATES)
def test_a_state_of_another_kind_is_one_line(folder, message):
    """By hand: its checksum may be right."""
    document = json.loads((newest(folder) / "state.json").read_text())
    STATES[message](document)
    (newest(folder) / "state.json").write_text(json.dumps(document))
    with pytest.raises(UserError) as error:
        read_state(newest(folder))
    assert f"{newest(folder)}/state.json: " in str(error.value)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_optimizer_without_state_goes_on(tmp_path):
    """Plain SGD has none at all, and Adam none before its first step."""
    model, _ = tiny()
    for optimizers in ([torch.optim.SGD(model.parameters())], make_optimizers(model, "adam", 0.98)):
        save_checkpoint(tmp_path, model, optimizers, None, State(Progress(step=7), {}, "data", {}))
        other, _ = tiny()
        load_checkpoint(tmp_path / "step-00000007", other, optimizers, None)
        assert all(map(torch.equal, model.parameters(), other.parameters()))
        assert not optimizers[0].state


def test_a_checkpoint_that_can_not_be_read_knows_no_best(folder):
    (newest(folder) / "state.json").write_text("{")
    assert best_steps(folder) == {0}


TENSORS = {
    "lacks tensor 'decoder.layers.0.cross_attention.key.bias/exp_avg'": (
        "optimizer",
        lambda tensors: tensors.pop("decoder.layers.0.cross_attention.key.bias/exp_avg"),
    ),
    "has unknown tensor 'x/step'": ("optimizer", lambda tensors: tensors.update({"x/step": torch.zeros(())})),
    "/step' is I64": ("optimizer", lambda tensors: tensors.update({"source_embedding.weight/step": torch.tensor(1)})),
    "/exp_avg_sq' is F32 (1,), it should be F32 (7, 8)": (
        "optimizer",
        lambda tensors: tensors.update({"source_embedding.weight/exp_avg_sq": torch.zeros(1)}),
    ),
    "lacks tensor 'source_embedding.weight'": ("average", lambda tensors: tensors.pop("source_embedding.weight")),
    "'source_embedding.weight' is F64 (7, 8), it should be F32 (7, 8)": (
        "average",
        lambda tensors: tensors.update({"source_embedding.weight": torch.zeros(7, 8, dtype=torch.float64)}),
    ),
    "lacks tensor 'cpu'": ("random", lambda tensors: tensors.pop("cpu")),
    "has unknown tensor 'tpu'": ("random", lambda tensors: tensors.update(tpu=tensors["cpu"].clone())),
    "'cpu' is U8 (3,)": ("random", lambda tensors: tensors.update(cpu=torch.zeros(3, dtype=torch.uint8))),
    "isn't the state of a random generator": ("random", lambda tensors: tensors["cpu"].fill_(255)),
    "has unknown tensor 'output.bias'": ("weights", lambda tensors: tensors.update({"output.bias": torch.zeros(7)})),
    "'source_embedding.weight' holds values that are not finite": (
        "weights",
        lambda tensors: tensors["source_embedding.weight"].fill_(float("nan")),
    ),
}


@pytest.mark.parametrize("message", TENSORS)
def test_tensors_of_another_kind_are_one_line(tmp_path, message):
    name, change = TENSORS[message]
    model, optimizers = tiny()
    average = MovingAverage(model, 0.9)
    save_checkpoint(tmp_path, model, optimizers, average, State(Progress(step=20), {}, "data", {}))
    load_checkpoint(newest(tmp_path), model, optimizers, average)
    file = newest(tmp_path) / f"{name}.safetensors"
    tensors = {key: tensor.clone() for key, tensor in load_file(file).items()}
    change(tensors)
    save_file(tensors, file)
    with pytest.raises(UserError) as error:
        load_checkpoint(newest(tmp_path), model, optimizers, average)
    assert f"{file}: " in str(error.value)
    assert message in str(error.value)


def test_the_random_state_of_a_device_that_is_not_here_is_left_alone(folder):
    model, optimizers = tiny()
    file = newest(folder) / "random.safetensors"
    others = {name: torch.zeros(16, dtype=torch.uint8) for name in GENERATORS if name not in random_states()}
    assert others
    save_file({**load_file(file), **others}, file)
    load_checkpoint(newest(folder), model, optimizers, None)


class Three(SingleProcess):
    """Ranks that draw differently."""

    count = 3

    def all_gather(self, part):
        [state] = part
        return [state, *(torch.Generator().manual_seed(int(state.sum()) + rank).get_state() for rank in (1, 2))]


def states_here(kind):
    return {"cpu": torch.get_rng_state(), kind: getattr(torch, kind).get_rng_state()}


@pytest.mark.parametrize("kind", ["cuda", "mps"])
@pytest.mark.parametrize(("ranks", "rank"), [(SingleProcess(), 0), (Three(), 0), (Three(), 1), (Three(), 2)])
def test_every_device_of_a_rank_goes_on_drawing_where_it_was(tmp_path, pretend_device, kind, ranks, rank):
    pretend_device(kind)
    (model, optimizers), there = tiny(), getattr(torch, kind)
    there.set_rng_state(torch.Generator().manual_seed(5).get_state())
    wanted = {device: ranks.all_gather([state])[rank] for device, state in states_here(kind).items()}
    given = states_of_ranks(ranks) if ranks.count > 1 else None
    save_checkpoint(tmp_path, model, optimizers, None, State(Progress(step=20), {}, "data", {}), given)
    torch.rand(1)
    there.set_rng_state(torch.Generator().manual_seed(6).get_state())
    load_checkpoint(newest(tmp_path), model, optimizers, None, rank)
    for device, state in states_here(kind).items():
        assert torch.equal(state, wanted[device]), device


def test_a_rank_that_the_run_did_not_have_draws_anew(folder):
    """The same whenever it is resumed, and other numbers than each rank beside it."""
    model, optimizers = tiny()

    def drawn(rank):
        load_checkpoint(newest(folder), model, optimizers, None, rank)
        return torch.rand(3).tolist()

    assert len({tuple(drawn(rank)) for rank in range(4)}) == 4
    assert drawn(1) == drawn(1)


def test_a_checkpoint_of_the_cpu_goes_on_on_a_device(folder, pretend_device):
    pretend_device("cuda")
    before = torch.cuda.get_rng_state()
    load_checkpoint(newest(folder), *tiny(), None)
    assert torch.equal(torch.cuda.get_rng_state(), before)


def test_an_old_checkpoint_goes_by_its_name_first(folder, monkeypatch):
    """Killed in the midst of removing it, a run has no half checkpoint, but a leftover."""

    def killed(path, **_):
        if path.exists():
            (path / "state.json").unlink()
            raise KeyboardInterrupt

    monkeypatch.setattr(atomic.shutil, "rmtree", killed)
    monkeypatch.setattr(checkpoint, "KEPT", 1)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(folder, *tiny(), None, State(Progress(step=30), {}, "", {}))
    monkeypatch.undo()
    assert all(find_damage(path) is None for path in step_folders(folder))
    assert not (folder / "step-00000010").exists()
    atomic.remove_leftovers(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["step-00000020", "step-00000030"]


@pytest.mark.parametrize("number", [28, 27])
def test_a_full_disk_is_named_and_leaves_all_as_it_was(folder, monkeypatch, number):
    """As Python tells of it, and as safetensors does."""
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    real, written = checkpoint.save_file, []

    def full(tensors, path):
        written.append(path)
        if len(written) == 1:
            return real(tensors, path)
        if number == 28:
            raise OSError(number, os.strerror(number))
        raise RuntimeError(f"Error while serializing: I/O error: {os.strerror(number)} (os error {number})")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(UserError, match=r"no space to write it: about 0\.0 MB needed, [\d,.]+ MB free"):
        save_checkpoint(folder, *tiny(), None, State(Progress(step=30), {}, "", {}))
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before


def test_what_does_not_fit_is_not_begun(folder, monkeypatch):
    monkeypatch.setattr(atomic.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 0))
    monkeypatch.setattr(checkpoint, "save_file", None)
    with pytest.raises(UserError, match=r"needed, 0\.0 MB free"):
        save_checkpoint(folder, *tiny(), None, State(Progress(step=30), {}, "", {}))


def test_other_errors_stay_what_they_are(tmp_path):
    with pytest.raises(OSError, match="else"), write_directory(tmp_path / "new"):
        raise OSError(5, "something else")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_replaced_is_there_all_the_time_but_a_moment(tmp_path):
    for text in ("first", "second"):
        with write_directory(tmp_path / "folder") as folder:
            (folder / "file").write_text(text)
            write_checksums(folder)
    assert (tmp_path / "folder" / "file").read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_what_was_about_to_be_replaced_is_put_back(tmp_path):
    """Killed between the two renames of a replacement."""
    (tmp_path / "step-00000010.old.partial").mkdir()
    (tmp_path / "step-00000010.partial").mkdir()
    (tmp_path / "step-00000020.old.partial").mkdir()
    (tmp_path / "step-00000020").mkdir()
    (tmp_path / "step-00000010.old.partial" / "file").touch()
    atomic.remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000010", "step-00000020"]
    assert (tmp_path / "step-00000010" / "file").exists()


def test_a_run_that_lost_its_checkpoints_is_not_begun_anew(tmp_path):
    (tmp_path / "recipe.yaml").write_text(MARK)
    (tmp_path / "models" / "step-00000010").mkdir(parents=True)
    with pytest.raises(UserError, match="has models but no checkpoint"):
        open_run(tmp_path, print)
    assert (tmp_path / "models" / "step-00000010").is_dir()
    assert (tmp_path / "recipe.yaml").exists()


@pytest.mark.parametrize(("number", "remedy"), [(28, "make room"), (27, r"raise what limits it \(File too large\)")])
def test_a_file_that_does_not_fit_is_named_and_stays_as_it_was(tmp_path, monkeypatch, number, remedy):
    file = tmp_path / "best.json"
    atomic.write_file(file, b"before")

    def full(path):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(atomic, "sync", full)
    with pytest.raises(UserError, match=rf"best\.json: no space to write it: .* free; .*{remedy}"):
        atomic.write_file(file, b"after")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"before"]


@pytest.mark.skipif(sys.platform != "linux", reason="names of other systems are text")
def test_a_run_with_a_name_that_is_no_text_is_refused(tmp_path):
    with pytest.raises(UserError, match="not UTF-8"), training_lock(Path(os.fsdecode(bytes(tmp_path) + b"/run\xff"))):
        pass


def test_a_second_trainer_is_refused_as_long_as_the_first_lives(tmp_path):
    run = tmp_path / "run"
    program = textwrap.dedent(f"""
        from pathlib import Path
        from headway.training.run_directory import MARK, training_lock, open_run
        with training_lock(Path({str(run)!r})):
            print("in", flush=True)
            input()
    """)
    first = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert first.stdout
    assert first.stdout.readline() == b"in\n"
    with pytest.raises(UserError, match="another process trains in this folder"), training_lock(run):
        pass
    first.kill()
    first.communicate()
    with training_lock(run):
        assert Path(run).is_dir()
