"""What commands keep in the store and find there, and `graven results`."""

from __future__ import annotations

import csv
import io
import json
import signal
import sys
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest
from conftest import start, stopped, waits

import graven as package
from graven.store import Store, segments
from graven.store.keeper import request_of
from graven.store.upkeep import verify

RUN = ("run", "--design", "silo", "--workload", "btree", "--transactions", "10")
COMPARE = (
    "compare",
    "--from-start",
    "--designs",
    "base,silo",
    "--workloads",
    "array,btree",
    "--no-report",
)
CRASH = ("crash", "--design", "silo", "--workload", "btree", "--transactions", "10")
FAILS = {"FAULT_FAIL": "silo"}
"""A design that fails if it is simulated."""


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def the_store(tmp_path):
    return tmp_path / "graven-results" / "store"


def without_host_time(done):
    found = json.loads(done.stdout)
    for item in found:
        item.pop("seconds", None)
    return found


def damage(tmp_path, old, new):
    for segment in (the_store(tmp_path) / "segments").iterdir():
        segment.write_bytes(segment.read_bytes().replace(old, new))


# ---- commands that keep ------------------------------------------------------------------------


@pytest.mark.parametrize("command", [RUN, COMPARE, CRASH])
def test_the_same_command_again_runs_nothing_and_says_the_same(quick, command):
    first = quick(*command, "--format", "json")
    assert first.returncode == 0, first.stderr
    again = quick(*command, "--format", "json", **FAILS)
    assert (again.returncode, without_host_time(again)) == (0, without_host_time(first))
    assert "results were there already (--fresh runs them again)" in again.stderr


@pytest.mark.parametrize("command", [RUN, COMPARE])
@pytest.mark.parametrize("option", ["--fresh", "--no-store"])
def test_results_may_be_left_aside(quick, command, option):
    assert quick(*command).returncode == 0
    again = quick(*command, option, **FAILS)
    assert again.returncode == 1
    assert "were there already" not in again.stderr


def test_what_is_run_again_with_the_same_result_is_kept_once(quick, tmp_path):
    quick(*RUN)
    quick(*RUN, "--fresh")
    assert verify(Store(the_store(tmp_path))).again == 0


def test_nothing_is_kept_where_nothing_is_to_be_kept(quick, tmp_path):
    quick(*RUN, "--no-store")
    assert list(tmp_path.iterdir()) == []


def test_commands_share_results(quick):
    quick(*COMPARE, "--transactions", "10")
    done = quick(*RUN, **FAILS)
    assert done.returncode == 0, done.stderr


def test_the_store_may_be_elsewhere(quick, tmp_path):
    quick(*RUN, "--store", "mine")
    assert quick(*RUN, GRAVEN_STORE="mine", **FAILS).returncode == 0
    assert not (tmp_path / "graven-results").exists()


def test_an_edited_engine_does_not_meet_old_results(quick):
    quick(*RUN)
    assert quick(*RUN, FAULT_BUILD="other", **FAILS).returncode == 1


def test_a_module_of_ones_own_is_part_of_the_build(monkeypatch, tmp_path):
    from graven.store import keeper

    module = type(sys)("my_engine")
    module.__file__ = str(tmp_path / "my_engine.so")
    monkeypatch.setitem(sys.modules, keeper.STOCK, module)
    builds = []
    for content in (b"one", b"another one"):
        (tmp_path / "my_engine.so").write_bytes(content)
        builds.append(keeper.build())
    assert len(set(builds)) == 2
    assert all("my_engine" in build for build in builds)


def test_a_run_that_leaves_files_is_made_each_time(quick, tmp_path):
    quick(*RUN)
    done = quick(*RUN, "--request-trace", "requests.nvt")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "requests.nvt").exists()


def test_a_damaged_result_is_named_and_made_again(quick, tmp_path):
    first = quick(*RUN, "--format", "json")
    damage(tmp_path, b'"cycles":', b'"cycles":1')
    again = quick(*RUN, "--format", "json")
    assert again.stdout == first.stdout
    assert "is damaged: its checksum is of something else; it is set aside" in again.stderr
    third = quick(*RUN, "--format", "json", **FAILS)
    assert (third.stdout, third.returncode) == (first.stdout, 0)
    assert "damaged" not in third.stderr


def test_a_file_in_place_of_the_store_is_said_before_anything_runs(quick, tmp_path):
    (tmp_path / "file").write_text("")
    done = quick(*RUN, "--store", "file/store", FAULT_FAIL="*")
    assert done.returncode == 2
    assert "--store: cannot write into file" in done.stderr
    assert "--no-store keeps no results" in done.stderr


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "stopped by SIGTERM"),
        (signal.SIGHUP, 129, "stopped by SIGHUP"),
    ],
)
@pytest.mark.parametrize("command", ["compare", "crash"])
def test_what_has_finished_is_kept_when_a_signal_stops_it(
    quick, tmp_path, number, code, words, command
):
    which = ("--designs", "base,silo") if command == "compare" else ("--design", "base,silo")
    of = ("--workloads", "array") if command == "compare" else ("--workload", "array")
    arguments = (command, *which, *of, "--transactions", "10", "--jobs", "1", "--format", "json")
    process = start(tmp_path, *arguments, **waits(tmp_path))
    out, errors = stopped(process, tmp_path / "silo-array", number, code)
    assert f"{words}: 1 of 2" in errors
    assert "the same command goes on" in errors
    assert [item["design"] for item in json.loads(out)] == ["base"]
    done = quick(*arguments, FAULT_FAIL="base")
    assert done.returncode == 0, done.stderr
    assert "1 of 2 results were there already" in done.stderr
    assert [item["design"] for item in json.loads(done.stdout)] == ["base", "silo"]


def test_schedules_go_on_where_they_were(real, tmp_path):
    adversary = ("adversary", "--design", "silo", "--schedules", "20", "--format", "json")
    first = real(*adversary)
    again = real(*adversary)
    assert (again.returncode, first.returncode) == (0, 0)
    assert without_host_time(again) == without_host_time(first)
    assert "20 of 20 schedules were done" in again.stderr
    [state] = (the_store(tmp_path) / "under-way").iterdir()
    state.write_bytes(state.read_bytes().replace(b"1", b"2"))
    third = real(*adversary)
    assert without_host_time(third) == without_host_time(first)
    assert "what was under way is damaged" in third.stderr
    assert "schedules were done" not in real(*adversary, "--fresh").stderr


# ---- Python ------------------------------------------------------------------------------------


def test_python_keeps_and_finds_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = package.run("silo", "btree", transactions=10)
    assert (tmp_path / "graven-results/store").is_dir()
    monkeypatch.setenv("FAULT_FAIL", "silo")
    assert package.run("silo", "btree", transactions=10) == record
    with pytest.raises(package.SimulationError):
        package.run("silo", "btree", transactions=10, fresh=True)
    with pytest.raises(package.SimulationError):
        package.run("silo", "btree", transactions=10, store=None)
    with pytest.raises(package.SimulationError):
        package.run("silo", "btree", transactions=10, store=tmp_path / "other")
    with pytest.raises(package.SimulationError) as error:
        package.compare("base,silo", "array", transactions=10)
    assert len(error.value.comparison.records) == 1


def test_python_warns_of_damage(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    package.run("silo", "btree", transactions=10)
    damage(tmp_path, b'"cycles":', b'"cycles":1')
    with pytest.warns(RuntimeWarning, match="is damaged"):
        package.run("silo", "btree", transactions=10)


# ---- results -----------------------------------------------------------------------------------


@pytest.fixture
def some(quick):
    quick(*COMPARE, "--seed", "7")
    quick(*CRASH)
    return quick


def test_the_list_has_all_that_was_kept(some):
    listed = rows(some("results", "list", "--format", "csv").stdout)
    assert len(listed) == 5
    assert {row["kind"] for row in listed} == {"simulation", "crash"}
    few = some("results", "list", "--design", "silo", "--kind", "simulation", "--limit", "1")
    assert few.stdout.count("simulation") == 1
    assert "1 of 2 results; --limit 0 shows all" in few.stderr
    assert rows(some("results", "list", "--build", "current", "--format", "csv").stdout) == listed
    assert rows(some("results", "list", "--build", "x", "--format", "csv").stdout) == []


def test_a_result_is_shown_by_its_first_digits(some):
    digest = rows(some("results", "list", "--kind", "crash", "--format", "csv").stdout)[0]["digest"]
    [shown] = json.loads(some("results", "show", digest[:8]).stdout)
    assert shown["digest"] == digest
    assert shown["asked"]["spec"]["design"] == "silo"
    assert shown["result"]["crash_points"] > 0
    for wrong, message in [("abc", "too short"), ("zzzz", "there is no result zzzz")]:
        done = some("results", "show", wrong)
        assert (done.returncode, message in done.stderr) == (2, True)


def test_queries_in_sql(some):
    ask = "SELECT design, workload, value FROM statistics WHERE name = 'cycles' ORDER BY 1, 2"
    found = rows(some("results", "query", ask, "--format", "csv").stdout)
    assert [(row["design"], row["workload"]) for row in found] == [
        ("base", "array"), ("base", "btree"), ("silo", "array"), ("silo", "btree"),
    ]  # fmt: skip
    assert all(int(row["value"]) > 0 for row in found)
    documents = json.loads(some("results", "query", ask, "--format", "json").stdout)
    assert [str(item["value"]) for item in documents] == [row["value"] for row in found]
    table = some("results", "query", "SELECT seed, statistics FROM results LIMIT 1").stdout
    assert "seed" in table


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELEKT", 'SQL: near "SELEKT": syntax error'),
        ("DELETE FROM records", "SQL: attempt to write a readonly database"),
        ("SELECT 1; SELECT 2", "SQL: You can only execute one statement at a time"),
        ("SELECT nope FROM results", "SQL: no such column: nope"),
    ],
)
def test_queries_that_are_refused(some, sql, message):
    done = some("results", "query", sql)
    assert done.returncode == 2
    assert message in done.stderr
    assert some("results", "verify").stdout.startswith("5 results")


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_what_is_exported_is_what_a_comparison_writes(some, tmp_path, form):
    some(*COMPARE, "--seed", "7", "--out", f"compared.{form}")
    done = some("results", "export", f"all.{form}", "--kind", "simulation")
    assert done.returncode == 0, done.stderr
    assert "wrote 4 simulations" in done.stderr
    if form == "parquet":
        tables = [pq.read_table(tmp_path / f"{name}.parquet") for name in ("compared", "all")]
        first, second = (table.sort_by([("design", "ascending"), ("workload", "ascending")])
                         for table in tables)  # fmt: skip
        assert first.equals(second)
    else:
        compared, exported = ((tmp_path / f"{name}.{form}").read_text() for name in
                              ("compared", "all"))  # fmt: skip
        assert len(exported) == len(compared)


def test_export_refuses_a_name_that_does_not_say_its_format(some):
    done = some("results", "export", "all.xlsx")
    assert done.returncode == 2
    assert "must end in .json, .csv, .parquet" in done.stderr


def test_verify_names_what_is_damaged(some, tmp_path):
    assert some("results", "verify").returncode == 0
    damage(tmp_path, b'"workload":"array"', b'"workload":"brray"')
    done = some("results", "verify")
    assert done.returncode == 1
    assert done.stdout.startswith("3 results in 2 segments")
    assert done.stdout.count("is damaged: its checksum is of something else") == 2


def test_gc_drops_what_is_asked(some, tmp_path):
    some(*RUN, FAULT_BUILD="other")
    assert some("results", "gc").stdout.startswith("6 results kept, 0 records dropped")
    assert len(list((the_store(tmp_path) / "segments").iterdir())) == 1
    assert some("results", "gc", "--older-than", "1").stdout.startswith("6 results kept")
    assert some("results", "gc", "--other-builds").stdout.startswith("5 results kept, 1 records")
    damage(tmp_path, b'"workload":"array"', b'"workload":"brray"')
    done = some("results", "gc")
    assert "2 damaged records are in" in done.stdout
    assert some("results", "verify").returncode == 0
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    assert tomorrow > datetime.now(UTC)
    assert some("results", "gc", "--older-than", "0").stdout.startswith("0 results kept, 3 records")


def test_merge_takes_what_is_elsewhere(quick):
    quick(*RUN, "--store", "one")
    quick(*COMPARE, "--transactions", "10", "--store", "two")
    done = quick("results", "merge", "one", "two", "--store", "all")
    assert done.stdout.splitlines() == [
        "one: 1 new results, 0 were there already",
        "two: 3 new results, 1 were there already",
    ]
    assert quick(*COMPARE, "--transactions", "10", "--store", "all", **FAILS).returncode == 0


def test_there_has_to_be_a_store(quick):
    for command in (["list"], ["verify"], ["gc"], ["query", "SELECT 1"], ["merge", "nowhere"]):
        done = quick("results", *command)
        assert done.returncode == 2
        assert "there is no store in" in done.stderr


def test_segments_have_names_of_their_own():
    assert len({segments.new_name() for _ in range(1000)}) == 1000


def test_what_a_job_is_called_does_not_belong_to_what_it_asks_for(tmp_path):
    from graven.engine.machine import Machine
    from graven.running.job import Job

    job = Job("silo", "btree", Machine("silo"), settings=(("pm.write_ns", "300"),))
    varied = Job("silo", "btree", Machine("silo"), varied=(("pm.write_ns", "300", "--vary"),))
    traced = Job("silo", "btree", Machine("silo"), settings=(("pm.write_ns", "300"),),
                 request_trace=str(tmp_path / "t.nvt"))  # fmt: skip
    other = Job("silo", "btree", Machine("silo"), settings=(("pm.write_ns", "150"),))
    assert request_of(job).digest == request_of(varied).digest == request_of(traced).digest
    assert request_of(job).digest != request_of(other).digest
