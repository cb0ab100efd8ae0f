"""`python -m tests.validation check|table|plot|measure|traces`; the README says more."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from . import plots, tables
from .champsim import ChampSim, write
from .dramsim import DRAMsim3
from .nvmain import NVMain
from .peers import MemoryPeer, Peer
from .ramulator import Ramulator
from .ratio import Ratio
from .traces import TRACES, write_nvmain

REFERENCES: tuple[type[MemoryPeer], ...] = (NVMain, DRAMsim3, Ramulator)
"""Simulators of memory."""
PEERS: Mapping[str, type[Peer]] = {
    **{each.name: each for each in REFERENCES},
    ChampSim.name: ChampSim,
}


def main(arguments: Sequence[str]) -> int:
    """Does what the command line says; returns the exit code."""
    given = _parser().parse_args(arguments)
    return int(given.command(given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.validation")
    commands = parser.add_subparsers(required=True)
    for name, command, what in (
        ("check", _check, "run Graven on all traces and compare with the peer's outputs"),
        ("table", _table, "a table of all references of memory; with --peer the runs of one"),
        ("plot", _plot, "the times of the same, as the drawings of docs/explanation/validation.md"),
        ("measure", _measure, "run the peer on all traces and write its outputs anew"),
        ("traces", _traces, "write the traces, in the geometry of NVMain, to a folder"),
    ):
        one = commands.add_parser(name, help=what)
        one.set_defaults(command=command)
        if name == "traces":
            one.add_argument("folder", type=Path)
            continue
        one.add_argument(
            "--only",
            default="*",
            metavar="PATTERN",
            help="MACHINE/TRACE; nvmain: MACHINE/SCHEDULER/TRACE; champsim: CORE/PROGRAM; a glob",
        )
        default = None if name == "table" else "nvmain"
        one.add_argument("--peer", choices=tuple(PEERS), default=default)
        if name == "check":
            one.add_argument("--json", action="store_true", help="as a document")
            what = "a parameter of Graven beside those that the comparison sets"
            one.add_argument("--set", action="append", default=[], metavar="K=V", help=what)
        if name == "plot":
            one.add_argument("file", type=Path, help="a PNG file")
        if name == "measure":
            what = "the peer, built as its README says"
            one.add_argument("--program", type=Path, required=True, metavar="FILE", help=what)
    return parser


def _check(given: argparse.Namespace) -> int:
    settings = dict(each.split("=", 1) for each in given.set)
    ratios = list(PEERS[given.peer]().compare(given.only, settings))
    outside = [each for each in ratios if not each.holds]
    if given.json:
        print(json.dumps([_document(each) for each in ratios]))
    else:
        for each in ratios:
            band = "" if each.holds else f"  outside {each.low:.2f} to {each.high:.2f}"
            print(
                f"{each.run:34} {each.quantity:14} {each.peer:>10g} {each.ours:>10g}"
                f" {each.value:6.3f}{band}"
            )
    print(f"{len(ratios)} quantities, {len(outside)} outside their bands", file=sys.stderr)
    return 1 if outside or not ratios else 0


def _document(ratio: Ratio) -> dict[str, object]:
    return {
        "run": ratio.run,
        "quantity": ratio.quantity,
        "ratio": ratio.value,
        "holds": ratio.holds,
        "reason": ratio.reason,
    }


def _table(given: argparse.Namespace) -> int:
    if given.peer is None:
        references = [reference() for reference in REFERENCES]
        compared = [(peer, list(peer.compare(given.only))) for peer in references]
        print(tables.references_markdown(compared))
        return 0
    ratios = list(PEERS[given.peer]().compare(given.only))
    of_peer = tables.champsim_markdown if given.peer == "champsim" else tables.markdown
    print(of_peer(ratios))
    return 0


def _plot(given: argparse.Namespace) -> int:
    given.file.write_bytes(plots.png(list(PEERS[given.peer]().compare(given.only))))
    return 0


def _measure(given: argparse.Namespace) -> int:
    peer = PEERS[given.peer]()
    old = peer.measured() if given.only != "*" else {}
    found, failed = {}, 0
    for run in peer.runs():
        if not fnmatchcase(run, given.only):
            found.update({run: old[run]} if run in old else {})
            continue
        try:
            with tempfile.TemporaryDirectory() as folder:
                found[run] = peer.measure(given.program, run, Path(folder))
            said = str(found[run]["cycles"])
        except RuntimeError as error:
            failed, said = failed + 1, str(error)
        print(f"{run:34} {said}", file=sys.stderr)
    peer.store(found)
    return 1 if failed else 0


def _traces(given: argparse.Namespace) -> int:
    given.folder.mkdir(parents=True, exist_ok=True)
    peer = NVMain()
    for trace in TRACES.values():
        geometry = trace.of(peer.geometry("pcm"))
        write_nvmain(trace.draw(geometry), geometry, given.folder / f"{trace.name}.nvt")
    for run in ChampSim().runs():
        write(run, given.folder / f"{run.replace('/', '-')}.champsimtrace")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
