"""`graven diff`: two results, two machines, and what cannot be compared."""

from __future__ import annotations

import json

import pytest

from graven.drawing.pages.changes import render
from graven.results.changes import Change, Changes
from graven.results.comparison import METRICS
from graven.results.differences import Difference, of_configuration, of_statistics

RUN = ("run", "--design", "silo", "--workload", "btree", "--transactions", "50")


@pytest.fixture
def digests(real):
    assert real(*RUN).returncode == 0
    assert real(*RUN, "--set", "pm.write_ns=300").returncode == 0
    listed = json.loads(real("results", "list", "--format", "json").stdout)
    return {"slow" if item["settings"] else "plain": item["digest"] for item in listed}


def test_two_results_differ_in_what_was_set_and_what_came_of_it(real, digests):
    done = real("diff", digests["plain"][:8], digests["slow"], "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["run"] == []
    assert found["configuration"] == [
        {"name": "pm.write_ns", "unit": "ns", "left": 150, "right": 300, "ratio": 2.0}
    ]
    names = {item["name"]: item for item in found["statistics"]}
    assert "transactional_stores" not in names, "the program is the same"
    assert names["cycles"]["right"] > names["cycles"]["left"]
    table = real("diff", digests["plain"], digests["slow"]).stdout
    for text in ("pm.write_ns", "150", "300", "2.00", "B/A", "run", "the same", "cycles"):
        assert text in table


def test_small_differences_are_left_out(real, digests):
    ask = ("diff", digests["plain"], digests["slow"], "--format", "json")
    every = json.loads(real(*ask).stdout)["statistics"]
    large = json.loads(real(*ask, "--least", "5").stdout)["statistics"]
    assert 0 < len(large) < len(every)
    left = [item for item in every if item not in large and "ratio" in item]
    assert left
    assert all(0.95 < item["ratio"] < 1.0 / 0.95 for item in left)


def test_two_files_are_compared_as_well(real, tmp_path):
    for name, words in (("a.json", RUN), ("b.json", (*RUN[:2], "fwb", *RUN[3:]))):
        (tmp_path / name).write_text(real(*words, "--format", "json").stdout)
    done = real("diff", "a.json", "b.json", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [item["name"] for item in found["run"]] == ["design"]
    logs = {item["name"]: item for item in found["statistics"]}
    assert logs["in_place_updates"]["right"] is None, "fwb does not count these"


def test_two_machines_differ_key_by_key(real, tmp_path):
    (tmp_path / "mine.toml").write_text("[pm]\nread_ns = 75\n")
    done = real("diff", "silo", "lalea", "--format", "json")
    assert list(json.loads(done.stdout)) == ["configuration"]
    keys = {item["name"] for item in json.loads(done.stdout)["configuration"]}
    assert {"pm.write_ns", "core.model", "controller.adr_entries"} <= keys
    mine = json.loads(real("diff", "silo", "mine.toml", "--format", "json").stdout)
    read = [item for item in mine["configuration"] if item["name"] == "pm.read_ns"]
    assert (read[0]["left"], read[0]["right"]) == (50, 75)
    assert "the same" in real("diff", "silo", "silo").stdout


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        (("silo", "none-such"), "unknown machine"),
        (("silo", "missing.toml"), "cannot read missing.toml"),
        (("a.json", "silo"), "A is a result and B is a machine"),
        (("a.json", "two.json"), "is not what Graven writes with the configuration"),
        (("a.json", "empty.json"), "no record of a simulation"),
        (("a.json", "bad.json"), "no JSON document"),
        (("a.json", "missing.json"), "cannot read missing.json"),
        (("0000", "silo"), "there is no store"),
    ],
)
def test_what_cannot_be_compared_is_refused(real, tmp_path, sides, message):
    text = real(*RUN, "--no-store", "--format", "json").stdout
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "two.json").write_text(json.dumps(json.loads(text) * 2))
    (tmp_path / "empty.json").write_text("[{}]")
    (tmp_path / "bad.json").write_text("{")
    done = real("diff", *sides)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_what_is_on_one_side_alone_is_a_difference():
    assert of_configuration({"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}) == [
        Difference("a.y", "", None, 2)
    ]
    [found] = of_statistics({"cycles": 100, "ipc": 1.0}, {"cycles": 101, "ipc": 1.0})
    assert (found.name, found.unit, found.ratio) == ("cycles", "cycles", 1.01)
    assert of_statistics({"cycles": 100}, {"cycles": 101}, least_percent=2.0) == []
    assert Difference("x", "", 0, 5).ratio is None
    assert Difference("x", "", True, 5).ratio is None


# ---- sets of results ---------------------------------------------------------------------------


@pytest.fixture
def sets(quick):
    of = ("--designs", "base,silo", "--workloads", "array,btree", "--transactions", "100")
    slow = (*of[:1], "base,silo,ideal", *of[2:], "--set", "pm.write_ns=300")
    assert quick("compare", *of, "--no-report", "--out", "a.json").returncode == 0
    assert quick("compare", *slow, "--no-report", "--out", "b.parquet").returncode == 0


@pytest.mark.usefixtures("sets")
def test_what_changed_between_two_sets_comes_simulation_by_simulation(quick):
    done = quick("diff", "a.json", "b.parquet", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["simulations"] == 4
    assert found["only_left"] == []
    assert [name.split(" on ")[0] for name in found["only_right"]] == ["ideal", "ideal"]
    [key] = [item for item in found["configuration"] if item["name"] == "pm.write_ns"]
    assert (key["right"], key["simulations"]) == (300, 4)
    table = quick("diff", "a.json", "b.parquet").stdout
    for words in ("4 simulations are in both", "2 only in B", "Throughput (higher is better)"):
        assert words in table
    small = quick("diff", "a.json", "b.parquet", "--least", "100").stdout
    assert "within 100 %" in small


@pytest.mark.usefixtures("sets")
def test_what_changed_is_a_page_that_loads_nothing(quick, tmp_path):
    done = quick("diff", "a.json", "b.parquet", "--report", "c.html", "--metrics", "ipc")
    assert done.returncode == 0, done.stderr
    assert "wrote c.html" in done.stderr
    page = (tmp_path / "c.html").read_text()
    assert "<title>Graven: what changed from a.json to b.parquet</title>" in page
    assert "Only in B:" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


def test_changes_are_sorted_by_their_size_up_and_down_alike():
    metric, less = METRICS[0], METRICS[1]
    made = [
        Change("a", "x", metric, 10.0, 12.0),
        Change("b", "x", metric, 10.0, 2.0),
        Change("c", "y", metric, 10.0, 10.0),
        Change("d", "y", less, 0.0, 1.0),
    ]
    ordered = sorted(made, key=lambda change: -change.size)
    assert [change.simulation for change in ordered] == ["d", "b", "a", "c"]
    assert [change.is_better for change in made] == [True, False, None, False]
    changes = Changes(4, (), ordered, (), (), (metric, less))
    assert changes.mean(metric, "x") == pytest.approx((1.2 * 0.2) ** 0.5)
    assert changes.mean(less) is None
    page = render(changes, ("A", "B"))
    assert page.count('class="better"') == 1
    assert page.count('class="worse"') == 2
    assert "1 simulation did not change" in page


def test_what_changes_by_less_than_asked_is_not_shown_anywhere_and_is_in_the_means():
    metric = METRICS[0]
    small, large = Change("a", "x", metric, 100.0, 104.0), Change("b", "x", metric, 100.0, 80.0)
    changes = Changes(2, (), (large, small), (), (), (metric,), least_percent=5.0)
    assert changes.shown(metric) == [large]
    assert [item["simulation"] for item in changes.to_dict()["changes"]] == ["b"]
    assert changes.mean(metric) == pytest.approx((1.04 * 0.8) ** 0.5)
    page = render(changes, ("A", "B"))
    assert page.count('class="worse"') == 1
    assert 'class="better"' not in page
    assert "1 simulation changed by less than 5 %" in page


@pytest.mark.usefixtures("sets")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.json", "silo"), "A is a set of results and B is none"),
        (("silo", "fwb", "--report", "c.html"), "--report is of two sets"),
        (("silo", "fwb", "--metrics", "ipc"), "--metrics is of two sets"),
        (("a.json", "b.parquet", "--metrics", "ipcs"), "unknown statistic `ipcs`"),
        (("a.json", "none.csv"), "none.csv"),
    ],
)
def test_sets_that_cannot_be_compared_are_refused(quick, arguments, message):
    done = quick("diff", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
