"""`python -m tests.counts record|check|list`; benches/README.md says more."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase

from . import callgrind
from .callgrind import Count, CountError
from .table import PATH, SHORT_INSTRUCTIONS, Table, verdict


def main(arguments: Sequence[str]) -> int:
    """Does what the command line says; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.counts")
    commands = parser.add_subparsers(required=True)
    for name, command, what in (
        ("record", _record, "count, and write the table anew"),
        ("check", _check, "count, and compare with the table"),
        ("list", _list, "name the benchmarks"),
    ):
        one = commands.add_parser(name, help=what)
        one.set_defaults(command=command)
        one.add_argument("--only", default="*", metavar="PATTERN", help="benchmarks (a glob)")
        if name != "list":
            one.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (2)")
        if name == "check":
            what = f"without those of more than {SHORT_INSTRUCTIONS:,} instructions in the table"
            one.add_argument("--short", action="store_true", help=what)
    given = parser.parse_args(arguments)
    try:
        return int(given.command(given))
    except CountError as error:
        print(error, file=sys.stderr)
        return 2


def _counted(
    given: argparse.Namespace, leaving_out: Collection[str] = ()
) -> Iterator[tuple[str, Count]]:
    program = callgrind.build()
    named = [name for name in callgrind.names(program) if fnmatchcase(name, given.only)]
    wanted = [name for name in named if name not in leaving_out]
    if not wanted:
        among = "benchmark that is short" if named else "benchmark"
        raise CountError(f"no {among} is called {given.only}")
    with ThreadPoolExecutor(given.jobs) as pool:
        counts = pool.map(lambda name: callgrind.count(program, name), wanted)
        yield from zip(wanted, counts, strict=True)


def _list(given: argparse.Namespace) -> int:
    for name in callgrind.names(callgrind.build()):
        if fnmatchcase(name, given.only):
            print(name)
    return 0


def _record(given: argparse.Namespace) -> int:
    counts, compiler = {}, callgrind.compiler()
    if given.only != "*":
        before = Table.read()
        if before.compiler != compiler:
            raise CountError(f"{PATH.name} is of {before.compiler}, this is {compiler}: record all")
        counts.update(before.counts)
    for name, count in _counted(given):
        print(f"{name}: {count.per_unit:,.0f} per {count.unit}", flush=True)
        counts[name] = count
    Table(compiler, counts).write()
    return 0


def _check(given: argparse.Namespace) -> int:
    table, compiler = Table.read(), callgrind.compiler()
    long = table.long() if given.short else set()
    missing = {name for name in table.counts if fnmatchcase(name, given.only)} - long
    failed = 0
    for name, count in _counted(given, long):
        missing.discard(name)
        said = verdict(name, table.counts.get(name), count)
        print(said.line, flush=True)
        failed += said.fails
    for name in sorted(missing):
        print(verdict(name, table.counts[name], None).line)
    failed += len(missing)
    if table.compiler != compiler:
        print(f"not judged: the table is of {table.compiler}, these counts of {compiler}")
        return 0
    if failed:
        print(f"{failed} fail; if that is meant: `python -m tests.counts record`")
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
