"""Commands that are killed: a sample of the campaign `campaigns.kills`, always the same."""

from __future__ import annotations

import pytest
from campaigns import kills
from campaigns.kills import CASES, OLD, Judged, Reference, Struck

BY_NAME = {case.name: case for case in CASES}


def test_the_table_has_all_tries_and_nothing_wrong():
    rows = kills.TABLE.read()
    assert [int(row["try"]) for row in rows] == list(range(kills.TRIES))
    for row in rows:
        assert row["case"] == kills.case_of(int(row["try"])).name
        assert (row["again"], row["lost"], row["wrong"]) == ("identical", "0", "")


@pytest.mark.parametrize(
    ("case", "when", "old"),
    [
        ("run", "append:1:half", False),
        ("files", "replace:2:after", True),
        ("files", "replace:3:before", True),
        ("gc", "replace:1:before", False),
        ("gc", "remove:2:after", False),
        ("convert", "replace:1:before", True),
        ("state", "replace:1:before", False),
    ],
)
def test_what_is_killed_leaves_old_or_new_and_goes_on(tmp_path, case, when, old):
    of = Reference(BY_NAME[case], tmp_path)
    folder = of.folder("struck", old=old)
    struck = kills.strike(of, folder, tmp_path / "log", when, 0.0)
    assert struck is not None, "it has ended before"
    judged = Judged(of, folder, struck, old)
    found = judged.after_it_was_killed()
    assert judged.again() == "identical"
    assert judged.wrong == []
    assert found["cut_off"] == ("1" if when.endswith("half") else "0")


def test_the_campaign_finds_what_is_wrong(tmp_path):
    """A half-written file, a result that has gone, and damage are found."""
    of = Reference(BY_NAME["export"], tmp_path)
    folder = of.folder("struck", old=True)
    (folder / "all.csv").write_text(OLD[:5])
    [segment] = (folder / of.case.store / "segments").iterdir()
    segment.write_bytes(segment.read_bytes().replace(b"cycles", b"cyc1es", 1))
    (folder / "results.tmp").write_text("")
    digest = "0" * 32
    judged = Judged(of, folder, Struck("never", 0.0, (f"acknowledged {digest}",)), old=True)
    judged.after_it_was_killed()
    said = "; ".join(judged.wrong)
    for words in ("verify: ", "all.csv is half-written", "a file of no name", "lost: ", digest):
        assert words in said
