"""`graven capture`: what a program does for persistence, by which instruction, called from where.

Bug class: a flush, a fence or a call is lost, is of another kind, names another line, or is blamed
on another place in the source.
"""

import json

import pytest
from capturing import explained

from graven.api.traces import trace_history, trace_history_counts
from graven.basics.places import line_of, place_of

pytestmark = pytest.mark.usefixtures("tools")

START = 2 << 20
LINE = 64


@pytest.fixture
def history(captured, programs, tmp_path):
    """Entries of a mode's history, the sites, and the whole document of the capture."""

    def call(mode, *, source="persistence", flags=("-g",), of=None, **more):
        program = of or programs(source, *flags)
        document = captured(source, mode, tx=None, of=program, only_pm=True, **more)
        found = trace_history(tmp_path / "x.gvt", accesses=True)
        return found["entries"], found["sites"], document

    return call


def of_kind(entries, *kinds):
    return [(e["what"], e["address"] - START) for e in entries if e["what"] in kinds]


def test_instructions_are_told_apart_by_kind(history, tmp_path):
    entries, _, document = history("kinds")
    explained(document)
    what = [entry["what"] for entry in entries]
    # Of two locked instructions that access other memory, the second has nothing to order.
    expected = ["store", "clwb", "sfence", "store", "clflushopt", "mfence", "store", "clflush"]
    expected += ["locked instruction", "store", "locked instruction", "non-temporal store"]
    assert what[:12] == expected
    counts = trace_history_counts(tmp_path / "x.gvt")
    names = ("clwb", "clflushopt", "clflush", "sfence", "mfence", "non-temporal store")
    assert [counts[name] for name in names] == [1, 1, 1, 2, 1, 1]
    flushed = of_kind(entries, "clwb", "clflushopt", "clflush")
    assert flushed == [("clwb", 0), ("clflushopt", LINE), ("clflush", 2 * LINE)]
    joined = [(e["address"] - START, e["is_joined"]) for e in entries if "is_joined" in e]
    for line in (5, 6):
        assert {(line * LINE, False), (line * LINE + 8, True)} <= set(joined)
    strings = [e["is_joined"] for e in entries if e["what"] == "string store"]
    assert strings == [False, True, True]


@pytest.mark.parametrize("flags", [("-g",), ("-g", "-O0"), ("-g", "-O2"), ("-g", "-O3")])
def test_flushes_name_their_lines_however_compiled(history, flags):
    entries, _, _ = history("operands", flags=flags)
    flushes = [e for e in entries if e["what"].startswith("cl")]
    lines = [
        (e["address"] - START) // LINE if "address" in e else "volatile_address" in e
        for e in flushes
    ]
    # The second value is memory that is not persistent, the third is not known.
    assert lines == [3, 4, 5, 7, True, False, 10, 11, 12, 13]


def test_stacks_lead_to_the_line_of_the_program(history):
    entries, sites, _ = history("stacks")
    flushes = [e for e in entries if e["what"] == "clwb"]
    assert [(e["address"] - START) // LINE for e in flushes] == [1, 2, 3]
    for entry in flushes:
        names = [place_of(sites[site]).split(" ")[0] for site in (entry["site"], *entry["calls"])]
        assert names[1:3] == ["put", "run"] or names[1:4] == ["put", "stacks", "run"], names
        assert line_of(sites[entry["calls"][0]]).startswith("persistence.c:")
    calls = {line_of(sites[entry["calls"][1]]) for entry in flushes}
    assert len(calls) == 2, "the loop's call, and the one before it"


def test_functions_that_a_jump_has_left_are_in_no_stack(history):
    entries, sites, _ = history("unwound")
    put = [e for e in entries if e["what"] == "store"][1:]
    for entry, within in zip(put, (True, False), strict=True):
        names = [place_of(sites[site]).split(" ")[0] for site in entry["calls"]]
        assert "jumps" not in names
        assert ("left" in names) == within, names


def test_a_stripped_program_has_modules_and_offsets(history, programs):
    entries, sites, _ = history("stacks", flags=("-s",))
    name = programs("persistence", "-s").name
    flush = next(e for e in entries if e["what"] == "clwb")
    assert line_of(sites[flush["site"]]) is None
    assert place_of(sites[flush["site"]]).startswith(f"{name}+0x")


def test_system_calls_have_arguments_and_results(history, tmp_path):
    entries, _, document = history("calls")
    explained(document)
    calls = [e for e in entries if "result" in e]
    of = {}
    for call in calls:
        of.setdefault(call["what"], []).append(call)
    first, second = of["msync"]
    assert (first["address"], first["bytes"], first["flags"], first["result"]) == (
        START,
        4096,
        4,
        0,
    )
    assert (second["address"], second["flags"], second["result"]) == (START + 8, 1, -22)
    written = [(e["address"] - START, e["bytes"], e["flags"]) for e in of["write"]]
    assert written == [(5000, 3, 0), (6000, 3, 1)]
    assert [e["path"].endswith("pool") for e in of["fsync"]] == [True, False]
    assert of["fdatasync"][0]["address"] == START
    [ranged] = of["sync_file_range"]
    assert (ranged["address"] - START, ranged["bytes"], ranged["flags"]) == (4096, 4096, 2)
    paths = {name: of[name][0]["path"] for name in ("create", "rename", "unlink")}
    assert paths == {
        "create": f"{tmp_path}/pool.new",
        "rename": f"{tmp_path}/pool.old",
        "unlink": f"{tmp_path}/pool.old",
    }
    assert [e["bytes"] for e in of["send"]] == [4]
    assert of["ftruncate"][0]["bytes"] == 2 * 64 * 4096
    assert of["munmap"][0]["address"] == START + 4096
    kernel = [e["address"] - START for e in entries if e["what"] == "kernel store"]
    assert kernel == [5000, 6000 // 8 * 8]


def test_a_program_that_aborts_leaves_a_whole_trace(history):
    entries, _, document = history("aborts")
    assert document["exit_code"] == -6
    explained(document)
    assert [name for name, _ in of_kind(entries, "clwb")] == ["clwb", "clwb"]
    assert entries[-1]["what"] in ("sfence", "locked instruction")


def test_loads_are_in_where_threads_may_read_what_others_store(history):
    entries, sites, _ = history("threads")
    loads = [e for e in entries if e["what"] == "load"]
    read = [e for e in loads if e["address"] == START + LINE]
    assert len({e["thread"] for e in entries if e["what"] != "load"}) == 2
    assert [place_of(sites[e["site"]]).split(" ")[0] for e in read if e["thread"] == 1] == ["reads"]


def test_replays_ignore_histories(captured):
    document = captured("transactions", "ten", designs=["silo", "undo-clwb"])
    assert explained(document)["transactions"] == 10


@pytest.mark.usefixtures("tools_for_arm")
def test_programs_for_aarch64_flush_and_order(history, for_arm):
    entries, sites, document = history(
        "kinds", source="persistence_arm", of=for_arm("persistence_arm", "-g")
    )
    explained(document)
    said = [e["what"] for e in entries if e["what"] not in ("store", "load", "send")]
    assert said == ["dc cvac", "dc cvac", "dsb", "dc civac", "dmb st", "dsb ld"]
    flushed = [address // LINE for _, address in of_kind(entries, "dc cvac", "dc civac")]
    assert flushed == [0, 1, 2]
    flush = next(e for e in entries if e["what"] == "dc cvac")
    assert place_of(sites[flush["site"]]).startswith("persist at persistence_arm.c:")


def test_the_commands_show_histories(command, real):
    command("persistence", "stacks", "--only-pm")
    shown = real("trace", "print", "x.gvt").stdout.splitlines()
    assert [line.split()[2] for line in shown] == ["clwb", "sfence"] * 3
    document = json.loads(
        real(
            "trace",
            "print",
            "x.gvt",
            "--first",
            "1",
            "--limit",
            "2",
            "--stores",
            "--format",
            "json",
        ).stdout
    )
    assert [entry["what"] for entry in document["entries"]] == ["clwb", "sfence"]
    assert document["all"] == 9
    info = real("trace", "info", "x.gvt").stdout
    assert "of its persistence" in info
    found = json.loads(real("trace", "info", "x.gvt", "--format", "json").stdout)
    assert found["history"] == {"clwb": 3, "sfence": 3, "store": 3}
    done = real(
        "trace", "record", "y.gvt", "--design", "base", "--workload", "hash", "--transactions", "10"
    )
    assert done.returncode == 0, done.stderr
    done = real("trace", "print", "y.gvt")
    assert (done.stdout, "no history" in done.stderr) == ("", True)
