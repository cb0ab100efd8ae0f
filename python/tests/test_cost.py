"""`graven cost` and `graven.cost`."""

from __future__ import annotations

import csv
import io

import pytest
from conftest import documents

import graven as library


def test_a_table_has_values_formulas_and_verdicts(quick):
    done = quick("cost", "silo", "--set", "core.count=20")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "silo on machine silo, that of its paper"
    [row] = [line for line in lines if line.strip().startswith("log-buffer")]
    for text in ("680 B", "core (20)", "680 (Silo Table I)", "agrees", "core.count × 34 = 20 × 34"):
        assert text in row
    assert "together: controller 13,600 B" in lines
    assert "[1] energy: The paper rounds up." in lines
    assert "It is a fake." in lines


def test_what_a_design_has_comes_first(quick):
    text = quick("cost", "silo").stdout
    order = ["controller", "log-buffer", "not in this", "spare", "parts, and", "energy", "for comp"]
    assert sorted(order, key=text.index) == order
    [row] = [line for line in text.splitlines() if line.strip().startswith("gates")]
    assert row.split()[-2:] == ["reported", "reported"], "its number is the formula"


def test_verbose_says_what_items_are(quick):
    assert "what the log-buffer is" not in quick("cost", "silo").stdout
    text = " ".join(quick("cost", "silo", "--verbose").stdout.split())
    assert "what the log-buffer is (silo-buffer-680b)" in text


def test_several_designs_stand_side_by_side(quick):
    text = quick("cost", "silo,ideal,base", "--machine", "morlog", "--set", "core.count=2").stdout
    assert "silo on machine morlog\n" in text
    assert "ideal † on machine morlog\nNothing beside the machine.\n" in text
    assert "Bytes that designs add, by place" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["controller", "136", "–", "136"] in rows
    assert "† unsafe" in text


def test_json_and_csv_have_everything(quick):
    [silo, base] = documents(quick("cost", "silo,base", "--format", "json").stdout)
    assert (silo["design"], base["design"], silo["machine"]) == ("silo", "base", "silo")
    [buffer] = [item for item in silo["items"] if item["name"] == "log-buffer"]
    assert buffer["per"]["formula"] == "core.count"
    assert buffer["printed"]["verdict"] == "other-parameters"
    assert silo["totals"][1:] == [{"place": "controller", "bytes": 8 * 34 * 8}]
    rows = list(csv.DictReader(io.StringIO(quick("cost", "silo,base", "--format", "csv").stdout)))
    assert [row["name"] for row in rows] == ["energy", "log-buffer", "gates", "spare"] * 2
    assert rows[1]["per.count"] == "8"
    assert rows[1]["verdict"] == "other-parameters"
    assert rows[3]["printed.text"] == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "unknown design `nope`"),
        (["silo", "--machine", "nope"], "unknown machine `nope`"),
        (["silo", "--set", "boom.x=1"], "unknown key `boom.x`"),
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
    assert found.totals == {"core": 0, "controller": 13_600}
    assert library.cost("ideal").items == ()
    with pytest.raises(KeyError, match="silo has no item `nope`; it has energy, log-buffer"):
        found["nope"]
    path = tmp_path / "mine.toml"
    path.write_text("title = 'mine'")
    assert library.cost("silo", machine=path).machine == "mine.toml"
    with pytest.raises(library.ConfigError, match="unknown key"):
        library.cost("silo", settings={"boom.x": 1})
