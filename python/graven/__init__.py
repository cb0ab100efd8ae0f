"""Graven: a simulator and crash laboratory for hardware-assisted crash consistency.

>>> import graven
>>> record = graven.run(design="silo", workload="btree", transactions=10_000)
>>> record.stats["throughput_tx_per_s"]
>>> result = graven.compare(designs=["base", "silo"], workloads="micro", threads=8)
>>> result.normalised("base").to_pandas()
>>> report = graven.crash("silo-literal", "btree", machine="cramped")
>>> report.violations[0].what
>>> graven.cost("silo")["log-buffer"].value
"""

from graven import engines

engines.use()

from graven._engine import Cancelled, ConfigError, SimulationError, TraceError, __version__
from graven.api import Interrupted, adversary, compare, cost, crash, litmus, memory, run
from graven.campaign import Shares
from graven.catalogue import Catalogue, catalogue
from graven.comparison import METRICS, Comparison, Metric, Normalised
from graven.costs import Cost
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
from graven.traces import (
    ThreadSummary,
    TraceInfo,
    export_champsim,
    import_champsim,
    record_trace,
    replay,
    trace_info,
)

__all__ = [
    "METRICS",
    "AdversaryReport",
    "Cancelled",
    "Catalogue",
    "Comparison",
    "ConfigError",
    "Cost",
    "CrashReport",
    "Event",
    "Interrupted",
    "LitmusReport",
    "LitmusResult",
    "MemoryRecord",
    "Metric",
    "Normalised",
    "Record",
    "Report",
    "Shares",
    "SimulationError",
    "ThreadSummary",
    "TraceError",
    "TraceInfo",
    "Violation",
    "__version__",
    "adversary",
    "catalogue",
    "compare",
    "cost",
    "crash",
    "export_champsim",
    "import_champsim",
    "litmus",
    "memory",
    "record_trace",
    "replay",
    "run",
    "trace_info",
]
