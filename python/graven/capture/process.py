"""Running a program under QEMU, with the plugin that traces it, and clients of one that serves."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from graven.basics import signals
from graven.basics.errors import CaptureError
from graven.capture.guests import Guest, guest_of, sysroot_of
from graven.capture.request import Request, Served

PLUGIN = Path(__file__).parent.with_name("_capture.so")
"""Plugin that QEMU loads. A release's wheel has it, and `make install` builds it in a checkout."""

SERVES_SECONDS = 60
"""Longest time until a program that serves listens."""

CLIENT_SECONDS = 600
"""Longest time that each of its clients takes."""

STDERR = 2
"""The descriptor of standard error, wherever Python has its own."""


def command(arguments: Sequence[str], sysroot: str | PathLike[str] | None = None) -> list[str]:
    """QEMU, and the program that it is to run with its arguments.

    Args:
        arguments: The program and its arguments.
        sysroot: The folder that has its loader and libraries, if `/` has not.

    Raises:
        CaptureError: QEMU, the plugin or the program is not there, or is not what it should be.
    """
    if not arguments:
        raise CaptureError("there is no program to run")
    if not PLUGIN.exists():
        raise CaptureError(
            f"{PLUGIN} is missing: `make install` in a checkout builds it, "
            "and the wheel of a release has it"
        )
    guest, resolved = _resolved(arguments)
    qemu = shutil.which(guest.qemu)
    if qemu is None:
        raise CaptureError(
            f"{guest.qemu} is not installed: it is in the distribution's package qemu-user "
            "(Debian, Ubuntu: apt install qemu-user; Fedora: dnf install qemu-user)"
        )
    given = None if sysroot is None else Path(sysroot)
    folder = sysroot_of(Path(resolved[0]), guest, given)
    libraries = [] if folder is None else ["-L", str(folder.absolute())]
    return [qemu, *guest.options, *libraries, *resolved]


def _resolved(arguments: Sequence[str]) -> tuple[Guest, list[str]]:
    """A program that QEMU can run, and its arguments: of a script, what interprets it."""
    found = shutil.which(arguments[0])
    if found is None:
        raise CaptureError(f"{arguments[0]}: there is no such program, or it is not executable")
    # Not what links lead to: programs look at what they are called.
    path = Path(found).absolute()
    with path.open("rb") as file:
        head = file.read(256)
    if head.startswith(b"#!"):
        words = head[2:].split(b"\n")[0].decode(errors="replace").split(None, 1)
        if not words:
            raise CaptureError(f"{path}: a script that names no interpreter")
        if Path(words[0]).name == "env" and len(words) > 1:
            words = words[1].split(None, 1)
        return _resolved([*words, str(path), *arguments[1:]])
    if not head.startswith(b"\x7fELF"):
        raise CaptureError(f"{path} is neither an executable (ELF) nor a script")
    return guest_of(path, head), [str(path), *arguments[1:]]


@dataclass(frozen=True)
class Ended:
    """End of a program.

    Attributes:
        exit_code: Exit code; negative: the signal that ended it.
        interrupted: Interrupt that has asked to stop it while it ran, if there was one.
    """

    exit_code: int
    interrupted: KeyboardInterrupt | None = None

    def words(self) -> str:
        """Says how, if not well; follows what else there is to say."""
        if self.exit_code >= 0:
            return f"; the program ended with exit code {self.exit_code}" if self.exit_code else ""
        try:
            name = signal.Signals(-self.exit_code).name
        except ValueError:
            name = f"signal {-self.exit_code}"
        return f"; the program was stopped by {name}, and may not have come so far"


def execute(command: list[str], folder: Path, request: Request) -> Ended:
    """Runs it; an interrupt goes to the program, which is waited for."""
    plugin = f"{PLUGIN},dir={str(folder).replace(',', ',,')}"
    command = [command[0], "-plugin", plugin, *command[1:]]
    # Symbols are bound at the start, so that a call comes to its function at once.
    environment = {**os.environ, **request.environment, "LD_BIND_NOW": "1"}
    with tempfile.TemporaryFile() as file:
        file.write(request.input or b"")
        file.seek(0)
        stdin = None if request.input is None else file
        # What it prints is no result of a command that prints what was captured.
        process = subprocess.Popen(command, env=environment, stdin=stdin, stdout=STDERR)
    if request.served is not None:
        _ask(process, request.served)
    interrupted = None
    while True:
        try:
            return Ended(process.wait(), interrupted)
        except KeyboardInterrupt as interrupt:
            interrupted = interrupt
            is_stopped = isinstance(interrupt, signals.Stopped)
            # A terminal has sent Ctrl-C to the program, too.
            if process.poll() is None and (is_stopped or not sys.stdin.isatty()):
                process.send_signal(signal.SIGTERM if is_stopped else signal.SIGINT)


def _ask(process: subprocess.Popen[bytes], served: Served) -> None:
    """Runs the clients of a program that serves, once it does.

    Raises:
        CaptureError: it does not serve, or a client fails; the program has ended.
    """
    try:
        ends = time.monotonic() + SERVES_SECONDS
        while not _listens(served.address):
            if process.poll() is not None:
                raise CaptureError(f"the program has ended before it listened at {served.address}")
            if time.monotonic() > ends:
                raise CaptureError(f"the program does not listen at {served.address}")
            time.sleep(0.05)
        for client in served.clients:
            done = subprocess.run(client, stdout=STDERR, timeout=CLIENT_SECONDS, check=False)
            if done.returncode:
                raise CaptureError(f"{client[0]} ended with exit code {done.returncode}")
    except BaseException as error:
        process.kill()
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            seconds = f"{CLIENT_SECONDS} s"
            raise CaptureError(f"{error.cmd[0]} has not ended within {seconds}") from error
        raise


def _listens(address: Path | int) -> bool:
    family, place = (
        (socket.AF_INET, ("127.0.0.1", address))
        if isinstance(address, int)
        else (socket.AF_UNIX, str(address))
    )
    with socket.socket(family) as connection:
        try:
            connection.connect(place)
        except OSError:
            return False
    return True
