"""A stand-in for the native module: the same interface, and results from arithmetic.

It lets the front end be tested without an engine: same input, same output, in no time. The
environment makes simulations slow (`FAKE_SECONDS`, if of the design `FAKE_SLOW` when that is set),
has slow ones leave a file in the folder `FAKE_STARTED` when they start, or makes a design fail
(`FAKE_FAIL`).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import threading
import types
from pathlib import Path

__version__ = "0.0-fake"


class ConfigError(ValueError):
    pass


class SimulationError(RuntimeError):
    pass


class Cancelled(RuntimeError):
    pass


class TraceError(ValueError):
    pass


# name, summary, paper, safe, speed, write traffic (data, log, metadata, gc)
DESIGNS = [
    ("ideal", "No persistence at all", "Silo §VI.A (Non-Pers)", False, 3.2, (0.9, 0.0, 0.0, 0.0)),
    ("base", "An undo+redo entry and the line, flushed for each write", "Silo §VI.A", True, 1.0,
     (1.0, 2.0, 0.1, 0.0)),
    ("fwb", "Hardware undo+redo logging with cache force write-back", "FWB, HPCA'18", True, 1.6,
     (0.95, 1.05, 0.08, 0.0)),
    ("lad", "Logless atomic durability: lines held in the controller", "LAD, MICRO'19", True, 2.3,
     (1.02, 0.02, 0.05, 0.0)),
    ("silo", "Speculative logging: only at an overflow or failure", "Silo, HPCA'23", True, 2.9,
     (0.55, 0.03, 0.02, 0.0)),
    ("hoop", "Out-of-place update with a mapping table", "HOOP, ISCA'20", True, 2.0,
     (0.4, 0.5, 0.1, 0.3)),
]  # fmt: skip
WORKLOADS = [
    ("array", "Random swaps in an array", "micro", 1.0),
    ("btree", "Insertions into a B-tree", "micro", 0.55),
    ("hash", "Insertions into a hash table", "micro", 0.8),
    ("queue", "Enqueue and dequeue", "micro", 1.3),
    ("rbtree", "Insertions into a red-black tree", "micro", 0.45),
    ("tpcc", "TPC-C New Order", "macro", 0.2),
]
STATS = [
    ("cycles", "cycles", "count", "Simulated time from start to the last thread's end"),
    ("instructions", "instructions", "count", "Instructions executed, over all cores"),
    ("ipc", "instructions/cycle", "ratio", "Instructions per cycle and core"),
    ("committed_transactions", "transactions", "count", "Transactions acknowledged"),
    ("throughput_tx_per_s", "tx/s", "ratio", "Transactions per simulated second"),
    (
        "commit_latency_cycles_mean",
        "cycles",
        "ratio",
        "From the end of a transaction to its commit",
    ),
    ("transaction_latency_cycles_mean", "cycles", "ratio", "From begin to commit, mean"),
    ("transaction_latency_cycles_p99", "cycles", "gauge", "From begin to commit, 99th percentile"),
    ("l1_hits", "accesses", "count", "Accesses that the L1 served"),
    ("controller_write_requests", "requests", "count", "Writes accepted by the controller"),
    ("media_write_requests", "requests", "count", "Lines programmed in the media"),
    ("media_write_requests_data", "requests", "count", "Of these, program data"),
    ("media_write_requests_log", "requests", "count", "Of these, log"),
    ("media_write_requests_metadata", "requests", "count", "Of these, metadata"),
    ("media_write_requests_gc", "requests", "count", "Of these, garbage collection"),
    ("media_bytes_written", "B", "count", "Bytes written to the media"),
    ("media_bits_programmed", "bits", "count", "Cells that changed"),
    ("log_bytes_written", "B", "count", "Bytes of log entries"),
    ("read_energy_pj", "pJ", "gauge", "Energy of reading"),
    ("write_energy_pj", "pJ", "gauge", "Energy of writing"),
    ("image_digest", "", "digest", "Digest of the final image"),
]
SECTIONS = {
    "core": [
        ("count", "Number of cores", "cores", "a whole number from 1 to 64", 8,
         "Silo Table II", None),
        ("frequency_mhz", "Clock frequency", "MHz", "a whole number from 100 to 10000", 2000,
         "Silo Table II", None),
    ],
    "pm": [
        ("read_ns", "Reading a closed row", "ns", "a number from 0.1 to 10000", 50.0,
         "Silo Table II", None),
        ("write_ns", "Programming one media line", "ns", "a number from 0.1 to 100000", 150.0,
         "Silo Table II", None),
        ("buffer_ns", "An access to the on-PM buffer", "ns", "a number from 0.1 to 1000", 10.0,
         None, "the paper gives no latency; that of an SRAM of its size"),
    ],
}  # fmt: skip


def _parameter(section, item):
    key, doc, unit, allowed, default, _source, _assumed = item
    return {
        "key": f"{section}.{key}",
        "doc": doc,
        "unit": unit,
        "allowed": allowed,
        "default": str(default),
    }


def catalogue():
    values = [
        {
            "key": f"{section}.{item[0]}",
            "value": item[4],
            "unit": item[2],
            "doc": item[1],
            "source": item[5],
            "assumed": item[6],
        }
        for section, items in SECTIONS.items()
        for item in items
    ]
    return json.dumps(
        {
            "designs": [
                {
                    "name": name,
                    "summary": summary,
                    "paper": paper,
                    "safe": safe,
                    "default": name != "hoop",
                    "parameters": [],
                }
                for name, summary, paper, safe, _, _ in DESIGNS
            ],
            "workloads": [
                {"name": name, "summary": summary, "group": group, "parameters": []}
                for name, summary, group, _ in WORKLOADS
            ],
            "machines": [
                {
                    "name": name,
                    "title": f"The machine of {name}",
                    "file": f"papers/{name}/machine.toml",
                    "values": values,
                }
                for name in ("silo", "morlog")
            ],
            "stats": [
                dict(zip(("name", "unit", "kind", "description"), item, strict=True))
                for item in STATS
            ],
            "sections": [
                {
                    "name": name,
                    "doc": f"About {name}",
                    "parameters": [_parameter(name, i) for i in items],
                }
                for name, items in SECTIONS.items()
            ],
        }
    )


def _find(kind, name, entries):
    for entry in entries:
        if entry[0] == name:
            return entry
    known = ", ".join(entry[0] for entry in entries)
    raise ConfigError(f"unknown {kind} `{name}`; known are {known}")


def _machine(spec):
    machine = spec["machine"]
    if "file" in machine:
        if "boom" in machine["text"]:
            raise ConfigError(f"{machine['file']}: unknown key `boom`; known are core, pm")
        return machine["file"]
    _find("machine", machine["preset"], [("silo",), ("morlog",)])
    return machine["preset"]


def _config(spec):
    config = {name: {i[0]: i[4] for i in items} for name, items in SECTIONS.items()}
    for key, text in spec["set"]:
        section, _, name = key.partition(".")
        if name not in config.get(section, {}):
            raise ConfigError(f"--set: unknown key `{key}`; known are core, pm")
        try:
            config[section][name] = type(config[section][name])(text)
        except ValueError:
            raise ConfigError(f"--set: `{key}` = {text} is not allowed; a number") from None
    return config


class _Task:
    def __init__(self):
        self._cancelled = threading.Event()
        self._done = 0
        self._total = 1

    def cancel(self):
        self._cancelled.set()

    def progress(self):
        return (self._done, self._total)

    def _pass_time(self, seconds):
        for step in range(100):
            if self._cancelled.wait(seconds / 100):
                raise Cancelled("cancelled")
            self._done = self._total * step // 100
        self._done = self._total


class Simulation(_Task):
    def __init__(self, spec_json):
        super().__init__()
        self._spec = spec = json.loads(spec_json)
        self._design = _find("design", spec["design"], DESIGNS)
        self._workload = _find("workload", spec["workload"], WORKLOADS)
        self._machine = _machine(spec)
        self._config = _config(spec)
        self._threads = spec["threads"] or self._config["core"]["count"]
        if self._threads > 64:
            raise ConfigError(f"`threads` = {self._threads} is not allowed; from 1 to 64")
        self._total = spec["transactions"] or 20_000

    def run(self):
        name, _, _, safe, speed, kinds = self._design
        slow = os.environ.get("FAKE_SLOW")
        seconds = float(os.environ.get("FAKE_SECONDS", "0")) if slow in (None, name) else 0.0
        if seconds and "FAKE_STARTED" in os.environ:
            Path(os.environ["FAKE_STARTED"], f"{name}-{self._workload[0]}").touch()
        self._pass_time(seconds)
        if os.environ.get("FAKE_FAIL") == name:
            raise SimulationError("cycle 1234: line 0x40 read back stale: 0x01, stored 0x02")
        if self._spec["request_trace"]:
            with Path(self._spec["request_trace"]).open("w") as file:
                file.write("NVMV1\n")
        return json.dumps(
            {
                "design": name,
                "workload": self._workload[0],
                "machine": self._machine,
                "threads": self._threads,
                "transactions": self._total,
                "seed": self._spec["seed"],
                "safe": safe,
                "version": __version__,
                "config": self._config,
                "stats": self._stats(speed, kinds),
            }
        )

    def _stats(self, speed, kinds):
        identity = f"{self._design[0]} {self._workload[0]} {self._spec['seed']}"
        digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
        wobble = 0.85 + 0.3 * int(digest[:4], 16) / 0xFFFF
        if self._design[0] == "base":
            wobble = 1.0
        scaling = self._threads / (1 + 0.05 * self._threads)
        throughput = 2.5e5 * speed * self._workload[3] * wobble * scaling
        throughput *= 150.0 / self._config["pm"]["write_ns"]
        writes = [int(self._total * 6 * kind * wobble) for kind in kinds]
        latency = 2e9 * self._threads / throughput
        return {
            "cycles": int(2e9 * self._total / throughput),
            "instructions": self._total * 900,
            "ipc": 0.45 * speed / 3 * wobble,
            "core0.ipc": 0.45 * speed / 3,
            "committed_transactions": self._total,
            "throughput_tx_per_s": throughput,
            "commit_latency_cycles_mean": latency * 0.3,
            "transaction_latency_cycles_mean": latency,
            "transaction_latency_cycles_p99": math.nan if speed > 3 else latency * 4,
            "l1_hits": self._total * 700,
            "controller_write_requests": sum(writes) * 2,
            "media_write_requests": sum(writes),
            "media_write_requests_data": writes[0],
            "media_write_requests_log": writes[1],
            "media_write_requests_metadata": writes[2],
            "media_write_requests_gc": writes[3],
            "media_bytes_written": sum(writes) * 256,
            "media_bits_programmed": sum(writes) * 500,
            "log_bytes_written": writes[1] * 200,
            "read_energy_pj": 1e6 * self._total,
            "write_energy_pj": sum(writes) * 500 * 16.82,
            "image_digest": digest,
        }


class MemoryReplay(_Task):
    def __init__(self, spec_json):
        super().__init__()
        spec = json.loads(spec_json)
        self._machine = _machine(spec)
        self._config = _config(spec)
        with Path(spec["trace"]).open() as file:
            lines = [line.split() for line in file if line.strip() and line.strip() != "NVMV1"]
        for number, fields in enumerate(lines, 1):
            if len(fields) not in (3, 6):
                raise TraceError(f"{spec['trace']}:{number}: expected 3 or 6 fields")
        self._total = len(lines)

    def run(self):
        self._pass_time(float(os.environ.get("FAKE_SECONDS", "0")))
        return json.dumps(
            {
                "machine": self._machine,
                "config": self._config,
                "stats": {"cycles": 1000, "media_write_requests": self._total},
            }
        )


def install():
    """Makes `graven._engine` be this module, in this process."""
    module = sys.modules[__name__]
    assert isinstance(module, types.ModuleType)
    sys.modules["graven._engine"] = module
