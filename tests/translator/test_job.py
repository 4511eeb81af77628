"""A job that is killed anywhere goes on, and its file is that of an undisturbed one to the byte."""

import gzip
import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from headway.data.compressed import open_bytes
from headway.data.lines import Line
from headway.errors import UserError
from headway.storage import atomic
from headway.translator import job as job_module
from headway.translator.job import Job
from headway.translator.lines import JobNotice, Written

IDENTITY = {"model": "m", "options": {"beam_size": 2}}
LINES = [Line(number, f"line {number}") for number in range(1, 24)]
AT_MOST = 4


@pytest.fixture(autouse=True)
def _short_chunks(monkeypatch):
    monkeypatch.setattr("headway.data.lines.LINES_AT_ONCE", AT_MOST)


class Killed(BaseException):
    """As SIGKILL: nobody handles it."""


def translate(lines: list[Line]) -> Written:
    """Tells in which company a line was translated: the chunks must be the same as well."""
    company = f"{lines[0].number}-{lines[-1].number}"
    failed = [line.number for line in lines if line.number % 10 == 0]
    notices = [JobNotice(f"line {number}", "were left blank") for number in failed]
    return Written("".join(f"{line.text} of {company}\n" for line in lines), notices, len(failed))


def run(
    output: Path, *, resume: bool = False, identity=IDENTITY, lines=LINES, notice=lambda _: None, in_place=False
) -> int:
    job = Job(output, identity, in_place=in_place)
    return job.run(iter(lines), translate, resume=resume, notice=notice)


@pytest.mark.parametrize("at_once", [2, 3])
def test_chunks_that_are_translated_at_the_same_time_are_written_in_order(tmp_path, at_once):
    started = threading.Barrier(at_once)

    def overtaken(lines: list[Line]) -> Written:
        if lines[0].number <= at_once * AT_MOST:  # of the first chunks none ends before all have begun
            started.wait(10)
            time.sleep(0.02 * (lines[0].number == 1))
        return translate(lines)

    notices = []
    Job(tmp_path / "out", IDENTITY).run(iter(LINES), overtaken, resume=False, notice=notices.append, at_once=at_once)
    run(tmp_path / "alone")
    assert (tmp_path / "out").read_bytes() == (tmp_path / "alone").read_bytes()
    assert [one.text for one in notices] == ["line 10", "line 20"]


def test_one_chunk_at_a_time_is_translated_where_an_interrupt_arrives(tmp_path):
    threads = set()

    def noting(lines: list[Line]) -> Written:
        threads.add(threading.current_thread())
        return translate(lines)

    Job(tmp_path / "out", IDENTITY).run(iter(LINES), noting, resume=False, notice=lambda _: None)
    assert threads == {threading.current_thread()}


def test_an_error_in_a_chunk_leaves_what_was_written_before_it(tmp_path):
    def failing(lines: list[Line]) -> Written:
        if lines[0].number > 2 * AT_MOST:
            raise UserError("no more")
        return translate(lines)

    with pytest.raises(UserError, match="no more"):
        Job(tmp_path / "out", IDENTITY).run(iter(LINES), failing, resume=False, notice=lambda _: None, at_once=2)
    assert run(tmp_path / "out", resume=True) == 2
    run(tmp_path / "alone")
    assert (tmp_path / "out").read_bytes() == (tmp_path / "alone").read_bytes()


def test_a_job_that_ends_early_stops_the_chunks_that_are_under_way(tmp_path):
    stopped, both = threading.Event(), threading.Barrier(2)

    def waiting(lines: list[Line]) -> Written:
        both.wait(10)
        if lines[0].number == 1:
            raise Killed
        assert stopped.wait(10)
        raise KeyboardInterrupt

    with pytest.raises(Killed):
        Job(tmp_path / "out", IDENTITY).run(
            iter(LINES), waiting, resume=False, notice=lambda _: None, at_once=2, stop=stopped.set
        )
    assert stopped.is_set()


def content(output: Path) -> str:
    with open_bytes(output) as stream:
        return stream.read().decode()


@pytest.mark.usefixtures("held_files_stay")
@pytest.mark.parametrize("name", ["out", "out.gz", "out.xz", "out.zst"])
def test_an_undisturbed_job(tmp_path, name):
    notices = []
    assert run(tmp_path / name, notice=notices.append) == 2
    assert [one.text for one in notices] == ["line 10", "line 20"]
    wanted = "".join(translate(LINES[start : start + AT_MOST]).text for start in range(0, len(LINES), AT_MOST))
    assert content(tmp_path / name) == wanted
    assert [file.name for file in tmp_path.iterdir()] == [name]


def interrupted(monkeypatch, output: Path, call: int, junk: bytes) -> bool:
    """Runs the job up to its n-th call of what makes things last; False where it has fewer. What was written and not
    yet counted may be on the disk in part."""
    count = 0

    def counted(function, after):
        def called(*arguments, **options):
            nonlocal count
            count += 1
            now = count == call
            if now and not after:
                raise Killed
            result = function(*arguments, **options)
            if now:
                raise Killed
            return result

        return called

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", counted(os.fsync, after=False))
        patch.setattr(job_module, "write_json", counted(job_module.write_json, after=True))
        patch.setattr(Path, "replace", counted(Path.replace, after=call % 2 == 0))
        patch.setattr(Path, "unlink", counted(Path.unlink, after=False))
        patch.setattr(Job, "_leave", lambda *_: None)  # nobody leaves in order
        try:
            run(output, resume=True)
        except Killed:
            partial = output.with_name(f"{output.name}.partial")
            if partial.exists() and junk:
                with open(partial, "ab") as file:
                    file.write(junk)
            return True
    return False


@pytest.mark.parametrize("name", ["out", "out.gz"])
@pytest.mark.parametrize("junk", [b"", b"half a li"])
def test_a_kill_at_every_moment(tmp_path, monkeypatch, name, junk):
    whole = tmp_path / "undisturbed" / name
    whole.parent.mkdir()
    run(whole)
    call = 0
    while True:
        call += 1
        output = tmp_path / str(call) / name
        output.parent.mkdir()
        killed = interrupted(monkeypatch, output, call, junk)
        assert run(output, resume=True) == 2
        assert output.read_bytes() == whole.read_bytes()
        assert sorted(file.name for file in output.parent.iterdir()) == [name, f"{name}.done.json"]
        if not killed:
            break
    assert call > 30


def test_twenty_real_kills(tmp_path):
    run(tmp_path / "whole.gz", lines=LINES * 20)
    output, chance = tmp_path / "out.gz", random.Random(3)
    for _ in range(20):
        child = os.fork()
        if child == 0:
            slow = (line for line in LINES * 20 if not time.sleep(0.0005))
            run(output, resume=True, lines=slow)
            os._exit(0)
        time.sleep(chance.random() * 0.25)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if output.exists():
            break
    assert run(output, resume=True, lines=LINES * 20) == 40
    assert output.read_bytes() == (tmp_path / "whole.gz").read_bytes()


def begun(output: Path) -> None:
    """Leaves three chunks done."""

    def lines():
        yield from LINES[: 3 * AT_MOST]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(output, lines=lines())


@pytest.mark.usefixtures("held_files_stay")
def test_what_ended_a_job_leaves_it_to_go_on(tmp_path):
    said = []

    def lines():
        yield from LINES[:6]
        raise UserError("line 7: is not UTF-8")

    with pytest.raises(UserError, match="line 7"):
        run(tmp_path / "out", lines=lines(), notice=said.append)
    assert "4 lines are done; the same command with --resume continues" in said[-1].text
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.partial", "out.partial.json"]
    assert run(tmp_path / "out", resume=True, notice=said.append) == 2
    assert "continues after line 4" in said[-3].text
    with pytest.raises(UserError, match="line 7"):
        run(tmp_path / "other", lines=iter_raising())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out", "out.done.json"]


@pytest.mark.usefixtures("held_files_stay")
def test_a_job_that_is_complete_is_not_done_again(tmp_path):
    said = []
    assert run(tmp_path / "out", resume=True) == 2
    whole = (tmp_path / "out").read_bytes()
    assert run(tmp_path / "out", resume=True, notice=said.append) == 2
    assert [one.text for one in said] == [f"notice: {tmp_path / 'out'}: is complete already"]
    assert (tmp_path / "out").read_bytes() == whole
    (tmp_path / "out").write_text("what somebody else wrote\n")
    assert run(tmp_path / "out", resume=True) == 2
    assert (tmp_path / "out").read_bytes() == whole
    with pytest.raises(UserError, match="line 7"):  # without --resume everything begins anew
        run(tmp_path / "out", lines=iter_raising())
    assert not (tmp_path / "out.done.json").exists()


OTHER_INPUTS = [
    [*LINES[:-1], Line(23, "line 24")],
    [Line(1, "line 2"), *LINES[1:]],
    [*LINES, Line(24, "line 24")],
    LINES[:-1],
    [*LINES[:5], Line(6, "", "is not JSON"), *LINES[6:]],
    [],
]


@pytest.mark.parametrize("lines", OTHER_INPUTS)
@pytest.mark.parametrize("killed", [False, True])
def test_what_is_complete_is_not_taken_for_the_translation_of_another_input(tmp_path, monkeypatch, lines, killed):
    """killed: when the output had its name, and before the record was written."""
    output = tmp_path / "out"
    with monkeypatch.context() as patch:
        if killed:
            patch.setattr(Job, "_end", lambda *_, **__: None)
        run(output, resume=True)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(UserError, match=r"out: is complete, but the input has changed since then; give .* or start"):
        run(output, resume=True, lines=lines)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert run(output, resume=True) == 2
    run(output, lines=lines)
    assert len(content(output).splitlines()) == len(lines)


def test_what_is_complete_is_not_replaced_by_another_job(tmp_path):
    run(tmp_path / "out", resume=True)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(UserError, match=r"out\.done\.json: was begun with other settings: model \(\S+ -> \S+\); give"):
        run(tmp_path / "out", resume=True, identity={**IDENTITY, "model": "other"})
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_record_of_an_earlier_version_has_no_hash_of_the_input(tmp_path):
    run(tmp_path / "out", resume=True)
    record = tmp_path / "out.done.json"
    document = json.loads(record.read_text())
    del document["input_sha256"]
    record.write_text(json.dumps(document))
    assert run(tmp_path / "out", resume=True, lines=iter_raising()) == 2


@pytest.mark.usefixtures("held_files_stay")
def test_a_file_that_was_translated_into_itself_is_not_translated_again(tmp_path):
    (tmp_path / "out").write_text("the input\n")
    assert run(tmp_path / "out", resume=True, in_place=True) == 2
    whole = (tmp_path / "out").read_bytes()
    assert run(tmp_path / "out", resume=True, in_place=True, lines=iter_raising()) == 2
    assert (tmp_path / "out").read_bytes() == whole


def iter_raising():
    raise UserError("line 7: is not UTF-8")
    yield


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "other"}, r"was begun with other settings: model \("),
        ({"options": {"beam_size": 3}}, r"options\.beam_size \(\S+ -> 3\); give the same as before, or start again"),
    ],
)
def test_another_job_is_refused(tmp_path, change, message):
    begun(tmp_path / "out")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(UserError, match=message):
        run(tmp_path / "out", resume=True, identity={**IDENTITY, **change})
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_an_input_that_is_refused_brings_no_notice_that_the_job_can_continue(tmp_path):
    begun(tmp_path / "out")
    notices = []
    with pytest.raises(UserError, match="not those that were translated"):
        run(tmp_path / "out", resume=True, lines=[Line(1, "another"), *LINES[1:]], notice=notices.append)
    assert not any("continues" in one.text and "done" in one.text for one in notices)


def test_another_input_is_refused(tmp_path):
    begun(tmp_path / "out")
    other = [*LINES[:5], Line(6, "another"), *LINES[6:]]
    for lines in (other, LINES[:8], []):
        with pytest.raises(UserError, match="the first 12 lines of the input are not those that were translated"):
            run(tmp_path / "out", resume=True, lines=lines)
    assert run(tmp_path / "out", resume=True) == 2


def test_a_partial_file_that_lost_bytes_is_refused(tmp_path):
    begun(tmp_path / "out")
    partial = tmp_path / "out.partial"
    partial.write_bytes(partial.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"has \d+ bytes, but out.partial.json counts \d+; start again"):
        run(tmp_path / "out", resume=True)


def test_a_journal_of_something_else_is_refused(tmp_path):
    begun(tmp_path / "out")
    journal = tmp_path / "out.partial.json"
    document = json.loads(journal.read_text())
    for text, message in (
        ("{}", "isn't a journal of this version"),
        ("[", "is not JSON"),
        (json.dumps({**document, "format_version": 9}), "another version of headway"),
    ):
        journal.write_text(text)
        with pytest.raises(UserError, match=message):
            run(tmp_path / "out", resume=True)


@pytest.mark.usefixtures("held_files_stay")
def test_without_resume_a_job_begins_anew(tmp_path):
    begun(tmp_path / "out")
    assert run(tmp_path / "out") == 2
    assert len(content(tmp_path / "out").splitlines()) == len(LINES)


def test_the_journal_of_before_goes_before_its_data(tmp_path, monkeypatch):
    begun(tmp_path / "out")

    def kill(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(job_module, "write_json", kill)
        patch.setattr(Job, "_leave", lambda *_: None)
        with pytest.raises(Killed):
            run(tmp_path / "out")
    assert run(tmp_path / "out", resume=True) == 2
    assert content(tmp_path / "out").splitlines()[0] == "line 1 of 1-4"


def test_one_process_at_a_time(tmp_path):
    def lines():
        yield from LINES[:6]
        with pytest.raises(UserError, match="another process is writing it"):
            run(tmp_path / "out", resume=True)
        yield from LINES[6:]

    assert run(tmp_path / "out", lines=lines()) == 2


def test_data_is_on_the_disk_before_it_is_counted(tmp_path, monkeypatch):
    """The journal is written only when the partial file's bytes were synced after they were written."""
    synced: dict[int, int] = {}
    fsync = os.fsync

    def watched(descriptor):
        status = os.fstat(descriptor)
        synced[status.st_ino] = status.st_size
        fsync(descriptor)

    def checked(path, document):
        partial = tmp_path / "out.gz.partial"
        assert synced[partial.stat().st_ino] == partial.stat().st_size == document["done"]["output_bytes"]
        assert gzip.decompress(partial.read_bytes()).endswith(b"\n")
        atomic.write_json(path, document)

    monkeypatch.setattr(os, "fsync", watched)
    monkeypatch.setattr(job_module, "write_json", checked)
    run(tmp_path / "out.gz")
