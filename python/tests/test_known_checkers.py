"""Checkers of known stores (`--verify-like`): the store's own tool, asked so that it says bad.

Bug class: a tool that ends with exit code 0 whatever it finds convinces of everything; one that is
not installed is blamed on the design; one that fails on good files is believed.
"""

import json
import os
import shutil
import stat

import pytest
from known_stores import STORES, passes

from graven import ConfigError
from graven.laboratory.known_checkers import FOLDER, KNOWN, command_like, command_of

pytestmark = pytest.mark.checkout

# Stand-ins: output and exit code of a tool that finds a file good, and of one that finds it bad.
SAID = {
    "bdb": (("BDB5105 Verification of x succeeded.", 0), ("BDB0062 page 1: bad", 1)),
    "gdbm": (("There are 2 items in the database.", 0), ("gdbm_dump: malformed", 1)),
    "journald": (("", 0), ("FAIL: x (Bad message)", 1)),
    "kyoto": (("2 records were checked successfully", 0), ("DB::check failed", 1)),
    "lmdb": (("Entries: 2", 0), ("mdb_stat failed", 1)),
    "pmempool": (("x: consistent", 0), ("x: not consistent", 1)),
    "rrd": (("rra[0].rows = 1", 0), ("ERROR: not an RRD file", 1)),
    "sqlite": (("ok", 0), ("*** in database main ***", 0)),
    "tdb": (("Database integrity is OK and has 2 records.", 0), ("Integrity check failed.", 0)),
    "tokyo": (("record number: 1", 0), ("record number: 2", 0)),
}


def every_tool(name):
    return [tool for choice in KNOWN[name].tools for tool in choice.split("|")]


def is_installed(name):
    return all(any(map(shutil.which, choice.split("|"))) for choice in KNOWN[name].tools)


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Puts tools in front of all others on PATH that print a text and end with a code."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")

    def put(name, text, code=0):
        for tool in every_tool(name):
            path = place / tool
            path.write_text(f"#!/bin/sh\n{text}\nexit {code}\n")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return put


def test_each_has_a_script_and_packages():
    assert {path.stem for path in FOLDER.glob("*.sh")} == set(KNOWN) == set(SAID)
    for known in KNOWN.values():
        assert all((known.about, known.debian, known.fedora))


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_the_verdict_of_the_tool_is_the_exit_code(name, stand_in, tmp_path):
    store = tmp_path / "store"
    store.write_bytes(b"KC\n\0\0\0\0\0" + b"0" + bytes(100))
    for is_good, (said, code) in zip((True, False), SAID[name], strict=True):
        stand_in(name, f"echo '{said}'", code)
        assert passes(name, store) is is_good


@pytest.mark.parametrize("store", STORES)
def test_the_real_tool_passes_good_files_and_refuses_what_is_no_store(store, tmp_path):
    checker, make = STORES[store]
    if not is_installed(checker):
        pytest.skip(f"not installed: {KNOWN[checker].debian}")
    try:
        path = make(tmp_path)
    except FileNotFoundError as error:
        pytest.skip(f"not installed: {error.filename}")
    assert passes(checker, path)
    path.write_bytes(path.read_bytes()[:8])
    assert not passes(checker, path)


def test_missing_tools_are_named_with_their_packages(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, known in KNOWN.items():
        with pytest.raises(ConfigError) as refused:
            command_like(name)
        said = str(refused.value)
        assert f"verify_like: {name} needs " in said
        assert f"apt install {known.debian}; Fedora: dnf install {known.fedora}" in said
        assert all(tool in said for tool in every_tool(name))


def test_names_that_are_not_known_are_refused():
    with pytest.raises(ConfigError, match="nosuch is not known; allowed: bdb, gdbm, "):
        command_like("nosuch")
    with pytest.raises(ConfigError, match="give one"):
        command_of("true {image}", "lmdb")
    assert command_of("true {image}", None) == "true {image}"


@pytest.fixture
def ledger(programs, real, tmp_path):
    """The trace of a program that is right."""
    trace = tmp_path / "ledger.gvt"
    what = ("--to", str(trace), "--pm-file", "*/pool", "--tx", "tx", "--")
    done = real("capture", *what, str(programs("ledger")), str(tmp_path / "pool"), "40")
    assert done.returncode == 0, done.stderr
    return str(trace)


@pytest.mark.usefixtures("tools")
def test_a_campaign_uses_it_on_the_same_gate(real, ledger, programs, stand_in):
    crash = ("crash", "--workload", ledger, "--design", "silo", "--failure-modes", "structures=7")
    check = f'{programs("ledger")} "$1" check'
    stand_in("tdb", f"{check} && echo integrity is OK")
    done = real(*crash, "--verify-like", "tdb", "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)[0]["failure_modes"]["structures"] > 1
    stand_in("tdb", "echo Integrity check failed.")
    done = real(*crash, "--verify-like", "tdb")
    assert done.returncode == 2
    assert "which are good, so that it would say nothing of others" in done.stderr
    assert "Integrity check failed." in done.stderr
    # Good files have a count of 0 or 40.
    count = 'n=$(od -An -tu8 -N8 "$1" | tr -d " ")'
    stand_in("tdb", f'{count}; [ $n = 0 ] || [ $n = 40 ] && echo integrity is OK || echo "at $n"')
    done = real(*crash, "--verify-like", "tdb")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ended with exit code 1: at " in done.stdout
    assert "tdb.sh" in done.stdout
    both = real(*crash, "--verify-like", "tdb", "--verify", "true {image}")
    assert both.returncode == 2
    assert "verify_like: it names a command, and verify another" in both.stderr


@pytest.mark.usefixtures("tools")
def test_power_failures_of_programs_use_it_too(real, ledger, stand_in):
    stand_in("sqlite", "echo ok")
    done = real("powerfail", ledger, "--verify-like", "sqlite", "--images", "20")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 violations" in done.stdout
