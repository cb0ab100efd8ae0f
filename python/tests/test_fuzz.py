"""Damaged files: a sample of the campaign `campaigns.fuzz`, always the same."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from campaigns import fuzz
from campaigns.tables import ROOT

import graven

KIND = fuzz.kind_of("requests, DRAMsim3")


def test_a_few_damaged_files_of_each_kind_are_read_or_refused(environment):
    sizes = ("--inputs", "12", "--drawn", "0", "--commands", "1")
    done = subprocess.run(
        [sys.executable, "-m", "campaigns", "fuzz", "--sample", *sizes],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = list(map(json.loads, done.stdout.splitlines()))
    assert [row["kind"] for row in rows] == [kind.name for kind in fuzz.KINDS]
    assert all(int(row["accepted"]) + int(row["refused"]) == 12 for row in rows)


def test_the_table_has_each_kind_and_no_failure():
    rows = fuzz.TABLE.read()
    assert [row["kind"] for row in rows] == [kind.name for kind in fuzz.KINDS]
    for row in rows:
        assert int(row["accepted"]) + int(row["refused"]) == int(row["inputs"]) + int(row["drawn"])
        assert (row["failed"], row["commands_failed"]) == ("0", "0")


@pytest.mark.parametrize("kind", fuzz.KINDS, ids=lambda kind: kind.name)
def test_an_input_is_the_same_whenever_it_is_made(kind):
    sound = [b"NVMV1\n1 R 0x40 0 0 0\n", b"a = 1\n[b]\nc = 2\n", random.Random(1).randbytes(900)]
    inputs = [fuzz.damaged(kind, number, sound) for number in range(200)]
    assert inputs == [fuzz.damaged(kind, number, sound) for number in range(200)]
    assert len(set(inputs)) > 150
    assert sum(content in sound for content in inputs) < 30


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (graven.ConfigError("r.trc: line 3"), "refused"),
        (graven.ConfigError("line 3"), "failed"),
        (graven.SimulationError("stale"), "accepted"),
        (KeyError("x"), "failed"),
        (MemoryError(), "failed"),
        (RecursionError(), "failed"),
        (type("PanicException", (BaseException,), {})("internal"), "failed"),
        (None, "accepted"),
    ],
)
def test_what_counts_as_a_failure(error, outcome):
    def read(_):
        if error is not None:
            raise error

    kind = fuzz.Kind("x", KIND.file, "*", read, ())
    assert fuzz.outcome_of(kind, Path("/tmp") / KIND.file)[0] == outcome


@pytest.mark.parametrize(
    ("script", "why"),
    [("os.abort()", "died"), ("time.sleep(60)", "hangs"), ("sys.exit(3)", "died")],
)
def test_a_reader_that_dies_or_hangs_is_a_failure_and_the_next_input_follows(
    tmp_path, monkeypatch, script, why
):
    code = (
        "import json, os, sys, time\n"
        "first = int(sys.argv[3])\n"
        "for number in range(first, 3):\n"
        "    print(json.dumps({'number': number}), flush=True)\n"
        f"    {script} if number == 1 else None\n"
        "    said = {'number': number, 'outcome': 'accepted', 'said': ''}\n"
        "    print(json.dumps(said), flush=True)\n"
    )
    monkeypatch.setattr(fuzz, "READER", [sys.executable, "-c", code])
    monkeypatch.setattr(fuzz, "SECONDS", 1.0)
    (tmp_path / KIND.file).write_text("1 2 3")
    tried = fuzz.Tried()
    fuzz.watch(KIND, tmp_path, 3, tried)
    assert (tried.counts["accepted"], tried.counts["failed"]) == (2, 1)
    [(number, said)] = tried.failures
    assert (number, said.split()[0].strip(":")) == (1, why)
    assert len(list((tmp_path / "failed").iterdir())) == 1
