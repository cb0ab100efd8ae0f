"""Graven: a simulator and crash laboratory for hardware-assisted crash consistency.

Simulate a design on a workload:

>>> import graven
>>> record = graven.run(design="silo", workload="btree", transactions=500)
>>> record
<Record: silo on btree, machine silo, threads 8, transactions 500, seed 1>
>>> record.stats["committed_transactions"]
500

Compare designs, here the throughput of eight threads, in multiples of the baseline's:

>>> result = graven.compare(
...     designs=["base", "silo"], workloads="hash,queue", transactions=200, from_start=True
... )
>>> round(result.normalised("base").mean("throughput_tx_per_s", "silo", threads=8), 2)
2.62

Let power fail at every change of the durable state:

>>> report = graven.crash("fwb-literal", "queue", machine="cramped", transactions=100)
>>> report.verdict
'violated'
>>> report.violations[0].what
'word 0x1000 holds 0x0, committed is 0xa5100, and no open transaction wrote it'

Ask what a design's hardware costs, in bytes for each thread:

>>> graven.cost("silo")["log-buffer"].value
680

Reproduce a figure of a paper:

>>> figure = graven.reproduce("hoop", "fig11", quick=True)["fig11"]
>>> [path.name for path in figure.plot().save("fig11.pdf")]
['fig11.pdf', 'fig11.csv']
"""

from graven.basics import signals

if signals.is_command():
    signals.end_quietly()

from importlib import import_module
from typing import TYPE_CHECKING

from graven.engine import checkout, native

checkout.warn()
native.use()

from graven._engine import Cancelled, ConfigError, SimulationError, TraceError, __version__
from graven.basics.errors import OutputError, StoreError

# As one imports them: a traceback says so, and they can be pickled.
for _error in (Cancelled, ConfigError, OutputError, SimulationError, StoreError, TraceError):
    _error.__module__ = __name__

if TYPE_CHECKING:
    from graven.api.hardware import cost
    from graven.api.laboratory import adversary, crash, litmus
    from graven.api.loading import load
    from graven.api.papers import (
        Claim,
        Explanation,
        Moved,
        PaperFigure,
        Reproduction,
        explain,
        reproduce,
    )
    from graven.api.simulations import Interrupted, compare, memory, run
    from graven.api.sweeps import sweep
    from graven.api.traces import (
        ThreadSummary,
        TraceInfo,
        convert_requests,
        export_champsim,
        import_champsim,
        import_trace,
        record_trace,
        replay,
        trace_info,
    )
    from graven.drawing.figures.timeline import Timeline
    from graven.engine.catalogue import Catalogue, catalogue
    from graven.engine.variants import Variant
    from graven.laboratory.crashes import Shares
    from graven.laboratory.reports import (
        AdversaryReport,
        CrashReport,
        Event,
        LitmusReport,
        LitmusResult,
        ModelAnswer,
        Report,
        Violation,
    )
    from graven.results.combining import combine
    from graven.results.comparison import METRICS, Comparison, Metric, Normalised
    from graven.results.costs import Cost
    from graven.results.intervals import Interval
    from graven.results.record import MemoryRecord, Record

_MODULES = {
    "api.hardware": ("cost",),
    "api.laboratory": ("adversary", "crash", "litmus"),
    "api.simulations": ("Interrupted", "compare", "memory", "run"),
    "api.sweeps": ("sweep",),
    "laboratory.crashes": ("Shares",),
    "results.combining": ("combine",),
    "results.comparison": ("METRICS", "Comparison", "Metric", "Normalised"),
    "results.costs": ("Cost",),
    "engine.catalogue": ("Catalogue", "catalogue"),
    "results.intervals": ("Interval",),
    "api.loading": ("load",),
    "drawing.figures.timeline": ("Timeline",),
    "results.record": ("MemoryRecord", "Record"),
    "laboratory.reports": (
        "AdversaryReport",
        "CrashReport",
        "Event",
        "LitmusReport",
        "LitmusResult",
        "ModelAnswer",
        "Report",
        "Violation",
    ),
    "api.papers": (
        "Claim",
        "Explanation",
        "Moved",
        "PaperFigure",
        "Reproduction",
        "explain",
        "reproduce",
    ),
    "api.traces": (
        "ThreadSummary",
        "TraceInfo",
        "convert_requests",
        "export_champsim",
        "import_champsim",
        "import_trace",
        "record_trace",
        "replay",
        "trace_info",
    ),
    "engine.variants": ("Variant",),
}
"""What is imported when it is asked for: names by module, as `TYPE_CHECKING` has them above."""

_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "METRICS",
    "AdversaryReport",
    "Cancelled",
    "Catalogue",
    "Claim",
    "Comparison",
    "ConfigError",
    "Cost",
    "CrashReport",
    "Event",
    "Explanation",
    "Interrupted",
    "Interval",
    "LitmusReport",
    "LitmusResult",
    "MemoryRecord",
    "Metric",
    "ModelAnswer",
    "Moved",
    "Normalised",
    "OutputError",
    "PaperFigure",
    "Record",
    "Report",
    "Reproduction",
    "Shares",
    "SimulationError",
    "StoreError",
    "ThreadSummary",
    "Timeline",
    "TraceError",
    "TraceInfo",
    "Variant",
    "Violation",
    "__version__",
    "adversary",
    "catalogue",
    "combine",
    "compare",
    "convert_requests",
    "cost",
    "crash",
    "explain",
    "export_champsim",
    "import_champsim",
    "import_trace",
    "litmus",
    "load",
    "memory",
    "record_trace",
    "replay",
    "reproduce",
    "run",
    "sweep",
    "trace_info",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
