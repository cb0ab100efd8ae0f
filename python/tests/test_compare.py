"""`graven compare`: what is printed, what is written, and how it ends."""

from __future__ import annotations

import csv
import io
import os
import pty
import re
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest
from conftest import ENVIRONMENT, HERE, await_file, documents

from graven.results.comparison import METRICS
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


def test_without_options_all_default_designs_run_on_the_micro_workloads(graven, tmp_path):
    done = graven("compare")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").exists()
    for name in ("ideal †", "base", "fwb", "lad", "silo", "array", "rbtree", "mean"):
        assert name in done.stdout
    assert "hoop" not in done.stdout
    assert "tpcc" not in done.stdout


def test_the_table_is_as_agreed(graven):
    done = graven("compare", "--no-report", "--designs", "all")
    expected = HERE / "snapshots" / "compare.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        expected.write_text(done.stdout)
    assert done.stdout == expected.read_text()


def test_several_thread_counts_are_rows_of_the_table(graven):
    done = graven("compare", *SMALL, "--threads", "1,4", "--no-report")
    assert "threads" in done.stdout
    assert done.returncode == 0


VARY = ("--vary", "workload.element_bytes= 64 B , 4 KB")


def test_the_tables_of_a_variation_are_as_agreed(graven):
    done = graven("compare", "--no-report", "--designs", "all", "--workloads", "all", *VARY)
    expected = HERE / "snapshots" / "compare_vary.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        expected.write_text(done.stdout)
    assert done.stdout == expected.read_text()
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_a_name_for_several_shows_the_fastest(graven):
    names = ("--designs", "base,better", "--workloads", "array,btree")
    records = documents(graven("compare", *names, "--format", "json").stdout)
    assert [r["design"] for r in records] == ["base", "better", "base", "better"]
    assert all(r["stats"]["throughput_tx_per_s"] > 0 for r in records)
    fwb = documents(graven("compare", "--designs", "fwb", *names[2:], "--format", "json").stdout)
    assert [r["stats"] for r in records[1::2]] == [r["stats"] for r in fwb]


def test_a_name_for_several_has_no_result_if_one_of_them_has_none(graven):
    names = ("--designs", "silo,better", "--workloads", "array")
    done = graven("compare", *names, "--format", "json", FAKE_FAIL="base")
    assert done.returncode == 1
    assert [r["design"] for r in documents(done.stdout)] == ["silo"]


def test_a_name_for_several_has_its_place_in_the_report(graven, tmp_path):
    done = graven("compare", "--designs", "base,better", "--workloads", "array")
    assert done.returncode == 0, done.stderr
    assert "The better of base and fwb" in (tmp_path / "report.html").read_text()


def test_metrics_can_be_chosen(graven, tmp_path):
    done = graven("compare", *SMALL, "--metrics", "ipc,cycles")
    assert done.returncode == 0, done.stderr
    assert "IPC, relative to base (higher is better)" in done.stdout
    assert "Cycles, relative to base (lower is better)" in done.stdout
    assert "Throughput" not in done.stdout
    assert "--metrics ipc,cycles" in (tmp_path / "report.html").read_text()


def test_an_unknown_metric_is_refused(graven):
    done = graven("compare", *SMALL, "--metrics", "ipcc", FAKE_SECONDS="60")
    assert done.returncode == 2
    assert "metrics: unknown statistic `ipcc`" in done.stderr


def test_every_combination_of_what_is_varied_is_compared(graven):
    done = graven("compare", *SMALL, *VARY, "--vary", "pm.write_ns=150,300", "--format", "json")
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


def test_combinations_come_before_thread_counts(graven):
    pair = ("--designs", "base", "--workloads", "array", "--threads", "1,4")
    records = documents(graven("compare", *pair, *VARY, "--format", "json").stdout)
    assert [(r["varied"]["workload.element_bytes"], r["threads"]) for r in records] == [
        ("64 B", 1),
        ("64 B", 4),
        ("4 KB", 1),
        ("4 KB", 4),
    ]


def test_varied_cores_have_a_thread_each(graven, tmp_path):
    done = graven("compare", *SMALL, "--vary", "core.count=2,4", "--out", "results")
    assert done.returncode == 0, done.stderr
    assert not re.search(r"^ design +threads", done.stdout, re.MULTILINE)
    assert done.stdout.count("core.count = 4\n") == len(METRICS)
    records = documents((tmp_path / "results" / "results.json").read_text())
    assert [record["threads"] for record in records] == [2] * 4 + [4] * 4
    report = (tmp_path / "results" / "report.html").read_text()
    assert "Not all simulations finished" not in report
    assert "--vary core.count=2,4" in report
    assert "--threads" not in report


def test_what_is_varied_stands_before_the_statistics(graven, tmp_path):
    column = "config.workload.element_bytes"
    short = graven("compare", *SMALL, *VARY, "--format", "csv").stdout
    graven("compare", *SMALL, *VARY, "--out", "results")
    full = (tmp_path / "results" / "results.csv").read_text()
    table = pq.read_table(tmp_path / "results" / "results.parquet")
    for names in (short.split("\n")[0].split(","), full.split("\n")[0].split(",")):
        assert names[6:9] == ["safe", column, "cycles"]
        assert names.count(column) == 1
    assert table.column_names[6:9] == ["safe", column, "cycles"]
    assert table.column(column).to_pylist() == ["64 B"] * 4 + ["4 KB"] * 4
    [last] = documents((tmp_path / "results" / "results.json").read_text())[-1:]
    assert last["varied"] == {"workload.element_bytes": last["config"]["workload"]["element_bytes"]}


def test_a_failure_says_in_which_combination(graven):
    done = graven("compare", *SMALL, *VARY, "--no-report", FAKE_FAIL="silo")
    assert done.returncode == 1
    assert "silo on array, workload.element_bytes = 4 KB: cycle 1234" in done.stderr


MORLOG = ("compare", "--machine", "morlog", "--no-report")


def shown(graven, *arguments):
    """Designs, workloads and varied values of a comparison on the stand-in's MorLog."""
    done = graven(*MORLOG, *arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    records = documents(done.stdout)
    varied = [tuple(record.get("varied", {}).items()) for record in records]
    return tuple(
        list(dict.fromkeys(found))
        for found in ([r["design"] for r in records], [r["workload"] for r in records], varied)
    )


SIZES = [(("workload.element_bytes", "64 B"),), (("workload.element_bytes", "4 KB"),)]


def test_a_machine_may_say_what_is_compared_on_it(graven):
    assert shown(graven) == (["base", "lad", "silo"], ["array", "hash"], SIZES)
    assert "relative to lad" in graven(*MORLOG).stdout


def test_each_option_takes_the_place_of_what_the_machine_says(graven):
    designs, workloads = ["base", "lad", "silo"], ["array", "hash"]
    assert shown(graven, "--designs", "fwb,lad") == (["fwb", "lad"], workloads, SIZES)
    assert shown(graven, "--workloads", "queue") == (designs, ["queue"], SIZES)
    times = [(("pm.write_ns", 100.0),), (("pm.write_ns", 200.0),)]
    assert shown(graven, "--vary", "pm.write_ns=100,200") == (designs, workloads, times)
    assert "relative to silo" in graven(*MORLOG, "--baseline", "silo").stdout


def test_a_key_that_is_set_is_not_varied(graven):
    nothing = [()]
    assert shown(graven, "--set", "workload.element_bytes=1 KB")[2] == nothing
    assert shown(graven, "--set", "pm.write_ns=1")[2] == SIZES


def test_a_baseline_of_the_machines_that_is_not_compared_is_not_used(graven):
    assert "relative to base" in graven(*MORLOG, "--designs", "base,silo").stdout
    done = graven(*MORLOG, "--designs", "base,silo", "--baseline", "lad")
    assert done.returncode == 2
    assert "`lad` is not among the designs compared: base, silo" in done.stderr


def test_a_baseline_of_the_machines_that_fails_is_replaced_and_said(graven):
    done = graven(*MORLOG, FAKE_FAIL="lad")
    assert "no result of the baseline lad; another design takes its place" in done.stderr
    assert "relative to base" in done.stdout


def test_a_machine_of_the_users_own_says_it_too(graven, tmp_path):
    text = '[comparison]\ndesigns = ["silo"]\nvary = { "pm.write_ns" = [100, 200] }\n'
    (tmp_path / "mine.toml").write_text(text)
    done = graven("compare", "--machine", "mine.toml", "--format", "json")
    records = documents(done.stdout)
    assert {record["design"] for record in records} == {"silo"}
    assert [r["varied"] for r in records[::5]] == [{"pm.write_ns": 100.0}, {"pm.write_ns": 200.0}]


def test_a_machine_says_how_many_threads_and_transactions_unless_told_otherwise(graven, tmp_path):
    text = '[comparison]\ndesigns = ["silo"]\nthreads = [4, 2]\ntransactions = 700\n'
    (tmp_path / "mine.toml").write_text(text)

    def counts(*arguments):
        only = ("--workloads", "array", "--format", "json")
        done = graven("compare", "--machine", "mine.toml", *only, *arguments)
        assert done.returncode == 0, done.stderr
        return [(r["threads"], r["transactions"]) for r in documents(done.stdout)]

    assert counts() == [(4, 700), (2, 700)]
    assert counts("--threads", "3") == [(3, 700)]
    assert counts("--transactions", "50") == [(4, 50), (2, 50)]


def test_json_on_standard_output_is_one_document_and_nothing_else(graven):
    done = graven("compare", *SMALL, "--format", "json")
    records = documents(done.stdout)
    assert [(r["design"], r["workload"]) for r in records] == [
        ("base", "array"),
        ("silo", "array"),
        ("base", "btree"),
        ("silo", "btree"),
    ]
    for record in records:
        assert list(record) == [
            "design",
            "workload",
            "machine",
            "threads",
            "transactions",
            "seed",
            "safe",
            "stats",
        ]
        assert set(record["stats"]) >= FIXED_STATS


def test_json_never_contains_nan(graven):
    done = graven("compare", "--designs", "ideal", "--workloads", "array", "--format", "json")
    [record] = documents(done.stdout)
    assert record["stats"]["transaction_latency_cycles_p99"] is None


def test_the_same_run_in_another_folder_gives_the_same_bytes(graven, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "mine.toml").write_text("[pm]\nwrite_ns = 300\n")
    arguments = ("compare", *SMALL, "--format", "json", "--jobs", "2", "--machine")
    first = graven(*arguments, "mine.toml")
    again = graven(*arguments, "mine.toml")
    other = graven(*arguments, "../mine.toml", cwd=tmp_path / "elsewhere")
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout == other.stdout


def test_out_folder_has_every_format_and_the_report(graven, tmp_path):
    done = graven("compare", *SMALL, "--set", "pm.write_ns=200", "--out", "deep/results")
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
    for record, row, line in zip(records, rows, table.to_pylist(), strict=True):
        for name, value in record["stats"].items():
            assert line[name] == value
            assert row[name] == str(value)
        assert line["config.pm.write_ns"] == 200.0
        assert line["safe"] is True
        assert row["safe"] == "true"
    assert table.schema.field("cycles").metadata[b"unit"] == b"cycles"


def test_csv_and_parquet_on_standard_output(graven, tmp_path):
    rows = list(csv.DictReader(io.StringIO(graven("compare", *SMALL, "--format", "csv").stdout)))
    assert [row["design"] for row in rows] == ["base", "silo", "base", "silo"]
    with (tmp_path / "results.parquet").open("wb") as file:
        subprocess.run(
            [sys.executable, HERE / "fake_graven.py", "compare", *SMALL, "--format", "parquet"],
            env=ENVIRONMENT,
            stdout=file,
            check=True,
        )
    assert pq.read_table(tmp_path / "results.parquet").num_rows == 4


def test_baseline_can_be_chosen(graven):
    done = graven("compare", *SMALL, "--baseline", "silo", "--no-report")
    assert "relative to silo" in done.stdout


def test_without_base_the_first_safe_design_is_the_baseline(graven):
    done = graven("compare", "--designs", "ideal,lad,silo", "--no-report")
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
        (["--set", "pm.write_ns=fast"], "`pm.write_ns` = fast is not allowed"),
        (["--vary", "pm.nope=1,2"], "--vary: unknown key `pm.nope`"),
        (["--vary", "pm.write_ns=1,fast"], "--vary: `pm.write_ns` = fast is not allowed"),
        (["--vary", "pm.write_ns"], "`pm.write_ns` is not of the form SECTION.KEY=V1,V2"),
        (["--vary", "pm.write_ns=1,,2"], "is not of the form SECTION.KEY=V1,V2"),
        (["--vary", "=1,2"], "is not of the form SECTION.KEY=V1,V2"),
        (["--vary", "pm.write_ns=1,1.0"], "--vary: `pm.write_ns` has a value that is there"),
        (
            ["--vary", "pm.write_ns=1", "--vary", "pm.write_ns = 2"],
            "--vary: `pm.write_ns` is given twice; its values go in one list, pm.write_ns=1,2",
        ),
        (["--vary", "pm.write_ns=1,2", "--set", "pm.write_ns=1"], "--set gives it one value"),
        (["--threads", "1,x"], "`1,x` is not a number of threads"),
        (["--threads", "100"], "from 1 to 64"),
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
def test_bad_input_is_one_line_and_exit_code_2(graven, tmp_path, arguments, message):
    (tmp_path / "bad.toml").write_text("boom = 1\n")
    (tmp_path / "file").write_text("a file, not a folder")
    (tmp_path / "nowhere").mkdir()
    done = graven("compare", *arguments, FAKE_SECONDS="60")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("graven: error: ")
    assert message in done.stderr


def test_a_failed_simulation_is_named_and_the_others_are_kept(graven, tmp_path):
    done = graven("compare", *SMALL, "--out", "results", FAKE_FAIL="silo")
    assert done.returncode == 1
    assert "silo on array: cycle 1234: line 0x40 read back stale" in done.stderr
    assert "Traceback" not in done.stderr
    records = documents((tmp_path / "results" / "results.json").read_text())
    assert [record["design"] for record in records] == ["base", "base"]


def test_a_baseline_that_fails_is_replaced_and_said(graven):
    done = graven("compare", *SMALL, "--no-report", FAKE_FAIL="base")
    assert done.returncode == 1
    assert "relative to silo" in done.stdout


def start(cwd, *arguments, **environment):
    return subprocess.Popen(
        [sys.executable, HERE / "fake_graven.py", *arguments],
        cwd=cwd,
        env={**ENVIRONMENT, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _interrupt(process, started):
    await_file(started)
    process.send_signal(signal.SIGINT)
    asked = time.monotonic()
    stdout, stderr = process.communicate(timeout=60)
    assert time.monotonic() - asked < 30
    assert process.returncode == 130
    assert "Traceback" not in stderr
    return documents(stdout), stderr


def test_an_interrupt_stops_at_once_and_keeps_what_has_finished(tmp_path):
    slow = {"FAKE_SECONDS": "600", "FAKE_SLOW": "silo", "FAKE_STARTED": str(tmp_path)}
    arguments = ("compare", *SMALL, "--format", "json", "--out", "results", "--jobs", "2")
    process = start(tmp_path, *arguments, **slow)
    records, stderr = _interrupt(process, tmp_path / "silo-btree")
    assert "interrupted: 2 of 4 simulations had finished" in stderr
    assert [record["design"] for record in records] == ["base", "base"]
    kept = documents((tmp_path / "results" / "results.json").read_text())
    assert [item["stats"] for item in kept] == [item["stats"] for item in records]


def test_an_interrupt_before_any_result_is_an_empty_list(tmp_path):
    slow = {"FAKE_SECONDS": "600", "FAKE_STARTED": str(tmp_path)}
    process = start(tmp_path, "compare", *SMALL, "--format", "json", "--jobs", "1", **slow)
    records, _ = _interrupt(process, tmp_path / "base-array")
    assert records == []


def test_progress_with_time_left_on_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, HERE / "fake_graven.py", "compare", *SMALL, "--no-report"],
        cwd=tmp_path,
        env={**ENVIRONMENT, "FAKE_SECONDS": "0.7", "TERM": "xterm"},
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


def test_no_progress_in_a_short_run_without_a_terminal(graven):
    done = graven("compare", *SMALL, "--format", "csv")
    assert done.stderr == ""


def test_a_reader_that_goes_away_is_no_traceback(tmp_path):
    command = f"{sys.executable} {HERE / 'fake_graven.py'} compare --format json | head -c 10"
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
