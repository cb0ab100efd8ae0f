"""`graven capture`: programs for AArch64, which do what those for x86-64 do.

They are compiled by a cross compiler. What the same sources give on x86-64 they must give here, but
for what instructions make different.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from capturing import ARM_CXX, PROGRAMS, TX, explained, refused
from conftest import PACKAGE
from test_capture import KERNEL
from test_capture_memory import HEAPS
from test_capture_parts import MARKERS, REGIONS, SECTIONS
from test_capture_threads import RACES, THREADS

from graven.capture import CaptureError
from graven.capture.guests import GUESTS, sysroot_of

pytestmark = pytest.mark.usefixtures("tools_for_arm")

# How atomic instructions come about: a library chooses, one instruction each, exclusive loads and
# stores in a loop.
CHOSEN = ()
AT_ONCE = ("-march=armv8.1-a",)
EXCLUSIVE = ("-march=armv8-a", "-mno-outline-atomics")
WAYS = [CHOSEN, AT_ONCE, EXCLUSIVE]


# Loads, stores, and words that they store, where that does not depend on how libraries do it.
INSTRUCTIONS = {
    "neon": (1, 23, 25),
    "interleaved": None,
    "fields": (160, 100, 100),
    "unaligned": (9, 25, 48),
    "pairs": (8, 20, 20),
    "streaming": (2, 18, 18),
    "exclusives": (11, 4, 5),
    "structures": None,
    "copies": None,
    "zeros": None,
    "blocks": (2, 6 * 512 // 64, 6 * 512 // 8),
    "zeros_at_the_end_of_a_page": None,
    "flushes": (0, 5, 5),
}


@pytest.mark.parametrize("mode", INSTRUCTIONS)
def test_instructions_of_all_kinds_are_seen(proven, for_arm, mode):
    report = proven("instructions_arm", mode, of=for_arm("instructions_arm"))
    assert (report["transactions"], report["transactions_of_several"]) == (1, 1)
    assert report["words_stored_outside"] == 0
    names = ("loads", "stores", "words_stored")
    if INSTRUCTIONS[mode]:
        assert tuple(report[name] for name in names) == INSTRUCTIONS[mode]
    assert report["words_stored"] > 4


@pytest.mark.parametrize("way", WAYS)
def test_atomic_instructions_are_seen(proven, for_arm, way):
    report = proven("instructions_arm", "atomics", of=for_arm("instructions_arm", *way))
    # One that fails stores nothing where it is an exclusive load without a store.
    assert report["stores"] == report["words_stored"] == (10 if way == EXCLUSIVE else 11)


def test_non_temporal_stores_stay_what_they_are(captured, for_arm):
    program = for_arm("instructions_arm")
    document = captured("", "streaming", of=program, designs=["morlog-slde"])
    explained(document)
    # All but those of the last instruction.
    assert document["runs"]["morlog-slde"]["non_temporal_stores"] == 16


def test_flushes_and_fences_are_counted_and_left_out(captured, for_arm):
    program = for_arm("instructions_arm")
    found = [captured("", mode, of=program)["counts"] for mode in ("flushes", "structures")]
    assert [counts["flushes"] for counts in found] == [7, 0]
    assert found[0]["fences"] - found[1]["fences"] == 6


# Transactions of each program, of them those that were aborted and those that are not over, stores.
TRANSACTIONS = {
    "ten": (10, 0, 0, 20),
    "nested": (3, 0, 0, 19),
    "aborted": (3, 1, 0, 6),
    "jump": (6, 3, 0, 12),
    "signals": (6, 0, 0, 24),
    "unfinished": (2, 0, 1, 3),
    "much_code": (20, 0, 0, 40),
}


@pytest.mark.parametrize("static", [(), ("-static",)])
@pytest.mark.parametrize("mode", TRANSACTIONS)
def test_transactions_are_between_functions(proven, for_arm, mode, static):
    designs = ["silo"] if mode == "ten" else []
    report = proven("", mode, of=for_arm("transactions", *static), designs=designs)
    names = ("transactions", "aborted", "unfinished", "stores")
    assert tuple(report[name] for name in names) == TRANSACTIONS[mode]


def test_a_jump_out_of_the_end_of_a_transaction_ends_it(proven, for_arm):
    program = for_arm("transactions")
    report = proven("", "jump_out_of_the_end", of=program, tx="tx_begin:tx_end")
    assert (report["transactions"], report["unfinished"]) == (4, 0)
    assert report["words_stored_outside"] == 0


def test_a_return_address_may_be_kept_in_any_register(proven, for_arm):
    report = proven("", "kept", of=for_arm("transactions"), tx="tx_begin:tx_kept")
    assert (report["transactions"], report["transactions_of_several"]) == (5, 5)
    # What is stored behind it is outside, until the next one begins.
    assert (report["stores"], report["words_stored_outside"]) == (15, 4)


def test_an_exception_out_of_the_end_of_a_transaction_ends_it(proven, for_arm):
    program = for_arm("throws", compiler=ARM_CXX)
    report = proven("", "", of=program, tx="tx_begin:tx_end")
    assert (report["transactions"], report["unfinished"]) == (10, 0)
    # What is stored after it is outside, until the next one begins: who catches stores, too.
    assert report["words_stored_outside"] == 10 + 5 - 2


def test_a_program_that_is_killed_leaves_a_trace_of_what_it_did(captured, for_arm):
    document = captured("", "killed", of=for_arm("transactions"))
    assert document["exit_code"] == -9
    report = explained(document)
    assert (report["transactions"], report["unfinished"], report["words_stored"]) == (11, 1, 21)


@pytest.mark.parametrize("mode", KERNEL)
def test_what_system_calls_do_to_mappings_is_followed(proven, for_arm, mode):
    report = proven("kernel", mode, of=for_arm("kernel"), tx=None)
    assert report["kernel_bytes"] == KERNEL[mode]
    assert report["words_stored"] > 0


def test_children_do_not_touch_the_trace(proven, captured, for_arm):
    program = for_arm("kernel")
    report = proven("", "fork_is_late", of=program, tx=None)
    assert (report["forks"], report["stores"]) == (1, 2001)
    report = captured("", "forks", of=program, also=["*/also"], tx=None)["report"]
    assert (report["forks"], report["loads_unexplained"], report["bytes_unexplained"]) == (1, 0, 1)


@pytest.mark.parametrize("mode", THREADS)
def test_threads_are_in_the_order_in_which_they_met(proven, for_arm, mode):
    report = proven("", mode, of=for_arm("threads"), designs=["silo"])
    names = ("threads", "transactions", "stores", "unlocks_put_off", "races")
    assert tuple(report[name] for name in names) == (*THREADS[mode], 0)


@pytest.mark.parametrize(
    ("mode", "threads", "forks"),
    [("left_alone", 6, 0), ("forks_among_others", 4, 20), ("signals", 5, 0)],
)
def test_no_thread_waits_for_a_turn_that_does_not_come(captured, for_arm, mode, threads, forks):
    document = captured("", mode, of=for_arm("threads"), tx=None)
    report = document["report"]
    assert (document["exit_code"], report["all_threads"], report["forks"]) == (0, threads, forks)
    assert report["loads_unexplained"] == 0
    assert report["bytes_unexplained"] == 0 or mode == "left_alone"


# Stores of each program whose threads meet by atomic instructions alone, where none fails that
# stores what was there.
ATOMICS = {
    "tickets": 40_000,
    "loops": None,
    "spin_lock_in_pm": None,
    "spin_lock_in_dram": 4000,
    "stack": None,
    "sizes": None,
    "flag": 2,
    "flag_in_order": 2,
    "late": 10,
    "late_with_two": 10,
    "unordered": 40_000,
}


@pytest.mark.parametrize("way", [AT_ONCE, EXCLUSIVE])
@pytest.mark.parametrize("mode", ATOMICS)
def test_atomics_are_in_the_order_in_which_they_happened(proven, for_arm, mode, way):
    report = proven("", mode, of=for_arm("atomics", *way), tx=None)
    if ATOMICS[mode] is not None:
        assert report["stores"] == ATOMICS[mode]
    if mode == "unordered":
        assert (report["races"] > 0, report["racing_bytes"]) == (True, 24)
    elif mode != "stack":
        assert report["races"] == 0, report["first_races"]


@pytest.mark.parametrize("mode", RACES)
def test_races_are_found_and_nothing_else_is(proven, for_arm, mode):
    report = proven("", mode, of=for_arm("races"), tx=None)
    assert report["racing_bytes"] == RACES[mode], report["first_races"]


@pytest.mark.parametrize("mode", sorted(RACES.keys() - {"readers_that_store", "semaphore_of_two"}))
def test_programs_without_symbols_synchronise_by_atomics(proven, for_arm, mode):
    program = for_arm("races", "-static", "-s", *EXCLUSIVE)
    report = proven("", mode, of=program, tx=None)
    assert report["racing_bytes"] == RACES[mode], report["first_races"]


@pytest.mark.parametrize("mode", SECTIONS)
def test_critical_sections_are_transactions(proven, for_arm, mode):
    report = proven("", mode, of=for_arm("sections"), tx=None, critical_sections=True)
    names = ("transactions", "transactions_of_several", "unfinished")
    names = (*names, "words_stored", "words_stored_outside")
    assert tuple(report[name] for name in names) == SECTIONS[mode]


@pytest.mark.parametrize("mode", MARKERS)
def test_markers_are_transactions_and_do_nothing_otherwise(proven, for_arm, tmp_path, mode):
    program = for_arm("markers", "-static")
    report = proven("", mode, of=program, tx=None, designs=["silo"])
    names = ("transactions", "aborted", "words_stored")
    assert tuple(report[name] for name in names) == MARKERS[mode]
    done = subprocess.run(["qemu-aarch64", program, tmp_path / "pool", mode], check=False)
    assert done.returncode == 0


def test_markers_name_persistent_memory(proven, for_arm):
    report = proven("", "ranges", of=for_arm("markers"), tx=None, pm_files=[])
    assert (report["transactions"], report["loads"], report["stores"]) == (13, 13, 12)
    assert report["words_stored_outside"] == 2


@pytest.mark.parametrize("compiler", ["aarch64-linux-gnu-gcc", ARM_CXX])
@pytest.mark.parametrize("options", [["-O0"], ["-O2", "-fno-omit-frame-pointer"]])
def test_the_header_compiles(tmp_path, compiler, options):
    source = (
        "#include <graven.h>\nint main(void) { graven_pm(0, 8); graven_tx_begin(); return 0; }\n"
    )
    path = tmp_path / f"x.{'cc' if compiler == ARM_CXX else 'c'}"
    path.write_text(source)
    standards = ("98", "17", "20") if compiler == ARM_CXX else ("89", "99", "17")
    include = PACKAGE / "capture/include"
    for standard in standards:
        strict = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-c", "-o", tmp_path / "x.o")
        name = f"-std=c{'++' if compiler == ARM_CXX else ''}{standard}"
        command = [compiler, name, *options, *strict, f"-I{include}", path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("mode", "begin", "end"), REGIONS)
def test_a_region_of_interest_is_traced(captured, for_arm, mode, begin, end):
    program = for_arm("regions")
    document = captured("", mode, of=program, from_function=begin, until_function=end)
    report = explained(document)
    names = ("skipped", "transactions", "words_stored", "words_stored_outside")
    assert tuple(report[name] for name in names) == REGIONS[mode, begin, end]


@pytest.mark.parametrize("static", [(), ("-static",)])
@pytest.mark.parametrize("mode", HEAPS)
def test_what_malloc_gives_is_persistent_memory(proven, for_arm, mode, static):
    program = for_arm("heap", *static)
    report = proven("", mode, of=program, pm_files=[], pm_heap=True)
    transactions, loads, _, outside = HEAPS[mode]
    assert report["transactions"] == transactions
    # Linked statically, less is done before.
    assert report["loads"] >= (loads / 4 if static else loads)
    assert report["words_stored_outside"] <= outside


def test_variables_are_persistent_memory_as_the_program_finds_them(proven, for_arm):
    program = for_arm("heap")
    report = proven("", "variables", of=program, pm_files=[], pm_ranges=["table", "zeros"])
    assert (report["loads"], report["stores"]) == (100, 100)


def test_programs_in_other_languages(proven, for_arm, tmp_path):
    heap = {"pm_files": [], "pm_heap": True}
    report = proven("", "", of=for_arm("trees", compiler=ARM_CXX), tx=TX, **heap)
    assert (report["transactions"], report["aborted"]) == (200, 20)
    if shutil.which("go") is None:
        return
    command = ["go", "build", "-o", tmp_path / "lists", PROGRAMS / "lists.go"]
    done = subprocess.run(
        command, env={**os.environ, "GOARCH": "arm64"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report = proven("", "", of=tmp_path / "lists", tx="main.txBegin:main.txCommit", **heap)
    assert (report["transactions"], report["aborted"]) == (200, 0)


def test_loader_and_libraries_are_in_a_sysroot(proven, for_arm, real, tmp_path):
    program = for_arm("sections")
    sysroot = tmp_path / "sysroot"
    sysroot.mkdir()
    arguments = ("--pm-file", "*/pool", "--tx-locks")
    said = refused(
        real, *arguments, "--sysroot", "sysroot", program=(program, tmp_path / "pool", "within")
    )
    assert f"its loader /lib/ld-linux-aarch64.so.1 is not there, nor in {sysroot.name}" in said
    said = refused(real, *arguments, "--sysroot", "nowhere", program=(program,))
    assert "--sysroot: nowhere is no folder" in said
    # Functions of libraries are found there, too: those of the C library lock.
    shutil.copytree("/usr/aarch64-linux-gnu/lib", sysroot / "lib", symlinks=True)
    more = {"tx": None, "critical_sections": True, "sysroot": str(sysroot)}
    report = proven("", "within", of=program, **more)
    assert report["transactions"] == SECTIONS["within"][0]


def test_qemus_own_variable_names_a_sysroot(for_arm, tmp_path, monkeypatch):
    dynamic, static = for_arm("transactions"), for_arm("transactions", "-static")
    guest = GUESTS[183]
    assert sysroot_of(dynamic, guest, None) == Path("/usr/aarch64-linux-gnu")
    assert sysroot_of(static, guest, None) is None
    monkeypatch.setenv("QEMU_LD_PREFIX", str(tmp_path))
    assert sysroot_of(static, guest, None) is None
    with pytest.raises(CaptureError, match=f"is not there, nor in {tmp_path}"):
        sysroot_of(dynamic, guest, None)


def test_an_instruction_that_qemu_does_not_have_is_told(real, for_arm, tmp_path):
    program = (for_arm("instructions_arm"), tmp_path / "pool", "scalable")
    done = real(
        *("capture", "--to", "x.gvt", "--pm-file", "*/pool", "--", *map(str, program)),
    )
    assert "the program was ended by signal 4" in done.stdout
    assert "SVE and SME" in " ".join(done.stdout.split())
