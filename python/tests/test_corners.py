"""The campaign that looks for slow combinations: combinations, comparisons, repetitions."""

from __future__ import annotations

import argparse

import pytest
from campaigns import corners
from campaigns.corners import Combination, Cost
from campaigns.tables import ROOT
from conftest import python

GIVEN = argparse.Namespace(transactions=10, seconds=1.0, jobs=1)


def combination(design: str) -> Combination:
    return Combination(design, "hash", "silo", 1)


def cost(nanoseconds: int) -> Cost:
    return Cost("ended", nanoseconds * 1e-6, 1, 1000)


@pytest.fixture
def costs(monkeypatch):
    """Answers in place of the driver's: each combination costs what is next in its list."""
    found: dict[str, list[int]] = {}

    class Driver:
        def measure(self, *, design, **_):
            return {
                "outcome": "ended",
                "run_seconds": found[design].pop(0) * 1e-6,
                "operations": 1000,
            }

        def close(self):
            pass

    monkeypatch.setattr(corners, "Driver", Driver)
    return found


def test_all_combinations_are_there_once_with_as_many_threads_as_a_machine_has():
    show = (
        "from campaigns.corners import catalogue, combinations\n"
        "for workload in catalogue().workloads:\n"
        "    print(*(each.name for each in combinations(workload.name)))"
    )
    done = python("-c", show, cwd=ROOT)
    names = done.stdout.split()
    assert len(set(names)) == len(names) > 10_000
    assert {f"silo/hash/hoop/{threads}" for threads in (1, 4, 8, 16)} <= set(names)
    assert "morlog-dp/hash/lalea/4" in names
    assert "silo/hash/lalea/8" not in names


def test_a_combination_is_compared_with_the_median_of_its_workload():
    costs = {combination(f"d{n}"): cost(n) for n in (1, 2, 3)}
    costs |= {combination("none"): Cost("refused")}
    times = corners.ratios(costs)
    assert times[combination("d3")] == pytest.approx(1.5)
    assert combination("none") not in times
    assert corners.slow(costs) == []
    row = corners.row_of(costs, 10)
    assert (row["combinations"], row["not_run"], row["above"]) == ("3", "1", "")


def test_what_seems_slow_is_measured_again_before_it_counts(costs):
    costs |= {"a": [9], "b": [10], "c": [11], "busy": [300, 12], "slow": [290, 280, 285]}
    found = corners.measured([combination(name) for name in costs], GIVEN)
    assert corners.slow(found) == [combination("slow")]
    assert found[combination("busy")].nanoseconds == pytest.approx(12)
    assert found[combination("slow")].nanoseconds == pytest.approx(280)
    row = corners.row_of(found, 10)
    assert (row["worst"], row["above"]) == ("slow/hash/silo/1", "slow/hash/silo/1")
    assert corners.wrong([row]) == ["hash: slow are slow/hash/silo/1"]
    assert not any(costs.values())
