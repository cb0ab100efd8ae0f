"""What answers a claim: several designs and experiments, the better of some, several parts."""

from __future__ import annotations

import dataclasses

import pytest

from graven import ConfigError
from graven.engine.catalogue import Catalogue
from graven.papers import files, measures, plan, rules, verdicts
from graven.papers.reproduction import Reproduction, Results, Tried
from graven.results.record import Record

EXPERIMENTS = """
title = "A paper"
machine = "silo"

[open]
"pm.buffer_ns" = { values = ["20.0"], why = "no table says" }

[questions.time]
asks = "How long does a write take?"
default = "150 ns"
quote = "150 ns"
where = "Table II"

[readings.other]
question = "time"
what = "300 ns"
quote = "300 ns"
where = "§5"
set = { "pm.write_ns" = 300 }
experiments = ["one"]

[[experiment]]
id = "one"
what = "Two workloads"
designs = ["base", "fwb", "silo"]
workloads = ["array", "btree"]
threads = [8]
transactions = 100
set = { "workload.footprint_bytes" = "16 MB" }
quick = { set = {} }

[[experiment.part]]
workloads = ["btree"]
set = { "workload.footprint_bytes" = "1 MB", "workload.element_bytes" = "8 B" }
transactions = 60
quick = { set = {}, transactions = 10 }

[[experiment]]
id = "two"
what = "Another"
designs = ["base", "fwb", "silo"]
workloads = ["hash"]
threads = [8]
transactions = 100
"""

THROUGHPUT = {
    ("one", "array"): {"base": 1.0, "fwb": 3.0, "silo": 6.0},
    ("one", "btree"): {"base": 4.0, "fwb": 2.0, "silo": 2.0},
    ("two", "hash"): {"base": 1.0, "fwb": 2.0, "silo": 8.0},
}
FASTER = {("one", "array"): {"base": 1.0, "fwb": 3.0, "silo": 12.0}}
"""Under the reading."""


def records(study, numbers):
    return [
        Record(design, workload, "silo", 8, 100, 1, True, "", {}, stats)
        for (of, workload), designs in numbers.items()
        if of == study
        for design, value in designs.items()
        for stats in [{"throughput_tx_per_s": value, "cycles": 1000 - value}]
    ]


def assessed(answer, value="1.0"):
    claim = f'[[claim]]\nid = "silo-x"\nwhere = "x"\nsays = "x"\nvalue = {value}\nanswer = {answer}'
    paper = files.parse("silo", EXPERIMENTS, claim)
    wanted = plan.Wanted(paper, quick=False, readings="all")
    numbers = {plan.DEFAULT: THROUGHPUT, "other": {**THROUGHPUT, **FASTER}}
    found = {}
    for item in wanted.alternatives():
        of_study = found.setdefault(item.study.id, (item.study, item.jobs, {}))
        made = records(item.study.id, numbers[item.name])
        of_study[2][item.name] = Tried(item.kind, made, (), item.changed, item.metrics)
    results = {name: Results(*one) for name, one in found.items()}
    return verdicts.verdicts(Reproduction(wanted, results))[0]


PART_OF_NONE = '[[experiment.part]]\nworkloads = ["hash"]'

EXPERIMENT_OF_PARTS = """
title = "A paper"
machine = "silo"
[[experiment]]
id = "one"
what = "Designs"
designs = ["silo"]
workloads = ["btree"]
transactions = 100
vary = { "controller.channels" = [1, 2, 3] }
"""

THE = 'metric = "throughput_tx_per_s"'


def test_over_the_better_of_two_means_the_better_on_each_workload():
    found = assessed(f'{{ experiment = "one", {THE}, of = "silo", over = ["base", "fwb"] }}')
    # Beside fwb's 3 on array and base's 4 on btree: 2 and 0.5.
    assert found.ours == "1.00 ×"
    assert found.interval == "1.00 × to 1.41 ×"
    assert found.verdict == rules.MET_10
    assert "best of base, fwb" in found.how


def test_the_better_is_so_by_throughput_whatever_is_measured():
    text = '{ experiment = "one", metric = "cycles", of = "silo", over = ["base", "fwb"], %s }'
    found = assessed(text % 'at = { workload = "btree" }')
    assert found.ratio == pytest.approx(998 / 996, abs=1e-4)


def test_several_designs_are_in_one_mean():
    found = assessed(f'{{ experiment = "two", {THE}, of = ["fwb", "silo"], over = "base" }}', "4.0")
    assert found.ratio == pytest.approx(1.0)


def test_a_mean_may_be_over_several_experiments():
    both = f'{{ experiment = ["one", "two"], {THE}, of = "silo", over = "base", mean = "%s" }}'
    assert assessed(both % "arithmetic").ratio == pytest.approx((6 + 0.5 + 8) / 3, abs=1e-4)
    found = assessed(both % "max")
    # The other value is of the first experiment only; the second stays as it is.
    assert (found.ours, found.interval) == ("8.00 ×", "8.00 × to 12.0 ×")


@pytest.mark.parametrize(
    ("of", "mean", "ours", "verdict"),
    [
        ("silo", "above", "67", rules.DIRECTION),
        ("silo", "below", "33", rules.CONTRADICTED),
        ("fwb", "above", "67", rules.DIRECTION),
    ],
)
def test_a_claim_may_be_about_every_case(of, mean, ours, verdict):
    text = f'{{ experiment = ["one", "two"], {THE}, of = "{of}", over = "base", mean = "{mean}" }}'
    found = assessed(text)
    assert (found.ours, found.verdict) == (f"in {ours} % of all cases", verdict)


def test_what_is_so_in_every_case_is_met():
    text = f'{{ experiment = "two", {THE}, of = ["fwb", "silo"], over = "base", mean = "above" }}'
    assert assessed(text).verdict == rules.MET


def test_several_parts_are_as_good_as_the_worst():
    part = f'experiment = "two", {THE}, of = "silo", over = "base"'
    found = assessed(
        f'{{ all = [ {{ name = "eight", {part}, expect = 8 }}, '
        f'{{ name = "order", experiment = "two", {THE}, order = ["silo", "base"] }} ] }}',
        '"two things"',
    )
    assert found.verdict == rules.CONTRADICTED
    assert found.tried_text == "no reading bears on it"
    assert found.ours.startswith("eight: 8.00 × (met within 10%); order: base")
    assert found.ratio is None
    assert len(found.claim.measures) == 3


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ('{ all = [ { name = "a", none = "no" } ] }', "order, rank, along, of must be there"),
        (f'{{ experiment = ["one", "none"], {THE}, of = "silo" }}', "some of one, two"),
        (f'{{ experiment = "one", {THE}, of = "silo", over = ["base", "lad"] }}', "`lad` is not"),
        (f'{{ experiment = "one", {THE}, of = ["silo", "lad"] }}', "`lad` is not among"),
        (
            f'{{ experiment = ["one", "two"], {THE}, of = "silo", along = "workload",'
            ' shape = "flat" }',
            "one experiment",
        ),
    ],
)
def test_refusals(answer, message):
    with pytest.raises(ConfigError, match=message):
        assessed(answer)


def test_keys_of_one_workload_come_before_those_of_all():
    paper = files.parse("silo", EXPERIMENTS, "")
    jobs = {
        (item.name, job.workload): dict(job.settings)
        for item in plan.Wanted(paper, quick=False, readings="all").alternatives()
        for job in item.jobs
    }
    assert jobs[plan.DEFAULT, "array"] == {"workload.footprint_bytes": "16 MB"}
    small = {"workload.footprint_bytes": "1 MB", "workload.element_bytes": "8 B"}
    assert jobs[plan.DEFAULT, "btree"] == small
    assert jobs["other", "btree"] == small | {"pm.write_ns": "300"}
    quick = plan.Wanted(paper, quick=True).alternatives()
    assert all(not job.settings for job in quick[0].jobs)


def test_a_key_of_one_design_is_read_by_that_design_alone(monkeypatch):
    known = plan.catalogue()
    own = dataclasses.asdict(known.parameters["pm.write_ns"])
    designs = [
        {**said, "parameters": [own]} if said["name"] == "fwb" else said
        for said in known.raw["designs"]
    ]
    changed = Catalogue({**known.raw, "designs": designs})
    monkeypatch.setattr(plan, "catalogue", lambda: changed)
    paper = files.parse("silo", EXPERIMENTS, "")
    default, tried = plan.alternatives(paper, paper.studies["one"])
    found = {job.design: dict(job.settings).get("pm.write_ns") for job in tried.jobs}
    assert found == {"base": None, "fwb": "300", "silo": None}
    assert {job.design for job in tried.changed} == {"fwb"}
    assert len(set(tried.jobs) - set(default.jobs)) == 2 * 3, "two workloads, three seeds"


def test_a_part_may_have_fewer_transactions():
    paper = files.parse("silo", EXPERIMENTS, "")
    for quick, of_btree in ((False, 60), (True, 10)):
        jobs = plan.Wanted(paper, quick=quick).alternatives()[0].jobs
        found = {(job.workload, job.transactions) for job in jobs}
        assert found == {("array", 100), ("btree", of_btree)}


def test_a_part_is_of_workloads_of_the_experiment():
    other = EXPERIMENTS.replace('[[experiment.part]]\nworkloads = ["btree"]', PART_OF_NONE)
    with pytest.raises(ConfigError, match="some of array, btree"):
        files.parse("silo", other, "")


def by_channels(first, second, quick=""):
    """An experiment whose only workload is in two parts, with these values of what is varied."""
    part = '[[experiment.part]]\nworkloads = ["btree"]\nvary = {{ "controller.channels" = {} }}\n'
    return files.parse(
        "silo", EXPERIMENT_OF_PARTS + part.format(first) + part.format(second) + quick, ""
    )


def test_a_workload_is_in_parts_by_what_is_varied():
    paper = by_channels("[1, 3]", "[2]", "quick = { transactions = 10 }")
    for quick, of_second in ((False, 100), (True, 10)):
        jobs = plan.Wanted(paper, quick=quick).alternatives()[0].jobs
        found = [(job.varied[0][1], job.transactions) for job in jobs if job.seed == 1]
        assert found == [("1", 100), ("3", 100), ("2", of_second)]


@pytest.mark.parametrize(
    ("second", "quick"),
    [
        pytest.param("[2, 3]", "", id="at full size"),
        pytest.param("[3]", 'quick = { vary = { "controller.channels" = [2] } }', id="quick"),
    ],
)
def test_parts_have_no_simulation_in_common(second, quick):
    with pytest.raises(ConfigError, match=r"part.*: btree: in two parts, which must have diff"):
        by_channels("[1, 2]", second, quick)


def test_what_is_not_met_and_has_no_reason_is_named():
    bad = assessed(f'{{ experiment = "one", {THE}, order = ["silo", "base"] }}')
    good = assessed(f'{{ experiment = "one", {THE}, order = ["base", "silo"] }}')
    assert (bad.verdict, good.verdict) == (rules.CONTRADICTED, rules.MET)
    assert (bad.tried_text, bad.interval) == ("1 of 1 readings tried", "holds in 0 of 1 others")
    explained = dataclasses.replace(bad, why="The runs are too short.")
    assert verdicts.unexplained([bad, good, explained]) == [bad]


def test_a_number_of_several_experiments_names_them():
    one = f'{{ experiment = "two", {THE}, of = "silo", over = "base", at = {{ threads = 8 }} }}'
    both = f'{{ experiment = ["one", "two"], {THE}, of = "silo", over = "base", mean = "max" }}'
    said = [measures.brief(assessed(text).claim.answer.measure) for text in (one, both)]
    assert said == ["silo / base, 8 threads", "silo / base, one, two, the largest"]
