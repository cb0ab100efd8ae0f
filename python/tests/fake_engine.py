"""A stand-in for the native module: the same interface, and results from arithmetic.

It lets the front end be tested without an engine: same input, same output, in no time. The
environment makes simulations slow (`FAKE_SECONDS`, if of the design or the task `FAKE_SLOW` when
that is set), has slow ones leave a file in the folder `FAKE_STARTED` when they start, or makes a
design fail (`FAKE_FAIL`). In campaigns unsafe designs and most mutants violate their guarantees;
`FAKE_CONVICT` is a safe design that is, too (its schedules only at the seeds in `FAKE_SEEDS`), and
`FAKE_REFUSE` one that does not go on.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import threading
import tomllib
import types
from pathlib import Path

__version__ = "0.0-fake"
RECOVERY_TRANSACTIONS = 1000


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
    ("written_bytes_per_transaction", "B/transaction", "ratio", "Bytes that controllers accepted"),
    ("media_write_requests", "requests", "count", "Lines programmed in the media"),
    ("media_write_requests_data", "requests", "count", "Of these, program data"),
    ("media_write_requests_log", "requests", "count", "Of these, log"),
    ("media_write_requests_metadata", "requests", "count", "Of these, metadata"),
    ("media_write_requests_gc", "requests", "count", "Of these, garbage collection"),
    ("media_bytes_written", "B", "count", "Bytes written to the media"),
    ("media_bits_programmed", "bits", "count", "Cells that changed"),
    ("log_bytes_written", "B", "count", "Bytes of log entries"),
    ("residual_dirty_lines", "", "gauge", "Lines that only the caches hold at the end"),
    ("read_energy_pj", "pJ", "gauge", "Energy of reading"),
    ("write_energy_pj", "pJ", "gauge", "Energy of writing"),
    ("image_digest", "", "digest", "Digest of the final image"),
]
STATES = [
    ("steal", "a line with words of an open transaction became durable"),
    ("id-wrap", "the low 16 bits of a transaction's number wrapped around"),
]
DRAWS = [{"name": "threads", "summary": "threads", "default": 64, "least": 1, "most": 64}]
MUTANTS = [
    ("no-tuple", "At a power failure no id tuples are written."),
    ("harmless", "Nothing is any worse."),
]
CORNERS = [("overflow", "undo records of an open transaction left for the log area")]
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
    # Set by every comparison; the stand-in measures whole runs whatever it says.
    "region": [
        ("kind", "What is measured", "", "one of whole, steady", "whole", None, None),
        ("transactions", "Of the region", "transactions", "a whole number", 0, None, None),
    ],
    "workload": [
        ("element_bytes", "Size of one data element", "B", "a size from 8 B to 64 KB", "64 B",
         None, None),
    ],
}  # fmt: skip
OWN_SECTIONS = {
    "silo": [
        ("log_buffer_entries", "Entries of a log buffer", "entries",
         "a whole number from 1 to 4096", 20, None, None),
    ],
}  # fmt: skip
"""Of the design of that name alone."""
SECTIONS |= OWN_SECTIONS
NOTHING = dict.fromkeys(
    ("designs", "workloads", "threads", "transactions", "baseline", "vary", "metrics")
)  # fmt: skip


PAPER_FILES = ("experiments", "claims")

# What is compared on a machine by default.
MACHINES = {
    "silo": {},
    "morlog": {
        "designs": ["base", "lad", "silo"],
        "workloads": ["array", "hash"],
        "baseline": "lad",
        "vary": {"workload.element_bytes": ["64 B", "4 KB"]},
    },
    "cramped": {},
}


def _parameter(section, item):
    key, doc, unit, allowed, default, _source, _assumed = item
    return {
        "key": f"{section}.{key}",
        "doc": doc,
        "unit": unit,
        "allowed": allowed,
        "default": str(default),
    }


def _named(items):
    return [{"name": name, "summary": summary} for name, summary in items]


def catalogue():
    values = [
        {
            "key": f"{section}.{item[0]}",
            "value": item[4],
            "source": item[5],
            "assumed": item[6],
        }
        for section, items in SECTIONS.items()
        if section not in OWN_SECTIONS
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
                    "guarantee": "durable" if safe else "none",
                    "default": name != "hoop",
                    "settings": [],
                    "mutants": _named(MUTANTS) if name == "silo" else [],
                    "cover_points": _named(CORNERS) if name == "silo" else [],
                    "statistics": [],
                    "parameters": [_parameter(name, i) for i in OWN_SECTIONS.get(name, [])],
                }
                for name, summary, paper, safe, _, _ in DESIGNS
            ],
            "aliases": [
                {
                    "name": "better",
                    "summary": "The better of base and fwb",
                    "paper": "none",
                    "of": ["base", "fwb"],
                }
            ],
            "workloads": [
                {
                    "name": name,
                    "summary": summary,
                    "group": group,
                    "settings": [],
                    "parameters": [],
                }
                for name, summary, group, _ in WORKLOADS
            ],
            "machines": [
                {
                    "name": name,
                    "title": f"The machine of {name}",
                    "file": f"papers/{name}/machine.toml",
                    "values": values,
                    "comparison": _said(MACHINES[name], name),
                }
                for name in MACHINES
            ],
            "stats": [
                dict(zip(("name", "unit", "kind", "description"), item, strict=True), designs=[])
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
            "states": _named(STATES),
            "draws": DRAWS,
        }
    )


def papers():
    """The papers of the folder beside this file."""
    folder = Path(__file__).parent / "papers"
    return json.dumps(
        {
            name: {kind: (folder / name / f"{kind}.toml").read_text() for kind in PAPER_FILES}
            for name in ("silo", "morlog")
        }
    )


def build():
    return os.environ.get("FAKE_BUILD", "fake")


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
    _find("machine", machine["preset"], [(name,) for name in MACHINES])
    return machine["preset"]


def _config(spec):
    config = {name: {i[0]: i[4] for i in items} for name, items in SECTIONS.items()}
    for key, text, origin in [[*pair, "--set"] for pair in spec["set"]] + spec.get("vary", []):
        value = _value(key, text, origin)
        section, _, name = key.partition(".")
        config[section][name] = value
    return config


def _value(key, text, origin):
    """A text as the value of a key."""
    section, _, name = key.partition(".")
    defaults = {item[0]: item[4] for item in SECTIONS.get(section, [])}
    if name not in defaults:
        raise ConfigError(f"{origin}: unknown key `{key}`; known are core, pm")
    try:
        return type(defaults[name])(text)
    except ValueError:
        raise ConfigError(f"{origin}: `{key}` = {text} is not allowed; a number") from None


def _said(said, file):
    """The table `[comparison]` of a file, in the engine's form."""
    vary = said.get("vary")
    if vary is not None:
        origin = f"{file}, [comparison] vary"
        vary = [{"key": k, "values": list(map(str, v)), "origin": origin} for k, v in vary.items()]
    return NOTHING | said | {"vary": vary}


def comparison(spec_json):
    spec = json.loads(spec_json)
    name, machine = _machine(spec), spec["machine"]
    _config({"set": spec["set"]})
    text = machine.get("text")
    found = _said(
        MACHINES[name] if text is None else tomllib.loads(text).get("comparison", {}), name
    )
    set_keys = [key for key, _ in spec["set"]]
    if spec["vary"] is None:
        if found["vary"] is not None:
            found["vary"] = [item for item in found["vary"] if item["key"] not in set_keys]
        return json.dumps(found)
    found["vary"] = []
    for key, texts in spec["vary"]:
        if key in set_keys:
            raise ConfigError(f"--vary: `{key}` does not fit: --set gives it one value")
        values = [str(_value(key, value, "--vary")) for value in texts]
        if len(set(values)) < len(values):
            raise ConfigError(f"--vary: `{key}` has a value that is there before")
        found["vary"].append({"key": key, "values": values, "origin": "--vary"})
    return json.dumps(found)


def _item(name, place, role, formula, numbers, value, unit, **more):
    blank = {"per": None, "printed": None, "claim": None, "note": None}
    what = f"what the {name} is"
    return {
        "name": name, "what": what, "place": place, "role": role, "formula": formula,
        "numbers": numbers, "value": value, "unit": unit, "total": value, **blank, **more,
    }  # fmt: skip


def _printed(text, verdict):
    return {
        "paper": "Silo", "at": "Table I", "machine": "silo", "text": text, "value": float(text),
        "verdict": verdict,
    }  # fmt: skip


def cost(spec_json):
    """Of any design but `ideal` a buffer with `core.count` entries, and some figures about it."""
    spec = json.loads(spec_json)
    spec["machine"] = spec["machine"] or {"preset": "silo"}
    name = _find("design", spec["design"], DESIGNS)[0]
    machine, cores = _machine(spec), _config(spec)["core"]["count"]
    document = {"design": name, "machine": machine, "items": [], "totals": [], "remarks": []}
    if name == "ideal":
        return json.dumps(document | {"remarks": ["Nothing beside the machine."]})
    size, per = cores * 34, {"each": "core", "formula": "core.count", "numbers": str(cores)}
    agrees = "agrees" if cores == 20 else "other-parameters"
    buffer = _item(
        "log-buffer", "controller", "built", "core.count × 34", f"{cores} × 34", size, "B",
        per=per | {"count": cores}, total=size * cores, printed=_printed("680", agrees),
        claim="silo-buffer-680b",
    )  # fmt: skip
    energy = _item(
        "energy", "battery", "derived", "log-buffer × 2", f"{size} × 2", size * 2, "nJ",
        printed=_printed("62", "differs"), note="The paper rounds up.",
    )  # fmt: skip
    gates = _item(
        "gates", "module", "reference", "reported", "4200", 4200, "gates",
        printed=_printed("4200", "reported"),
    )  # fmt: skip
    spare = _item("spare", "core", "optional", "1", "1", 1, "bit")
    document["items"] = [energy, buffer, gates, spare]
    document["totals"] = [
        {"place": "core", "bytes": 0},
        {"place": "controller", "bytes": size * cores},
    ]
    return json.dumps(document | {"remarks": ["It is a fake."]})


class _Task:
    def __init__(self):
        self._cancelled = threading.Event()
        self._done = 0
        self._total = 1

    def cancel(self):
        self._cancelled.set()

    def progress(self):
        return (self._done, self._total)

    def memory_bytes(self):
        return 0

    def _sleep(self, name):
        """Takes the time that the environment says for `DESIGN-WHAT`."""
        slow = os.environ.get("FAKE_SLOW")
        design = name.split("-")[0]
        seconds = (
            float(os.environ.get("FAKE_SECONDS", "0")) if slow in (None, design, name) else 0.0
        )
        if seconds and "FAKE_STARTED" in os.environ:
            Path(os.environ["FAKE_STARTED"], name).touch()
        self._pass_time(seconds)
        if os.environ.get("FAKE_FAIL") == design:
            raise SimulationError("cycle 1234: line 0x40 read back stale: 0x01, stored 0x02")

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
        self._sleep(f"{name}-{self._workload[0]}")
        if self._spec["bank_loads"]:
            Path(self._spec["bank_loads"]).write_text("cycle,bank0\n")
        if timeline := self._spec.get("timeline"):
            first, last = timeline["transactions"] or (self._total // 2, self._total // 2 + 1)
            if not first <= last < self._total:
                raise ConfigError(f"timeline: {first}-{last} is not allowed")
            Path(timeline["file"]).write_text("{}")
        if self._spec.get("program_trace"):
            header = {"design": name, "workload": self._workload[0], "machine": self._machine}
            _write_trace(self._spec["program_trace"], header | {"set": self._spec["set"]})
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
        large = self._config["workload"]["element_bytes"] != "64 B"
        if large:
            throughput /= 2 + kinds[1]
        if self._design[0] == "silo":
            kinds = [kind * 20 / self._config["silo"]["log_buffer_entries"] for kind in kinds]
        writes = [int(self._total * (30 if large else 6) * kind * wobble) for kind in kinds]
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
            "written_bytes_per_transaction": sum(writes) * 128 / self._total,
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
    def __init__(self, spec_json, file=None):
        super().__init__()
        spec = json.loads(spec_json)
        self._machine = _machine(spec)
        self._config = _config(spec)
        content = _content(spec["trace"]) if file is None else file.read()
        text = content.decode(errors="replace").splitlines()
        lines = [line.split() for line in text if line.strip() and line.strip() != "NVMV1"]
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
                "stats": {
                    "requests": self._total,
                    "cycles": 1000,
                    "media_write_requests": self._total,
                },
            }
        )


TRACE_MAGIC = b"\x89GRVNT\r\n"


def _write_trace(path, header):
    Path(path).write_bytes(TRACE_MAGIC + json.dumps(header).encode())


def _content(path):
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise TraceError(f"{path}: {error}") from None


def _read_trace(path):
    """A trace of the stand-in: the magic number, and a header in JSON."""
    content = _content(path)
    if not content.startswith(TRACE_MAGIC):
        raise TraceError(f"{path}: byte 0: expected a program trace of Graven, found another")
    return json.loads(content[len(TRACE_MAGIC) :])


def trace_properties(path):
    _read_trace(path)
    sizes = {"mean": 2.5, "p50": 2, "p99": 7, "max": 9}
    return json.dumps(
        {
            "transactions": {"count": 10, "stores": sizes, "words": sizes, "lines": sizes},
            "stores": 25,
            "outside": 0,
            "non_temporal": 0,
            "silent_share": 0.25,
            "clean_share": 0.5,
            "again_share": None,
            "loads": 75,
            "instructions": 1000,
            "instructions_per_store": 40.0,
            "access_share": 0.1,
            "locks": 10,
            "lines_stored": 12,
            "lines": 30,
            "reuse_lines": sizes,
            "volatile_loads": 50,
            "volatile_stores": 20,
            "volatile_lines": 8,
        }
    )


def trace_info(path):
    header = {
        "version": __version__,
        "origin": "simulation",
        "threads": 2,
        "transactions": 10,
        "seed": 1,
    }
    names = ["operations", "transactions", "loads", "stores", "instructions", "locks", "end"]
    names += ["volatile_loads", "volatile_stores", "volatile_end"]
    return json.dumps(
        {
            "header": header | _read_trace(path),
            "bytes": Path(path).stat().st_size,
            "blocks": 2,
            "populated_words": 3,
            "populated_bytes": 99,
            "summaries": [dict.fromkeys(names, 1000)] * 2,
        }
    )


class TraceReplay(Simulation):
    def __init__(self, spec_json):
        spec = json.loads(spec_json)
        header = _read_trace(spec["trace"])
        machine = spec["machine"] or {"preset": header["machine"]}
        of_run = {"threads": None, "transactions": 10, "seed": 1, "bank_loads": None}
        super().__init__(
            json.dumps(
                {
                    "design": spec["design"] or header["design"],
                    "workload": header["workload"],
                    "machine": machine,
                    "set": header["set"] + spec["set"],
                    "request_trace": None,
                    **of_run,
                }
            )
        )


class Conversion(_Task):
    """Takes what ChampSim has for the text after the first byte, and gives it back."""

    def __init__(self, kind, spec_json, files):
        super().__init__()
        self._kind = kind
        self._spec = json.loads(spec_json)
        self._files = files

    def run(self):
        self._pass_time(float(os.environ.get("FAKE_SECONDS", "0")))
        if self._kind == "export":
            self._files[0].write(b"\0" + json.dumps(_read_trace(self._spec["trace"])).encode())
            return json.dumps({"instructions": 1234})
        if self._kind == "requests":
            text = self._files[0].read().decode("latin-1")
            magic = "\x89GRVNR\r\n" if self._spec["is_binary"] else ""
            Path(self._spec["out"]).write_bytes((magic + text).encode("latin-1"))
            return json.dumps({"requests": len(text.splitlines())})
        texts = [file.read().decode() for file in self._files]
        _write_trace(self._spec["out"], {"origin": "champsim", "texts": texts} | self._spec)
        return trace_info(self._spec["out"])


class Campaign(_Task):
    def __init__(self, kind, spec_json):
        super().__init__()
        self._kind = kind
        self._spec = spec = json.loads(spec_json)
        self._judged = 0
        if kind == "litmus":
            self._read()
            return
        self._design = _find("design", spec["design"], DESIGNS)
        if spec["mutant"]:
            known = MUTANTS if spec["design"] == "silo" else []
            _find("mutant", spec["mutant"], known)
        _config(spec)
        if kind == "run":
            self._workload = _find("workload", spec["workload"], WORKLOADS)
            self._machine = _machine(spec)
        self._total = spec["transactions"] if kind == "run" else spec["seeds"]

    def _read(self):
        """A program is lines of `design NAME` and `violate NAME` after the first."""
        file = self._spec["file"]
        first, *lines = self._spec["text"].splitlines() or [""]
        if first != "graven litmus 1":
            raise ConfigError(f"{file}:1:1: expected `graven litmus 1`, found `{first}`")
        named = {}
        for number, line in enumerate(lines, 2):
            word, _, name = line.partition(" ")
            if word not in ("title", "design", "violate"):
                raise ConfigError(f"{file}:{number}:1: expected a statement, found `{word}`")
            if word != "title":
                _find("design", name, DESIGNS)
                named[name] = word
        designs = self._spec["designs"] or list(named)
        self._programs = [(_find("design", name, DESIGNS), named.get(name)) for name in designs]
        self._total = len(designs)

    def checked(self):
        return self._judged

    def minimising(self):
        return False

    def run(self):
        if self._kind == "litmus":
            self._sleep("litmus-program")
            results = [
                self._report(design, 3, self._violates(design))
                | {
                    "expected": "violated" if word == "violate" else "kept",
                    "as_expected": bool(self._violates(design)) == (word == "violate"),
                }
                for design, word in self._programs
            ]
            return json.dumps({"title": "a title", "results": results})
        spec, name = self._spec, self._design[0]
        common = {"mutant": spec["mutant"]}
        if self._kind == "run":
            self._sleep(f"{name}-{self._workload[0]}")
            points = spec["transactions"] * 3
            report = self._report(self._design, points, self._violates(self._design))
            more = {
                "workload": self._workload[0],
                "machine": self._machine,
                "threads": spec["threads"] or 8,
                "transactions": spec["transactions"],
                "seed": spec["seed"],
                "every": spec["every"],
            }
            return json.dumps(report | common | more)
        self._sleep(f"{name}-{spec['first_seed']}")
        seeds, found = [], []
        for seed in range(spec["first_seed"], spec["first_seed"] + spec["seeds"]):
            seeds.append(seed)
            found += self._violates(self._design, seed)
            if len(found) >= spec["violations"]:
                break
        report = self._report(self._design, sum(seed % 7 + 1 for seed in seeds), found)
        more = {
            "workload": "adversary",
            "machine": "cramped",
            "first_seed": spec["first_seed"],
            "seeds": spec["seeds"],
            "next_seed": seeds[-1] + 1,
            "runs": len(seeds),
            "draws": {draw["name"]: draw["default"] for draw in DRAWS} | dict(spec.get("draw", ())),
        }
        return json.dumps(report | common | more)

    def _violates(self, design, seed=None):
        name, safe = design[0], design[3]
        wanted = not safe or self._spec.get("mutant") == "no-tuple"
        if os.environ.get("FAKE_CONVICT") == name:
            seeds = os.environ.get("FAKE_SEEDS", "").split(",")
            wanted = seed is None or str(seed) in seeds
        if not wanted:
            return []
        return [
            {
                "point": 2,
                "failure_mode": "torn 0x3",
                "cycle": 1155,
                "what": "word 0x1000 holds 0x2, committed is 0x0",
                "seed": seed,
                "timeline": [
                    {"cycle": 1155, "who": "thread 0", "what": "A: 0x2 -> 0x0"},
                    {"cycle": None, "who": "verdict", "what": "word A holds 0x2"},
                ],
                "left_out": 4,
                "replay": f"graven litmus 1\ntitle {seed}\nviolate {name}\n",
            }
        ]

    def _report(self, design, points, violations):
        name, _, _, safe, _, _ = design
        self._judged = 2 * points
        refused = int(os.environ.get("FAKE_REFUSE") == name)
        states = [state for state, _ in STATES + (CORNERS if name == "silo" else [])]
        return {
            "design": name,
            "guarantee": "durable" if safe else "none",
            "safe": safe,
            "sound": safe,
            "crash_points": points,
            "recoveries": 2 * points,
            "failure_modes": {"plain": points, "torn": points, "in_flight": 0, "recovery": 0,
                      "structures": 0, "lives": 0},
            "violations": violations,
            "covered": {state: points if state == "steal" else 0 for state in states},
            "not_covered": [state for state in states if state != "steal"],
            "runs": 1,
            "refused": refused,
            "refusal": "a transaction does not fit the log" if refused else None,
            "next_seed": 0,
        }  # fmt: skip


class AdversaryCampaign:
    """Each design's schedules in one piece, one after the other; the real one has chunks."""

    def __init__(self, request_json, state=None):
        request = json.loads(request_json)
        if state is not None:
            raise ConfigError("the stand-in goes on from nothing")
        self._known = {"settings": dict(request["set"]), "version": __version__, "seconds": 0.5}
        spec = {key: value for key, value in request.items() if key != "designs"}
        self._pieces = {
            design: Campaign("adversary", json.dumps(spec | {"design": design}))
            for design in request["designs"]
        }
        self._seeds = request["seeds"]
        self._reports = {}
        self._failures = []
        self._grown = []
        self._running = None
        self._cancelled = False
        self._ended = threading.Event()

    def memory_bytes(self):
        return 1 << 20

    def start(self, workers):
        assert workers > 0
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        for design, piece in self._pieces.items():
            if self._cancelled:
                break
            self._running = piece
            try:
                self._reports[design] = json.loads(piece.run()) | self._known
                self._grown.append(self._reports[design])
            except Cancelled:
                break
            except SimulationError as error:
                self._failures.append({"design": design, "message": str(error)})
        self._running = None
        self._ended.set()

    def wait(self, seconds):
        ended = self._ended.wait(seconds)
        grown, self._grown = self._grown, []
        running = self._running
        done = self._seeds * (len(self._reports) + len(self._failures))
        partial = 0 if running is None else running.progress()[0]
        progress = {
            "schedules_done": done,
            "schedules_partial": partial,
            "schedules": self._seeds * len(self._pieces),
            "failures_checked": done + partial,
            "minimising": 0,
            "running": [design for design, piece in self._pieces.items() if piece is running],
        }
        return json.dumps(
            {"progress": progress, "grown": grown, "failures": self._failures, "ended": ended}
        )

    def cancel(self):
        self._cancelled = True
        for piece in self._pieces.values():
            piece.cancel()

    def reports(self):
        return json.dumps(list(self._reports.values()))

    def state(self):
        return json.dumps({"reports": self._reports})


def install():
    """Makes `graven._engine` be this module, in this process."""
    module = sys.modules[__name__]
    assert isinstance(module, types.ModuleType)
    sys.modules["graven._engine"] = module
