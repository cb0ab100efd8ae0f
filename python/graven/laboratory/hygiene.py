"""Hygiene of a captured program: lines that are careless about persistence, without any crash.

The engine follows the history of a trace and gives findings, one for each class and source line;
here they meet suppressions, costs on a machine, and the sentences that go with them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path, PurePath
from typing import Any

from graven import _engine
from graven._engine import ConfigError
from graven.basics.numbers import exact
from graven.engine.machine import Machine

SEVERITIES = ("bug", "waste")
"""Weights of findings: a power failure may lose something; the program does more than it needs."""

FLUSH_CYCLES = 2
"""A flush of a clean line: its issue slot and the store port."""

FENCE_CYCLES = 2
"""A fence with nothing to wait for, likewise."""

RELOADING = ("clflush", "clflushopt", "dc civac")
"""Flushes that take the line out of the caches: its next use reads memory."""


KNOWN = (
    ("never-flushed", "libpmemobj.so*"),
    ("sync-misses", "libpmemobj.so*"),
)
"""Classes that are no findings in libraries: libpmemobj keeps the state of a run in its pool, and
footers of chunks, which it makes anew whenever a pool is opened."""


@dataclass(frozen=True)
class Suppression:
    """Findings that are not reported: of a class, in or below a function.

    Attributes:
        of_class: Pattern of the class's name.
        function: Pattern of the function's name.
    """

    of_class: str
    function: str

    def fits(self, finding: Mapping[str, Any]) -> bool:
        """True if it suppresses a finding."""
        frames = [finding["place"], *finding["calls"]]
        names = {frame.get("function", "") for frame in frames}
        return fnmatchcase(finding["class"], self.of_class) and any(
            fnmatchcase(name, self.function) for name in names if name
        )


def read_suppressions(path: str | PathLike[str]) -> list[Suppression]:
    """Reads suppressions: a line has the pattern of a class and that of a function; # comments.

    Raises:
        ConfigError: the file cannot be read; a line has another form.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--suppress: cannot read {path}: {error}") from None
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split(None, 1)
        if not words:
            continue
        if len(words) != 2:
            raise ConfigError(
                f"--suppress: {path}, line {number}: allowed is CLASS FUNCTION, "
                f"with * for any; found {line.strip()!r}"
            )
        found.append(Suppression(words[0], words[1].strip()))
    return found


@dataclass(frozen=True)
class Hygiene:
    """Findings of hygiene in a program.

    Attributes:
        program: Arguments of the program.
        machine: Machine of the costs.
        findings: Findings, bugs first: `class`, `severity`, `place`, `count`, `problem`,
            `repair`, `calls` and so on; `where` in words, `cost_ns` where the machine has one.
        suppressed: Findings that a suppression fits.
        in_libraries: Findings in libraries of the system, if they were not asked for.
        totals: Counts of stores, flushes, fences and calls.
        notes: Sentences about what was not judged, and why.
    """

    program: Sequence[str]
    machine: str
    findings: tuple[Mapping[str, Any], ...]
    suppressed: tuple[Mapping[str, Any], ...]
    in_libraries: tuple[Mapping[str, Any], ...]
    totals: Mapping[str, int]
    notes: tuple[str, ...]

    def of(self, severity: str) -> list[Mapping[str, Any]]:
        """Findings of a severity."""
        return [finding for finding in self.findings if finding["severity"] == severity]

    def to_dict(self) -> dict[str, Any]:
        """As a document."""
        return {
            **vars(self),
            "program": list(self.program),
            "findings": list(self.findings),
            "suppressed": list(self.suppressed),
            "in_libraries": list(self.in_libraries),
            "notes": list(self.notes),
        }


def where(frame: Mapping[str, Any]) -> str:
    """A frame in words: `FILE:LINE (FUNCTION)`, or `MODULE+OFFSET (FUNCTION)`."""
    function = f" ({frame['function']})" if frame.get("function") else ""
    if frame.get("line"):
        return f"{PurePath(frame['file']).name}:{frame['line']}{function}"
    if not frame.get("module"):
        return f"code without a file at {frame.get('address', 0):#x}{function}"
    module = PurePath(frame["module"]).name
    offset = f"+{frame['address']:#x}" if frame.get("address") else ""
    return f"{module}{offset}{function}"


def judge(
    trace: str | PathLike[str],
    *,
    machine: str | PathLike[str] = "silo",
    suppressions: Iterable[Suppression] = (),
    libraries: bool = False,
) -> Hygiene:
    """Looks through the history of a captured program.

    Args:
        trace: The trace of `graven capture`.
        machine: The machine on which waste costs time.
        suppressions: Findings that are not reported.
        libraries: Findings in libraries of the system, too.

    Raises:
        ConfigError: the machine is refused.
        TraceError: it is no trace of a captured program, or a broken one.
    """
    on = Machine.find(machine)
    costs = _Costs(on)
    path = str(trace)
    found = json.loads(_engine.trace_hygiene(path))
    header = json.loads(_engine.trace_info(path))["header"]
    chosen = list(suppressions)
    kept: list[Mapping[str, Any]] = []
    suppressed: list[Mapping[str, Any]] = []
    in_libraries: list[Mapping[str, Any]] = []
    for finding in found["findings"]:
        at = place_of(finding.get("address"), header)
        whole = {**finding, "where": where(finding["place"]), "at": at}
        whole["cost_ns"] = costs.of(finding)
        if _is_known(finding) or any(suppression.fits(whole) for suppression in chosen):
            suppressed.append(whole)
        elif finding["is_library"] and not libraries:
            in_libraries.append(whole)
        else:
            kept.append(whole)
    capture = header["capture"]
    return Hygiene(
        program=tuple(capture["arguments"]),
        machine=on.name,
        findings=tuple(kept),
        suppressed=tuple(suppressed),
        in_libraries=tuple(in_libraries),
        totals=found["totals"],
        notes=tuple(_notes(found["totals"], kept, capture)),
    )


def _is_known(finding: Mapping[str, Any]) -> bool:
    """True for what a library does by design."""
    module = PurePath(finding["place"].get("module") or "").name
    return any(finding["class"] == name and fnmatchcase(module, of) for name, of in KNOWN)


def place_of(address: int | None, header: Mapping[str, Any]) -> str | None:
    """The place of an address in a captured program's files, or in memory; none of no address."""
    if address is None:
        return None
    capture = header["capture"]
    for name, region in zip(capture["files"], capture["report"]["regions"], strict=True):
        if region["start"] <= address < region["start"] + max(region["bytes"], 1):
            return f"{PurePath(name).name}+{address - region['start']:#x}"
    return f"{address:#x}"


class _Costs:
    """Times of useless instructions on a machine, by docs/explanation/architecture.md."""

    def __init__(self, machine: Machine) -> None:
        values = {name: value.value for name, value in machine.values().items()}

        def number(name: str, default: float) -> float:
            value = values.get(name, default)
            return float(value) if isinstance(value, (int, float)) else default

        self.cycle_ns = 1000 / number("core.frequency_mhz", 2000)
        self.bypass_cycles = number("controller.bypass_cycles", 8)
        levels = ("l1.latency_cycles", "l2.latency_cycles", "llc.latency_cycles")
        self.traversal_cycles = sum(number(name, 0) for name in levels)
        self.read_ns = number("pm.read_ns", 100) + number("pm.burst_ns", 10)
        self.write_ns = number("pm.write_ns", 300)

    def of(self, finding: Mapping[str, Any]) -> float | None:
        """Time of all occurrences in ns; none where nothing is wasted, or no machine has it."""
        count = finding["count"]
        match finding["class"]:
            case "clean-flush" | "flushed-twice":
                once = FLUSH_CYCLES * self.cycle_ns
                if finding.get("detail") in RELOADING:
                    once += self.traversal_cycles * self.cycle_ns + self.read_ns
            case "idle-fence":
                once = FENCE_CYCLES * self.cycle_ns
            case "store-after-non-temporal":
                once = self.bypass_cycles * self.cycle_ns + self.write_ns
            case _:
                return None
        return float(count * once)


def _notes(
    totals: Mapping[str, int], findings: Sequence[Mapping[str, Any]], capture: Mapping[str, Any]
) -> Iterable[str]:
    """Sentences about what was not judged, and why."""
    report = capture["report"]
    does = totals["flushes"] + totals["unknown_flushes"] + totals["non_temporal"] + totals["syncs"]
    if not totals["stores"]:
        yield "The program stored nothing to persistent memory: there is nothing to judge."
    elif not does:
        yield (
            f"The program stored {exact(totals['stores'])} words to persistent memory, and neither "
            "flushed nor synchronised any of it: every store would be a finding, so none is listed."
        )
    if capture["transactions"] or report["skipped"]:
        yield (
            "The trace begins with a transaction: what the program stored before it counts as "
            "durable."
        )
    places = [finding["place"] for finding in findings]
    lineless = sum(1 for place in places if place.get("module") and not place.get("line"))
    if lineless:
        yield (
            f"{exact(lineless)} findings have no source line, because their code has no debugging "
            "information: compile with -g, or install the library's."
        )
    if totals["without_module"]:
        yield (
            f"{exact(totals['without_module'])} instructions are of code that no file has (a "
            "just-in-time compiler's): they have addresses, and no lines."
        )
    if totals["unknown_flushes"]:
        yield (
            f"{exact(totals['unknown_flushes'])} flushes have addresses that the capture could not "
            "tell: lines that they cover may be called not flushed."
        )
    if totals["of_runtime"]:
        yield (
            f"{exact(totals['of_runtime'])} occurrences are the C library's own, in its allocator "
            "and buffers: they are not judged."
        )
    if totals["locks"]:
        yield (
            f"{exact(totals['locks'])} words are accessed atomically and never flushed: they are "
            "taken for locks and counters, and not judged."
        )
    if report["races"]:
        yield (
            f"{exact(report['races'])} accesses race with another thread's: another run may have "
            "other findings."
        )
    if report["bytes_unexplained"] or report["loads_unexplained"]:
        yield (
            f"{exact(report['bytes_unexplained'])} bytes and {exact(report['loads_unexplained'])} "
            "loads are explained by no recorded store: what stored there is not judged."
        )
    if report["unfinished"]:
        yield f"{exact(report['unfinished'])} transactions were not over at the end of the trace."
