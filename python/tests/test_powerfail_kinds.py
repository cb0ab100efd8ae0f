"""`graven powerfail`: programs of one kind of crash inconsistency each, and their repaired twins.

Bug class: a kind is missed, is blamed on other stores, or is seen in a program that is right.

Not covered: a new file that is renamed to an old one without an fsync of the folder, which may
leave either name. The command judges contents and lengths of files, not names.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from capturing import PROGRAMS

pytestmark = pytest.mark.usefixtures("tools")

SOURCES = PROGRAMS / "powerfail"
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
    """What mends it; none: what is visible is wrong already, so that no flush or fence does."""
    judge: tuple = CHECK
    model: tuple = ADR
    forgiven: tuple = ()
    """Options with which the mistake is none."""
    shown: tuple = ("missing", "present")
    """Stores that violations must name. The others are named at most."""
    flags: tuple = ()
    """Of the compiler."""
    memory: tuple = ("--pm-file", "*/pool")


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


def marked(source, mark):
    """The lines of a source with a comment that has this mark."""
    lines = (SOURCES / f"{source}.c").read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if re.search(rf"// .*{mark}", line)}


def lines_of(stores, source):
    """The source lines of stores, which are all this program's."""
    places = [store["place"] for store in stores]
    assert {Path(place["file"]).name for place in places} <= {f"{source}.c"}, places
    return {place["line"] for place in places}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Gives the program of a kind, or its twin, compiled when it is first asked for."""
    folder = tmp_path_factory.mktemp("kinds")

    def program(kind, *flags):
        path = folder / "".join((kind.source, *kind.flags, *flags))
        if not path.exists():
            command = ["cc", "-g", "-O1", "-Wall", "-Wextra", "-pthread"]
            command += [*kind.flags, *flags, "-o", path, SOURCES / f"{kind.source}.c"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        return path

    return program


@pytest.fixture(scope="module")
def known():
    """What came of programs that were judged."""
    return {}


@pytest.fixture
def judged(real, tmp_path, known):
    """The exit code of the command on a program, and its document."""

    def call(program, memory, options):
        if (program, options) not in known:
            words = [word.replace("{program}", str(program)) for word in options]
            run = (str(program), "run", str(tmp_path / "pool"))
            done = real("powerfail", *memory, *words, "--format", "json", "--", *run)
            assert done.returncode in (0, 1), done.stderr
            known[program, options] = done.returncode, json.loads(done.stdout)
            for left in tmp_path.glob("pool*"):
                left.unlink()
        return known[program, options]

    return call


def named(kinds):
    return [pytest.param(kind, id=kind.name) for kind in kinds]


@pytest.mark.parametrize("kind", named(KINDS))
def test_each_kind_is_found_at_its_stores(compiled, judged, kind):
    code, document = judged(compiled(kind), kind.memory, (*kind.judge, *kind.model))
    assert (code, document["violations"] != []) == (1, True)
    for which in ("missing", "present"):
        stores = [store for violation in document["violations"] for store in violation[which]]
        of_kind, named = marked(kind.source, which.upper()), lines_of(stores, kind.source)
        assert (named == of_kind) if which in kind.shown else (named <= of_kind), which


@pytest.mark.parametrize("kind", named(KINDS))
def test_each_kind_has_its_repair(compiled, judged, kind):
    _, document = judged(compiled(kind), kind.memory, (*kind.judge, *kind.model))
    repairs = [violation["repair"] for violation in document["violations"]]
    assert {repair["kind"] for repair in repairs if repair} == ({kind.repair} - {None})
    assert all(repair["helps"] for repair in repairs if repair and repair["kind"] != "together")


@pytest.mark.parametrize("kind", named(KINDS))
def test_each_repaired_twin_is_right(compiled, judged, kind):
    twin = compiled(kind, "-DREPAIRED")
    code, document = judged(twin, kind.memory, (*kind.judge, *kind.model))
    assert (code, document["violations"]) == (0, [])


@pytest.mark.parametrize("kind", named(kind for kind in KINDS if kind.forgiven))
def test_what_another_model_or_judge_forgives_is_no_violation(compiled, judged, kind):
    code, document = judged(compiled(kind), kind.memory, kind.forgiven)
    assert (code, document["violations"]) == (0, [])


@pytest.mark.parametrize("source", sorted({kind.source for kind in KINDS}))
def test_programs_accept_files_that_nothing_has_happened_to(compiled, tmp_path, source):
    kind = next(kind for kind in KINDS if kind.source == source)
    assert marked(source, "MISSING")
    for flags in ((), ("-DREPAIRED",)):
        program = compiled(kind, *flags)
        for number, content in enumerate((b"", bytes(1 << 16))):
            pool = tmp_path / f"pool-{number}{''.join(flags)}"
            pool.write_bytes(content)
            for mode in ("check", "run", "check"):
                subprocess.run([program, mode, pool], check=True)


def test_each_program_is_of_a_kind():
    assert {path.stem for path in SOURCES.glob("*.c")} == {kind.source for kind in KINDS}
