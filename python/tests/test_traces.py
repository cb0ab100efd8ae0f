"""`graven trace`, and the same from Python: what goes in, what comes out, what is left behind."""

import bz2
import gzip
import lzma
import os
import re
import shutil
import struct
import subprocess
import threading
import time
import zipfile

import pytest
from conftest import documents

import graven
from graven.api.assumed import FORMATS
from graven.api.recognised import REQUESTS, recognised


def run(quick, *more):
    return quick("run", "--design", "silo", "--workload", "btree", "--transactions", "10", *more)


def record(quick, *more):
    what = ("--design", "silo", "--workload", "btree", "--transactions", "10")
    return quick("trace", "record", "t.gvt", *what, *more)


def test_a_recording_prints_what_the_run_does_and_its_replay_does_too(quick, tmp_path):
    live = run(quick, "--format", "json")
    recorded = record(quick, "--format", "json")
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout == live.stdout
    assert "wrote t.gvt" in recorded.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graven-results", "t.gvt"]
    replay = quick("trace", "replay", "t.gvt", "--format", "json")
    assert (replay.returncode, replay.stdout) == (0, live.stdout)


def test_a_replay_takes_another_design_machine_and_settings(quick):
    record(quick)
    more = ("--design", "fwb", "--machine", "morlog", "--set", "pm.write_ns=300")
    done = quick("trace", "replay", "t.gvt", *more, "--format", "json")
    assert done.returncode == 0, done.stderr
    [found] = documents(done.stdout)
    assert (found["design"], found["machine"]) == ("fwb", "morlog")


def test_a_failed_recording_leaves_nothing(quick, tmp_path):
    what = ("--design", "silo", "--workload", "btree")
    done = quick("trace", "record", "t.gvt", *what, FAULT_FAIL="silo")
    assert done.returncode == 1
    assert "read back stale" in done.stderr
    assert list(tmp_path.iterdir()) == []
    refused = quick("trace", "record", "no/t.gvt", *what)
    assert refused.returncode == 2
    assert "cannot write into no" in refused.stderr


def test_info_shows_what_is_in_a_trace(quick):
    record(quick)
    done = quick("trace", "info", "t.gvt")
    assert done.returncode == 0, done.stderr
    assert "btree under silo: 10 transactions, 8 threads, machine silo, seed 1" in done.stdout
    document = documents(quick("trace", "info", "t.gvt", "--format", "json").stdout)
    assert document["header"]["workload"] == "btree"
    assert len(document["threads"]) == 8
    operations = sum(thread["operations"] for thread in document["threads"])
    assert f"{operations:,} operations in 8 blocks" in done.stdout


def test_other_files_are_refused(quick, tmp_path):
    (tmp_path / "t.nvt").write_text("NVMV1\n")
    for command in ("info", "replay"):
        done = quick("trace", command, "t.nvt")
        assert done.returncode == 2
        assert "t.nvt: byte 0: expected a program trace" in done.stderr
        assert quick("trace", command, "nothing.gvt").returncode == 2


PACKERS = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}


def instruction(ip=0x400000, loads=(), stores=(), branch=0, taken=0):
    """An instruction of ChampSim, 64 B."""
    stores, loads = (*stores, 0, 0)[:2], (*loads, 0, 0, 0, 0)[:4]
    return struct.pack("<Q2B6x2Q4Q", ip, branch, taken, *stores, *loads)


def cloudsuite(ip, loads, stores):
    """An instruction in CloudSuite's layout, 96 B."""
    return struct.pack("<Q16x4Q4Q8x", ip, *(*stores, 0, 0, 0)[:4], *(*loads, 0, 0, 0)[:4])


def loads(count, first=0):
    return b"".join(
        instruction(0x400000 + 4 * at, [0x10000 + 64 * at]) for at in range(first, first + count)
    )


@pytest.mark.parametrize("pack", [bytes, *PACKERS.values()])
@pytest.mark.parametrize("name", ["c", "c.champsimtrace.gz", "c.xz", "c.bz2"])
def test_traces_of_champsim_are_read_as_they_are_compressed(quick, tmp_path, name, pack):
    records = [cloudsuite(0x400000 + 4 * n, [1 << 20], [1 << 21]) for n in range(8)]
    (tmp_path / name).write_bytes(pack(b"".join(records)))
    more = ("--to", "t.gvt", "--transaction-stores", "2", "--instructions", "6")
    done = quick("trace", "convert", name, name, *more, "--layout", "cloudsuite")
    if pack is bytes and name != "c":
        assert done.returncode == 2
        assert f"{name}: byte 0: expected a stream of" in done.stderr
        assert "as the name says, found bytes 00 00" in done.stderr
        assert not (tmp_path / "t.gvt").exists()
        return
    assert done.returncode == 0, done.stderr
    threads = documents(quick("trace", "info", "t.gvt", "--format", "json").stdout)["threads"]
    assert [(t["transactions"], t["loads"], t["stores"]) for t in threads] == [(3, 6, 6)] * 2
    assert "from traces of ChampSim" in quick("trace", "info", "t.gvt").stdout


@pytest.mark.parametrize(
    ("name", "unpack"),
    [
        ("c", bytes),
        ("c.xz", lzma.decompress),
        ("c.gz", gzip.decompress),
        ("c.bz2", bz2.decompress),
    ],
)
def test_traces_for_champsim_are_compressed_as_their_names_say(quick, tmp_path, name, unpack):
    record(quick)
    done = quick("trace", "convert", "t.gvt", "--to", name, "--thread", "1", "--transactions", "2")
    assert done.returncode == 0, done.stderr
    count = int(re.search(r"(\d+) instructions", done.stderr)[1])
    assert len(unpack((tmp_path / name).read_bytes())) == len(instruction()) * count > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "t.gvt"])


@pytest.mark.parametrize("ending", ["gz", "xz", "bz2"])
def test_what_is_compressed_has_the_same_bytes_each_time_and_under_each_name(
    tmp_path, monkeypatch, ending
):
    path = tmp_path / "t.gvt"
    graven.record_trace(path, "silo", "btree", transactions=10)
    written = []
    for number in range(2):
        monkeypatch.setattr(time, "time", lambda number=number: 1e9 + 1e6 * number)
        monkeypatch.setattr(os, "getpid", lambda number=number: 1000 + number)
        out = tmp_path / f"{number}.{ending}"
        graven.export_champsim(path, out)
        written.append(out.read_bytes())
    assert written[0] == written[1]


def test_names_say_no_compression_that_is_not_written(quick, tmp_path):
    record(quick)
    (tmp_path / "r.trc").write_text("0x40 READ 1\n")
    (tmp_path / "c").write_bytes(b"\0instructions")
    what = ("--design", "silo", "--workload", "btree")
    for arguments, expected in [
        (("trace", "convert", "t.gvt", "--to", "c.zst"), "Zstandard is not written; .gz, .xz and"),
        (("trace", "convert", "t.gvt", "--to", "c.zip"), "zip is not written; .gz, .xz and .bz2"),
        (("trace", "convert", "r.trc", "--to", "r.nvt.gz"), "r.nvt.gz: it would not be compressed"),
        (("trace", "convert", "c", "--to", "u.gvt.xz"), "u.gvt.xz: it would not be compressed"),
        (("trace", "record", "u.gvt.bz2", *what), "the name must not end in .bz2"),
        (("run", *what, "--request-trace", "r.nvt.xz"), "r.nvt.xz: it would not be compressed"),
        (("run", *what, "--timeline", "t.json.gz"), "the name must not end in .gz"),
    ]:
        done = quick(*arguments)
        assert done.returncode == 2, arguments
        assert expected in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "r.trc", "t.gvt"]


def test_options_go_with_one_direction(quick, tmp_path):
    record(quick)
    (tmp_path / "c").write_bytes(b"\0instructions")
    for arguments, expected in [
        (("t.gvt", "--layout", "champsim"), "--layout does not go with a program trace"),
        (("t.gvt", "--instructions", "5"), "--instructions does not go with a program trace"),
        (("c", "--thread", "1"), "--thread does not go with a trace of another tool"),
        (("t.gvt", "c"), "is a program trace; name it alone"),
    ]:
        done = quick("trace", "convert", *arguments, "--to", "x")
        assert done.returncode == 2
        assert expected in done.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("command", ["record", "info", "replay", "convert"])
def test_every_command_about_traces_has_examples(quick, command):
    done = quick("trace", command, "--help")
    assert "Examples:" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_from_python(tmp_path):
    path = tmp_path / "t.gvt"
    live = graven.record_trace(path, "silo", "btree", transactions=10, pm__write_ns=300)
    again = graven.replay(path)
    assert (again.stats, again.config) == (live.stats, live.config)
    assert graven.replay(path, "fwb", machine="morlog").machine == "morlog"
    assert graven.trace_info(path).operations > 100
    with pytest.raises(graven.ConfigError, match="unknown design"):
        graven.replay(path, "sillo")
    with pytest.raises(graven.TraceError, match="byte 0"):
        graven.trace_info(__file__)
    assert graven.export_champsim(path, tmp_path / "c.xz") > 100
    assert graven.import_champsim([tmp_path / "c.xz"] * 2, tmp_path / "u.gvt").blocks == 2
    with pytest.raises(graven.ConfigError, match="list is empty"):
        graven.import_champsim([], tmp_path / "u.gvt")
    with pytest.raises(graven.ConfigError, match="transaction_stores: 0"):
        graven.import_champsim([tmp_path / "c.xz"], tmp_path / "u.gvt", transaction_stores=0)


def test_properties_are_shown_when_all_of_a_trace_is_read(quick):
    record(quick)
    done = quick("trace", "info", "t.gvt", "--properties")
    assert done.returncode == 0, done.stderr
    assert re.search(r"of what was there \(silent\) +\d+\.\d %", done.stdout)
    assert "distinct lines stored" in done.stdout
    document = documents(quick("trace", "info", "t.gvt", "--properties", "--format", "json").stdout)
    stores = document["properties"]["transactions"]["stores"]
    assert 0 < stores["p50"] <= stores["p99"] <= stores["max"]
    assert "properties" not in documents(quick("trace", "info", "t.gvt", "--format", "json").stdout)


def test_traces_of_requests_are_made_of_each_other(quick, tmp_path):
    (tmp_path / "r.trc").write_text("0x40 READ 1\n0x80 WRITE 2\n")
    done = quick("trace", "convert", "r.trc", "--to", "r.grt")
    assert done.returncode == 0, done.stderr
    assert "wrote r.grt: 2 requests" in done.stderr
    assert (tmp_path / "r.grt").read_bytes().startswith(b"\x89GRVNR\r\n")
    for arguments, expected in [
        (("r.grt", "--to", "x", "--thread", "1"), "--thread does not go with a trace of requests"),
        (("r.grt", "r.trc", "--to", "x"), "is made of one other; name it alone"),
        (("r.grt", "--to", "x.gvt"), "x.gvt: a trace of requests cannot be made a program trace"),
        (("r.trc", "--to", "nothing/x.grt"), "cannot write into nothing"),
    ]:
        done = quick("trace", "convert", *arguments)
        assert done.returncode == 2
        assert expected in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.grt", "r.trc"]
    assert graven.convert_requests(tmp_path / "r.trc", tmp_path / "s.grt") == 2


ZERO = "0" * 128


def test_requests_are_written_in_the_formats_of_other_simulators(quick, tmp_path):
    graven.run("silo", "hash", transactions=50, request_trace=tmp_path / "r.grt")
    whole = graven.memory(tmp_path / "r.grt").stats

    def written(name, *more):
        done = quick("trace", "convert", "r.grt", "--to", name, "--format", name, *more)
        assert done.returncode == 0, done.stderr
        assert recognised((tmp_path / name).read_bytes()[:4096]) in REQUESTS, name
        return done.stderr

    for name in FORMATS:
        said = written(name)
        of = graven.memory(tmp_path / name).stats
        assert (of["reads"], of["writes"]) == (whole["reads"], whole["writes"]), name
        has_times, has_data = not name.startswith("ramulator"), name in {"graven", "nvmain"}
        assert ("times are left out" in said) is not has_times
        assert ("data that the format cannot say are left out: of" in said) is not has_data
        if has_data:
            assert of == whole
        elif has_times and name != "dramsys":
            assert of["lateness_cycles_max"] == whole["lateness_cycles_max"], name
    # A clock of half the core's: of two cycles one is written, which comes back as the later one.
    written("dramsim3", "--to-clock", "1GHz")
    lines = (tmp_path / "dramsim3").read_text().splitlines()
    cycles = [int(line.split()[2]) for line in lines]
    by_core = [int(line.split()[0]) for line in (tmp_path / "nvmain").read_text().splitlines()[1:]]
    assert cycles == [-(-cycle // 2) for cycle in by_core]
    graven.convert_requests(tmp_path / "dramsim3", tmp_path / "again.nvt", clock="1GHz")
    first, *again = (tmp_path / "again.nvt").read_text().splitlines()
    assert first == "NVMV0", "nothing is known of data"
    assert [int(line.split()[0]) for line in again] == [2 * cycle for cycle in cycles]
    assert {line.split()[3] for line in again} == {ZERO}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"format": "usimm"}, "format: 'usimm' is not allowed; graven, nvmain, dramsim3"),
        ({"format": "gem5", "to_clock": "1GHz"}, "to_clock: the format gem5 has ticks of its own"),
        ({"format": "ramulator", "to_clock": "1GHz"}, "to_clock: .* ramulator has no times"),
        ({"to_clock": "fast"}, "to_clock: 'fast' is not allowed"),
    ],
)
def test_formats_and_clocks_that_do_not_go_together_are_refused(more, said, tmp_path):
    (tmp_path / "r.trc").write_text("0x40 READ 1\n")
    with pytest.raises(graven.ConfigError, match=said):
        graven.convert_requests(tmp_path / "r.trc", tmp_path / "x", **more)
    assert not (tmp_path / "x").exists()


OF_OTHERS = {
    "a store log of valgrind's pmemcheck": b"START|STORE;0x40;0x1;0x8|FLUSH;0x40;0x40|FENCE\n",
}

UNTIMED = {
    "a request trace of Ramulator 1": b"0x12340 R\n0x12380 W\n",
    "a load-store trace of Ramulator 2": b"LD 0x12340\nST 74624\n",
    "a read-write trace of Ramulator 2": b"R 0,0,1165\nW 0,0,1166\n",
}
"""Traces of requests without times: a read of line 0x48d, and a write of the next."""


def gem5(*packets):
    """A packet trace of gem5: the fields of each packet from 1 on, each below 128."""
    header = b"\x0a\x04test\x18\x80\xa0\x94\xa5\x8d\x1d"  # 10^12 ticks in a second
    keys = range(8, 40, 8)
    messages = [header, *(bytes(sum(zip(keys, of, strict=True), ())) for of in packets)]
    return b"gem5" + b"".join(bytes([len(message)]) + message for message in messages)


TIMED = {
    "a packet trace of gem5": gem5((0, 1, 64, 64), (1, 2, 64, 64), (5, 4, 64, 64)),
    "a trace of DRAMSys": b"# comment\n0:\tread\t0x40\n2:\t(64) write\t0x40\t0xab\n",
}
"""Traces of requests with times: a read and a write of line 1, and something that is left out."""

LACKEY = b"==7== Lackey\nI  00400000,3\n L 1ffe000000,8\nI  00400003,2\n M 1ffe00000c,8\n"


def drmemtrace(*inside, thread=7):
    """A whole trace of drmemtrace: header, thread, process, what is given, footer."""
    begin = [(25, 0, 7), (22, 4, thread), (24, 4, 7)]
    return b"".join(struct.pack("<HHQ", *entry) for entry in [*begin, *inside, (26, 0, 0)])


DRMEMTRACE = drmemtrace(
    (10, 3, 0x400000), (0, 8, 0x1FFE000000), (10, 2, 0x400003), (0, 8, 0x1FFE00000C),
    (1, 8, 0x1FFE00000C), (3, 64, 0x1FFE000040),
)  # fmt: skip

PROGRAMS = {
    "valgrind's lackey": (LACKEY, (3, 2, 0)),
    "DynamoRIO's drmemtrace": (DRMEMTRACE, (3, 2, 0)),
    "USIMM": (b"12 R 0x12340 0x400abc\n3 W 0x12380\n", (1, 1, 15)),
    "a core of Ramulator (SimpleO3)": (b"3 20734016\n8 20841280 20841344\n", (2, 1, 11)),
}
"""Traces of other tools: content, and loads, stores and instructions of its program trace."""

OWN = {
    "a request trace of NVMain": b"NVMV1\n" + f"1 R 0x40 {ZERO} {ZERO} 0\n".encode(),
    "a request trace of DRAMsim3": b"0x40 P_MEM_WR 10\n",
    "a binary request trace of Graven": b"\x89GRVNR\r\n" + bytes(100),
    "a program trace of Graven": b"\x89GRVNT\r\n{}",
    "a trace of ChampSim": loads(100),
    **UNTIMED,
    **TIMED,
    **{f"a trace of {name}": content for name, (content, _) in PROGRAMS.items()},
}


@pytest.mark.parametrize("pack", [bytes, *PACKERS.values()])
@pytest.mark.parametrize("name", PROGRAMS)
def test_traces_of_other_tools_are_read_by_their_content(quick, tmp_path, name, pack):
    content, counts = PROGRAMS[name]
    (tmp_path / "x").write_bytes(pack(content))
    done = quick("trace", "convert", "x", "x", "--to", "o.gvt")
    assert done.returncode == 0, done.stderr
    threads = documents(quick("trace", "info", "o.gvt", "--format", "json").stdout)["threads"]
    assert [(t["loads"], t["stores"], t["instructions"]) for t in threads] == [counts] * 2
    shown = " ".join(quick("trace", "info", "o.gvt").stdout.split())
    assert f"from traces of {name}: no values, and no transactions of theirs" in shown
    quick("trace", "convert", "x", "--to", "p.gvt", "--transaction-stores", "1")
    [thread] = graven.trace_info(tmp_path / "p.gvt").threads
    assert thread.transactions == counts[1]


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_a_real_trace_of_lackey_has_the_instructions_that_lackey_counts(quick, tmp_path):
    command = ["valgrind", "--tool=lackey", "--trace-mem=yes", "--log-file=lackey.txt", "true"]
    subprocess.run(command, cwd=tmp_path, check=True)
    text = (tmp_path / "lackey.txt").read_text()
    counted = int(re.search(r"guest instrs: +([\d,]+)", text)[1].replace(",", ""))
    done = quick("trace", "convert", "lackey.txt", "--to", "o.gvt")
    assert done.returncode == 0, done.stderr
    assert f"of {counted:,} instructions" in done.stderr
    words = {"L": 0, "S": 0, "M": 0}
    for kind, address, size in re.findall(r"^ ([LSM]) ([0-9a-f]+),(\d+)$", text, re.MULTILINE):
        first, end = int(address, 16), int(address, 16) + int(size)
        words[kind] += (end - 1) // 8 - first // 8 + 1
    [thread] = graven.trace_info(tmp_path / "o.gvt").threads
    assert (thread.loads, thread.stores) == (words["L"] + words["M"], words["S"] + words["M"])


def test_what_is_left_out_of_other_tools_traces_is_said(quick, tmp_path):
    (tmp_path / "x").write_bytes(DRMEMTRACE)
    done = quick("trace", "convert", "x", "--to", "o.gvt")
    assert "wrote o.gvt: 5 operations, of 2 instructions" in done.stderr
    assert "drmemtrace has no values, transactions and registers; docs/guides" in done.stderr
    assert "prefetches are left out: 1" in done.stderr
    made = graven.import_trace([tmp_path / "x"], tmp_path / "p.gvt")
    assert (made.source_instructions, made.notes) == (2, ("prefetches are left out: 1",))


def test_damage_and_mixtures_of_other_tools_traces_are_refused_and_leave_nothing(quick, tmp_path):
    (tmp_path / "lackey").write_bytes(LACKEY)
    (tmp_path / "bad-lackey").write_bytes(LACKEY.replace(b" M 1ffe", b" N 1ffe"))
    (tmp_path / "cut-lackey").write_bytes(LACKEY[:-1])
    (tmp_path / "drmemtrace").write_bytes(DRMEMTRACE)
    (tmp_path / "cut-drmemtrace").write_bytes(DRMEMTRACE[:-12])
    (tmp_path / "simpleo3").write_bytes(b"3 20734016\n8 020841280\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    for arguments, expected in [
        (("bad-lackey",), "bad-lackey: line 5: expected in file 1: `I`, `L`, `S` or `M`"),
        (("cut-lackey",), "line 5: expected in file 1: the end of a line"),
        (("cut-drmemtrace",), f"byte {len(DRMEMTRACE) - 12}: expected in file 1: the footer"),
        (("simpleo3",), "line 2: expected in file 1: `BUBBLES LOAD`"),
        (("lackey", "drmemtrace"), "drmemtrace: expected a trace of valgrind's lackey, as lackey"),
        (("lackey", "--layout", "champsim"), "lackey is a trace of valgrind's lackey, and ChampS"),
    ]:
        done = quick("trace", "convert", *arguments, "--to", "o.gvt")
        assert done.returncode == 2, arguments
        assert expected in " ".join(done.stderr.split()), arguments
        assert sorted(path.name for path in tmp_path.iterdir()) == before
    with pytest.raises(graven.TraceError, match=r"expected a trace of ChampSim, found .*lackey"):
        graven.import_champsim([tmp_path / "lackey"], tmp_path / "o.gvt")


@pytest.mark.parametrize("pack", [bytes, *PACKERS.values()])
def test_threads_in_one_file_of_drmemtrace_become_threads(quick, tmp_path, pack):
    access = [(10, 3, 0x400000), (0, 8, 0x5000)]
    several = drmemtrace(*access, (22, 4, 9), *access, *access, (22, 4, 7), *access)
    # Only the first version has several threads in a file.
    (tmp_path / "x").write_bytes(pack(several.replace(b"\x19\0\0\0\7", b"\x19\0\0\0\1", 1)))
    (tmp_path / "y").write_bytes(pack(several))
    done = quick("trace", "convert", "x", "x", "--to", "o.gvt")
    assert done.returncode == 0, done.stderr
    assert [thread.loads for thread in graven.trace_info(tmp_path / "o.gvt").threads] == [2, 2] * 2
    done = quick("trace", "convert", "y", "--to", "p.gvt")
    assert done.returncode == 2
    assert "an entry of thread 7, the first of the file, found one of thread 9" in done.stderr


def test_chunks_of_drmemtrace_in_a_zip_file_are_one_trace(quick, tmp_path):
    parts = [DRMEMTRACE[:36], DRMEMTRACE[36:50], DRMEMTRACE[50:]]
    with zipfile.ZipFile(tmp_path / "x", "w", zipfile.ZIP_DEFLATED) as packed:
        for number, part in enumerate(parts):
            packed.writestr(f"chunk.{number:04}", part)
    done = quick("trace", "convert", "x", "--to", "o.gvt")
    assert done.returncode == 0, done.stderr
    graven.import_trace([tmp_path / "x"], tmp_path / "p.gvt")
    (tmp_path / "plain").write_bytes(DRMEMTRACE)
    graven.import_trace([tmp_path / "plain"], tmp_path / "q.gvt")
    made = [(tmp_path / name).read_bytes() for name in ("o.gvt", "p.gvt", "q.gvt")]
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize("pack", [bytes, *PACKERS.values()])
@pytest.mark.parametrize("name", OF_OTHERS)
def test_errors_name_the_format_that_a_file_of_others_looks_like(quick, tmp_path, name, pack):
    (tmp_path / "x").write_bytes(pack(OF_OTHERS[name]))
    for arguments in [
        ("trace", "convert", "x", "--to", "o.gvt"),
        ("trace", "convert", "x", "--to", "o.grt"),
        ("trace", "replay", "x"),
        ("trace", "info", "x"),
        ("memory", "x"),
    ]:
        done = quick(*arguments)
        assert done.returncode == 2, arguments
        assert f"looks like {name}\n" in done.stderr, arguments
    assert sorted(path.name for path in tmp_path.iterdir()) in (["x"], ["graven-results", "x"])


@pytest.mark.parametrize("name", OWN)
def test_errors_name_what_reads_a_file_that_another_command_reads(quick, tmp_path, name):
    (tmp_path / "x").write_bytes(OWN[name])
    is_requests, is_program = "request" in name or name in {**UNTIMED, **TIMED}, "program" in name
    reader = "memory" if is_requests else "trace" if is_program else "trace convert"
    for arguments, reads in [
        (("memory", "x"), is_requests),
        (("trace", "convert", "x", "--to", "o.grt"), is_requests),
        (("trace", "info", "x"), is_program),
    ]:
        if not reads:
            done = quick(*arguments)
            assert done.returncode == 2, arguments
            assert f"looks like {name} (graven {reader} reads it)" in done.stderr, arguments


@pytest.mark.parametrize("pack", [bytes, *PACKERS.values()])
@pytest.mark.parametrize("name", TIMED)
def test_requests_with_times_are_read_and_what_is_left_out_is_said(quick, tmp_path, name, pack):
    (tmp_path / "x").write_bytes(pack(TIMED[name]))
    done = quick("memory", "x", "--format", "json", "--no-store")
    assert done.returncode == 0, done.stderr
    stats = documents(done.stdout)["stats"]
    assert (stats["reads"], stats["writes"], stats["late_requests"]) == (1, 1, 0)
    left_out = {
        "a packet trace of gem5": "packets that neither read nor write memory are left out: 1, "
        "the first at byte 27 (command 2)",
        "a trace of DRAMSys": "data of writes that are not a whole line are left out: 1",
    }
    assert left_out[name] in done.stderr
    converted = quick("trace", "convert", "x", "--to", "o.grt")
    assert left_out[name] in converted.stderr
    filled = quick("trace", "convert", "x", "--to", "o.nvt")
    assert "data that are not known are written as zeros: of 2 requests" in filled.stderr


@pytest.mark.parametrize(
    ("content", "more", "cycles"),
    [
        (b"3: read 0x40\n5: write 0x80\n", {}, (3, 5)),
        (b"3: read 0x40\n5: write 0x80\n", {"relative": True}, (3, 8)),
        (b"3: read 0x40\n5: write 0x80\n", {"relative": True, "clock": "1 GHz"}, (6, 16)),
        # 127 ticks of 10^11 in a second.
        (
            b"gem5\x09\x0a\x00\x18\x80\xd0\xdb\xc3\xf4\x02"
            b"\x08\x08\x00\x10\x01\x18\x40\x20\x40\x09\x08\x7f\x10\x04\x18\x80\x01\x20\x40",
            {},
            (0, 2),
        ),
    ],
)
def test_times_of_gem5_and_dramsys_become_cycles_of_the_core(tmp_path, content, more, cycles):
    (tmp_path / "x").write_bytes(content)
    (tmp_path / "same").write_text(f"40 READ {cycles[0]}\n80 WRITE {cycles[1]}\n")
    graven.convert_requests(tmp_path / "x", tmp_path / "found.grt", **more)
    graven.convert_requests(tmp_path / "same", tmp_path / "same.grt")
    assert (tmp_path / "found.grt").read_bytes() == (tmp_path / "same.grt").read_bytes()


@pytest.mark.parametrize("pack", [bytes, *PACKERS.values()])
@pytest.mark.parametrize("name", UNTIMED)
def test_requests_for_ramulator_are_offered_one_in_each_cycle(quick, tmp_path, name, pack):
    (tmp_path / "x").write_bytes(pack(UNTIMED[name]))
    (tmp_path / "same.trc").write_text("0x12340 READ 0\n0x12380 WRITE 1\n")
    levels = ("--levels", "2,2,4096") if "read-write" in name else ()
    done = quick("memory", "x", *levels, "--format", "json", "--no-store")
    assert done.returncode == 0, done.stderr
    assert "requests have no times: one is offered in each cycle" in done.stderr
    same = quick("memory", "same.trc", "--format", "json", "--no-store")
    assert done.stdout == same.stdout
    converted = quick("trace", "convert", "x", "--to", "o.grt", *levels)
    assert converted.returncode == 0, converted.stderr
    assert "requests have no times" in converted.stderr
    graven.convert_requests(tmp_path / "same.trc", tmp_path / "same.grt")
    assert (tmp_path / "o.grt").read_bytes() == (tmp_path / "same.grt").read_bytes()


def test_cycles_of_another_clock_become_those_of_the_machines_core(quick, tmp_path):
    (tmp_path / "x.trc").write_text("0x40 READ 3\n0x80 WRITE 600\n")
    (tmp_path / "same.trc").write_text("0x40 READ 5\n0x80 WRITE 1000\n")
    graven.convert_requests(tmp_path / "same.trc", tmp_path / "same.grt")
    for clock in ("1.2 GHz", "1200MHz"):
        done = quick("trace", "convert", "x.trc", "--to", "o.grt", "--clock", clock)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "o.grt").read_bytes() == (tmp_path / "same.grt").read_bytes()
    graven.convert_requests(tmp_path / "x.trc", tmp_path / "p.grt", clock="1.2GHz")
    assert (tmp_path / "p.grt").read_bytes() == (tmp_path / "same.grt").read_bytes()
    same = graven.memory(tmp_path / "same.trc", store=None)
    found = graven.memory(tmp_path / "x.trc", clock="1200 MHz", store=None)
    plain = graven.memory(tmp_path / "x.trc", store=None)
    assert found.stats == same.stats != plain.stats
    # A store tells results of different clocks from each other.
    for clock, stats in [(None, plain.stats), ("1.2 GHz", found.stats), (None, plain.stats)]:
        record = graven.memory(tmp_path / "x.trc", clock=clock, store=tmp_path / "store")
        assert record.stats == stats


def test_clocks_and_levels_that_say_nothing_are_refused(quick, tmp_path):
    (tmp_path / "x.trc").write_text("0x40 READ 3\n")
    (tmp_path / "gem5").write_bytes(TIMED["a packet trace of gem5"])
    (tmp_path / "v").write_bytes(UNTIMED["a read-write trace of Ramulator 2"])
    record(quick)
    (tmp_path / "lackey").write_bytes(LACKEY)
    before = sorted(path.name for path in tmp_path.iterdir())
    to = ("--to", "o.grt")
    for arguments, expected in [
        (("memory", "x.trc", "--clock", "3 ns"), "clock: '3 ns' is not allowed; a number of Hz"),
        (("memory", "x.trc", "--clock", "0.5 Hz"), "from 1 Hz to 1000 THz and whole in Hz"),
        (("memory", "x.trc", "--levels", "1,2"), "only a read-write trace of Ramulator 2 has"),
        (("memory", "x.trc", "--relative"), "only a trace of DRAMSys may have relative cycles"),
        (("memory", "gem5", "--clock", "1 GHz"), "a packet trace of gem5 says its own"),
        (("memory", "v"), "line 1: expected a vector of decimal numbers"),
        (("memory", "v", "--levels", "1,2"), "line 1: expected a vector of decimal numbers"),
        (("memory", "v", "--levels", "1,2,x"), "is not a list of numbers separated by commas"),
        (("memory", "v", "--levels", "0,2,3"), "levels: 0 is not allowed"),
        (("memory", "v", "--levels", "99999999,99999999,99999999"), "product is at most 2^58"),
        (("trace", "convert", "v", *to), "line 1: expected a vector of decimal numbers"),
        (("trace", "convert", "t.gvt", "--to", "c", "--clock", "1GHz"), "--clock does not go with"),
        (("trace", "convert", "lackey", "--to", "o.gvt", "--levels", "1"), "--levels does not go"),
        (("trace", "convert", "lackey", "--to", "o.gvt", "--machine", "silo"), "--machine does n"),
    ]:
        done = quick(*arguments)
        assert done.returncode == 2, arguments
        assert expected in " ".join(done.stderr.split()), arguments
        found = sorted(path.name for path in tmp_path.iterdir() if path.name != "graven-results")
        assert found == before, arguments


def test_a_file_that_is_compressed_twice_is_taken_for_no_instructions(quick, tmp_path):
    (tmp_path / "x").write_bytes(lzma.compress(gzip.compress(loads(100))))
    done = quick("trace", "convert", "x", "--to", "o.gvt")
    assert "or USIMM, found what looks like a file compressed" in " ".join(done.stderr.split())


def test_no_text_is_taken_for_instructions(quick, tmp_path):
    (tmp_path / "x").write_bytes(b"<html>503</html>" * 4)
    done = quick("trace", "convert", "x", "--to", "o.gvt")
    assert "or USIMM, found a text of no known format" in " ".join(done.stderr.split())


def test_a_trace_of_requests_is_one_whatever_the_name_of_the_file_to_write(quick, tmp_path):
    (tmp_path / "v1.nvt").write_bytes(OWN["a request trace of NVMain"])
    for out in ("out.trc", "out"):
        done = quick("trace", "convert", "v1.nvt", "--to", out)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / out).read_bytes() == OWN["a request trace of NVMain"]
    done = quick("trace", "convert", "v1.nvt", "--to", "out.gvt")
    assert "a trace of requests cannot be made a program trace" in done.stderr


@pytest.mark.parametrize("kind", ["path", "symbolic", "hard"])
def test_no_conversion_takes_the_place_of_its_source(quick, tmp_path, kind):
    record(quick)
    (tmp_path / "c").write_bytes(b"\0instructions")
    (tmp_path / "d").write_bytes(b"\0instructions")
    (tmp_path / "r.trc").write_text("0x40 READ 1\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for sources in (["t.gvt"], ["c"], ["d", "c"], ["r.trc"]):
        out = tmp_path / f"{kind}-{len(sources)}-{sources[-1]}"
        if kind == "path":
            out = tmp_path / "." / sources[-1]
        elif kind == "symbolic":
            out.symlink_to(sources[-1])
        else:
            out.hardlink_to(tmp_path / sources[-1])
        done = quick("trace", "convert", *sources, "--to", str(out))
        assert done.returncode == 2
        assert f"--to: {out} would take the place of what is read: SOURCES" in done.stderr
        paths = [tmp_path / name for name in sources]
        convert = {
            "t.gvt": lambda paths=paths, out=out: graven.export_champsim(*paths, out),
            "r.trc": lambda paths=paths, out=out: graven.convert_requests(*paths, out),
            "c": lambda paths=paths, out=out: graven.import_champsim(paths, out),
        }
        with pytest.raises(graven.OutputError, match="would take the place of what is read"):
            convert[sources[-1]]()
        if kind != "path":
            out.unlink()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("pack", PACKERS.values())
def test_requests_are_read_as_they_are_compressed_by_memory_and_conversions(quick, tmp_path, pack):
    (tmp_path / "r.trc").write_bytes(pack(b"0x40 READ 1\n0x80 WRITE 2\n"))
    done = quick("memory", "r.trc", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert documents(done.stdout)["stats"]["requests"] == 2
    done = quick("trace", "convert", "r.trc", "--to", "r.grt")
    assert "wrote r.grt: 2 requests" in done.stderr
    assert graven.memory(tmp_path / "r.trc").requests == 2


@pytest.mark.parametrize("design", ["base", "fwb", "hoop", "lad", "morlog-slde", "silo"])
def test_old_data_of_recorded_writes_are_what_was_written_before(real, design):
    run = ("run", "--design", design, "--workload", "hash", "--transactions", "500")
    assert real(*run, "--request-trace", "r.grt").returncode == 0
    record = documents(real("memory", "r.grt", "--format", "json").stdout)
    assert record["stats"]["writes"] > 500
    assert record["stats"]["old_data_mismatches"] == 0


def test_requests_are_recorded_in_either_format_and_converted(real, tmp_path):
    run = ("run", "--design", "silo", "--workload", "hash", "--transactions", "200")
    for name in ("r.nvt", "r.grt"):
        assert real(*run, "--request-trace", name).returncode == 0
    for source, target in (("r.grt", "s.nvt"), ("r.nvt", "s.grt")):
        done = real("trace", "convert", source, "--to", target)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "s.nvt").read_text() == (tmp_path / "r.nvt").read_text()
    assert (tmp_path / "s.grt").read_bytes() == (tmp_path / "r.grt").read_bytes()
    text, binary = (real("memory", name, "--format", "json") for name in ("r.nvt", "r.grt"))
    assert text.returncode == binary.returncode == 0
    assert text.stdout == binary.stdout

    whole = (tmp_path / "r.grt").read_bytes()
    (tmp_path / "cut.grt").write_bytes(whole[:-1])
    for arguments in (("memory", "cut.grt"), ("trace", "convert", "cut.grt", "--to", "x")):
        done = real(*arguments)
        assert done.returncode == 2
        at = len(whole) - 20
        expected = f"cut.grt: byte {at}: expected the end, of 20 bytes, found 19 and no more"
        assert expected in done.stderr
    (tmp_path / "r.trc").write_text("0x40 READ 1\n")
    assert real("trace", "convert", "r.trc", "--to", "d.grt").returncode == 0
    done = real("trace", "convert", "d.grt", "--to", "x.nvt")
    assert "data that are not known are written as zeros: of 1 requests" in done.stderr
    assert (tmp_path / "x.nvt").read_text() == f"NVMV0\n1 R 0x40 {ZERO} 0\n"
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("pack", [bytes, *PACKERS.values()])
def test_conversions_and_replays_read_all_of_a_pipe(quick, tmp_path, pack):
    os.mkfifo(tmp_path / "pipe")
    requests = b"0x40 READ 1\n" * 2000
    for content, command, expected in [
        (loads(400), ("trace", "convert", "pipe", "--to", "t.gvt"), "wrote t.gvt"),
        (requests, ("trace", "convert", "pipe", "--to", "r.grt"), "2,000 requests"),
        (requests, ("memory", "pipe"), "2000 requests"),
    ]:
        writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(pack(content),))
        writer.start()
        done = quick(*command)
        writer.join()
        assert done.returncode == 0, done.stderr
        assert expected in done.stderr
    [thread] = documents(quick("trace", "info", "t.gvt", "--format", "json").stdout)["threads"]
    assert thread["loads"] == 400


def converted(real, *sources, to="o.gvt"):
    done = real("trace", "convert", *sources, "--to", to)
    assert done.returncode == 0, done.stderr
    [thread] = documents(real("trace", "info", to, "--format", "json").stdout)["threads"]
    return thread, done.stderr


def test_cloudsuite_is_read_when_asked_for_and_named_when_not(real, tmp_path):
    records = [cloudsuite(0x400000 + 4 * n, [1 << 20], [1 << 21]) for n in range(8)]
    (tmp_path / "c").write_bytes(b"".join(records))
    done = real("trace", "convert", "c", "--to", "o.gvt")
    assert done.returncode == 2
    assert "c: byte 64: expected in file 1: an instruction of 64 bytes, found what" in done.stderr
    assert "--layout cloudsuite" in done.stderr
    assert not (tmp_path / "o.gvt").exists()
    thread, _ = converted(real, "c", "--layout", "cloudsuite")
    assert (thread["loads"], thread["stores"]) == (8, 8)


def test_odd_instructions_are_said(real, tmp_path):
    odd = [
        instruction(branch=2, taken=7),
        instruction(stores=[0xE]),
        instruction(stores=[0x1000, 0xFF]),
        instruction(ip=0, loads=[0x2000]),
    ]
    (tmp_path / "c").write_bytes(b"".join(odd))
    thread, said = converted(real, "c")
    assert (thread["loads"], thread["stores"], thread["instructions"]) == (1, 1, 2)
    assert "stores below address 256, which are numbers of registers, are left out: 2" in said
    assert "older versions of ChampSim end a trace: 1" in said
    thread, said = converted(real, "c", "--instructions", "1")
    assert "left out" not in said


def test_requests_are_read_as_their_simulators_do(real, tmp_path):
    (tmp_path / "r.trc").write_text("0x40 BOFF 1\n0x80 IFETCH 2\n0xc0 write 3\n0xc0 read 4\n")
    done = real("memory", "r.trc", "--format", "json")
    stats = documents(done.stdout)["stats"]
    assert (stats["reads"], stats["writes"]) == (2, 2)
    assert "taken for reads, as by DRAMsim3: 1, the first in line 2 (IFETCH)" in done.stderr
    lines = [f"{10 * n} R {64 * n:#x} {ZERO} 0\n" for n in (1, 2, 3)]
    (tmp_path / "r.nvt").write_text("".join(lines))
    for name, pack in {"r.nvt": bytes, "r.nvt.xz": lzma.compress}.items():
        (tmp_path / name).write_bytes(pack("".join(lines).encode()))
        done = real("memory", name, "--format", "json")
        assert documents(done.stdout)["stats"]["requests"] == 2
        assert "the first request is left out, as by NVMain" in done.stderr


CHECKSUMS = {"gz": ("gzip", -8), "xz": ("xz", -40), "bz2": ("bzip2", 12)}


@pytest.mark.parametrize("ending", PACKERS)
def test_damaged_sources_are_refused_by_every_reader(real, tmp_path, ending):
    pack, (called, checksum) = PACKERS[ending], CHECKSUMS[ending]
    instructions = (loads(20_000), loads(20_000, 20_000))
    requests = (b"0x40 READ 1\n" * 20_000, b"0x80 READ 9\n" * 20_000)
    for (one, two), command in [
        (instructions, ("trace", "convert", "x", "--to", "o")),
        (requests, ("trace", "convert", "x", "--to", "o.grt")),
        (requests, ("memory", "x")),
    ]:
        first, second = pack(one), bytearray(pack(two))
        (tmp_path / "x").write_bytes(first + second)
        assert real(*command).returncode == 0
        for name in ("o", "o.grt"):
            (tmp_path / name).unlink(missing_ok=True)
        second[checksum] ^= 0xFF
        (tmp_path / "x").write_bytes(first + second)
        done = real(*command)
        assert done.returncode == 2
        where = f"byte {len(first)}: the stream of {called} that begins at byte {len(first)}"
        assert f"{where} is damaged" in done.stderr
        assert not {"o", "o.grt"} & {path.name for path in tmp_path.iterdir()}
