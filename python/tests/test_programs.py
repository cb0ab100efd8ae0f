"""Real programs in place of a paper's: which run, what they say, and that they decide nothing.

Bug class: a paper is held to programs that it did not measure; a number of one of its programs is
answered by another that nobody named; or a trace is made anew, or missing, and nobody says so.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from capturing import needs

from graven import ConfigError
from graven.capture.recipes import recipes
from graven.papers import files, plan, programs, rules, verdicts
from graven.papers.reproduction import Reproduction, Results, Tried
from graven.results.record import Record
from graven.store.keeper import digest

ROOT = Path(__file__).parents[2]

EXPERIMENTS = """
title = "A paper"
machine = "silo"

[questions.programs]
asks = "Whose stores are these?"
default = "Those of two workloads."
assumed = "the paper's are not distributed"

[readings."real programs"]
question = "programs"
what = "Those of real programs."
quote = "a set of applications"
where = "§II"
READING

[[experiment]]
id = "main"
what = "Two workloads"
designs = ["base", "silo"]
workloads = ["array", "btree"]
threads = [1, 8]
transactions = 100
seeds = 2
set = { "workload.element_bytes" = "64 B", "pm.write_ns" = 200 }

[[experiment]]
id = "other"
what = "The same"
designs = ["base", "silo"]
workloads = ["array", "btree"]
transactions = 100
"""

READING = """
programs = ["lmdb-insert", "pmdk-btree"]
in_place_of = { btree = ["pmdk-btree"] }
experiments = ["main"]
set = { "pm.write_ns" = 300 }
"""

SPEED = 'metric = "throughput_tx_per_s", of = "silo", over = "base"'

CLAIM = """
[[claim]]
id = "silo-x"
where = "x"
says = "x"
value = 2.0
why = "For a reason."
answer = {answer}
"""


def mean(at="", experiment="main"):
    """The answer: silo's speed over base's, at some coordinates."""
    return f'{{ experiment = "{experiment}", {SPEED}, mean = "arithmetic", at = {{ {at} }} }}'


def paper_with(answer=None, reading=READING):
    answer = answer or mean()
    text = EXPERIMENTS.replace("READING", reading)
    return files.parse("silo", text, CLAIM.replace("{answer}", answer))


def answered(answer):
    """What answers a claim with the programs."""
    paper = paper_with(answer)
    return programs.answer_with(paper.claims[0], paper.readings["real programs"])


def test_they_run_only_if_they_are_asked_for_by_name():
    paper, folder = paper_with(), Path("captures")
    for readings in ("none", "authors", "all"):
        wanted = plan.Wanted(paper, False, readings=readings, captures=folder)
        assert {item.kind for item in wanted.alternatives()} == {plan.BY_DEFAULT}
        assert wanted.programs() == ()
    wanted = plan.Wanted(paper, False, named=("real programs",), captures=folder)
    assert wanted.programs() == ("lmdb-insert", "pmdk-btree")
    [of_main] = [item for item in wanted.alternatives() if item.kind == plan.PROGRAMS]
    assert of_main.study.id == "main", "it is about no other"


def test_each_design_runs_each_trace_once_with_what_is_no_workloads_own():
    paper = paper_with()
    wanted = plan.Wanted(paper, False, named=("real programs",), captures=Path("captures"))
    [found] = [item for item in wanted.alternatives() if item.kind == plan.PROGRAMS]
    traces = ("captures/lmdb-insert.gvt", "captures/pmdk-btree.gvt")
    pairs = [(job.design, job.workload) for job in found.jobs]
    assert pairs == [(design, trace) for trace in traces for design in ("base", "silo")]
    for job in found.jobs:
        assert (job.threads, job.transactions, job.seed) == (None, None, 1)
        assert dict(job.settings) == {"pm.write_ns": "300"}


def test_a_number_of_a_workload_is_one_of_what_stands_in_its_place():
    assert dict(answered(mean("threads = 8")).measure.at) == {}
    of_btree = answered(mean('threads = 8, workload = "btree"'))
    assert dict(of_btree.measure.at) == {"workload": ["pmdk-btree"]}
    assert answered(mean('workload = "array"')) is None
    both = answered(mean('workload = ["array", "btree"]'))
    assert dict(both.measure.at) == {"workload": ["pmdk-btree"]}


def test_what_they_cannot_say_they_do_not_say():
    assert answered(mean(experiment="other")) is None, "another experiment"
    cycles = 'experiment = "main", metric = "cycles", of = "silo"'
    assert answered(f"{{ {cycles}, over = {{ threads = 1 }} }}") is None, "they have their own"
    assert answered(f'{{ {cycles}, along = "threads", shape = "rises" }}') is None
    parts = ", ".join(
        f'{{ name = "{name}", {cycles}, at = {{ workload = "{name}" }}, expect = 1 }}'
        for name in ("array", "btree")
    )
    several = answered(f"{{ all = [{parts}] }}")
    assert several.names == ("btree",), "only what they stand for"
    rank = parts.replace(", expect = 1", "")
    assert answered(f"{{ rank = [{rank}] }}") is None, "an order needs all of its numbers"


def record(design, workload, value, threads):
    stats = {"throughput_tx_per_s": value}
    return Record(design, workload, "silo", threads, 100, 1, True, "", {}, stats)


def assessed(default, of_programs):
    """The verdict if silo has these speeds over base by default, and with two programs."""
    paper = paper_with()
    wanted = plan.Wanted(paper, True, named=("real programs",), captures=Path("captures"))

    def results(item, names, numbers, threads):
        pairs = [(n, value) for n, value in zip(names, numbers, strict=True) if value is not None]
        records = [
            record(design, name, number, count)
            for name, value in pairs
            for design, number in (("base", 1.0), ("silo", value))
            for count in threads
        ]
        names_there = [name for name, _ in pairs]
        missing = [j for j in item.jobs if Path(j.workload).stem not in names_there]
        return Results(item.study, item.jobs, {plan.DEFAULT: Tried(item.kind, records, missing)})

    found, others = {}, {}
    for item in wanted.alternatives():
        if item.kind == plan.PROGRAMS:
            names = ("lmdb-insert", "pmdk-btree")
            others[item.study.id] = results(item, names, of_programs, (1,))
        else:
            found[item.study.id] = results(item, ("array", "btree"), default, (1, 8))
    reproduction = Reproduction(wanted, found, {"real programs": others})
    return verdicts.verdicts(reproduction)[0]


@pytest.mark.parametrize(
    ("default", "of_programs", "verdict", "outcome"),
    [
        ((2.0, 2.0), (2.0, 2.0), rules.MET_10, rules.MET_10),
        ((2.0, 2.0), (0.5, 0.5), rules.MET_10, rules.DIFFERS),
        ((0.5, 0.5), (2.0, 2.0), rules.CONTRADICTED, rules.MET_10),
        ((0.5, 0.5), (0.4, 0.6), rules.CONTRADICTED, rules.DIFFERS),
        ((5.0, 5.0), (2.0, None), rules.UNDECIDED, rules.NOT_RUN),
    ],
)
def test_they_decide_nothing_and_contradict_nobody(default, of_programs, verdict, outcome):
    found = assessed(default, of_programs)
    assert found.verdict == verdict
    assert (found.readings, found.decides) == ((), ())
    [came] = found.programs.values()
    assert came.verdict == outcome
    assert rules.CONTRADICTED not in verdicts.outcome_text(came)
    assert found.row()["programs"].startswith("real programs: ")


def test_a_mean_says_what_each_program_has():
    found = assessed((2.0, 2.0), (1.8, 2.4))
    [came] = found.programs.values()
    assert verdicts.each_text(found.claim, came) == "lmdb-insert 1.80 ×, pmdk-btree 2.40 ×"
    [missing] = assessed((2.0, 2.0), (1.8, None)).programs.values()
    assert [text for text in missing.missing if "pmdk-btree" in text]
    assert not [text for text in missing.missing if "lmdb-insert" in text]


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        ('programs = ["doom"]\nexperiments = ["main"]', "some of lmdb-insert"),
        ('programs = ["lmdb-insert"]', "`experiments` must be there, with `programs`"),
        ('programs = ["lmdb-insert"]\nexperiments = ["main"]\nauthors = true', "do not go with"),
        (
            'programs = ["lmdb-insert"]\nexperiments = ["main"]\n'
            'in_place_of = { btree = ["pmdk-btree"] }',
            "`btree`: some of `programs` must be there",
        ),
        ('experiments = ["main"]', "`set`, `metric`, `programs` or `per_thread` must be there"),
    ],
)
def test_readings_that_are_not_as_agreed_are_refused(reading, message):
    with pytest.raises(ConfigError, match=message):
        paper_with(reading=reading)


def test_a_result_is_of_what_a_trace_holds_and_not_of_where_it_is(tmp_path):
    paper = paper_with()

    def digests(folder):
        wanted = plan.Wanted(paper, False, named=("real programs",), captures=folder)
        jobs = plan.jobs_of([a for a in wanted.alternatives() if a.kind == plan.PROGRAMS])
        return [digest(job) for job in jobs if job.workload.endswith("lmdb-insert.gvt")]

    absent = digests(tmp_path / "one")
    for name, content in (("one", b"a"), ("two", b"a"), ("three", b"b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lmdb-insert.gvt").write_bytes(content)
    one, two, three = (digests(tmp_path / name) for name in ("one", "two", "three"))
    assert one == two
    assert len({*absent, *one, *three}) == 3 * len(one)


def test_a_reading_that_nobody_has_is_refused(quick):
    for command in (("reproduce", "silo"), ("explain", "silo-number")):
        done = quick(*command, "--reading", "real life")
        assert done.returncode == 2
        assert "silo has no reading `real life`; there are large-elements" in done.stderr


def test_any_reading_may_be_tried_by_name(quick):
    done = quick("reproduce", "silo", "--list", "--reading", "large-elements")
    [row] = [line for line in done.stdout.splitlines() if line.strip().startswith("fig1 ")][:1]
    assert row.split()[-1] == "96", "twice as many as by default"


@pytest.mark.parametrize("paper", ["silo", "morlog", "fwb", "hoop"])
def test_the_papers_about_programs_have_the_reading(real, paper):
    done = real("reproduce", paper, "--list", "--reading", "real programs")
    assert done.returncode == 0, done.stderr
    assert "real programs" in done.stdout
    text = (ROOT / "papers" / paper / "experiments.toml").read_text()
    [reading] = re.findall(r'\[readings\."real programs"\]\n(?:.+\n)+', text)
    named = [name for name in recipes() if f'"{name}"' in reading]
    assert len(named) >= 6
    assert all(name in done.stdout for name in named)


def test_without_qemu_it_is_refused_and_nothing_runs(real, tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("cc", "as", "ld", "gcc", "collect2"):
        if (found := shutil.which(tool)) is not None:
            (folder / tool).symlink_to(found)
    arguments = ("reproduce", "fwb", "fig7-instructions", "--quick", "--reading", "real programs")
    done = real(*arguments, "--out", "out", PATH=str(folder))
    assert done.returncode == 2, done.stderr
    assert "captures lmdb-insert, lmdb-update" in done.stderr
    error = done.stderr.splitlines()[-1]
    # Without its headers the package is named, before that QEMU is looked for.
    assert "qemu-user" in error or "liblmdb-dev" in error or "there is no C compiler" in error
    assert not list((tmp_path / "out").rglob("*.json"))
    assert not list((tmp_path / "out").rglob("*.gvt"))


SMALL = """
title = "FWB, of one program"
machine = "fwb"

[questions.programs]
asks = "Whose instructions are these?"
default = "Those of a hash table."
assumed = "a small test"

[readings."real programs"]
question = "programs"
what = "Those of LMDB."
quote = "a set of applications"
where = "§II"
programs = ["lmdb-insert"]
experiments = ["main"]

[[experiment]]
id = "main"
what = "One workload"
designs = ["fwb", "non-pers"]
workloads = ["hash"]
threads = [1]
transactions = 100

[[figure]]
id = "fig1"
where = "Fig. 1"
title = "Instructions"
experiment = "main"
metric = "instructions"
kind = "table"
relative = false
"""

SMALL_CLAIM = """
[[claim]]
id = "fwb-x"
where = "Fig. 1"
says = "fwb executes what the program does"
value = 1.0
answer = { experiment = "main", metric = "instructions", of = "fwb", over = "non-pers" }
"""


@pytest.mark.long
@pytest.mark.usefixtures("tools")
def test_a_real_program_is_captured_once_and_its_rows_are_shown(real, tmp_path):
    needs(Path("/usr/include/lmdb.h").exists(), "liblmdb-dev")
    folder = tmp_path / "papers"
    shutil.copytree(ROOT / "papers", folder)
    (folder / "fwb" / "experiments.toml").write_text(SMALL)
    (folder / "fwb" / "claims.toml").write_text(SMALL_CLAIM)
    arguments = ("reproduce", "fwb", "fig1", "--quick", "--claims", "--out", "out")
    reading = ("--reading", "real programs")
    first = real(*arguments, *reading, GRAVEN_PAPERS=str(folder))
    assert first.returncode == 0, first.stderr
    assert "captures lmdb-insert" in first.stderr
    trace = tmp_path / "out" / "captures" / "lmdb-insert.gvt"
    made = trace.stat().st_mtime_ns
    assert "other programs than the paper's" in first.stdout
    rows = [line for line in first.stdout.splitlines() if "fwb-x" in line]
    assert [("met within 10%" in row) for row in rows if "real programs" in row] == [True]
    assert "real programs" in first.stdout.partition("fwb-x")[0], "the figure has them, too"
    again = real(*arguments, *reading, GRAVEN_PAPERS=str(folder))
    assert again.returncode == 0
    assert "captures lmdb-insert" not in again.stderr
    assert trace.stat().st_mtime_ns == made
    assert again.stdout == first.stdout
    default = real(*arguments, GRAVEN_PAPERS=str(folder))
    assert "real programs" not in default.stdout
