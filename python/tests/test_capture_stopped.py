"""Captures of which something that was named is missing, since it never came.

Bug class: a program that was stopped, or a function that was inlined, is blamed on what the user
has said of the program.
"""

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.usefixtures("tools")


def test_a_function_that_was_inlined_is_told(real, programs, tmp_path):
    program = (str(programs("ledger")), str(tmp_path / "pool"), "9", "by")
    where = ("capture", "--to", "x.gvt", "--pm-file", "*/pool")
    done = real(*where, "--tx", "tx", "--", *program)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Among the symbols, and never entered: tx." in done.stderr
    assert "has probably inlined" in done.stderr
    program = (str(programs("ledger")), str(tmp_path / "pool"), "9")
    done = real(*where, "--tx", "tx", "--tx", "inlined", "--", *program)
    assert done.returncode == 0, done.stderr
    assert "inlined: among the symbols, and never entered" in done.stderr


def stopped(environment, folder, program, started, send=os.kill):
    """What a capture says that is stopped when `started` says so."""
    command = [sys.executable, "-m", "graven", "capture", "--to", "x.gvt"]
    what = ("--pm-file", "*/pool", "--tx", "tx")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(
        [*command, *what, "--", *program],
        env=environment,
        cwd=folder,
        start_new_session=True,
        **pipes,
    )
    ends = time.monotonic() + 60
    while not started():
        assert time.monotonic() < ends
        time.sleep(0.05)
    send(process.pid, signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    return said


@pytest.mark.parametrize("send", [os.kill, os.killpg])
def test_a_capture_that_is_stopped_before_anything_is_mapped_says_so(environment, tmp_path, send):
    started = tmp_path / "started"
    program = ("/bin/sh", "-c", f"touch {started}; exec sleep 60")
    said = stopped(environment, tmp_path, program, started.exists, send)
    assert "stopped by SIGTERM" in said
    assert "mapped no file" not in said


def test_a_capture_that_is_stopped_before_a_transaction_says_so(environment, programs, tmp_path):
    program = (str(programs("ledger")), str(tmp_path / "pool"), "wait")
    mapped = lambda: list(tmp_path.glob(".x.gvt.*/region-0.before"))  # noqa: E731
    said = stopped(environment, tmp_path, program, mapped)
    assert "stopped by SIGTERM" in said
    assert "inlined" not in said
    assert not (tmp_path / "x.gvt").exists()


def test_a_program_that_a_signal_has_ended_is_not_said_to_map_nothing(real):
    kill = ("/bin/sh", "-c", "kill -TERM $$")
    done = real("capture", "--to", "x.gvt", "--pm-file", "*/x", "--", *kill)
    assert done.returncode == 2
    assert "was stopped by SIGTERM, and may not have come so far" in done.stderr
