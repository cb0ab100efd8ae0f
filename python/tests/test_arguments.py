"""Arguments of the Python interface: what is accepted, and what is said of what is not."""

from __future__ import annotations

import contextlib
import enum
import inspect
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graven
from graven.basics.errors import OutputError, StoreError

ERRORS = (graven.ConfigError, graven.TraceError, graven.SimulationError, OutputError, StoreError)
FEW = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class Design(enum.Enum):
    SILO = "silo"


class Text(enum.StrEnum):
    BTREE = "btree"


def test_numpy_paths_and_enumerations_are_taken(tmp_path):
    plain = graven.run("silo", "btree", threads=2, transactions=50, seed=3)
    other = graven.run(
        Design.SILO,
        Text.BTREE,
        machine=np.str_("silo"),
        threads=np.int64(2),
        transactions=np.uint8(50),
        seed=np.uint64(3),
        store=tmp_path / "store",
        fresh=np.True_,
        pm__write_ns=np.float64(150.0),
    )
    assert other.stats == plain.stats
    compared = graven.compare((Design.SILO,), Text.BTREE, threads=np.array([1, 2]), transactions=50)
    assert compared.threads == [1, 2]


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (graven.run, {"threads": "4"}, "threads: '4' is not an integer; 1 or more"),
        (graven.run, {"threads": 0}, "threads: 0 is not allowed; 1 or more"),
        (graven.run, {"threads": True}, "threads: True is not an integer"),
        (graven.run, {"transactions": 2.5}, r"transactions: 2\.5 is not an integer"),
        (graven.run, {"seed": -1}, "seed: -1 is not allowed; from 0 to 18446744073709551615"),
        (graven.run, {"design": None}, "design: None is not a text"),
        (graven.run, {"workload": 3}, "workload: 3 is not a text"),
        (graven.run, {"machine": 3}, "machine: 3 is not a text"),
        (graven.run, {"machine": "nope"}, "machine.*`nope`"),
        (graven.run, {"recovery": 0}, "recovery: 0 is not allowed; from 1 to 1000"),
        (graven.run, {"request_trace": 3}, "request_trace: 3 is not a path"),
        (graven.run, {"bank_loads": ""}, "bank_loads: '' is not a path"),
        (graven.run, {"store": 3}, "store: 3 is not a path"),
        (graven.run, {"fresh": "no"}, "fresh: 'no' is neither True nor False"),
        (graven.run, {"settings": ["pm.write_ns"]}, r"settings: \['pm.write_ns'\] is not a map"),
        (graven.run, {"settings": {3: 1}}, "settings: 3 is not a text"),
        (graven.run, {"settings": {"pm.nope": 1}}, "settings: unknown key `pm.nope`"),
        (graven.run, {"pm__nope": 1}, "settings: unknown key `pm.nope`"),
        (graven.compare, {"threads": []}, "threads: the list is empty"),
        (graven.compare, {"threads": [0]}, "threads: 0 is not allowed"),
        (graven.compare, {"threads": object()}, "threads: <object .*> is not an integer"),
        (graven.compare, {"jobs": 0}, "jobs: 0 is not allowed"),
        (graven.compare, {"designs": []}, "designs: the list is empty"),
        (graven.compare, {"designs": 3}, "designs: 3 is neither one nor a list"),
        (graven.compare, {"workloads": [3]}, "workloads: 3 is not a text"),
        (graven.compare, {"metrics": ["nope"]}, "metrics: unknown statistic `nope`"),
        (graven.compare, {"vary": {"pm.write_ns": 3}}, "vary, pm.write_ns: 3 is one value"),
        (graven.compare, {"vary": 3}, "vary: 3 is not a mapping"),
        (graven.compare, {"observe": 3}, "observe: 3 cannot be called"),
        (graven.crash, {"every": 0}, "every: 0 is not allowed; 1 or more"),
        (graven.crash, {"lives": 9}, "lives: 9 is not allowed; from 0 to 8"),
        (graven.crash, {"violations": 0}, "violations: 0 is not allowed"),
        (graven.crash, {"shares": 3}, "shares: 3 is not a graven.Shares"),
        (graven.crash, {"mutant": 3}, "mutant: 3 is not a text"),
        (graven.crash, {"garbage": 1}, "garbage: 1 is neither True nor False"),
        (graven.adversary, {"schedules": 0}, "schedules: 0 is not allowed"),
        (graven.adversary, {"schedules": 1, "first_seed": -1}, "first_seed: -1 is not allowed"),
        (
            graven.adversary,
            {"schedules": 1, "draws": {"threads": "8"}},
            "draws, threads: '8' is not",
        ),
        (graven.litmus, {"program": 3}, "program: 3 is not a path"),
        (graven.memory, {"trace": 3}, "trace: 3 is not a path"),
        (graven.cost, {"design": 3}, "design: 3 is not a text"),
        (graven.import_champsim, {"sources": "abc"}, r"sources: 'abc' is one path; give a list"),
        (graven.import_champsim, {"sources": []}, "sources: the list is empty"),
        (graven.memory, {"trace": "a", "clock": 3}, "clock: 3 is not a text"),
        (graven.memory, {"trace": "a", "levels": "1,2"}, "levels: '1,2' is not a list of integers"),
        (graven.convert_requests, {"trace": "a", "levels": []}, "levels: the list is empty"),
        (graven.import_trace, {"sources": ["a"], "layout": "x"}, "layout: 'x' is not allowed"),
        (graven.import_champsim, {"sources": ["a"], "instructions": 0}, "instructions: 0 is not"),
        (graven.export_champsim, {"thread": -1}, "thread: -1 is not allowed; from 0 to 4294967295"),
        (graven.trace_info, {"trace": None}, "trace: None is not a path"),
    ],
)
def test_what_is_refused_is_named_as_python_names_it(tmp_path, function, arguments, message):
    parameters = inspect.signature(function).parameters
    needed = {"design": "silo", "workload": "btree", "trace": tmp_path / "t", "out": tmp_path / "o"}
    given_too = {
        name: value
        for name, value in needed.items()
        if name in parameters and parameters[name].default is inspect.Parameter.empty
    }
    with pytest.raises(graven.ConfigError, match=message) as caught:
        function(**{**given_too, **arguments})
    assert "--" not in str(caught.value)


@pytest.mark.parametrize("name", ["torn", "in_flight", "recovery", "structures"])
def test_shares_are_not_negative(name):
    with pytest.raises(graven.ConfigError, match=f"shares, {name}: -1 is not allowed"):
        graven.Shares(**{name: -1})


def test_names_that_are_not_there_come_with_those_that_are():
    with pytest.raises(graven.ConfigError, match="design: unknown name `silp`; did you mean silo"):
        graven.catalogue().design("silp")
    with pytest.raises(graven.ConfigError, match="machine: unknown name `xyz`; known are "):
        graven.catalogue().machine("xyz")


# ---- names in what comes back --------------------------------------------------------------------

LOOKED_UP = {
    "number": lambda result, stat, design, workload: result.number(stat, design, workload, 8),
    "find": lambda result, _, design, workload: result.find(design, workload, 8),
    "value": lambda result, *names: result.normalised("base").value(*names, 8),
    "mean": lambda result, stat, design, _: result.normalised("base").mean(stat, design, 8),
    "arithmetic": lambda result, stat, design, _: result.normalised("base").arithmetic_mean(
        stat, design, 8
    ),
    "record": lambda result, stat, *_: result.records[0].number(stat),
    "unit": lambda _, stat, *__: graven.Metric(stat, "", False).unit,
    "statistic": lambda _, stat, *__: graven.catalogue().statistic(stat),
    "design": lambda _, __, design, ___: graven.catalogue().design(design),
    "machine": lambda _, __, machine, ___: graven.catalogue().machine(machine),
    "states": lambda _, __, design, ___: graven.catalogue().states_of(design),
}
TAKES = {
    "stat": {"number", "value", "mean", "arithmetic", "record", "unit", "statistic"},
    "design": {"number", "find", "value", "mean", "arithmetic", "design", "states"},
    "workload": {"number", "find", "value"},
}
RIGHT = {"stat": "cycles", "design": "silo", "workload": "btree"}
TYPED = {"stat": "cylces", "design": "sillo", "workload": "btre"}


@pytest.mark.parametrize(("what", "function"), [(w, f) for w in TAKES for f in sorted(TAKES[w])])
def test_a_mistyped_name_is_an_error_and_not_nothing(comparison, what, function):
    names = {**RIGHT, what: TYPED[what]}
    message = f"{'statistic' if what == 'stat' else what}: unknown name `{TYPED[what]}`; did you "
    with pytest.raises(graven.ConfigError, match=f"{message}mean {RIGHT[what]}") as caught:
        LOOKED_UP[function](comparison, *names.values())
    assert str(caught.value).endswith("?")


@pytest.mark.parametrize("name", sorted(LOOKED_UP))
@given(st.data())
@FEW
def test_of_any_name_there_is_a_value_or_a_documented_error(comparison, name, data):
    given_names = st.text(max_size=6) | JUNK
    names = [data.draw(st.just(right) | given_names) for right in RIGHT.values()]
    with contextlib.suppress(graven.ConfigError):
        LOOKED_UP[name](comparison, *names)


def test_what_exists_and_has_no_value_is_none(comparison):
    assert comparison.number("image_digest", "silo", "btree", 8) is None, "a text"
    assert comparison.number("cycles", "silo", "hash", 8) is None, "not among the workloads"
    assert comparison.number("cycles", "fwb", "btree", 8) is None, "not among the designs"
    assert comparison.number("cycles", "silo", "btree", 7) is None, "not among the threads"
    for nothing in ({}, {"image_digest": None}):
        record = replace(comparison.records[0], stats=nothing)
        assert record.number("image_digest") is None
        assert record.number("cycles") is None


def test_what_another_design_counts_is_none_of(comparison):
    for name in graven.catalogue().design_statistics:
        record = replace(comparison.records[0], stats={})
        assert record.number(name) == 0


def test_a_key_of_no_machine_is_an_error():
    preset = graven.catalogue().machine("silo")
    with pytest.raises(graven.ConfigError, match=r"key: unknown name `pm\.write_nss`; did you"):
        preset.value("pm.write_nss")


def test_all_errors_are_in_the_package():
    for name in ("ConfigError", "OutputError", "SimulationError", "StoreError", "TraceError"):
        assert issubclass(getattr(graven, name), Exception)
        assert name in graven.__all__


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 9),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=4),
    st.sampled_from(["silo", "btree", "all", "micro", "silo,base", "", ",", "../x", "x.gvt"]),
    st.just("a\0b"),
    st.lists(st.integers(-2, 9) | st.text(max_size=4), max_size=3),
    st.dictionaries(st.text(max_size=6) | st.integers(), st.integers() | st.text(max_size=4),
                    max_size=2),
    st.builds(object),
    st.builds(np.int64, st.integers(-3, 9)),
    st.builds(Path, st.sampled_from(["x", "missing/y", ""])),
)  # fmt: skip

FUNCTIONS = [
    graven.run, graven.compare, graven.memory, graven.crash, graven.litmus, graven.cost,
    graven.record_trace, graven.replay, graven.import_champsim, graven.import_trace,
    graven.export_champsim,
    graven.convert_requests, graven.trace_info, graven.sweep,
]  # fmt: skip


@given(st.data())
@FEW
def test_whatever_is_given_the_errors_are_those_that_are_documented(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    function = data.draw(st.sampled_from(FUNCTIONS))
    parameters = inspect.signature(function).parameters.values()
    valid = {"design": "silo", "workload": "btree", "designs": "silo", "workloads": "btree",
             "program": "missing.litmus", "sources": ["missing"]}  # fmt: skip
    arguments = {}
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD or parameter.name == "observe":
            continue
        is_needed = parameter.default is inspect.Parameter.empty
        if data.draw(st.integers(0, 3)) == 0:
            arguments[parameter.name] = data.draw(JUNK, parameter.name)
        elif is_needed:
            arguments[parameter.name] = valid.get(parameter.name, "missing.gvt")
    arguments.setdefault("transactions", 10) if function in (graven.run, graven.compare) else None
    # Any of them may come, or none.
    with contextlib.suppress(*ERRORS):
        function(**arguments)


def test_a_setting_of_junk_is_refused_by_its_name():
    for value in (object(), [1], {"a": 1}, b"x"):
        with pytest.raises(graven.ConfigError, match=r"pm\.write_ns"):
            graven.run("silo", "btree", pm__write_ns=value)


def test_records_are_json(tmp_path):
    record = graven.run("silo", "btree", transactions=10, store=tmp_path / "s")
    assert json.loads(json.dumps(record.to_dict(full=False)))["design"] == "silo"
