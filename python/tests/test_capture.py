"""`graven capture`: small programs that do what is easy to miss, captured as they are.

Each capture must prove itself: its stores give the files as they are at the end, and each load has
found what the trace has there.
"""

import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ENVIRONMENT

from graven.capture import HEADER, KNOWN, ConfigError, Request, Transactions

PROGRAMS = Path(__file__).parent / "programs"
TX = "tx_begin:tx_commit:tx_abort"
IS_REQUIRED = os.environ.get("GRAVEN_CAPTURE") == "required"


def _missing():
    """What captures need and this machine does not have."""
    if platform.machine() != "x86_64":
        return "captures are tested on x86-64"
    names = {"qemu-x86_64": "package qemu-user", "cc": "a C compiler"}
    absent = [f"{name} ({of})" for name, of in names.items() if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else None


@pytest.fixture(scope="module", autouse=True)
def tools():
    reason = _missing()
    if reason is not None and IS_REQUIRED:
        pytest.fail(reason)
    if reason is not None:
        pytest.skip(reason)


def _compile(source, program, *flags):
    include = f"-I{HEADER.parent}"
    command = ["cc", "-O1", "-pthread", include, "-o", program, PROGRAMS / f"{source}.c", *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """Gives the program of a source, compiled when it is first asked for."""
    folder = tmp_path_factory.mktemp("programs")

    def program(name, *flags):
        path = folder / name
        if not path.exists():
            done = _compile(name, path, *flags)
            assert done.returncode == 0, done.stderr
        return path

    return program


# Captures as it is told, one document a line, and runs the traces.
SERVICE = """
import json, sys
import graven
from graven.capture import CaptureError, Transactions, capture
for line in sys.stdin:
    job = json.loads(line)
    transactions = [t if isinstance(t, str) else Transactions(**t) for t in job.pop("transactions")]
    designs = job.pop("designs")
    try:
        document = capture(**job, transactions=transactions).to_dict()
        document["runs"] = {
            design: graven.replay(job["trace"], design, machine="silo").stats
            for design in designs
        }
    except CaptureError as error:
        document = {"refused": str(error)}
    except Exception as error:
        document = {"failed": repr(error)}
    print(json.dumps(document), flush=True)
"""


@pytest.fixture(scope="session")
def service(real_engine):  # noqa: ARG001
    """Another process, which has the real engine."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", SERVICE]
    with subprocess.Popen(command, env=ENVIRONMENT, **streams) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def captured(service, programs, tmp_path):
    """Captures a mode of a program; gives what came of it, also under `designs`."""

    def call(name, mode, *, tx=TX, of=None, designs=(), also=(), **more):
        job = {
            "arguments": [str(of or programs(name)), str(tmp_path / "pool"), mode],
            "trace": str(tmp_path / "x.gvt"),
            "pm_files": ["*/pool", *also],
            "transactions": [] if tx is None else [tx],
            "designs": designs,
            **more,
        }
        service.stdin.write(json.dumps(job) + "\n")
        service.stdin.flush()
        document = json.loads(service.stdout.readline())
        assert "failed" not in document, document["failed"]
        return document

    return call


@pytest.fixture
def proven(captured):
    """The report of a program that comes to its end, and that everything in it is explained."""

    def call(*arguments, **more):
        document = captured(*arguments, **more)
        assert document["exit_code"] == 0
        report = _proven(document)
        for stats in document["runs"].values():
            assert stats["committed_transactions"] == report["transactions"]
        return report

    return call


def _proven(document):
    report = document["report"]
    assert report["bytes_compared"] > 0
    assert report["bytes_unexplained"] == 0, report["unexplained"]
    assert report["loads_unexplained"] == 0, report["loads_astray"]
    assert document["explained"]
    return report


# Words that each program stores, where that does not depend on how a compiler or QEMU divides them.
INSTRUCTIONS = {
    "sse": None,
    "avx": None,
    "masked": 10,
    "gathered": 68,
    "fields": 100,
    "unaligned": None,
    "x87": None,
    "strings": None,
    "streaming": 19,
    "streaming_avx": 16,
    "atomics": None,
    "structures": 27,
    "copies": None,
    "flushes": 5,
}


@pytest.mark.parametrize("mode", INSTRUCTIONS)
def test_instructions_of_all_kinds_are_seen(proven, mode):
    report = proven("instructions", mode)
    assert (report["transactions"], report["transactions_of_several"]) == (1, 1)
    assert report["words_stored_outside"] == 0
    words = INSTRUCTIONS[mode]
    assert report["words_stored"] == words if words else report["words_stored"] > 8


@pytest.mark.parametrize(("mode", "words"), [("streaming", 19), ("streaming_avx", 16)])
def test_non_temporal_stores_stay_what_they_are(captured, mode, words):
    document = captured("instructions", mode, designs=["morlog-slde"])
    _proven(document)
    # Other designs take them as they take any store, and do not count them.
    assert document["runs"]["morlog-slde"]["non_temporal_stores"] == words


def test_flushes_and_fences_are_counted_and_left_out(captured):
    counts = captured("instructions", "flushes")["counts"]
    assert (counts["flushes"], counts["fences"], counts["syncs"]) == (7, 6, 0)


@pytest.fixture
def command(real, programs, tmp_path):
    """The command itself, on a mode of a program."""

    def call(name, mode, *options, form=("--format", "json"), code=0):
        program = (str(programs(name)), str(tmp_path / "pool"), mode)
        where = ("--to", "x.gvt", "--pm-file", "*/pool")
        done = real("capture", *where, *options, *form, "--", *program)
        assert done.returncode == code, done.stderr
        return done

    return call


def test_the_command_makes_a_trace_that_runs_under_designs(command, real):
    done = command("transactions", "ten", "--tx", TX)
    assert "wrote x.gvt" in done.stderr
    assert _proven(json.loads(done.stdout))["transactions"] == 10
    for design in ("silo", "fwb"):
        more = ("--design", design, "--machine", "silo", "--format", "json")
        for what in (("trace", "replay", "x.gvt"), ("run", "--workload", "x.gvt")):
            done = real(*what, *more)
            assert done.returncode == 0, done.stderr
            [found] = json.loads(done.stdout)
            assert found["stats"]["committed_transactions"] == 10


def test_the_command_says_what_is_explained(command):
    said = command("transactions", "ten", "--tx", TX, form=()).stdout
    assert "the stores give the files as they are at the end: 262,144 B, all equal" in said
    assert "each of 0 loads found what the trace has there" in said
    said = command("kernel", "forks", form=(), code=1).stdout
    assert "1 of 262,144 B at the end are explained by no store" in said
    assert "/pool: 8 B at 0x320" in said
    assert "1 processes were made, of which nothing is known" in said
    command("kernel", "forks", "--unexplained", "0.01")


def test_transactions_within_others_are_part_of_them(proven):
    report = proven("transactions", "nested")
    assert (report["transactions"], report["transactions_of_several"]) == (3, 3)
    assert report["stores"] == 19


def test_aborted_transactions_are_told(proven):
    report = proven("transactions", "aborted")
    assert (report["transactions"], report["aborted"], report["words_stored"]) == (3, 1, 6)


def test_a_jump_out_of_a_transaction_leaves_it_open_until_it_is_aborted(proven):
    report = proven("transactions", "jump")
    assert (report["transactions"], report["aborted"], report["unfinished"]) == (6, 3, 0)
    assert report["words_stored_outside"] == 0


def test_a_jump_out_of_the_end_of_a_transaction_ends_it(proven):
    report = proven("transactions", "jump_out_of_the_end", tx="tx_begin:tx_end")
    assert (report["transactions"], report["unfinished"]) == (4, 0)
    assert report["words_stored_outside"] == 0


def test_handlers_of_signals_store_on_any_stack(proven):
    report = proven("transactions", "signals")
    assert (report["transactions"], report["stores"]) == (6, 24)


def test_a_transaction_may_not_be_over_at_the_end(proven):
    report = proven("transactions", "unfinished")
    assert (report["transactions"], report["unfinished"]) == (2, 1)


def test_functions_that_no_library_knows_begin_transactions(proven):
    report = proven("transactions", "of_its_own", tx="own_begin:own_commit")
    assert (report["transactions"], report["words_stored"]) == (4, 8)


def test_code_a_page_away_from_a_function_is_not_the_function(proven):
    report = proven("transactions", "much_code")
    assert (report["transactions"], report["transactions_without_stores"]) == (20, 0)


def test_static_programs_are_captured(proven, tmp_path):
    path = tmp_path / "static"
    done = _compile("transactions", path, "-static")
    if done.returncode != 0 and not IS_REQUIRED:
        pytest.skip("there are no libraries to link statically")
    assert done.returncode == 0, done.stderr
    report = proven("transactions", "ten", of=path)
    assert (report["transactions"], report["words_stored"]) == (10, 20)
    report = proven("transactions", "much_code", of=path)
    assert (report["transactions"], report["transactions_without_stores"]) == (20, 0)


def test_a_beginning_that_fails_begins_nothing(proven):
    tx = {"begin": "tx_begin", "commit": "tx_commit", "begin_returns_zero": True}
    report = proven("transactions", "failing", tx=tx)
    assert report["transactions"] - report["transactions_without_stores"] == 2
    assert (report["transactions_of_several"], report["unfinished"]) == (2, 0)
    assert report["words_stored_outside"] == 0


@pytest.mark.parametrize(
    ("left_out", "words", "out"),
    [([], 30, 0), (["add_to_log"], 10, 30), (["log_both", "add_to_log"], 10, 30)],
)
def test_functions_are_left_out(captured, left_out, words, out):
    document = captured("transactions", "logged", leave_out=left_out, designs=["silo"])
    report = _proven(document)
    assert (report["transactions"], report["loads"], report["stores"]) == (5, 15, 30)
    assert (report["words_stored"], report["words_left_out"]) == (words, out)
    assert document["runs"]["silo"]["transactional_stores"] == words
    instructions = document["runs"]["silo"]["instructions"]
    whole = captured("transactions", "logged", designs=["silo"])["runs"]["silo"]["instructions"]
    assert (instructions < whole) == bool(left_out)


def test_what_is_left_out_must_be_there(real, programs, tmp_path):
    program = (programs("transactions"), tmp_path / "pool", "ten")
    files = ("--pm-file", "*/pool")
    said = _refused(real, *files, "--leave-out", "no_log", program=program)
    assert "no symbols of the program and its libraries have no_log" in said
    said = _refused(real, *files, "--without-persistence", "--like", "lmdb", program=program)
    assert "no functions are known that only log, of lmdb; known: pmemobj" in said


def test_a_part_of_a_program_is_traced(proven, command):
    report = proven("transactions", "ten", skip=3, transactions_max=4, designs=["silo"])
    assert (report["skipped"], report["transactions"], report["words_stored"]) == (3, 4, 8)
    assert report["stores"] == 20
    done = command("transactions", "ten", "--tx", TX, "--skip", "3", "--limit", "4")
    assert json.loads(done.stdout)["report"] == report


@pytest.mark.parametrize(("mode", "skipped"), [("ten", 10), ("nested", 3), ("nested", 9)])
def test_a_part_that_has_no_transaction_is_refused(captured, mode, skipped):
    said = captured("transactions", mode, skip=skipped)["refused"]
    assert f"of which {skipped} are skipped: there is none to trace" in said


def test_a_program_that_is_killed_leaves_a_trace_of_what_it_did(captured):
    document = captured("transactions", "killed", designs=["silo"])
    assert document["exit_code"] == -signal.SIGKILL
    assert document["counts"] == {}
    report = _proven(document)
    assert (report["transactions"], report["unfinished"], report["words_stored"]) == (11, 1, 21)
    assert document["runs"]["silo"]["committed_transactions"] == 11


def test_an_interrupt_ends_the_program_and_leaves_a_trace(real, programs, tmp_path):
    program = (programs("transactions"), tmp_path / "pool", "waits")
    command = [
        *(sys.executable, "-m", "graven", "capture", "--to", "x.gvt", "--pm-file", "*/pool"),
        *("--tx", TX, "--format", "json", "--", *map(str, program)),
    ]
    streams = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
        "stdin": subprocess.DEVNULL,
    }
    with subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, **streams) as process:
        assert process.stderr.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    document = json.loads(out)
    assert document["exit_code"] == -signal.SIGINT
    report = _proven(document)
    assert (report["transactions"], report["unfinished"]) == (11, 1)
    done = real("trace", "replay", "x.gvt", "--design", "silo", "--machine", "silo")
    assert done.returncode == 0, done.stderr


# Bytes that the kernel writes for each program.
KERNEL = {
    "reads": 5000 + 3000 + 610 + 90,
    "writes": 5000 + 5 + 3000 + 2 * 710,
    "results": 16 + 16 + 100,
    "pipes": 14,
    "moves": 0,
    "twice": 0,
}


@pytest.mark.parametrize("mode", KERNEL)
def test_what_system_calls_do_to_mappings_is_followed(proven, mode):
    report = proven("kernel", mode, tx=None)
    assert report["kernel_bytes"] == KERNEL[mode]
    assert report["words_stored"] > 0


def test_a_file_that_has_lost_its_name_is_another_than_the_next_of_that_name(proven):
    report = proven("kernel", "unlinked", tx=None)
    assert (report["stores"], len(report["regions"])) == (4, 2)


def test_mappings_that_are_not_shared_are_no_persistent_memory(proven):
    assert proven("kernel", "private", tx=None)["stores"] == 2


def test_what_a_child_does_is_not_known_and_told(captured):
    document = captured("kernel", "forks", also=["*/also"], tx=None)
    report = document["report"]
    assert (document["exit_code"], report["forks"], report["all_threads"]) == (0, 1, 4)
    assert len(document["files"]) == 1
    assert (report["loads_unexplained"], report["bytes_unexplained"]) == (0, 1)
    [place] = report["unexplained"]
    assert (place["offset"], place["thread"]) == (800, None)


@pytest.mark.parametrize(
    ("mode", "forks", "stores"), [("fork_is_late", 1, 2001), ("spawns", 2, 502)]
)
def test_children_do_not_touch_the_trace(proven, mode, forks, stores):
    report = proven("kernel", mode, tx=None)
    assert (report["forks"], report["replaced"]) == (forks, 0)
    assert (report["stores"], report["all_threads"]) == (stores, 1)


def test_a_program_that_becomes_another_is_told(proven):
    report = proven("kernel", "replaces", tx=None)
    assert (report["replaced"], report["stores"]) == (1, 2)


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
    done = _compile("races", path, "-static", "-s")
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


def test_scripts_are_captured_as_what_interprets_them(proven, tmp_path):
    script = tmp_path / "script"
    script.write_text(
        f"#!{sys.executable}"
        """
import mmap, sys
with open(sys.argv[1], "w+b") as file:
    file.truncate(8192)
    with mmap.mmap(file.fileno(), 8192) as pool:
        pool[5:5005] = bytes(i % 251 for i in range(5000))
        pool.seek(6000)
        pool.write(pool[100:200] + sys.argv[2].encode())
        pool[0] = 7
"""
    )
    script.chmod(0o755)
    report = proven("script", "text", tx=None, of=script)
    assert report["words_stored"] >= 5000 / 8
    assert (tmp_path / "pool").read_bytes()[6100:6104] == b"text"


def _refused(real, *arguments, program):
    done = real("capture", "--to", "x.gvt", *arguments, "--", *map(str, program))
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    return done.stderr


def test_what_is_no_program_is_refused(real, tmp_path):
    text = tmp_path / "text"
    text.write_text("neither this nor that\n")
    files = ("--pm-file", "*/pool")
    assert "there is no such program, or it is not executable" in _refused(
        real, *files, program=[tmp_path / "nothing"]
    )
    assert "or it is not executable" in _refused(real, *files, program=[text])
    text.chmod(0o755)
    assert "neither an executable (ELF) nor a script" in _refused(real, *files, program=[text])
    text.write_bytes(b"\x7fELF\x02\x01\x01".ljust(18, b"\0") + b"\xb7\0".ljust(100, b"\0"))
    assert "is no program for x86-64" in _refused(real, *files, program=[text])
    text.write_text("#!\n")
    assert "a script that names no interpreter" in _refused(real, *files, program=[text])
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_captures_that_cannot_give_a_trace_are_refused(real, programs, tmp_path):
    program = (programs("transactions"), tmp_path / "pool", "ten")
    said = _refused(real, "--pm-file", "*/poll", program=program)
    assert "mapped no file, shared, whose path fits */poll" in said
    files = ("--pm-file", "*/pool")
    for wrong in ("a:b:c:d", "1st:last", "begin:"):
        said = _refused(real, *files, "--tx", wrong, program=program)
        assert f"{wrong} is no transaction" in said
    said = _refused(real, *files, "--tx", "tx_begins:tx_commits", program=program)
    assert "no symbols of the program and its libraries have tx_begins, tx_commits" in said
    said = _refused(real, *files, "--tx", TX, program=(*program[:2], "nothing"))
    assert "no thread of the program touched persistent memory" in said
    assert [path.name for path in tmp_path.iterdir()] == ["pool"]


def test_functions_that_are_not_needed_may_be_missing(captured):
    document = captured("transactions", "ten", tx="tx_begin:tx_commit:tx_undo")
    assert document["missing"] == ["tx_undo"]
    assert _proven(document)["transactions"] == 10


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
    report = _proven(document)
    names = ("skipped", "transactions", "words_stored", "words_stored_outside")
    assert tuple(report[name] for name in names) == REGIONS[mode, begin, end]


def test_transactions_are_skipped_and_counted_from_the_beginning_of_the_region(command, real):
    region = ("--from", "work", "--until", "rest", "--skip", "1", "--limit", "1")
    done = command("regions", "plain", "--tx", TX, *region)
    report = _proven(json.loads(done.stdout))
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
        return _refused(real, "--pm-file", "*/pool", *options, program=program)

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
    refused = real("capture", "--recipe", "lmdb-insert", "--from", "main")
    assert "--recipe says all but" in refused.stderr


def test_a_function_may_have_several_roles():
    transactions = (Transactions("pthread_mutex_lock", "pthread_mutex_unlock"),)
    request = Request(("x",), ("*",), transactions, from_function="pthread_mutex_lock")
    assert request.roles()["pthread_mutex_lock"] == ["begin", "from", "lock"]
    with pytest.raises(ConfigError, match="two meanings"):
        Request(("x",), ("*",), (Transactions("a", "b"), Transactions("b", "c"))).roles()


@pytest.mark.parametrize("name", KNOWN)
def test_presets_say_what_their_transactions_are(real, name):
    about = " ".join(KNOWN[name].about.split())
    assert (
        f"| `{name}` | {about}" in Path(__file__).parents[2].joinpath("docs/capture.md").read_text()
    )
    shown = "".join(real("capture", "--help").stdout.split())
    assert f"{name}:{about}.".replace(" ", "") in shown


def _needs(path, package):
    if not path:
        assert not IS_REQUIRED, f"{package} is not installed"
        pytest.skip(f"{package} is not installed")


# Steps of SQLite's statements that store something: the first is an insert.
STATEMENTS = {
    "alone": 11,
    # BEGIN to COMMIT: pages are written by the step that commits.
    "several": 2,
    "unspilled": 2,
}


def _of_sqlite(captured, programs, mode, **more):
    _needs(Path("/usr/include/sqlite3.h").exists(), "libsqlite3-dev")
    program = programs("sqlite", "-lsqlite3")
    return _proven(captured("sqlite", mode, tx=None, like="sqlite", of=program, **more))


@pytest.mark.parametrize("mode", STATEMENTS)
def test_steps_of_sqlite_that_commit_store_everything(captured, programs, mode):
    report = _of_sqlite(captured, programs, mode)
    stored = report["transactions"] - report["transactions_without_stores"]
    assert stored == report["transactions_of_several"] == STATEMENTS[mode]
    alone = _of_sqlite(captured, programs, "alone")
    assert report["words_stored_outside"] == alone["words_stored_outside"]


def test_what_sqlite_commits_elsewhere_is_told_in_the_documentation(captured, programs):
    # A cache that is too small is written before; a statement that is reset commits then.
    spilled = _of_sqlite(captured, programs, "spilled")
    assert spilled["transactions"] - spilled["transactions_without_stores"] > 2
    alone = _of_sqlite(captured, programs, "alone")
    reset = _of_sqlite(captured, programs, "reset")
    assert reset["words_stored_outside"] > alone["words_stored_outside"]


# The commands between MULTI and EXEC are part of EXEC, those of a script part of it.
COMMANDS = (
    *("SET a 1", "MULTI", "SET a 2", "INCR a", "EXEC", "GET a"),
    "EVAL \"redis.call('set','x',1); redis.call('set','y',2)\" 0",
)


def test_commands_of_redis_are_transactions(real_engine, tmp_path):  # noqa: ARG001
    server = shutil.which("redis-server")
    _needs(server, "redis-server")
    command = [
        *(sys.executable, "-m", "graven", "capture", "--to", "x.gvt", "--pm-heap"),
        *("--like", "redis", "--format", "json", "--", server),
        *("--port", "0", "--unixsocket", tmp_path / "socket", "--save", "", "--dir", tmp_path),
    ]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(
        list(map(str, command)), cwd=tmp_path, env=ENVIRONMENT, **output
    ) as process:
        _ask_redis(process, tmp_path / "socket", COMMANDS)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    report = json.loads(out)["report"]
    # SHUTDOWN is the last, and does not return.
    assert (report["transactions"], report["unfinished"]) == (6, 1)


def _ask_redis(process, path, commands):
    """Sends commands to a server, once it is there, and ends it."""
    ends = time.monotonic() + 60
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        while True:
            try:
                connection.connect(str(path))
                break
            except OSError:
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < ends, "the server is not there"
                time.sleep(0.05)
        for command in commands:
            connection.sendall(f"{command}\r\n".encode())
            assert connection.recv(1 << 16)[:1] in b"+:$*"
        connection.sendall(b"SHUTDOWN NOSAVE\r\n")


HEADERS = {"lmdb-insert": "lmdb.h", "sqlite-update": "sqlite3.h", "pmdk-btree": "libpmemobj.h"}
"""Recipes of each library, and what it installs."""


@pytest.mark.parametrize("recipe", HEADERS)
def test_a_real_program_is_built_captured_compared_and_crashed(real, recipe):
    if not Path("/usr/include", HEADERS[recipe]).exists():
        assert not IS_REQUIRED, f"{HEADERS[recipe]} is not installed"
        pytest.skip(f"{HEADERS[recipe]} is not installed")
    done = real("capture", "--recipe", recipe, "--limit", "20", "--format", "json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["report"]
    assert report["transactions"] == report["transactions_of_several"] == 20
    assert report["loads_unexplained"] == report["bytes_unexplained"] == 0
    trace = f"{recipe}.gvt"
    designs = "base,fwb,silo,hoop,lalea"
    settings = ("--set", "base.log_bytes_per_thread=4 MB")
    compared = real("compare", "--workloads", trace, "--designs", designs, *settings, "--no-report")
    assert compared.returncode == 0, compared.stderr
    assert recipe in compared.stdout
    sample = ("--sample", "32", "--failure-modes", "none", "--lives", "0")
    crashed = real("crash", "--workload", trace, "--design", "silo,osp", *sample)
    assert crashed.returncode == 0, crashed.stderr
    assert crashed.stdout.count("kept") >= 2


def test_a_program_that_stores_outside_transactions_is_judged(captured, real, tmp_path):
    report = _proven(captured("transactions", "between"))
    assert (report["transactions"], report["words_stored_outside"]) == (11, 210)
    where = ("crash", "--workload", str(tmp_path / "x.gvt"), "--machine", "cramped")
    set_log = ("--set", "base.log_bytes_per_thread=4 KB")
    kept = real(*where, "--design", "base,fwb,lad", *set_log)
    assert kept.returncode == 0, kept.stdout + kept.stderr
    assert kept.stdout.count("30 words were stored to outside transactions") == 3
    mutated = ("--design", "base", *set_log, "--mutant", "flush-not-awaited")
    assert "VIOLATED" in real(*where, *mutated).stdout
    refused = real(*where, "--design", "hoop")
    assert refused.returncode == 2
    assert "outside transactions" in refused.stdout


def test_a_violation_beside_stores_outside_becomes_a_program(captured, real, tmp_path):
    _proven(captured("transactions", "again"))
    violated = real("crash", "--workload", str(tmp_path / "x.gvt"), "--design", "silo")
    assert violated.returncode == 1, violated.stdout + violated.stderr
    [replay] = (tmp_path / "graven-results").iterdir()
    steps = [line.strip() for line in replay.read_text().splitlines() if "w200000" in line]
    assert "outside w200000 = 5" in steps
    assert "w200000 = 5" in steps
    again = real("litmus", str(replay))
    assert again.returncode == 1
    assert "w200000: 0x0 -> 0x5, outside" in again.stdout


def test_a_program_without_transactions_is_held_to_what_it_has_stored(captured, real, tmp_path):
    _proven(captured("transactions", "ten", tx=None))
    kept = real("crash", "--workload", str(tmp_path / "x.gvt"), "--design", "silo,fwb")
    assert kept.returncode == 0, kept.stdout + kept.stderr
    assert kept.stdout.count("20 words were stored to outside transactions") == 2


@pytest.mark.parametrize(
    ("recipe", "needed"), [("redis-set", "redis-benchmark"), ("python-sqlite", "/usr/bin/python3")]
)
def test_programs_whose_heap_is_persistent_are_captured_and_crashed(real, recipe, needed):
    _needs(shutil.which(needed), needed)
    done = real("capture", "--recipe", recipe, "--limit", "10", "--format", "json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["files"] == ["(memory)"]
    report = document["report"]
    assert report["transactions"] == report["transactions_of_several"] == 10
    assert report["words_stored_outside"] > 0
    assert report["loads_unexplained"] == report["bytes_unexplained"] == 0
    # What is stored outside transactions is allowed to be lost; what transactions store is not.
    sample = ("--sample", "16", "--failure-modes", "none", "--lives", "0", "--format", "json")
    crashed = real("crash", "--workload", f"{recipe}.gvt", "--design", "fwb,osp,hoop", *sample)
    reports = {r["design"]: r for r in json.loads(crashed.stdout)}
    for design in ("fwb", "osp"):
        assert not reports[design]["violations"]
        assert reports[design]["recoveries"] > 8
        assert reports[design]["words_stored_outside"] > 0
    assert "outside transactions" in reports["hoop"]["refusal"]


@pytest.mark.long
def test_a_store_in_rust_is_built_and_captured(real):
    done = real("capture", "--recipe", "redb-insert", "--limit", "20", "--format", "json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["report"]
    assert report["transactions"] == report["transactions_of_several"] == 20
    assert report["loads_unexplained"] == report["bytes_unexplained"] == 0


# What a program that serves does, what asks it, and what is said of it.
SERVERS = {
    "exit 3": ([], "the program has ended before it listened"),
    "exec python3 -c 'import socket, sys, time; s = socket.socket(socket.AF_UNIX); "
    "s.bind(sys.argv[1]); s.listen(); time.sleep(60)' $1": (
        [["false"]],
        "false ended with exit code 1",
    ),
}


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_that_fails_or_is_asked_in_vain_is_told(real_engine, tmp_path, server):  # noqa: ARG001
    clients, said = SERVERS[server]
    script = f"""
from pathlib import Path
from graven.capture import CaptureError, Persistent, Request, Served, run
place = Path({str(tmp_path)!r})
served = Served(place / "socket", {tuple(map(tuple, clients))!r})
command = ("sh", "-c", {server!r}, "sh", str(served.socket))
try:
    run(Request(command, Persistent(heap=True), served=served), place / "x.gvt")
except CaptureError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert said in done.stdout, done.stdout + done.stderr
    assert not (tmp_path / "x.gvt").exists()


def test_recovered_files_are_held_against_a_checker_of_the_user(real):
    done = real("capture", "--recipe", "lmdb-update", "--limit", "5", "--format", "json")
    if "apt install" in done.stderr:
        pytest.skip(done.stderr)
    sizes = "test $(stat -c %s {image}) = 67108864 && test -s {folder}/data.mdb"
    trace = ("crash", "--workload", "lmdb-update.gvt", "--design", "silo", "--lives", "0")
    modes = ("--sample", "16", "--failure-modes", "structures=20", "--format", "json")
    kept = real(*trace, *modes, "--verify", sizes)
    assert kept.returncode == 0, kept.stdout + kept.stderr
    [report] = json.loads(kept.stdout)
    assert report["failure_modes"]["structures"] > 5
    violated = real(*trace, *modes, "--verify", "echo no good; exit 3")
    assert violated.returncode == 1
    [report] = json.loads(violated.stdout)
    assert "exit status: 3: no good" in report["violations"][0]["what"]
    refused = real("crash", "--workload", "btree", "--design", "silo", "--verify", "true")
    assert refused.returncode == 2
    assert "btree has no files to verify" in refused.stderr


def test_a_recipe_is_told_nothing_else_and_one_that_is_none_is_refused(real):
    done = real("capture", "--recipe", "lmdb-insert", "--skip", "3")
    assert done.returncode == 2
    assert "--recipe says all but" in done.stderr
    done = real("capture", "--recipe", "nobody")
    assert done.returncode == 2
    assert "lmdb-insert" in done.stderr


def test_a_trace_has_threads_of_its_own(real):
    done = real("capture", "--recipe", "lmdb-insert", "--limit", "2")
    if "apt install" in done.stderr:
        pytest.skip(done.stderr)
    refused = real("run", "--workload", "lmdb-insert.gvt", "--design", "silo", "--threads", "2")
    assert refused.returncode == 2
    assert "threads: 2 is not allowed with lmdb-insert.gvt" in refused.stderr
