"""The mapping, the comparison, the files of records, and the check as a whole."""

import importlib
import json
from pathlib import Path

import pytest

from . import compare, store
from .compare import differences
from .mapping import MappingError, MayGo, Renames, Rule


def document(**more):
    return {"run": "matrix/silo/hash", "kind": "simulation", "spec": {"design": "silo"}, **more}


def mapped(text, **more):
    return Renames.parse(text).apply(document(**more))[0]


def shown(recorded, now):
    return [str(each) for each in differences(recorded, now)]


def test_the_committed_mapping_is_understood():
    Renames.read(Path(__file__).with_name("mapping.toml"))


def test_without_rules_nothing_changes():
    given = document(result={"stats": {"cycles": 0}})
    assert Renames.parse("").apply(given) == (given, set())


def test_keys_are_renamed_at_their_path_only():
    text = '[[key]]\npath = "result/results/*"\nfrom = "promise"\nto = "guarantee"\n'
    found = mapped(text, result={"results": [{"promise": 1}], "promise": 2})
    assert found["result"] == {"results": [{"guarantee": 1}], "promise": 2}


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
    assert Rule("", "*", pattern).is_for(path) is fits


def test_values_are_renamed_whole():
    text = '[[value]]\npath = "**/expected"\nfrom = "convicted"\nto = "violated"\n'
    found = mapped(text, result={"expected": "convicted", "what": "convicted"})
    assert found["result"] == {"expected": "violated", "what": "convicted"}
    kept = mapped(text, result={"expected": "not convicted"})
    assert kept["result"] == {"expected": "not convicted"}


def test_statistics_are_renamed_where_they_are_keys_and_where_they_are_named():
    text = '[statistics]\n"core*.ipc" = "core*.per_cycle"\n"cycles" = "time"\n'
    result = {
        "stats": {"core0.ipc": 1, "core12.ipc": 2, "cycles": 3, "ipc": 4},
        "metrics": ["cycles", "ipc"],
    }
    assert mapped(text, result=result)["result"] == {
        "stats": {"core0.per_cycle": 1, "core12.per_cycle": 2, "time": 3, "ipc": 4},
        "metrics": ["time", "ipc"],
    }
    named = mapped(text, result={"stats": [{"name": "core*.ipc", "unit": "cycles"}]})
    assert named["result"]["stats"] == [{"name": "core*.per_cycle", "unit": "cycles"}]


CONFIG = '[config]\n"pm" = "media"\n"pm.banks" = "rank.banks"\n"opt-redo" = "redo-log"\n'


def test_sections_and_keys_of_the_configuration_are_renamed_everywhere():
    config = {"pm": {"banks": 8, "ranks": 1}, "l1": {"ways": 8}}
    assert mapped(CONFIG, result={"config": config})["result"]["config"] == {
        "rank": {"banks": 8},
        "media": {"ranks": 1},
        "l1": {"ways": 8},
    }
    message = "`pm.banks` = 3 does not fit pm.ranks=2 (opt-redo.log_bytes); see papers/pm.toml."
    assert mapped(CONFIG, error="ConfigError", message=message)["message"] == (
        "`rank.banks` = 3 does not fit media.ranks=2 (redo-log.log_bytes); see papers/pm.toml."
    )
    settings = [["pm.banks", "3"], ["l1.ways", "4"]]
    spec = Renames.parse(CONFIG).apply({**document(), "spec": {"set": settings}})[0]["spec"]
    assert spec == {"set": [["rank.banks", "3"], ["l1.ways", "4"]]}


def test_no_key_is_renamed_that_only_begins_or_ends_like_one():
    text = "xpm.banks, pm.banks_of, a-pm.ranks, my.pm.ranks"
    assert mapped(CONFIG, result=text)["result"] == text.replace("pm.banks_of", "media.banks_of")


def test_words_of_the_configuration_are_renamed_with_their_key_only():
    text = '[config]\n"morlog.log_type" = "morlog.logs"\n'
    text += '[[config_value]]\nkey = "morlog.log_type"\nfrom = "per-thread"\nto = "many"\n'
    given = {
        "config": {"morlog": {"log_type": "per-thread"}, "lad": {"log_type": "per-thread"}},
        "set": [["morlog.log_type", "per-thread"], ["lad.log_type", "per-thread"]],
        "text": "set morlog.log_type = per-thread\nmorlog.log_type=per-threads",
    }
    assert mapped(text, result=given)["result"] == {
        "config": {"morlog": {"logs": "many"}, "lad": {"log_type": "per-thread"}},
        "set": [["morlog.logs", "many"], ["lad.log_type", "per-thread"]],
        "text": "set morlog.logs = many\nmorlog.logs=per-threads",
    }


def test_a_number_of_the_configuration_is_another_under_its_key_only():
    text = '[[config_value]]\nkey = "pm.banks"\nfrom = "8"\nto = "16"\n'
    given = {"config": {"pm": {"banks": 8, "lines": 8}, "lad": {"banks": 8, "on": True}}}
    assert mapped(text, result=given)["result"] == {
        "config": {"pm": {"banks": 16, "lines": 8}, "lad": {"banks": 8, "on": True}}
    }


def test_texts_are_replaced_in_the_order_of_the_rules():
    text = '[[text]]\nfrom = "a.c"\nto = "b\\\\1"\n'
    text += '[[text]]\npath = "result/text"\nfrom = "^(b)(.)"\nto = "\\\\2\\\\1"\nregex = true\n'
    found = mapped(text, result={"text": "a.c abc\na.c", "other": "a.c abc"})
    assert found["result"] == {"text": "\\b1 abc\n\\b1", "other": "b\\1 abc"}


def test_rules_are_for_the_runs_that_they_name():
    text = '[[text]]\nruns = "litmus/*"\nfrom = "convict"\nto = "violates"\n'
    assert mapped(text, message="convict")["message"] == "convict"
    other = {**document(message="convict"), "run": "litmus/any/atomic"}
    assert Renames.parse(text).apply(other)[0]["message"] == "violates"


ABSENT = '[[absent]]\nkeys = ["gc_*"]\nowners = ["hoop", "hoop-*"]\n'


def test_zeros_of_other_designs_may_go_and_nothing_else():
    stats = {"gc_passes": 0, "gc_share": 0.0, "gc_words": 7, "gc_on": False, "cycles": 0}
    expected = mapped(ABSENT, result={"stats": stats})["result"]["stats"]
    assert expected == {**stats, "gc_passes": MayGo(0), "gc_share": MayGo(0.0)}
    assert shown(expected, stats) == []
    assert shown(expected, {"gc_words": 7, "gc_on": False, "cycles": 0}) == []
    assert shown(expected, {"gc_passes": 1, "gc_on": False, "cycles": 0}) == [
        "gc_passes: recorded 0, now 1",
        "gc_words: recorded 7, now absent",
    ]


def test_an_owner_keeps_its_zeros():
    given = {"run": "x", "kind": "simulation", "spec": {"design": "hoop-literal"}}
    result = {"stats": {"gc_passes": 0}}
    kept = Renames.parse(ABSENT).apply({**given, "result": result})[0]
    assert kept["result"] == result
    # The design that is nearest counts: a replay may be under another one.
    inner = {"replays": [{"design": "silo", **result}], **result}
    found = Renames.parse(ABSENT).apply({**given, "result": inner})[0]["result"]
    assert found["stats"] == {"gc_passes": 0}
    assert found["replays"][0]["stats"] == {"gc_passes": MayGo(0)}


def test_what_may_go_is_renamed_if_it_stays():
    text = ABSENT + '[statistics]\n"gc_passes" = "collections"\n'
    expected = mapped(text, result={"stats": {"gc_passes": 0}})["result"]["stats"]
    assert expected == {"collections": MayGo(0)}


def test_what_was_not_recorded_is_expected_at_its_place_only():
    renames = Renames.parse('[[added]]\npath = "all/*"\nkeys = ["new"]\n')
    recorded = {"all": [{"name": "x", "old": 1}], "new": 1}
    now = {"all": [{"name": "x", "old": 1, "new": 2, "other": 3}], "new": 2}
    labels = {str(d): renames.expects("run", d) for d in differences(recorded, now)}
    assert labels == {
        "all/x/new: not recorded, now 2": "[[added]] 1",
        "all/x/other: not recorded, now 3": None,
        "new: recorded 1, now 2": None,
    }


def test_another_order_is_expected_of_its_list_only():
    renames = Renames.parse('[[reordered]]\npath = "all"\n')
    recorded = {list_: [{"name": "x"}, {"name": "y"}] for list_ in ("all", "others")}
    now = {list_: items[::-1] for list_, items in recorded.items()}
    found = [renames.expects("run", difference) for difference in differences(recorded, now)]
    assert found == ["[[reordered]] 1", None]


def test_it_is_known_which_rules_did_something():
    renames = Renames.parse(CONFIG + ABSENT + '[[text]]\nfrom = "zz"\nto = "b"\n')
    labels = ["[config] pm", "[config] opt-redo", "[config] pm.banks"]
    assert renames.labels == [*labels, "[[absent]] 1", "[[text]] 1"]
    given = document(message="pm.ranks", result={"stats": {"gc_passes": 0}})
    assert renames.apply(given)[1] == {"[config] pm", "[[absent]] 1"}


@pytest.mark.parametrize(
    "text",
    [
        "[[keys]]\n",
        '[[key]]\nfrom = "a"\nto = "b"\n',
        '[[text]]\nfrom = "a"\nto = "b"\nregexp = true\n',
        '[[text]]\nfrom = "("\nto = "b"\nregex = true\n',
        '[config]\n"pm" = "media.banks"\n',
        "no toml",
    ],
)
def test_a_mapping_that_is_not_understood_is_refused(text):
    with pytest.raises(MappingError):
        Renames.parse(text)


def test_every_difference_is_told_with_its_place_and_both_values():
    recorded = {"a": [1, {"b": 2.5}], "gone": None, "same": "x", "flag": True}
    now = {"a": [1, {"b": 2.75}], "new": [0], "same": "x", "flag": 1}
    assert shown(recorded, now) == [
        "a/1/b: recorded 2.5, now 2.75",
        "gone: recorded null, now absent",
        "flag: recorded true, now 1",
        "new: not recorded, now [0]",
    ]


def test_numbers_are_compared_as_numbers():
    assert shown({"a": 24.0, "b": 2**60}, {"a": 24, "b": 2**60}) == []
    assert shown({"b": 2**60}, {"b": 2**60 + 1}) != []
    assert shown({"a": 0}, {"a": False}) != []
    assert shown({"a": "1"}, {"a": 1}) != []


def test_lists_are_compared_by_index_or_by_name():
    assert shown([1, 2], [1, 2, 3]) == [": recorded 2 items, now 3"]
    one, other = {"name": "x", "value": 1}, {"name": "y", "value": 2}
    assert shown([one, other], [{**one, "value": 3}]) == [
        "x/value: recorded 1, now 3",
        'y: recorded {"name": "y", "value": 2}, now absent',
    ]
    assert shown({"l": [one, other]}, {"l": [other, one]}) == ["l: the order differs"]
    assert compare.IDENTITIES == ("name", "key")


def test_of_what_is_large_the_beginning_is_shown():
    [found] = shown({}, {"large": [1] * 500})
    assert found.startswith("large: not recorded, now [1, 1, ")
    assert found.endswith("… (1500 characters)")
    assert shown({"text": "x" * 500}, {"text": ""})[0].count("x") == 501
    assert shown({"objects": [{"a": MayGo(0)}]}, {}) == ['objects: recorded [{"a": 0}], now absent']


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


@pytest.mark.engine
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


@pytest.mark.engine
def test_a_check_maps_what_it_asks_for_and_what_it_expects(main, tmp_path, capsys):
    performed = importlib.import_module("..kinds", __name__).perform("cost", SHEET)
    text = json.dumps({"run": "costs/silo/own", "kind": "cost", "spec": SHEET, **performed})
    store.write("costs", [json.loads(text.replace('"silo"', '"former"'))])
    assert main("check") == 1
    rules = "".join(
        f'[[value]]\npath = "{path}"\nfrom = "former"\nto = "silo"\n'
        for path in ("**/design", "**/machine", "nowhere")
    )
    (tmp_path / "mapping.toml").write_text(rules, encoding="utf-8")
    capsys.readouterr()
    assert main("check") == 0
    assert "mapping.toml: [[value]] 3 applies to nothing" in capsys.readouterr().out


def test_a_check_of_nothing_is_none(main):
    assert main("check", "--only", "nothing/*") == 2
