"""Ctrl-C before anything can be saved."""

import os
import signal
import time
from contextlib import suppress

import pytest
import typer

from headway.cli.train import _telling_how_to_go_on


def test_a_ctrl_c_that_a_library_swallows_ends_the_program_all_the_same(tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    done = []

    def choose():
        with _telling_how_to_go_on(tmp_path, "train --resume RUN"):
            with suppress(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.5)
            done.append("the work after it")

    try:
        with pytest.raises(typer.Exit) as caught:
            choose()
        assert (caught.value.exit_code, done) == (130, ["the work after it"])
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as nohup does
        choose()
        assert len(done) == 2
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_ctrl_c_that_a_library_makes_another_error_of_ends_the_program_as_usual(tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def choose():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
        except KeyboardInterrupt as error:
            raise ValueError("Error calling function `_serialized`") from error

    try:
        with pytest.raises(typer.Exit) as caught, _telling_how_to_go_on(tmp_path, "train --resume RUN"):
            choose()
        assert caught.value.exit_code == 130
        with pytest.raises(ValueError, match="of its own"), _telling_how_to_go_on(tmp_path, "train --resume RUN"):
            raise ValueError("of its own")
    finally:
        signal.signal(signal.SIGINT, before)
