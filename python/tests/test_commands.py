"""`graven run`, `list`, `memory`, help and version; `graven cost` is in `test_cost`."""

from __future__ import annotations

import csv
import io
import json

import pytest
from conftest import documents

RUN = ("run", "--design", "silo", "--workload", "btree")


def test_run_shows_every_statistic_with_unit_and_description(graven):
    done = graven(*RUN, "--all")
    assert done.returncode == 0
    assert "left out" not in done.stdout
    for text in ("core0.ipc", "image_digest", "Of these, metadata", "tx/s", "Final image"):
        assert text in done.stdout


def shown(output):
    """The names of the statistics in a table, as they stand below each heading."""
    found, heading = {}, ""
    for line in output.splitlines():
        if line.startswith("   ") and line.strip() and line[3] != " ":
            found.setdefault(heading, []).append(line.split()[0])
        elif line.startswith(" ") and line.strip() and line[1] not in " ─+|-":
            heading = line.strip()
    return found


def test_run_shows_first_what_the_design_did_and_says_how_much_is_left_out(real):
    run = ("run", "--design", "silo", "--workload", "btree", "--transactions", "50", "--no-store")
    few, every = real(*run), real(*run, "--all")
    short, whole = shown(few.stdout), shown(every.stdout)
    assert next(iter(short)) == next(iter(whole)) == "What silo did"
    assert short["What silo did"] == whole["What silo did"], "its own are there, zero or not"
    [record] = json.loads(real(*run, "--format", "json").stdout)
    names = [name for group in short.values() for name in group]
    assert sorted(name for group in whole.values() for name in group) == sorted(record["stats"])
    left = [name for name in record["stats"] if name not in names]
    assert left
    assert all("." in name or not record["stats"][name] for name in left)
    assert f"{len(left)} statistics are left out" in " ".join(few.stdout.split())


def test_run_marks_an_unsafe_design(graven):
    done = graven("run", "--design", "ideal", "--workload", "array")
    assert "ideal †" in done.stdout
    assert "unsafe: loses committed data" in done.stdout


def test_run_json_is_a_list_of_one(graven):
    [record] = documents(graven(*RUN, "--threads", "3", "--seed", "7", "--format", "json").stdout)
    assert (record["design"], record["threads"], record["seed"]) == ("silo", 3, 7)


def test_run_csv_is_one_row(graven):
    [row] = csv.DictReader(io.StringIO(graven(*RUN, "--format", "csv").stdout))
    assert row["workload"] == "btree"


def test_run_that_fails_has_exit_code_1_and_leaves_no_trace(graven, tmp_path):
    done = graven(*RUN, "--request-trace", "t.nvt", FAKE_FAIL="silo")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("graven: error: silo on btree: cycle 1234: line 0x40")
    assert list(tmp_path.iterdir()) == []


def test_run_writes_the_requests_under_their_name(graven, tmp_path):
    done = graven(*RUN, "--request-trace", "t.nvt")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graven-results", "t.nvt"]


def test_run_writes_the_loads_of_the_banks_beside_them(graven, tmp_path):
    done = graven(*RUN, "--request-trace", "t.nvt", "--bank-loads", "banks.csv")
    assert done.returncode == 0, done.stderr
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["banks.csv", "graven-results", "t.nvt"]
    assert (tmp_path / "banks.csv").read_text() == "cycle,bank0\n"


def test_run_refuses_one_file_for_two_things(graven):
    done = graven(*RUN, "--request-trace", "t.nvt", "--bank-loads", "t.nvt", FAKE_SECONDS="60")
    assert done.returncode == 2
    assert "--request-trace and --bank-loads: both name t.nvt" in done.stderr


def test_run_writes_a_timeline(graven, tmp_path):
    done = graven(*RUN, "--timeline", "t.json", "--timeline-transactions", "5-7")
    assert done.returncode == 0, done.stderr
    assert "wrote t.json" in done.stderr
    assert (tmp_path / "t.json").read_text() == "{}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--timeline-transactions", "5-7"), "--timeline-transactions is for --timeline"),
        (("--timeline", "t.json", "--timeline-transactions", "5-"), "is not FIRST-LAST"),
        (("--timeline", "t", "--bank-loads", "t"), "--bank-loads and --timeline: both name t"),
    ],
)
def test_run_refuses_a_timeline_that_is_not_one(graven, given, message):
    done = graven(*RUN, *given, FAKE_SECONDS="60")
    assert done.returncode == 2
    assert message in done.stderr


def test_run_refuses_a_trace_that_it_cannot_write(graven, tmp_path):
    (tmp_path / "file").write_text("")
    done = graven(*RUN, "--request-trace", "file/t.nvt", FAKE_SECONDS="60")
    assert done.returncode == 2
    assert "--request-trace: cannot write into file" in done.stderr


def test_run_needs_a_design(graven):
    done = graven("run", "--workload", "btree")
    assert done.returncode == 2
    assert "Missing option '--design'" in done.stderr


@pytest.mark.parametrize(
    "what", ["designs", "workloads", "machines", "stats", "parameters", "mutants", "states"]
)
def test_lists_as_tables_and_as_json(graven, what):
    for arguments in ([], ["--verbose"]):
        done = graven("list", what, *arguments)
        assert done.returncode == 0
        assert len(done.stdout.splitlines()) > 5
    assert documents(graven("list", what, "--format", "json").stdout)


def test_machines_show_sources_and_assumptions(graven):
    text = graven("list", "machines", "--verbose").stdout
    assert "Silo Table II" in text
    assert "assumed: the paper gives no latency" in text


def test_machines_show_what_is_compared_on_them(graven):
    text = graven("list", "machines").stdout
    assert "Compared on morlog by default:" in text
    assert "  designs: base, lad, silo\n  workloads: array, hash\n  baseline: lad\n" in text
    assert "  workload.element_bytes = 64 B, 4 KB\n" in text
    assert "Compared on silo" not in text


def test_designs_show_promises_mutants_and_corners(graven):
    text = graven("list", "designs", "--verbose").stdout
    assert "silo guarantees: after a power failure, every acknowledged transaction" in text
    assert "ideal guarantees: nothing" in text
    assert "no-tuple" in text
    assert "overflow" in text


def test_mutants_and_states_name_their_designs(graven):
    mutants = documents(graven("list", "mutants", "--format", "json").stdout)
    assert [(item["design"], item["name"]) for item in mutants] == [
        ("silo", "no-tuple"),
        ("silo", "harmless"),
    ]
    states = documents(graven("list", "states", "--format", "json").stdout)
    assert [(item["design"], item["name"]) for item in states] == [
        (None, "steal"),
        (None, "id-wrap"),
        ("silo", "overflow"),
    ]


def test_letters_that_a_stream_has_not_are_said_in_others(real):
    run = ("run", "--design", "silo", "--workload", "hash", "--transactions", "5", "--no-store")
    plain, ascii_only = real(*run), real(*run, PYTHONIOENCODING="ascii")
    assert "§" in plain.stdout
    assert ascii_only.returncode == 0, ascii_only.stderr
    assert "\\xa7" in ascii_only.stdout


def test_memory_replays_a_trace(graven, tmp_path):
    (tmp_path / "t.nvt").write_text("NVMV1\n" + "0 R 0x40 00 00 0\n" * 5)
    done = graven("memory", "t.nvt", "--format", "json")
    assert done.returncode == 0, done.stderr
    document = documents(done.stdout)
    stats = {"requests": 5, "cycles": 1000, "media_write_requests": 5}
    assert document == {"machine": "silo", "stats": stats}
    assert "5 requests in" in done.stderr
    assert "media_write_requests" in graven("memory", "t.nvt").stdout
    assert graven("memory", "t.nvt", "--format", "csv").stdout.startswith("machine,requests,cycles")


def test_memory_names_the_line_that_it_cannot_read(graven, tmp_path):
    (tmp_path / "t.nvt").write_text("0 R\n")
    done = graven("memory", "t.nvt")
    assert done.returncode == 2
    assert done.stderr == "graven: error: t.nvt:1: expected 3 or 6 fields\n"
    assert graven("memory", "nothing.nvt").returncode == 2


@pytest.mark.parametrize(
    "command",
    [
        "compare",
        "run",
        "crash",
        "litmus",
        "list",
        "memory",
        "mutants",
        "reproduce",
        "explain",
        "cost",
        "trace",
    ],
)
def test_every_command_has_help_with_examples(graven, command):
    done = graven(command, "--help")
    assert done.returncode == 0
    assert "Examples:" in done.stdout
    assert f"graven {command}" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_version_and_no_arguments(graven):
    assert graven("--version").stdout == "graven 0.0-fake\n"
    done = graven()
    assert done.returncode == 2
    assert "Commands:" in done.stderr
