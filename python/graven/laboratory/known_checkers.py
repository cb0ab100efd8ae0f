"""Checkers of known stores, by name (`--verify-like`): scripts that run the store's own tool.

Each script takes a file, ends with exit code 0 if its tool finds the file good, and prints what the
tool says. It knows how the tool says that a file is bad: some end with 0 whatever they find.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from graven._engine import ConfigError

FOLDER = Path(__file__).with_name("checkers")
"""Folder of the scripts."""


@dataclass(frozen=True)
class KnownChecker:
    """A checker of a known store.

    Attributes:
        about: What it runs, in words.
        tools: Programs that its script needs; of those with a `|` between them, one.
        debian: Package with these programs in Debian and Ubuntu.
        fedora: Package in Fedora.
    """

    about: str
    tools: tuple[str, ...]
    debian: str
    fedora: str


KNOWN: Mapping[str, KnownChecker] = {
    "bdb": KnownChecker(
        "db_verify of Berkeley DB", ("db_verify|db5.3_verify",), "db-util", "libdb-utils"
    ),
    "gdbm": KnownChecker(
        "gdbm_dump, and the count of gdbmtool",
        ("gdbm_dump", "gdbmtool"),
        "gdbmtool",
        "gdbm",
    ),
    "journald": KnownChecker("journalctl --verify", ("journalctl",), "systemd", "systemd"),
    "kyoto": KnownChecker(
        "the check of kchashmgr or kctreemgr, by the file's type",
        ("kchashmgr", "kctreemgr"),
        "kyotocabinet-utils",
        "kyotocabinet",
    ),
    "lmdb": KnownChecker(
        "mdb_stat -e -a, and a compacting copy by mdb_copy",
        ("mdb_stat", "mdb_copy"),
        "lmdb-utils",
        "lmdb",
    ),
    "pmempool": KnownChecker("pmempool check", ("pmempool",), "pmdk-tools", "pmempool"),
    "rrd": KnownChecker("rrdtool dump and info", ("rrdtool",), "rrdtool", "rrdtool"),
    "sqlite": KnownChecker(
        "sqlite3 with pragma integrity_check", ("sqlite3",), "sqlite3", "sqlite"
    ),
    "tdb": KnownChecker("tdbtool check", ("tdbtool",), "tdb-tools", "tdb-tools"),
    "tokyo": KnownChecker(
        "a list of all records by tchmgr, tcbmgr, tcfmgr or tctmgr, counted",
        ("tchmgr", "tcbmgr", "tcfmgr", "tctmgr"),
        "tokyocabinet-bin",
        "tokyocabinet",
    ),
}
"""Stores whose checkers are known."""


def command_like(name: str) -> str:
    """The command that checks a file of a known store, for `--verify`.

    Args:
        name: One of `KNOWN`.

    Raises:
        ConfigError: no such checker is known, or its tools are not installed.
    """
    if name not in KNOWN:
        raise ConfigError(f"verify_like: {name} is not known; allowed: {', '.join(KNOWN)}")
    known = KNOWN[name]
    missing = [
        " or ".join(choice.split("|"))
        for choice in known.tools
        if not any(map(shutil.which, choice.split("|")))
    ]
    if missing:
        raise ConfigError(
            f"verify_like: {name} needs {', '.join(missing)}, not found on PATH: install the "
            f"distribution's package (Debian, Ubuntu: apt install {known.debian}; "
            f"Fedora: dnf install {known.fedora})"
        )
    return f"sh {shlex.quote(str(FOLDER / f'{name}.sh'))} {{image}}"


def command_of(verify: str | None, like: str | None) -> str | None:
    """The one command of `--verify` or `--verify-like`.

    Raises:
        ConfigError: both are given, or the checker cannot be used.
    """
    if like is None:
        return verify
    if verify is not None:
        raise ConfigError("verify_like: it names a command, and verify another: give one")
    return command_like(like)
