"""`graven diff`: two results, two machines, and what cannot be compared."""

from __future__ import annotations

import json

import pytest

from graven.differences import Difference, of_configuration, of_statistics

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
        (("a.json", "two.json"), "two.json has 2 records"),
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
