"""Files that Graven reads, damaged in thousands of ways.

Of each kind of file there are sound ones; inputs are made of these by turning bits, cutting,
splicing, doubling and removing lines or bytes, and by numbers and lengths that are extreme, a few
changes at a time. Others are drawn by Hypothesis from the words that the sound ones have. Each
input ends with a result or with an error that names the file; a panic, an abort, an error of
another kind, more than `SECONDS`, or more memory than `MEMORY_BYTES` is a failure. Inputs are read
in a process that is begun anew when it dies; the last ones of each kind also by the command, whose
exit code must be 0, 1 or 2 without an internal error.

An input is the same whenever it is made (by its kind and number). A task has a kind of file. The
exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import json
import lzma
import os
import queue
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import graven
from graven import _engine
from graven.laboratory.programs import PROGRAMS
from graven.laboratory.state_file import StateFile, sealed

from .runner import STATES, Campaign, Failed, Given, Rows
from .tables import ROOT, Row, Table

TABLE = Table(
    "fuzz",
    (
        "kind", "build", "inputs", "drawn", "accepted", "refused", "refused_with_place", "failed",
        "commands", "commands_failed",
    ),
    ("kind",),
    lambda: ((kind.name,) for kind in KINDS),
)  # fmt: skip

INPUTS, DRAWN, COMMANDS = 2000, 300, 20
SECONDS = 20.0
START_SECONDS = 120.0
MEMORY_BYTES = 3 << 30
"""Limit of addresses, those of the program and its libraries included."""

READER = [sys.executable, "-m", "campaigns.fuzz"]
"""The process that reads."""

REFUSALS = (graven.ConfigError, graven.TraceError, graven.StoreError, graven.OutputError)
EXTREMES = (
    0, 1, 2, 127, 128, 255, 256, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 1 << 40,
    (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64,
)  # fmt: skip
PLACE = re.compile(r"[Ll]ine \d|:\d+|byte |request \d|`[^`]+`|block \d|thread \d|key|column \d")
"""Words of a message that name the place of a mistake."""

KEY = re.compile(r"`[^\s.]+\.\S+`")
"""A key of the configuration."""


# ---- damage --------------------------------------------------------------------------------------

Damage = Callable[[bytes, random.Random, Sequence[bytes]], bytes]


def turned(content: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    """Bits turned."""
    changed = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 8]) if changed else 0):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def cut(content: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    """Without its end, or its beginning."""
    at = draw.randint(0, len(content))
    return content[:at] if draw.random() < 0.8 else content[at:]


def spliced(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """The beginning of one and the end of another."""
    other = draw.choice(others)
    return content[: draw.randint(0, len(content))] + other[draw.randint(0, len(other)) :]


def moved(content: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    """Some bytes removed, doubled, or many times."""
    at = draw.randint(0, len(content))
    end = min(len(content), at + draw.choice([1, 2, 4, 8, 64, 4096]))
    times = draw.choice([0, 0, 2, 2, 500])
    return content[:at] + content[at:end] * times + content[end:]


def numbered(content: bytes, draw: random.Random, _: Sequence[bytes]) -> bytes:
    """An extreme number in the place of some bytes."""
    size = draw.choice([1, 2, 4, 8])
    at = draw.randint(0, max(0, len(content) - size))
    number = (draw.choice(EXTREMES) - draw.choice([0, 0, 1])) & ((1 << 8 * size) - 1)
    return content[:at] + number.to_bytes(size, "little") + content[at + size :]


def lines(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """Lines removed, doubled, exchanged, or from another file."""
    found = content.splitlines(keepends=True) or [b""]
    at, other = draw.randrange(len(found)), draw.randrange(len(found))
    match draw.randrange(5):
        case 0:
            del found[at]
        case 1:
            found.insert(other, found[at])
        case 2:
            found[at], found[other] = found[other], found[at]
        case 3:
            found[at] *= 300
        case 4:
            found.insert(at, draw.choice(draw.choice(others).splitlines(keepends=True) or [b"\n"]))
    return b"".join(found)


_NUMBER = re.compile(rb"0x[0-9a-fA-F]+|\d+(\.\d+)?")
_WORD = re.compile(rb"[A-Za-z_][\w.-]*")


def rewritten(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """A number of the text made extreme, or a word exchanged."""
    is_number = draw.random() < 0.6
    places = list((_NUMBER if is_number else _WORD).finditer(content))
    if not places:
        return content
    place = draw.choice(places)
    if is_number:
        number = draw.choice(EXTREMES)
        new = draw.choice([f"{number}", f"-{number}", f"{number:#x}", "1e999", "nan", "0.5", "",
                           "9" * 400, f"{number} GB"]).encode()  # fmt: skip
    else:
        words = _WORD.findall(draw.choice(others)) or [b"x"]
        odd = [b"", b"\xff", b"\0", "ü".encode(), b"x" * 10_000, b"'", b'"', b"]", b"{"]
        new = draw.choice([draw.choice(words), draw.choice(words), draw.choice(odd)])
    return content[: place.start()] + new + content[place.end() :]


BYTES: tuple[Damage, ...] = (turned, cut, spliced, moved, numbered)
TEXT: tuple[Damage, ...] = (*BYTES, lines, lines, rewritten, rewritten, rewritten)


# ---- kinds of files ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        name: What the table calls it.
        file: What it is called, as it is read.
        sound: Patterns of the sound ones, in the folder of `make_sound`.
        read: Reads one, as the command would.
        commands: What reads it at the command line; `FILE` is its name.
        damage: What may be done to it.
        names_file: Whether an error has to name it.
        has_keys: Whether an error may name a key of the configuration instead: of a trace's header,
            or of a machine that is too small for what runs on it.
    """

    name: str
    file: str
    sound: str
    read: Callable[[Path], object]
    commands: tuple[str, ...]
    damage: tuple[Damage, ...] = BYTES
    names_file: bool = True
    has_keys: bool = False


SWEEPS = (
    """designs = ["base", "silo"]
workloads = ["micro"]
threads = [1, 2]
transactions = 20
seeds = [1, 2]
set = { "workload.footprint_bytes" = "1 MB" }
vary = { "pm.write_ns" = [150, 300] }

[[part]]
workloads = ["tpcc"]
machines = ["silo", "lalea"]
points = [{ "pm.read_ns" = 50, "pm.write_ns" = 150 }, { "pm.read_ns" = 75, "pm.write_ns" = 300 }]
""",
    """designs = ["silo", "fwb"]
workloads = ["hash", "queue"]
machine = "cramped"
transactions = 10
seed = 3
crash = { every = 4, lives = 1, garbage = true }
""",
)
"""Texts of sweeps."""

SMALL = {"workload.footprint_bytes": "64 KB"}
"""Sizes of programs whose traces are damaged."""

LONGEST_BYTES = 16 << 20
"""Size of an input at most."""


def make_sound(folder: Path) -> None:
    """Sound files of all kinds."""
    for number, (design, workload) in enumerate([("silo", "hash"), ("lad", "array")]):
        common = {"threads": 2, "transactions": 12, "seed": number}
        trace = folder / f"{number}.gvt"
        graven.record_trace(trace, design, workload, **common, settings=SMALL)
        requests = folder / f"{number}.grt"
        graven.run(design, workload, request_trace=requests, store=None, **common)
        graven.convert_requests(requests, folder / f"{number}.nvt")
        graven.export_champsim(trace, folder / f"{number}.champsim", transactions=4)
        raw = (folder / f"{number}.champsim").read_bytes()[:6400]
        (folder / f"{number}.champsim").write_bytes(raw)
        (folder / f"{number}.champsim.xz").write_bytes(lzma.compress(raw))
        (folder / f"{number}.champsim.gz").write_bytes(gzip.compress(raw))
    shutil.copy(ROOT / "crates/graven/tests/traces/version-1.gvt", folder / "2.gvt")
    _make_traces_of_others(folder)
    text = "".join(f"0x{64 * at:x} {'READ' if at % 3 else 'WRITE'} {7 * at}\n" for at in range(30))
    (folder / "0.trc").write_text(text)
    (folder / "1.trc").write_text("".join(text.splitlines(keepends=True)[:3]))
    for path in [*ROOT.glob("machines/*/machine.toml"), *ROOT.glob("papers/*/machine.toml")]:
        shutil.copy(path, folder / f"{path.parent.name}.toml")
    for path in PROGRAMS.rglob("*.litmus"):
        shutil.copy(path, folder / f"{path.parent.name}-{path.name}")
    for number, text in enumerate(SWEEPS):
        (folder / f"{number}.sweep").write_text(text)
    _make_store(folder / "store")
    from graven.laboratory.adversary import AdversaryCampaign
    from graven.laboratory.check import Bound, Check
    from graven.running.work import How, Local

    campaign = AdversaryCampaign.prepare(_plan())
    campaign.run(workers=1)
    StateFile(folder / "0.schedules").write(campaign.state())
    check = Check.prepare(("lad",), Bound(transactions=1, departures=0))
    check.run(How(executor=Local(1)))
    StateFile(folder / "0.check").write(check.state())
    for name in ("segment", "under", "index", "about"):
        for number, path in enumerate(sorted((folder / "store").glob(_IN_STORE[name]))):
            shutil.copy(path, folder / f"{number}.{name}")


def _make_traces_of_others(folder: Path) -> None:
    """Small traces of other tools, as these write them."""
    places = [(at, 0x1000 * (at % 5) + 24 * at) for at in range(40)]
    lackey = [f"I  {4 * at:08x},4\n {'LSM'[at % 3]} {place:08x},8\n" for at, place in places]
    (folder / "0.lackey").write_text("==7== Lackey\n" + "".join(lackey) + "==7== end\n")
    entries = [(25, 0, 7), (22, 4, 7), (24, 4, 7), (28, 9, 0xE40)]
    for at, place in places:
        entries += [(47, 4, 0x90), (10, 4, 4 * at), (at % 3 & 1, 8, place), (3 + at % 2, 64, place)]
    entries += [(17, 8, 0x101), (29, 2, 4), (20, 64, 0x1000), (23, 4, 7), (26, 0, 0)]
    content = b"".join(struct.pack("<HHQ", *entry) for entry in entries)
    (folder / "0.drmemtrace").write_bytes(content)
    # Only the first version has several threads in a file.
    entries[0], entries[20], entries[40] = (25, 0, 1), (22, 4, 8), (22, 4, 7)
    several = b"".join(struct.pack("<HHQ", *entry) for entry in entries)
    (folder / "1.drmemtrace").write_bytes(several)
    for number, how in enumerate((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED)):
        with zipfile.ZipFile(folder / f"{number}.drmemtrace.zip", "w", how) as packed:
            packed.writestr(zipfile.ZipInfo("chunk.0000"), content[:600], how)
            packed.writestr(zipfile.ZipInfo("chunk.0001"), content[600:], how)
    lines = {
        "0.core": [f"{at} {place}\n" for at, place in places],
        "1.core": [f"{at} {place} {64 * at + 1}\n" for at, place in places],
        "2.core": [f"{at} {place:#x} {'RW'[at % 2]}\n" for at, place in places],
        "3.core": [f"{at} R {place:#x} 0x40\n{at} W {place:#x}\n" for at, place in places],
        "0.ramulator": [f"{place:#x} {'RW'[at % 2]}\n" for at, place in places],
        "1.ramulator": [f"{('LD', 'ST')[at % 2]} {place:#x}\n" for at, place in places],
        "2.ramulator": [f"{'RW'[at % 2]} 0,{at % 2},{at}\n" for at, place in places],
        "0.stl": [f"{at}: {('read', 'write')[at % 2]} {place:#x}\n" for at, place in places],
        "1.stl": [f"{at}: (64) write {64 * at:#x} 0x{at:02x}{'ab' * 63}\n" for at, _ in places],
    }
    for name, text in lines.items():
        (folder / name).write_text("".join(text))
    packet = struct.Struct("<BBHBBBBBQ")  # a fixed number of 64 bits is no tick, and is passed over
    trace = b"gem5\x0d\x0a\x04test\x18" + b"\x80\xa0\x94\xa5\x8d\x1d"
    for at, _ in places:
        message = packet.pack(8, at, 0x0110 if at % 2 else 0x0410, 0x18, at, 0x20, 64, 0x39, at)
        trace += bytes([len(message)]) + message
    (folder / "0.gem5").write_bytes(trace)


_IN_STORE = {
    "segment": "segments/*.tsv",
    "under": "under-way/*.tsv",
    "index": "index-*.sqlite",
    "about": "store.json",
}


def _make_store(folder: Path) -> None:
    from graven.laboratory.adversary import AdversaryCampaign
    from graven.store import Store
    from graven.store.keeper import request_of_schedules

    for seed in range(3):
        graven.run("silo", "hash", transactions=4, seed=seed, store=folder)
    graven.crash("silo", "hash", transactions=2, store=folder)
    graven.litmus(PROGRAMS / "silo/silent-store.litmus", store=folder)
    campaign = AdversaryCampaign.prepare(_plan())
    store = Store(folder)
    store.refresh()
    store.keep_state(request_of_schedules(_plan()), campaign.state())
    store.close()


def _plan():  # type: ignore[no-untyped-def]  # noqa: ANN202 - imported when it is needed
    from graven.laboratory.adversary import AdversaryRequest, Schedules

    return AdversaryRequest(("silo",), Schedules(2))


def read_program_trace(path: Path) -> object:
    """All of it, and a replay."""
    graven.trace_info(path)
    _engine.trace_properties(str(path))
    return graven.replay(path, "silo", machine="silo")


def read_requests(path: Path) -> object:
    """A replay, and the same requests in the other format."""
    graven.memory(path, store=None)
    return graven.convert_requests(path, path.with_name("out.grt"))


def read_requests_for_ramulator(path: Path) -> object:
    """The same of what may have addresses that are vectors."""
    from graven.api.recognised import VECTORS, recognised

    levels = (2, 2, 4096) if recognised(path.read_bytes()[:4096]) is VECTORS else None
    graven.memory(path, store=None, levels=levels)
    return graven.convert_requests(path, path.with_name("out.grt"), levels=levels, clock="1 GHz")


def read_trace_of_others(path: Path) -> object:
    """A program trace of it."""
    return graven.import_trace([path], path.with_name("out.gvt"), transaction_stores=4)


def read_champsim(path: Path) -> object:
    """A program trace of it."""
    return graven.import_champsim([path], path.with_name("out.gvt"), transaction_stores=4)


def read_machine(path: Path) -> object:
    """Reads its comparison, and simulates shortly."""
    from graven.engine.machine import Machine

    Machine.find(path).comparison({}, None)
    return graven.run("silo", "array", machine=path, threads=1, transactions=2, store=None)


def read_sweep(path: Path) -> object:
    """All that it asks for, checked; nothing runs."""
    from graven.api.sweeps import Sweep

    sweep = Sweep.read(path)
    sweep.check()
    return len(sweep.jobs)


def read_litmus(path: Path) -> object:
    """The program on its designs."""
    return graven.litmus(path, store=None)


def read_schedules(path: Path) -> object:
    """A state of the adversary, to its end."""
    from graven.laboratory.adversary import AdversaryCampaign

    state = StateFile(path)
    text = state.read()
    try:
        return AdversaryCampaign.prepare(_plan(), text).run(workers=1)
    except graven.ConfigError as error:
        raise state.refused(error) from None


def read_check(path: Path) -> object:
    """A state of a check, to its end."""
    from graven.laboratory.check import Bound, Check, go_on_from
    from graven.running.work import How, Local

    check = Check.prepare(("lad",), Bound(transactions=1, departures=0))
    go_on_from(check, StateFile(path))
    check.run(How(executor=Local(1)))
    return check.results


def read_store(which: str, path: Path) -> object:
    """A store with that file in it: everything that is done with one."""
    from graven.store import Store
    from graven.store.keeper import request_of_schedules
    from graven.store.upkeep import clean, merge, verify

    folder = path.with_name("store")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(path.with_name("sound") / "store", folder)
    [place] = folder.glob(_IN_STORE[which]) if which != "segment" else [_first_segment(folder)]
    shutil.copy(path, place)
    if which == "segment":
        for index in folder.glob("index-*"):
            index.unlink()
    store = Store(folder)
    store.refresh()
    for digest in [record.request.digest for record in store.records()]:
        store.record(digest)
    store.index.query("SELECT * FROM results")
    store.index.query("SELECT * FROM statistics")
    store.index.damaged()
    store.state(request_of_schedules(_plan()))
    verify(store)
    other = Store(path.with_name("other"))
    merge(other, store)
    other.close()
    shutil.rmtree(path.with_name("other"))
    clean(store)
    assert verify(store).damaged == []
    store.close()
    return None


def _first_segment(folder: Path) -> Path:
    return min(folder.glob("segments/*.tsv"))


def resealed(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """A line of a segment with something else in it, under the right checksum."""
    found = content.splitlines(keepends=True) or [b""]
    at = draw.randrange(len(found))
    body = found[at].partition(b"\t")[2].rstrip(b"\n")
    body = draw.choice([rewritten, turned, cut, moved])(body, draw, others).replace(b"\n", b"")
    found[at] = hashlib.sha256(body).hexdigest().encode() + b"\t" + body + b"\n"
    return b"".join(found)


def sealed_state(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """A state with something else in it, under the right checksum if it still is JSON."""
    try:
        inside = json.dumps(json.loads(content)["state"], indent=1).encode()
    except (ValueError, LookupError, TypeError, RecursionError):
        inside = content  # it has been damaged before
    changed = draw.choice(TEXT)(inside, draw, others)
    try:
        return sealed(json.loads(changed)).encode()
    except (ValueError, RecursionError):
        return changed


def _number(content: bytes, at: int) -> int:
    return int.from_bytes(content[at : at + 4], "little")


def _seal(content: bytearray, place: int, *parts: tuple[int, int]) -> None:
    """Writes the checksum of some parts, each from a byte up to before another."""
    if 0 <= place <= len(content) - 4:
        sealed = b"".join(bytes(content[max(0, first) : end]) for first, end in parts)
        content[place : place + 4] = zlib.crc32(sealed).to_bytes(4, "little")


def sealed_trace(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """A program trace with something else in it, under right checksums (program/layout.rs)."""
    changed = bytearray(draw.choice([turned, numbered])(content, draw, others))
    end, header = len(changed), _number(changed, 12)
    index, at = _number(changed, end - 32), 20 + header
    _seal(changed, 16, (0, 16), (20, 20 + header))
    while at + 52 <= min(index, end):
        stored = _number(changed, at + 12)
        _seal(changed, at + 48, (at, at + 48), (at + 52, at + 52 + stored))
        at += 52 + stored
    _seal(changed, end - 16, (index, end - 32))
    _seal(changed, end - 4, (end - 32, end - 4))
    return bytes(changed)


def sealed_requests(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """The same of a binary trace of requests (requests/binary.rs)."""
    changed = bytearray(draw.choice([turned, numbered])(content, draw, others))
    _seal(changed, 12, (0, 12))
    at = 16
    while changed[at : at + 4] == b"REQS":
        stored = _number(changed, at + 8)
        _seal(changed, at + 24, (at, at + 24), (at + 28, at + 28 + stored))
        at += 28 + stored
    _seal(changed, at + 16, (at, at + 16))
    return bytes(changed)


KINDS = (
    Kind("program trace", "t.gvt", "*.gvt", read_program_trace,
         ("trace info FILE --properties", "trace replay FILE --design silo"),
         (*BYTES, *[sealed_trace] * 20), has_keys=True),
    Kind("requests, binary", "r.grt", "*.grt", read_requests,
         ("memory FILE --no-store", "trace convert FILE --to o.nvt"),
         (*BYTES, *[sealed_requests] * 20)),
    Kind("requests, NVMain", "r.nvt", "*.nvt", read_requests,
         ("memory FILE --no-store", "trace convert FILE --to o.grt"), TEXT),
    Kind("requests, DRAMsim3", "r.trc", "*.trc", read_requests,
         ("memory FILE --no-store", "memory FILE --dram --no-store"), TEXT),
    Kind("ChampSim", "c.champsim", "*.champsim", read_champsim, ("trace convert FILE --to o.gvt",)),
    Kind("ChampSim, xz", "c.xz", "*.champsim.xz", read_champsim,
         ("trace convert FILE --to o.gvt",)),
    Kind("ChampSim, gzip", "c.gz", "*.champsim.gz", read_champsim,
         ("trace convert FILE --to o.gvt",)),
    Kind("lackey", "l.txt", "*.lackey", read_trace_of_others, ("trace convert FILE --to o.gvt",),
         TEXT),
    Kind("drmemtrace", "d.trace", "*.drmemtrace", read_trace_of_others,
         ("trace convert FILE --to o.gvt",)),
    Kind("drmemtrace, zip", "d.zip", "*.drmemtrace.zip", read_trace_of_others,
         ("trace convert FILE --to o.gvt",)),
    Kind("Ramulator's and USIMM's cores", "c.trace", "*.core", read_trace_of_others,
         ("trace convert FILE --to o.gvt",), TEXT),
    Kind("requests, Ramulator", "r.trace", "*.ramulator", read_requests_for_ramulator,
         ("memory FILE --no-store", "trace convert FILE --to o.grt --clock 1GHz"), TEXT),
    Kind("requests, gem5", "r.gem5", "*.gem5", read_requests,
         ("memory FILE --no-store", "trace convert FILE --to o.grt")),
    Kind("requests, DRAMSys", "r.stl", "*.stl", read_requests,
         ("memory FILE --no-store", "trace convert FILE --to o.grt"), TEXT),
    Kind("machine", "m.toml", "*.toml", read_machine,
         ("run --design silo --workload array --machine ./FILE --transactions 2 --no-store",),
         TEXT, has_keys=True),
    Kind("sweep", "s.toml", "*.sweep", read_sweep, ("sweep FILE --dry-run",), TEXT, has_keys=True),
    Kind("litmus program", "p.litmus", "*.litmus", read_litmus, ("litmus FILE --no-store",), TEXT),
    Kind("schedules", "s.json", "*.schedules", read_schedules,
         ("adversary --design silo --schedules 2 --state FILE",),
         (*TEXT, *[sealed_state] * 20)),
    Kind("check", "c.json", "*.check", read_check,
         ("check lad --transactions 1 --departures 0 --state FILE",),
         (*TEXT, *[sealed_state] * 20)),
    Kind("segment", "s.tsv", "*.segment", partial(read_store, "segment"), (),
         (*TEXT, resealed, resealed, resealed, resealed), names_file=False),
    Kind("index", "i.sqlite", "*.index", partial(read_store, "index"), (), names_file=False),
    Kind("store.json", "a.json", "*.about", partial(read_store, "about"), (), TEXT,
         names_file=False),
    Kind("under way", "u.tsv", "*.under", partial(read_store, "under"), (),
         (*TEXT, resealed, resealed), names_file=False),
)  # fmt: skip


def kind_of(name: str) -> Kind:
    """The kind of a name."""
    return next(kind for kind in KINDS if kind.name == name)


def sound_of(kind: Kind, sound: Path) -> list[bytes]:
    """The sound files of a kind."""
    found = [path.read_bytes() for path in sorted(sound.glob(kind.sound))]
    assert found, f"there is no sound {kind.name}"
    return found


def damaged(kind: Kind, number: int, sound: Sequence[bytes]) -> bytes:
    """An input of a kind, by its number."""
    draw = random.Random(f"{kind.name} {number}")
    content = draw.choice(sound)
    for _ in range(draw.choice([1, 1, 1, 2, 3, 6])):
        content = draw.choice(kind.damage)(content, draw, sound)
    return content[:LONGEST_BYTES]


# ---- the process that reads ----------------------------------------------------------------------


def outcome_of(kind: Kind, path: Path) -> tuple[str, str]:
    """Reads a file; returns `accepted`, `refused` or `failed`, and the message."""
    try:
        kind.read(path)
    except graven.SimulationError as error:
        return "accepted", str(error)
    except REFUSALS as error:
        said = str(error)
        if kind.names_file and path.name not in said and not (kind.has_keys and KEY.search(said)):
            return "failed", f"does not name the file: {said}"
        return "refused", said
    except MemoryError:
        return "failed", "out of memory"
    except BaseException as error:  # a panic is none of `Exception`
        return "failed", f"{type(error).__name__}: {error}"
    return "accepted", ""


def work(kind: Kind, folder: Path, first: int, count: int, *, drawn: bool) -> None:
    """Reads inputs one after the other, and tells the outcome of each, in lines of JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    os.chdir(folder)
    path, sound = folder / kind.file, sound_of(kind, folder / "sound")

    def tell(number: int, content: bytes) -> None:
        path.write_bytes(content)
        print(json.dumps({"number": number}), flush=True)
        outcome, said = outcome_of(kind, path)
        print(json.dumps({"number": number, "outcome": outcome, "said": said[:600]}), flush=True)

    if drawn:
        _draw(sound, first, count, tell)
        return
    for number in range(first, first + count):
        tell(number, damaged(kind, number, sound))


def _draw(
    sound: Sequence[bytes], first: int, count: int, tell: Callable[[int, bytes], None]
) -> None:
    """Inputs from Hypothesis: words of sound files and others, in any order; or any bytes."""
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st

    words = sorted({word for content in sound for word in re.findall(rb"[^\s]+", content[:20_000])})
    word = st.one_of(
        st.sampled_from(words),
        st.sampled_from([str(number).encode() for number in EXTREMES]),
        st.text(max_size=6).map(str.encode),
        st.binary(max_size=4),
    )
    line = st.lists(word, max_size=8).map(b" ".join)
    text = st.lists(line, max_size=12).map(b"\n".join)
    head = st.sampled_from(sound).map(lambda content: content[: content.find(b"\n") + 1])
    whole = st.tuples(head | st.just(b""), text | st.binary(max_size=200)).map(b"".join)
    numbers = iter(range(first, first + count))

    @seed(first)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(whole)
    def each(content: bytes) -> None:
        number = next(numbers, None)
        if number is not None:
            tell(number, content)

    each()


# ---- the process that watches --------------------------------------------------------------------


@dataclass
class Tried:
    """Outcomes of the inputs of a kind."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)

    def note(self, number: int, outcome: str, said: str) -> None:
        """Counts an input."""
        self.counts[outcome] += 1
        if outcome == "refused" and PLACE.search(said):
            self.counts["with place"] += 1
        if outcome == "failed":
            self.failures.append((number, said))


def environment() -> dict[str, str]:
    """Returns the environment of the processes that read."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "python")])
    return {**os.environ, "PYTHONPATH": path, "NO_COLOR": "1", "GRAVEN_STORE": ""}


def watch(kind: Kind, folder: Path, count: int, tried: Tried, *, drawn: bool = False) -> None:
    """Has inputs read, by a process that is begun anew after each that is its end."""
    first = 0
    while first < count:
        first = _watched(kind, folder, first, count - first, tried, drawn=drawn)


def _watched(kind: Kind, folder: Path, first: int, count: int, tried: Tried, *, drawn: bool) -> int:
    """Returns the number after the last input that was read."""
    how = [kind.name, str(folder), str(first), str(count), str(int(drawn))]
    process = subprocess.Popen(
        [*READER, *how],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=(folder / "errors").open("wb"),
        text=True,
        start_new_session=True,
    )
    came: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_take_lines, args=(process, came), daemon=True).start()
    current, why = first - 1, ""
    while True:
        try:
            line = came.get(timeout=SECONDS if current >= first else START_SECONDS)
        except queue.Empty:
            why = f"hangs: more than {SECONDS:.0f} s"
            break
        if not line:
            break
        said = json.loads(line)
        if "outcome" not in said:
            current = said["number"]
            continue
        tried.note(current, said["outcome"], said["said"])
        if said["outcome"] == "failed":
            _keep(kind, folder, current, drawn=drawn)
        if current == first + count - 1:
            break
    with contextlib.suppress(ProcessLookupError):
        if why:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if not why and process.returncode == 0:
        return first + count
    assert current >= first, (folder / "errors").read_text(errors="replace")
    errors = (folder / "errors").read_text(errors="replace").strip().splitlines()[-3:]
    tried.note(current, "failed", why or f"died ({process.returncode}): {' '.join(errors)}")
    _keep(kind, folder, current, drawn=drawn)
    return current + 1


def _take_lines(process: subprocess.Popen[str], came: queue.Queue[str]) -> None:
    """Takes what a process says, line by line, and at its end an empty one."""
    assert process.stdout is not None
    for line in process.stdout:
        came.put(line)
    came.put("")


def _keep(kind: Kind, folder: Path, number: int, *, drawn: bool) -> None:
    """Keeps an input that fails."""
    kept = folder / "failed"
    kept.mkdir(exist_ok=True)
    name = f"{kind.name}-{'drawn-' if drawn else ''}{number}-{kind.file}".replace(" ", "_")
    with contextlib.suppress(FileNotFoundError):
        shutil.copy(folder / kind.file, kept / name)


def by_command(kind: Kind, folder: Path, numbers: Sequence[int], tried: Tried) -> int:
    """Has inputs read by the command; returns the number that failed."""
    failed, sound = 0, sound_of(kind, folder / "sound")
    for at, number in enumerate(numbers if kind.commands else ()):
        (folder / kind.file).write_bytes(damaged(kind, number, sound))
        words = kind.commands[at % len(kind.commands)].replace("FILE", kind.file).split()
        try:
            done = subprocess.run(
                [sys.executable, "-m", "graven", *words],
                cwd=folder,
                env=environment(),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=3 * SECONDS,
                check=False,
            )
            code, errors = done.returncode, done.stderr
        except subprocess.TimeoutExpired:
            code, errors = -1, "hangs"
        if code not in (0, 1, 2) or re.search("internal error|Traceback|panicked", errors):
            failed += 1
            tried.failures.append((number, f"graven {' '.join(words)}: {code}: {errors[-300:]}"))
            _keep(kind, folder, number, drawn=False)
    return failed


def row_of(kind: Kind, folder: Path, given: Given) -> Row:
    """Tries a kind: its row. What failed is printed."""
    tried = Tried()
    watch(kind, folder, given.inputs, tried)
    watch(kind, folder, given.drawn, tried, drawn=True)
    last = range(given.inputs - given.commands, given.inputs)
    failed = by_command(kind, folder, last, tried)
    for number, said in tried.failures:
        print(f"{kind.name} {number}: {said}", flush=True)
    counts = tried.counts
    return TABLE.row(
        kind.name, _engine.build()[:16], given.inputs, given.drawn, counts["accepted"],
        counts["refused"], counts["with place"], counts["failed"],
        given.commands if kind.commands else 0, failed,
    )  # fmt: skip


def measure(name: str, given: Given) -> Rows:
    """Tries a kind of file."""
    with tempfile.TemporaryDirectory(prefix="graven-fuzz-") as temporary:
        folder = Path(temporary)
        (folder / "sound").mkdir()
        make_sound(folder / "sound")
        row = row_of(kind_of(name), folder, given)
        if (folder / "failed").exists():
            shutil.copytree(folder / "failed", given.keep, dirs_exist_ok=True)
    if not given.sample:
        return {TABLE: [row]}
    print(json.dumps(row), flush=True)
    if failed := list(wrong([row])):
        raise Failed(*failed)
    return {}


def options(parser: argparse.ArgumentParser) -> None:
    """Adds sizes, and the folder of inputs that failed."""
    for name, default, what in (
        ("inputs", INPUTS, "of each kind"),
        ("drawn", DRAWN, "that Hypothesis draws, besides"),
        ("commands", COMMANDS, "of the inputs that the command reads, too"),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{what} ({default})")
    parser.add_argument("--sample", action="store_true", help="leave the table as it is")
    what = "where inputs that fail are left"
    parser.add_argument("--keep", type=Path, default=STATES / "fuzz", metavar="FOLDER", help=what)


def wrong(rows: Sequence[Row]) -> list[str]:
    """Names the kinds of input that failed."""
    return [
        f"{row['kind']}: {row['failed']} inputs and {row['commands_failed']} commands failed"
        for row in rows
        if (row["failed"], row["commands_failed"]) != ("0", "0")
    ]


CAMPAIGN = Campaign(
    lambda _: (kind.name for kind in KINDS),
    measure,
    [TABLE],
    wrong=wrong,
    options=options,
    sizes=("inputs", "drawn", "commands"),
    repeats=lambda _, given: given.sample,
)

if __name__ == "__main__":
    of, where, first, count, drawn = sys.argv[1:]
    work(kind_of(of), Path(where), int(first), int(count), drawn=drawn == "1")
