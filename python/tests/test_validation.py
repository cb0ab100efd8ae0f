"""Graven against other simulators, by their recorded outputs (tests/validation)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ENVIRONMENT
from tests.validation import champsim, comparison, dramsim, lru, nvmain, programs
from tests.validation.comparison import Outcome, Peer, Run
from tests.validation.traces import BANKS, TRACES

ROOT = Path(__file__).parents[2]

PEER = Peer.read()
MEASURED = comparison.measured()


def test_every_run_was_measured():
    assert set(MEASURED) == set(PEER.runs())


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.name)
def test_traces_are_those_that_were_measured(trace):
    requests = trace.draw()
    places = [(each.row, each.bank, each.column) for each in requests]
    assert len(requests) == trace.requests
    assert len(set(places)) == len(places), "no line twice"
    assert all(0 <= each.bank < BANKS for each in requests)
    writes = tuple(sum(each.write and each.bank == bank for each in requests) for bank in range(8))
    for run, found in MEASURED.items():
        if run.trace == trace.name:
            assert found.bank_writes == writes, run


def check(*arguments):
    """What the comparison finds with the real engine."""
    command = [sys.executable, "-m", "tests.validation", "check", "--json", *arguments]
    done = subprocess.run(
        command, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_the_controller_and_the_device_agree_with_nvmain():
    ratios = check()
    assert len(ratios) == 312
    assert not [each for each in ratios if not each["holds"]]
    # Each accepted difference is needed.
    apart = [each for each in ratios if abs(each["ratio"] - 1) > comparison.TOLERANCE]
    assert {each.reason for each in PEER.differences} <= {each["reason"] for each in apart}


@pytest.mark.parametrize(
    ("setting", "trace", "quantity"),
    [
        ("pm.row_writes=program", "bank-writes", "cycles"),
        ("controller.data_bus=at-issue", "row-reads", "cycles"),
        ("controller.scheduler=reads-first", "loaded-mixed", "read_mean"),
        ("controller.page_bytes=4 KB", "sequential-writes", "cycles"),
    ],
)
def test_the_bands_notice_another_model(setting, trace, quantity):
    ratios = check("--only", f"pcm/frfcfs/{trace}", "--set", setting)
    assert [each["quantity"] for each in ratios if not each["holds"]].count(quantity) == 1


def test_times_that_graven_does_not_have_are_refused():
    settings = {**PEER.machines["pcm"], "tCWD": 4}
    with pytest.raises(ValueError, match="0 and 4 cycles too long"):
        nvmain.graven_settings(settings)


def test_outputs_are_stored_as_they_are_read(tmp_path, monkeypatch):
    outcomes = {
        Run("pcm", "frfcfs", "some"): Outcome(100, 12.5, 30, 7, tuple(range(8))),
        Run("pcm", "frfcfs", "writes"): Outcome(100, None, None, 0, (0,) * 8),
    }
    monkeypatch.setattr(comparison, "PEERS", tmp_path)
    comparison.store(outcomes)
    assert comparison.measured() == outcomes


def test_banks_agree_with_dramsim3():
    assert set(dramsim.measured()) == set(dramsim.runs())
    ratios = check("--peer", "dramsim3")
    assert {each["run"] for each in ratios} == {str(run) for run in dramsim.runs()}
    assert not [each for each in ratios if not each["holds"]]
    # Each accepted difference is needed.
    apart = [each for each in ratios if abs(each["ratio"] - 1) > comparison.TOLERANCE]
    reasons = {each.reason for each in dramsim.Peer.read().differences}
    assert reasons <= {each["reason"] for each in apart}


@pytest.mark.parametrize(
    ("setting", "trace"),
    [
        ("dram.read_ns=40", "bank-reads"),
        ("dram.precharge_ns=10", "bank-writes"),
        ("dram.burst_ns=5", "sequential-reads"),
        ("dram.write_ns=30", "random-writes"),
    ],
)
def test_the_bands_of_dramsim3_notice_another_device(setting, trace):
    ratios = check("--peer", "dramsim3", "--only", f"alike/{trace}", "--set", setting)
    assert "cycles" in [each["quantity"] for each in ratios if not each["holds"]]


def test_every_program_was_measured():
    assert set(champsim.measured()) == set(champsim.runs())


def test_cores_and_caches_agree_with_champsim():
    ratios = check("--peer", "champsim")
    assert {each["run"] for each in ratios} == {
        str(run) for run in champsim.runs() if run.program != "empty"
    }
    assert not [each for each in ratios if not each["holds"]]
    # Each accepted difference is needed.
    peer = champsim.Peer.read()
    apart = [
        each for each in ratios if abs(each["ratio"] - 1) > peer.tolerances[each["quantity"]][0]
    ]
    assert {each.reason for each in peer.differences} <= {each["reason"] for each in apart}


@pytest.mark.parametrize(
    ("setting", "program", "quantity"),
    [
        ("l1.bytes=16 KB", "l1-reads", "l1_misses"),
        ("l2.bytes=128 KB", "l2-reads", "l2_misses"),
        ("llc.bytes=512 KB", "llc-reads", "llc_misses"),
        ("llc.latency_cycles=40", "llc-chase", "cycles"),
        ("l2.latency_cycles=18", "l2-chase", "cycles"),
    ],
)
def test_the_bands_of_champsim_notice_another_machine(setting, program, quantity):
    ratios = check("--peer", "champsim", "--only", f"in-order/{program}", "--set", setting)
    assert [each["quantity"] for each in ratios if not each["holds"]].count(quantity) == 1


@pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda program: program.name)
def test_the_counts_of_champsim_are_those_of_its_rules(program):
    levels = lru.Hierarchy(lru.CHAMPSIM).run(program.draw())
    found = champsim.measured()[champsim.Run("in-order", program.name)]
    asked = [found.l1_misses, found.l2_misses, found.llc_misses]
    written = [found.l1_writebacks, found.l2_writebacks, found.llc_writebacks]
    assert [level.asked for level in levels] == pytest.approx(asked, rel=0.005)
    # The memory's write queue, of 64, may hold some at the end.
    assert [level.written for level in levels[:2]] == pytest.approx(written[:2], rel=0.01)
    assert 0 <= levels[2].written - written[2] <= 0.01 * written[2] + 64
