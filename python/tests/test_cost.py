"""`graven cost` and `graven.cost`."""

from __future__ import annotations

import csv
import io
import itertools
import re

import pytest
from conftest import documents

import graven as library


def item_of(text, name):
    """The row of an item and those that its formula goes on in, in one line."""
    rest = text[re.search(rf"^ +{name} ", text, re.MULTILINE).start() :].splitlines()
    more = itertools.takewhile(lambda line: line.startswith(" " * 60) and line.strip(), rest[1:])
    return " ".join(" ".join([rest[0], *more]).split())


def test_a_table_has_values_formulas_and_verdicts(quick):
    done = quick("cost", "silo", "--set", "core.count=20")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "silo on machine silo, that of its paper"
    row = item_of(done.stdout, "log-buffer")
    for text in ("680 B", "thread (20)", "680 (Silo Table I)", "agrees", "= 20 × (26 + 8)"):
        assert text in row
    more = quick("cost", "silo", "--set", "silo.log_buffer_entries=40").stdout
    assert "= 40 × (26 + 8)" in item_of(more, "log-buffer")
    assert "other parameters [4]" in item_of(done.stdout, "flush-energy")
    assert any(line.startswith("[4] flush-energy: 5,440 B × 11.228 nJ are") for line in lines)
    [together] = [line for line in lines if line.startswith("together: core 320 B")]
    assert "controller 13,600 B" in together


def test_what_a_design_has_comes_first(quick):
    text = quick("cost", "hwl").stdout
    order = ["controller", "log-buffer", "not in this", "dirty-flags", "parts, and", "log-buffer-b"]
    assert sorted(order, key=text.index) == order


def test_verbose_says_what_items_are(quick):
    what = "SRAM: entries, each with its address in the log region"
    assert what not in " ".join(quick("cost", "silo").stdout.split())
    text = " ".join(quick("cost", "silo", "--verbose").stdout.split())
    assert f"{what} (silo-buffer-680b)" in text


def test_several_designs_stand_side_by_side(quick):
    text = quick("cost", "silo,ideal,base", "--machine", "morlog", "--set", "core.count=2").stdout
    assert "silo on machine morlog\n" in text
    assert "ideal † on machine morlog\nNothing beside the machine: no hardware is added.\n" in text
    assert "Bytes that designs add, by place" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["controller", "1,360", "–", "–"] in rows
    assert "† unsafe" in text


def test_json_and_csv_have_everything(quick):
    [silo, base] = documents(quick("cost", "silo,base", "--format", "json").stdout)
    assert (silo["design"], base["design"], silo["machine"]) == ("silo", "base", "silo")
    values = {item["name"]: item for item in silo["items"]}
    buffer = values["log-buffer"]
    assert buffer["per"]["formula"] == "core.count"
    assert buffer["printed"]["verdict"] == "agrees"
    assert values["flush-energy"]["printed"]["verdict"] == "differs"
    assert {"place": "controller", "bytes": 8 * 680} in silo["totals"]
    rows = list(csv.DictReader(io.StringIO(quick("cost", "silo,base", "--format", "csv").stdout)))
    both = [(cost["design"], item["name"]) for cost in (silo, base) for item in cost["items"]]
    assert [(row["design"], row["name"]) for row in rows] == both
    row = next(row for row in rows if row["name"] == "log-buffer")
    assert (row["per.count"], row["verdict"]) == ("8", "agrees")
    assert next(row for row in rows if row["name"] == "id-registers")["printed.text"] == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "unknown design `nope`"),
        (["silo", "--machine", "nope"], "unknown machine `nope`"),
        (["silo", "--set", "boom.x=1"], "unknown key `boom`"),
        (["silo", "--set", "l2.bytes=384 KB"], "l2.bytes"),
        (["silo", "--machine", "missing.toml"], "--machine: cannot read missing.toml"),
        ([","], "designs: the list is empty"),
    ],
)
def test_what_is_refused_is_named(quick, arguments, message):
    done = quick("cost", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_from_python(tmp_path):
    found = library.cost("silo", core__count=20)
    assert found.machine == "silo"
    assert found["log-buffer"].value == 680
    assert found["log-buffer"].per.count == 20
    assert found["log-buffer"].printed.verdict == "agrees"
    assert (found.totals["core"], found.totals["controller"]) == (320, 13_600)
    assert library.cost("ideal").items == ()
    with pytest.raises(KeyError, match="silo has no item `nope`; it has log-entry, log-buffer"):
        found["nope"]
    path = tmp_path / "mine.toml"
    path.write_text("title = 'mine'")
    assert library.cost("silo", machine=path).machine == "mine.toml"
    with pytest.raises(library.ConfigError, match="unknown key"):
        library.cost("silo", settings={"boom.x": 1})
