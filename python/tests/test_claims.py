"""The papers' claims as data: complete, and answered by what exists and says so.

Bug class: a claim is lost or named twice; a test, a value or an item that should answer it is gone,
or is about something else.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from conftest import documents

from graven.papers.files import papers
from graven.papers.measures import same
from graven.papers.plan import EVERYTHING, Wanted
from graven.papers.programs import answer_with

ROOT = Path(__file__).parents[2]

NUMBERS = {"silo": 100, "morlog": 129, "fwb": 58, "hoop": 144, "lalea": 47}
"""How many things each paper claims."""


def _claims(paper):
    text = (ROOT / "papers" / paper / "claims.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["claim"]


def _experiments(paper):
    text = (ROOT / "papers" / paper / "experiments.toml").read_text(encoding="utf-8")
    return {item["id"]: item for item in tomllib.loads(text)["experiment"]}


CLAIMS = [(paper, claim) for paper in NUMBERS for claim in _claims(paper)]


def _answered_by(kind):
    return [
        pytest.param(paper, claim, id=claim["id"])
        for paper, claim in CLAIMS
        if kind in claim["answer"]
    ]


def _is_test(text, function):
    """Whether a Rust function is there with the attribute of a test, or a Python test."""
    if re.search(rf"^def {function}\(", text, re.MULTILINE):
        return function.startswith("test_")
    found = re.search(rf"((?:^[ \t]*(?:///|#\[).*\n)+)[ \t]*fn {function}\(", text, re.MULTILINE)
    return found is not None and "#[test]" in found[1]


def test_every_claim_is_there_once():
    assert {paper: len(_claims(paper)) for paper in NUMBERS} == NUMBERS
    twice = [
        name for name, count in Counter(claim["id"] for _, claim in CLAIMS).items() if count > 1
    ]
    assert twice == []
    assert [claim["id"] for paper, claim in CLAIMS if not claim["id"].startswith(f"{paper}-")] == []


def test_every_claim_says_what_and_where():
    required = {"id", "where", "says", "value", "answer"}
    optional = {"unit", "why", "restates", "circular"}
    for _, claim in CLAIMS:
        keys = set(claim)
        assert required <= keys <= required | optional, claim["id"]
        assert all(claim[key] for key in keys & {"where", "says", "unit", "why"}), claim["id"]
        assert len(claim["says"]) <= 160, claim["id"]


def test_what_is_contradicted_has_what_is_so_and_why():
    contradicted = [c for _, c in CLAIMS if c["answer"].get("verdict") == "contradicted"]
    assert contradicted
    for claim in contradicted:
        assert claim["answer"].get("ours"), claim["id"]
        assert claim.get("why"), claim["id"]


@pytest.mark.parametrize(("_paper", "claim"), _answered_by("test"))
def test_the_tests_exist_and_name_the_claim(_paper, claim):
    assert set(claim["answer"]) <= {"test", "verdict", "ours", "about"}
    assert claim["answer"]["test"], "which"
    for name in claim["answer"]["test"]:
        file, function = name.split("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert _is_test(text, function), f"{name} is no test"
        assert f"`{claim['id']}`" in text, f"{file} does not say that it answers {claim['id']}"


PROGRAMS = {
    "silo": {
        "main": {"array", "btree", "hash", "queue", "rbtree", "tpcc-new-order", "ycsb"},
        "capacity": {"tpcc"},
    },
    "morlog": {
        "small": {"btree", "hash", "queue", "rbtree", "sdg", "sps"},
        "macro-small": {"echo", "ycsb", "tpcc-new-order"},
    },
    "hoop": {
        "main": {"vector", "queue", "rbtree", "btree", "hash", "ycsb", "tpcc-new-order"},
    },
    "lalea": {"main": {"btree", "chain-queue", "hash", "rbtree", "tpcc", "tatp"}},
}


@pytest.mark.parametrize("paper", PROGRAMS)
def test_experiments_run_the_programs_that_a_paper_names(paper):
    """At their full size.

    `silo-cfg-tpcc-mix`, `silo-wl-tpcc`, `silo-cfg-ycsb-mix`, `silo-wl-ycsb`,
    `morlog-cfg-benchmarks`, `morlog-cfg-tpcc-transaction`, `hoop-cfg-ycsb`, `hoop-cfg-tpcc`,
    `lalea-cfg-workloads`.
    """
    experiments = _experiments(paper)
    for name, programs in PROGRAMS[paper].items():
        assert programs <= set(experiments[name]["workloads"]), name


def test_hoops_ycsb_has_pairs_of_two_sizes():
    """`hoop-cfg-ycsb`: 512 B and 1 KB."""
    parts = _experiments("hoop")["main"]["part"]
    of_ycsb = [part["vary"] for part in parts if part["workloads"] == ["ycsb"]]
    assert of_ycsb == [{"workload.element_bytes": ["512 B", "1 KB"]}]


@pytest.mark.parametrize(("paper", "claim"), _answered_by("machine"))
def test_the_preset_has_the_printed_value(paper, claim):
    text = (ROOT / "papers" / paper / "machine.toml").read_text(encoding="utf-8")
    machine = tomllib.loads(text)
    assert set(claim["answer"]) == {"machine"}
    assert claim["answer"]["machine"], "which"
    for key, value in claim["answer"]["machine"].items():
        section, name = key.split(".")
        found = machine[section][name]["value"]
        assert (type(found), found) == (type(value), value), key


def test_the_engine_has_the_values_of_the_presets(real):
    listed = {
        machine["name"]: machine
        for machine in documents(real("list", "machines", "--format", "json").stdout)
    }
    for parameters in _answered_by("machine"):
        paper, claim = parameters.values
        values = {value["key"]: value["value"] for value in listed[paper]["values"]}
        for key, value in claim["answer"]["machine"].items():
            assert same(values[key], value), f"{claim['id']}: {key} is {values[key]}"


@pytest.mark.parametrize(("paper", "claim"), _answered_by("cost"))
def test_the_cost_is_that_of_the_papers_design(paper, claim):
    assert claim["answer"] == {"cost": paper}


def test_a_test_is_told_from_what_is_none():
    text = "#[test]\nfn one() {}\nfn two() {}\n    #[test]\n    /// `b`\n    fn three(x: u8) {}\n"
    tests = [name for name in ("one", "two", "three", "four") if _is_test(text, name)]
    assert tests == ["one", "three"]


def _readings(paper):
    text = (ROOT / "papers" / paper / "experiments.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)
    return found.get("questions", {}), found.get("readings", {})


@pytest.mark.parametrize("paper", NUMBERS)
def test_a_reading_quotes_a_sentence_that_is_not_the_default_ones(paper):
    questions, readings = _readings(paper)
    assert readings
    for name, reading in readings.items():
        assert len(reading["quote"]) > 10, name
        assert re.match(r"§[IV]+|Table |Algorithm |Fig\. ", reading["where"]), name
        question = questions[reading["question"]]
        assert question["asks"].endswith("?"), name
        assert question.get("quote") != reading["quote"], name


@pytest.mark.usefixtures("unhooked")
@pytest.mark.parametrize("quick", [False, True])
def test_the_engine_takes_what_readings_and_open_keys_set(quick):
    for name, paper in papers().items():
        bears = set()
        for item in Wanted(paper, quick, readings=EVERYTHING).alternatives():
            for job in {(j.design, j.workload): j for j in item.jobs}.values():
                job.simulation()
            if item.changed or item.metrics:
                bears.add(item.name)
        for reading in paper.readings.values():
            if reading.programs and any(answer_with(one, reading) for one in paper.claims):
                bears.add(reading.name)
        idle = [reading for reading in paper.readings if reading not in bears]
        assert quick or not idle, f"{name}: what the machine has, or no experiment's: {idle}"


def test_a_reason_can_be_read_by_itself():
    """Whoever asks for one claim sees no other above it."""
    referring = re.compile(r"^(as|see) (above|below)|^the same\b", re.IGNORECASE)
    assert not [c["id"] for _, c in CLAIMS if referring.search(c.get("why", ""))]


def test_a_claim_restates_one_that_has_the_same_answer():
    by_id = {claim["id"]: claim for _, claim in CLAIMS}
    for _, claim in CLAIMS:
        if "restates" in claim:
            other = by_id[claim["restates"]]
            assert "restates" not in other
            same = ("experiment", "metric", "of", "over", "at")
            assert [claim["answer"].get(k) for k in same] == [other["answer"].get(k) for k in same]
