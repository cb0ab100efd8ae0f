"""Formats of traces, told by the beginning of a file: those that are read, and those of others.

A user has a file of another simulator, or names the right file to the wrong command. The error says
which format it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from graven.basics import compressed


@dataclass(frozen=True)
class Format:
    """A format of traces.

    Attributes:
        name: As messages say it.
        reader: What reads it, if anything here does.
        imported_as: The engine's name for it, if a program trace can be made of it.
        lacks: Of such a format, things that a program has and it has not.
    """

    name: str
    reader: str = ""
    imported_as: str = ""
    lacks: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.reader} reads it)" if self.reader else self.name


PROGRAM = Format("a program trace of Graven", "graven trace")
BINARY = Format("a binary request trace of Graven", "graven memory")
NVMAIN = Format("a request trace of NVMain", "graven memory")
DRAMSIM3 = Format("a request trace of DRAMsim3", "graven memory")
CHAMPSIM = Format(
    "a trace of ChampSim",
    "graven trace convert",
    "champsim",
    "values, transactions and sizes of accesses",
)
LACKEY = Format(
    "a trace of valgrind's lackey",
    "graven trace convert",
    "lackey",
    "values, transactions, registers and threads",
)
DRMEMTRACE = Format(
    "a trace of DynamoRIO's drmemtrace",
    "graven trace convert",
    "drmemtrace",
    "values, transactions and registers",
)
RAMULATOR = Format(
    "a trace of a core of Ramulator (SimpleO3)",
    "graven trace convert",
    "ramulator",
    "values, transactions, registers and sizes of accesses",
)
TEXT = Format("a text of no known format")

USIMM = Format(
    "a trace of USIMM",
    "graven trace convert",
    "usimm",
    "values, transactions, registers and sizes of accesses",
)
DRAM = Format("a request trace of Ramulator 1", "graven memory")
LOAD_STORE = Format("a load-store trace of Ramulator 2", "graven memory")
VECTORS = Format("a read-write trace of Ramulator 2", "graven memory")
GEM5 = Format("a packet trace of gem5", "graven memory")
DRAMSYS = Format("a trace of DRAMSys", "graven memory")

REQUESTS = (BINARY, NVMAIN, DRAMSIM3, DRAM, LOAD_STORE, VECTORS, GEM5, DRAMSYS)
"""The formats of `graven.memory`."""

PROGRAMS = (CHAMPSIM, LACKEY, DRMEMTRACE, RAMULATOR, USIMM)
"""The formats of which program traces are made."""

_MAGIC = {
    b"\x89GRVNT\r\n": PROGRAM,
    b"\x89GRVNR\r\n": BINARY,
    # The type of a header, which has no size.
    b"\x19\x00\x00\x00": DRMEMTRACE,
    # `gem5` as a number of 32 bits, little endian.
    b"gem5": GEM5,
}

_HEX = r"(0x)?[0-9a-f]+"

_NUMBER = r"(0x[0-9a-f]+|\d+)"

_LINES = (
    (NVMAIN, r"nvmv.*"),
    (NVMAIN, rf"\d+\s+[rw]\s+{_HEX}\s+[0-9a-f]{{128}}(\s.*)?"),
    (DRAMSIM3, rf"{_HEX}\s+[a-z]\w+\s+\d+"),
    (USIMM, rf"\d+\s+(r\s+{_HEX}\s+{_HEX}|w\s+{_HEX})"),
    (DRAM, r"0x[0-9a-f]+\s+[rw]"),
    (LOAD_STORE, rf"(ld|st)\s+{_HEX}"),
    (VECTORS, r"[rw]\s+\d+(,\d+)+"),
    (RAMULATOR, rf"\d+\s+{_NUMBER}(\s+({_NUMBER}|[rw]))?"),
    (DRAMSYS, rf"\d+:?\s+(\(\d+\)\s+)?(read|write)\s+{_HEX}(\s.*)?"),
    (LACKEY, r"[ilsm]\s+[0-9a-f]+,\d+"),
    (Format("a store log of valgrind's pmemcheck"), r".*\|(store|flush|fence)[;|].*"),
)
"""Formats of text by their first line that is no comment."""

_COMMENT = re.compile(r"#|;|//|==\d+==|\*")

INSTRUCTION_BYTES = 64
"""Bytes of an instruction of ChampSim."""


def recognised(beginning: bytes) -> Format | None:
    """The format that a trace looks like by its first bytes, if it looks like any."""
    for magic, found in _MAGIC.items():
        if beginning.startswith(magic):
            return found
    for known in compressed.READ:
        if known.magic.match(beginning):
            return Format(f"a file compressed by {known.name}, and once more")
    text = _text(beginning)
    if text is None:
        return CHAMPSIM if _is_champsim(beginning) else None
    lines = (line.strip().lower() for line in text.splitlines())
    first = next((line for line in lines if line and not _COMMENT.match(line)), "")
    for found, pattern in _LINES:
        if re.fullmatch(pattern, first):
            return found
    return TEXT if text.strip() else None


def _text(beginning: bytes) -> str | None:
    """The whole lines of a text, or nothing if it is none."""
    whole = (
        beginning.rpartition(b"\n")[0]
        if len(beginning) >= compressed.BEGINNING_BYTES
        else beginning
    )
    if re.search(rb"[\x00-\x08\x0e-\x1f\x7f]", beginning):
        return None
    try:
        return whole.decode()
    except UnicodeDecodeError:
        return None


def _is_champsim(beginning: bytes) -> bool:
    """Tells instructions by their addresses, and by the bytes that say whether they branch."""
    count = min(len(beginning) // INSTRUCTION_BYTES, 4)
    records = [beginning[INSTRUCTION_BYTES * at :][:INSTRUCTION_BYTES] for at in range(count)]
    return count > 0 and all(
        4096 <= int.from_bytes(record[:8], "little") < 1 << 48 and max(record[8:10]) <= 1
        for record in records
    )
