"""Intervals over seeds: their arithmetic, and what tables, reports and pictures make of them."""

from __future__ import annotations

import csv
import math
import re

import pytest

import graven
from graven.drawing.figures.comparisons import Asked, chart
from graven.results import intervals
from graven.results.intervals import Interval, best_of, quantile

FEW = ("--designs", "base,silo,lad", "--workloads", "array,btree", "--transactions", "100")


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (30, 2.0423), (999, 1.9623)],
)
def test_quantiles_of_students_t_are_those_of_the_tables(freedom, expected):
    assert quantile(freedom) == pytest.approx(expected, abs=5e-5)


def test_the_interval_of_some_values_by_hand():
    found = Interval.of([1.0, 2.0, 3.0])
    assert found.mean == 2.0
    assert found.half_width == pytest.approx(4.302653 * 1.0 / math.sqrt(3), rel=1e-6)
    assert (found.n, found.kind) == (3, "seeds")


def test_one_value_has_no_interval_and_a_missing_one_leaves_none():
    assert Interval.of([4.0]) == Interval(4.0)
    assert Interval.of([4.0, None]) is None
    assert Interval.of([]) is None
    assert Interval.of([1.0, math.nan]) is None


def test_ratios_of_what_nothing_pairs_have_both_spreads():
    ratio = Interval(10.0, 1.0, 30, "windows").over(Interval(5.0, 0.5, 30, "windows"))
    assert ratio.mean == 2.0
    assert ratio.half_width == pytest.approx(2.0 * math.sqrt(0.1**2 + 0.1**2))
    assert Interval(1.0).over(Interval(0.0)) is None
    assert Interval(1.0, 0.1).over(Interval(2.0)).half_width is None


def test_the_best_is_marked_only_if_no_interval_overlaps_its_own():
    apart = {"a": Interval(1.0, 0.1), "b": Interval(2.0, 0.2)}
    assert best_of(apart, higher=True) == {"b"}
    assert best_of(apart, higher=False) == {"a"}
    assert best_of({**apart, "c": Interval(1.9, 0.01)}, higher=True) == set()
    assert best_of({"a": Interval(1.0), "b": Interval(2.0), "c": None}, higher=True) == {"b"}
    assert best_of({"a": Interval(2.0), "b": Interval(2.0)}, higher=True) == {"a", "b"}
    assert best_of({"a": None}, higher=True) == set()


@pytest.mark.parametrize(
    ("value", "ratio", "scaled"),
    [
        (Interval(2.456), "2.46", "2.46"),
        (Interval(2.456, 0.034), "2.46 ±0.03", "2.46 ±0.03"),
        (Interval(2.456, 0.0004), "2.46 ±0.0004", "2.46 ±0.0004"),
        (Interval(1.0, 0.0), "1.00 ±0.00", "1 ±0"),
        (Interval(1_240_000, 31_000), "1.24e+06 ±3e+04", "1.24 ±0.03 M"),
        (None, "–", "–"),
    ],
)
def test_intervals_are_written_with_the_digits_of_the_mean(value, ratio, scaled):
    assert intervals.ratio_text(value) == ratio
    assert intervals.scaled_text(value) == scaled


def test_ratios_are_paired_by_seed():
    result = graven.compare("base,silo", "array,btree", transactions=100, seeds=[3, 5, 8])
    assert result.seeds == [3, 5, 8]
    stat = "throughput_tx_per_s"
    ratios = [
        result.find("silo", "array", 8, seed).number(stat)
        / result.find("base", "array", 8, seed).number(stat)
        for seed in (3, 5, 8)
    ]
    relative = result.normalised("base")
    assert relative.interval(stat, "silo", "array", 8) == Interval.of(ratios)
    assert relative.value(stat, "silo", "array", 8) == pytest.approx(sum(ratios) / 3)
    assert relative.interval(stat, "base", "array", 8) == Interval(1.0, 0.0, 3, "seeds")
    mean = relative.mean_interval(stat, "silo", 8)
    assert mean.n == 3
    assert mean.half_width > 0
    assert {"value", "half_width"} <= set(relative.rows()[0])


def test_one_seed_gives_what_it_gave():
    result = graven.compare("base,silo", "array", transactions=100)
    assert result.seeds == [1]
    assert result.interval("cycles", "silo", "array", 8).half_width is None
    assert result.number("cycles", "silo", "array", 8) == result["silo"].records[0].stats["cycles"]
    assert "half_width" not in result.normalised("base").rows()[0]


def test_single_records_are_chosen_by_seed():
    result = graven.compare("base", "array", transactions=100, seeds=2)
    with pytest.raises(graven.ConfigError, match="seed: there are results of several, 1, 2"):
        result.find("base", "array", 8)
    assert result.find("base", "array", 8, seed=2).seed == 2


def test_a_number_of_which_a_seed_is_missing_is_none():
    result = graven.compare("base,silo", "array", transactions=100, seeds=2)
    part = graven.Comparison(result.records[:-1])
    assert part.number("cycles", "silo", "array", 8) is None
    assert part.number("cycles", "base", "array", 8) is not None


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        (0, "seeds: 0 is not allowed; from 1 to 1000"),
        (1001, "from 1 to 1000"),
        ([], "seeds: the list is empty"),
        ([1, -1], "seeds: -1 is not allowed"),
        ("1,2", "seeds: '1,2' is not an integer"),
    ],
)
def test_seeds_in_python_are_checked(seeds, said):
    with pytest.raises(graven.ConfigError, match=re.escape(said)):
        graven.compare("base", "array", transactions=100, seeds=seeds)


def test_seed_and_seeds_exclude_each_other(quick):
    with pytest.raises(graven.ConfigError, match="seeds: not beside `seed`"):
        graven.compare("base", "array", transactions=100, seed=2, seeds=2)
    done = quick("compare", *FEW, "--seed", "2", "--seeds", "2")
    assert done.returncode == 2
    assert "--seed and --seeds exclude each other" in done.stderr


@pytest.mark.parametrize("text", ["0", "x", "1,", "1,x", "1001", f"1,{1 << 64}", "-3"])
def test_seeds_at_the_command_line_are_checked(quick, text):
    done = quick("compare", *FEW, f"--seeds={text}")
    assert done.returncode == 2
    assert f"`{text}` is neither a number of seeds from 1 to 1000 nor several" in done.stderr


def test_the_table_has_mean_and_spread(quick, tmp_path):
    done = quick("compare", *FEW, "--seeds", "3", "--metrics", "throughput_tx_per_s,ipc")
    assert done.returncode == 0, done.stderr
    assert re.search(r" silo +\d\.\d\d ±\d\.\d\d ", done.stdout)
    assert re.search(r"base, transactions/s +\S+ ±\S+ [Mk]", done.stdout)
    assert "over 3 seeds (Student's t); ratios are paired by seed" in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 200
    page = (tmp_path / "report.html").read_text()
    assert re.search(r"\d\.\d\d ±\d\.\d\d", page)
    assert "<dt>seeds</dt><dd>1, 2, 3</dd>" in page
    assert "--seeds 1,2,3" in page
    assert "Not all simulations finished" not in page


def test_designs_that_are_not_told_apart_are_not_marked(quick, tmp_path):
    """Results of two seeds differ by as much as those of lad and silo."""
    done = quick("compare", *FEW, "--seeds", "2", "--metrics", "throughput_tx_per_s")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text()
    assert not re.search(r"<strong>\d", page)
    assert re.search(r"silo or lad|lad or silo", page)
    quick("compare", *FEW, "--metrics", "throughput_tx_per_s")
    assert re.search(r"<strong>\d", (tmp_path / "report.html").read_text())


def test_pictures_show_the_same_interval(quick, tmp_path):
    quick("compare", *FEW, "--seeds", "3", "--no-report")
    done = quick("plot", "bars", *FEW, "--seeds", "3", "--out", "bars.svg")
    assert done.returncode == 0, done.stderr
    result = graven.load(tmp_path / "graven-results" / "store")
    expected = result.normalised("base").interval("throughput_tx_per_s", "silo", "array", 8)
    rows = list(csv.DictReader((tmp_path / "bars.csv").open()))
    [row] = [r for r in rows if (r["design"], r["workload"]) == ("silo", "array")]
    assert float(row["value"]) == pytest.approx(expected.mean)
    assert float(row["high"]) == pytest.approx(expected.high)
    drawn = chart("bars", Asked(result, "base"))
    assert drawn.measure.spreads == "95 % confidence interval, 3 seeds"


def test_what_is_missing_for_a_picture_is_one_command(quick):
    quick("compare", *FEW, "--seeds", "2", "--no-report")
    done = quick("plot", "bars", *FEW, "--seeds", "4", "--out", "bars.svg")
    assert done.returncode == 2
    assert "--seeds 3,4" in done.stderr
    one = quick("plot", "bars", *FEW, "--seeds", "3", "--out", "bars.svg")
    assert "--seed 3" in one.stderr


def test_a_table_with_seeds_as_an_axis():
    pytest.importorskip("xarray")
    result = graven.compare("base", "array", transactions=100, seeds=2)
    assert result.to_xarray()["cycles"].dims == ("design", "workload", "threads", "seed")
