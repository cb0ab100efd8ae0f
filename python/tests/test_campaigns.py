"""Campaigns: pages are those of the tables, and the runner continues where it was."""

from __future__ import annotations

import subprocess
from argparse import Namespace
from importlib import import_module
from pathlib import Path

import pytest
from campaigns import (
    ALL,
    OTHERS,
    checked,
    faults,
    mutants,
    persistency,
    real_programs,
    runner,
    soaked,
    unseen,
)
from campaigns.runner import Campaign, Done, Failed
from campaigns.tables import ROOT, Table, page_with
from conftest import python


def campaign(name: str) -> Campaign:
    return import_module(f"campaigns.{name}").CAMPAIGN


@pytest.mark.parametrize(
    "name", [*(name for name in ALL if name not in ("explained", "kills", "fuzz")), "ratios"]
)
def test_a_page_shows_what_its_tables_have(name):
    found = campaign(name)
    assert found.page.read_text() == found.shown(), f"python -m campaigns {name} --stored"


def test_the_page_of_claims_shows_what_its_tables_have():
    """The papers are those of the checkout."""
    show = "from campaigns.explained import CAMPAIGN; print(CAMPAIGN.shown(), end='')"
    done = python("-c", show, cwd=ROOT, GRAVEN_PAPERS=str(ROOT / "papers"))
    assert done.returncode == 0, done.stderr
    assert (ROOT / "docs/results/claims.md").read_text() == done.stdout


def test_every_campaign_is_listed_with_what_it_is():
    done = python("-m", "campaigns", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    files = {path.stem for path in (ROOT / "campaigns").glob("*.py")}
    listed = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("    ")}
    assert {*ALL, *OTHERS} <= files & listed


def rows(**of: str) -> list[dict[str, str]]:
    return [{"of": name, "number": number} for name, text in of.items() for number in text.split()]


def test_rows_stay_until_they_are_measured_again():
    table = Table("x", ("of", "number"), ("of",))
    before = rows(a="1 2", b="3")
    assert table.replaced(before, rows(a="4", c="5")) == rows(a="4", b="3", c="5")
    ordered = Table("x", ("of", "number"), ("of",), lambda: [("c",), ("b",)])
    assert ordered.replaced(before, rows(c="5")) == rows(c="5", b="3")


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A campaign of three tasks; returns it with the names of those that have run."""
    monkeypatch.setattr(runner, "STATES", tmp_path)
    table = Table("table", ("of", "number"), ("of",), folder=tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "Of 2026-01-01, of\n2026-01-02 (commit 0abc).\n<!-- table -->\n<!-- end of table -->\n"
    )
    ran: list[str] = []

    def run(name, _):
        ran.append(name)
        if name == "failing" and len(ran) < 4:
            raise Failed("no memory")
        return {table: rows(**{name: "7"})}

    found = Campaign(
        lambda _: ("one", "failing", "other"),
        run,
        [table],
        page,
        lambda of: [" ".join(row["of"] for row in of) + "\n"],
        options=lambda parser: parser.add_argument("--size", default="1"),
        sizes=("size",),
    )
    return found, ran


def test_a_campaign_continues_where_it_was_unless_build_or_sizes_are_others(
    made, monkeypatch, capsys
):
    found, ran = made
    assert found.main("x", "", []) == 1
    assert capsys.readouterr().out == "failing: no memory\n"
    assert found.main("x", "", []) == 0
    assert ran == ["one", "failing", "other", "failing"]
    assert found.main("x", "", []) == 0
    assert found.main("x", "", ["--anew", "--only", "o*"]) == 0
    assert ran[4:] == ["one", "other"]
    assert found.main("x", "", ["--size", "2"]) == 0
    assert len(ran) == 9
    monkeypatch.setattr(runner._engine, "build", lambda: "another")
    assert found.main("x", "", ["--minutes", "-1"]) == 1
    assert found.main("x", "", ["--stored"]) == 0
    assert len(ran) == 9
    assert found.main("x", "", ["--size", "2"]) == 0
    assert len(ran) == 12


def test_a_page_says_of_which_day_and_commit_its_numbers_are(made):
    found, _ = made
    for arguments in (["--stored"], ["--only", "o*"], ["--minutes", "-1"], []):
        found.main("x", "", arguments)
        assert "of\n2026-01-02 (commit 0abc)" in found.page.read_text()
    found.main("x", "", [])
    text = found.page.read_text()
    assert "Of 2026-01-01, of 20" in text
    assert "0abc" not in text
    assert "one other" in text


def test_an_interrupted_campaign_keeps_what_is_done(made, monkeypatch):
    found, ran = made
    put = Done.put

    def interrupted(self, *of):
        put(self, *of)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Done, "put", interrupted)
        assert found.main("x", "", []) == 130
    assert found.page.read_text().count("one") == 1
    (path,) = (Path(runner.STATES)).glob("*.jsonl")
    path.write_text(path.read_text() + '"othe')
    assert found.main("x", "", ["--only", "o*"]) == 0
    assert ran == ["one", "other"]


def test_what_is_wrong_is_named_and_fails(made, capsys):
    found, _ = made
    object.__setattr__(found, "wrong", lambda of: [f"{len(of)} rows"])
    assert found.main("x", "", ["--stored"]) == 1
    assert capsys.readouterr().out == "0 rows\n"


def test_a_page_needs_a_block_for_each_mark():
    page = "a\n<!-- table -->\nold\n<!-- end of table -->\nb\n"
    assert page_with(page, "new\n") == ("a\n<!-- table -->\n\nnew\n\n<!-- end of table -->\nb\n")
    with pytest.raises(ValueError, match="longer"):
        page_with(page)


def test_every_check_was_kept_and_its_failures_add_up():
    rows = checked.TABLE.read()
    kinds = {(row["sizes"], row["bound"], row["design"]) for row in rows}
    assert len(kinds) == len(rows) > 20
    for row in rows:
        modes = sum(int(row[mode]) for mode in ("plain", "torn", "landed", "recovery"))
        assert modes == int(row["failures"]) >= int(row["different"]) > 0
        assert row["verdict"] == "kept"


def test_every_fault_was_tried_on_every_sound_design():
    rows = faults.TABLE.read()
    assert len({row["design"] for row in rows}) > 20
    assert all(sum(int(row[name]) for name in faults.COUNTS) > 0 for row in rows)


def test_every_surviving_mutant_is_explained():
    rows = mutants.TABLE.read()
    reasons = mutants.read_reasons()
    survivors = set(mutants.survivors(rows))
    tried = {(row["design"], row["mutant"]) for row in rows}
    assert survivors <= set(reasons)
    assert not set(reasons) & (tried - survivors), "killed, and said to be equivalent"
    designs = {row["design"] for row in rows}
    assert designs == {row["design"] for row in soaked.TABLE.read()}
    for design in designs:
        of_design = [row for row in rows if row["design"] == design]
        assert len(of_design) >= 15, design
        assert len({row["mutant"] for row in of_design}) == len(of_design)


def test_the_mutants_of_an_outsider_fit_the_designs():
    """A change of a design that moves a fault's place has to move the fault."""
    check = ["git", "apply", "--check", unseen.PATCH]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_mutant_of_an_outsider_is_killed_by_the_first_schedule_that_violates(monkeypatch):
    monkeypatch.setattr(unseen, "SCHEDULES", 5)
    # No number of a mutant: the design itself is violated, or is sound.
    found = {
        name: unseen._kills(ROOT, {"number": "0", "design": name}) for name in ("ideal", "silo")
    }
    assert all(1 <= int(schedule) <= 5 for schedule in found["ideal"].values())
    assert found["silo"] == {"schedules": "", "again": ""}


def test_real_programs_are_explained_and_lose_silent_stores_alone():
    captured, crashed = (table.read() for table in (real_programs.CAPTURED, real_programs.CRASHED))
    assert {row["program"] for row in captured} == set(real_programs.recipes())
    assert all(row["unexplained"] == "0" for row in captured)
    # Only what is lost of silent stores to words that were stored outside (findings.md).
    violated = [row for row in crashed if row["verdict"] == "violated"]
    assert all(int(row["outside"]) > 0 for row in violated)
    assert {r["design"] for r in violated} <= {"fwb-slde", "morlog-slde", "morlog-dp", "silo"}


def test_parts_of_all_small_programs_are_all(monkeypatch):
    monkeypatch.setattr(persistency, "keep", lambda: None)
    given = Namespace(jobs=1)
    found = []
    for part in range(persistency.ALL_PARTS):
        specs = persistency.parts("arm-pop", 2, ["all", str(part)])
        found += persistency.compare("arm-pop", 2, specs, given)
    assert sum(each["programs"] for each in found) == found[0]["of"] == 16_836
    assert 0 < sum(each["compared"] for each in found) < found[0]["of"]


def test_every_soaked_design_was_kept_and_its_failures_add_up():
    rows = soaked.TABLE.read()
    designs = [row["design"] for row in rows]
    assert len(set(designs)) == len(designs)
    assert set(designs) == {row["design"] for row in checked.TABLE.read()}
    for row in rows:
        assert row["verdict"] == "kept"
        assert sum(int(row[mode]) for mode in soaked.MODES) == int(row["recoveries"])
