"""`graven run`, `list`, `memory`, help and version; `graven cost` is in `test_cost`."""

from __future__ import annotations

import csv
import io
import json

import pytest
from conftest import documents

import graven as package

RUN = ("run", "--design", "silo", "--workload", "btree")


def test_run_shows_every_statistic_with_unit_and_description(quick):
    done = quick(*RUN, "--all")
    assert done.returncode == 0
    assert "left out" not in done.stdout
    for text in (
        "core0.ipc",
        "image_digest",
        "residual_dirty_lines",
        "transactions/s",
        "Final image",
    ):
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


def test_run_marks_an_unsafe_design(quick):
    done = quick("run", "--design", "ideal", "--workload", "array")
    assert "ideal †" in done.stdout
    assert "unsafe: loses committed data" in done.stdout


def test_run_json_is_a_list_of_one(quick):
    [record] = documents(quick(*RUN, "--threads", "3", "--seed", "7", "--format", "json").stdout)
    assert (record["design"], record["threads"], record["seed"]) == ("silo", 3, 7)


def test_run_csv_is_one_row(quick):
    [row] = csv.DictReader(io.StringIO(quick(*RUN, "--format", "csv").stdout))
    assert row["workload"] == "btree"


def test_run_that_fails_has_exit_code_1_and_leaves_no_trace(quick, tmp_path):
    done = quick(*RUN, "--request-trace", "t.nvt", FAULT_FAIL="silo")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("graven: error: silo on btree: cycle 1234: line 0x40")
    assert list(tmp_path.iterdir()) == []


def test_run_writes_the_requests_under_their_name(quick, tmp_path):
    done = quick(*RUN, "--request-trace", "t.nvt")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graven-results", "t.nvt"]


def test_run_writes_the_loads_of_the_banks_beside_them(quick, tmp_path):
    done = quick(*RUN, "--request-trace", "t.nvt", "--bank-loads", "banks.csv")
    assert done.returncode == 0, done.stderr
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["banks.csv", "graven-results", "t.nvt"]
    head, *_ = (tmp_path / "banks.csv").read_text().splitlines()
    assert head.split(",") == ["cycle", *(f"bank{bank}" for bank in range(8))]


def test_run_refuses_one_file_for_two_things(quick):
    done = quick(*RUN, "--request-trace", "t.nvt", "--bank-loads", "t.nvt", FAULT_FAIL="*")
    assert done.returncode == 2
    assert "--request-trace and --bank-loads: both name t.nvt" in done.stderr


def test_run_writes_a_timeline(quick, tmp_path):
    done = quick(*RUN, "--timeline", "t.json", "--timeline-transactions", "5-7")
    assert done.returncode == 0, done.stderr
    assert "wrote t.json" in done.stderr
    assert json.loads((tmp_path / "t.json").read_text())["otherData"]["design"] == "silo"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--timeline-transactions", "5-7"), "--timeline-transactions is for --timeline"),
        (("--timeline", "t.json", "--timeline-transactions", "5-"), "is not FIRST-LAST"),
        (("--timeline", "t", "--bank-loads", "t"), "--bank-loads and --timeline: both name t"),
    ],
)
def test_run_refuses_a_timeline_that_is_not_one(quick, given, message):
    done = quick(*RUN, *given, FAULT_FAIL="*")
    assert done.returncode == 2
    assert message in done.stderr


def test_run_refuses_a_trace_that_it_cannot_write(quick, tmp_path):
    (tmp_path / "file").write_text("")
    done = quick(*RUN, "--request-trace", "file/t.nvt", FAULT_FAIL="*")
    assert done.returncode == 2
    assert "--request-trace: cannot write into file" in done.stderr


def test_run_needs_a_design(quick):
    done = quick("run", "--workload", "btree")
    assert done.returncode == 2
    assert "Missing option '--design'" in done.stderr


@pytest.mark.parametrize(
    "what", ["designs", "workloads", "machines", "stats", "parameters", "mutants", "states"]
)
def test_lists_as_tables_and_as_json(quick, what):
    for arguments in ([], ["--verbose"]):
        done = quick("list", what, *arguments)
        assert done.returncode == 0
        assert len(done.stdout.splitlines()) > 5
    assert documents(quick("list", what, "--format", "json").stdout)


def test_machines_show_sources_and_assumptions(quick):
    text = quick("list", "machines", "--verbose").stdout
    assert "Silo Table II" in text
    assert "assumed: " in text


def test_machines_show_what_is_compared_on_them(quick):
    text = quick("list", "machines").stdout
    assert "Compared on morlog by default:" in text
    assert "  workloads: btree, hash, queue, rbtree, sdg, sps\n  baseline: fwb-crade\n" in text
    assert "  workload.element_bytes = 64 B, 4 KB\n" in text


def test_designs_show_promises_mutants_and_corners(quick):
    text = quick("list", "designs", "--verbose").stdout
    assert "silo guarantees: after a power failure, every acknowledged transaction" in text
    assert "ideal guarantees: nothing" in text
    assert "battery-too-small" in text
    assert "again-after-overflow" in text


def test_mutants_and_states_name_their_designs(quick):
    listed = [documents(quick("list", what, "--format", "json").stdout)
              for what in ("mutants", "states")]  # fmt: skip
    mutants, states = ({(item["design"], item["name"]) for item in items} for items in listed)
    known = {design.name: design for design in package.catalogue().designs}
    assert {name for design, name in mutants if design == "silo"} == {
        mutant.name for mutant in known["silo"].mutants
    }
    assert {design for design, _ in mutants} <= known.keys()
    assert (None, "steal") in states
    assert {name for design, name in states if design == "silo"} == {
        state.name for state in known["silo"].cover_points
    }


def test_letters_that_a_stream_has_not_are_said_in_others(quick, separate):
    costs = ("cost", "silo")
    plain, ascii_only = quick(*costs), separate(*costs, PYTHONIOENCODING="ascii")
    assert "§" in plain.stdout
    assert ascii_only.returncode == 0, ascii_only.stderr
    assert "\\xa7" in ascii_only.stdout


def test_memory_replays_a_trace(quick, tmp_path):
    (tmp_path / "t.trc").write_text("".join(f"{64 * n:#x} READ {n}\n" for n in range(1, 6)))
    done = quick("memory", "t.trc", "--format", "json")
    assert done.returncode == 0, done.stderr
    document = documents(done.stdout)
    assert list(document) == ["machine", "stats"]
    assert (document["machine"], document["stats"]["reads"]) == ("silo", 5)
    assert "5 requests in" in done.stderr
    assert " reads " in quick("memory", "t.trc").stdout
    assert quick("memory", "t.trc", "--format", "csv").stdout.startswith("machine,requests,reads")


def test_memory_names_the_line_that_it_cannot_read(quick, tmp_path):
    (tmp_path / "t.nvt").write_text("0 R\n")
    done = quick("memory", "t.nvt")
    assert done.returncode == 2
    assert done.stderr.startswith("graven: error: t.nvt: line 1: expected an address")
    assert quick("memory", "nothing.nvt").returncode == 2


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
def test_every_command_has_help_with_examples(quick, command):
    done = quick(command, "--help")
    assert done.returncode == 0
    assert "Examples:" in done.stdout
    assert f"graven {command}" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_version_and_no_arguments(quick):
    assert quick("--version").stdout == f"graven {package.__version__}\n"
    done = quick()
    assert done.returncode == 2
    assert "Commands:" in done.stderr
