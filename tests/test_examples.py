"""The scripts of examples/: each runs, is short, and does what it says."""

import json
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

from headway.decoding import TorchEngine, greedy

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = sorted(file.stem for file in EXAMPLES.glob("*.py"))


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    yield
    for name in NAMES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", NAMES)
def test_a_script_is_short_and_prints_when_it_is_run(name, capsys):
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    if name == "curves":  # follows a run without end
        return
    exec(compile(text, name, "exec"), {"__name__": "__main__"})
    [line] = capsys.readouterr().out.splitlines()
    if name == "own_loop":
        assert int(re.findall(r"(\d+)%", line)[0]) > 90


def test_a_step_lowers_the_loss():
    before, after = import_module("one_step").main()
    assert after < before


def test_a_few_steps_of_the_loop_do_not_reverse():
    """As all of its steps do, when it is run."""
    assert import_module("own_loop").main(steps=20) < 0.5


def test_a_beam_finds_what_greedy_search_misses():
    main = import_module("toy_engine").main
    assert main(1).startswith("the cat sleeps")
    assert main(2).startswith("the dog barks")


def test_rotary_scores_depend_on_distance_alone():
    """The same rows one place later have the same scores; without rotation they would be equal at every distance."""
    core, x = import_module("rope").Rotary(num_heads=2), torch.randn(1, 1, 16).expand(1, 6, 16)
    scores = torch.stack(import_module("rope").rotate(x, 2).view(6, 2, 8).unbind(1))  # (heads, place, d_head)
    products = scores @ scores.mT
    assert torch.allclose(products[:, :-1, :-1], products[:, 1:, 1:], atol=1e-5)
    assert not torch.allclose(products[:, 0, 0], products[:, 0, 1], atol=1e-2)
    assert core(x, x, x)[0].shape == x.shape


def test_rotary_positions_are_in_every_self_attention():
    model = import_module("rope").main()
    source, target = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[2, 8, 9]])
    cores = [layer.self_attention.core for layer in (*model.encoder.layers, *model.decoder.layers)]
    assert {type(core).__name__ for core in cores} == {"Rotary"}
    assert torch.isfinite(model(source, target)).all()


def test_a_step_of_search_rotates_its_query_to_its_place():
    """Greedy search with a cache finds the tokens that whole passes find likeliest."""
    model = import_module("rope").main().eval()
    source = torch.randint(4, 100, (1, 9))
    [found] = greedy(TorchEngine(model), source, [8])
    read = torch.tensor([[2, *found.ids]])
    with torch.no_grad():
        logits = model(source, read)[0]
    logits[:, :3] = -torch.inf  # never generated
    logits[0, 3] = -torch.inf  # no translation is empty
    assert logits.argmax(-1).tolist()[: len(found.ids)] == found.ids


def test_the_focal_loss_is_between_nothing_and_cross_entropy():
    focal, plain = import_module("own_loss").main()
    assert 0 < focal < plain


def test_curves_are_those_of_the_log(tmp_path):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    entries = [
        {"step": 1, "epoch": 1, "loss": 3.0},
        {"step": 2, "epoch": 1, "loss": 2.5},
        {"step": 2, "valid_bleu": 7.0},
    ]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    import_module("curves").main(tmp_path, follow=False)
    found = events.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in found.Scalars("loss")] == [(1, 3.0), (2, 2.5)]
    assert [(event.step, event.value) for event in found.Scalars("valid_bleu")] == [(2, 7.0)]
