"""The claims as they came out (tests/campaigns/explained.csv), and the page that shows them."""

from __future__ import annotations

import csv
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import ENVIRONMENT

from graven.papers.plan import AUTHORS, DEFAULT
from graven.papers.rules import CONTRADICTED, OUTCOMES, VERDICTS

ROOT = Path(__file__).parents[2]
PAPERS = ("silo", "morlog", "fwb", "hoop", "lalea")


@pytest.fixture(scope="module")
def lines():
    with (ROOT / "tests/campaigns/explained.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def of_papers(kind):
    return [tomllib.loads((ROOT / "papers" / name / f"{kind}.toml").read_text()) for name in PAPERS]


def claims():
    """The claims that simulations answer."""
    others = ("about", "test", "cost", "machine", "none")
    every = [claim for document in of_papers("claims") for claim in document["claim"]]
    return {claim["id"]: claim for claim in every if not set(others) & set(claim["answer"])}


@pytest.mark.engine
@pytest.mark.usefixtures("real_engine")
def test_the_page_shows_what_the_file_has():
    done = subprocess.run(
        [sys.executable, "-m", "tests.campaigns.explained", "--table"],
        env=ENVIRONMENT,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs/claims.md").read_text()
    assert page.endswith(done.stdout.rstrip("\n") + "\n")


def test_every_measured_claim_is_there_with_its_alternatives(lines):
    found: dict[str, dict[str, dict[str, str]]] = {}
    for line in lines:
        found.setdefault(line["claim"], {})[line["alternative"]] = line
    assert set(found) == set(claims())
    readings = {name for paper in of_papers("experiments") for name in paper["readings"]}
    for claim, alternatives in found.items():
        verdict = alternatives.pop(DEFAULT)["verdict"]
        assert verdict in VERDICTS or verdict.startswith(("depends on ", "direction under "))
        for name, line in alternatives.items():
            assert name in readings | {AUTHORS} or line["kind"] == "open key", (claim, name)
            assert line["outcome"] in OUTCOMES


def test_what_every_reading_contradicts_has_a_reason(lines):
    contradicted = {line["claim"] for line in lines if line["verdict"] == CONTRADICTED}
    assert contradicted
    assert not [claim for claim in contradicted if not claims()[claim].get("why")]
