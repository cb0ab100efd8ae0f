"""The mapping, the comparison, the files of records, and the check as a whole."""

import importlib
import json
from pathlib import Path

import pytest

from . import compare, store
from .compare import differences
from .mapping import Mapping, MappingError, path_pattern


def document(**more):
    return {"run": "matrix/silo/hash", "kind": "simulation", "spec": {"design": "silo"}, **more}


def mapped(text, **more):
    return Mapping.parse(text).apply(document(**more))[0]


def shown(recorded, now):
    return [str(each) for each in differences(recorded, now)]


def test_the_committed_mapping_is_understood():
    Mapping.read(Path(__file__).with_name("mapping.toml"))


def test_without_rules_nothing_changes():
    given = document(result={"stats": {"cycles": 0}})
    assert Mapping.parse("").apply(given) == (given, set())


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("**", "result/a/0", True),
        ("**/stats", "result/stats", True),
        ("**/stats", "stats", True),
        ("**/stats", "result/my_stats", False),
        ("**/stats", "result/stats/x", False),
        ("result/**", "result", True),
        ("result/**", "result/a/b", True),
        ("result/**", "results/a", False),
        ("result/**/what", "result/what", True),
        ("result/**/what", "result/a/0/what", True),
        ("result/*/what", "result/a/0/what", False),
        ("result/*/w*t", "result/7/what", True),
        ("**/core0.ipc", "result/core0xipc", False),
    ],
)
def test_wildcards_of_paths(pattern, path, fits):
    assert bool(path_pattern(pattern).fullmatch(path)) is fits


def test_keys_and_values_are_replaced_in_the_spec_and_in_the_result():
    text = "[[replace]]\nfrom = '\"promise\":'\nto = '\"guarantee\":'\n"
    text += '[[replace]]\nfrom = \'("guarantee":)"kept"\'\nto = \'\\1"whole"\'\n'
    found = mapped(text, spec={"promise": 1}, result=[{"promise": "kept"}, "kept", "promise"])
    assert found == document(
        spec={"guarantee": 1}, result=[{"guarantee": "whole"}, "kept", "promise"]
    )


def test_a_number_of_the_configuration_is_another_wherever_its_key_names_it():
    rules = r"""
[[replace]]
from = '(\btransactions_min(?:": ?|","| ?= ?))32000\b'
to = '\g<1>64000'
"""
    given = {
        "config": {"region": {"transactions_min": 32000, "transactions_max": 32000}},
        "set": [["region.transactions_min", "32000"], ["pm.banks", "32000"]],
        "what": "region.transactions_min = 32000, region.transactions_min=320000",
    }
    assert mapped(rules, result=given)["result"] == {
        "config": {"region": {"transactions_min": 64000, "transactions_max": 32000}},
        "set": [["region.transactions_min", "64000"], ["pm.banks", "32000"]],
        "what": "region.transactions_min = 64000, region.transactions_min=320000",
    }


def test_names_of_runs_and_kinds_stay():
    found = mapped("[[replace]]\nfrom = 'silo|simulation'\nto = 'other'\n", message="silo")
    assert found == document(spec={"design": "other"}, message="other")


def test_rules_are_for_the_runs_that_they_name():
    text = "[[replace]]\nruns = 'litmus/*'\nwithout = ['*/silo/*']\nfrom = 'x'\nto = 'y'\n"
    for run, message in (
        ("matrix/silo/hash", "x"),
        ("litmus/any/atomic", "y"),
        ("litmus/silo/x", "x"),
    ):
        given = {**document(message="x"), "run": run}
        assert Mapping.parse(text).apply(given)[0]["message"] == message


EXPECTED = """
[[expect]]
path = "**/stats/gc_*"
without = ["*/hoop*/*"]
recorded = "0"
now = "absent"

[[expect]]
path = "all/*/new"
recorded = "absent"

[[expect]]
path = "all"
recorded = "order *"
"""


@pytest.mark.parametrize(
    ("recorded", "now", "unexpected"),
    [
        ({"stats": {"gc_passes": 0}}, {"stats": {}}, []),
        ({"stats": {"gc_passes": 0}}, {"stats": {"gc_passes": 1}}, ["recorded 0, now 1"]),
        ({"stats": {"gc_passes": 7}}, {"stats": {}}, ["recorded 7, now absent"]),
        ({"stats": {"cycles": 0}}, {"stats": {}}, ["recorded 0, now absent"]),
        ({"all": [{"name": "x"}]}, {"all": [{"name": "x", "new": 2}]}, []),
        ({"all": [{"name": "x"}]}, {"all": [{"name": "x", "old": 2}]}, ["now 2"]),
        ({"new": 1}, {"new": 2}, ["recorded 1, now 2"]),
        ({"all": [{"name": "x"}, {"name": "y"}]}, {"all": [{"name": "y"}, {"name": "x"}]}, []),
        ({"a": [{"name": "x"}, {"name": "y"}]}, {"a": [{"name": "y"}, {"name": "x"}]}, ["order"]),
    ],
)
def test_differences_are_expected_in_their_place_only(recorded, now, unexpected):
    mapping = Mapping.parse(EXPECTED)
    found = [each for each in differences(recorded, now) if not mapping.expects("a/silo/b", each)]
    assert len(found) == len(unexpected)
    assert all(text in str(each) for text, each in zip(unexpected, found, strict=True))
    owned = [mapping.expects("a/hoop/b", each) for each in differences(recorded, now)]
    assert "[[expect]] 1" not in owned


def test_it_is_known_which_rules_did_something():
    mapping = Mapping.parse(EXPECTED + "[[replace]]\nfrom = 'zz'\nto = 'b'\n")
    assert mapping.labels == ["[[replace]] 1", *(f"[[expect]] {n}" for n in (1, 2, 3))]
    assert mapping.apply(document(message="z"))[1] == set()
    assert mapping.apply(document(message="zz"))[1] == {"[[replace]] 1"}


@pytest.mark.parametrize(
    "text",
    [
        "[[keys]]\n",
        '[[replace]]\nfrom = "a"\n',
        '[[replace]]\nfrom = "a"\nto = "b"\nregexp = true\n',
        '[[replace]]\nfrom = "("\nto = "b"\n',
        '[[expect]]\nrecorded = "absent"\n',
        "no toml",
    ],
)
def test_a_mapping_that_is_not_understood_is_refused(text):
    with pytest.raises(MappingError):
        Mapping.parse(text)


def test_a_rule_that_leaves_no_json_is_named():
    with pytest.raises(MappingError, match=r"\[\[replace\]\] 1: no JSON is left"):
        mapped("[[replace]]\nfrom = '}'\nto = ''\n", message="x")


def test_every_difference_is_told_with_its_place_and_both_values():
    recorded = {"a": [1, {"b": 2.5}], "gone": None, "same": "x", "flag": True}
    now = {"a": [1, {"b": 2.75}], "new": [0], "same": "x", "flag": 1}
    assert shown(recorded, now) == [
        "a/1/b: recorded 2.5, now 2.75",
        "gone: recorded null, now absent",
        "flag: recorded true, now 1",
        "new: recorded absent, now [0]",
    ]


def test_numbers_are_compared_as_numbers():
    assert shown({"a": 24.0, "b": 2**60}, {"a": 24, "b": 2**60}) == []
    assert shown({"b": 2**60}, {"b": 2**60 + 1}) != []
    assert shown({"a": 0}, {"a": False}) != []
    assert shown({"a": "1"}, {"a": 1}) != []


def test_lists_are_compared_by_index_or_by_name():
    assert shown([1, 2], [1, 2, 3]) == [": recorded 2 items, now 3 items"]
    one, other = {"name": "x", "value": 1}, {"name": "y", "value": 2}
    assert shown([one, other], [{**one, "value": 3}]) == [
        "x/value: recorded 1, now 3",
        'y: recorded {"name": "y", "value": 2}, now absent',
    ]
    assert shown({"l": [one, other]}, {"l": [other, one]}) == [
        "l: recorded order x, y, now order y, x"
    ]
    assert compare.IDENTITIES == ("name", "key")


def test_of_what_is_large_the_beginning_is_shown():
    [found] = shown({}, {"large": [1] * 500})
    assert found.startswith("large: recorded absent, now [1, 1, ")
    assert found.endswith("… (1500 characters)")
    assert shown({"text": "x" * 500}, {"text": ""})[0].count("x") == 501


def test_a_group_is_written_as_it_is_read_and_always_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FOLDER", tmp_path)
    documents = [document(result={"text": "±"}), document(result=1.5)]
    assert store.write("group", iter(documents)) == 2
    first = (tmp_path / "group.jsonl.xz").read_bytes()
    assert list(store.read("group")) == documents
    assert store.groups() == ["group"]
    store.write("group", json.loads(json.dumps(documents)))
    assert (tmp_path / "group.jsonl.xz").read_bytes() == first


def test_the_recorded_runs_have_names_of_their_own_and_what_documents_have():
    names = set()
    for group in store.groups():
        for each in store.read(group):
            assert each["run"].startswith(f"{group}/")
            assert each["run"] not in names
            names.add(each["run"])
            assert ("result" in each) != ("error" in each)
            assert each.get("error") != "Cancelled"
    assert names


@pytest.fixture
def main(tmp_path, monkeypatch):
    """The commands, on records and a mapping of their own."""
    pytest.importorskip("graven._engine")
    command = importlib.import_module("..__main__", __name__)
    monkeypatch.setattr(store, "FOLDER", tmp_path)
    monkeypatch.setattr(command, "MAPPING", tmp_path / "mapping.toml")
    (tmp_path / "mapping.toml").write_text("", encoding="utf-8")
    return lambda *arguments: command.main([*arguments, "--jobs", "1"])


SHEET = {"design": "silo", "machine": None, "set": []}


@pytest.mark.parametrize("group", ["adversary", "crashes"])
def test_no_sound_design_is_recorded_with_a_violation(group):
    """What is recorded counts as right from then on."""
    documents = [each for each in store.read(group) if not each["spec"].get("mutant")]
    reports = [(each["run"], each["result"]) for each in documents if "result" in each]
    sound = [(run, report) for run, report in reports if report.get("sound")]
    assert len(sound) > 10
    assert [run for run, report in sound if report["violations"]] == []


def test_a_check_passes_and_fails_when_a_number_is_another(main, capsys):
    performed = importlib.import_module("..kinds", __name__).perform("cost", SHEET)
    recorded = {"run": "costs/silo/own", "kind": "cost", "spec": SHEET, **performed}
    store.write("costs", [recorded])
    assert main("check") == 0
    assert capsys.readouterr().out.endswith("s: no difference\n")
    total = recorded["result"]["totals"][0]
    total["bytes"] += 1
    store.write("costs", [recorded])
    assert main("check") == 1
    lines = capsys.readouterr().out.splitlines()
    was, now = total["bytes"], total["bytes"] - 1
    place = "costs/silo/own: result/totals/0/bytes"
    assert lines[0] == f"{place}: recorded {was}, now {now}"
    assert lines[1].endswith("s: 1 differences in 1 runs")


def test_a_check_maps_what_it_asks_for_and_what_it_expects(main, tmp_path, capsys):
    performed = importlib.import_module("..kinds", __name__).perform("cost", SHEET)
    text = json.dumps({"run": "costs/silo/own", "kind": "cost", "spec": SHEET, **performed})
    store.write("costs", [json.loads(text.replace('"silo"', '"former"'))])
    assert main("check") == 1
    rules = "".join(
        f'[[replace]]\nfrom = \'"{key}":"former"\'\nto = \'"{key}":"silo"\'\n'
        for key in ("design", "machine", "nowhere")
    )
    (tmp_path / "mapping.toml").write_text(rules, encoding="utf-8")
    capsys.readouterr()
    assert main("check") == 0
    assert "mapping.toml: [[replace]] 3 applies to nothing" in capsys.readouterr().out


def test_a_check_of_nothing_is_none(main):
    assert main("check", "--only", "nothing/*") == 2
