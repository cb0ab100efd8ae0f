"""The native module: the simulation itself. Text in, text out; everything is JSON."""

from typing import BinaryIO, Literal

__version__: str

RECOVERY_TRANSACTIONS: int
MINIMISING_RUNS: int
"""How many transactions take as long as a recovery that is timed; the run is repeated for them."""

class ConfigError(ValueError):
    """Input was refused; the message names what, where, and what is allowed.

    Examples:
        >>> graven.run("silo", "hash", threads=0)
        Traceback (most recent call last):
            ...
        graven.ConfigError: threads: 0 is not allowed; 1 or more

        It is a `ValueError`, and nothing has run:

        >>> try:
        ...     graven.run("silo", "hash", pm__write_ns="slow")
        ... except ValueError as error:
        ...     print(error)
        settings: `pm.write_ns` = "slow" is not allowed; it must be a number from 0.1 to 100000
    """

class TraceError(ValueError):
    """A trace file cannot be read; the message names the file and the line.

    Examples:
        >>> from pathlib import Path
        >>> trace = '''0x0000 READ 0
        ... 0x1000 WRITE 1O
        ... '''
        >>> written = Path("requests.txt").write_text(trace)
        >>> graven.memory("requests.txt")
        Traceback (most recent call last):
            ...
        graven.TraceError: requests.txt: line 2: expected a cycle, a decimal number below 2^62,
        found `1O`
    """

class SimulationError(RuntimeError):
    """A simulation failed, for example a load that did not return what was stored.

    Examples:
        >>> try:
        ...     graven.run("fwb", "btree", transactions=500, pm__log_region_bytes="4 KB")
        ... except graven.SimulationError as error:
        ...     print(error)
        fwb on btree: design fwb: the log of 126 slots is full, and its oldest record belongs to the
        running transaction of thread 4, which needs more: it does not fit beside the others; raise
        fwb.log_bytes
    """

class Cancelled(RuntimeError):
    """A simulation was stopped by `cancel`.

    Examples:
        At Ctrl-C, functions of `graven` raise `KeyboardInterrupt`. Who runs tasks of the native
        module on threads of their own stops them so:

        >>> from graven.running.job import Job
        >>> from graven.engine.machine import Machine
        >>> task = Job("silo", "hash", Machine("silo"), transactions=100).simulation()
        >>> task.cancel()
        >>> try:
        ...     task.run()
        ... except graven.Cancelled:
        ...     print("cancelled")
        cancelled
    """

def catalogue() -> str:
    """Everything that can be named: designs, workloads, machines, statistics, parameters."""

def comparison(spec_json: str) -> str:
    """What is compared on a machine where nothing else is asked for; checks settings too."""

def papers() -> str:
    """The files of the papers' experiments and claims, by paper."""

def build() -> str:
    """What distinguishes this build from others of the same version: a digest of its sources."""

def cost(spec_json: str) -> str:
    """What a design's hardware costs on a machine: items, totals, remarks."""

class Task:
    """What runs once, on the thread that calls `run`: simulations, replays, campaigns."""

    def run(self) -> str:
        """Run to the end without holding the interpreter's lock; the result."""

    def cancel(self) -> None:
        """Make `run`, now or later, raise `Cancelled`. Any thread may call it."""

    def progress(self) -> tuple[int, int]:
        """Done so far, and in all."""

    def memory_bytes(self) -> int:
        """Memory of the host that `run` needs, at most; 0 if it has run, or nothing is known."""

    def lend(self, threads: int) -> None:
        """Let `run` use so many threads of the host at a time; the result does not depend on it."""

class Simulation(Task):
    """One simulation, checked when it is made. Its progress is in transactions committed."""

    def __init__(self, spec_json: str) -> None: ...

class MemoryReplay(Task):
    """A request trace on the memory controller and device alone. Its progress is in requests.

    It is read from an open file if there is one, otherwise from the path.
    """

    def __init__(self, spec_json: str, file: BinaryIO | None = None) -> None: ...

CampaignKind = Literal[
    "run",
    "trial",
    "adversary",
    "litmus",
    "mutants",
    "mutant",
    "programs",
    "check",
    "faults",
    "agreement",
    "powerfail",
]

class Campaign(Task):
    """A campaign of the crash laboratory on one host thread, checked when it is made.

    Its progress is in transactions, schedules or designs.
    """

    def __init__(self, kind: CampaignKind, spec_json: str) -> None: ...
    def checked(self) -> int:
        """Power failures checked so far."""

    def found(self) -> list[str]:
        """Violations found since the last call, a line each; programs are minimised later."""

    def minimising(self) -> bool:
        """Whether a violation is being minimised; a cancelled run takes its program as it is."""

class AdversaryCampaign:
    """Schedules of the adversary on several designs and host threads, checked when it is made.

    `state` is a document of another campaign of the same request, to go on from there.
    """

    def __init__(self, request_json: str, state: str | None = None) -> None: ...
    def memory_bytes(self) -> int:
        """Memory of the host that each worker needs, at most, in bytes."""

    def start(self, workers: int) -> None:
        """Let it run, once, on so many threads of its own, and return."""

    def wait(self, seconds: float) -> str:
        """Wait for its end, but not longer than this, without holding the interpreter's lock.

        Returns what has happened: `progress`, `found` (violations, each once, before their programs
        are minimised), `grown` (reports that have, told once), `failures` (all so far), `ended`.
        """

    def cancel(self) -> None:
        """Stop it soon; chunks that run count as not done. Any thread may call it."""

    def reports(self) -> str:
        """What is known so far, in the order of the request's designs."""

    def state(self) -> str:
        """A document from which a campaign of the same request goes on."""

class TraceReplay(Task):
    """A program trace on a machine, checked against each other when it is made.

    Its progress is in transactions committed.
    """

    def __init__(self, spec_json: str) -> None: ...

class Conversion(Task):
    """Traces of ChampSim made a program trace, or one of its threads made a trace of ChampSim.

    Or a trace of requests made one of another format, read from an open file if there is one,
    otherwise from the path. Its progress is in instructions, operations or requests, of 0: how
    many there are is known at the end.
    """

    def __init__(
        self,
        kind: Literal["import", "export", "requests", "threads"],
        spec_json: str,
        files: list[BinaryIO],
    ) -> None: ...

class CaptureAssembly(Task):
    """What the plugin of `graven capture` has left, made a program trace; its result is a report.

    Its progress is in transactions, of 0: how many there are is known at the end.
    """

    def __init__(self, spec_json: str) -> None: ...

def trace_info(path: str) -> str:
    """What is in a program trace: its header, sizes, and numbers for each thread."""

def trace_properties(path: str) -> str:
    """What the programs of a trace are like, as papers describe theirs; all of it is read."""

def trace_history_counts(path: str) -> str:
    """How often each kind of entry is in a trace's history; all of it is read."""

def trace_hygiene(path: str) -> str:
    """Findings of hygiene in a captured program's history, and counts; all of it is read."""

def trace_history(path: str, first: int, most: int, with_accesses: bool) -> str:
    """Sites, and entries of a trace's history from one on; stores and loads are left out or in."""
