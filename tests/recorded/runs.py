"""The runs that are recorded, by group.

A run is what `kinds.perform` takes, under an id that no other run has. The list follows from
`tables.toml`, the mutants that the engine's catalogue names, and the programs in `litmus/`.
A check does not come here: it takes the specs as they were recorded.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import engine
from .store import Json

Settings = dict[str, str]
"""Values by `SECTION.KEY`."""

TABLES: Json = tomllib.loads(Path(__file__).with_name("tables.toml").read_text(encoding="utf-8"))
DESIGNS, WORKLOADS, MACHINES, FEATURES = (
    TABLES[name] for name in ("designs", "workloads", "machines", "features")
)
SMALL_CACHES: Settings = TABLES["small_caches"]
SECTIONS = {name: section for section, names in TABLES["sections"].items() for name in names}

LITMUS = Path(__file__).parents[2] / "litmus"
"""The repository's litmus programs."""


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        name: What it is called: steps between slashes, of which the first is its group.
        kind: A kind of `kinds.py`.
        spec: What is asked of it, as JSON.
    """

    name: str
    kind: str
    spec: Json


def runs(group: str, programs: Path = LITMUS) -> Iterator[Run]:
    """The runs of a group, in their order.

    Args:
        group: One of `GROUPS`.
        programs: Folder of the litmus programs of the engine that is run.
    """
    return _litmus(programs) if group == "litmus" else GROUPS[group]()


def unlisted() -> list[str]:
    """Returns the names of the engine's catalogue that no run meets."""
    catalogue = engine.catalogue()
    machines = (*MACHINES, *TABLES["of_small_programs"])
    listed = {"designs": DESIGNS, "workloads": WORKLOADS, "machines": machines}
    tables = [*TABLES["design_keys"].values()]
    tables += [each["keys"] for each in (*TABLES["machine_keys"], *TABLES["workload_keys"])]
    varied = {key for table in tables for keys in table for key in keys.split("+")}
    return [
        f"{kind}: {entry['name']}"
        for kind, names in listed.items()
        for entry in catalogue[kind]
        if entry["name"] not in names
    ] + [
        f"keys: {parameter['key']}"
        for section in catalogue["sections"]
        for parameter in section["parameters"]
        if parameter["key"] not in varied
    ]


def _machine(preset: str) -> Json:
    return {"preset": preset}


def _pairs(*several: Settings) -> Json:
    """Settings as the engine takes them; later ones count."""
    whole: Settings = {}
    for settings in several:
        whole |= settings
    return [[key, value] for key, value in whole.items()]


def _simulation(
    design: str,
    workload: str,
    preset: str,
    settings: Json,
    transactions: int,
    *,
    threads: int | None = None,
    seed: int = 1,
) -> Json:
    return {
        "design": design,
        "workload": workload,
        "machine": _machine(preset),
        "threads": threads,
        "transactions": transactions,
        "seed": seed,
        "set": settings,
        "vary": [],
        "request_trace": None,
        "bank_loads": None,
        "program_trace": None,
    }


def _small(workload: str, footprint: str = "512 KB") -> Settings:
    """What makes a workload small."""
    if workload.startswith(("tatp", "smallbank", "tpcc")):
        section = workload.partition("-")[0]
        small: Settings = TABLES["small"]
        return {key: value for key, value in small.items() if key.startswith(f"{section}.")}
    return {"workload.footprint_bytes": footprint}


def _fit(design: str) -> Settings:
    return {**TABLES["fit"].get(SECTIONS.get(design), {}), **TABLES["slow"].get(design, {})}


def _busy(design: str) -> Settings:
    busy: Settings = TABLES["busy"].get(SECTIONS.get(design), {})
    return busy


def _values(keys: str, values: str) -> Settings:
    """What KEY+KEY and VALUE+VALUE mean."""
    return dict(zip(keys.split("+"), values.split("+"), strict=True))


def _name(*steps: object) -> str:
    return "/".join(str(step).replace(" ", "") for step in steps)


def _matrix() -> Iterator[Run]:
    """Every design on every workload. Each design meets each machine with four workloads.

    With the first of the four, all is as the machine has it, also what does not fit; with the
    others, designs fit, and caches are small. There is one thread, there are two, or as many as
    cores; distances between writes are kept with two.
    """
    for row, design in enumerate(DESIGNS):
        for column, workload in enumerate(WORKLOADS):
            preset = MACHINES[(row + column) % len(MACHINES)]
            variant = (row + column // len(MACHINES)) % 4
            settings = _small(workload)
            if variant > 0:
                settings = {**settings, **_fit(design), **SMALL_CACHES}
            if variant == 3:
                settings["statistics.write_distances"] = "true"
            heavy = workload.startswith(("tpcc", "echo"))
            spec = _simulation(
                design,
                workload,
                preset,
                _pairs(settings),
                24 if heavy else 96,
                threads=(None, None, 1, 2)[variant],
                seed=1 + (row + 2 * column) % 3,
            )
            yield Run(_name("matrix", design, workload), "simulation", spec)


def _long() -> Iterator[Run]:
    """Every design on every machine, with thousands of transactions.

    On `hash` it fits, with the machine's caches; on `btree` it is busy, with small ones.
    """
    for design in DESIGNS:
        for preset in MACHINES:
            for workload, more in (
                ("hash", _fit(design)),
                ("btree", {**SMALL_CACHES, **_fit(design), **_busy(design)}),
            ):
                settings = _pairs(_small(workload, "1 MB"), more)
                spec = _simulation(design, workload, preset, settings, 2000, seed=7)
                yield Run(_name("long", design, preset, workload), "simulation", spec)


def _features() -> Iterator[Run]:
    """Every design with what machines may have or lack."""
    for design in DESIGNS:
        for feature, more in FEATURES.items():
            preset = "lalea" if feature == "in-order" else "silo"
            base = {**SMALL_CACHES, **_fit(design), **_busy(design)}
            settings = _pairs(_small("btree", "256 KB"), base, more)
            spec = _simulation(design, "btree", preset, settings, 200, threads=4, seed=2)
            yield Run(_name("features", design, feature), "simulation", spec)


def _keys() -> Iterator[Run]:
    """Every key of the configuration at values that it does not have by default."""
    for section, table in TABLES["design_keys"].items():
        for design in TABLES["designs_of_keys"].get(section, (section,)):
            base = {**_small("btree", "256 KB"), **SMALL_CACHES, **_busy(design)}
            yield from _vary(design, "btree", base, table)
            yield from _vary(
                design, "array", {**base, **TABLES["contended"]}, table, preset="lalea"
            )
            base = {**_small("hash", "128 KB"), **_busy(design), **TABLES["large"]}
            yield from _vary(design, "hash", base, table, preset="cramped", threads=4)
    for part in TABLES["machine_keys"]:
        for design in part["designs"]:
            base = {**_small("hash", "256 KB"), **SMALL_CACHES, **_busy(design)}
            yield from _vary(design, "hash", {**base, **part.get("set", {})}, part["keys"])
    for part in TABLES["workload_keys"]:
        for workload in part["workloads"]:
            base = {**_small(workload, "256 KB"), **SMALL_CACHES}
            yield from _vary("silo", workload, base, part["keys"])


def _vary(
    design: str,
    workload: str,
    base: Settings,
    table: dict[str, list[str]],
    *,
    preset: str = "silo",
    threads: int | None = None,
) -> Iterator[Run]:
    heavy = workload.startswith(("tpcc", "echo"))
    for keys, several in table.items():
        for values in several:
            whole = {**base, **_values(keys, values)}
            wanted = threads
            if "core.threads_per_core" in whole:
                wanted = 2 * int(whole.get("core.count", "8"))
            count = 40 if heavy else 120 if preset == "cramped" else 300
            spec = _simulation(
                design, workload, preset, _pairs(whole), count, threads=wanted, seed=3
            )
            what = f"{keys}={values.replace('/', ':')}"
            yield Run(_name("keys", design, f"{preset}-{workload}", what), "simulation", spec)


def _crash(
    design: str,
    workload: str,
    preset: str,
    settings: Json,
    transactions: int,
    **more: Json,
) -> Json:
    return {
        "design": design,
        "workload": workload,
        "machine": _machine(preset),
        "threads": None,
        "transactions": transactions,
        "seed": 1,
        "set": settings,
        "mutant": None,
        "every": 1,
        "torn_every": 1,
        "in_flight_every": 4,
        "recovery_every": 64,
        "recovery_depth": 2,
        "structures_every": 64,
        "lives": 0,
        "garbage": False,
        "violations": 1,
        **more,
    }


def _crashes() -> Iterator[Run]:
    """Every design crashed everywhere on several workloads, also with two of its mutants."""
    mutants = _mutants()
    for design in DESIGNS:
        layers = {
            "fit": {**_fit(design), "pm.log_region_bytes": "4 MB"},
            "busy": _busy(design),
            "small_caches": SMALL_CACHES,
        }
        specs = {}
        for workload, part in TABLES["crashes"].items():
            settings = _pairs(
                _small(workload, part.get("footprint", "512 KB")),
                *(layers[name] for name in part["layers"]),
                part.get("set", {}),
            )
            of, options = (workload, part["machine"], settings), part.get("options", {})
            specs[workload] = _crash(design, *of, part["transactions"], **options)
            yield Run(_name("crashes", design, workload), "run-campaign", specs[workload])
        for mutant in mutants.get(design, [])[:2]:
            spec = {**specs["hash"], "mutant": mutant}
            yield Run(_name("crashes", design, "hash", mutant), "run-campaign", spec)


def _mutants() -> dict[str, list[str]]:
    return {
        design["name"]: [mutant["name"] for mutant in design["mutants"]]
        for design in engine.catalogue()["designs"]
    }


def _adversary_spec(design: str, seeds: int, **more: Json) -> Json:
    return {
        "design": design,
        "set": [],
        "mutant": None,
        "first_seed": 1,
        "seeds": seeds,
        "violations": 1,
        **more,
    }


def _adversary() -> Iterator[Run]:
    """Every design against the adversary, as it draws, and on one machine with other seeds."""
    for design in DESIGNS:
        for first in (1, 201):
            spec = _adversary_spec(design, 200, first_seed=first, violations=3)
            yield Run(_name("adversary", design, f"drawn-{first}"), "adversary-campaign", spec)
        fixed = [["controller.adr", "false"], ["core.model", "out-of-order"]]
        spec = _adversary_spec(design, 60, first_seed=100_001, set=fixed)
        yield Run(_name("adversary", design, "fixed"), "adversary-campaign", spec)


def _with_mutants() -> Iterator[Run]:
    """Every mutant of every design against the adversary."""
    for design, mutants in _mutants().items():
        for mutant in mutants:
            spec = _adversary_spec(design, 40, mutant=mutant)
            yield Run(_name("mutants", design, mutant), "adversary-campaign", spec)


def _litmus(programs: Path = LITMUS) -> Iterator[Run]:
    """Every litmus program, and texts that are none."""
    for path in sorted(programs.rglob("*.litmus")):
        name = path.relative_to(programs).with_suffix("").as_posix()
        text = path.read_text(encoding="utf-8")
        spec = {"file": f"litmus/{name}.litmus", "text": text, "designs": []}
        yield Run(_name("litmus", name), "litmus-campaign", spec)
    head = 'graven litmus 1\ntitle "a program"\n'
    program = f"{head}A = 1\n\nthread\n  begin\n  A = 2\n  commit\n\nexpect end: A = 2\n"
    texts = {
        "every-design": (program, list(DESIGNS)),
        "wrong-expectation": (program.replace("end: A = 2", "end: A = 3"), ["silo", "fwb"]),
        "no-head": ("A = 1\n", []),
        "unknown-step": (f"{head}A = 1\n\nthread\n  jump A\n", []),
        "unknown-design": (program, ["nothing"]),
        "unknown-key": (program.replace("A = 1", "set pm.nothing = 1\nA = 1", 1), ["silo"]),
        "unknown-mutant": (program.replace("A = 1", "mutant nothing\nA = 1", 1), ["silo"]),
    }
    for name, (text, designs) in texts.items():
        spec = {"file": "given.litmus", "text": text, "designs": designs}
        yield Run(_name("litmus", "given", name), "litmus-campaign", spec)


def _costs() -> Iterator[Run]:
    """The cost sheet of every design on its own machine and on every other."""
    for design in DESIGNS:
        for preset in (None, *MACHINES):
            machine = None if preset is None else _machine(preset)
            spec: Json = {"design": design, "machine": machine, "set": []}
            yield Run(_name("costs", design, preset or "own"), "cost", spec)
        spec = {"design": design, "machine": None, "set": _pairs(_fit(design), _busy(design))}
        yield Run(_name("costs", design, "busy"), "cost", spec)


def _traces() -> Iterator[Run]:
    """Request traces on memory alone, and what is made of recorded runs."""
    drawn = {"requests": 1500, "seed": 11}
    for preset in MACHINES:
        for layout in ("NVMV1", "NVMV0", "DRAMsim3"):
            trace = {"layout": layout, **drawn}
            spec = {"trace": trace, "machine": _machine(preset), "set": []}
            yield Run(_name("traces", "memory", preset, layout), "memory", spec)
    for feature in ("volatile-queues", "interleaved-lines", "unbuffered", "cells-slde"):
        trace = {"layout": "NVMV1", **drawn, "seed": 12}
        settings = _pairs(FEATURES[feature])
        spec = {"trace": trace, "machine": _machine("silo"), "set": settings}
        yield Run(_name("traces", "memory", "silo", feature), "memory", spec)
    for name, lines in {
        "no-trace": ["a b c"],
        "no-data": ["NVMV1", "1 R 0x40 0"],
        "backwards": ["0x40 READ 10", "0x80 READ 9"],
        "empty": ["NVMV0"],
    }.items():
        spec = {"trace": {"lines": lines}, "machine": _machine("silo"), "set": []}
        yield Run(_name("traces", "memory", "given", name), "memory", spec)
    for at, design in enumerate(DESIGNS):
        preset = MACHINES[at % len(MACHINES)]
        workload = ("btree", "hash", "queue", "ssca2", "array")[at % 5]
        settings = _pairs(_small(workload, "128 KB"), SMALL_CACHES, _fit(design))
        simulation = _simulation(design, workload, preset, settings, 60, threads=2, seed=5)
        loads = [["statistics.bank_load_interval_cycles", "5000"]]
        spec = {
            "simulation": {**simulation, "set": [*settings, *loads]},
            "replays": _replays(design, preset),
            "memory": {"machine": _machine(preset), "set": []},
            "export": {"thread": 1, "first_transaction": 3, "transactions": 10},
            "import": {
                "names": ["champsim.bin"],
                "transaction_stores": 6,
                "instructions": None,
            },
            "imported": [
                {"design": design, "machine": _machine("silo"), "set": _pairs(_fit(design))},
                {"design": None, "machine": None, "set": []},
            ],
        }
        yield Run(_name("traces", "recordings", design), "recording", spec)


def _replays(design: str, preset: str) -> Json:
    """As it was recorded; under the next design; on the next machine, with a setting."""
    following = DESIGNS[(DESIGNS.index(design) + 1) % len(DESIGNS)]
    other = MACHINES[(MACHINES.index(preset) + 1) % len(MACHINES)]
    slow = [*_pairs(_fit(design)), ["pm.write_ns", "300"]]
    return [
        {"design": None, "machine": None, "set": []},
        {"design": following, "machine": None, "set": _pairs(_fit(following))},
        {"design": design, "machine": _machine(other), "set": slow},
    ]


def _names() -> Iterator[Run]:
    """What can be named, and what machines compare where nothing else is asked for."""
    yield Run("names/catalogue", "catalogue", {})
    for preset in MACHINES:
        spec: Json = {"machine": _machine(preset), "set": [], "vary": None}
        yield Run(_name("names", "comparison", preset), "comparison", spec)
        vary = [["workload.element_bytes", ["64 B", "128"]], ["controller.adr", ["true", "false"]]]
        spec = {**spec, "set": [["pm.write_ns", "200"]], "vary": vary}
        yield Run(_name("names", "comparison", preset, "varied"), "comparison", spec)


def _others() -> Iterator[Run]:
    """Ways to ask that no other group has, and specs that are refused."""
    plain = _simulation("silo", "hash", "silo", _pairs(_small("hash")), 50)
    defaults = {"set": [], "transactions": None}
    for name, changed in {"defaults": defaults, **TABLES["others"]}.items():
        yield Run(_name("others", name), "simulation", {**plain, **changed})
    unknown = _adversary_spec("silo", 1, mutant="nothing")
    yield Run("others/unknown-mutant", "adversary-campaign", unknown)
    free = _adversary_spec("ideal", 1, mutant="nothing")
    yield Run("others/no-mutants", "adversary-campaign", free)
    spec = {"design": "silo", "machine": None, "set": [["silo.nothing", "1"]]}
    yield Run("others/cost-unknown-key", "cost", spec)


GROUPS: dict[str, Callable[[], Iterator[Run]]] = {
    "names": _names,
    "others": _others,
    "costs": _costs,
    "litmus": _litmus,
    "traces": _traces,
    "matrix": _matrix,
    "long": _long,
    "features": _features,
    "keys": _keys,
    "crashes": _crashes,
    "adversary": _adversary,
    "mutants": _with_mutants,
}
