"""Small stores that the distribution's own tools make, and the verdict of their checkers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from graven.laboratory.known_checkers import FOLDER

RECORDS, SECONDS = 300, 5


def _tool(*words: str, text: str = "", folder: Path) -> None:
    subprocess.run(words, input=text, text=True, cwd=folder, check=True, capture_output=True)


def _lines(form: str) -> str:
    return "".join(form.format(n=number) for number in range(1, RECORDS + 1))


def _lmdb(folder: Path) -> Path:
    head = "VERSION=3\nformat=print\ntype=btree\nmapsize=1048576\nHEADER=END\n"
    text = head + _lines(" key{n:03}\n value{n:03}\n") + "DATA=END\n"
    _tool("mdb_load", "-n", "store.mdb", text=text, folder=folder)
    return folder / "store.mdb"


def _sqlite(folder: Path) -> Path:
    rows = _lines("insert into t values ({n}, 'value{n}');\n")
    text = f"create table t(k integer primary key, v text);create index i on t(v);begin;{rows}end;"
    _tool("sqlite3", "store.db", text=text, folder=folder)
    return folder / "store.db"


def _tdb(folder: Path) -> Path:
    text = "create store.tdb\n" + _lines("insert key{n} value{n}\n")
    _tool("tdbtool", text=text, folder=folder)
    return folder / "store.tdb"


def _gdbm(folder: Path) -> Path:
    text = _lines("store key{n} value{n}\n")
    _tool("gdbmtool", "--norc", "--quiet", "--newdb", "store.gdbm", text=text, folder=folder)
    return folder / "store.gdbm"


def _loaded(manager: str, name: str, load: str, form: str, *more: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        _tool(manager, "create", name, *more, folder=folder)
        (folder / "tsv").write_text(_lines(form))
        _tool(manager, load, name, "tsv", folder=folder)
        return folder / name

    return make


def _bdb(kind: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        text = _lines("key{n}\nvalue{n}\n")
        _tool("db5.3_load", "-T", "-t", kind, "store.bdb", text=text, folder=folder)
        return folder / "store.bdb"

    return make


def _rrd(folder: Path) -> Path:
    source, archive = "DS:a:GAUGE:600:U:U", "RRA:AVERAGE:0.5:1:600"
    start = 1_000_000_000
    _tool(
        "rrdtool", "create", "store.rrd", "--start", str(start), "--step", "300", source, archive,
        folder=folder,
    )  # fmt: skip
    values = [f"{start + 300 * number}:{number}" for number in range(1, RECORDS + 1)]
    _tool("rrdtool", "update", "store.rrd", *values, folder=folder)
    return folder / "store.rrd"


def _pool(kind: str, *more: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        _tool("pmempool", "create", kind, *more, "store.pool", folder=folder)
        return folder / "store.pool"

    return make


def _journald(folder: Path) -> Path:
    text = _lines(
        "__REALTIME_TIMESTAMP={n}\n__MONOTONIC_TIMESTAMP={n}\n"
        "_BOOT_ID=00000000000000000000000000000001\nMESSAGE=value{n}\n\n"
    )
    (folder / "entries").write_text(text)
    remote = "/lib/systemd/systemd-journal-remote"
    _tool(remote, "-o", "store.journal", "entries", folder=folder)
    return folder / "store.journal"


STORES: Mapping[str, tuple[str, Callable[[Path], Path]]] = {
    "LMDB": ("lmdb", _lmdb),
    "SQLite": ("sqlite", _sqlite),
    "TDB": ("tdb", _tdb),
    "GDBM": ("gdbm", _gdbm),
    "Kyoto Cabinet, hash": (
        "kyoto",
        _loaded("kchashmgr", "store.kch", "import", "key{n}\tvalue{n}\n"),
    ),
    "Kyoto Cabinet, tree": (
        "kyoto",
        _loaded("kctreemgr", "store.kct", "import", "key{n}\tvalue{n}\n"),
    ),
    "Tokyo Cabinet, hash": (
        "tokyo",
        _loaded("tchmgr", "store.tch", "importtsv", "key{n}\tvalue{n}\n", "100"),
    ),
    "Tokyo Cabinet, tree": (
        "tokyo",
        _loaded("tcbmgr", "store.tcb", "importtsv", "key{n}\tvalue{n}\n"),
    ),
    "Tokyo Cabinet, fixed": (
        "tokyo",
        _loaded("tcfmgr", "store.tcf", "importtsv", "{n}\tvalue{n}\n", "16"),
    ),
    "Tokyo Cabinet, table": (
        "tokyo",
        _loaded("tctmgr", "store.tct", "importtsv", "key{n}\tcolumn\tvalue{n}\n"),
    ),
    "Berkeley DB, tree": ("bdb", _bdb("btree")),
    "Berkeley DB, hash": ("bdb", _bdb("hash")),
    "RRDtool": ("rrd", _rrd),
    "PMDK, libpmemobj": ("pmempool", _pool("obj", "--layout=x")),
    "PMDK, libpmemblk": ("pmempool", _pool("blk", "512")),
    "PMDK, libpmemlog": ("pmempool", _pool("log")),
    "journald": ("journald", _journald),
}
"""Stores: the name of their checker, and what makes one in a folder."""


def passes(checker: str, path: Path) -> bool:
    """Tells whether a checker finds a file good; one that does not end does not."""
    command = ["sh", str(FOLDER / f"{checker}.sh"), str(path)]
    try:
        done = subprocess.run(
            command, timeout=SECONDS, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
