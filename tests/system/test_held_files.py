"""The fixture `held_files_stay` refuses what Windows refuses."""

import mmap
import os
import shutil
from threading import Event, Thread

import pytest

from tests.held_files import is_held


@pytest.mark.usefixtures("held_files_stay")
@pytest.mark.parametrize("how", ["opened", "mapped"])
def test_what_is_held_stays_until_it_is_let_go(tmp_path, how):
    folder = tmp_path / "folder"
    folder.mkdir()
    file, other = folder / "file", tmp_path / "other"
    file.write_text("held")
    other.write_text("free")
    stream = open(file, "rb")  # noqa: SIM115
    memory = None
    if how == "mapped":
        memory = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        stream.close()
    for change in (
        file.unlink,
        lambda: file.rename(tmp_path / "new"),
        lambda: other.replace(file),
        lambda: folder.rename(tmp_path / "new"),
        lambda: shutil.rmtree(folder),
    ):
        with pytest.raises(PermissionError, match="being used"):
            change()
    shutil.rmtree(folder, ignore_errors=True)
    assert file.read_text() == "held"
    other.rename(tmp_path / "another").unlink()
    stream.close()
    if memory is not None:
        memory.close()
    shutil.rmtree(folder)
    assert not folder.exists()


def test_files_that_another_thread_closes_meanwhile_are_no_error():
    done = Event()

    def open_and_close() -> None:
        while not done.is_set():
            os.close(os.open(os.devnull, os.O_RDONLY))

    thread = Thread(target=open_and_close)
    thread.start()
    try:
        with open(__file__, "rb"):
            assert all(is_held(__file__) for _ in range(300))
    finally:
        done.set()
        thread.join()
