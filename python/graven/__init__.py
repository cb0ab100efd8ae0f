"""Graven: a simulator and crash laboratory for hardware-assisted crash consistency.

>>> import graven
>>> record = graven.run(design="silo", workload="btree", transactions=10_000)
>>> record.stats["throughput_tx_per_s"]
>>> result = graven.compare(designs=["base", "silo"], workloads="micro", threads=8)
>>> result.normalised("base").to_pandas()
>>> report = graven.crash("silo-literal", "btree", machine="cramped")
>>> report.violations[0].what
>>> graven.cost("silo")["log-buffer"].value
>>> graven.reproduce("silo", "fig12", quick=True)["fig12"].plot()
"""

from graven import signals

if signals.is_command():
    signals.end_quietly()

from importlib import import_module
from typing import TYPE_CHECKING

from graven import checkout, engines

checkout.warn()
engines.use()

from graven._engine import Cancelled, ConfigError, SimulationError, TraceError, __version__

# Its module has the name of its function, and would take its place if it were imported later.
from graven.catalogue import Catalogue, catalogue
from graven.errors import OutputError, StoreError

if TYPE_CHECKING:
    from graven.api import Interrupted, adversary, compare, cost, crash, litmus, memory, run, sweep
    from graven.campaign import Shares
    from graven.comparison import METRICS, Comparison, Metric, Normalised
    from graven.costs import Cost
    from graven.loading import load
    from graven.plots.timeline import Timeline
    from graven.records import MemoryRecord, Record
    from graven.reports import (
        AdversaryReport,
        CrashReport,
        Event,
        LitmusReport,
        LitmusResult,
        Report,
        Violation,
    )
    from graven.reproduced import (
        Claim,
        Explanation,
        Moved,
        PaperFigure,
        Reproduction,
        explain,
        reproduce,
    )
    from graven.traces import (
        ThreadSummary,
        TraceInfo,
        convert_requests,
        export_champsim,
        import_champsim,
        record_trace,
        replay,
        trace_info,
    )

_MODULES = {
    "api": (
        "Interrupted",
        "adversary",
        "compare",
        "cost",
        "crash",
        "litmus",
        "memory",
        "run",
        "sweep",
    ),
    "campaign": ("Shares",),
    "comparison": ("METRICS", "Comparison", "Metric", "Normalised"),
    "costs": ("Cost",),
    "loading": ("load",),
    "plots.timeline": ("Timeline",),
    "records": ("MemoryRecord", "Record"),
    "reports": (
        "AdversaryReport",
        "CrashReport",
        "Event",
        "LitmusReport",
        "LitmusResult",
        "Report",
        "Violation",
    ),
    "reproduced": (
        "Claim",
        "Explanation",
        "Moved",
        "PaperFigure",
        "Reproduction",
        "explain",
        "reproduce",
    ),
    "traces": (
        "ThreadSummary",
        "TraceInfo",
        "convert_requests",
        "export_champsim",
        "import_champsim",
        "record_trace",
        "replay",
        "trace_info",
    ),
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
    "LitmusReport",
    "LitmusResult",
    "MemoryRecord",
    "Metric",
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
    "Violation",
    "__version__",
    "adversary",
    "catalogue",
    "compare",
    "convert_requests",
    "cost",
    "crash",
    "explain",
    "export_champsim",
    "import_champsim",
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
