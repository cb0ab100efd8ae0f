"""Graven against other simulators, by their recorded outputs (tests/validation)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import python
from tests.validation import lru, nvmain, peers, programs
from tests.validation.champsim import ChampSim
from tests.validation.dramsim import DRAMsim3
from tests.validation.nvmain import NVMain
from tests.validation.traces import BANKS, TRACES

ROOT = Path(__file__).parents[2]

PEER, DRAMSIM, CHAMPSIM = NVMain(), DRAMsim3(), ChampSim()
MEASURED = PEER.measured()


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.name)
def test_traces_are_those_that_were_measured(trace):
    requests = trace.draw()
    places = [(each.row, each.bank, each.column) for each in requests]
    assert len(requests) == trace.requests
    assert len(set(places)) == len(places), "no line twice"
    assert all(0 <= each.bank < BANKS for each in requests)
    writes = tuple(sum(each.write and each.bank == bank for each in requests) for bank in range(8))
    for run, found in MEASURED.items():
        if run.endswith(f"/{trace.name}"):
            assert found["bank_writes"] == writes, run


def check(*arguments):
    """What the comparison finds with the real engine."""
    done = python("-m", "tests.validation", "check", "--json", *arguments, cwd=ROOT)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_the_controller_and_the_device_agree_with_nvmain():
    ratios = check()
    assert len(ratios) == 312
    assert not [each for each in ratios if not each["holds"]]
    # Each accepted difference is needed.
    apart = [each for each in ratios if abs(each["ratio"] - 1) > peers.TOLERANCE]
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
    settings = {**PEER.machine("pcm"), "tCWD": 4}
    with pytest.raises(ValueError, match="0 and 4 cycles too long"):
        nvmain.graven_settings(settings)


def test_outputs_are_stored_as_they_are_read(tmp_path, monkeypatch):
    names = (*PEER.quantities, *PEER.also)
    outcomes = {
        "pcm/frfcfs/some": dict(zip(names, (100, 12.5, 30, 7, tuple(range(8))), strict=True)),
        "pcm/frfcfs/writes": dict(zip(names, (100, None, None, 0, (0,) * 8), strict=True)),
    }
    monkeypatch.setattr(peers, "FOLDER", tmp_path)
    PEER.store(outcomes)
    assert PEER.measured() == outcomes


@pytest.mark.parametrize("peer", [PEER, DRAMSIM, CHAMPSIM], ids=lambda peer: peer.name)
def test_committed_outputs_are_written_as_they_are(peer, tmp_path, monkeypatch):
    before = (peers.FOLDER / f"{peer.name}.csv").read_bytes()
    found = peer.measured()
    assert set(found) == set(peer.runs())
    monkeypatch.setattr(peers, "FOLDER", tmp_path)
    peer.store(found)
    assert (tmp_path / f"{peer.name}.csv").read_bytes() == before


def test_banks_agree_with_dramsim3():
    ratios = check("--peer", "dramsim3")
    assert {each["run"] for each in ratios} == set(DRAMSIM.runs())
    assert not [each for each in ratios if not each["holds"]]
    # Each accepted difference is needed.
    apart = [each for each in ratios if abs(each["ratio"] - 1) > peers.TOLERANCE]
    reasons = {each.reason for each in DRAMSIM.differences}
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


def test_cores_and_caches_agree_with_champsim():
    ratios = check("--peer", "champsim")
    assert {each["run"] for each in ratios} == {
        run for run in CHAMPSIM.runs() if not run.endswith("/empty")
    }
    assert not [each for each in ratios if not each["holds"]]
    # Each accepted difference is needed.
    tolerances = CHAMPSIM.document["tolerances"]
    apart = [each for each in ratios if abs(each["ratio"] - 1) > tolerances[each["quantity"]][0]]
    assert {each.reason for each in CHAMPSIM.differences} <= {each["reason"] for each in apart}


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
    found = CHAMPSIM.measured()[f"in-order/{program.name}"]
    asked = [found[f"{level}_misses"] for level in ("l1", "l2", "llc")]
    written = [found[f"{level}_writebacks"] for level in ("l1", "l2", "llc")]
    assert [level.asked for level in levels] == pytest.approx(asked, rel=0.005)
    # The memory's write queue, of 64, may hold some at the end.
    assert [level.written for level in levels[:2]] == pytest.approx(written[:2], rel=0.01)
    assert 0 <= levels[2].written - written[2] <= 0.01 * written[2] + 64
