"""`graven capture`: libraries and programs that are installed, their recipes, and crashes."""

import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from capturing import IS_REQUIRED, explained, needs
from conftest import ENVIRONMENT, python

from graven.capture import CaptureError, capture

pytestmark = pytest.mark.usefixtures("tools")

# Steps of SQLite's statements that store something: the first is an insert.
STATEMENTS = {
    "alone": 11,
    # BEGIN to COMMIT: pages are written by the step that commits.
    "several": 2,
    "unspilled": 2,
}


def _of_sqlite(captured, programs, mode, **more):
    needs(Path("/usr/include/sqlite3.h").exists(), "libsqlite3-dev")
    program = programs("sqlite", "-lsqlite3")
    return explained(captured("sqlite", mode, tx=None, like="sqlite", of=program, **more))


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


def test_commands_of_redis_are_transactions(tmp_path):
    server = shutil.which("redis-server")
    needs(server, "redis-server")
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
    careful = real("hygiene", trace, "--fail-on", "waste")
    assert careful.returncode == 0, careful.stdout


def test_a_program_that_stores_outside_transactions_is_judged(captured, real, tmp_path):
    report = explained(captured("transactions", "between"))
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
    explained(captured("transactions", "again"))
    violated = real("crash", "--workload", str(tmp_path / "x.gvt"), "--design", "silo")
    assert violated.returncode == 1, violated.stdout + violated.stderr
    [replay] = (tmp_path / "graven-results").glob("*.litmus")
    steps = [line.strip() for line in replay.read_text().splitlines() if "w200000" in line]
    assert "outside w200000 = 5" in steps
    assert "w200000 = 5" in steps
    again = real("litmus", str(replay))
    assert again.returncode == 1
    assert "w200000: 0x0 -> 0x5, outside" in again.stdout


def test_a_program_without_transactions_is_held_to_what_it_has_stored(captured, real, tmp_path):
    explained(captured("transactions", "ten", tx=None))
    kept = real("crash", "--workload", str(tmp_path / "x.gvt"), "--design", "silo,fwb")
    assert kept.returncode == 0, kept.stdout + kept.stderr
    assert kept.stdout.count("20 words were stored to outside transactions") == 2


@pytest.mark.parametrize(
    ("recipe", "needed"), [("redis-set", "redis-benchmark"), ("python-sqlite", "/usr/bin/python3")]
)
def test_programs_whose_heap_is_persistent_are_captured_and_crashed(real, recipe, needed):
    needs(shutil.which(needed), needed)
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
def test_a_server_that_fails_or_is_asked_in_vain_is_told(tmp_path, server):
    clients, said = SERVERS[server]
    script = f"""
from pathlib import Path
from graven.capture import CaptureError, Request, Served, run
place = Path({str(tmp_path)!r})
served = Served(place / "socket", {tuple(map(tuple, clients))!r})
command = ("sh", "-c", {server!r}, "sh", str(served.address))
try:
    run(Request(command, pm_heap=True, served=served), place / "x.gvt")
except CaptureError as error:
    print(error)
"""
    done = python("-c", script)
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
    refused = real("crash", "--workload", "btree", "--design", "silo", "--verify", "[ {image} ]")
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


LIKE = {
    # Packages with the tool, the file that it makes and changes, its commands, and transactions.
    "tdb": (
        "tdbtool",
        ["tdbtool"],
        "create {pool}\ninsert a 1\ninsert b 2\n"
        "transaction_start\ninsert c 3\ninsert d 4\ntransaction_commit\ninsert e 5\n",
        4,
    ),
    "gdbm": (
        "gdbmtool",
        ["gdbmtool", "--norc", "--quiet", "--newdb", "{pool}"],
        "store a 1\nstore b 2\ndelete a\n",
        3,
    ),
    "tokyo": ("tchmgr", ["tchmgr", "put", "{pool}", "a", "1"], "", 1),
    "rrd": ("rrdtool", ["rrdtool", "update", "{pool}", "1000000300:5"], "", 1),
}


@pytest.mark.parametrize("like", LIKE)
def test_transactions_of_known_libraries_are_found_in_stripped_ones(like, tmp_path):
    tool, command, text, transactions = LIKE[like]
    if shutil.which(tool) is None:
        pytest.skip(f"not installed: {tool}")
    pool = str(tmp_path / "pool")
    if like == "tokyo":
        subprocess.run(["tchmgr", "create", pool], check=True)
    if like == "rrd":
        archive = ("--step", "300", "DS:a:GAUGE:600:U:U", "RRA:AVERAGE:0.5:1:60")
        begin = ("rrdtool", "create", pool, "--start", "1000000000")
        subprocess.run([*begin, *archive], check=True)
    words = [word.format(pool=pool) for word in command]
    found = capture(
        words, tmp_path / "x.gvt", pm_files=["*/pool"], like=like, only_pm=True,
        input=text.format(pool=pool).encode(),
    )  # fmt: skip
    assert found.explained
    assert found.report["transactions"] == transactions
    assert found.report["words_stored_outside"] == 0


def test_a_program_without_any_function_of_a_preset_is_refused(tmp_path, programs):
    program = [str(programs("late")), str(tmp_path / "pool"), "once"]
    with pytest.raises(CaptureError, match="any of gdbm_store gdbm_delete"):
        capture(program, tmp_path / "x.gvt", pm_files=["*/pool"], like="gdbm")
