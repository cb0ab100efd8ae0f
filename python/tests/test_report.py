"""The report: complete in itself, readable by people and machines."""

from __future__ import annotations

import itertools
import re
from html.parser import HTMLParser

import pytest

import graven
from graven.drawing.figures.bars import Bars, Panel
from graven.drawing.figures.embedded import NARROW, WIDE, element
from graven.drawing.figures.lines import Lines
from graven.drawing.figures.measure import Measure
from graven.drawing.figures.values import Number
from graven.drawing.pages import render
from graven.drawing.palette import design_styles
from graven.engine.machine import Machine
from graven.results.comparison import MEAN, METRICS

VOID = {"meta", "link", "br", "hr", "img", "input", "source"}


class Page(HTMLParser):
    """Checks nesting and collects what a page is made of."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.tags = []
        self.attributes = []
        self.ids = []
        self.labels = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.attributes += attrs
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "svg":
            assert attributes["role"] == "img"
            self.labels.append(attributes["aria-label"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def report(comparison, machine="silo", **settings):
    return render(comparison.normalised(), Machine(machine), settings)


@pytest.fixture(scope="module")
def page(comparison):
    """The text of the report of three designs on two workloads."""
    return report(comparison)


def test_the_page_loads_nothing(page):
    # Letters of embedded data may look like anything.
    text = re.sub(r"[A-Za-z0-9+/=]{200,}", "", page)
    assert not re.search(r"https?:|//[a-z]|@import|<script[^>]|<img|<iframe", text)
    for name, value in Page(text).attributes:
        if name in ("src", "href", "xlink:href"):
            assert value.startswith(("#", "data:")), value
    assert not re.search(r"url\((?!#)", text)


def test_every_metric_has_a_wide_and_a_narrow_drawing_and_a_table(page):
    page = Page(page)
    assert page.tags.count("svg") == 2 * len(METRICS)
    assert page.tags.count("caption") >= len(METRICS)
    for metric in METRICS:
        assert sum(metric.title in label for label in page.labels) == 2


def test_identifiers_are_unique_and_references_lead_somewhere(page):
    ids = Page(page).ids
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', page)) <= set(ids)


def test_equal_results_give_equal_pages(comparison, page):
    assert report(comparison) == page


def test_bars_carry_their_values(comparison, page):
    over = comparison.normalised()
    value = over.value("throughput_tx_per_s", "silo", "btree", 8)
    assert f"<title>silo, btree: {value:.2f} × base</title>" in page


def test_unsafe_designs_are_marked(page):
    assert "unsafe: loses committed data at a power failure" in page
    assert "ideal †" in page
    assert "†" not in report(graven.compare("base,silo", "array"))


def test_the_configuration_has_sources_assumptions_and_changes(comparison):
    text = report(comparison, **{"pm.write_ns": "150"})
    assert "Silo Table II" in text
    assert "assumed: " in text
    assert "set to 150 for this comparison" in text
    assert "--set pm.write_ns=150" in text


def test_a_machine_of_the_users_names_its_own_sources(comparison):
    text = 'extends = "silo"\n[pm]\nread_ns = { value = 60.0, assumed = "a guess" }\nwrite_ns = 1\n'
    page = render(comparison.normalised(), Machine("mine.toml", text), {})
    assert "assumed: a guess" in page
    assert ">mine.toml<" in page


def test_missing_results_are_said_and_drawn_as_missing(comparison):
    text = report(graven.Comparison(comparison.records[:-1]))
    assert "Missing: silo on btree, 8 threads." in text
    Page(text)


def test_several_thread_counts_add_a_scaling_chart():
    comparison = graven.compare("base,silo", "array,btree", threads=[1, 2, 4])
    page = Page(report(comparison))
    assert page.tags.count("svg") == 2 * (len(METRICS) + 1)


SIZES = {"workload.element_bytes": ["64 B", "4 KB"]}


def test_each_combination_has_charts_and_tables_of_its_own():
    comparison = graven.compare("base,silo", "array,btree", vary=SIZES)
    text = report(comparison)
    page = Page(text)
    assert page.tags.count("svg") == 2 * 2 * len(METRICS)
    assert len(page.ids) == len(set(page.ids))
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', text)) <= set(page.ids)
    for size in SIZES["workload.element_bytes"]:
        caption = f"workload.element_bytes = {size}"
        assert text.count(f"<h3>{caption}</h3>") == 1 + len(METRICS)
        assert text.count(f"<caption>Relative to base, 8 threads, {caption}</caption>") == len(
            METRICS
        )
        assert sum(caption in label for label in page.labels) == 2 * len(METRICS)
        value = comparison.normalised().at({"workload.element_bytes": size})
        ratio = value.value("throughput_tx_per_s", "silo", "btree", 8)
        assert f"<title>silo, btree: {ratio:.2f} × base</title>" in text
    assert "<dt>workload.element_bytes</dt><dd>64 B, 4 KB</dd>" in text
    assert "varied in this comparison" in text
    assert "--vary &#39;workload.element_bytes=64 B,4 KB&#39;" in text


def test_nothing_varied_is_no_heading(page):
    assert "<h3>" not in page


def test_missing_results_of_a_combination_are_said():
    comparison = graven.compare("base,silo", "array", vary=SIZES)
    text = report(graven.Comparison(comparison.records[:-1]))
    assert "Missing: silo on array, 8 threads, workload.element_bytes = 4 KB." in text
    Page(text)


def test_scaling_is_shown_for_each_combination():
    comparison = graven.compare("base,silo", "array", threads=[1, 2], vary=SIZES)
    text = report(comparison)
    assert Page(text).tags.count("svg") == 2 * 2 * (len(METRICS) + 1)
    assert "The chart shows 2 threads." in text


def test_both_means_are_in_the_table(comparison):
    over = comparison.normalised()
    text = report(comparison)
    assert text.count('<th scope="col">arithmetic mean</th>') == len(METRICS)
    mean = over.arithmetic_mean("throughput_tx_per_s", "silo", 8)
    assert f"{mean:.2f}" in text


@pytest.mark.parametrize("designs", ["silo", "ideal"])
def test_one_design_alone_can_be_drawn(designs):
    Page(report(graven.compare(designs, "array")))


def test_a_zero_baseline_can_be_drawn(comparison):
    records = [
        graven.Record(**{**vars(r), "stats": dict.fromkeys(r.stats, 0)}) for r in comparison.records
    ]
    Page(report(graven.Comparison(tuple(records))))


def test_text_is_escaped(comparison):
    text = render(comparison.normalised(), Machine("silo"), {"pm.write_ns": "<b>"})
    assert "<b>" not in text


def test_safe_designs_have_colours_of_their_own():
    names = ["ideal", "base", "fwb", "lad", "silo", "hoop"]
    styles = design_styles(names)
    safe = [style.colour for style in styles.values() if not style.hatched]
    assert len(safe) == len(set(safe))
    # Designs that lose data share a colour and are hatched, and so is a name that stands for them.
    lost = design_styles(["unsafe-redo", "unsafe-base", "ideal"]).values()
    assert len(set(lost)) == 1
    assert all(style.hatched for style in lost)


# ---- drawings ----------------------------------------------------------------------------------


LOOKS = pytest.mark.parametrize("look", [WIDE, NARROW], ids=["wide", "narrow"])


def bars(designs, numbers, groups, baseline=None):
    measure = Measure("cycles", "Time", "cycles", "lower is better", designs, baseline)
    return Bars(measure, groups, [Panel("", numbers)])


@LOOKS
@pytest.mark.parametrize("designs", [1, 4, 12])
def test_no_line_is_drawn_through_the_value_of_a_bar(look, designs):
    """Values a little below the baseline stand where its line is."""
    names = [f"design-{at}" for at in range(designs)]
    groups = ["array", "tpcc", MEAN]
    numbers = {
        (d, g): Number.known(0.97, (0.9, 1.1) if g == "tpcc" else None)
        for d in names
        for g in groups
    }
    picture = bars(names, numbers, groups, names[0]).draw(look)
    labels = [t for axes in picture.axes for t in axes.texts if t.get_text() == "0.97"]
    assert len(labels) == len(numbers)
    for label in labels:
        ground = label.get_bbox_patch()
        assert ground is not None
        assert ground.get_alpha() is None
        assert label.get_zorder() > 1.5


@LOOKS
def test_titles_of_panels_are_whole_and_small_values_have_a_scale(look):
    keys = "controller.write_queue_entries = 16, pm.buffer_lines = 64, workload.element_bytes = "
    panels = {
        f"{name}, {keys}{size}": {"silo": [Number.known(top), Number.known(0.9 * top)]}
        for name, top in (("array", 1.0), ("hash", 0.7), ("tpcc", 0.01))
        for size in ("64 B", "4 KB")
    }
    measure = Measure("cycles", "Time", "cycles", "lower is better", ["silo"])
    picture = Lines(measure, "Threads", [0.0, 1.0], ["1", "8"], panels).draw(look)
    with look.applied():
        picture.draw_without_rendering()
    page = picture.bbox
    boxes = []
    for axes, name in zip(picture.axes, panels, strict=True):
        title = axes._left_title
        assert title.get_text().replace("\n", " ") == name
        assert axes.get_ylim()[1] == pytest.approx(0.0106 if name.startswith("tpcc") else 1.06)
        boxes.append(title.get_window_extent())
        assert page.x0 <= boxes[-1].x0 < boxes[-1].x1 <= page.x1
        assert page.y0 <= boxes[-1].y0 < boxes[-1].y1 <= page.y1
        assert boxes[-1].y0 >= axes.bbox.y1
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)


@LOOKS
def test_bars_that_one_scale_would_hide_have_a_smaller_one(look):
    groups = ["array", "tpcc", "hash", MEAN]
    values = {"array": 100.0, "tpcc": 1.0, "hash": 80.0, MEAN: 20.0}
    numbers = {(d, g): Number.known(value) for d in ("base", "silo") for g, value in values.items()}
    picture = bars(["base", "silo"], numbers, groups).draw(look)
    assert len(picture.tips) == len(numbers)
    large, small = picture.axes
    gids = [
        [patch.get_gid() for patch in axes.patches if patch.get_gid()] for axes in (large, small)
    ]
    assert sorted(gid for of_axes in gids for gid in of_axes) == sorted(picture.tips)
    assert {picture.tips[gid].text.split(":")[0] for gid in gids[1]} == {"base, tpcc", "silo, tpcc"}
    assert "rows differ in scale" in picture._supylabel.get_text().replace("\n", " ")
    names = [
        t.get_gid() for axes in picture.axes for t in axes.texts if "tick-" in (t.get_gid() or "")
    ]
    assert len(set(names)) == len(numbers)


def test_a_drawing_has_what_a_paper_prints_and_the_colours_of_its_page():
    number = Number.known(0.5, (0.4, 0.6), 0.7)
    picture = bars(["silo"], {("silo", "array"): number}, ["array"], "base").draw(WIDE)
    text = element(picture, "key", "what", "wide")
    said = "silo, array: 0.50 × base, between 0.40 and 0.60; the paper: 0.70"
    assert f"<title>{said}</title>" in text
    assert ">the paper</text>" in text
    for colour in ("ink", "page", "paper"):
        assert f"var(--{colour})" in text
    assert "#ffffff" not in text
