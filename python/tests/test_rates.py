"""The campaign that measures how much is simulated in a second: what it measures, and its page."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from campaigns import rates
from campaigns.tables import ROOT
from conftest import python

ROWS = rates.TABLE.read()


@pytest.fixture(scope="module")
def names():
    """Rates that the campaign would measure, with all designs."""
    return python("-m", "campaigns", "rates", "--list", cwd=ROOT).stdout.splitlines()


def test_every_rate_has_a_name_of_its_own(names):
    assert len(names) == len(set(names))
    kinds = {"simulation", "failures", "benchmark", "champsim"}
    assert {name.split("/")[0] for name in names} == kinds


def test_every_design_is_simulated_on_the_machine_of_its_paper(names):
    found = {tuple(name.split("/")[1:3]) for name in names if name.startswith("simulation/")}
    own = {("hoop", "hoop"), ("morlog", "morlog"), ("fwb", "fwb"), ("lalea", "lalea")}
    assert own | {("fwb", "silo"), ("silo", "silo")} <= found
    assert ("silo", "fwb") not in found


def test_all_was_measured_but_designs_that_lose_data_as_printed(names):
    found = [row["name"] for row in ROWS]
    assert found == [name for name in names if name in found]
    missing = {name.split("/")[1] for name in set(names) - set(found)}
    assert all(design.endswith("-literal") for design in missing), missing


def test_power_failures_are_counted_in_all_modes(monkeypatch):
    monkeypatch.setattr(rates, "TRANSACTIONS_CRASHED", 20)
    (found,) = rates.judged("silo")
    assert (found["name"], found["unit"]) == ("failures/silo", "power failures")
    # More than the stores of the transactions: they are crashed in several modes.
    assert int(found["amount"]) > 500
    assert float(found["seconds"]) > 0


def test_benchmarks_are_those_that_criterion_has():
    text = (ROOT / "benches/benches/memory.rs").read_text()
    for name in rates.BENCHMARKS["memory"]:
        group = name.split("/")[0]
        assert f'"{group}"' in text, name


@pytest.mark.parametrize("stream", rates.STREAMS, ids=lambda stream: stream.name)
def test_a_trace_has_the_loads_and_stores_that_it_is_to_have(stream, tmp_path):
    trace = tmp_path / "few.champsim"
    replace(stream, instructions=10_000).write(trace)
    found = np.fromfile(trace, rates.INSTRUCTION)
    assert rates.INSTRUCTION.itemsize == 64
    assert len(found) == 10_000
    share = rates.MEMORY_SHARE / 2
    for which in ("loaded", "stored"):
        touched = found[which][found[which] != 0]
        assert len(touched) == pytest.approx(10_000 * share, rel=0.1)
        assert touched.min() >= rates.FIRST
        assert touched.max() < rates.FIRST + stream.footprint_bytes
        assert touched.max() - touched.min() > stream.footprint_bytes * 0.9
    assert not np.any((found["loaded"][:, 0] != 0) & (found["stored"][:, 0] != 0))


def test_what_criterion_has_found_becomes_rows(monkeypatch):
    commands = []

    def run(command, *, env, **_):
        commands.append(command)
        folder = rates.Path(env["CRITERION_HOME"]) / "stream" / "friendly_1" / "new"
        folder.mkdir(parents=True)
        about = {"full_id": "stream/friendly/1", "throughput": {"Elements": 4_000_000}}
        (folder / "benchmark.json").write_text(json.dumps(about))
        found = {"median": {"point_estimate": 5e8}}
        (folder / "estimates.json").write_text(json.dumps(found))

    monkeypatch.setattr(rates.subprocess, "run", run)
    (row,) = rates.benchmarked("simulation", "stream/friendly/1")
    assert row["name"] == "benchmark/stream/friendly/1"
    assert rates.rate(row) == 8e6
    assert commands[0][-1] == "^(stream/friendly/1)$"
