"""`graven powerfail`: programs of one kind of crash inconsistency each, and their repaired twins.

Bug class: a kind is missed, is blamed on other stores, or is seen in a program that is right.
"""

import json
import re
import subprocess
from pathlib import Path

import pytest
from campaigns.kinds import KINDS, SOURCES

pytestmark = [pytest.mark.usefixtures("tools"), pytest.mark.checkout]


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
