"""What is said of counts, beside those of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .callgrind import Count
from .table import PATH, SHORT_INSTRUCTIONS, Table, verdict

if TYPE_CHECKING:
    from pathlib import Path

BEFORE = Count(instructions=100_000, units=100, unit="request")


@pytest.mark.parametrize(
    ("instructions", "units", "fails", "said"),
    [
        (100_000, 100, False, "x: 1,000 per request, +0.0 % of 1,000"),
        (104_000, 100, False, "x: 1,040 per request, +4.0 % of 1,000"),
        (
            106_000,
            100,
            True,
            "x: 1,060 per request, +6.0 % of 1,000: more than 5 % above the table",
        ),
        (90_000, 100, False, "x: 900 per request, -10.0 % of 1,000: worth recording"),
        # Twice the work in twice the instructions is no growth.
        (200_000, 200, False, "x: 1,000 per request, +0.0 % of 1,000"),
    ],
)
def test_growth_fails_and_what_shrinks_is_worth_recording(instructions, units, fails, said):
    now = verdict("x", BEFORE, Count(instructions, units, "request"))
    assert (now.line, now.fails) == (said, fails)


def test_a_benchmark_without_counterpart_fails():
    assert verdict("x", None, BEFORE).fails
    assert verdict("x", BEFORE, None).fails
    assert verdict("x", BEFORE, Count(100_000, 100, "transaction")).fails


def test_what_takes_long_is_named():
    long = Count(10 * SHORT_INSTRUCTIONS, 100, "request")
    assert Table("rustc", {"a": BEFORE, "b": long}).long() == {"b"}
    table = Table.read(PATH)
    groups = {name.split("/")[0] for name in table.counts}
    short = {name.split("/")[0] for name in set(table.counts) - table.long()}
    assert groups - short == {"adversary"}


def test_a_table_is_read_as_it_was_written(tmp_path: Path):
    table = Table("rustc 1.90.0 (a 2025-09-14)", {"b/c-d": BEFORE, "a": Count(7, 3, "crash point")})
    table.write(tmp_path / "counts.toml")
    assert Table.read(tmp_path / "counts.toml") == table


def test_the_committed_table_is_sorted_and_has_counted_something():
    counts = Table.read(PATH).counts
    assert list(counts) == sorted(counts)
    assert all(each.instructions > 0 and each.units > 0 for each in counts.values())
