"""What is read of logs, and what is said of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from . import seconds

HERE = Path(__file__).parent

LOG = """\
1.5 0.25 /x/target/release/deps/lab-0123456789abcdef --exact campaigns::twice --nocapture
2 0 /x/target/release/deps/lab-0123456789abcdef --nocapture --exact campaigns::once
0.5 0 /x/target/release/deps/graven_base-0123456789abcdef
0.5 0 /x/target/release/deps/graven_base-0123456789abcdef --list --format terse
30 1 /x/target/release/something-else
0.750 python/tests/test_x.py::test_a[x::y z]
0.500 python/tests/test_x.py::test_a[x::y z]
"""


def test_programs_and_tests_are_added_up():
    assert seconds.read(LOG.splitlines()) == {
        ("lab::campaigns", "twice"): 1.75,
        ("lab::campaigns", "once"): 2,
        ("graven_base", ""): 0.5,
        ("python/tests/test_x.py", "test_a[x::y z]"): 1.25,
    }


def test_a_table_names_what_takes_long_and_is_read_as_it_is_written(tmp_path):
    now = {("a", "short"): 0.25, ("a", "shorter"): 0.125, ("a", "long"): 9.0, ("b", "x"): 0.5}
    rows = seconds.table(now)
    assert rows == {("a", "(others)"): 0.4, ("a", "long"): 9.0, ("b", "(others)"): 0.5}
    path = tmp_path / "seconds.csv"
    seconds.record("long", now, path)
    assert seconds.committed(path) == {"long": rows}
    text = path.read_text(encoding="utf-8")
    assert text.splitlines()[1:] == [
        "long,a,long,9.0",
        "long,a,(others),0.4",
        "long,b,(others),0.5",
    ]
    # What is not measured stays.
    seconds.record("long", {("b", "x"): 3.0}, path)
    assert seconds.committed(path) == {
        "long": {("a", "(others)"): 0.4, ("a", "long"): 9.0, ("b", "x"): 3.0}
    }


def test_a_file_may_take_three_times_its_seconds_and_some_more_all_together_twice():
    allowed = {"a": 30.0, "b": 100.0}
    assert seconds.exceeding({"a": 119.0, "b": 100.0}, allowed) == []
    assert seconds.exceeding({"a": 121.0, "b": 100.0}, allowed) == [
        "a: 121 CPU seconds, 30 in the table"
    ]
    assert seconds.exceeding({"a": 91.0, "b": 200.0}, allowed) == [
        "all files together: 291 CPU seconds, 130 in the table"
    ]
    assert seconds.exceeding({"new": 29.0}, {}) == []
    assert len(seconds.exceeding({"new": 31.0}, {})) == 2


def test_many_files_that_are_not_in_the_table_are_too_much_together():
    assert seconds.exceeding({"a": 20.0, "b": 20.0}, {}) == [
        "all files together: 40 CPU seconds, 0 in the table"
    ]


@pytest.mark.parametrize("is_logged", [True, False])
def test_a_program_is_run_as_it_is_and_logged(tmp_path, is_logged):
    program = tmp_path / "work-0123456789abcdef"
    program.write_text(
        '#!/bin/bash\nfor ((i = 0; i < 200000; i++)); do :; done; echo "$2"; echo e >&2; exit 3\n'
    )
    program.chmod(0o755)
    log = tmp_path / "log"
    done = subprocess.run(
        [HERE / "measured", program, "--exact", "a::b"],
        env={**os.environ, "GRAVEN_CPU_LOG": str(log) if is_logged else ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("a::b\n", "e\n", 3)
    if is_logged:
        [(key, took)] = seconds.read(log.read_text(encoding="utf-8").splitlines()).items()
        assert key == ("work::a", "b")
        assert took > 0
    else:
        assert not log.exists()


def test_tests_in_python_are_logged_with_their_processes(tmp_path, pytestconfig):
    program = "subprocess.run([sys.executable, '-c', 'sum(range(10**7))'])"
    work = f"""
import subprocess, sys, pytest

@pytest.fixture(scope="session")
def shared():
    {program}

@pytest.fixture(scope="module")
def both(shared):
    pass

def test_a():
    {program}

def test_b(both):
    pass
"""
    (tmp_path / "test_work.py").write_text(work)
    subprocess.run(
        [
            "python",
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.budget.plugin",
            "--rootdir",
            tmp_path,
            tmp_path,
        ],
        executable=sys.executable,
        cwd=pytestconfig.rootpath,
        env={**os.environ, "GRAVEN_CPU_LOG": str(tmp_path / "log")},
        check=True,
    )
    took = seconds.read((tmp_path / "log").read_text().splitlines())
    long = {key for key, each in took.items() if each > 0.05}
    assert long == {("test_work.py", "test_a"), ("test_work.py", "shared (fixture)")}
    assert len(took) == 4
