"""The campaign of cost against size: points, plots, and what came out."""

from __future__ import annotations

import re

import pytest
from campaigns import scale
from campaigns.runner import Failed
from campaigns.scale import KEY, MEASURED

STORED = scale.TABLE.read()


def sizes(axis, series):
    return [p.size for p in scale.points() if (p.axis, p.series) == (axis, series)]


def point(size=1000):
    return next(p for p in scale.points() if p.key == ("transactions", "silo, hash", str(size)))


def run(seconds=0.5, kb=10_000, **others):
    numbers = dict.fromkeys(MEASURED, 7)
    return numbers | {"run_seconds": seconds, "build_seconds": 0.1, "peak_kb": kb} | others


def row(size, seconds, series="silo, hash", axis="transactions"):
    numbers = run(seconds, transactions=size)
    return scale.TABLE.row(axis, series, size, *numbers.values())


def test_points_cover_the_axes_and_each_has_a_name_of_its_own():
    names = [p.name for p in scale.points()]
    assert len(set(names)) == len(names)
    assert {p.axis for p in scale.points()} == {axis.name for axis in scale.AXES}
    for design in ("silo", "hoop"):
        assert sizes("transactions", f"{design}, hash") == [10**n for n in range(3, 9)]
        assert sizes("threads", f"{design}, hash") == [2**n for n in range(8)]
        assert sizes("channels", f"{design}, hash") == [2**n for n in range(5)]
    footprints = sizes("footprint", "silo, sparse")
    assert (footprints[0], footprints[-1]) == (1 << 20, 64 << 30)


def test_machines_have_as_many_threads_as_are_asked_for():
    for p in scale.points():
        if p.axis == "threads":
            cores, threads = (
                int(p.settings[f"core.{key}"]) for key in ("count", "threads_per_core")
            )
            assert cores * threads == p.threads == p.size


def test_what_is_short_is_measured_again_and_the_shortest_time_and_largest_memory_count(
    monkeypatch,
):
    runs = [run(0.5, 10), run(0.3, 12), run(0.4, 11), run(9.0, 9)]
    monkeypatch.setattr(scale, "simulate", lambda _: runs.pop(0))
    found = scale.measure(point())
    assert (found["run_seconds"], found["peak_kb"]) == (0.3, 12)
    assert scale.measure(point())["run_seconds"] == 9.0


def test_runs_of_a_point_that_differ_are_not_taken(monkeypatch):
    runs = [run(actions=7), run(actions=8), run(actions=7)]
    monkeypatch.setattr(scale, "simulate", lambda _: runs.pop(0))
    with pytest.raises(AssertionError, match="actions differ"):
        scale.measure(point())


def test_a_point_is_simulated_in_a_process_of_its_own(monkeypatch):
    asked = []

    class Driver:
        def measure(self, **of):
            asked.append(of)
            return run() | {"outcome": "ended" if len(asked) == 1 else "cut"}

        def close(self):
            pass

    monkeypatch.setattr(scale, "Driver", Driver)
    assert scale.simulate(point())["run_seconds"] == 0.5
    assert asked[0]["set"] == {"workload.insert_percent": "0"}
    assert (asked[0]["design"], asked[0]["transactions"]) == ("silo", 1000)
    with pytest.raises(Failed, match="cut"):
        scale.simulate(point())


def test_growth_is_the_slope_of_what_takes_long_enough():
    rows = [row(10**n, 0.1 * 2.0**n) for n in range(4)]
    assert scale.exponent(rows) == pytest.approx(0.301, abs=0.001)
    assert scale.exponent([row(1, 1e-4), row(10, 1.0), row(100, 10.0)]) is None
    steep = [row(10**n, 0.1 * 100.0**n) for n in range(4)]
    assert scale.too_steep(rows) == []
    (line,) = scale.too_steep(steep)
    assert line == "transactions/silo, hash: time grows with the power of 2.00"


def test_plots_have_text_titles_and_units_and_are_the_same_every_time():
    rows = [row(10**n, 0.1 * 10.0**n) for n in range(4)]
    path = scale.PLOTS / "transactions.svg"
    plot = scale.plots(rows)[path]
    assert plot == scale.plots(rows)[path]
    text = plot.decode()
    for shown in ("transactions", "host time, s", "host memory, MB", "silo, hash", "linear"):
        assert f">{shown}</text>" in text
    assert "<dc:date>" not in text


def test_plots_are_those_of_the_table():
    hint = "python -m campaigns scale --stored"
    for path, content in scale.plots(STORED).items():
        assert drawn(path.read_bytes()) == drawn(content), f"{path.name}: {hint}"


def drawn(content):
    """A picture without the names of its clip paths: those are digests of all digits of numbers,
    of which the last depends on the host's processor."""
    return re.sub(rb"\bp[0-9a-f]{10}\b", b"p", content)


def test_no_time_grows_faster_than_the_size():
    assert scale.too_steep(STORED) == []


@pytest.mark.parametrize("series", ["silo, hash", "hoop, hash", "silo, hash, insertions"])
def test_a_transaction_takes_as_many_actions_in_a_long_run_as_in_a_short_one(series):
    (axis,) = (axis for axis in scale.AXES if axis.name == "transactions")
    rows = scale.by_series(STORED, axis)[series]
    assert len(rows) >= 4, "as far as 1,000,000 transactions"
    each = [int(r["actions"]) / int(r["transactions"]) for r in rows]
    assert max(each) <= 1.5 * min(each)


def test_memory_is_that_of_what_is_touched_not_of_the_footprint():
    by_key = {tuple(r[name] for name in KEY): r for r in STORED}
    largest = by_key["footprint", "silo, sparse", str(64 << 30)]
    # 16,384 lines: of each a page in two images, each with one of the C library's, and its wear.
    assert int(largest["peak_kb"]) <= 16_384 * 5 * 4 + 64 * 1024
