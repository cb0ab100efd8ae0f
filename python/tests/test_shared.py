"""Results that differ only in keys that a design does not read are of one simulation."""

from __future__ import annotations

import re

import pytest
from conftest import documents

import graven
from graven.api.sweeps import Sweep
from graven.engine.machine import Machine
from graven.executors.shards import Shard

PAIR = ("--designs", "base,silo", "--workloads", "array", "--transactions", "100")
VARY = ("--vary", "silo.log_buffer_entries=2,5,20")
SWEEP = """
designs = ["base", "silo"]
workloads = ["array"]
transactions = 100
vary = { "silo.log_buffer_entries" = [2, 5, 20] }
"""


def test_a_design_that_does_not_read_a_key_runs_once(quick, tmp_path):
    done = quick("compare", *PAIR, *VARY, "--format", "json")
    assert done.returncode == 0, done.stderr
    records = documents(done.stdout)
    assert [(r["design"], r["varied"]["silo.log_buffer_entries"]) for r in records] == [
        (design, entries) for entries in (2, 5, 20) for design in ("base", "silo")
    ]
    base, silo = records[::2], records[1::2]
    assert base[0]["stats"] == base[1]["stats"] == base[2]["stats"]
    assert silo[0]["stats"] != silo[1]["stats"]
    assert "simulations: 4 (2 shared)" in done.stderr
    store = graven.load(tmp_path / "graven-results" / "store")
    assert sorted(record.design for record in store) == ["base", "silo", "silo", "silo"]


def test_what_comes_out_is_as_if_each_had_run(quick, tmp_path):
    quick("compare", *PAIR, *VARY, "--out", "r.json", "--no-report")
    for record in documents((tmp_path / "r.json").read_text()):
        entries = record["varied"]["silo.log_buffer_entries"]
        assert record["config"]["silo"]["log_buffer_entries"] == entries


def test_nothing_is_said_where_nothing_is_shared(quick):
    done = quick("compare", *PAIR, "--vary", "pm.write_ns=150,300", "--no-report")
    assert "shared" not in done.stderr
    assert "simulations:" not in done.stderr


def test_a_failure_is_said_once(quick):
    done = quick("compare", *PAIR, *VARY, "--no-report", FAULT_FAIL="base")
    assert done.returncode == 1
    assert done.stderr.count("base on array") == 1
    assert "base on array: cycle 1234" in done.stderr


def test_the_result_is_found_whatever_was_varied(quick):
    quick("compare", "--designs", "base", *PAIR[2:], "--no-report")
    done = quick("compare", "--designs", "base", *PAIR[2:], *VARY, "--no-report")
    assert "1 of 1 results were there already" in done.stderr


def test_a_value_that_is_not_allowed_is_refused_though_no_design_reads_it(quick):
    done = quick("compare", "--designs", "base", "--vary", "silo.log_buffer_entries=2,x")
    assert done.returncode == 2
    assert '`silo.log_buffer_entries` = "x" is not allowed' in done.stderr


def test_variants_that_are_equal_run_once(quick):
    same = ("--design-as", "a=silo,pm.write_ns=300", "--design-as", "b=silo,pm.write_ns=300")
    done = quick("compare", *PAIR, *same, "--format", "json")
    assert [record["design"] for record in documents(done.stdout)] == ["base", "silo", "a", "b"]
    assert "simulations: 3 (1 shared)" in done.stderr


def test_a_sweep_shares_them_too(quick, tmp_path):
    (tmp_path / "sweep.toml").write_text(SWEEP)
    plan = quick("sweep", "sweep.toml", "--dry-run")
    assert "simulations: 4 (2 shared)" in plan.stdout
    done = quick("sweep", "sweep.toml", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert len(documents(done.stdout)) == 6
    again = quick("sweep", "sweep.toml")
    assert "4 of 4 results were there already" in again.stderr


def test_shares_of_a_sweep_are_in_one_part(tmp_path):
    sweep = Sweep.parse(SWEEP, "sweep.toml", tmp_path)
    parts = [sweep.part(Shard(number, 2)) for number in (1, 2)]
    assert sum(len(part.simulations) for part in parts) == 4
    assert sum(len(part.jobs) for part in parts) == 6


def test_pictures_find_them(quick):
    quick("compare", *PAIR, *VARY, "--no-report")
    done = quick("plot", "lines", *PAIR, *VARY, "--out", "lines.svg")
    assert done.returncode == 0, done.stderr


GIVEN = {
    "fwb.truncation_percent": "40",
    "lsm.index_promotion": "1/2",
    "fwb.transaction_id_bits": "12",
    "morlog.transaction_id_bits": "12",
    "opt-undo.entries_per_record": "3",
    "osp.page_bytes": "2 KB",
}
"""Values of keys whose doubled default is not allowed."""


def other(parameter):
    """A value that is not the default."""
    usual = parameter.default.strip('"')
    if usual in ("true", "false"):
        return "false" if usual == "true" else "true"
    if "one of" in parameter.allowed:
        words = re.findall(r"[\w-]+", parameter.allowed.split("one of")[1])
        return next(word for word in words if word not in (usual, "or"))
    if size := re.fullmatch(r"(\d+) (B|KB|MB|GB)", usual):
        return f"{int(size[1]) * 2 or 64} {size[2]}"
    if usual.isdecimal():
        return str(int(usual) * 2 or 1)
    try:
        return str(float(usual) * 2 or 1.0)
    except ValueError:
        return usual


def changed():
    """Every key of a design, with another value that is allowed."""
    declared = {p.key: p for design in graven.catalogue().designs for p in design.parameters}
    values = {key: GIVEN.get(key) or other(parameter) for key, parameter in declared.items()}
    Machine("silo").comparison(values, None)
    return values


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(design.name, marks=[] if design.name in ("base", "silo") else pytest.mark.long)
        for design in graven.catalogue().designs
    ],
)
def test_no_design_reads_a_key_that_is_declared_for_others(name):
    reads = graven.catalogue().reads
    foreign = {key: value for key, value in changed().items() if not reads(name, key)}
    assert len(foreign) > 50, foreign
    size = {"transactions": 200, "threads": 4, "recovery": 2, "store": None}
    usual = graven.run(name, "hash", **size).stats
    came = graven.run(name, "hash", **size, settings=foreign).stats
    assert came == usual
