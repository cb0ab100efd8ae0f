"""What tests of `graven capture` share: programs, and what a capture of one must prove."""

import json
import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

import graven as package
from graven.capture import HEADER, CaptureError, Transactions, capture

PROGRAMS = Path(__file__).parent / "programs"
TX = "tx_begin:tx_commit:tx_abort"
ARM_CC, ARM_CXX = "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++"
ARM_LIBRARIES = Path("/usr/aarch64-linux-gnu/lib/libc.a")
IS_REQUIRED = os.environ.get("GRAVEN_CAPTURE") == "required"


def _missing(names):
    """What captures need and this machine does not have."""
    if platform.machine() != "x86_64":
        return "captures are tested on x86-64"
    absent = [f"{name} ({of})" for name, of in names.items() if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else None


def _need(names):
    reason = _missing(names)
    if reason is not None and IS_REQUIRED:
        pytest.fail(reason)
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def tools():
    _need({"qemu-x86_64": "package qemu-user", "cc": "a C compiler"})


@pytest.fixture(scope="module")
def tools_for_arm():
    compilers = {ARM_CC: "package gcc-aarch64-linux-gnu", ARM_CXX: "package g++-aarch64-linux-gnu"}
    _need({"qemu-aarch64": "package qemu-user", **compilers})
    if not ARM_LIBRARIES.exists():
        _need({str(ARM_LIBRARIES): "package libc6-dev-arm64-cross"})


def compile_program(source, program, *flags, compiler="cc"):
    found = next(path for path in PROGRAMS.glob(f"{source}.c*"))
    command = [compiler, "-O1", "-pthread", f"-I{HEADER.parent}", "-o", program, found, *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _compiled_in(folder, default):
    """Gives the program of a source and flags, compiled when it is first asked for."""

    def program(name, *flags, compiler=default):
        path = folder / "".join((name, *flags)).replace("/", "-")
        if not path.exists():
            done = compile_program(name, path, *flags, compiler=compiler)
            assert done.returncode == 0, done.stderr
        return path

    return program


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    return _compiled_in(tmp_path_factory.mktemp("programs"), "cc")


@pytest.fixture(scope="session")
def for_arm(tmp_path_factory):
    """The same for AArch64."""
    return _compiled_in(tmp_path_factory.mktemp("for-arm"), ARM_CC)


@pytest.fixture
def captured(unhooked, programs, tmp_path):  # noqa: ARG001
    """Captures a mode of a program; gives what came of it, also under `designs`."""

    def call(name, mode, *, tx=TX, of=None, designs=(), also=(), machine="silo", **more):
        trace = tmp_path / "x.gvt"
        job = {
            "arguments": [str(of or programs(name)), str(tmp_path / "pool"), mode],
            "pm_files": ["*/pool", *also],
            "transactions": [] if tx is None else [tx],
            **more,
        }
        job["transactions"] = [
            item if isinstance(item, str) else Transactions(**item) for item in job["transactions"]
        ]
        try:
            found = capture(trace=trace, **job)
        except CaptureError as error:
            return {"refused": str(error)}
        runs = {design: package.replay(trace, design, machine=machine).stats for design in designs}
        return json.loads(json.dumps(found.to_dict() | {"runs": runs}))

    return call


@pytest.fixture
def proven(captured):
    """The report of a program that comes to its end, and that everything in it is explained."""

    def call(*arguments, **more):
        document = captured(*arguments, **more)
        assert document["exit_code"] == 0
        report = explained(document)
        for stats in document["runs"].values():
            assert stats["committed_transactions"] == report["transactions"]
        return report

    return call


def explained(document):
    report = document["report"]
    assert report["bytes_compared"] > 0
    assert report["bytes_unexplained"] == 0, report["unexplained"]
    assert report["loads_unexplained"] == 0, report["loads_astray"]
    assert document["explained"]
    return report


@pytest.fixture
def command(real, programs, tmp_path):
    """The command itself, on a mode of a program."""

    def call(name, mode, *options, form=("--format", "json"), code=0):
        program = (str(programs(name)), str(tmp_path / "pool"), mode)
        where = ("--to", "x.gvt", "--pm-file", "*/pool")
        done = real("capture", *where, *options, *form, "--", *program)
        assert done.returncode == code, done.stderr
        return done

    return call


def refused(real, *arguments, program):
    done = real("capture", "--to", "x.gvt", *arguments, "--", *map(str, program))
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    return done.stderr


def needs(path, package):
    if not path:
        assert not IS_REQUIRED, f"{package} is not installed"
        pytest.skip(f"{package} is not installed")
