"""`graven sweep`: what a file may say, what runs, what is written."""

from __future__ import annotations

import csv
import io
import json
import signal
import threading
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import start, stopped, waits

import graven
from graven import ConfigError
from graven.api.sweeps import Sweep, label_of
from graven.basics import output
from graven.engine.machine import Machine
from graven.executors import units
from graven.executors.units import Misplaced, Unit, execute
from graven.laboratory.crashes import CrashJob
from graven.results.formats import json_text, write_records
from graven.running.job import Job
from graven.running.pool import Deferred
from graven.running.work import Work
from graven.store.stored import Request

SMALL = """
designs = ["base", "silo"]
workloads = ["array", "btree"]
threads = [1, 2]
transactions = 10
seeds = [1, 2]
vary = { "pm.write_ns" = [150, 300] }
"""


def written(tmp_path, text=SMALL, name="sweep.toml"):
    (tmp_path / name).write_text(text)
    return name


def sweep_of(text):
    return Sweep.parse(text, "s.toml", Path())


# ---- what a file says --------------------------------------------------------------------------


def test_all_combinations_are_run_each_once():
    jobs = sweep_of(SMALL).jobs
    assert len(jobs) == len(set(jobs)) == 2 * 2 * 2 * 2 * 2
    assert {job.seed for job in jobs} == {1, 2}
    assert {job.varied[0][:2] for job in jobs} == {
        ("pm.write_ns", "150.0"),
        ("pm.write_ns", "300.0"),
    }


def test_parts_have_what_the_file_says_but_for_what_they_say_themselves():
    text = SMALL + '[[part]]\n[[part]]\nthreads = [4]\nworkloads = ["hash"]\nseeds = [7]\n'
    jobs = sweep_of(text).jobs
    own = [job for job in jobs if job.threads == 4]
    assert len(jobs) == 32 + 4
    assert {(job.workload, job.seed) for job in own} == {("hash", 7)}


def test_points_are_values_that_go_together():
    text = """
designs = ["silo"]
workloads = ["array"]
points = [{ "pm.read_ns" = 50, "pm.write_ns" = 150 }, { "pm.read_ns" = 100, "pm.write_ns" = 300 }]
"""
    varied = [[pair[:2] for pair in job.varied] for job in sweep_of(text).jobs]
    assert varied == [
        [("pm.read_ns", "50.0"), ("pm.write_ns", "150.0")],
        [("pm.read_ns", "100.0"), ("pm.write_ns", "300.0")],
    ]


def test_machines_and_traces_are_found_from_the_folder_of_the_file(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "m.toml").write_text('extends = "silo"\n')
    text = 'designs = ["silo"]\nworkloads = ["t.gvt", "array"]\nmachines = ["silo", "m.toml"]\n'
    jobs = Sweep.parse(text, "s.toml", tmp_path / "own").jobs
    assert {job.machine.name for job in jobs} == {"silo", "m.toml"}
    assert {job.workload for job in jobs} == {str(tmp_path / "own" / "t.gvt"), "array"}


def test_runs_that_are_crashed_have_what_is_varied_as_a_setting():
    [job, other] = sweep_of(
        'designs = ["silo"]\nworkloads = ["array"]\ntransactions = 5\n'
        'vary = { "pm.write_ns" = [150, 300] }\n'
        "crash = { every = 8, lives = 0, torn = 2, minimise = 9 }\n"
    ).jobs
    assert isinstance(job, CrashJob)
    assert (job.every, job.lives, job.shares.torn, job.minimise) == (8, 0, 2, 9)
    assert job.job.settings == (("pm.write_ns", "150.0"),)
    assert label_of(other) == "silo on array, pm.write_ns = 300.0"


REFUSED = [
    ("designs = [", "s.toml: not TOML"),
    ("design = ['silo']", "s.toml: unknown key `design`; known are designs"),
    ("designs = 'silo'", "s.toml: `designs` = 'silo' is not allowed; a list"),
    ("designs = []", "s.toml: `designs` = [] is not allowed"),
    ("threads = [0]", "s.toml: `threads` = [0] is not allowed; whole numbers, at least 1"),
    ("threads = [true]", "s.toml: `threads` = [True] is not allowed"),
    ("transactions = 1.5", "s.toml: `transactions` = 1.5 is not allowed"),
    ("", "s.toml: it says nothing"),
    ("# a comment\n", "s.toml: it says nothing"),
    ("seeds = [1, 1]", "s.toml: `seeds` = [1, 1] is not allowed; each value once"),
    (
        "vary = { 'pm.write_ns' = [3, 3] }",
        "s.toml, vary: `pm.write_ns` = [3, 3] is not allowed; each",
    ),
    ("seeds = [-1]", "s.toml: `seeds` = [-1] is not allowed; from 0"),
    ("seed = 'a'", "s.toml: `seed` = 'a' is not allowed; from 0"),
    ("seed = 1\nseeds = [1]", "not beside `seeds`"),
    ("machine = 'silo'\nmachines = ['silo']", "not beside `machines`"),
    ("machine = 'none.toml'", "s.toml: --machine: cannot read none.toml"),
    ("vary = { 'pm.write_ns' = 3 }", "s.toml, vary: `pm.write_ns` = 3 is not allowed; a list"),
    ("vary = { 'pm.write_ns' = [] }", "s.toml, vary: `pm.write_ns` = [] is not allowed"),
    ("set = { 'pm.write_ns' = [1] }", "s.toml, set: `pm.write_ns` = [1] is not allowed"),
    ("set = 3", "s.toml: `set` = 3 is not allowed; a table"),
    ("points = []", "s.toml: `points` = [] is not allowed"),
    ("points = [{ a = 1 }, { b = 1 }]", "each with values of the same keys"),
    ("part = 3", "s.toml: `part` is for tables"),
    ("[[part]]\nfoo = 1", "s.toml, part 1: unknown key `foo`"),
    ("crash = { every = 0 }", "s.toml, crash: `every` = 0 is not allowed; a whole number, at"),
    ("crash = { lives = 99 }", "s.toml, crash: `lives` = 99 is not allowed; a whole number, from"),
    ("crash = { minimise = -1 }", "s.toml, crash: `minimise` = -1 is not allowed; a whole number"),
    ("crash = { foo = 1 }", "s.toml, crash: unknown key `foo`"),
]


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_what_is_not_allowed_is_named_with_its_place(text, said):
    with pytest.raises(ConfigError) as refused:
        sweep_of(text)
    assert said in str(refused.value)


def test_names_that_do_not_exist_are_refused_before_anything_runs(quick, tmp_path):
    text = 'designs = ["silp"]\nworkloads = ["array"]\n'
    done = quick("sweep", written(tmp_path, text))
    assert done.returncode == 2
    assert "sweep.toml: silp on array" in done.stderr
    assert not (tmp_path / "graven-results" / "store" / "segments").exists()


# ---- the command -------------------------------------------------------------------------------


def test_a_sweep_writes_what_a_comparison_of_the_same_does(quick, tmp_path):
    text = 'designs = ["base", "silo"]\nworkloads = ["array", "btree"]\ntransactions = 10\n'
    swept = quick("sweep", written(tmp_path, text), "--format", "json", "--out", "a.json")
    assert swept.returncode == 0, swept.stderr
    compared = quick(
        "compare", "--designs", "base,silo", "--workloads", "array,btree", "--transactions", "10",
        "--format", "json", "--out", "b.json", "--no-report",
    )  # fmt: skip
    assert "4 of 4 results were there already" in compared.stderr
    assert compared.stdout == swept.stdout
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_parts_merged_are_the_whole(quick, tmp_path):
    file = written(tmp_path)
    for part in ("1/3", "2/3", "3/3"):
        done = quick("sweep", file, "--shard", part, "--store", f"store-{part[0]}")
        assert done.returncode == 0, done.stderr
        assert f"part {part}: " in done.stderr
    assert (
        quick("results", "merge", "--store", "all", "store-1", "store-2", "store-3").returncode == 0
    )
    merged = quick("sweep", file, "--store", "all", "--format", "json")
    assert "32 of 32 results were there already" in merged.stderr
    assert merged.stdout == quick("sweep", file, "--store", "other", "--format", "json").stdout


def test_what_fails_is_named_with_its_configuration_and_the_rest_is_written(quick, tmp_path):
    done = quick("sweep", written(tmp_path), "--format", "json", FAULT_FAIL="silo")
    assert done.returncode == 1
    assert len(json.loads(done.stdout)) == 16
    assert done.stderr.count("silo on ") == 10
    assert "pm.write_ns = 150.0" in done.stderr
    assert "6 more failed" in done.stderr
    again = quick("sweep", written(tmp_path), "--format", "json")
    assert "16 of 32 results were there already" in again.stderr
    assert len(json.loads(again.stdout)) == 32


def test_an_interrupted_sweep_goes_on(tmp_path, quick):
    process = start(tmp_path, "sweep", written(tmp_path), "--jobs", "1", **waits(tmp_path))
    _, said = stopped(process, tmp_path / "silo-array", signal.SIGTERM, 143)
    assert "have results in" in said
    assert "the same command goes on" in said
    done = quick("sweep", "sweep.toml", "--format", "json")
    assert len(json.loads(done.stdout)) == 32


def test_a_dry_run_runs_nothing(quick, tmp_path):
    done = quick("sweep", written(tmp_path), "--dry-run", FAULT_FAIL="silo")
    assert done.returncode == 0, done.stderr
    assert "simulations: 32" in done.stdout
    assert "graven-results/store: 32" in done.stdout
    assert not list(tmp_path.glob("graven-results/store/segments/*"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--on", "cloud"), "--on: `cloud` is not allowed; local, local:N, dask://HOST:PORT or"),
        (("--on", "local:0"), "--on: `local:0` is not allowed"),
        (("--on", "dask://"), "--on: `dask://` is not allowed"),
        (("--on", "dask://a:b"), "--on: `dask://a:b` is not allowed"),
        (("--on", "slurm", "--jobs", "2"), "--jobs: simulations at a time on this host; not with"),
        (("--on", "local:2", "--jobs", "3"), "contradict each other"),
        (("--shard", "3/2"), "--shard: `3/2` is not a part"),
        (("--shard", "1/2", "--format", "json"), "--shard: a part has no whole results"),
        (("--out", "a.txt"), "--out: a.txt: the name of a file must end in"),
    ],
)
def test_options_that_make_no_sense_are_refused(quick, tmp_path, words, said):
    done = quick("sweep", written(tmp_path), *words)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr


def test_runs_that_are_crashed_are_swept_too(quick, tmp_path):
    text = 'designs = ["silo", "fwb"]\nworkloads = ["array"]\ntransactions = 5\ncrash = {}\n'
    file = written(tmp_path, text)
    done = quick("sweep", file, "--format", "json")
    assert done.returncode == 0, done.stderr
    reports = json.loads(done.stdout)
    assert [report["design"] for report in reports] == ["silo", "fwb"]
    assert all("seconds" not in report for report in reports)
    assert quick("sweep", file, "--format", "json").stdout == done.stdout


# ---- Python, and what is sent ------------------------------------------------------------------


def test_a_sweep_in_python_gives_the_records_in_the_order_of_the_file(tmp_path):
    file = tmp_path / written(tmp_path)
    records = graven.sweep(file, store=tmp_path / "store")
    assert [(r.seed, r.design) for r in records[:2]] == [(1, "base"), (1, "silo")]
    assert len(records) == 32
    assert graven.sweep(str(file), store=tmp_path / "store", jobs=1, on="local") == records
    with pytest.raises(ConfigError, match="store: a sweep keeps its results in one"):
        graven.sweep(file, store=None)
    with pytest.raises(ConfigError, match="on: `cloud` is not allowed"):
        graven.sweep(file, on="cloud")


def test_a_failed_sweep_in_python_says_what_failed_and_keeps_the_rest(tmp_path, monkeypatch):
    file = tmp_path / written(tmp_path)
    monkeypatch.setenv("FAULT_FAIL", "silo")
    with pytest.raises(graven.SimulationError, match=r"silo on array ×1, pm\.write_ns = 150\.0"):
        graven.sweep(file, store=tmp_path / "store")
    monkeypatch.delenv("FAULT_FAIL")
    assert len(graven.sweep(file, store=tmp_path / "store")) == 32


def unit_of(workload="array"):
    job = Job("silo", workload, Machine("silo"), transactions=10)
    return Unit.of(Work("silo", job, Deferred(job.simulation)))


def test_a_job_is_the_same_after_it_was_sent():
    unit = unit_of()
    assert Unit.parse(unit.line()) == unit
    assert json.loads(unit.task().run())["workload"] == "array"


@pytest.mark.parametrize("what", ["build", "version"])
def test_a_job_of_another_build_does_not_run(what):
    unit = unit_of()
    asked = {**unit.request.asked, what: "other"}
    other = replace(unit, request=Request(unit.request.kind, asked))
    with pytest.raises(Misplaced, match="install the same wheel on both"):
        other.task()
    came = execute(other.line(), None, "this")
    assert came["misplaced"]


def test_a_job_with_a_trace_does_not_run_where_the_trace_is_another_one(tmp_path):
    trace = tmp_path / "t.gvt"
    trace.write_bytes(b"one")
    unit = unit_of(str(trace))
    trace.write_bytes(b"another")
    with pytest.raises(Misplaced, match=r"does not have the trace .*t\.gvt"):
        unit.task()
    trace.unlink()
    with pytest.raises(Misplaced, match="under one name"):
        unit.task()


def test_what_leaves_files_is_not_sent():
    job = Job("silo", "array", Machine("silo"), bank_loads="loads.csv")
    with pytest.raises(ConfigError, match="runs on this host alone"):
        Unit.of(Work("silo", job, Deferred(job.simulation)))


def test_stopping_stops_what_runs_and_what_has_not_begun(monkeypatch):
    monkeypatch.setenv("FAULT_SECONDS", "60")
    line = unit_of().line()
    threading.Timer(0.3, units.stop, ["this"]).start()
    assert execute(line, None, "this") == {}
    assert execute(line, None, "this") == {}


class Many:
    """Records that are made whenever they are gone through, as those of a store are read."""

    def __init__(self, record, count):
        self.record, self.count = record, count

    def __iter__(self):
        for seed in range(self.count):
            yield replace(self.record, seed=seed, stats=dict(self.record.stats))


class Nowhere(io.RawIOBase):
    """Counts what is written."""

    size = 0

    def writable(self):
        return True

    def write(self, content):
        self.size += len(content)
        return len(content)


@pytest.mark.parametrize(
    # Parquet is written in groups of 1,024 rows.
    ("form", "counts"),
    [("json", (400, 1_600)), ("csv", (400, 1_600)), ("parquet", (2_000, 4_000))],
)
def test_results_are_written_one_after_the_other(form, counts):
    record = graven.run("silo", "btree", transactions=10, store=None)
    sizes, peaks = [], []
    for count in counts:
        sink = Nowhere()
        tracemalloc.start()
        write_records(sink, Many(record, count), form, full=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        sizes.append(sink.size)
    assert sizes[1] > 1.5 * sizes[0]
    assert peaks[1] < 1.2 * peaks[0] + 1e6, "memory does not follow the number of results"


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
@pytest.mark.parametrize("count", [0, 1, 1500])
def test_what_is_written_one_after_the_other_is_read_as_a_whole(form, count, tmp_path):
    record = graven.run("silo", "btree", transactions=10, store=None)
    file = tmp_path / f"all.{form}"
    with output.written(file) as sink:
        write_records(sink, Many(record, count), form, full=True)
    if form == "json":
        assert json.loads(file.read_text()) == [r.to_dict() for r in Many(record, count)]
        assert file.read_text() == json_text([r.to_dict() for r in Many(record, count)])
    elif form == "csv":
        rows = list(csv.DictReader(file.open()))
        assert [row["seed"] for row in rows] == [str(seed) for seed in range(count)]
    else:
        table = pq.read_table(file)
        assert table.column("seed").to_pylist() == list(range(count)) if count else not len(table)


def test_what_fails_while_it_is_written_leaves_the_old_file(tmp_path):
    file = tmp_path / "all.json"
    file.write_text("old")

    def broken():
        yield graven.run("silo", "btree", transactions=10, store=None)
        raise RuntimeError("the store has gone")

    with pytest.raises(RuntimeError), output.written(file) as sink:
        write_records(sink, broken(), "json", full=True)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
