"""Graven: a simulator and crash laboratory for hardware-assisted crash consistency.

>>> import graven
>>> record = graven.run(design="silo", workload="btree", transactions=10_000)
>>> record.stats["throughput_tx_per_s"]
>>> result = graven.compare(designs=["base", "silo"], workloads="micro", threads=8)
>>> result.normalised("base").to_pandas()
"""

from graven._engine import Cancelled, ConfigError, SimulationError, TraceError, __version__
from graven.api import Interrupted, compare, memory, run
from graven.catalogue import Catalogue, catalogue
from graven.comparison import METRICS, Comparison, Metric, Normalised
from graven.records import MemoryRecord, Record

__all__ = [
    "METRICS",
    "Cancelled",
    "Catalogue",
    "Comparison",
    "ConfigError",
    "Interrupted",
    "MemoryRecord",
    "Metric",
    "Normalised",
    "Record",
    "SimulationError",
    "TraceError",
    "__version__",
    "catalogue",
    "compare",
    "memory",
    "run",
]
