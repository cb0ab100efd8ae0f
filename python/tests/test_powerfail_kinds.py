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
    judge: tuple = CHECK
    model: tuple = ADR
    forgiven: tuple = ()
    """Options with which the mistake is none."""
    flags: tuple = ()
    """Of the compiler."""
    memory: tuple = ("--pm-file", "*/pool")


KINDS = [
    Kind("missing flush", "missing_flush", forgiven=(*CHECK, *EADR)),
    Kind("missing flush, asked of a judge that keeps running", "missing_flush", LOOP),
    Kind("missing fence", "missing_fence", forgiven=(*CHECK, *EADR)),
    Kind("order of two lines", "order", forgiven=(*CHECK, *EADR)),
    Kind("order of two lines, on AMD", "order", model=AMD),
    Kind("record that straddles two lines", "straddle", forgiven=(*CHECK, *EADR)),
    Kind("value of 16 bytes is not atomic", "torn"),
    Kind("value of 16 bytes is not atomic, by states", "torn", DUMP),
    Kind("value of 8 bytes over the edge of two words", "edge"),
    Kind("string instruction that copies a flag", "copied"),
    Kind("flush before the last store", "flush_too_early", forgiven=(*CHECK, *EADR)),
    Kind("count before content", "count_first"),
    Kind("flag in a line of its own", "same_line_flag", forgiven=(*CHECK, *EADR)),
    Kind("dirty read", "dirty_read", forgiven=(*CHECK, *EADR)),
    Kind("recovery repeats itself", "recovery_twice", (*CHECK, *RECOVER), forgiven=(*CHECK, *ADR)),
    Kind("leak", "leak"),
    Kind("wrong range of msync", "msync_range", model=PAGES),
    Kind("failed msync", "msync_fails", model=PAGES),
    Kind("asynchronous msync", "msync_async", model=PAGES),
    Kind("page torn between sectors", "sectors", model=SECTORS, forgiven=(*CHECK, *PAGES)),
    Kind("length of a file", "length", model=PAGES, memory=("--pm-file", "*/pool*")),
    Kind("neither fence nor locked instruction", "locked", forgiven=(*CHECK, *EADR)),
    Kind("non-temporal store without a fence", "non_temporal"),
    Kind("non-temporal store without a fence, on eADR", "non_temporal", model=EADR),
    Kind("use after recovery", "next_operation", (*CHECK, *NEXT), forgiven=(*CHECK, *ADR)),
    Kind(
        "acknowledged and not durable",
        "acknowledged",
        (*DUMP, "--acknowledge", "return"),
        forgiven=(*DUMP, *ADR, "--acknowledge", "never"),
    ),
]


def marked(source, mark):
    """The lines of a source with a comment that has this mark."""
    lines = (SOURCES / f"{source}.c").read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if re.search(rf"// .*{mark}", line)}


def lines_of(stores, source):
    """The source lines of stores, which are all this program's."""
    assert {Path(store["file"]).name for store in stores} <= {f"{source}.c"}, stores
    return {store["line"] for store in stores}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Gives the program of a kind, or its twin, compiled when it is first asked for."""
    folder = tmp_path_factory.mktemp("kinds")

    def program(kind, *flags):
        path = folder / "".join((kind.source, *kind.flags, *flags))
        if not path.exists():
            command = ["cc", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
            command += [*kind.flags, *flags, "-o", path, SOURCES / f"{kind.source}.c"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        return path

    return program


@pytest.fixture
def judged(real, tmp_path):
    """The exit code of the command on a program, and its document."""

    def call(program, memory, options):
        for left in tmp_path.glob("pool*"):
            left.unlink()
        words = [word.replace("{program}", str(program)) for word in options]
        run = (str(program), "run", str(tmp_path / "pool"))
        done = real("powerfail", *memory, *words, "--format", "json", "--", *run)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode, json.loads(done.stdout)

    return call


def named(kinds):
    return [pytest.param(kind, id=kind.name) for kind in kinds]


@pytest.mark.parametrize("kind", named(KINDS))
def test_each_kind_is_found_at_its_stores(compiled, judged, kind):
    code, document = judged(compiled(kind), kind.memory, (*kind.judge, *kind.model))
    assert (code, document["violations"] != []) == (1, True)
    for violation in document["violations"]:
        missing, present = violation["missing"], violation["present"]
        assert lines_of(missing, kind.source) <= marked(kind.source, "MISSING"), violation
        assert lines_of(present, kind.source) <= marked(kind.source, "PRESENT"), violation
        assert missing or present
        assert violation["repair"]


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
