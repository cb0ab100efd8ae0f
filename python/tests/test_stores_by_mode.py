"""Outcomes of stores by mode: what a judge says of an image is told as one of a few."""

import pytest
from campaigns.stores_by_mode import (
    CAMPAIGN,
    CRASHES,
    HANGS,
    LATER,
    LOSES,
    REFUSES,
    UNREADABLE,
    UNSOUND,
    UNSOUND_LATER,
    WRONG,
    modes,
    outcome_of,
    short,
)

DUMP = "`/tmp/x/lmdb dump {image} default`"
LAST = "`/tmp/x/lmdb later {image} default`"
STATE = f"and must be that before or after operation 2; {DUMP} says: key00=value 0 aaaa"

pytestmark = pytest.mark.checkout


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (f"the state is that of the beginning, {STATE}", LOSES),
        (f"the state is that after operation 1, {STATE}", LOSES),
        (f"the state is that of no instant, {STATE}", WRONG),
        (f"{DUMP} ended with exit code 3: tdb_open: it failed", REFUSES),
        (f"{DUMP} ended with exit code 3: tchdbopen: invalid meta data", REFUSES),
        (f"{DUMP} ended with exit code 3: mdb_env_open(env, path, 0, 0644): Invalid", REFUSES),
        (f"{DUMP} ended with exit code 3: mdb_cursor_open(txn, dbi): Invalid", UNREADABLE),
        (f"{DUMP} ended with exit code 3: gdbm_nextkey: Malformed bucket", UNREADABLE),
        (f"{DUMP} ended with exit code 4: damaged: a key is listed and not found", WRONG),
        (f"{DUMP} ended with exit code 6: tdb_check: Corrupt database", UNSOUND),
        (f"{DUMP} was ended by SIGBUS: it said nothing", CRASHES),
        (f"{DUMP} was ended by SIGALRM: it said nothing", HANGS),
        (f"{DUMP} had not ended after 3 s and was killed: it said nothing", HANGS),
        (f"{LAST} ended with exit code 5: MDB_CORRUPTED", LATER),
        (f"{LAST} ended with exit code 7: tdb_check: Corrupt database", UNSOUND_LATER),
    ],
)
def test_what_a_judge_says_is_an_outcome(said: str, outcome: str) -> None:
    assert outcome_of(said) == outcome


def test_what_is_kept_of_it_has_no_paths_and_no_values() -> None:
    said = f"the state is that of the beginning, {STATE}"
    assert short(said).startswith("the state is that of the beginning, and must be")
    assert "aaaa" not in short(said)
    assert "/tmp" not in short(said)
    crate = "/x/.cargo/registry/src/of-a-registry-19/sanakirja-core-1.4.1/src/lib.rs:405:9"
    said = f"{LAST} ended with exit code 5: thread '<unnamed>' (77) panicked at {crate}:"
    assert short(said) == "exit code 5: panicked at sanakirja-core-1.4.1/src/lib.rs:405:9:"


def test_each_mode_says_what_is_promised() -> None:
    tasks = [of.task for of in modes()]
    assert len(tasks) == len(set(tasks))
    assert all(all(of.said()) for of in modes())


def test_the_page_shows_what_its_tables_have_and_each_violation_was_seen_by_hand() -> None:
    assert CAMPAIGN.page is not None
    shown = "python -m campaigns stores_by_mode --stored"
    assert CAMPAIGN.page.read_text(encoding="utf-8") == CAMPAIGN.shown(), shown
    assert not CAMPAIGN.wrong(*CAMPAIGN.stored())
