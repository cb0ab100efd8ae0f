"""Graven against other simulators, by their recorded outputs (tests/validation)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import python
from tests.validation import lru, nvmain, peers, programs, traces
from tests.validation.champsim import ChampSim
from tests.validation.dramsim import DRAMsim3
from tests.validation.nvmain import NVMain
from tests.validation.ramulator import Ramulator
from tests.validation.traces import TRACES, digest

ROOT = Path(__file__).parents[2]

PEER, DRAMSIM, RAMULATOR, CHAMPSIM = NVMain(), DRAMsim3(), Ramulator(), ChampSim()
REFERENCES = (PEER, DRAMSIM, RAMULATOR)
NAMES = {"ids": lambda peer: peer.name}


@pytest.mark.parametrize("peer", REFERENCES, **NAMES)
def test_traces_are_those_that_were_measured(peer):
    measured = peer.measured()
    of_machine = {run.split("/")[0]: {} for run in measured}
    for run, found in measured.items():
        machine, *_, name = run.split("/")
        drawn = of_machine[machine].setdefault(name, found["drawn"])
        assert drawn == found["drawn"], run
    for machine, drawn in of_machine.items():
        assert set(drawn) == set(TRACES), machine
        for name, expected in drawn.items():
            assert digest(peer.draw(f"{machine}/{name}")) == expected, (machine, name)


@pytest.mark.parametrize("name", TRACES)
def test_traces_fit_their_geometry_and_repeat_lines_only_where_they_say_so(name):
    trace, geometry = PEER.trace(f"pcm/{name}")
    requests = trace.draw(geometry)
    places = [(each.row, each.bank, each.column, each.channel) for each in requests]
    assert len(requests) == trace.requests
    assert (len(set(places)) < len(places)) == trace.repeats
    assert all(0 <= each.bank < geometry.banks for each in requests)
    assert {each.channel for each in requests} == set(range(trace.channels))
    cycles = [each.cycle for each in requests]
    assert cycles == sorted(cycles)
    assert [geometry.place(geometry.address(each) // 64) for each in requests] == places


def test_half_of_the_drawn_traces_change_with_the_seed():
    kinds = [name for name in TRACES if f"{name}-drawn" in TRACES]
    assert len(kinds) == 13
    geometry = PEER.geometry("pcm")
    for name in kinds:
        one, other = TRACES[name], TRACES[f"{name}-drawn"]
        assert one.make is other.make
        assert (one.seed, other.seed) == (name, f"{name} {traces.SEED}")
        assert digest(one.draw(geometry)) != digest(other.draw(geometry))


def check(*arguments):
    """What the comparison finds with the real engine."""
    done = python("-m", "tests.validation", "check", "--json", *arguments, cwd=ROOT)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def compared(peer, run, setting):
    """The same of one run with a setting, in this process: to start another takes longer."""
    key, _, value = setting.partition("=")
    return list(peer.compare(run, {key: value}))


def outside(ratios):
    """The quantities that are outside their bands."""
    return [each.quantity for each in ratios if not each.holds]


@pytest.mark.usefixtures("unhooked")
def test_the_command_takes_a_run_and_a_setting():
    run, setting = "pcm/frfcfs/bank-writes", "pm.row_writes=program"
    found = check("--only", run, "--set", setting)
    here = compared(PEER, run, setting)
    assert [(each["run"], each["quantity"], each["ratio"], each["holds"]) for each in found] == [
        (each.run, each.quantity, each.value, each.holds) for each in here
    ]
    assert outside(here)


@pytest.mark.parametrize("peer", REFERENCES, **NAMES)
def test_controller_and_device_agree_with_each_reference(peer):
    ratios = check("--peer", peer.name)
    assert {each["run"] for each in ratios} == set(peer.runs())
    assert not [each for each in ratios if not each["holds"]]
    # Each accepted difference is needed.
    tolerances = peers.TOLERANCES
    apart = [each for each in ratios if abs(each["ratio"] - 1) > tolerances[each["quantity"]]]
    assert {each.reason for each in peer.differences} <= {each["reason"] for each in apart}


@pytest.mark.parametrize(
    ("setting", "trace", "quantity"),
    [
        ("pm.row_writes=program", "bank-writes", "cycles"),
        ("controller.data_bus=at-issue", "row-reads", "cycles"),
        ("controller.scheduler=reads-first", "loaded-mixed", "read_mean"),
        ("controller.page_bytes=4 KB", "sequential-writes", "cycles"),
    ],
)
@pytest.mark.usefixtures("unhooked")
def test_the_bands_notice_another_model(setting, trace, quantity):
    ratios = compared(PEER, f"pcm/frfcfs/{trace}", setting)
    assert outside(ratios).count(quantity) == 1


def test_times_that_graven_does_not_have_are_refused():
    settings = {**PEER.machine("pcm"), "tCWD": 4}
    with pytest.raises(ValueError, match="0 and 4 cycles too long"):
        nvmain.graven_settings(settings)


def test_outputs_are_stored_as_they_are_read(tmp_path, monkeypatch):
    names = (*PEER.quantities, *PEER.also)
    outcomes = {
        "pcm/frfcfs/some": dict(zip(names, (100, 12.5, 30, 7, tuple(range(8)), 9), strict=True)),
        "pcm/frfcfs/writes": dict(zip(names, (100, None, None, 0, (0,) * 8, 9), strict=True)),
    }
    monkeypatch.setattr(peers, "FOLDER", tmp_path)
    PEER.store(outcomes)
    assert PEER.measured() == outcomes


@pytest.mark.parametrize("peer", [*REFERENCES, CHAMPSIM], **NAMES)
def test_committed_outputs_are_written_as_they_are(peer, tmp_path, monkeypatch):
    before = (peers.FOLDER / f"{peer.name}.csv").read_bytes()
    found = peer.measured()
    assert set(found) == set(peer.runs())
    monkeypatch.setattr(peers, "FOLDER", tmp_path)
    peer.store(found)
    assert (tmp_path / f"{peer.name}.csv").read_bytes() == before


@pytest.mark.usefixtures("unhooked")
@pytest.mark.parametrize(
    ("peer", "machine"),
    [(DRAMSIM, "ddr4"), (RAMULATOR, "ddr4-ranks"), (RAMULATOR, "ddr5")],
    ids=["dramsim3/ddr4", "ramulator/ddr4-ranks", "ramulator/ddr5"],
)
@pytest.mark.parametrize(
    ("setting", "trace", "quantity"),
    [
        ("dram.rcd_clocks=60", "sparse-reads", "read_mean"),
        ("dram.ras_clocks=100", "bank-reads", "cycles"),
        ("dram.ccd_s_clocks=20", "sequential-reads", "cycles"),
        ("dram.faw_clocks=100", "random-reads", "cycles"),
        ("dram.wr_clocks=150", "bank-writes", "cycles"),
        ("dram.refi_clocks=2000", "sequential-reads", "cycles"),
    ],
)
def test_the_bands_of_dram_notice_another_device(peer, machine, setting, trace, quantity):
    assert quantity in outside(compared(peer, f"{machine}/{trace}", setting))


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
@pytest.mark.usefixtures("unhooked")
def test_the_bands_of_champsim_notice_another_machine(setting, program, quantity):
    ratios = compared(CHAMPSIM, f"in-order/{program}", setting)
    assert outside(ratios).count(quantity) == 1


@pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda program: program.name)
def test_the_counts_of_champsim_are_those_of_its_rules(program):
    levels = lru.Hierarchy(lru.CHAMPSIM).run(program.draw())
    found = CHAMPSIM.measured()[f"in-order/{program.name}"]
    asked = [found[f"{level}_misses"] for level in ("l1", "l2", "llc")]
    written = [found[f"{level}_writebacks"] for level in ("l1", "l2", "llc")]
    # In zipf-mixed, accesses of lines that are stored to often meet in queues.
    few, fewer = (0.01, 0.016) if program.name == "zipf-mixed" else (0.005, 0.01)
    assert [level.asked for level in levels] == pytest.approx(asked, rel=few)
    # The memory's write queue, of 64, may hold some at the end.
    assert [level.written for level in levels[:2]] == pytest.approx(written[:2], rel=fewer)
    assert 0 <= levels[2].written - written[2] <= 0.01 * written[2] + 64
