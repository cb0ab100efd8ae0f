"""Results of `check`, `litmus`, `mutants`, `faults` and `memory` in the store."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ENVIRONMENT, LITMUS, PACKAGE

import graven as package
from graven.store import Store
from graven.store.upkeep import verify

LIBRARY = PACKAGE / "laboratory/litmus_programs"
PROGRAM = LIBRARY / "silo" / "silent-store.litmus"

COMMANDS = {
    "check": ("check", "undo-clwb", "lad", "--transactions", "1", "--departures", "0"),
    "litmus": ("litmus", "programs"),
    "mutants": ("mutants", "undo-clwb", "--schedules", "3", "--only", "own"),
    "faults": ("faults", "silo", "lad", "--schedules", "3"),
    "memory": ("memory", "requests.nvt"),
}
PARTS = {
    "check": ("check", "lad", "--transactions", "1", "--departures", "0"),
    "litmus": ("litmus", "programs/silent-store.litmus"),
    "faults": ("faults", "lad", "--schedules", "3"),
}
"""Commands that have a part of the results of those above."""

KINDS = {"mutants": "mutant"}
REQUESTS = "NVMV1\n" + "".join(f"{at * 40} W {hex(at * 64)} {'0' * 128} {'0' * 128} 0\n"
                               for at in range(40))  # fmt: skip

THERE = re.compile(r"(\d+) of (\d+) results were there already \(--fresh runs them again\)")


@pytest.fixture
def folder(tmp_path):
    """What the commands read."""
    (tmp_path / "programs").mkdir()
    for name in ("silent-store", "twin-entries"):
        shutil.copy(LIBRARY / "silo" / f"{name}.litmus", tmp_path / "programs")
    (tmp_path / "requests.nvt").write_text(REQUESTS)
    return tmp_path


def the_store(folder):
    return Store(folder / "graven-results" / "store")


def there(done):
    """How many of how many results were there."""
    found = THERE.search(done.stderr)
    return None if found is None else (int(found[1]), int(found[2]))


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.usefixtures("folder")
def test_the_same_command_again_runs_nothing_and_says_the_same(real, tmp_path, name):
    command = (*COMMANDS[name], "--format", "json")
    first = real(*command)
    assert first.returncode in (0, 1), first.stderr
    assert there(first) is None
    again = real(*command)
    assert (again.returncode, again.stdout) == (first.returncode, first.stdout)
    found, total = there(again)
    assert found == total > 0
    kinds = {record.request.kind for record in the_store(tmp_path).records()}
    assert kinds == {KINDS.get(name, name)}
    fresh = real(*command, "--fresh")
    assert (fresh.stdout, there(fresh)) == (first.stdout, None)
    checked = verify(the_store(tmp_path))
    assert (checked.is_sound, checked.again, checked.records) == (True, 0, total)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.usefixtures("folder")
def test_nothing_is_kept_where_nothing_is_to_be_kept(real, tmp_path, name):
    assert real(*COMMANDS[name], "--no-store").returncode in (0, 1)
    assert not (tmp_path / "graven-results").exists()


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.usefixtures("folder")
def test_a_part_that_is_there_is_not_run_again(real, name):
    part = real(*PARTS[name], "--format", "json")
    whole = real(*COMMANDS[name], "--format", "json")
    found, total = there(whole)
    assert 0 < found < total
    assert json.loads(part.stdout)[0] in json.loads(whole.stdout)
    assert real(*COMMANDS[name], "--format", "json", "--no-store").stdout == whole.stdout


def test_a_check_that_is_interrupted_goes_on_and_comes_to_the_same(real, tmp_path):
    command = ("check", "silo", "--transactions", "2", "--jobs", "1", "--format", "json")
    process = subprocess.Popen(
        [sys.executable, "-m", "graven", *command],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    segments = tmp_path / "graven-results" / "store" / "segments"
    deadline = time.monotonic() + 60
    while not any(b"\n" in path.read_bytes() for path in segments.glob("*.tsv")):
        assert time.monotonic() < deadline, "no part was kept"
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert re.search(r"interrupted: \d of 8 parts were done; the same command goes on", errors)
    before = verify(the_store(tmp_path)).records
    again = real(*command)
    assert there(again) == (before, 8)
    assert again.stdout == real(*command, "--no-store").stdout
    assert verify(the_store(tmp_path)).again == 0


def test_a_check_is_found_by_all_that_it_depends_on(real):
    command = ("check", "lad", "--transactions", "1", "--departures", "0")
    assert real(*command).returncode == 0
    for more in (
        ("--departures", "1"),
        ("--words", "1,2"),
        ("--no-hand-overs",),
        ("--life-transactions", "0"),
        ("--mutant", "commit-before-lines"),
        ("--set", "pm.write_ns=200"),
    ):
        assert there(real(*command, *more)) is None, more
    assert there(real(*command)) is not None
    assert there(real(*command, "--state", "own.json")) is None, "a state of its own has all"


@pytest.mark.usefixtures("folder")
def test_an_edited_program_does_not_meet_the_old_result(real, tmp_path):
    path = tmp_path / "programs" / "silent-store.litmus"
    command = ("litmus", "programs/silent-store.litmus", "--format", "json")
    first = real(*command)
    text = path.read_text()
    path.write_text(text.replace("silo", "lad"))
    edited = real(*command)
    assert there(edited) is None
    assert edited.stdout != first.stdout
    path.write_text(text)
    assert there(real(*command)) == (1, 1)
    assert there(real(*command, "--design", "fwb")) is None
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    path.rename(moved / path.name)
    elsewhere = real("litmus", f"elsewhere/{path.name}", "--format", "json")
    assert there(elsewhere) == (1, 1)
    assert json.loads(elsewhere.stdout)[0]["file"] == f"elsewhere/{path.name}"


@pytest.mark.usefixtures("folder")
def test_a_replay_is_found_by_what_the_trace_holds(real, tmp_path):
    assert there(real("memory", "requests.nvt")) is None
    path = tmp_path / "requests.nvt"
    for more in (("--dram",), ("--set", "pm.write_ns=300"), ("--machine", "fwb")):
        assert there(real("memory", path.name, *more)) is None, more
    path.write_text(REQUESTS.replace(" W 0x40 ", " R 0x40 "))
    assert there(real("memory", path.name)) is None
    path.write_text(REQUESTS)
    again = real("memory", path.name)
    assert there(again) == (1, 1)
    assert "requests/s" not in again.stderr, "nothing was replayed"


@pytest.mark.usefixtures("folder")
def test_queries_tell_kinds_apart(real):
    real("memory", "requests.nvt")
    real(*PARTS["check"])
    real("run", "--design", "silo", "--workload", "hash", "--transactions", "20")
    ask = (
        "SELECT kind, count(*) AS n, min(design), min(workload) FROM results GROUP BY 1 ORDER BY 1"
    )
    rows = real("results", "query", ask, "--format", "csv").stdout.splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["check", "memory", "simulation"]
    assert rows[0].endswith(",lad,")
    assert rows[1] == "memory,1,,requests.nvt"
    of = "SELECT DISTINCT workload FROM statistics"
    assert real("results", "query", of, "--format", "csv").stdout.split() == ["workload", "hash"]


def test_python_keeps_litmus_results_and_replays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.litmus").write_text(LITMUS)
    Path("r.trc").write_text("0x40 READ 1\n")
    first, replayed = package.litmus("a.litmus"), package.memory("r.trc")
    store = Store(tmp_path / "graven-results/store")
    assert {record.request.kind for record in store.records()} == {"litmus", "memory"}
    segments = list((store.folder / "segments").iterdir())
    for record in list(store.records()):
        changed = re.sub('"cycles":[0-9]+', '"cycles":1001', record.result)
        changed = changed.replace('"a word"', '"kept"')
        store.put(record.request, changed)
    for segment in segments:
        segment.unlink()
    assert package.litmus("a.litmus").title == "kept"
    assert package.memory("r.trc").stats["cycles"] == 1001
    assert package.litmus("a.litmus", fresh=True).title == first.title
    assert package.litmus("a.litmus", store=None).title == first.title
    assert package.memory("r.trc", store=None).stats == replayed.stats
