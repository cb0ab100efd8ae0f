"""`graven compare`: what is printed, what is written, and how it ends."""

from __future__ import annotations

import csv
import functools
import io
import itertools
import json
import os
import pty
import re
import signal
import subprocess
import sys

import engine_hook
import pyarrow.parquet as pq
import pytest
from conftest import ENVIRONMENT, HERE, documents, record, start, stopped, waits
from rich.console import Console

import graven as package
from graven.cli.tables import print_comparison
from graven.results.comparison import METRICS, Comparison
from graven.running import progress
from graven.running.pool import Snapshot

SMALL = ("--designs", "base,silo", "--workloads", "array,btree")
FIXED_STATS = {
    "cycles",
    "instructions",
    "ipc",
    "committed_transactions",
    "throughput_tx_per_s",
    "commit_latency_cycles_mean",
    "transaction_latency_cycles_mean",
    "media_write_requests",
    "media_bytes_written",
    "media_bits_programmed",
    "log_bytes_written",
    "write_energy_pj",
    "image_digest",
}


def test_without_options_all_default_designs_run_on_the_micro_workloads(quick, tmp_path):
    done = quick("compare")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").exists()
    for name in ("ideal †", "base", "fwb", "lad", "silo", "array", "rbtree", "mean"):
        assert name in done.stdout
    assert "hoop" not in done.stdout
    assert "tpcc" not in done.stdout


FACTORS = {"ideal": 3.2, "base": 1.0, "silo": 2.5}


def made_up(varied):
    """Results of three designs on two workloads, by arithmetic."""
    size = 1 + len(varied.get("workload.element_bytes", ""))
    return [
        record(
            design,
            workload,
            {metric.stat: 1e6 * factor * of / at / size for at, metric in enumerate(METRICS, 1)},
            varied=varied,
        )
        for workload, of in {"array": 1, "btree": 3}.items()
        for design, factor in FACTORS.items()
    ]


@pytest.mark.parametrize(
    ("name", "varied"),
    [
        ("compare", [{}]),
        ("compare_vary", [{"workload.element_bytes": size} for size in ("64 B", "4 KB.")]),
    ],
)
def test_tables_are_as_agreed(name, varied):
    records = tuple(itertools.chain(*map(made_up, varied)))
    text = io.StringIO()
    print_comparison(Console(file=text, width=100), Comparison(records).normalised("base"))
    expected = HERE / "snapshots" / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        expected.write_text(text.getvalue())
    assert text.getvalue() == expected.read_text()


def test_several_thread_counts_are_rows_of_the_table(quick):
    done = quick("compare", *SMALL, "--threads", "1,4", "--no-report")
    assert "threads" in done.stdout
    assert done.returncode == 0


VARY = ("--vary", "workload.element_bytes= 64 B , 4 KB")


def test_a_name_for_several_shows_the_fastest(quick):
    names, workloads = ("--designs", "base,unsafe-base"), ("--workloads", "array,btree")
    records = documents(quick("compare", *names, *workloads, "--format", "json").stdout)
    assert [r["design"] for r in records] == ["base", "unsafe-base"] * 2
    both = ("--designs", "unsafe-redo,unsafe-undo")
    each = documents(quick("compare", *both, *workloads, "--format", "json").stdout)
    fastest = [
        max(pair, key=lambda record: record["stats"]["throughput_tx_per_s"])
        for pair in (each[:2], each[2:])
    ]
    assert [r["stats"] for r in records[1::2]] == [r["stats"] for r in fastest]


def test_a_name_for_several_has_no_result_if_one_of_them_has_none(quick):
    names = ("--designs", "silo,unsafe-base", "--workloads", "array")
    done = quick("compare", *names, "--format", "json", FAULT_FAIL="unsafe-redo")
    assert done.returncode == 1
    assert [r["design"] for r in documents(done.stdout)] == ["silo"]


def test_a_name_for_several_has_its_place_in_the_report(quick, tmp_path):
    done = quick("compare", "--designs", "base,unsafe-base", "--workloads", "array")
    assert done.returncode == 0, done.stderr
    [alias] = [a for a in package.catalogue().aliases if a.name == "unsafe-base"]
    assert alias.summary in (tmp_path / "report.html").read_text()


def test_metrics_can_be_chosen(quick, tmp_path):
    done = quick("compare", *SMALL, "--metrics", "ipc,cycles")
    assert done.returncode == 0, done.stderr
    assert "IPC, relative to base (higher is better)" in done.stdout
    assert "Cycles, relative to base (lower is better)" in done.stdout
    assert "Throughput" not in done.stdout
    assert "--metrics ipc,cycles" in (tmp_path / "report.html").read_text()


def test_an_unknown_metric_is_refused(quick):
    done = quick("compare", *SMALL, "--metrics", "ipcc", FAULT_FAIL="*")
    assert done.returncode == 2
    assert "metrics: unknown statistic `ipcc`" in done.stderr


def test_every_combination_of_what_is_varied_is_compared(quick):
    done = quick("compare", *SMALL, *VARY, "--vary", "pm.write_ns=150,300", "--format", "json")
    records = documents(done.stdout)
    assert len(records) == 16
    varied = [record["varied"] for record in records[::4]]
    assert varied == [
        {"workload.element_bytes": size, "pm.write_ns": time}
        for size in ("64 B", "4 KB")
        for time in (150.0, 300.0)
    ]
    assert [(r["design"], r["workload"]) for r in records[4:8]] == [
        ("base", "array"),
        ("silo", "array"),
        ("base", "btree"),
        ("silo", "btree"),
    ]


def test_combinations_come_before_thread_counts(quick):
    pair = ("--designs", "base", "--workloads", "array", "--threads", "1,4")
    records = documents(quick("compare", *pair, *VARY, "--format", "json").stdout)
    assert [(r["varied"]["workload.element_bytes"], r["threads"]) for r in records] == [
        ("64 B", 1),
        ("64 B", 4),
        ("4 KB", 1),
        ("4 KB", 4),
    ]


def test_varied_cores_have_a_thread_each(quick, tmp_path):
    done = quick("compare", *SMALL, "--vary", "core.count=2,4", "--out", "results")
    assert done.returncode == 0, done.stderr
    assert not re.search(r"^ design +threads", done.stdout, re.MULTILINE)
    assert done.stdout.count("core.count = 4\n") == len(METRICS)
    records = documents((tmp_path / "results" / "results.json").read_text())
    assert [record["threads"] for record in records] == [2] * 4 + [4] * 4
    report = (tmp_path / "results" / "report.html").read_text()
    assert "Not all simulations finished" not in report
    assert "--vary core.count=2,4" in report
    assert "--threads" not in report


def test_what_is_varied_stands_before_the_statistics(quick, tmp_path):
    column = "config.workload.element_bytes"
    short = quick("compare", *SMALL, *VARY, "--format", "csv").stdout
    quick("compare", *SMALL, *VARY, "--out", "results")
    full = (tmp_path / "results" / "results.csv").read_text()
    table = pq.read_table(tmp_path / "results" / "results.parquet")
    for names in (short.split("\n")[0].split(","), full.split("\n")[0].split(",")):
        assert names[6:9] == ["safe", column, "cycles"]
        assert names.count(column) == 1
    assert table.column_names[6:9] == ["safe", column, "cycles"]
    assert table.column(column).to_pylist() == ["64 B"] * 4 + ["4 KB"] * 4
    [last] = documents((tmp_path / "results" / "results.json").read_text())[-1:]
    assert last["varied"] == {"workload.element_bytes": last["config"]["workload"]["element_bytes"]}


def test_a_failure_says_in_which_combination(quick):
    done = quick("compare", *SMALL, *VARY, "--no-report", FAULT_FAIL="silo")
    assert done.returncode == 1
    assert "silo on array, workload.element_bytes = 4 KB: cycle 1234" in done.stderr


MINE = ("compare", "--machine", "mine.toml", "--no-report")


@pytest.fixture
def mine(tmp_path):
    """Writes the table of what is compared on a machine, `mine.toml`."""
    head = '[workload]\nfootprint_bytes = "128 KB"\n[comparison]\n'
    return lambda text: (tmp_path / "mine.toml").write_text(head + text)


@pytest.fixture
def shown(quick, mine):
    """The designs, workloads and varied values of a comparison on a machine that says them."""
    mine("""
designs = ["base", "lad", "silo"]
workloads = ["array", "hash"]
baseline = "lad"
vary = { "workload.element_bytes" = ["64 B", "4 KB"] }
""")
    return functools.partial(_shown, quick)


def _shown(quick, *arguments):
    done = quick(*MINE, *arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    records = documents(done.stdout)
    varied = [tuple(record.get("varied", {}).items()) for record in records]
    return tuple(
        list(dict.fromkeys(found))
        for found in ([r["design"] for r in records], [r["workload"] for r in records], varied)
    )


SIZES = [(("workload.element_bytes", "64 B"),), (("workload.element_bytes", "4 KB"),)]


def test_a_machine_may_say_what_is_compared_on_it(quick, shown):
    assert shown() == (["base", "lad", "silo"], ["array", "hash"], SIZES)
    assert "relative to lad" in quick(*MINE).stdout


def test_each_option_takes_the_place_of_what_the_machine_says(quick, shown):
    designs, workloads = ["base", "lad", "silo"], ["array", "hash"]
    assert shown("--designs", "fwb,lad") == (["fwb", "lad"], workloads, SIZES)
    assert shown("--workloads", "queue") == (designs, ["queue"], SIZES)
    times = [(("pm.write_ns", 100.0),), (("pm.write_ns", 200.0),)]
    assert shown("--vary", "pm.write_ns=100,200") == (designs, workloads, times)
    assert "relative to silo" in quick(*MINE, "--baseline", "silo").stdout


def test_a_key_that_is_set_is_not_varied(shown):
    nothing = [()]
    assert shown("--set", "workload.element_bytes=1 KB")[2] == nothing
    assert shown("--set", "pm.write_ns=1")[2] == SIZES


@pytest.mark.usefixtures("shown")
def test_a_baseline_of_the_machines_that_is_not_compared_is_not_used(quick):
    assert "relative to base" in quick(*MINE, "--designs", "base,silo").stdout
    done = quick(*MINE, "--designs", "base,silo", "--baseline", "lad")
    assert done.returncode == 2
    assert "`lad` is not among the designs compared: base, silo" in done.stderr


@pytest.mark.usefixtures("shown")
def test_a_baseline_of_the_machines_that_fails_is_replaced_and_said(quick):
    done = quick(*MINE, FAULT_FAIL="lad")
    assert "no result of the baseline lad; another design takes its place" in done.stderr
    assert "relative to base" in done.stdout


def test_a_machine_says_how_many_threads_and_transactions_unless_told_otherwise(quick, mine):
    mine('designs = ["silo"]\nthreads = [4, 2]\ntransactions = 70\n')

    def counts(*arguments):
        only = ("--workloads", "array", "--format", "json")
        done = quick("compare", "--machine", "mine.toml", *only, *arguments)
        assert done.returncode == 0, done.stderr
        return [(r["threads"], r["transactions"]) for r in documents(done.stdout)]

    assert counts() == [(4, 70), (2, 70)]
    assert counts("--threads", "3") == [(3, 70)]
    assert counts("--transactions", "50") == [(4, 50), (2, 50)]


def test_json_on_standard_output_is_one_document_and_nothing_else(quick):
    done = quick("compare", *SMALL, "--format", "json")
    records = documents(done.stdout)
    assert [(r["design"], r["workload"]) for r in records] == [
        ("base", "array"),
        ("silo", "array"),
        ("base", "btree"),
        ("silo", "btree"),
    ]
    for each in records:
        assert list(each) == [
            "design",
            "workload",
            "machine",
            "threads",
            "transactions",
            "seed",
            "safe",
            "stats",
        ]
        assert set(each["stats"]) >= FIXED_STATS


def test_json_never_contains_nan(monkeypatch):
    text = json.dumps(record("ideal", "array", {"ipc": 1.5}).to_dict())
    monkeypatch.setattr(engine_hook.Simulation, "run", lambda _: text.replace("1.5", "NaN"))
    assert package.run("ideal", "array").stats == {"ipc": None}


def test_the_same_run_in_another_folder_gives_the_same_bytes(quick, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "mine.toml").write_text("[pm]\nwrite_ns = 300\n")
    arguments = ("compare", *SMALL, "--format", "json", "--jobs", "2", "--machine")
    first = quick(*arguments, "mine.toml")
    again = quick(*arguments, "mine.toml")
    other = quick(*arguments, "../mine.toml", cwd=tmp_path / "elsewhere")
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout == other.stdout


def test_out_folder_has_every_format_and_the_report(quick, tmp_path):
    done = quick("compare", *SMALL, "--set", "pm.write_ns=200", "--out", "deep/results")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "deep" / "results"
    assert sorted(path.name for path in folder.iterdir()) == [
        "report.html",
        "results.csv",
        "results.json",
        "results.parquet",
    ]
    records = documents((folder / "results.json").read_text())
    assert records[0]["config"]["pm"]["write_ns"] == 200.0
    assert records[0]["version"]
    rows = list(csv.DictReader((folder / "results.csv").open()))
    table = pq.read_table(folder / "results.parquet")
    assert len(rows) == table.num_rows == len(records) == 4
    for each, row, line in zip(records, rows, table.to_pylist(), strict=True):
        for name, value in each["stats"].items():
            assert line[name] == value
            assert row[name] == str(value)
        assert line["config.pm.write_ns"] == 200.0
        assert line["safe"] is True
        assert row["safe"] == "true"
    assert table.schema.field("cycles").metadata[b"unit"] == b"cycles"


def test_csv_and_parquet_on_standard_output(quick, tmp_path):
    rows = list(csv.DictReader(io.StringIO(quick("compare", *SMALL, "--format", "csv").stdout)))
    assert [row["design"] for row in rows] == ["base", "silo", "base", "silo"]
    with (tmp_path / "results.parquet").open("wb") as file:
        subprocess.run(
            [sys.executable, HERE / "engine_hook.py", "compare", *SMALL, "--format", "parquet"],
            env=ENVIRONMENT,
            stdout=file,
            check=True,
        )
    assert pq.read_table(tmp_path / "results.parquet").num_rows == 4


def test_baseline_can_be_chosen(quick):
    done = quick("compare", *SMALL, "--baseline", "silo", "--no-report")
    assert "relative to silo" in done.stdout


def test_without_base_the_first_safe_design_is_the_baseline(quick):
    done = quick("compare", "--designs", "ideal,lad,silo", "--no-report")
    assert "relative to lad" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--designs", "nope"], "unknown design `nope`; known are ideal, base"),
        (["--workloads", "nope"], "unknown workload `nope`"),
        (["--machine", "nope"], "unknown machine `nope`"),
        (["--machine", "nope.toml"], "cannot read nope.toml: No such file"),
        (["--machine", "bad.toml"], "bad.toml: unknown key `boom`"),
        (["--set", "pm.nope=1"], "--set: unknown key `pm.nope`"),
        (["--set", "pm.write_ns"], "is not of the form SECTION.KEY=VALUE"),
        (["--set", "pm.write_ns=fast"], '`pm.write_ns` = "fast" is not allowed'),
        (["--vary", "pm.nope=1,2"], "--vary: unknown key `pm.nope`"),
        (["--vary", "pm.write_ns=1,fast"], '--vary: `pm.write_ns` = "fast" is not allowed'),
        (["--vary", "pm.write_ns"], "`pm.write_ns` is not of the form SECTION.KEY=V1,V2"),
        (["--vary", "pm.write_ns=1,,2"], "is not of the form SECTION.KEY=V1,V2"),
        (["--vary", "=1,2"], "is not of the form SECTION.KEY=V1,V2"),
        (["--vary", "pm.write_ns=1,1.0"], "another value than those before it, and 1.0 is there"),
        (
            ["--vary", "pm.write_ns=1", "--vary", "pm.write_ns = 2"],
            "--vary: `pm.write_ns` is given twice; its values go in one list, pm.write_ns=1,2",
        ),
        (["--vary", "pm.write_ns=1,2", "--set", "pm.write_ns=1"], "--set gives it one value"),
        (["--threads", "1,x"], "`1,x` is not a number of threads"),
        (["--threads", "100"], "from 1 to 8"),
        (["--transactions", "0"], "0 is not in the range x>=1"),
        (["--seed", "-1"], "--seed"),
        (["--designs", ","], "designs: the list is empty"),
        (["--baseline", "silo", "--designs", "base"], "`silo` is not among the designs"),
        (["--out", "results.txt"], "must end in .json, .csv, .parquet"),
        (["--out", "file/results"], "file"),
        (["--report", "nowhere/"], "nowhere"),
        (["--report", "missing/report.html"], "cannot write into missing: No such file"),
        (["--format", "xml"], "'xml' is not one of"),
        (["--nope"], "No such option"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(quick, tmp_path, arguments, message):
    (tmp_path / "bad.toml").write_text("boom = 1\n")
    (tmp_path / "file").write_text("a file, not a folder")
    (tmp_path / "nowhere").mkdir()
    done = quick("compare", *arguments, FAULT_FAIL="*")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("graven: error: ")
    assert message in done.stderr


def test_a_failed_simulation_is_named_and_the_others_are_kept(quick, tmp_path):
    done = quick("compare", *SMALL, "--out", "results", FAULT_FAIL="silo")
    assert done.returncode == 1
    assert "silo on array: cycle 1234: line 0x40 read back stale" in done.stderr
    assert "Traceback" not in done.stderr
    records = documents((tmp_path / "results" / "results.json").read_text())
    assert [record["design"] for record in records] == ["base", "base"]


def test_a_baseline_that_fails_is_replaced_and_said(quick):
    done = quick("compare", *SMALL, "--no-report", FAULT_FAIL="base")
    assert done.returncode == 1
    assert "relative to silo" in done.stdout


def test_an_interrupt_stops_at_once_and_keeps_what_has_finished(tmp_path):
    arguments = ("compare", *SMALL, "--format", "json", "--out", "results", "--jobs", "2")
    process = start(tmp_path, *arguments, **waits(tmp_path))
    stdout, stderr = stopped(process, tmp_path / "silo-btree", signal.SIGINT, 130)
    records = documents(stdout)
    assert "interrupted: 2 of 4 simulations had finished" in stderr
    assert [record["design"] for record in records] == ["base", "base"]
    kept = documents((tmp_path / "results" / "results.json").read_text())
    assert [item["stats"] for item in kept] == [item["stats"] for item in records]


def test_an_interrupt_before_any_result_is_an_empty_list(tmp_path):
    arguments = ("compare", *SMALL, "--format", "json", "--jobs", "1")
    process = start(tmp_path, *arguments, **waits(tmp_path, "base"))
    stdout, _ = stopped(process, tmp_path / "base-array", signal.SIGINT, 130)
    assert documents(stdout) == []


def test_progress_with_time_left_on_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, HERE / "engine_hook.py", "compare", *SMALL, "--no-report"],
        cwd=tmp_path,
        env={**ENVIRONMENT, "FAULT_SECONDS": "0.7", "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                chunk = os.read(ours, 4096)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
    assert process.returncode == 0
    assert b"of 4 simulations" in shown
    assert b" left" in shown


def test_a_long_run_that_has_just_begun_shows_how_far_it_is(monkeypatch, capsys):
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    with progress.Display() as display:
        for done, elapsed in ((0.0, 1.0), (0.0008, 60.0), (0.34, 900.0)):
            display(Snapshot(0, 1, done, ("silo on hash",), elapsed))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(", ")[1] for line in lines] == ["0%", "0.08%", "34%"]
    assert lines[1].endswith("about 20 h 49 min left")


def test_no_progress_in_a_short_run_without_a_terminal(quick):
    done = quick("compare", *SMALL, "--format", "csv")
    assert done.stderr == ""


def test_a_reader_that_goes_away_is_no_traceback(tmp_path):
    command = f"{sys.executable} {HERE / 'engine_hook.py'} compare --format json | head -c 10"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
