"""What a table, a report and a picture were made with stands on each of them."""

from __future__ import annotations

import csv
import re

import pytest

import graven
from graven.results.conditions import Conditions

FEW = ("--designs", "base,silo", "--workloads", "array,btree", "--transactions", "1200")
ASKED = (*FEW, "--set", "pm.write_ns=300", "--threads", "4")
MINE = ("--design-as", "mine=silo,silo.log_buffer_entries=2")
LINE = (
    "machine silo, 4 threads, 1,200 transactions from the start, seed 1, pm.write_ns = 300 ns; "
    "mine: silo with silo.log_buffer_entries = 2 entries"
)


def test_every_table_of_the_terminal_says_it(quick):
    done = quick("compare", *ASKED, *MINE, "--metrics", "ipc,cycles", "--no-report")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert said.count(LINE) == said.count("relative to base (") == 2


def test_of_each_combination_it_says_what_that_has(quick):
    vary = ("--vary", "core.count=2,4")
    done = quick("compare", *FEW, *vary, "--metrics", "ipc", "--no-report")
    assert (
        "core.count = 2\nmachine silo, 2 threads, 1,200 transactions from the start, seed 1\n"
        in done.stdout
    )
    assert (
        "core.count = 4\nmachine silo, 4 threads, 1,200 transactions from the start, seed 1\n"
        in done.stdout
    )


def test_the_head_of_the_report_says_it(quick, tmp_path):
    quick("compare", *ASKED, *MINE, "--metrics", "ipc")
    head = (tmp_path / "report.html").read_text().partition("</header>")[0]
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", head))
    assert facts == {
        "machine": "silo",
        "threads": "4",
        "transactions": "1,200, from the start",
        "seed": "1",
        "pm.write_ns": "300 ns",
        "mine": "silo with silo.log_buffer_entries = 2 entries",
        "baseline": "base",
    }


@pytest.mark.parametrize("ending", ["pdf", "svg", "png"])
def test_a_picture_and_its_data_say_it(quick, tmp_path, ending):
    quick("compare", *ASKED, *MINE, "--no-report")
    done = quick("plot", "bars", *ASKED, *MINE, "--out", f"a.{ending}")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((tmp_path / "a.csv").open()))
    assert {row["made with"] for row in rows} == {LINE}
    content = (tmp_path / f"a.{ending}").read_bytes()
    assert b"pm.write_ns = 300 ns" in content


def test_wide_bars_show_it_below(comparison):
    wide = comparison.normalised("base").plot("bars", width="text")
    assert wide.get_supxlabel().startswith(
        "machine silo, 8 threads, 100 transactions from the start, seed 1"
    )
    assert comparison.normalised("base").plot("bars").get_supxlabel() == ""
    wide.canvas.draw()
    below = wide._supxlabel.get_window_extent()
    assert not wide._supylabel.get_window_extent().overlaps(below)


def test_files_that_are_read_again_say_it(tmp_path):
    result = graven.compare("base,silo", "array", transactions=100, seeds=2, pm__write_ns=300)
    result.save(tmp_path / "r.csv")
    again = graven.load(tmp_path / "r.csv")
    line = (
        "machine silo, 8 threads, 100 transactions from the start, seeds 1, 2, pm.write_ns = 300 ns"
    )
    assert Conditions.of(result).line == Conditions.of(again).line == line


def test_a_setting_of_some_designs_is_said_of_them():
    usual = graven.compare("base", "array", transactions=100)
    other = graven.compare("lad", "array", transactions=100, pm__write_ns=300)
    both = graven.Comparison((*usual.records, *other.records))
    assert Conditions.of(both).line == (
        "machine silo, 8 threads, 100 transactions from the start, seed 1; "
        "lad: pm.write_ns = 300 ns"
    )


def test_several_numbers_are_listed_and_many_are_a_range():
    result = graven.compare("base", "array", threads=[1, 2, 8], transactions=100)
    assert "1, 2 and 8 threads" in Conditions.of(result).line
    many = graven.compare("base", "array", threads=range(1, 12), core__count=11, transactions=100)
    assert "1 to 11 threads" in Conditions.of(many).line


def test_a_setting_that_only_some_designs_read_is_said_once():
    usual = graven.compare("base", "array", transactions=100)
    own = {"mine": ("silo", {"pm.write_ns": 300})}
    other = graven.compare(
        "base,silo", "array", transactions=100, variants=own, silo__log_buffer_entries=2
    )
    assert Conditions.of(usual + other).line == (
        "machine silo, 8 threads, 100 transactions from the start, seed 1, "
        "silo.log_buffer_entries = 2 entries; mine: silo with pm.write_ns = 300 ns"
    )


def test_the_design_that_stands_for_a_name_is_said():
    result = graven.compare("base,unsafe-base", "array", transactions=100)
    assert Conditions.of(result).line.endswith("; unsafe-base: the fastest is unsafe-undo")
