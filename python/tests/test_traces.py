"""`graven trace`, and the same from Python: what goes in, what comes out, what is left behind."""

import gzip
import json
import lzma

import pytest
from conftest import documents

import graven


def run(graven, *more):
    return graven("run", "--design", "silo", "--workload", "btree", "--transactions", "10", *more)


def record(graven, *more):
    what = ("--design", "silo", "--workload", "btree", "--transactions", "10")
    return graven("trace", "record", "t.gvt", *what, *more)


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
    done = quick("trace", "record", "t.gvt", *what, FAKE_FAIL="silo")
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
    assert "btree under silo: 10 transactions, 2 threads, machine silo, seed 1" in done.stdout
    assert "2,000 operations in 2 blocks" in done.stdout
    document = documents(quick("trace", "info", "t.gvt", "--format", "json").stdout)
    assert document["header"]["workload"] == "btree"
    assert len(document["threads"]) == 2


def test_other_files_are_refused(quick, tmp_path):
    (tmp_path / "t.nvt").write_text("NVMV1\n")
    for command in ("info", "replay"):
        done = quick("trace", command, "t.nvt")
        assert done.returncode == 2
        assert "t.nvt: byte 0: expected a program trace" in done.stderr
        assert quick("trace", command, "nothing.gvt").returncode == 2


@pytest.mark.parametrize(
    ("name", "pack"), [("c", bytes), ("c.xz", lzma.compress), ("c.gz", gzip.compress)]
)
def test_traces_of_champsim_are_read_as_they_are_compressed(quick, tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(b"instructions"))
    more = ("--to", "t.gvt", "--transaction-stores", "8", "--instructions", "100")
    done = quick("trace", "convert", name, name, *more)
    assert done.returncode == 0, done.stderr
    header = documents(quick("trace", "info", "t.gvt", "--format", "json").stdout)["header"]
    assert header["texts"] == ["instructions"] * 2
    assert (header["transaction_stores"], header["instructions"]) == (8, 100)
    assert "from traces of ChampSim" in quick("trace", "info", "t.gvt").stdout


@pytest.mark.parametrize(
    ("name", "unpack"), [("c", bytes), ("c.xz", lzma.decompress), ("c.gz", gzip.decompress)]
)
def test_traces_for_champsim_are_compressed_as_their_names_say(quick, tmp_path, name, unpack):
    record(quick)
    done = quick("trace", "convert", "t.gvt", "--to", name, "--thread", "1", "--transactions", "2")
    assert done.returncode == 0, done.stderr
    assert "1,234 instructions" in done.stderr
    assert json.loads(unpack((tmp_path / name).read_bytes()))["workload"] == "btree"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "t.gvt"])


def test_options_go_with_one_direction(quick, tmp_path):
    record(quick)
    (tmp_path / "c").write_bytes(b"instructions")
    for arguments, expected in [
        (("t.gvt", "--instructions", "5"), "--instructions does not go with a program trace"),
        (("c", "--thread", "1"), "--thread does not go with a trace of ChampSim"),
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
    assert graven.trace_info(path).operations == 2000
    with pytest.raises(graven.ConfigError, match="unknown design"):
        graven.replay(path, "sillo")
    with pytest.raises(graven.TraceError, match="byte 0"):
        graven.trace_info(__file__)
    assert graven.export_champsim(path, tmp_path / "c.xz") == 1234
    assert graven.import_champsim([tmp_path / "c.xz"], tmp_path / "u.gvt").blocks == 2
    with pytest.raises(graven.ConfigError, match="list is empty"):
        graven.import_champsim([], tmp_path / "u.gvt")
    with pytest.raises(graven.ConfigError, match="transaction_stores: 0"):
        graven.import_champsim([tmp_path / "c.xz"], tmp_path / "u.gvt", transaction_stores=0)


def test_properties_are_shown_when_all_of_a_trace_is_read(quick):
    record(quick)
    done = quick("trace", "info", "t.gvt", "--properties")
    assert done.returncode == 0, done.stderr
    assert "25.0 %" in done.stdout
    assert "distinct lines stored" in done.stdout
    document = documents(quick("trace", "info", "t.gvt", "--properties", "--format", "json").stdout)
    assert document["properties"]["transactions"]["stores"]["p99"] == 7
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


@pytest.mark.engine
@pytest.mark.parametrize("design", ["base", "fwb", "hoop", "lad", "morlog-slde", "silo"])
def test_old_data_of_recorded_writes_are_what_was_written_before(real, design):
    run = ("run", "--design", design, "--workload", "hash", "--transactions", "500")
    assert real(*run, "--request-trace", "r.grt").returncode == 0
    record = documents(real("memory", "r.grt", "--format", "json").stdout)
    assert record["stats"]["writes"] > 500
    assert record["stats"]["old_data_mismatches"] == 0


@pytest.mark.engine
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
    assert "have no data, which NVMain's format must have" in done.stderr
    assert not (tmp_path / "x.nvt").exists()
    assert not (tmp_path / "x").exists()
