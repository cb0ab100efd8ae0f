"""`graven capture`: persistent memory that is no file's, and programs in other languages than C."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from capturing import IS_REQUIRED, PROGRAMS, TX, compile_program, explained, refused

pytestmark = pytest.mark.usefixtures("tools")

# Transactions of each program whose heap is persistent, how many loads and stores at least, and
# words that are stored outside transactions at most.
HEAPS = {
    "small": (200, 900, 700, 0),
    "pieces": (1000, 100_000, 100_000, 0),
    "moves": (4, 300_000, 500_000, 0),
    "breaks": (39, 1_000_000, 140_000, 0),
    "reserved": (20, 20_000, 200_000, 0),
    "kernel": (2, 4_000, 1_000, 0),
    "signals": (100, 100, 100, 0),
    "threads": (1800, 80_000, 50_000, 60_000),
}


@pytest.mark.parametrize("mode", HEAPS)
def test_what_malloc_gives_is_persistent_memory(proven, mode):
    designs = ["silo"] if mode in ("small", "threads") else []
    report = proven("heap", mode, pm_files=[], pm_heap=True, designs=designs)
    transactions, loads, stores, outside = HEAPS[mode]
    assert report["transactions"] == transactions
    assert report["loads"] >= loads
    assert report["stores"] >= stores
    assert report["words_stored_outside"] <= outside
    assert len(report["regions"]) == 1


@pytest.mark.parametrize("mode", ["small", "pieces", "breaks", "kernel", "threads"])
def test_the_heap_of_a_static_program(proven, tmp_path, mode):
    path = tmp_path / "static"
    done = compile_program("heap", path, "-static")
    if done.returncode != 0 and not IS_REQUIRED:
        pytest.skip("there are no libraries to link statically")
    assert done.returncode == 0, done.stderr
    report = proven("heap", mode, of=path, pm_files=[], pm_heap=True)
    assert report["transactions"] == HEAPS[mode][0]


def test_memory_that_comes_and_goes_takes_places_that_are_free(proven):
    [region] = proven("heap", "pieces", pm_files=[], pm_heap=True)["regions"]
    # The program has at most 64 pieces of up to 256 KB at a time, and maps hundreds of them.
    assert region["bytes"] < 20 << 20


def test_heap_and_files_are_regions_of_their_own(proven):
    report = proven("transactions", "ten", pm_heap=True)
    assert sorted(region["bytes"] for region in report["regions"])[-1] == 64 * 4096
    assert len(report["regions"]) == 2


def test_variables_are_persistent_memory_as_the_program_finds_them(proven):
    report = proven("heap", "variables", pm_files=[], pm_ranges=["table", "zeros"])
    assert (report["loads"], report["stores"]) == (100, 100)
    assert (report["words_stored"], report["words_stored_outside"]) == (100, 0)
    report = proven("heap", "variables", pm_files=[], pm_ranges=["zeros"])
    assert (report["loads"], report["stores"]) == (0, 50)


def test_a_range_is_persistent_whenever_something_is_mapped_there(captured):
    ranges = [f"{0x7000000008}:12000"]
    document = captured("heap", "fixed", pm_files=[], pm_ranges=ranges, designs=["silo"])
    report = document["report"]
    assert (report["bytes_unexplained"], report["loads_unexplained"]) == (0, 0)
    # All but the first word, in each of three rounds; afterwards they are zero again.
    assert (report["transactions"], report["stores"]) == (120, 3 * 39)
    assert report["words_stored_outside"] == 2 * 39
    assert document["runs"]["silo"]["committed_transactions"] == 120


def test_files_are_cut_off_get_holes_and_are_copied_into(proven):
    report = proven("heap", "copied")
    zeroed = 8192 + (64 - 5) * 4096 - 100
    assert report["kernel_bytes"] == 8 + zeroed


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Gives a program of a source in any language; skips if there is no compiler for it."""
    commands = {
        ".cpp": ["g++", "-O1", "-o"],
        ".rs": ["rustc", "--edition", "2024", "-O", "-o"],
        ".go": ["go", "build", "-o"],
    }
    folder = tmp_path_factory.mktemp("languages")

    def program(source):
        name, command = Path(source).stem, commands[Path(source).suffix]
        if shutil.which(command[0]) is None:
            pytest.skip(f"{command[0]} is not installed")
        done = subprocess.run(
            [*command, folder / name, PROGRAMS / source],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return folder / name

    return program


@pytest.mark.parametrize(
    ("source", "tx", "transactions", "aborted"),
    [
        ("trees.cpp", TX, 200, 20),
        ("maps.rs", TX, 100, 0),
        ("lists.go", "main.txBegin:main.txCommit", 200, 0),
    ],
)
def test_programs_in_other_languages(proven, compiled, source, tx, transactions, aborted):
    # Threads of the runtime of Go go on until the process is over.
    heap = {"pm_files": [], "pm_heap": True, "tx": tx}
    report = proven(source, "", of=compiled(source), **heap, designs=["silo"])
    assert (report["transactions"], report["aborted"]) == (transactions, aborted)
    assert report["transactions_of_several"] > 0.8 * transactions


def test_a_transaction_that_goes_on_in_another_thread_is_not_followed_and_that_is_said(
    compiled, real
):
    options = ("--pm-heap", "--tx", "main.txBegin:main.txCommit", "--format", "json")
    for mode, count in (("stays", 0), ("moves", 200)):
        program = (str(compiled("lists.go")), mode)
        done = real("capture", "--to", "x.gvt", *options, "--", *program)
        assert done.returncode == 0, done.stderr
        report = explained(json.loads(done.stdout))
        assert report["ends_of_none"] == count
        # Those that others end are one transaction of the thread that begins them.
        assert (report["transactions"], report["unfinished"]) == ((1, 1) if count else (200, 0))
        assert ("runtime.LockOSThread" in done.stderr) == (count > 0), done.stderr


def test_memory_that_is_none_is_refused(real, programs):
    program = (programs("heap"), "pool", "variables")
    assert "nothing says what is persistent memory" in refused(real, program=program)
    for wrong in ("0x100", "0x100:", ":5", "0x100:0", "1:0x800000000000", "-5:5"):
        said = refused(real, f"--pm-range={wrong}", program=program)
        assert f"{wrong} is no range of persistent memory" in said
    said = refused(real, "--pm-range", "tables", program=program)
    assert "have variables tables" in said
    said = refused(real, "--pm-range", "0x7000000000:64", program=program)
    assert "mapped nothing in the ranges" in said


def test_the_command_says_what_it_compared(real, programs):
    program = (str(programs("heap")), "pool", "small")
    options = ("--pm-heap", "--tx", TX, "--format", "json")
    done = real("capture", "--to", "x.gvt", *options, "--", *program)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["files"] == ["(memory)"]
    assert explained(document)["transactions"] == 200


@pytest.mark.parametrize("mappings", [1, 2])
def test_volatile_memory_is_in_the_trace_while_some_memory_is_persistent(
    real, programs, tmp_path, mappings
):
    program = (str(programs("late")), str(tmp_path / "pool"), *["again"] * mappings)
    trace = tmp_path / "late.gvt"
    done = real(
        *("capture", "--to", str(trace), "--pm-file", "*/pool", "--format", "json", "--", *program)
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["report"]
    assert report["words_stored"] == 512 * mappings
    # A pass of 512 loads and stores with the file, and what the compiler and the library add.
    assert 512 * mappings <= report["volatile_stores"] < 5000 * mappings
    assert json.loads(done.stdout)["counts"]["stores"] > 200 * 512
