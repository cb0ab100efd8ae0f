"""Kinds of crash inconsistency: a program that makes each mistake, its judge, and what forgives it.

A program is `python/tests/programs/powerfail/SOURCE.c`; with -DREPAIRED it is its twin without the
mistake. Not covered: a new file that is renamed to an old one without an fsync of the folder, which
may leave either name. The command judges contents and lengths of files, not names.
"""

from __future__ import annotations

from typing import NamedTuple

from .tables import ROOT

SOURCES = ROOT / "python/tests/programs/powerfail"
"""The programs."""

CHECK = ("--verify", "{program} check {image}")
NEXT = ("--verify", "{program} next {image}")
LOOP = ("--loop", "{program} loop")
DUMP = ("--tx", "set", "--dump", "{program} dump {image}")
RECOVER = ("--recover", "{program} recover {image}")
ADR = ("--model", "x86-adr")
AMD = ("--model", "x86-adr-amd")
EADR = ("--model", "x86-eadr")
SECTORS = ("--model", "page-cache", "--sector", "512")
PAGES = ("--model", "page-cache", "--sector", "4096")


class Kind(NamedTuple):
    """A kind of mistake, the program that makes it, and a judge that sees it."""

    name: str
    source: str
    repair: str | None
    """The repair; none: what is visible is wrong already, so that no flush or fence mends it."""
    judge: tuple[str, ...] = CHECK
    model: tuple[str, ...] = ADR
    forgiven: tuple[str, ...] = ()
    """Options with which the mistake is none."""
    shown: tuple[str, ...] = ("missing", "present")
    """Stores that violations must name. The others are named at most."""
    flags: tuple[str, ...] = ()
    """Flags of the compiler."""
    memory: tuple[str, ...] = ("--pm-file", "*/pool")


FLUSH = "flush-and-fence"
RETURNS = (*DUMP, "--acknowledge", "return")
NEVER = (*DUMP, "--acknowledge", "never")
KILL = ("present",)
FILES = ("--pm-file", "*/pool*")

KINDS = [
    Kind("missing flush", "missing_flush", FLUSH, forgiven=(*CHECK, *EADR)),
    Kind("missing flush, told by a judge that is kept running", "missing_flush", FLUSH, LOOP),
    Kind("missing fence", "missing_fence", "fence", forgiven=(*CHECK, *EADR)),
    Kind("order of two lines", "order", FLUSH, forgiven=(*CHECK, *EADR)),
    Kind("order of two lines, on AMD", "order", FLUSH, model=AMD),
    Kind("record that straddles two lines", "straddle", FLUSH, forgiven=(*CHECK, *EADR)),
    Kind("value of 16 bytes is not atomic", "torn", "together"),
    Kind("value of 16 bytes is not atomic, told by states", "torn", "together", DUMP),
    Kind("value of 8 bytes over the edge of two words", "edge", "together"),
    Kind("string instruction that copies a flag", "copied", "together"),
    Kind("flush before the last store", "flush_too_early", FLUSH, forgiven=(*CHECK, *EADR)),
    Kind("count before content", "count_first", None, shown=KILL),
    Kind("flag in a line of its own", "same_line_flag", FLUSH, forgiven=(*CHECK, *EADR)),
    Kind("dirty read", "dirty_read", FLUSH, forgiven=(*CHECK, *EADR)),
    Kind(
        "recovery repeats itself",
        "recovery_twice",
        None,
        (*CHECK, *RECOVER),
        forgiven=(*CHECK, *ADR),
        shown=KILL,
    ),
    Kind("leak", "leak", None, shown=KILL),
    Kind("wrong range of msync", "msync_range", "sync", model=PAGES),
    Kind("failed msync", "msync_fails", "sync", model=PAGES),
    Kind("asynchronous msync", "msync_async", "sync", model=PAGES),
    Kind("page torn between sectors", "sectors", "sync", model=SECTORS, forgiven=(*CHECK, *PAGES)),
    Kind("length of a file", "length", "sync", model=PAGES, memory=FILES),
    Kind("count before length", "length_order", None, shown=KILL, memory=FILES),
    Kind("neither fence nor locked instruction", "locked", "fence", forgiven=(*CHECK, *EADR)),
    Kind("non-temporal store without a fence", "non_temporal", "fence"),
    Kind("non-temporal store without a fence, on eADR", "non_temporal", "fence", model=EADR),
    Kind(
        "use after recovery",
        "next_operation",
        None,
        (*CHECK, *NEXT),
        forgiven=(*CHECK, *ADR),
        shown=KILL,
    ),
    Kind(
        "acknowledged and not durable",
        "acknowledged",
        "fence",
        RETURNS,
        forgiven=(*NEVER, *ADR),
        shown=("missing",),
    ),
]
