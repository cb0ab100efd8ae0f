"""`python -m tests.recorded record|check|list`; the README says more."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

from . import kinds, store
from . import runs as listing
from .compare import Difference, differences
from .mapping import Mapping, MappingError
from .store import Json

SCHEDULES = ("adversary", "mutants")
"""Groups whose runs have many schedules each."""

EVERY = 8
"""Distance of the runs of those groups that `check --quick` takes, beginning with the first."""

MAPPING = Path(__file__).with_name("mapping.toml")


def main(arguments: Sequence[str]) -> int:
    """Does what the command line says; returns the exit code."""
    given = _parser().parse_args(arguments)
    try:
        return int(given.command(given))
    except MappingError as error:
        print(f"{given.mapping}: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.recorded")
    commands = parser.add_subparsers(required=True)
    for name, command, what in (
        ("record", _record, "run everything and write the records anew"),
        ("check", _check, "run what is recorded and compare"),
        ("list", _list, "name the runs"),
    ):
        one = commands.add_parser(name, help=what)
        one.set_defaults(command=command)
        only = "groups to write (a glob)" if name == "record" else "runs to take (a glob)"
        one.add_argument("--only", default="*", metavar="PATTERN", help=only)
        if name != "list":
            one.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (2)")
        if name == "check":
            what = "the mapping (mapping.toml); /dev/null is none"
            few = f"of campaigns of schedules ({', '.join(SCHEDULES)}), every {EVERY}th alone"
            one.add_argument("--quick", action="store_true", help=few)
            one.add_argument("--mapping", type=Path, default=MAPPING, metavar="FILE", help=what)
        else:
            what = "programs of the engine that is run (the repository's)"
            one.add_argument(
                "--litmus", type=Path, default=listing.LITMUS, metavar="FOLDER", help=what
            )
    return parser


def _list(given: argparse.Namespace) -> int:
    for group in listing.GROUPS:
        recorded = {each["run"] for each in store.read(group)} if group in store.groups() else set()
        for run in listing.runs(group, given.litmus):
            if fnmatchcase(run.name, given.only):
                print(run.name if run.name in recorded else f"{run.name} (not recorded)")
            recorded.discard(run.name)
        for name in sorted(recorded):
            if fnmatchcase(name, given.only):
                print(f"{name} (not listed any more)")
    return 0


def _record(given: argparse.Namespace) -> int:
    missing = listing.unlisted()
    for name in missing:
        print(f"no run meets {name}; see tables.toml", file=sys.stderr)
    if missing:
        return 1
    with ProcessPoolExecutor(given.jobs) as pool:
        for group in listing.GROUPS:
            if fnmatchcase(group, given.only):
                started = time.monotonic()
                runs = listing.runs(group, given.litmus)
                count = store.write(group, pool.map(_document, runs, chunksize=4))
                print(f"{group}: {count} runs, {time.monotonic() - started:.0f} s", flush=True)
    return 0


def _document(run: listing.Run) -> Json:
    spec = {"run": run.name, "kind": run.kind, "spec": run.spec}
    return {**spec, **kinds.perform(run.kind, run.spec)}


def _check(given: argparse.Namespace) -> int:
    mapping = Mapping.read(given.mapping)
    unused = set(mapping.labels)
    begun = time.monotonic()
    count, differing, places = 0, 0, 0
    with ProcessPoolExecutor(given.jobs, initializer=_share, initargs=(mapping,)) as pool:
        for group in sorted(store.groups(), key=_place):
            documents = [each for each in store.read(group) if fnmatchcase(each["run"], given.only)]
            if given.quick and group in SCHEDULES:
                documents = documents[::EVERY]
            if not documents:
                continue
            started = time.monotonic()
            for name, found, used in pool.map(_compared, documents, chunksize=4):
                unused -= used
                differing += bool(found)
                places += len(found)
                for difference in found:
                    print(f"{name}: {difference}", flush=True)
            count += len(documents)
            seconds = time.monotonic() - started
            print(f"{group}: {len(documents)} runs, {seconds:.0f} s", file=sys.stderr, flush=True)
    if not count:
        print(f"no recorded run is called {given.only}", file=sys.stderr)
        return 2
    if given.only == "*":
        for label in mapping.labels:
            if label in unused:
                print(f"{given.mapping.name}: {label} applies to nothing")
    verdict = f"{places} differences in {differing} runs" if differing else "no difference"
    print(f"{count} runs, {time.monotonic() - begun:.0f} s: {verdict}")
    return 1 if differing else 0


def _place(group: str) -> int:
    """Groups as they are listed."""
    return [*listing.GROUPS, group].index(group)


_mapping = Mapping()


def _share(mapping: Mapping) -> None:
    """Gives a process the mapping."""
    global _mapping
    _mapping = mapping


def _compared(recorded: Json) -> tuple[str, list[Difference], set[str]]:
    """Does a recorded run again; returns its differences, and the rules that did something."""
    expected, used = _mapping.apply(recorded)
    now = kinds.perform(expected["kind"], expected["spec"])
    then = {key: value for key, value in expected.items() if key not in ("run", "kind", "spec")}
    found = []
    for difference in differences(then, now):
        label = _mapping.expects(recorded["run"], difference)
        if label is None:
            found.append(difference)
        else:
            used.add(label)
    return recorded["run"], found, used


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
