"""`graven capture`: what a transaction is by locks and markers, and which part is traced."""

import json
import subprocess
from pathlib import Path

import pytest
from capturing import TX, explained, refused

from graven._engine import ConfigError
from graven.capture import HEADER, KNOWN, Request, Transactions

pytestmark = pytest.mark.usefixtures("tools")

# Critical sections of each program, those that store several words, those that are not over, words
# stored, and of them those that are outside.
SECTIONS = {
    "mutexes": (400, 400, 0, 800, 0),
    "within": (10, 10, 0, 30, 0),
    "recursive": (10, 10, 0, 20, 0),
    "hand_over_hand": (100, 100, 0, 500, 0),
    "attempts": (2, 0, 0, 3, 1),
    "one_wait": (2, 0, 0, 2, 0),
    "ends_with_a_lock": (2, 0, 1, 2, 0),
    "other_locks": (10, 0, 0, 14, 4),
}


@pytest.mark.parametrize("mode", SECTIONS)
def test_critical_sections_are_transactions(proven, mode):
    # Those of readers are none, and what they store is outside.
    designs = [] if SECTIONS[mode][4] else ["silo"]
    report = proven("sections", mode, tx=None, critical_sections=True, designs=designs)
    names = ("transactions", "transactions_of_several", "unfinished")
    names = (*names, "words_stored", "words_stored_outside")
    assert tuple(report[name] for name in names) == SECTIONS[mode]


def test_locks_in_a_circle_do_not_wait_for_each_other_when_the_trace_runs(proven):
    report = proven("sections", "circle", tx=None, critical_sections=True, designs=["silo", "fwb"])
    assert (report["transactions"], report["words_stored"]) == (800, 2400)
    assert report["locks_merged"] == 4


def test_a_wait_ends_a_critical_section_and_begins_another(proven):
    report = proven("sections", "waits", tx=None, critical_sections=True, designs=["silo"])
    # In one transaction or in two, as the thread has waited or not; none is without stores.
    assert report["transactions"] + report["transactions_of_several"] == 200
    assert (report["words_stored"], report["words_stored_outside"]) == (200, 0)


def test_critical_sections_of_other_memory_are_none_and_told(proven, command):
    report = proven("sections", "within", tx=None, critical_sections=True)
    assert report["sections_untouched"] >= 10
    assert report["transactions_without_stores"] == 0
    said = command(
        "sections", "within", "--tx-locks", "--skip", "2", "--limit", "3", form=()
    ).stdout
    lines = [line.strip() for line in said.splitlines()]
    rows = dict(line.rsplit(None, 1) for line in lines if line[-1:].isdigit())
    found = {name.strip(): count for name, count in rows.items()}
    assert (found["transactions"], found["before the trace begins"]) == ("3", "2")
    left_out = int(found["critical sections without persistent memory, left out"])
    assert left_out == report["sections_untouched"]


# Transactions by markers of each program, those that were aborted, words stored.
MARKERS = {
    "ten": (10, 0, 20),
    "aborted": (3, 1, 6),
    "nested": (3, 0, 9),
    "threads": (150, 0, 300),
    "harmless": (1000, 0, 1000),
}


@pytest.mark.parametrize("mode", MARKERS)
def test_markers_are_transactions(proven, mode):
    report = proven("markers", mode, tx=None, designs=["silo"])
    names = ("transactions", "aborted", "words_stored")
    assert tuple(report[name] for name in names) == MARKERS[mode]
    assert (report["words_stored_outside"], report["unfinished"]) == (0, 0)


@pytest.mark.parametrize("more", [{}, {"tx": None, "critical_sections": True}])
def test_markers_go_with_whatever_else_is_a_transaction(proven, more):
    report = proven("markers", "locked" if more else "mixed", **more)
    assert (report["transactions"], report["words_stored"]) == (2, 5)
    assert report["words_stored_outside"] == 0


def test_markers_are_a_region(proven):
    report = proven("markers", "region", tx=None)
    assert (report["skipped"], report["transactions"], report["words_stored"]) == (10, 3, 8)
    report = proven("markers", "region", tx=None, skip=1, transactions_max=1)
    assert (report["skipped"], report["transactions"], report["words_stored"]) == (11, 1, 2)


def test_markers_name_persistent_memory(proven):
    report = proven("markers", "ranges", tx=None, pm_files=[], designs=["silo"])
    # Of the table words 1 to 512, later without the fifth; of the page its first line, twice.
    assert (report["transactions"], report["loads"], report["stores"]) == (13, 13, 12)
    assert report["words_stored_outside"] == 2


@pytest.mark.parametrize("mode", MARKERS)
def test_markers_do_nothing_natively(programs, tmp_path, mode):
    done = subprocess.run([programs("markers"), tmp_path / "pool", mode], check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("options", [["-std=c89"], ["-O2"], ["-O2", "-masm=intel"], ["-m32"]])
def test_the_header_compiles_everywhere(real, tmp_path, language, options):
    path = real("capture", "--include-path").stdout.strip()
    assert Path(path, "graven.h") == HEADER
    source = (
        "#include <graven.h>\nint main(void) { graven_tx_begin(); graven_tx_commit(); return 0; }\n"
    )
    if language == "c++":
        options = ["-std=c++98" if option == "-std=c89" else option for option in options]
    strict = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-S", "-o", tmp_path / "x.s")
    command = ["cc", "-x", language, f"-I{path}", *options, *strict, "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if "cannot execute" in done.stderr:
        pytest.skip("there is no compiler of C++")
    assert done.returncode == 0, done.stderr


# Of each part of a program: transactions before it, in it, words stored, and of them those outside.
REGIONS = {
    ("plain", "work", "rest"): (3, 4, 11, 3),
    ("plain", "rest", None): (6, 5, 15, 5),
    ("plain", None, "rest"): (0, 7, 17, 3),
    ("plain", "work", "work"): (3, 2, 6, 2),
    ("again", "work", "work"): (3, 8, 24, 8),
    ("threads", "work", "rest"): (1, 3, 9, 3),
    ("ends_within", "work", "killed_in"): (0, 3, 8, 2),
}


@pytest.mark.parametrize(("mode", "begin", "end"), REGIONS)
def test_a_region_of_interest_is_traced(captured, mode, begin, end):
    document = captured("regions", mode, from_function=begin, until_function=end)
    report = explained(document)
    names = ("skipped", "transactions", "words_stored", "words_stored_outside")
    assert tuple(report[name] for name in names) == REGIONS[mode, begin, end]


def test_transactions_are_skipped_and_counted_from_the_beginning_of_the_region(command, real):
    region = ("--from", "work", "--until", "rest", "--skip", "1", "--limit", "1")
    done = command("regions", "plain", "--tx", TX, *region)
    report = explained(json.loads(done.stdout))
    assert (report["skipped"], report["transactions"], report["words_stored"]) == (4, 1, 3)
    info = json.loads(real("trace", "info", "x.gvt", "--format", "json").stdout)
    capture = info["header"]["capture"]
    assert (capture["from"], capture["until"]) == ("work", "rest")


def test_a_region_needs_no_transactions(proven):
    report = proven("regions", "plain", tx=None, from_function="work", until_function="work")
    assert (report["transactions"], report["words_stored"]) == (0, 6)


def test_parts_that_contradict_themselves_or_are_not_there_are_refused(real, programs, tmp_path):
    def said(*options):
        program = (programs("regions"), tmp_path / "pool", "plain")
        return refused(real, "--pm-file", "*/pool", *options, program=program)

    tx = ("--tx", TX)
    assert "--tx-locks goes with no --tx and no --like" in said("--tx-locks", *tx)
    assert "--tx-locks goes with no --tx and no --like" in said("--tx-locks", "--like", "redis")
    assert "tx_begin is given two meanings" in said(*tx, "--tx", "tx_begin")
    assert "work is given two meanings" in said("--tx", "work:work")
    assert "from: 1st is no function" in said("--from", "1st")
    assert "until: a:b is no function" in said("--until", "a:b")
    assert "have nobody" in said(*tx, "--from", "nobody")
    assert "have nobody" in said(*tx, "--until", "nobody")
    assert "never called unused, with which the trace was to begin" in said("--from", "unused")
    assert "never called unused after the trace had begun" in said(
        "--from", "work", "--until", "unused"
    )
    assert "has no transactions that could be counted" in said("--from", "work", "--skip", "2")
    assert "has no transactions that could be counted" in said("--limit", "2")
    assert "began no transaction in this part" in said("--tx", "unused", "--from", "work")
    done = real("capture", "--recipe", "lmdb-insert", "--from", "main")
    assert "--recipe says all but" in done.stderr


def test_a_function_may_have_several_roles():
    transactions = (Transactions("pthread_mutex_lock", "pthread_mutex_unlock"),)
    request = Request(("x",), transactions=transactions, from_function="pthread_mutex_lock")
    assert request.roles()["pthread_mutex_lock"] == ["begin", "from", "lock"]
    with pytest.raises(ConfigError, match="two meanings"):
        Request(("x",), transactions=(Transactions("a", "b"), Transactions("b", "c"))).roles()


@pytest.mark.parametrize("name", KNOWN)
def test_presets_say_what_their_transactions_are(real, name):
    about = " ".join(KNOWN[name].about.split())
    assert (
        f"| `{name}` | {about}"
        in Path(__file__).parents[2].joinpath("docs/guides/capture.md").read_text()
    )
    shown = "".join(real("capture", "--help").stdout.split())
    assert f"{name}:{about}.".replace(" ", "") in shown
