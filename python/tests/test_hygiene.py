"""`graven hygiene`: lines that are careless about persistence, in programs of one mistake each.

Bug class: a mistake is not seen, is seen in its repaired twin, or is blamed on another line.
"""

import json
import shutil
import subprocess

import pytest
from capturing import PROGRAMS

from graven._engine import ConfigError, TraceError
from graven.capture import CaptureError, capture
from graven.laboratory.hygiene import Suppression, judge, read_suppressions
from graven.laboratory.sarif import to_sarif

pytestmark = pytest.mark.usefixtures("tools")

CARELESS = {
    "never_flushed": ("never-flushed", 3),
    "copied": ("never-flushed", 5),
    "never_fenced": ("never-fenced", 1),
    "stored_after_flush": ("stored-after-flush", 1),
    "flushed_twice": ("flushed-twice", 1),
    "clean_flush": ("clean-flush", 1),
    "idle_fence": ("idle-fence", 1),
    "mixed_stores": ("store-after-non-temporal", 1),
    "sync_failed": ("sync-failed", 1),
    "sync_misses": ("sync-misses", 1),
    "wide_sync": ("wide-sync", 1),
    "held_lock": ("held-lock", 1),
    "read_into": ("never-flushed", 2),
    "acknowledged": ("async-acknowledged", 1),
    "dirty_read": ("dirty-read", 1),
}
"""Modes of careless.c: the class of the one finding, and how often it occurs."""


@pytest.fixture
def trace(unhooked, programs, tmp_path):  # noqa: ARG001
    """The trace of a mode of careless.c."""

    def call(mode, *, source="careless", flags=("-g",), **more):
        path = tmp_path / f"{mode}.gvt"
        # What an earlier one has left there would be durable already.
        tmp_path.joinpath("pool").unlink(missing_ok=True)
        program = [str(programs(source, *flags)), str(tmp_path / "pool"), mode]
        more = {"pm_files": ["*/pool"], "only_pm": True, **more}
        capture(program, path, **more)
        return path

    return call


def lines_with(comment, source="careless.c"):
    """Lines of a program with a comment of this class."""
    lines = (PROGRAMS / source).read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if line.endswith(f"// {comment}")]


def found(hygiene):
    return [(finding["class"], finding["count"]) for finding in hygiene.findings]


@pytest.mark.parametrize("mode", CARELESS)
def test_each_mistake_is_one_finding_on_its_line_and_its_repair_none(trace, mode):
    hygiene = judge(trace(mode))
    assert found(hygiene) == [CARELESS[mode]]
    [finding] = hygiene.findings
    place = finding["place"]
    assert place["line"] in lines_with(finding["class"]), place
    assert place["file"].endswith("careless.c")
    assert any(frame.get("function") in ("main", "either") for frame in finding["calls"])
    assert finding["repair"]
    assert finding["problem"]
    repaired = judge(trace(f"{mode}-repaired"))
    assert (found(repaired), repaired.notes) == ([], ())


@pytest.mark.parametrize("flags", [("-g", "-O0"), ("-g", "-O2"), ("-g", "-O3")])
@pytest.mark.parametrize("mode", ["never_flushed", "flushed_twice", "stored_after_flush"])
def test_lines_are_found_however_compiled(trace, mode, flags):
    [finding] = judge(trace(mode, flags=flags)).findings
    assert finding["place"]["line"] in lines_with(finding["class"])
    assert found(judge(trace(f"{mode}-repaired", flags=flags))) == []


def test_a_flush_of_the_pointers_copy_is_told_from_one_of_what_it_points_to(trace):
    hygiene = judge(trace("other_memory"))
    assert found(hygiene) == [("never-flushed", 1), ("flush-of-other-memory", 1)]
    for finding in hygiene.findings:
        assert finding["place"]["line"] in lines_with(finding["class"])
    assert found(judge(trace("other_memory-repaired"))) == []


def test_a_dirty_read_names_the_store_and_the_effect(trace):
    [finding] = judge(trace("dirty_read")).findings
    partners = {partner["is"]: partner["place"]["function"] for partner in finding["partners"]}
    assert partners == {"store": "writes", "effect": "reads"}


def test_reads_of_what_is_durable_beside_what_is_not_are_none_of_it(trace):
    assert found(judge(trace("read_beside"))) == []


def test_locks_order_and_are_not_judged(trace):
    assert found(judge(trace("locks_fence"))) == []
    hygiene = judge(trace("own_locks"))
    assert found(hygiene) == []


def test_what_cannot_be_judged_is_a_sentence(trace):
    assert "neither flushed nor synchronised" in " ".join(judge(trace("nothing")).notes)
    assert "nothing to judge" in " ".join(judge(trace("reads_only")).notes)
    hygiene = judge(trace("compiled"))
    assert found(hygiene) == [("never-flushed", 1)]
    assert "just-in-time" in " ".join(hygiene.notes)
    assert hygiene.findings[0]["where"].startswith("code without a file at 0x")
    hygiene = judge(trace("never_flushed", flags=("-s",)))
    assert found(hygiene) == [("never-flushed", 3)]
    assert "compile with -g" in " ".join(hygiene.notes)
    assert hygiene.findings[0]["where"].startswith("careless")
    with pytest.raises(CaptureError, match="mapped no file"):
        trace("nothing", pm_files=["*/other"])


def test_a_race_is_said(trace):
    hygiene = judge(trace("two_stores", source="races"))
    assert any("race with another thread's" in note for note in hygiene.notes)


def test_stores_that_were_not_captured_are_said(trace):
    hygiene = judge(trace("forks", source="kernel"))
    assert any("explained by no recorded store" in note for note in hygiene.notes)


def test_programs_whose_heap_is_persistent_are_judged(trace):
    hygiene = judge(trace("heaped", pm_files=[], pm_heap=True))
    assert found(hygiene) == [("never-flushed", 1)]
    assert hygiene.findings[0]["place"]["line"] in lines_with("never-flushed")
    assert hygiene.totals["of_runtime"] > 0, "the allocator's own"


@pytest.mark.parametrize("is_repaired", [False, True])
def test_programs_in_rust_that_synchronise_maps_are_judged(unhooked, tmp_path, is_repaired):  # noqa: ARG001
    if shutil.which("rustc") is None:
        pytest.skip("rustc is not installed")
    program, source = tmp_path / "appends", PROGRAMS / "appends.rs"
    command = ["rustc", "--edition", "2024", "-g", "-O", "-o", program, source]
    subprocess.run(command, check=True, capture_output=True)
    arguments = [str(program), str(tmp_path / "pool"), *(["all"] if is_repaired else [])]
    capture(arguments, tmp_path / "x.gvt", pm_files=["*/pool"], only_pm=True)
    hygiene = judge(tmp_path / "x.gvt")
    assert found(hygiene) == ([] if is_repaired else [("sync-misses", 2)])
    for finding in hygiene.findings:
        assert finding["place"]["line"] in lines_with("sync-misses", "appends.rs")


def test_suppressions_are_by_class_and_function(trace, tmp_path):
    path = trace("never_flushed")
    for function, count in (("never_*", 0), ("main", 0), ("other", 1)):
        hygiene = judge(path, suppressions=[Suppression("never-*", function)])
        assert (len(hygiene.findings), len(hygiene.suppressed)) == (count, 1 - count)
    file = tmp_path / "known.txt"
    file.write_text("# known\n\nnever-flushed  init_*   # by design\n* std::vector<int, int>::at\n")
    assert read_suppressions(file) == [
        Suppression("never-flushed", "init_*"),
        Suppression("*", "std::vector<int, int>::at"),
    ]
    file.write_text("alone\n")
    with pytest.raises(ConfigError, match="line 1: allowed is CLASS FUNCTION"):
        read_suppressions(file)


def test_waste_costs_time_on_the_machine(trace):
    [flush] = judge(trace("flushed_twice")).findings
    assert flush["cost_ns"] == pytest.approx(1.0), "2 cycles at 2 GHz"
    [missing] = judge(trace("never_flushed")).findings
    assert missing["cost_ns"] is None


def test_sarif_has_a_rule_for_each_class_and_a_result_for_each_line(trace):
    hygiene = judge(trace("other_memory"))
    log = to_sarif(hygiene)
    assert (log["version"], log["$schema"][-16:]) == ("2.1.0", "sarif-2.1.0.json")
    [run] = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [
        "never-flushed",
        "flush-of-other-memory",
    ]
    for result, finding in zip(run["results"], hygiene.findings, strict=True):
        where = result["locations"][0]["physicalLocation"]
        assert where["region"]["startLine"] == finding["place"]["line"]
        assert where["artifactLocation"]["uri"].startswith("file:///")
        assert (result["level"], result["occurrenceCount"]) == ("error", finding["count"])


def test_traces_without_a_history_are_refused(real):
    more = ("--design", "base", "--workload", "hash", "--transactions", "10")
    assert real("trace", "record", "y.gvt", *more).returncode == 0
    done = real("hygiene", "y.gvt")
    assert (done.returncode, "no trace of a captured program" in done.stderr) == (2, True)


def test_broken_traces_are_refused(trace):
    path = trace("never_flushed")
    whole = path.read_bytes()
    path.write_bytes(whole[:-40] + bytes(40))
    with pytest.raises(TraceError):
        judge(path)


def test_the_command_prints_writes_and_fails(real, programs, tmp_path):
    program = [str(programs("careless", "-g")), str(tmp_path / "pool"), "flushed_twice"]
    where = ("--pm-file", "*/pool")
    done = real("hygiene", *where, "--report", "h.html", "--sarif", "h.sarif", "--", *program)
    assert done.returncode == 0, done.stderr
    line = lines_with("flushed-twice")[0]
    assert f"1. careless.c:{line} (flushed_twice)  flushed-twice (waste), once" in done.stdout
    assert "repair: flush each line once" in done.stdout
    assert "0 bugs and 1 line of waste" in done.stdout
    assert "What the program forgets" in (tmp_path / "h.html").read_text()
    assert json.loads((tmp_path / "h.sarif").read_text())["version"] == "2.1.0"
    done = real("hygiene", *where, "--fail-on", "waste", "--to", "h.gvt", "--", *program)
    assert done.returncode == 1
    done = real("hygiene", "h.gvt", "--format", "json")
    assert json.loads(done.stdout)["findings"][0]["class"] == "flushed-twice"
    assert real("hygiene", "h.gvt", "--fail-on", "bug").returncode == 0
    program[-1] = "never_flushed"
    assert real("hygiene", *where, "--", *program).returncode == 1
    assert real("hygiene", *where, "--fail-on", "never", "--", *program).returncode == 0
    for words in (("h.gvt", "--pm-file", "x"), ()):
        assert real("hygiene", *words).returncode == 2
