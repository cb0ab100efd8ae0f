"""The papers at full size beside quick sizes: the tables, and the page that shows them."""

from __future__ import annotations

import tomllib

import pytest
from campaigns import reproduced
from campaigns.runner import Failed
from campaigns.tables import ROOT, Row

from graven.papers.answers import Outcome
from graven.papers.files import papers
from graven.papers.plan import DEFAULT
from graven.papers.rules import OUTCOMES
from graven.papers.samples import Sample

ROWS = reproduced.TABLE.read()
CLAIMS = reproduced.CLAIMS.read()
SILO = papers()["silo"]


def row(quick: str, full: str, least: str = "", greatest: str = "") -> dict[str, str]:
    place = dict.fromkeys(reproduced.PLACE, "x")
    return place | {
        "quick": quick,
        "full": full,
        "least": least or full,
        "greatest": greatest or full,
    }


@pytest.mark.parametrize("name", ["silo", "morlog", "fwb", "hoop", "lalea"])
def test_every_figure_and_every_measured_claim_of_a_paper_is_there(name):
    paper = ROOT / "papers" / name
    drawn = tomllib.loads((paper / "experiments.toml").read_text())["figure"]
    figures = {row["figure"] for row in ROWS if row["paper"] == name}
    assert figures == {figure["id"] for figure in drawn}
    claims = {row["claim"]: row for row in CLAIMS if row["paper"] == name}
    printed = tomllib.loads((paper / "claims.toml").read_text())["claim"]
    others = {"about", "test", "cost", "machine", "none"}
    assert set(claims) == {claim["id"] for claim in printed if not others & set(claim["answer"])}
    assert all(row["full_outcome"] in OUTCOMES for row in claims.values())


def test_every_number_at_full_size_lies_between_those_of_its_seeds():
    numbers = [row for row in ROWS if row["full"]]
    assert len(numbers) > 0.9 * len(ROWS)
    for each in numbers:
        least, full, greatest = (float(each[name]) for name in ("least", "full", "greatest"))
        assert least <= full * (1 + 1e-5), each
        assert full <= greatest * (1 + 1e-5), each


@pytest.mark.parametrize(
    ("of", "is_apart"),
    [
        (row("1.09", "1"), False),
        (row("1.11", "1"), True),
        (row("0.89", "1"), True),
        (row("1.2", "1", "0.7", "1.3"), False),
        (row("", "1"), False),
        (row("1", "0"), False),
    ],
)
def test_a_quick_size_says_otherwise_beyond_a_tenth_and_beyond_the_seeds(of, is_apart):
    assert reproduced.is_apart(of) is is_apart


def test_claims_are_as_far_apart_as_their_farthest_number():
    quick = Outcome("met", "", {"a": Sample((1.1,)), "b": Sample((2.0,)), "c": Sample((9.0,))})
    full = Outcome("met", "", {"a": Sample((1.0, 1.0)), "b": Sample((3.0, 5.0))})
    assert reproduced.farthest(quick, full) == pytest.approx(0.5)
    assert reproduced.farthest(quick, Outcome("met")) is None


def rows_of(*places: tuple[str, str], column: str = "figure", full: str = "1") -> list[Row]:
    return [{"paper": paper, column: name, "full": full} for paper, name in places]


def test_figures_that_are_reproduced_again_replace_their_rows_alone():
    before = rows_of(("silo", "fig1"), ("silo", "fig3"), ("silo", "fig3"), ("morlog", "fig1"))
    anew = rows_of(("silo", "fig2"), ("silo", "fig3"), full="2")
    assert reproduced.TABLE.replaced(before, anew) == [before[0], *anew, before[3]]


def test_claims_stay_that_figures_do_not_answer_and_go_that_are_no_more():
    names = [claim.id for claim in SILO.claims if claim.measures][:3]
    before = rows_of(*(("silo", name) for name in ("no-more", *names)), column="claim")
    anew = rows_of(("silo", names[1]), column="claim", full="2")
    assert reproduced.CLAIMS.replaced(before, anew) == [before[1], *anew, before[3]]


def test_figures_are_named_by_a_pattern_and_all_of_them_are_the_whole_paper():
    assert reproduced.figures_of(SILO, "fig*") == ("fig1", "fig2", "fig3")
    assert reproduced.figures_of(SILO, "*") is None
    with pytest.raises(Failed, match="no figure matches fig99: there are fig1, fig2, fig3, tab1"):
        reproduced.figures_of(SILO, "fig99")


def test_outcomes_are_counted_by_paper_and_in_all():
    claims = [
        {"paper": "silo", "alternative": DEFAULT, "quick_outcome": "met", "full_outcome": "met"},
        {"paper": "hoop", "alternative": DEFAULT, "quick_outcome": "contradicted",
         "full_outcome": "direction only"},
    ]  # fmt: skip
    lines = reproduced.blocks(
        [],
        [{"claim": "c", "printed": "1", "quick": "", "full": "", "apart": ""} | c for c in claims],
    )[0]
    assert "| silo | 1 | 1 | 1 | 1 | 1 | 0 |" in lines
    assert "| hoop | 1 | 0 | 0 | 0 | 1 | 1 |" in lines
    assert "| all | 2 | 1 | 1 | 1 | 2 | 1 |" in lines
