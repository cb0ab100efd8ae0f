"""`graven capture`: threads, atomic instructions, races."""

import json

import pytest
from capturing import IS_REQUIRED, TX, compile_program

pytestmark = pytest.mark.usefixtures("tools")

# Threads, transactions, and stores of each program, and locks that are released within.
THREADS = {
    "mutexes": (5, 800, 1600, 0),
    "inside": (4, 800, 1600, 800),
    "readers": (4, 200, 400, 0),
    "one_by_one": (8, 7, 7021, 0),
    "conditions": (4, 200, 400, 0),
    "ping_pong": (3, 1, 800, 0),
    "semaphores": (2, 200, 400, 0),
    "barriers": (4, 200, 400, 0),
}


@pytest.mark.parametrize("mode", THREADS)
def test_threads_are_in_the_order_in_which_they_met(proven, mode):
    report = proven("threads", mode, designs=["silo"])
    names = ("threads", "transactions", "stores", "unlocks_put_off")
    assert tuple(report[name] for name in names) == THREADS[mode]


@pytest.mark.parametrize("mode", ["mutexes", "inside", "conditions"])
def test_locks_keep_threads_apart_when_the_trace_runs(proven, mode):
    # One order of their stores is right: what each thread adds to has been stored by another.
    assert proven("threads", mode, designs=["silo", "fwb"])["words_stored_outside"] == 0


def test_threads_are_in_order_without_transactions(proven):
    assert proven("threads", "mutexes", tx=None)["words_stored"] == 1600


@pytest.mark.parametrize("mode", ["mutexes", "inside"])
def test_of_several_threads_there_are_no_more_transactions_than_asked_for(proven, mode):
    report = proven("threads", mode, skip=100, transactions_max=50, designs=["silo"])
    assert (report["skipped"], report["transactions"]) == (100, 50)


@pytest.mark.parametrize(
    ("mode", "threads", "forks"),
    [("left_alone", 6, 0), ("forks_among_others", 4, 20), ("signals", 5, 0)],
)
def test_no_thread_waits_for_a_turn_that_does_not_come(captured, mode, threads, forks):
    document = captured("threads", mode, tx=None)
    report = document["report"]
    assert (document["exit_code"], report["all_threads"], report["forks"]) == (0, threads, forks)
    assert report["loads_unexplained"] == 0
    # While the process ends, threads that execute go on a little: what they store then is not seen.
    assert report["bytes_unexplained"] == 0 or mode == "left_alone"


# Threads that meet by atomic instructions alone: loads and stores of each, where no loop waits.
ATOMICS = {
    "tickets": (40_001, 40_000),
    "loops": None,
    "spin_lock_in_pm": None,
    "spin_lock_in_dram": (4001, 4000),
    "stack": None,
    "sizes": (180_000, 160_000),
    "split": (4000, 4000),
    "flag": (2, 2),
    "unordered": (60_000, 40_000),
}


@pytest.mark.parametrize("mode", ATOMICS)
def test_atomics_are_in_the_order_in_which_they_happened(proven, mode):
    # Each is a load and a store, of what it leaves; what fails stores what was there.
    report = proven("atomics", mode, tx=None)
    if ATOMICS[mode] is not None:
        assert (report["loads"], report["stores"]) == ATOMICS[mode]
    if mode == "unordered":
        assert (report["races"] > 0, report["racing_bytes"]) == (True, 24)
    # In a stack without locks a node may be looked at that another thread has taken and stores to.
    elif mode != "stack":
        assert report["races"] == 0, report["first_races"]


# Bytes that have a race in each program; most are right, each by another kind of synchronisation.
RACES = {
    "two_stores": 8,
    "store_and_load": 8,
    "two_loads": 0,
    "neighbours": 0,
    "overlap": 2,
    "tried": 0,
    "two_mutexes": 8,
    "readers_that_store": 8,
    "spin_lock": 0,
    "semaphore": 0,
    "semaphore_of_two": 8,
    "semaphore_as_a_lock": 0,
    "barrier": 0,
    "condition": 0,
    "last_reference": 0,
    "flag": 0,
    "only_once": 0,
    "persistent_mutex": 0,
    "made": 0,
    "made_and_not_waited_for": 8,
}


@pytest.mark.parametrize("mode", RACES)
def test_races_are_found_and_nothing_else_is(proven, mode):
    report = proven("races", mode, tx=None)
    assert report["racing_bytes"] == RACES[mode], report["first_races"]
    assert (report["races"] > 0) == bool(report["first_races"]) == bool(RACES[mode])


# What semaphores and readers' locks do not order seems to be ordered by what they consist of.
@pytest.mark.parametrize("mode", sorted(RACES.keys() - {"readers_that_store", "semaphore_of_two"}))
def test_programs_without_symbols_synchronise_by_atomics(proven, without_symbols, mode):
    report = proven("races", mode, tx=None, of=without_symbols)
    assert report["racing_bytes"] == RACES[mode], report["first_races"]


@pytest.fixture(scope="module")
def without_symbols(tmp_path_factory):
    path = tmp_path_factory.mktemp("stripped") / "races"
    done = compile_program("races", path, "-static", "-s")
    if done.returncode != 0 and not IS_REQUIRED:
        pytest.skip("there are no libraries to link statically")
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize("mode", THREADS)
def test_what_locks_and_other_means_order_does_not_race(proven, mode):
    report = proven("threads", mode)
    assert report["races"] == 0, report["first_races"]


def test_both_places_of_a_race_are_told(command):
    report = json.loads(command("races", "two_stores", "--tx", TX).stdout)["report"]
    [race] = report["first_races"]
    place = {"region": 0, "offset": 8, "bytes": 8, "transaction": 0, "access": "store"}
    threads = [race[which].pop("thread") for which in ("earlier", "later")]
    assert sorted(threads) == [0, 1]
    assert race == {"earlier": place, "later": place}
    said = " ".join(command("races", "two_stores", "--tx", TX, form=()).stdout.split())
    assert "1 loads and stores race with another thread's, on 8 B" in said
    assert "another run, or a replay under a design, may have them the other way round" in said
    assert "/pool: 8 B at 0x8 by thread" in said
    said = command("races", "made", "--tx", TX, form=()).stdout
    assert "race with" not in said
