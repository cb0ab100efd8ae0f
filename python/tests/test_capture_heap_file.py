"""`graven_heap.c`: the heap of an index in a file, which a later run opens."""

import os
import subprocess

import pytest
from capturing import HEADER

from graven.capture import Transactions, capture

pytestmark = pytest.mark.usefixtures("tools")


@pytest.fixture
def lists(programs):
    return programs(
        "heap_file", str(HEADER.parent / "graven_heap.c"), "-Werror", "-Wall", "-Wextra"
    )


def said(program, **variables):
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    return subprocess.run([program], env=environment, capture_output=True, text=True, check=False)


def test_a_later_run_finds_what_earlier_ones_left(lists, tmp_path):
    heap = tmp_path / "heap"
    for run in range(1, 5):
        done = said(lists, GRAVEN_HEAP=heap)
        assert (done.stdout, done.returncode) == (f"{11 * run} nodes in {run} runs\n", 0)


def test_a_file_that_is_full_or_not_named_is_told(lists, tmp_path):
    assert "graven_heap: GRAVEN_HEAP" in said(lists, GRAVEN_HEAP=tmp_path / "no" / "heap").stderr
    for _ in range(100):
        done = said(lists, GRAVEN_HEAP=tmp_path / "heap", GRAVEN_HEAP_BYTES=1 << 20)
        if done.returncode:
            break
    assert "is full" in done.stderr


def test_the_file_has_the_stores_of_the_program_alone(lists, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAVEN_HEAP", str(tmp_path / "heap"))
    trace = tmp_path / "heap.gvt"
    adds = [Transactions("add")]
    captured = capture([str(lists)], trace, pm_files=["*/heap"], transactions=adds)
    report = captured.report
    assert report["transactions"] == 11
    # A node's two pointers, its text in two or three stores, and the list's first node.
    assert report["words_stored"] <= 11 * 6
    assert captured.explained
