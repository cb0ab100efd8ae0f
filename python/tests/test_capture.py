"""`graven capture`: small programs that do what is easy to miss, captured as they are.

Each capture must prove itself: its stores give the files as they are at the end, and each load has
found what the trace has there.
"""

import json
import signal
import subprocess
import sys

import pytest
from capturing import IS_REQUIRED, TX, compile_program, explained, refused
from conftest import ENVIRONMENT

pytestmark = pytest.mark.usefixtures("tools")

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
    explained(document)
    # Other designs take them as they take any store, and do not count them.
    assert document["runs"]["morlog-slde"]["non_temporal_stores"] == words


def test_flushes_and_fences_are_counted_and_left_out(captured):
    counts = captured("instructions", "flushes")["counts"]
    assert (counts["flushes"], counts["fences"], counts["syncs"]) == (7, 6, 0)


def test_the_command_makes_a_trace_that_runs_under_designs(command, real):
    done = command("transactions", "ten", "--tx", TX)
    assert "wrote x.gvt" in done.stderr
    assert explained(json.loads(done.stdout))["transactions"] == 10
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
    done = compile_program("transactions", path, "-static")
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
    report = explained(document)
    assert (report["transactions"], report["loads"], report["stores"]) == (5, 15, 30)
    assert (report["words_stored"], report["words_left_out"]) == (words, out)
    assert document["runs"]["silo"]["transactional_stores"] == words
    instructions = document["runs"]["silo"]["instructions"]
    whole = captured("transactions", "logged", designs=["silo"])["runs"]["silo"]["instructions"]
    assert (instructions < whole) == bool(left_out)


def test_what_is_left_out_must_be_there(real, programs, tmp_path):
    program = (programs("transactions"), tmp_path / "pool", "ten")
    files = ("--pm-file", "*/pool")
    said = refused(real, *files, "--leave-out", "no_log", program=program)
    assert "no symbols of the program and its libraries have no_log" in said
    said = refused(real, *files, "--without-persistence", "--like", "lmdb", program=program)
    assert "no functions are known that only log, of lmdb; known: pmemobj" in said


def test_volatile_memory_goes_to_dram_or_is_instructions(captured):
    words = 5 * 8 * 512
    document = captured("transactions", "beside", designs=["silo", "base"])
    report = explained(document)
    # The table, which begins within a page, and the stack; what fills the table comes before.
    assert words <= report["volatile_loads"] <= words + 100
    assert report["volatile_stores"] <= 100
    assert 8 <= report["volatile_pages"] <= 12
    alone = captured("transactions", "beside", designs=["silo", "base"], only_pm=True)
    for name in ("volatile_loads", "volatile_stores", "volatile_pages"):
        assert explained(alone)[name] == 0
    assert report["words_stored"] == alone["report"]["words_stored"] == 5
    for design, with_dram in document["runs"].items():
        without = alone["runs"][design]
        assert with_dram["dram_reads"] - without["dram_reads"] >= 8 * 512 / 8, design
        assert with_dram["cycles"] > without["cycles"], design
        assert abs(with_dram["instructions"] - without["instructions"]) <= 10, design


@pytest.mark.parametrize("only_pm", [False, True])
def test_loads_wait_for_the_load_of_their_address(captured, only_pm):
    """Out of order, those that do not overlap."""
    runs = {}
    for mode in ("chase", "sweep"):
        document = captured(
            "transactions", mode, designs=["base"], machine="lalea", only_pm=only_pm
        )
        runs[mode] = (explained(document), document["runs"]["base"])
    lines = 4000
    (chased, chase), (swept, sweep) = runs["chase"], runs["sweep"]
    assert lines - 1 <= chased["addresses_loaded"] <= lines + 50
    # That of the map itself is loaded once, and not forgotten for a thousand loads.
    assert swept["addresses_loaded"] <= 1100
    assert chased["loads"] == swept["loads"] == lines
    assert chase["cycles"] > 2 * sweep["cycles"]


def test_the_command_says_whether_volatile_memory_is_in_the_trace(command, real):
    said = command("transactions", "beside", "--tx", TX, form=()).stdout
    assert "loads of words of volatile memory" in said
    info = json.loads(real("trace", "info", "x.gvt", "--properties", "--format", "json").stdout)
    assert info["properties"]["volatile_loads"] >= 5 * 8 * 512
    assert info["properties"]["stores"] == 5
    said = command("transactions", "beside", "--tx", TX, "--only-pm", form=()).stdout
    assert "instructions like others (--only-pm)" in said


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
    report = explained(document)
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
    report = explained(document)
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


def test_what_is_no_program_is_refused(real, tmp_path):
    text = tmp_path / "text"
    text.write_text("neither this nor that\n")
    files = ("--pm-file", "*/pool")
    assert "there is no such program, or it is not executable" in refused(
        real, *files, program=[tmp_path / "nothing"]
    )
    assert "or it is not executable" in refused(real, *files, program=[text])
    text.chmod(0o755)
    assert "neither an executable (ELF) nor a script" in refused(real, *files, program=[text])
    for machine, name in ((243, "RISC-V"), (999, "machine 999 of ELF")):
        header = b"\x7fELF\x02\x01\x01".ljust(18, b"\0") + machine.to_bytes(2, "little")
        text.write_bytes(header.ljust(100, b"\0"))
        said = refused(real, *files, program=[text])
        assert f"is a program for {name}; captured are programs for x86-64 and AArch64" in said
    header = b"\x7fELF\x01\x01\x01".ljust(18, b"\0") + b"\x03\0"
    text.write_bytes(header.ljust(100, b"\0"))
    assert "is a program for 32-bit i386" in refused(real, *files, program=[text])
    text.write_text("#!\n")
    assert "a script that names no interpreter" in refused(real, *files, program=[text])
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_captures_that_cannot_give_a_trace_are_refused(real, programs, tmp_path):
    program = (programs("transactions"), tmp_path / "pool", "ten")
    said = refused(real, "--pm-file", "*/poll", program=program)
    assert "mapped no file, shared, whose path fits */poll" in said
    files = ("--pm-file", "*/pool")
    for wrong in ("a:b:c:d", "1st:last", "begin:"):
        said = refused(real, *files, "--tx", wrong, program=program)
        assert f"{wrong} is no transaction" in said
    said = refused(real, *files, "--tx", "tx_begins:tx_commits", program=program)
    assert "no symbols of the program and its libraries have tx_begins, tx_commits" in said
    said = refused(real, *files, "--tx", TX, program=(*program[:2], "nothing"))
    assert "no thread of the program touched persistent memory" in said
    assert [path.name for path in tmp_path.iterdir()] == ["pool"]


def test_functions_that_are_not_needed_may_be_missing(captured):
    document = captured("transactions", "ten", tx="tx_begin:tx_commit:tx_undo")
    assert document["missing"] == ["tx_undo"]
    assert explained(document)["transactions"] == 10
