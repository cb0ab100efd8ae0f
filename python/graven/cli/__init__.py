"""The `graven` command.

Standard output carries results and nothing else; progress, notes and errors go to standard error.
Exit codes: 0 done, 1 a simulation failed or a result could not be written, 2 input was refused,
130 interrupted. Of `graven crash`, `graven check` and `graven litmus`, 1 also is a guarantee that
was broken.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from graven import _engine
from graven.api import Interrupted
from graven.cli.capture import capture
from graven.cli.check import check
from graven.cli.compare import compare
from graven.cli.cost import cost
from graven.cli.crash import crash
from graven.cli.explain import explain
from graven.cli.faults import faults
from graven.cli.listing import list_
from graven.cli.litmus import litmus
from graven.cli.memory import memory
from graven.cli.mutants import mutants
from graven.cli.new import new
from graven.cli.reproduce import reproduce
from graven.cli.run import run
from graven.cli.terminal import REFUSED, complain
from graven.cli.trace import trace
from graven.output import OutputError

FAILED, INTERRUPTED = 1, 130

HELP = """Simulate hardware-assisted crash consistency in persistent memory.

Every persistence design runs on the same cores, caches, memory controller and device, on real data
structures doing real transactions.

\b
Examples:
  graven compare                              six designs on five micro workloads
  graven run --design silo --workload btree   one simulation, every statistic
  graven crash --design silo                  power fails everywhere; is every guarantee kept?
  graven check silo                           all small programs, all that may happen to them
  graven mutants silo                         which mutants the laboratory kills
  graven reproduce silo --quick               Silo's figures and claims, in minutes
  graven explain silo-throughput-vs-fwb       what moves one of these claims
  graven cost silo                            its hardware, derived and beside its paper's table
  graven list designs                         what there is to compare
  graven capture --to kv.gvt … -- ./kv        a program of yours as it is, for every design
  graven new design my-log                    a crate with a design of your own
  graven COMMAND --help                       options and examples of a command
"""


@click.group(help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    _engine.__version__, "--version", prog_name="graven", message="graven %(version)s"
)
def cli() -> None:
    """The group of all commands."""


cli.add_command(compare)
cli.add_command(reproduce)
cli.add_command(explain)
cli.add_command(run)
cli.add_command(crash)
cli.add_command(check)
cli.add_command(litmus)
cli.add_command(mutants)
cli.add_command(faults)
cli.add_command(cost)
cli.add_command(list_)
cli.add_command(memory)
cli.add_command(trace)
cli.add_command(capture)
cli.add_command(new)


def main() -> NoReturn:
    """Entry point: runs a command and turns every error into one line and an exit code."""
    sys.exit(_run())


def _run() -> int:
    try:
        status = cli.main(standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return REFUSED
    except click.UsageError as error:
        where = f" ({error.ctx.command_path} --help shows the options)" if error.ctx else ""
        complain(error.format_message().rstrip(".") + where)
        return REFUSED
    except click.ClickException as error:
        complain(error.format_message())
        return error.exit_code
    except (_engine.ConfigError, _engine.TraceError) as error:
        complain(str(error))
        return REFUSED
    except (_engine.SimulationError, OutputError, ImportError, MemoryError) as error:
        complain(str(error) or "out of memory")
        return FAILED
    except (KeyboardInterrupt, click.Abort, Interrupted, _engine.Cancelled):
        complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone; keep the interpreter from complaining when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        complain(f"{name}{error.strerror or error}")
        return FAILED
    except Exception as error:
        if os.environ.get("GRAVEN_TRACEBACK"):
            raise
        what = f"{type(error).__name__}: {error}"
        complain(f"internal error: {what} (GRAVEN_TRACEBACK=1 shows where)")
        return FAILED
