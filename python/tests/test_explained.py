"""The claims as they came out (graven/papers/reference.csv), and the page that shows them."""

from __future__ import annotations

import csv
import re
import tomllib
from pathlib import Path

import pytest

from graven.papers.plan import AUTHORS, DEFAULT
from graven.papers.rules import (
    AGREES,
    BY_DEFAULT,
    CONTRADICTED,
    MEANINGS,
    MET_25,
    NOT_INDEPENDENT,
    OUTCOMES,
    VERDICTS,
)

ROOT = Path(__file__).parents[2]
PAPERS = ("silo", "morlog", "fwb", "hoop", "lalea")


@pytest.fixture(scope="module")
def lines():
    with (ROOT / "python/graven/papers/reference.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def of_papers(kind):
    return [tomllib.loads((ROOT / "papers" / name / f"{kind}.toml").read_text()) for name in PAPERS]


def claims():
    """The claims that simulations answer."""
    others = ("about", "test", "cost", "machine", "none")
    every = [claim for document in of_papers("claims") for claim in document["claim"]]
    return {claim["id"]: claim for claim in every if not set(others) & set(claim["answer"])}


def test_every_measured_claim_is_there_with_its_alternatives(lines):
    found: dict[str, dict[str, dict[str, str]]] = {}
    for line in lines:
        found.setdefault(line["claim"], {})[line["alternative"]] = line
    assert set(found) == set(claims())
    readings = {name for paper in of_papers("experiments") for name in paper["readings"]}
    for claim, alternatives in found.items():
        verdict = alternatives.pop(DEFAULT)["verdict"]
        assert verdict in VERDICTS or verdict.startswith(("met under ", "direction only under "))
        for name, line in alternatives.items():
            assert name in readings | {AUTHORS} or line["kind"] == "open key", (claim, name)
            assert line["outcome"] in OUTCOMES


def test_what_every_reading_contradicts_has_a_reason(lines):
    verdicts = (CONTRADICTED, BY_DEFAULT)
    contradicted = {line["claim"] for line in lines if line["verdict"] in verdicts}
    assert contradicted
    assert not [claim for claim in contradicted if not claims()[claim].get("why")]


@pytest.mark.parametrize("size", [(), ("--quick",)])
def test_explain_shows_what_is_shipped_where_nothing_is_simulated(real, tmp_path, size):
    """In a fresh folder, at once: nothing runs."""
    done = real("explain", "silo-throughput-vs-fwb", *size, COLUMNS="150")
    assert done.returncode == 0, done.stderr
    made = "shipped with Graven, made by version 0.1.0 at quick sizes, with 3 seeds by default"
    assert made in done.stdout
    assert "paper: 6.4 x; ours: 0.96 × ±0.0069; met under the paper's method" in done.stdout
    for word in (CONTRADICTED, MET_25):
        assert f"{word}: {MEANINGS[word]}" in done.stdout
    assert "reason: " in done.stdout
    command = " ".join(["graven explain silo-throughput-vs-fwb", *size, "--simulate"])
    assert f"`{command}` runs them (about " in done.stderr
    assert not (tmp_path / "graven-results").exists()


def test_gains_stand_as_ratios_beside_the_papers(lines):
    every = claims()
    gains = {name for name, c in every.items() if c["answer"].get("form") in ("gain", "reduction")}
    assert len(gains) > 50
    for line in lines:
        if line["claim"] in gains:
            assert re.fullmatch(r"-?[\d.,e+-]+ × \(.+%.*\)", line["paper"]), line
            assert re.fullmatch(r"(-?[\d.,e+-]+ ×( ±[\d.e+-]+)?)?", line["ours"]), line


def test_agreement_with_a_number_that_the_model_was_made_with_is_not_counted(lines):
    circular = {name for name, claim in claims().items() if "circular" in claim}
    assert circular == {"morlog-motivation-clean-bytes"}
    for line in lines:
        if line["claim"] in circular:
            assert line["outcome"] not in AGREES
            assert line["verdict"] == NOT_INDEPENDENT
