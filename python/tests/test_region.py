"""Regions in steady state, from options to tables.

The class of bug: a count of one region beside that of a longer one; a result that is of no steady
state and does not say so; an option that is heard and changes nothing.
"""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from test_reproduce import EXPERIMENT

import graven
from graven.cli.tables import print_comparison
from graven.drawing.figures.values import Source, stat
from graven.engine.machine import Machine
from graven.executors.estimates import seconds
from graven.papers import files
from graven.papers.data import Measure
from graven.papers.measures import cells
from graven.papers.plan import EVERYTHING, Wanted
from graven.results.conditions import Conditions
from graven.results.region import growth, notes, with_region
from graven.running import pool, work
from graven.running.job import matrix

SMALL = {
    "workload.footprint_bytes": "2 MB",
    "llc.bytes": "256 KB",
    "region.fast_forward_transactions": 500,
    "region.warm_up_transactions": 200,
}


@pytest.mark.usefixtures("unhooked")
def test_a_region_in_steady_state_is_measured_and_shown_per_transaction(tmp_path):
    result = graven.compare("base,fwb", "hash", transactions=400, store=None, settings=SMALL)
    assert [record.transactions for record in result] == [400, 400]
    interval = result.interval("media_write_requests", "base", "hash", 8)
    assert interval.kind == "windows"
    assert interval.half_width > 0
    counted = result.records[0].stats

    def shown(name):
        return result.number(name, "base", "hash", 8)

    # But for what is pending at the ends of the region.
    for name in ("media_write_requests", "write_energy_pj"):
        assert shown(name) == pytest.approx(counted[name] / 400, rel=0.1)
    throughput = "throughput_tx_per_s"
    assert shown(throughput) == pytest.approx(counted[throughput], rel=0.1)
    assert shown("peak_wear") == counted["peak_wear"], "it does not add up"
    assert any("scans" in reason for reason in result.records[1].why_not_steady)
    result.save(tmp_path / "r.json")
    assert [record.measured for record in graven.load(tmp_path / "r.json")] == [
        record.measured for record in result
    ]


@pytest.mark.usefixtures("unhooked")
def test_pieces_of_a_region_are_shown_and_do_not_depend_on_the_threads_that_run_them():
    settings = SMALL | {"region.pieces": 3}

    def compared(jobs):
        return graven.compare(
            "silo", "hash", transactions=400, store=None, settings=settings, jobs=jobs
        )

    alone, together = compared(1), compared(4)
    assert [record.to_dict() for record in alone] == [record.to_dict() for record in together]
    assert alone.records[0].transactions == 400
    assert alone.records[0].measured["pieces"] == 3
    said = notes(alone, several=False)
    assert "Regions are simulated in pieces: 3 (region.pieces)." in said


def test_one_simulation_has_all_threads_of_the_host(monkeypatch):
    lent = set()
    lend = pool.lend

    def noted(task, threads):
        if type(task).__name__ == "Simulation":
            lent.add(threads)
        lend(task, threads)

    monkeypatch.setattr(work, "host_cores", lambda: 3)
    monkeypatch.setattr(pool, "lend", noted)
    graven.run("silo", "hash", transactions=20, store=None)
    assert lent == {3}
    lent.clear()
    graven.compare("silo,base", "hash", transactions=20, from_start=True, store=None)
    assert lent == {1}


@pytest.mark.usefixtures("unhooked")
def test_a_file_that_follows_a_run_is_refused_in_pieces(tmp_path):
    settings = SMALL | {"region.kind": "steady", "region.pieces": 3}
    with pytest.raises(graven.ConfigError, match=r"region.pieces.* bank_loads follows one run"):
        graven.run(
            "silo", "hash", transactions=400, settings=settings, bank_loads=tmp_path / "b.csv"
        )


SILO = Machine("silo")
STEADY = {"region.kind": "steady"}


def test_a_region_in_steady_state_is_measured_by_default():
    said = {"pm.read_ns": "60"}
    assert with_region(said, SILO, from_start=False) == said | STEADY


def test_whole_runs_are_measured_if_they_are_asked_for():
    assert with_region({"pm.read_ns": "60"}, SILO, from_start=True) == {"pm.read_ns": "60"}
    says = Machine("mine", '[region]\nkind = "steady"\n')
    assert with_region({}, says, from_start=True) == {"region.kind": "whole"}


@pytest.mark.parametrize(
    ("settings", "varied"),
    [
        ({"region.kind": "whole"}, ()),
        ({"recovery.points": "3"}, ()),
        ({}, ("recovery.at_percent",)),
        ({}, ("region.kind",)),
    ],
)
def test_what_is_said_otherwise_stands(settings, varied):
    assert with_region(settings, SILO, varied, from_start=False) == settings


@pytest.mark.parametrize(("settings", "varied"), [(STEADY, ()), ({}, ("region.kind",))])
def test_what_contradicts_is_refused(settings, varied):
    with pytest.raises(graven.ConfigError, match=r"^from_start: whole runs are asked for"):
        with_region(settings, SILO, varied, from_start=True)


def test_jobs_of_comparisons_measure_it_and_those_of_traces_do_not():
    jobs = matrix(["base"], ["array", "t.gvt"], SILO, settings=STEADY)
    assert [job.settings for job in jobs] == [(("region.kind", "steady"),), ()]


def in_steady_state(record, **changed):
    """A record as if it were of a region."""
    estimates = {"media_write_requests": [6.5, 0.02], "cycles": [300.0, 0.01]}
    measured = {
        "kind": "steady", "steady": True, "reasons": [], "estimates": estimates,
        "footprint_bytes": [100, 110],
    } | changed  # fmt: skip
    return replace(record, measured=measured)


@pytest.fixture
def both():
    """The same of whole runs, and of regions."""
    whole = graven.compare("base,silo", "array", transactions=100, store=None, from_start=True)
    regions = tuple(map(in_steady_state, whole.records))
    return whole, replace(whole, records=regions, settings=STEADY)


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_every_file_keeps_what_is_estimated(both, form, tmp_path):
    _, regions = both
    regions.save(tmp_path / f"r.{form}")
    loaded = graven.load(tmp_path / f"r.{form}")
    assert [record.measured for record in loaded] == [record.measured for record in regions]
    assert loaded.interval("media_write_requests", "silo", "array", 8).half_width > 0


def test_tables_have_room_for_intervals(both):
    _, regions = both
    several = [
        replace(record, workload=workload)
        for record in regions
        for workload in ("array", "btree", "chain-queue", "hash", "queue", "rbtree", "tpcc")
    ]
    text = io.StringIO()
    console = Console(file=text, width=100)
    print_comparison(console, replace(regions, records=tuple(several)).normalised("base"))
    assert "±" in text.getvalue()
    assert "…" not in text.getvalue(), "nothing is cut off"


def test_pictures_show_what_tables_do(both):
    _, regions = both
    source = Source(regions, None)
    shown = source.number(stat("media_write_requests"), "silo", "array", (8, ()))
    table = regions.interval("media_write_requests", "silo", "array", 8)
    assert (shown.low, shown.value, shown.high) == (table.low, table.mean, table.high)
    assert "over windows" in source.what_spreads_are


def test_regions_and_whole_runs_are_not_put_together(both):
    whole, regions = both
    with pytest.raises(graven.ConfigError, match="one is of whole runs, and the other of regions"):
        graven.combine(whole, regions)


def test_what_grows_and_what_is_not_steady_is_said(both):
    whole, regions = both
    first, second = regions.records
    cut = in_steady_state(second, reasons=["no scan within the run"], footprint_bytes=[100, 140])
    assert notes([first, cut], several=False) == [
        "Counts and energies are per transaction; ±: half of a 95 % interval over windows of the "
        "region.",
        "Structures grow within the regions: array by 10.0 % at most.",
        "not in steady state: silo on array: no scan within the run",
    ]
    # Only one design has more: a log of its own.
    level = in_steady_state(first, footprint_bytes=[100, 100])
    assert growth([level, cut]) == ""
    assert notes(whole, several=False) == []


def test_the_head_says_what_is_measured(both):
    whole, regions = both
    assert "100 transactions from the start" in Conditions.of(whole).line
    assert "100 transactions in steady state" in Conditions.of(regions).line


def test_a_report_says_it_and_its_command_measures_the_same(both, tmp_path):
    for comparison, is_whole in zip(both, (True, False), strict=True):
        comparison.report(tmp_path / "r.html")
        page = (tmp_path / "r.html").read_text()
        assert ("--from-start" in page) == is_whole
        assert ("Structures grow" in page) != is_whole
        assert (", between " in page) != is_whole, "a bar says its interval"


READING = """
[questions.run-length]
asks = "Of what?"
default = "Of a run from its beginning."
assumed = "nothing is printed"
[readings.steady-state]
question = "run-length"
what = "Of a system that goes on."
quote = "periodically"
where = "§1"
set = { "region.kind" = "steady" }
quick = false
"""


def test_a_paper_s_experiment_has_the_printed_length_and_as_a_reading_steady_state():
    paper = files.parse("silo", EXPERIMENT + READING, "")
    tried = {
        one.name: one.jobs for one in Wanted(paper, quick=False, readings="all").alternatives()
    }
    assert {job.transactions for job in tried["default"]} == {10}
    assert {job.transactions for job in tried["steady-state"]} == {None}, "as precision asks"
    assert {job.settings for job in tried["steady-state"]} == {(("region.kind", "steady"),)}
    # It takes longer than what is for minutes.
    assert seconds(tried["steady-state"][0]) > seconds(
        replace(tried["default"][0], transactions=1000)
    )


@pytest.mark.parametrize(("named", "is_tried"), [((), False), (("steady-state",), True)])
def test_a_reading_that_takes_hours_is_tried_at_quick_sizes_by_its_name_alone(named, is_tried):
    wanted = Wanted(
        files.parse("silo", EXPERIMENT + READING, ""), quick=True, readings="all", named=named
    )
    assert any(one.name == "steady-state" for one in wanted.alternatives()) == is_tried
    # `graven explain` asks for everything that bears on one claim.
    of_one = replace(wanted, readings=EVERYTHING)
    assert any(one.name == "steady-state" for one in of_one.alternatives())


def test_numbers_of_papers_are_estimates_of_regions(both):
    _, regions = both
    of = Measure(("main",), "media_write_requests", ("silo",), {"design": "base"}, {}, "geometric")
    as_it_is = replace(of, over={}, metric="media_write_requests / committed_transactions")
    [(_, value)] = cells(as_it_is, list(regions.records))
    assert value == 6.5, "what is counted is per transaction"
    longer = [replace(record, transactions=10**6) for record in regions.records[:1]]
    [(_, value)] = cells(of, [*longer, *regions.records[1:]])
    assert value == 1.0, "whatever the lengths of the two regions are"


def test_power_fails_in_whole_runs_only(real):
    words = ("crash", "--design", "silo", "--workload", "hash", "--set", "region.kind=steady")
    done = real(*words)
    assert done.returncode == 2
    assert "region.kind" in done.stderr
    assert "power fails in whole runs" in done.stderr
