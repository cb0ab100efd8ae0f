"""Runs designs with the keys of all other designs changed, on the real engine, and compares.

Its argument names the designs. It says which statistics differ, and how many designs they are of.
"""

from __future__ import annotations

import re
import sys

import graven
from graven.engine.machine import Machine

GIVEN = {
    "fwb.truncation_percent": "40",
    "lsm.index_promotion": "1/2",
    "fwb.transaction_id_bits": "12",
    "morlog.transaction_id_bits": "12",
    "opt-undo.entries_per_record": "3",
    "osp.page_bytes": "2 KB",
}
"""Values of keys whose doubled default is not allowed."""


def other(parameter):
    """A value that is not the default."""
    usual = parameter.default.strip('"')
    if usual in ("true", "false"):
        return "false" if usual == "true" else "true"
    if "one of" in parameter.allowed:
        words = re.findall(r"[\w-]+", parameter.allowed.split("one of")[1])
        return next(word for word in words if word not in (usual, "or"))
    if size := re.fullmatch(r"(\d+) (B|KB|MB|GB)", usual):
        return f"{int(size[1]) * 2 or 64} {size[2]}"
    if usual.isdecimal():
        return str(int(usual) * 2 or 1)
    try:
        return str(float(usual) * 2 or 1.0)
    except ValueError:
        return usual


def changed():
    """Every key of a design, with another value that is allowed."""
    declared = {p.key: p for design in graven.catalogue().designs for p in design.parameters}
    values = {key: GIVEN.get(key) or other(parameter) for key, parameter in declared.items()}
    Machine("silo").comparison(values, None)
    return values


def main():
    known = graven.catalogue()
    names = sys.argv[1].split(",")
    if names == ["all"]:
        names = [design.name for design in known.designs]
    differ = 0
    for name in names:
        foreign = {key: value for key, value in changed().items() if not known.reads(name, key)}
        assert len(foreign) > 50, foreign
        size = {"transactions": 200, "threads": 4, "recovery": 2, "store": None}
        usual = graven.run(name, "hash", **size).stats
        came = graven.run(name, "hash", **size, settings=foreign).stats
        stats = [stat for stat in usual if usual[stat] != came[stat]]
        if stats:
            differ += 1
            print(name, *stats)
    print(differ)


main()
