"""The native module: the simulation itself. Text in, text out; everything is JSON."""

from typing import BinaryIO, Literal

__version__: str

class ConfigError(ValueError):
    """Input was refused; the message names what, where, and what is allowed."""

class TraceError(ValueError):
    """A trace file cannot be read; the message names the file and the line."""

class SimulationError(RuntimeError):
    """A simulation failed, for example a load that did not return what was stored."""

class Cancelled(RuntimeError):
    """A simulation was stopped by `cancel`."""

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

class Simulation(Task):
    """One simulation, checked when it is made. Its progress is in transactions committed."""

    def __init__(self, spec_json: str) -> None: ...

class MemoryReplay(Task):
    """A request trace on the memory controller and device alone. Its progress is in requests."""

    def __init__(self, spec_json: str) -> None: ...

class Campaign(Task):
    """A campaign of the crash laboratory on one host thread, checked when it is made.

    Its progress is in transactions, schedules or designs.
    """

    def __init__(self, kind: Literal["run", "adversary", "litmus"], spec_json: str) -> None: ...
    def judged(self) -> int:
        """Power failures checked so far."""

    def minimising(self) -> bool:
        """Whether a violation is being minimised; a cancelled run takes its program as it is."""

class TraceReplay(Task):
    """A program trace on a machine, checked against each other when it is made.

    Its progress is in transactions committed.
    """

    def __init__(self, spec_json: str) -> None: ...

class Conversion(Task):
    """Traces of ChampSim made a program trace, or one of its threads made a trace of ChampSim.

    Its progress is in instructions or operations, of 0: how many there are is known at the end.
    """

    def __init__(
        self, kind: Literal["import", "export"], spec_json: str, files: list[BinaryIO]
    ) -> None: ...

def trace_info(path: str) -> str:
    """What is in a program trace: its header, sizes, and numbers for each thread."""
