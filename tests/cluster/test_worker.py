"""A worker's shard is what the single process writes for these lines, whole or not there."""

from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from headway.cli.files import input_lines
from headway.cluster import engine
from headway.cluster.manifest import open_manifest
from headway.cluster.worker import Worker
from headway.data.lines import LINES_AT_ONCE, Layout
from headway.errors import UserError
from headway.storage import save_model
from tests.cluster.conftest import texts
from tests.cluster.works import work
from tests.translator.test_translator import tagged_translator

pytestmark = pytest.mark.usefixtures("held_files_stay")


@pytest.fixture
def source(tmp_path):
    lines = texts(LINES_AT_ONCE + 20, 1)
    lines[5], lines[LINES_AT_ONCE + 3] = "x " * 300, "poison"
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture
def opened(tmp_path):
    """A function from work and source to a worker and its manifest."""
    with ExitStack() as stack:

        def open_(given, source):
            made = open_manifest(tmp_path / "out", [source], given.identity(), lambda _: None)
            worker = Worker(given, made)
            stack.enter_context(closing(worker._reader))
            return worker, made

        yield open_


def test_shards_are_what_a_single_process_writes(model, source, opened):
    worker, made = opened(work(model), source)
    outcomes = [worker.translate(shard) for shard in reversed(made.shards)]
    assert [outcome.error for outcome in outcomes] == ["", ""]
    assert f"{source}: line 6 has" in next(one.text for one in outcomes[1].notices if " has " in one.text)
    written = "".join((made.folder / f"{shard.name}.txt").read_text() for shard in made.shards)
    lines = list(Layout().lines(source.read_text().splitlines()))
    assert written == work(model).load().translate(lines).text
    assert made.failed() == 1
    assert {file.suffix for file in made.folder.iterdir()} == {".json", ".notices", ".txt"}


def test_a_poisoned_line_costs_itself_alone(model, source, opened, tmp_path):
    (tmp_path / "pids").mkdir()
    worker, made = opened(work(model, tmp_path / "pids"), source)
    outcome = worker.translate(made.shards[1])
    assert any(
        f"line {LINES_AT_ONCE + 4} can't be translated (FloatingPointError" in one.text for one in outcome.notices
    )
    found = (made.folder / f"{made.shards[1].name}.txt").read_text().splitlines()
    healthy = work(model).load().translate(list(Layout().lines(made.shards[1].span.read(source)))).text.splitlines()
    assert found[3] == ""
    assert healthy[3]
    assert found[:3] + found[4:] == healthy[:3] + healthy[4:]


def test_a_line_that_lacks_its_tag_costs_itself_alone(opened, tmp_path):
    save_model(tmp_path / "tagged", tagged_translator(max_length=30).stored)
    path = tmp_path / "in.txt"
    path.write_text(">>ko<< the cat\n" * LINES_AT_ONCE + "the cat\n>>de<< a dog\n")
    worker, made = opened(work(tmp_path / "tagged"), path)
    outcome = worker.translate(made.shards[1])
    assert outcome.error == ""
    assert outcome.notices[0].text.startswith(
        f"{path}: line {LINES_AT_ONCE + 1} doesn't begin with the tag of a target"
    )
    written = (made.folder / f"{made.shards[1].name}.txt").read_text()
    assert [bool(line) for line in written.splitlines()] == [False, True]
    assert made.failed() == 1


def test_a_shard_that_is_there_stays(model, source, opened):
    worker, made = opened(work(model), source)
    file = made.folder / f"{made.shards[0].name}.txt"
    file.write_text("mine")
    assert worker.translate(made.shards[0]).error == ""
    assert file.read_text() == "mine"


def test_a_shard_that_killed_three_workers_is_given_up(model, source, opened, monkeypatch):
    worker, made = opened(work(model), source)

    class Killed(BaseException):
        pass

    def kill(*_):
        raise Killed

    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", lambda *_, **__: None)  # nobody tidies up
            patch.setattr(worker, "_write", kill)
            with pytest.raises(Killed):
                worker.translate(made.shards[1])
    assert worker.translate(made.shards[1]).error == "killed its worker 3 times"
    assert worker.translate(made.shards[0]).error == ""


def test_an_error_leaves_nothing_and_is_told(model, source, opened, monkeypatch):
    worker, made = opened(work(model), source)
    monkeypatch.setattr("headway.cluster.worker.sync", lambda _: 1 / 0)
    outcome = worker.translate(made.shards[1])
    assert (outcome.error, outcome.for_user) == ("ZeroDivisionError: division by zero", False)
    assert [file.name for file in made.folder.iterdir()] == ["manifest.json"]
    with open(source, "a") as file:
        file.write("more\n")
    outcome = worker.translate(made.shards[1])
    assert outcome.for_user
    assert "no longer has the" in outcome.error


def test_inputs_that_change_meanwhile_are_told(model, source, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "_ray", lambda: SimpleNamespace(shutdown=lambda: None))
    monkeypatch.setattr(engine, "_connect", lambda *_: None)
    monkeypatch.setattr(engine, "_translate_missing", lambda *_: source.write_text("another\n"))
    with pytest.raises(UserError, match=r"in\.txt: was changed while it was read"):
        engine.translate_on_cluster(work(model), [source], tmp_path / "out", "local", 1, lambda _: None)


def test_another_model_on_a_machine_is_refused(model, source, tmp_path):
    given = work(model)
    made = open_manifest(tmp_path / "out", [source], given.identity(), lambda _: None)
    with pytest.raises(UserError, match="is a different model on this machine"):
        Worker(given, replace(made, models=["0" * 64]))


def test_columns_are_those_of_a_line(model, opened, tmp_path):
    path = tmp_path / "in.tsv"
    path.write_text("1\tthe cat\n2\n3\ta dog\n")
    worker, made = opened(replace(work(model), layout=Layout(column=2)), path)
    outcome = worker.translate(made.shards[0])
    assert any("line 2 has only 1 column" in one.text for one in outcome.notices)
    assert (made.folder / f"{made.shards[0].name}.txt").read_text().splitlines()[1] == ""


def test_quoted_columns_are_those_of_a_single_process(model, opened, tmp_path):
    path = tmp_path / "in.tsv"
    path.write_text('"1"\t"the ""cat"" and a\tdog"\n' * 20)
    given = replace(work(model), layout=Layout(column=2))
    worker, made = opened(given, path)
    assert not worker.translate(made.shards[0]).error
    lines = list(input_lines(str(path), given.layout))
    assert lines[0].text == 'the "cat" and a\tdog'
    assert (made.folder / f"{made.shards[0].name}.txt").read_text() == given.load().translate(lines).text
