"""The campaign that looks for slow combinations: what it compares, repeats and keeps."""

from __future__ import annotations

import argparse

import pytest
from conftest import python
from tests.campaigns import corners, tables
from tests.campaigns.corners import Combination, Cost

GIVEN = argparse.Namespace(transactions=10, seconds=1.0, jobs=1)


def combination(design: str, workload: str = "hash") -> Combination:
    return Combination(design, workload, "silo", 1)


def cost(nanoseconds: int) -> Cost:
    return Cost("ended", nanoseconds * 1e-6, 1, 1000)


@pytest.fixture
def measured(monkeypatch):
    """A driver in place of the real one: each combination costs what is next in its list."""
    costs: dict[str, list[int]] = {}

    class Driver:
        def cost(self, of, *_sizes):
            return cost(costs[of.design].pop(0))

        def close(self):
            pass

    monkeypatch.setattr(corners, "Driver", Driver)
    return costs


def test_all_combinations_are_there_once_with_as_many_threads_as_a_machine_has():
    done = python("-m", "tests.campaigns.corners", "--list", cwd=tables.ROOT)
    names = done.stdout.split()
    assert len(set(names)) == len(names) > 10_000
    assert {f"silo/hash/hoop/{threads}" for threads in (1, 4, 8, 16)} <= set(names)
    assert "morlog-dp/hash/lalea/4" in names
    assert "silo/hash/lalea/8" not in names


def test_a_combination_is_compared_with_the_median_of_its_workload():
    costs = {combination(f"d{n}"): cost(n) for n in (1, 2, 3)}
    costs |= {combination("d", "tpcc"): cost(500), combination("none"): Cost("refused")}
    times = corners.ratios(costs)
    assert times[combination("d3")] == pytest.approx(1.5)
    assert times[combination("d", "tpcc")] == pytest.approx(1)
    assert combination("none") not in times
    assert corners.slow(costs) == []


def test_what_seems_slow_is_measured_again_before_it_counts(measured, tmp_path):
    names = ["a", "b", "c", "busy", "slow"]
    wanted = [combination(name) for name in names]
    measured |= {"a": [9], "b": [10], "c": [11], "busy": [300, 12], "slow": [290, 280, 285]}
    store = corners.Store(tmp_path, "build", 10)
    corners.measure(wanted, store, GIVEN)
    costs = corners.measured(wanted, store)
    assert corners.slow(costs) == [combination("busy"), combination("slow")]
    corners.repeat(costs, store, GIVEN)
    assert corners.slow(costs) == [combination("slow")]
    assert store.get(combination("busy")) == cost(12)
    (row,) = corners.rows_of(costs, 10)
    assert (row["worst"], row["above"]) == ("slow/hash/silo/1", "slow/hash/silo/1")


def test_a_campaign_goes_on_where_it_was_unless_build_or_sizes_are_others(measured, tmp_path):
    measured["a"] = [9]
    corners.measure([combination("a")], corners.Store(tmp_path, "build", 10), GIVEN)
    again = corners.Store(tmp_path, "build", 10)
    corners.measure([combination("a")], again, GIVEN)
    assert again.get(combination("a")) == cost(9)
    assert corners.Store(tmp_path, "other", 10).get(combination("a")) is None
    assert corners.Store(tmp_path, "build", 20).get(combination("a")) is None


def test_the_page_of_corners_is_that_of_the_table():
    rows = tables.read_rows(corners.TABLE)
    assert corners.PAGE.read_text() == tables.page_with(
        corners.PAGE.read_text(), corners.shown(rows)
    )
