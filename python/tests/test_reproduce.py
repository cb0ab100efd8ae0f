"""`graven reproduce`: what runs, what is kept, which verdicts are given, and how it ends."""

from __future__ import annotations

import csv
import io
import json
import re
import signal

import pytest
from conftest import start, stopped, waits
from test_report import Page

from graven import ConfigError
from graven.drawing.pages.paper import lead
from graven.papers import counts, data, files, measures, rules
from graven.papers.data import Measure, TrendAnswer
from graven.papers.samples import Sample
from graven.store import Store

OUT = ("--out", "results")


def singles(values):
    """Numbers of one seed."""
    return [Sample((value,)) for value in values]


def claims(text):
    return {row["claim"]: row for row in csv.DictReader(io.StringIO(text))}


def stored(folder):
    records = Store(folder / "results" / "store").records()
    return {record.request.digest: record.line() for record in records}


def test_figures_are_listed_with_their_simulations(quick):
    done = quick("reproduce", "--list")
    assert done.returncode == 0, done.stderr
    assert "Silo in small" in done.stdout
    assert "MorLog in small" in done.stdout
    # Four designs, two workloads, two numbers of threads, three seeds.
    [row] = [line for line in done.stdout.splitlines() if line.strip().startswith("fig1 ")][:1]
    assert row.split()[-1] == "48"
    assert "large-elements" in done.stdout
    # With a reading that sets a key; one that only measures another statistic runs nothing.
    done = quick("reproduce", "--list", "--readings", "all")
    [row] = [line for line in done.stdout.splitlines() if line.strip().startswith("fig1 ")][:1]
    assert row.split()[-1] == "96"


def test_a_paper_leaves_its_report_its_drawings_and_its_claims(quick, tmp_path):
    done = quick("reproduce", "silo", "--quick", *OUT)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "results" / "quick"
    text = (folder / "silo.html").read_text()
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    assert "Quick sizes" in text
    assert ">the paper</text>" in text
    for name in ("fig1", "fig2", "fig3-1", "fig3-2"):
        assert (folder / "silo" / f"{name}.svg").read_text().startswith("<?xml")
        assert (folder / "silo" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert not (folder / "silo" / "tab1.svg").exists()
    assert set(claims((folder / "claims-silo.csv").read_text())) > {"silo-number", "silo-none"}


def test_all_papers_leave_an_index(quick, tmp_path):
    assert quick("reproduce", "all", "--quick", *OUT).returncode == 0
    folder = tmp_path / "results" / "quick"
    index = (folder / "index.html").read_text()
    assert '<a href="silo.html">' in index
    assert '<a href="morlog.html">' in index
    for name in (*counts.CLASSES, *counts.COUNTED):
        assert f">{name}<" in index.replace("&#39;", "'"), name
    assert "morlog-none" in claims((folder / "claims.csv").read_text())


def test_one_figure_runs_its_experiment_alone_and_is_printed(quick, tmp_path):
    done = quick("reproduce", "silo", "fig3", *OUT)
    assert done.returncode == 0, done.stderr
    assert "Fig. 3: Latency, absolute" in done.stdout
    assert "workload.element_bytes = 4 KB" in done.stdout
    assert len(stored(tmp_path)) == 2 * 2 * 2 * 2, "two seeds"
    assert not (tmp_path / "results" / "full" / "silo.html").exists()


def test_printed_numbers_and_intervals_stand_beside_ours(quick):
    done = quick("reproduce", "silo", "fig1", "--quick", *OUT, COLUMNS="200")
    assert "(paper 2.90)" in " ".join(done.stdout.split())
    assert "[low to high]" not in done.stdout
    done = quick("reproduce", "silo", "fig1", "--quick", "--readings", "all", *OUT, COLUMNS="200")
    assert "[low to high]: over large-elements" in done.stdout
    done = quick("reproduce", "silo", "fig1", "--readings", "all", *OUT, COLUMNS="200")
    assert "[low to high]: over 3 seeds; large-elements" in done.stdout


def test_what_is_printed_about_a_figure_is_drawn_beside_ours(quick, tmp_path):
    quick("reproduce", "silo", "--quick", *OUT)
    folder = tmp_path / "results" / "quick"
    assert (folder / "silo" / "fig1-printed.png").exists()
    page = (folder / "silo.html").read_text()
    assert "silo / base, 8 threads" in page
    assert re.search(r">[\d.]+ \| 2\.90<", page)
    # A table of which the paper prints no ratio has none.
    assert not (folder / "silo" / "tab1-printed.png").exists()


def test_nothing_is_simulated_twice(quick, tmp_path):
    quick("reproduce", "silo", "fig1", "--quick", *OUT)
    before = stored(tmp_path)
    # A failure would show that something ran again.
    again = quick("reproduce", "silo", "fig1", "fig2", "--quick", *OUT, FAULT_FAIL="silo")
    assert again.returncode == 0, again.stderr
    assert stored(tmp_path) == before
    other = quick(
        "reproduce", "silo", "fig1", "--quick", *OUT, FAULT_FAIL="silo", FAULT_BUILD="new"
    )
    assert other.returncode == 1, "another build's results are another's"


def test_after_an_interrupt_it_goes_on_where_it_was(quick, tmp_path):
    process = start(tmp_path, "reproduce", "silo", "fig1", *OUT, "--jobs", "1", **waits(tmp_path))
    _, errors = stopped(process, tmp_path / "silo-array", signal.SIGINT, 130)
    assert "the same command goes on" in errors
    kept = stored(tmp_path)
    assert 0 < len(kept) < 48
    done = quick("reproduce", "silo", "fig1", *OUT)
    assert done.returncode == 0, done.stderr
    assert f"{len(kept)} of 48 results were there already" in done.stderr
    assert kept.items() < stored(tmp_path).items()


def test_a_failed_simulation_is_said_and_shown_as_missing(quick, tmp_path):
    done = quick("reproduce", "silo", "--quick", *OUT, FAULT_FAIL="fwb")
    assert done.returncode == 1
    assert "stale" in done.stderr
    text = (tmp_path / "results" / "quick" / "silo.html").read_text()
    assert "have no result" in text
    assert claims((tmp_path / "results" / "quick" / "claims-silo.csv").read_text())["silo-order"][
        "verdict"
    ] == (rules.NOT_RUN)


def test_stored_runs_nothing(quick, tmp_path):
    (tmp_path / "results" / "store" / "segments").mkdir(parents=True)
    for more in ([], ["--claims"]):
        done = quick("reproduce", "silo", "--quick", "--stored", *more, *OUT, FAULT_FAIL="silo")
        assert done.returncode == 0, done.stderr
        assert not stored(tmp_path)
        assert rules.NOT_RUN in done.stdout


def test_the_table_of_claims(quick):
    done = quick("reproduce", "silo", "--claims", "--quick", "--format", "csv", *OUT)
    found = claims(done.stdout)
    expected = {
        "silo-number": (rules.MET_10, rules.MET_25),
        "silo-far": (rules.UNDECIDED,),
        "silo-reduction": (rules.BY_DEFAULT,),
        "silo-bound": (rules.MET,),
        "silo-order": (rules.MET,),
        "silo-rank": (rules.MET,),
        "silo-trend": (rules.MET,),
        "silo-tested": (rules.MET,),
        "silo-tested-otherwise": (rules.CONTRADICTED,),
        "silo-key": (rules.MET,),
        "silo-none": (rules.NOT_SIMULATED,),
        "silo-depends": (rules.UNDECIDED,),
        "silo-arithmetic": (rules.MET,),
    }
    assert set(found) == set(expected)
    for name, allowed in expected.items():
        assert found[name]["verdict"] in allowed, found[name]
    assert found["silo-far"]["why"] == "The runs are too short."
    assert found["silo-tested-otherwise"]["default"] == "10 B"
    as_json = quick("reproduce", "silo", "--claims", "--quick", "--format", "json", *OUT)
    assert [row["claim"] for row in json.loads(as_json.stdout)] == list(found)


def test_the_table_under_every_reading(quick):
    done = quick(
        "reproduce", "silo", "--claims", "--quick", "--readings", "all", "--format", "csv", *OUT
    )
    found = claims(done.stdout)
    assert found["silo-depends"]["verdict"] == "met under reading large-elements"
    assert found["silo-depends"]["why"] == "large-elements: Elements are of 4 KB. (§6)"
    assert found["silo-depends"]["readings_tried"] == found["silo-depends"]["readings"] == "1"
    assert rules.MET_25 in found["silo-depends"]["authors"] or (
        rules.MET_10 in found["silo-depends"]["authors"]
    )
    # Elements of 4 KB and the traffic of the controller both bear on it.
    assert found["silo-reduction"]["verdict"] == rules.CONTRADICTED
    assert found["silo-reduction"]["readings_tried"] == "2"
    # Its experiment varies what the reading sets.
    assert found["silo-trend"]["readings"] == "0"
    assert {row["class"] for row in found.values()} == set(counts.CLASSES)


def test_readings_run_only_what_depends_on_them(quick, tmp_path):
    quick("reproduce", "silo", "--quick", *OUT)
    default = stored(tmp_path)
    done = quick("reproduce", "silo", "--quick", "--readings", "authors", *OUT)
    assert done.returncode == 0, done.stderr
    assert default.items() < stored(tmp_path).items()
    assert len(stored(tmp_path)) - len(default) == 4 * 2, "the matrix of one experiment"
    again = quick("reproduce", "silo", "--quick", "--readings", "all", *OUT, FAULT_FAIL="silo")
    assert again.returncode == 0, "the one reading is the authors' combination"


def test_equal_results_give_equal_pages(quick, tmp_path):
    page = tmp_path / "results" / "quick" / "silo.html"
    quick("reproduce", "silo", "--quick", *OUT)
    first = page.read_bytes()
    quick("reproduce", "silo", "--quick", *OUT)
    assert page.read_bytes() == first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a paper (silo, morlog), or all"),
        (["nature"], "unknown paper `nature`; known are silo, morlog, all"),
        (["silo", "fig9"], "silo has no figure `fig9`; it has fig1, fig2, fig3, tab1"),
        (["silo", "--format", "csv"], "give --claims, too"),
    ],
)
def test_what_does_not_exist_is_refused(quick, arguments, message):
    done = quick("reproduce", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


EXPERIMENT = """
title = "t"
machine = "silo"
[[experiment]]
id = "main"
what = "w"
designs = ["base", "silo"]
workloads = ["array"]
transactions = 10
"""


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            'baseline = "fwb"',
            "experiment main: `baseline` = 'fwb' is not allowed; one of base, silo",
        ),
        ("colour = 1", "experiment main: unknown key `colour`; known are designs"),
        ("quick = { threads = [3] }", "quick: `threads` = [3] is not allowed; some of"),
        ('open = ["a.b"]', "`open` = ['a.b'] is not allowed; a list of keys out of [open]"),
        (
            'threads = ["a"]',
            "`threads` = ['a'] is not allowed; a list of at least one whole number",
        ),
    ],
)
def test_experiments_that_are_not_as_agreed_are_refused(more, message):
    with pytest.raises(ConfigError) as refusal:
        files.parse("silo", EXPERIMENT + more, "")
    assert message in str(refusal.value)


FIGURE = """
[[figure]]
id = "f"
where = "w"
title = "t"
experiment = "main"
metric = "ipc"
"""


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (
            "image_digest",
            "Digest of the PM data region after an orderly shutdown. The mean is geometric.",
        ),
        (
            "ipc",
            "Instructions per cycle, summed over cores, instructions/cycle. The mean is geometric.",
        ),
    ],
)
def test_a_unit_is_said_where_there_is_one(metric, said):
    text = EXPERIMENT + FIGURE.replace('"ipc"', f'"{metric}"') + "relative = false"
    assert lead(files.parse("silo", text, "").figures["f"]) == said


def test_a_figure_is_relative_to_a_design_of_its_experiment():
    found = files.parse("silo", EXPERIMENT + FIGURE, "").figures["f"]
    assert found.baseline == "base", "the experiment's, if it says nothing"
    own = files.parse("silo", EXPERIMENT + FIGURE + 'baseline = "silo"', "").figures["f"]
    assert own.baseline == "silo"
    with pytest.raises(ConfigError, match="`baseline` = 'fwb' is not allowed; one of base, silo"):
        files.parse("silo", EXPERIMENT + FIGURE + 'baseline = "fwb"', "")


@pytest.mark.parametrize(
    ("form", "ours", "printed", "verdict"),
    [
        ("gain", 1.147, 1.2874, "direction only"),
        ("gain", 1.25, 1.2874, "met within 25%"),
        ("gain", 1.36, 1.2874, "direction only"),
        ("gain", 1.038, 1.04, "met within 10%"),
        ("gain", 1.003, 1.04, "contradicted"),
        ("gain", 0.99, 1.04, "contradicted"),
        ("reduction", 0.905, 0.90, "met within 10%"),
        ("reduction", 0.93, 0.90, "direction only"),
        ("reduction", 0.91, 0.96, "direction only"),
        ("percent", 0.12, 0.10, "met within 25%"),
        ("times", 1.21, 1.5, "met within 25%"),
    ],
)
def test_a_gain_is_met_by_the_gain_itself(form, ours, printed, verdict):
    """14.7 % for 28.74 % is within 25 % as a ratio, and half of it as a gain."""
    measure = data.Measure(("main",), "ipc", ("silo",), {"design": "base"}, {}, "geometric")
    answer = data.NumberAnswer(measure, printed, form, "about")
    assert rules.number_verdict(answer, Sample((ours,) * rules.SEEDS_LEAST)) == verdict


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("{ }", "one of test, cost, machine, none, all, order, rank, along, of is needed"),
        ('{ experiment = "x", metric = "ipc", of = "silo" }', "some of main"),
        ('{ experiment = "main", metric = "ipc", of = "fwb" }', "`fwb` is not among the designs"),
        (
            '{ experiment = "main", metric = "ipc", of = "silo", at = { colour = 1 } }',
            "a table with some of workload, threads",
        ),
        (
            '{ experiment = "main", metric = "ipc", of = "silo" }',
            "`expect` is missing, as `value` is no number",
        ),
    ],
)
def test_answers_that_are_not_as_agreed_are_refused(answer, message):
    claim = f'[[claim]]\nid = "silo-a"\nwhere = "w"\nsays = "s"\nvalue = "v"\nanswer = {answer}\n'
    with pytest.raises(ConfigError) as refusal:
        files.parse("silo", EXPERIMENT, claim)
    assert message in str(refusal.value)


def test_a_claim_is_there_once():
    claim = '[[claim]]\nid = "silo-a"\nwhere = "w"\nsays = "s"\nanswer = { none = "n" }\n'
    with pytest.raises(ConfigError, match="the id is there before"):
        files.parse("silo", EXPERIMENT, claim * 2)


@pytest.mark.parametrize("command", [("reproduce", "silo", "fig1"), ("reproduce", "--claims"),
                                     ("explain", "silo-number")])  # fmt: skip
def test_nothing_is_shown_of_a_folder_where_nothing_is_stored(quick, tmp_path, command):
    done = quick(*command, "--quick", "--stored", "--out", "typo")
    assert done.returncode == 2
    assert "--stored: nothing is stored in typo" in done.stderr
    assert not (tmp_path / "typo").exists()


def test_a_metric_is_an_expression_of_statistics(comparison):
    record = comparison.records[0]
    both = measures.expression("2 * (media_write_requests_data + media_write_requests_log) / 4")
    expected = record.number("media_write_requests_data") + record.number(
        "media_write_requests_log"
    )
    assert both.value(record) == pytest.approx(expected / 2)
    assert measures.expression("cycles / (cycles - cycles)").value(record) is None
    for text in ("no_such", "cycles +", "__import__('os')", "cycles ** 2", "cycles if 1 else 2"):
        with pytest.raises(ConfigError):
            measures.expression(text)


def test_means_and_extremes(comparison):
    def measured(mean, **more):
        one = Measure(("x",), "throughput_tx_per_s", ("silo",), {"design": "base"}, more, mean)
        found = measures.sample(one, comparison.records)
        return None if found is None else found.mean

    over = comparison.normalised("base")
    values = [over.value("throughput_tx_per_s", "silo", w, 8) for w in ("array", "btree")]
    assert measured("max") == max(values)
    assert measured("min") == min(values)
    assert measured("arithmetic") == pytest.approx(sum(values) / 2)
    assert measured("geometric") == over.mean("throughput_tx_per_s", "silo", 8)
    assert measured("geometric", workload="btree") == pytest.approx(values[1])
    assert measured("geometric", workload="hash") is None


@pytest.mark.parametrize(
    ("shape", "values", "verdict"),
    [
        ("rises", [1, 2, 3], rules.MET),
        ("rises", [1, 3, 2], rules.DIRECTION),
        ("rises", [3, 2, 1], rules.CONTRADICTED),
        ("falls", [3, 2, 1], rules.MET),
        ("flat", [1, 1.02, 1.01], rules.MET),
        ("flat", [1, 1.2, 1.01], rules.CONTRADICTED),
        ("peaks", [1, 2, 1], rules.MET),
        ("peaks", [1, 2, 3], rules.CONTRADICTED),
        ("saturates", [1, 2, 2.01], rules.MET),
        ("saturates", [1, 2, 3], rules.DIRECTION),
    ],
)
def test_shapes(shape, values, verdict):
    one = Measure(("x",), "ipc", ("silo",), {}, {}, "geometric")
    answer = TrendAnswer(one, "threads", shape, 0.05, None)
    assert rules.shape_verdict(answer, list(range(len(values))), singles(values)) == verdict


def test_a_peak_has_a_place():
    one = Measure(("x",), "ipc", ("silo",), {}, {}, "geometric")
    answer = TrendAnswer(one, "threads", "peaks", 0.05, (2.0, 3.0))
    assert rules.shape_verdict(answer, [1, 2, 4], singles([1, 2, 1])) == rules.MET
    assert rules.shape_verdict(answer, [1, 4, 8], singles([1, 2, 1])) == rules.DIRECTION
