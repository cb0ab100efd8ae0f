"""The `graven` command.

Standard output carries results and nothing else; progress, notes and errors go to standard error.
Exit codes: 0 done, 1 a simulation failed or a result could not be written, 2 input was refused,
130 interrupted, 143 and 129 stopped by SIGTERM and SIGHUP. Of `graven crash`, `graven check` and
`graven litmus`, 1 also is a guarantee that was broken.
"""

from __future__ import annotations

import contextlib
import sys
from typing import NoReturn

from graven import __version__
from graven.engine import checkout

VERSION = f"graven {__version__}"
"""Output of `graven --version`."""


def main() -> NoReturn:
    """Entry point: runs a command and turns every error into one line and an exit code."""
    if (wrong := checkout.wrong_code(sys.argv[0])) is not None:
        from graven.cli.terminal import REFUSED, complain

        complain(wrong)
        sys.exit(REFUSED)
    sys.exit(execute())


def execute() -> int:
    """Runs what the arguments of the process say; returns the exit code."""
    if sys.argv[1:] == ["--version"]:
        # What parses arguments takes longer to import than all else that is needed for this.
        with contextlib.suppress(OSError):
            print(VERSION, flush=True)
            return 0
    from graven.cli import group

    return group.execute()
