"""Architectures whose programs can be captured, by what, and folders of their libraries."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from graven.basics.errors import CaptureError


@dataclass(frozen=True)
class Guest:
    """Programs of one architecture.

    Attributes:
        name: The architecture.
        qemu: The program that runs them, and is slow enough to watch them.
        options: Options of QEMU. For AArch64: there are no scalable vectors, whose loads and stores
            QEMU shows to no plugin; pointers are signed by a hash that is fast.
        sysroots: Folders that may have their loader and libraries, where `/` has not.
        libraries: The distribution's package of those.
    """

    name: str
    qemu: str
    options: tuple[str, ...] = ()
    sysroots: tuple[str, ...] = ()
    libraries: str | None = None


GUESTS: Mapping[int, Guest] = {
    62: Guest("x86-64", "qemu-x86_64", sysroots=("/etc/qemu-binfmt/x86_64",)),
    183: Guest(
        "AArch64",
        "qemu-aarch64",
        ("-cpu", "max,sve=off,sme=off,pauth-impdef=on"),
        ("/etc/qemu-binfmt/aarch64", "/usr/aarch64-linux-gnu"),
        "libc6-arm64-cross",
    ),
}
"""By the machine of an executable, as its header has it."""

OTHERS: Mapping[int, str] = {
    **{number: guest.name for number, guest in GUESTS.items()},
    **{3: "i386", 8: "MIPS", 21: "PowerPC", 22: "s390", 40: "Arm", 243: "RISC-V", 258: "LoongArch"},
}
"""Names of machines of executables."""

HEADER_BYTES = 64
"""Bytes of the header of an executable of 64 bits."""

LOADER = 3
"""The kind of a program header that names the loader (`PT_INTERP`)."""


def guest_of(path: Path, header: bytes) -> Guest:
    """The architecture of an executable, by its header.

    Raises:
        CaptureError: programs of that architecture are not captured.
    """
    is_little, is_wide = header[5] == 1, header[4] == 2
    machine = int.from_bytes(header[18:20], "little" if is_little else "big")
    if is_little and is_wide and machine in GUESTS:
        return GUESTS[machine]
    name = OTHERS.get(machine, f"machine {machine} of ELF")
    name = f"{'' if is_wide else '32-bit '}{'' if is_little else 'big-endian '}{name}"
    known = " and ".join(guest.name for guest in GUESTS.values())
    raise CaptureError(f"{path} is a program for {name}; captured are programs for {known}")


def sysroot_of(path: Path, guest: Guest, given: Path | None) -> Path | None:
    """The folder in which QEMU looks for a program's loader and libraries before it does in `/`.

    Raises:
        CaptureError: the loader is nowhere.
    """
    if given is not None and not given.is_dir():
        raise CaptureError(f"--sysroot: {given} is no folder")
    loader = _loader(path)
    if loader is None:
        return given
    prefix = os.environ.get("QEMU_LD_PREFIX")
    # What is named comes first, and alone; QEMU honours the variable itself.
    named = given or (Path(prefix) if prefix else None)
    places = [named] if named else [Path(folder) for folder in guest.sysroots]
    for place in places:
        if place.joinpath(loader.lstrip("/")).exists():
            return place
    if Path(loader).exists():
        return given
    there = f", nor in {named}" if named else ""
    package = guest.libraries and f"Debian, Ubuntu: apt install {guest.libraries}; "
    raise CaptureError(
        f"{path} is linked dynamically, and its loader {loader} is not there{there}: --sysroot "
        f"names the folder that has it and the libraries ({package or ''}or link with -static)"
    )


def _loader(path: Path) -> str | None:
    """The loader that an executable names, if it is linked dynamically."""
    with path.open("rb") as file:

        def read(start: int, length: int) -> bytes:
            file.seek(start)
            return file.read(length)

        def number(of: bytes, start: int, length: int) -> int:
            return int.from_bytes(of[start : start + length], "little")

        header = read(0, HEADER_BYTES)
        first, size, count = number(header, 32, 8), number(header, 54, 2), number(header, 56, 2)
        for at in range(count):
            entry = read(first + at * size, size)
            if number(entry, 0, 4) == LOADER:
                name = read(number(entry, 8, 8), number(entry, 32, 8))
                return name.rstrip(b"\0").decode(errors="surrogateescape")
    return None
