"""The group of all commands, and what becomes of their errors."""

from __future__ import annotations

import importlib
import io
import os
import sys

import click

from graven import _engine
from graven.basics import signals
from graven.basics.errors import OutputError, StoreError
from graven.cli import VERSION
from graven.cli.terminal import REFUSED, complain

FAILED, INTERRUPTED = 1, signals.INTERRUPTED

HELP = """Simulate hardware-assisted crash consistency in persistent memory.

Every persistence design runs on the same cores, caches, memory controller and device, on real data
structures doing real transactions.

\b
Examples:
  graven tour                                 two minutes with the program, step by step
  graven compare                              six designs on five micro workloads
  graven run --design silo --workload btree   one simulation: what it did
  graven crash --design silo                  power fails everywhere; is every guarantee kept?
  graven adversary --design silo              the same with drawn programs and schedules
  graven check silo                           all small programs, all that may happen to them
  graven mutants silo                         which mutants the laboratory kills
  graven reproduce silo --quick               Silo's figures and claims, in minutes
  graven explain silo-throughput-vs-fwb       what moves one of these claims
  graven cost silo                            its hardware, derived and beside its paper's table
  graven list designs                         what there is to compare
  graven capture --to kv.gvt … -- ./kv        a program of yours as it is, for every design
  graven hygiene --pm-file '*/pool' -- ./kv pool   what it forgets to flush, fence and sync
  graven powerfail kv.gvt --verify './kv check {image}'   does it survive a power failure?
  graven sweep sweep.toml --on slurm          thousands of simulations, on a cluster
  graven plot bars --out throughput.pdf       a figure for a paper, from what compare has kept
  graven results list                         what has been simulated; also query, verify, merge
  graven serve --open                         the same in the browser, with plots
  graven new design my-log                    a crate with a design of your own
  graven COMMAND --help                       options and examples of a command
"""


COMMANDS = {
    "adversary": ("adversary.adversary", "Draw programs and schedules; find violations."),
    "capture": ("capture.capture", "Trace a program as it is."),
    "check": ("check.check", "All small programs, in every way, on a design."),
    "compare": ("compare.compare", "Compare designs on workloads; table and report."),
    "completion": ("completion.completion", "Completion of names for a shell."),
    "cost": ("cost.cost", "Derive what designs cost in hardware."),
    "crash": ("crash.crash", "Let power fail everywhere; find violations."),
    "diff": ("diff.diff", "In what two results differ, or two machines."),
    "explain": ("explain.explain", "Show what moves a claim of a paper."),
    "faults": ("faults.faults", "What becomes of designs when their machine fails them."),
    "hygiene": ("hygiene.hygiene", "Find lines that are careless about persistence."),
    "list": ("listing.list_", "List designs, workloads, machines, and so on."),
    "litmus": ("litmus.litmus", "Run litmus programs; a verdict and a timeline."),
    "memory": ("memory.memory", "Replay a request trace on the memory alone."),
    "mutants": ("mutants.mutants", "Which mutants of a design the adversary kills."),
    "new": ("new.new", "Write a crate with a design or workload of your own."),
    "plot": ("plot.plot", "Draw figures for papers from stored results."),
    "powerfail": ("powerfail.powerfail", "Let power fail in a program as it is."),
    "reproduce": ("reproduce.reproduce", "Reproduce the papers: figures, tables, claims."),
    "results": ("results.results", "What is in the store: list, query, check, clean, merge."),
    "run": ("run.run", "Simulate one design on one workload; every statistic."),
    "serve": ("serve.serve", "Show the store in the browser: plots, results, progress."),
    "sweep": ("sweep.sweep", "Run all that a file asks for, here or on a cluster."),
    "tour": ("tour.tour", "Two minutes with the program, step by step."),
    "trace": ("trace.trace", "Record, replay and convert program traces."),
}
"""Each command: where it is in this package, and its line in the help of the group."""


class Unloaded(click.Command):
    """A command whose module has not been imported: what the group's help says of it."""

    def load(self) -> click.Command:
        """Imports the module; the command in it."""
        module, _, attribute = COMMANDS[str(self.name)][0].partition(".")
        command: click.Command = getattr(importlib.import_module(f"graven.cli.{module}"), attribute)
        return command


class Commands(click.Group):
    """A group that imports the module of a command when the command is about to run."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name and command with which `args` begin, and the rest of them."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, Unloaded) else command, rest


@click.group(
    cls=Commands,
    commands=[Unloaded(name, short_help=text) for name, (_, text) in COMMANDS.items()],
    help=HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(_engine.__version__, "--version", message=VERSION)
def cli() -> None:
    """The group of all commands."""


def _make_printable() -> None:
    """Where a stream cannot say a letter, it says which one it is, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def execute() -> int:
    """Runs the command that was called; turns every error into one line and an exit code."""
    try:
        signals.catch()
        _make_printable()
        status = cli.main(standalone_mode=False, complete_var="_GRAVEN_COMPLETE")
        sys.stdout.flush()
        if status == INTERRUPTED:
            return signals.exit_code()
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
    except (_engine.ConfigError, _engine.TraceError, StoreError) as error:
        complain(str(error))
        return REFUSED
    except (_engine.SimulationError, OutputError, ImportError, MemoryError) as error:
        complain(str(error) or "out of memory")
        return FAILED
    except (KeyboardInterrupt, click.Abort, _engine.Cancelled):
        complain(signals.words())
        return signals.exit_code()
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
