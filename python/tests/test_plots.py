"""Pictures: what is in them, that it can be read, and the files that they become."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import shutil
import subprocess
import zlib

import matplotlib as mpl
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from matplotlib.text import Text

import graven
from graven.basics import numbers as figures
from graven.drawing.figures import Look, Picture, save
from graven.drawing.figures.banks import BankLoads
from graven.drawing.figures.bars import Bars, Panel
from graven.drawing.figures.comparisons import KINDS, Asked, chart
from graven.drawing.figures.counterexample import Counterexample
from graven.drawing.figures.embedded import NARROW, WIDE
from graven.drawing.figures.lines import Lines
from graven.drawing.figures.marks import titled, wrapped
from graven.drawing.figures.measure import Measure
from graven.drawing.figures.rows import Pair, Pairs, Row, Sensitivities
from graven.drawing.figures.timeline import CAUSES, WORK, Lanes, Timeline, packed
from graven.drawing.figures.values import Number, Source, stat
from graven.laboratory.reports import Event
from graven.results.comparison import MEAN
from graven.results.intervals import Interval

WIDTHS = ["column", "text"]
METRIC = "throughput_tx_per_s"


@pytest.fixture(scope="session")
def several():
    """Two seeds, four numbers of threads."""
    asked = {"transactions": 100, "threads": [1, 2, 4, 8], "seeds": 2, "store": None}
    return graven.compare("ideal,base,silo", "array,btree", **asked)


# ---- what can be read --------------------------------------------------------------------------


def texts(picture):
    """Every text that is drawn, with the box that it takes, in pixels."""
    picture.canvas.draw()
    renderer = picture.canvas.get_renderer()
    found = [*picture.texts]
    for legend in picture.legends:
        found += legend.get_texts()
    for axes in picture.axes:
        found += [*axes.texts, axes.title, axes._left_title, axes._right_title]
        for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
            found.append(axis.label)
            found += [label for t in axis._update_ticks() for label in (t.label1, t.label2)]
    drawn = [t for t in found if isinstance(t, Text) and t.get_visible() and t.get_text().strip()]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in drawn]


def overlap(a, b):
    """By how many pixels two boxes run into each other."""
    return min(
        min(a.x1, b.x1) - max(a.x0, b.x0),
        min(a.y1, b.y1) - max(a.y0, b.y0),
    )


def check_layout(picture, least_height=20):
    """All text is inside the picture, and none runs into another or into the legend's axes."""
    with picture.look.applied():
        found = texts(picture)
        renderer = picture.canvas.get_renderer()
        page = picture.bbox
        assert found
        for text, box in found:
            assert box.x0 >= page.x0 - 1, text
            assert box.x1 <= page.x1 + 1, text
            assert box.y0 >= page.y0 - 1, text
            assert box.y1 <= page.y1 + 1, text
        for (one, a), (other, b) in itertools.combinations(found, 2):
            assert overlap(a, b) <= 1, (one, other)
        for legend, axes in itertools.product(picture.legends, picture.axes):
            assert overlap(legend.get_window_extent(renderer), axes.bbox) <= 1
        for axes in picture.axes:
            assert axes.bbox.width > 40 or axes.get_label() == "<colorbar>"
            assert axes.bbox.height > least_height


def test_the_check_of_layouts_finds_text_outside_and_text_on_text():
    for place in ((0.99, 0.5), (0.5, 0.5)):
        picture = Picture(Look.of(), 100, [])
        picture.text(0.5, 0.5, "a text")
        picture.text(*place, "another text")
        axes = picture.add_axes((0.1, 0.1, 0.8, 0.3))
        axes.set_axis_off()
        with pytest.raises(AssertionError):
            check_layout(picture)


def numbers(designs, groups, top, spread=False):
    made = {}
    for at, (design, group) in enumerate(itertools.product(designs, groups)):
        value = top * (1 + at % 7) / 7
        high = value * (1.2 if spread else 1.0)
        made[design, group] = Number(value, value, high, {"data": value / 2, "log": value / 2})
    return made


NAMES = st.lists(
    st.from_regex(r"[a-z]{1,9}(-[a-z]{1,9})?", fullmatch=True), min_size=1, max_size=31, unique=True
)
KEYS = ["controller.write_queue_entries", "workload.element_bytes", "pm.buffer_lines", "log.x"]
CAPTIONS = st.lists(
    st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True).map(
        lambda keys: ", ".join(["8 threads", *(f"{key} = 1,024 B" for key in keys)])
    ),
    min_size=1, max_size=2, unique=True,
)  # fmt: skip
"""Captions of panels: values of one to four keys."""
FEW = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)


def test_names_below_more_bars_than_a_narrow_picture_has_room_for_are_smaller():
    designs = [f"design-{at}" for at in range(31)]
    groups = ["hash", MEAN]
    measure = Measure(METRIC, "Throughput", "tx/s", "higher is better", designs, None, designs[1:2])
    panels = [Panel("", numbers(designs, groups, 1.0))]
    chart = Bars(measure, groups, panels, {"data": "program data", "log": "log"})
    check_layout(chart.draw(Look.of(2.5)))


@FEW
@given(
    designs=NAMES,
    groups=NAMES.map(lambda names: names[:20]),
    top=st.sampled_from([3e-4, 0.02, 1.0, 7.3, 999.0, 12_345.0, 4.2e9]),
    width=st.sampled_from([*WIDTHS, 2.5, 5.0, WIDE, NARROW]),
    parts=st.booleans(),
    relative=st.booleans(),
    captions=CAPTIONS,
    apart=st.sampled_from([1.0, 30.0, 9e5]),
    theme=st.sampled_from(["light", "dark"]),
)
@example(
    designs=["koe"],
    groups=["e"],
    top=0.02,
    width="column",
    parts=False,
    relative=True,
    captions=[
        "8 threads, pm.buffer_lines = 1,024 B, log.x = 1,024 B, workload.element_bytes = 1,024 B"
    ],
    apart=9e5,
    theme="dark",
)
@example(
    designs=["snhlncmjq", "wnmhgdsch", "co-wajcsolxm", "bhwn-xcd", "l-ntos", "xtpjywanh"],
    groups=["krst-vnpkpl", "ftgcqbk", "ephq-hhgo", "i", "opgmdcylq"],
    top=4.2e9,
    width=Look.in_page_of(380),
    parts=False,
    relative=True,
    captions=["8 threads, pm.buffer_lines = 1,024 B", "8 threads, log.x = 1,024 B"],
    apart=9e5,
    theme="light",
)
def test_bars_of_any_number_of_designs_and_workloads_can_be_read(
    designs, groups, top, width, parts, relative, captions, apart, theme
):
    panels = [
        Panel(caption, numbers(designs, [*groups, MEAN], top / apart**at, spread=True))
        for at, caption in enumerate(captions)
    ]
    measure = Measure(
        METRIC, "Throughput of what was committed", "tx/s", "higher is better", designs,
        designs[0] if relative else None, designs[1:2], "least to greatest of 2 seeds",
    )  # fmt: skip
    titles = {"data": "program data", "log": "log"} if parts else None
    look = width if isinstance(width, Look) else Look.of(width, theme)
    check_layout(Bars(measure, [*groups, MEAN], panels, titles).draw(look))


@FEW
@given(
    designs=NAMES,
    groups=NAMES.map(lambda names: names[:20]),
    places=st.lists(st.integers(1, 64), min_size=1, max_size=12, unique=True).map(sorted),
    top=st.sampled_from([3e-4, 0.02, 1.0, 7.3, 999.0, 12_345.0, 4.2e9]),
    width=st.sampled_from([*WIDTHS, 2.5, 5.0, WIDE, NARROW]),
    log=st.booleans(),
    apart=st.sampled_from([1.0, 30.0, 9e5]),
    zero=st.booleans(),
    captions=CAPTIONS,
)
def test_lines_of_any_number_of_designs_and_workloads_can_be_read(
    designs, groups, places, top, width, log, apart, zero, captions
):
    lines = {
        f"{group}, {captions[n % len(captions)]}": {
            design: [
                Number(v, v, 2 * v)
                for at in range(1, len(places) + 1)
                for v in [0.0 if zero and at == 1 else top * at / apart ** (n % 2)]
            ]
            for design in designs
        }
        for n, group in enumerate(groups)
    }
    measure = Measure(
        METRIC, "Throughput", "tx/s", "higher is better", designs, None, designs[:1],
        "least to greatest",
    )  # fmt: skip
    chart = Lines(
        measure, "Threads", [float(p) for p in places], [str(p) for p in places], lines, log=log
    )
    check_layout(chart.draw(width if isinstance(width, Look) else Look.of(width)))


@FEW
@given(
    labels=st.lists(st.text("abc xyz-", min_size=1, max_size=70), min_size=1, max_size=25),
    factors=st.lists(st.sampled_from([0.01, 0.5, 0.97, 1.0, 1.02, 3.0, 250.0]), min_size=1),
    printed=st.sampled_from([None, 0.3, 1.01, 40.0]),
    width=st.sampled_from([*WIDTHS, 2.5, WIDE, NARROW]),
)
def test_rows_can_be_read_whatever_their_labels(labels, factors, printed, width):
    factors = [factors[at % len(factors)] for at in range(len(labels))]
    rows = [Row(l or "x", f, "within 25 %", f > 1) for l, f in zip(labels, factors, strict=True)]  # noqa: E741
    look = width if isinstance(width, Look) else Look.of(width)
    check_layout(Sensitivities(rows, printed).draw(look))
    pairs = [Pair(row.label, printed or 1.5, row.factor, (row.factor, 2.0)) for row in rows]
    check_layout(Pairs(pairs).draw(look))


@FEW
@given(
    events=st.lists(
        st.tuples(st.sampled_from(["thread 0", "design", "caches", "PM", "power"]),
                  st.text("abc 0x", min_size=1, max_size=120)),
        min_size=1, max_size=30,
    ),
    width=st.sampled_from(WIDTHS),
)  # fmt: skip
def test_a_timeline_can_be_read_whatever_happens(events, width):
    made = [Event(at * 991, who, what.strip() or "x") for at, (who, what) in enumerate(events)]
    made.append(Event(None, "verdict", "word A holds 0x2, which is neither"))
    check_layout(Counterexample("silo: power fails at cycle 1,155", made, 4).draw(Look.of(width)))


@pytest.mark.parametrize("shades", [CAUSES, WORK], ids=["waits", "work"])
def test_what_a_timeline_shows_is_told_apart_in_grey(shades):
    """As a printer makes it of colours (BT.601): by hatches, or by one being much darker."""

    def grey(shade):
        red, green, blue = to_rgb(shade.colour)
        return 0.299 * red + 0.587 * green + 0.114 * blue

    alike = [
        (one.words, other.words)
        for one, other in itertools.combinations(shades.values(), 2)
        if one.hatch == other.hatch and abs(grey(one) - grey(other)) < 0.12
    ]
    assert alike == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("banks", [1, 8, 64])
def test_loads_of_any_number_of_banks_can_be_read(width, banks):
    loads = tuple(tuple(float((b + at) % 5) for at in range(50)) for b in range(banks))
    cycles = tuple(1000.0 * (at + 1) for at in range(50))
    check_layout(BankLoads(cycles, loads).draw(Look.of(width)))


@pytest.mark.parametrize(
    ("lines", "line", "said"),
    [
        (["1,nan"], 2, "bank0 is `nan`"),
        (["1,0", "2,inf"], 3, "bank0 is `inf`"),
        (["1,-1"], 2, "bank0 is `-1`"),
        (["1,x"], 2, "bank0 is `x`"),
        (["nan,1"], 2, "cycle is `nan`"),
        (["1,0", "3,0", "2,0"], 4, "cycle 2 does not come after 3"),
        (["1,0", "1,0"], 3, "cycle 1 does not come after 1"),
        (["1,0", "2"], 3, "1 values under 2 headings"),
    ],
)
def test_loads_that_no_run_writes_are_refused_with_their_line(tmp_path, lines, line, said):
    file = tmp_path / "banks.csv"
    file.write_text("\n".join(["cycle,bank0", *lines]) + "\n")
    with pytest.raises(graven.ConfigError, match=f"line {line}: {re.escape(said)}"):
        BankLoads.read(file)


def timeline(threads, channels, banks, spans):
    """A file of `graven run --timeline`, as the engine writes it: spans are group, lane, name."""

    def named(what, group, track, name):
        return {"ph": "M", "pid": group, "tid": track, "name": what, "args": {"name": name}}

    names = {1: "threads", 2: "writes until durable", 3: "PM", 4: "design"}
    events = [named("process_name", group, 0, name) for group, name in names.items()]
    events += [named("thread_name", 1, at, f"thread {at}") for at in range(threads)]
    places = list(itertools.product(range(channels), range(banks)))
    for at, (channel, bank) in enumerate(places):
        name = f"bank {bank}" if channels == 1 else f"channel {channel}, bank {bank}"
        events.append(named("thread_name", 3, at, name))
    events.append(named("thread_name", 3, len(places), "on-PM buffer"))
    for group, lane, name, begin, length in spans:
        track = {1: lane % threads, 3: lane % (len(places) + 1)}.get(group, 0)
        args = {"from": begin, "until": begin + length}
        if name == "transaction":
            args |= {"number": lane, "wanted": lane % 3 == 0, "ending": begin + length // 2}
        phase = {1: "X", 2: "b", 3: "X", 4: "i"}[group]
        events.append({"ph": phase, "pid": group, "tid": track, "name": name, "args": args})
    about = {"design": "silo", "workload": "hash", "frequency_mhz": 2000}
    about |= {"from_cycle": 100_000, "until_cycle": 104_321}
    return {"otherData": about, "traceEvents": events}


SPANS = st.tuples(
    st.sampled_from([(1, "transaction"), (1, "waits: commit"), (1, "waits: mshr"), (2, "log"),
                     (2, "data"), (3, "read"), (3, "gc"), (3, "spill"), (4, "a note")]),
    st.integers(0, 200), st.integers(99_000, 105_000), st.integers(0, 2_000),
).map(lambda drawn: (drawn[0][0], drawn[1], drawn[0][1], *drawn[2:]))  # fmt: skip


@FEW
@given(
    threads=st.integers(1, 64),
    channels=st.sampled_from([1, 2, 4]),
    banks=st.sampled_from([1, 8, 16]),
    spans=st.lists(SPANS, max_size=60),
    width=st.sampled_from([*WIDTHS, 2.5]),
)
def test_what_waits_for_what_can_be_read(tmp_path, threads, channels, banks, spans, width):
    first = (1, 0, "transaction", 100_000, 500)
    file = tmp_path / "timeline.json"
    file.write_text(json.dumps(timeline(threads, channels, banks, [first, *spans])))
    found = Timeline.read(file)
    assert len(found.rows) == 1 + len(spans)
    check_layout(Lanes(found).draw(Look.of(width)), least_height=5)


def test_spans_that_overlap_are_drawn_in_rows_of_their_own(tmp_path):
    spans = [(2, 0, "log", 100, 50), (2, 0, "log", 120, 50), (2, 0, "data", 150, 9),
             (2, 0, "data", 130, 0), (1, 0, "transaction", 100, 90)]  # fmt: skip
    file = tmp_path / "timeline.json"
    file.write_text(json.dumps(timeline(1, 1, 1, spans)))
    writes = [span for span in Timeline.read(file).spans if span.name in ("log", "data")]
    rows = {(span.begin, span.end): row for row, span in packed(writes)}
    assert rows == {(130, 130): 0, (100, 150): 1, (120, 170): 2, (150, 159): 1}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_read(several, kind, width, theme):
    for baseline in (None, "base"):
        check_layout(chart(kind, Asked(several, baseline)).draw(Look.of(width, theme)))


def test_designs_are_told_apart_without_colours():
    names = [f"design-{number}" for number in range(31)]
    marked = Look.of().marked(names)
    assert len({(m.colour, m.hatch) for m in marked.values()}) >= len(names) // 4
    assert len({(m.marker, m.dashes) for m in marked.values()}) == len(names)
    few = Look.of().marked(["ideal", "base", "silo", "fwb", "lad", "hoop"])
    assert len({m.hatch for m in few.values()}) >= 5


@pytest.mark.parametrize("kind", ["bars", "lines"])
def test_workloads_that_one_scale_would_hide_have_another_and_the_axis_says_so(kind):
    """TPC-C's transactions take a hundred times as long as those of an array."""

    def drawn(value, scales="auto"):
        values = {"array": 100.0, "hash": 90.0, "tpcc": value}
        head = (METRIC, "Throughput", "tx/s", "higher is better", ["silo"])
        measure = Measure(*head, scales=scales)
        if kind == "bars":
            of_one = {("silo", group): Number(v, v, v) for group, v in values.items()}
            chart = Bars(measure, [*values], [Panel("", of_one)])
        else:
            panels = {group: {"silo": [Number(v, v, v)] * 2} for group, v in values.items()}
            chart = Lines(measure, "Threads", [1.0, 2.0], ["1", "2"], panels)
        picture = chart.draw(Look.of())
        check_layout(picture)
        ends = sorted({axes.get_ylim()[1] for axes in picture.axes})
        return ends, picture.get_supylabel().replace("\n", " ")

    ends, title = drawn(1.0)
    assert ends == pytest.approx([1.06, 106.0])
    assert "differ in scale" in title
    for ends, title in (drawn(50.0), drawn(1.0, "one")):
        assert ends == pytest.approx([106.0])
        assert "differ in scale" not in title


def test_one_scale_is_asked_for_in_python(several):
    for comparison in (several, several.normalised("base")):
        comparison.plot(scales="one")
        with pytest.raises(graven.ConfigError, match="scales"):
            comparison.plot(scales="some")


def lines_of(values, **how):
    panel = {name: [Number(v, v, v) for v in of] for name, of in values.items()}
    measure = Measure("x_cycles", "X", "cycles", "lower is better", [*values])
    return Lines(measure, "Share", [0.0, 1.0], ["50 %", "99 %"], {"hash": panel}, **how)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("values", [(20.0, 21.0), (0.0, 0.0), (0.0, 5000.0)])
def test_zeros_stand_at_the_foot_of_a_logarithmic_axis(values):
    picture = lines_of({"ideal": (0.0, 0.0), "silo": values}, log=True).draw(Look.of())
    check_layout(picture)
    [axes] = picture.axes
    foot, _ = axes.get_ylim()
    ideal = next(line for line in axes.lines if len(line.get_xdata()) == 2)
    assert list(ideal.get_ydata()) == [foot, foot]
    assert axes.get_yticklabels()[0].get_text() == "0"


def test_what_is_not_there_has_its_reason():
    """Results are there, but the baseline's is 0; or there is none."""
    records = graven.compare("ideal,silo", "array,btree", threads=2, transactions=100).records
    [zero] = [r for r in records if (r.design, r.workload) == ("ideal", "array")]
    gone = next(r for r in records if (r.design, r.workload) == ("silo", "btree"))
    zero.stats[METRIC] = 0.0
    everything = graven.Comparison(tuple(records))
    fewer = graven.Comparison(tuple(r for r in records if r is not gone))
    for found, reasons in (
        (everything, ["baseline is 0"]),
        (fewer, ["no result", "baseline is 0"]),
    ):
        drawn = chart("bars", Asked(found, "ideal", METRIC))
        said = [text for text, _ in texts(drawn.draw(Look.of()))]
        for reason in ("no result", "baseline is 0"):
            assert (reason in said) == (reason in reasons)
        assert {row.get("absent") for row in drawn.rows} == {None, *reasons}


# ---- numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (0.00149, "0.0015"), (0.0149, "0.015"), (0.149, "0.15"), (0.0999, "0.100"),
        (1.0, "1.00"), (9.996, "10.0"), (12.34, "12.3"), (123.4, "123"), (1234.0, "1,234"),
        (0.0000149, "1.49e-05"), (1.49e7, "1.49e+07"), (None, "–"),
    ],
)  # fmt: skip
def test_multiples_have_significant_digits(value, text):
    assert figures.ratio(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(999.9, "1 k"), (1234, "1.23 k"), (0.00149, "0.00149"), (0, "0"), (-2.5e6, "-2.5 M")],
)
def test_numbers_of_any_size_have_a_prefix(value, text):
    assert figures.scaled(value) == text


@pytest.mark.parametrize(
    ("unit", "top", "factor", "shown"),
    [
        ("pJ", 3.2e9, 1e9, "mJ"), ("pJ", 12, 1, "pJ"), ("B", 5e6, 1e6, "MB"),
        ("tx/s", 5e6, 1e6, "M tx/s"), ("cycles", 999, 1, "cycles"), ("", 2e4, 1e3, "k"),
        ("B/transaction", 1e4, 1e3, "kB/transaction"), ("ms", 2e-3, 1e-3, "µs"), ("ns", 0, 1, "ns"),
        ("cycles", 0.01, 1, "cycles"),
    ],
)  # fmt: skip
def test_an_axis_has_one_prefix(unit, top, factor, shown):
    assert figures.scale(unit, top) == figures.Scale(pytest.approx(factor), shown)


def test_numbers_along_an_axis_have_the_same_digits():
    assert figures.steps([0, 0.5, 1.0]) == ["0.0", "0.5", "1.0"]
    assert figures.steps([0, 1000, 2000]) == ["0", "1,000", "2,000"]
    assert figures.steps([-0.0, 0.25]) == ["0.00", "0.25"]


def test_titles_have_the_unit_or_the_baseline(several):
    absolute = several.plot("bars", METRIC)
    assert "M transactions/s" in " ".join(text for text, _ in texts(absolute)).replace("\n", " ")
    relative = several.normalised("base").plot("bars", METRIC)
    assert "relative to base" in " ".join(t for t, _ in texts(relative)).replace("\n", " ")


def test_a_number_over_seeds_is_their_mean_and_its_ends(several):
    source = Source(several, None)
    place = source.places[0]
    number = source.number(stat(METRIC), "silo", "btree", place)
    of_it = [r for r in several.select("silo", "btree") if r.threads == 1]
    seeds = [record.number(METRIC) for record in of_it]
    assert len(seeds) == 2
    assert number.value == pytest.approx(sum(seeds) / 2)
    found = Interval.of(seeds)
    assert (number.low, number.high) == (max(found.low, 0.0), found.high)


def test_there_is_no_mean_over_a_part(several):
    """One seed of one workload is missing: neither that bar nor the mean is drawn."""
    gone = next(r for r in several if (r.design, r.workload, r.seed) == ("silo", "btree", 2))
    fewer = graven.Comparison(tuple(r for r in several if r is not gone))
    drawn = chart("bars", Asked(fewer, "base", METRIC))
    panel = next(p for p in drawn.panels if p.caption == "1 thread")
    missing = {key for key, number in panel.numbers.items() if number is None}
    assert missing == {("silo", "btree"), ("silo", MEAN)}
    assert "no result" in [text for text, _ in texts(drawn.draw(Look.of()))]


def test_parts_add_up_to_the_whole(several):
    for kind, baseline in itertools.product(("traffic", "energy"), (None, "base")):
        for panel in chart(kind, Asked(several, baseline)).panels:
            # Where the baseline has written nothing there is no multiple of it.
            there = [number for number in panel.numbers.values() if number is not None]
            assert there
            for number in there:
                assert sum(number.parts.values()) == pytest.approx(number.value)


# ---- files -------------------------------------------------------------------------------------


def streams(pdf):
    """The inflated streams of a PDF, and what is between them."""
    for found in re.finditer(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        try:
            yield zlib.decompress(found[1])
        except zlib.error:
            yield found[1]


def test_text_in_a_pdf_is_text_and_its_font_is_embedded(several, tmp_path):
    [file, _] = several.plot().save(tmp_path / "bars.pdf")
    content = file.read_bytes()
    assert b"/FontFile2" in content
    assert re.search(rb"/Type /Font\b", content)
    assert b"/Subtype /Type3" not in content
    assert any(b" Tf" in stream and b"BT" in stream for stream in streams(content))
    if shutil.which("pdftotext"):
        done = subprocess.run(["pdftotext", file, "-"], capture_output=True, text=True, check=True)
        assert "btree" in done.stdout


def test_a_picture_is_as_wide_as_is_said(several, tmp_path):
    for width, inches in {"column": 3.3, "text": 7.0, 4.5: 4.5}.items():
        [file, _] = several.plot(width=width).save(tmp_path / "bars.pdf")
        box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", file.read_bytes())
        assert float(box[1]) == pytest.approx(72 * inches, abs=0.5)


@pytest.mark.parametrize("form", ["pdf", "svg", "png"])
def test_equal_pictures_are_equal_bytes_without_a_date(several, form):
    one, other = (several.plot("lines").encoded(form) for _ in range(2))
    assert one == other
    assert b"CreationDate" not in one
    assert b"<dc:date>" not in one


def test_text_in_svg_is_text(several):
    assert ">btree</text>" in several.plot().encoded("svg").decode()


def test_what_is_drawn_is_beside_it_as_csv(several, tmp_path):
    written = (
        several.normalised("base")
        .plot("bars", METRIC)
        .save([tmp_path / "a.pdf", tmp_path / "a.svg", tmp_path / "b.png"])
    )
    assert [path.name for path in written] == ["a.pdf", "a.svg", "b.png", "a.csv", "b.csv"]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    expected = several.select("silo,base", "btree")
    ratios = [
        s.number(METRIC) / b.number(METRIC)
        for s, b in zip(expected["silo"], expected["base"], strict=True)
        if s.threads == 8
    ]
    [row] = [
        row
        for row in rows
        if (row["panel"], row["workload"], row["design"]) == ("8 threads", "btree", "silo")
    ]
    assert float(row["value"]) == pytest.approx(sum(ratios) / 2)
    assert float(row["low"]) == pytest.approx(max(Interval.of(ratios).low, 0.0))
    assert len(rows) == 4 * 3 * 3  # numbers of threads, workloads and their mean, designs


@pytest.mark.parametrize("name", ["bars", "bars.eps", "bars.pdf.gz", "-"])
def test_other_endings_are_refused(several, tmp_path, name):
    with pytest.raises(graven.ConfigError, match=r"must end in \.pdf, \.svg, \.png"):
        save(several.plot(), tmp_path / name)
    assert list(tmp_path.glob("bars*")) == []


def test_a_file_that_cannot_be_written_is_named(several, tmp_path):
    with pytest.raises(graven.OutputError, match=r"nowhere/a\.pdf"):
        save(several.plot(), tmp_path / "nowhere" / "a.pdf")


# ---- the user's own style ----------------------------------------------------------------------


def test_a_style_applies_on_top(several, tmp_path):
    style = tmp_path / "mine.mplstyle"
    style.write_text("font.size: 11\naxes.labelsize: 12.5\npdf.fonttype: 3\n")
    picture = several.plot("bars", style=style)
    [label] = [a.yaxis.label for a in picture.axes if a.get_ylabel()] or [picture._supylabel]
    assert label.get_fontsize() == 12.5
    [file, _] = picture.save(tmp_path / "a.pdf")
    assert b"/Type3" in file.read_bytes()
    check_layout(picture)


def test_what_the_user_has_set_in_matplotlib_stays(several):
    with mpl.rc_context({"legend.fontsize": 9.25}):
        picture = several.plot()
    assert {text.get_fontsize() for text in picture.legends[0].get_texts()} == {9.25}
    assert mpl.rcParams["legend.fontsize"] == mpl.rcParamsDefault["legend.fontsize"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "pie"}, "kind: unknown name `pie`"),
        ({"metric": "throughputs"}, "unknown statistic `throughputs`"),
        ({"width": "page"}, "width: `page` is not column, text, or inches"),
        ({"width": 0.5}, "is not from 2 to 40 inches"),
        ({"theme": "sepia"}, "theme: unknown name `sepia`"),
        ({"style": "no-such-style"}, "neither a style file nor one of"),
        ({"kind": "lines", "over": "pm.write_ns"}, "`pm.write_ns` does not vary; threads do"),
        ({"kind": "traffic", "metric": "cycles"}, "media_write_requests"),
        ({"kind": "latency", "metric": "cycles"}, "transaction_latency_cycles"),
    ],
)
def test_what_is_not_allowed_is_refused(several, arguments, message):
    with pytest.raises(graven.ConfigError) as caught:
        several.plot(**arguments)
    assert message in str(caught.value)


def test_results_that_a_picture_cannot_tell_apart_are_refused(several):
    other = graven.compare("base", "array", transactions=7, threads=1)
    twice = graven.Comparison((*several, *other))
    with pytest.raises(graven.ConfigError, match="two results of base on array"):
        twice.plot()


def test_there_has_to_be_something_to_draw():
    with pytest.raises(graven.ConfigError, match="no results"):
        graven.Comparison(()).plot()


# ---- Python ------------------------------------------------------------------------------------


def test_a_comparison_is_a_sequence_of_records(several):
    assert len(several) == len(list(several)) == 48
    assert not graven.Comparison(())
    assert {record.design for record in several["silo"]} == {"silo"}
    some = several.select(designs=["silo", "base"], workloads="btree")
    assert (some.designs, some.workloads, len(some)) == (["base", "silo"], ["btree"], 16)
    with pytest.raises(graven.ConfigError, match=r"design: unknown name `sil`; did you mean silo"):
        several["sil"]


def test_what_is_shown_of_results_is_short(several):
    assert repr(several) == (
        "<Comparison: 48 results of 3 designs on 2 workloads with 4 numbers of threads and 2 seeds>"
    )
    assert repr(several.records[0]) == (
        "<Record: ideal on array, machine silo, threads 1, transactions 100, seed 1>"
    )
    assert len(repr(several.normalised("base"))) < 140


def test_notebooks_show_a_table_and_a_picture(comparison):
    shown = comparison._repr_html_()
    assert shown.count("<table>") == 1
    assert shown.count("<svg") == 1
    assert ">btree</text>" in shown
    assert "<?xml" not in shown
    assert comparison.normalised("base")._repr_html_() == shown
    assert "No results" in graven.Comparison(())._repr_html_()
    assert "<td>Throughput</td>" in comparison.records[0]._repr_html_()
    assert comparison.plot()._repr_svg_().startswith("<?xml")


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_what_is_saved_is_loaded(tmp_path, form):
    sizes = {"pm.write_ns": [150, 300.5], "pm.buffer_ns": [10, 20]}
    whole = graven.compare("base,silo", "array", transactions=100, vary=sizes)
    file = tmp_path / f"results.{form}"
    whole.save(file)
    found = graven.load(file)
    assert found.records == whole.records
    assert found.varied == whole.varied
    assert found.plot("bars").encoded("svg") == whole.plot("bars").encoded("svg")


def test_other_files_are_not_loaded(tmp_path, comparison):
    with pytest.raises(graven.ConfigError, match=r"ends in none of \.json, \.csv, \.parquet"):
        graven.load(tmp_path / "a.txt")
    with pytest.raises(graven.ConfigError, match="cannot read"):
        graven.load(tmp_path / "a.json")
    for name, content in {"a.json": "[1]", "b.csv": "x,y\n1,2\n", "c.parquet": "PAR1"}.items():
        (tmp_path / name).write_text(content)
        with pytest.raises(graven.ConfigError, match="is not what Graven writes"):
            graven.load(tmp_path / name)
    with pytest.raises(graven.ConfigError, match=r"must end in|ends in"):
        comparison.save(tmp_path / "a.xlsx")


def test_a_store_is_loaded(tmp_path):
    store = tmp_path / "store"
    asked = {"transactions": 100, "store": store}
    graven.compare("base,silo", "array", **asked)
    graven.compare("base,silo", "array", pm__write_ns=300, **asked)
    found = graven.load(store)
    assert found.varied == {"pm.write_ns": [150.0, 300.0]}
    assert len(found) == 4
    graven.compare("base", "array", machine="cramped", **asked)
    with pytest.raises(graven.ConfigError, match="results of silo, cramped; choose one"):
        graven.load(store)
    assert len(graven.load(store, machine="cramped")) == 1
    with pytest.raises(graven.ConfigError, match="no such results"):
        graven.load(store, machine="cramped", transactions=7)
    with pytest.raises(graven.ConfigError, match="there is no store"):
        graven.load(tmp_path)


def test_a_report_is_written(comparison, tmp_path):
    comparison.report(tmp_path / "report.html", "base")
    assert "<html" in (tmp_path / "report.html").read_text()
    comparison.save(tmp_path / "a.json")
    graven.load(tmp_path / "a.json").report(tmp_path / "again.html")
    with pytest.raises(graven.ConfigError, match="no results"):
        graven.Comparison(()).report(tmp_path / "none.html")


def test_a_counterexample_is_drawn():
    report = graven.crash("ideal", "array", machine="cramped", transactions=10)
    picture = report.plot()
    who = [row["who"] for row in picture.rows]
    assert (who[0], who[-1]) == ("thread 0", "verdict")
    fewer = Counterexample("silo", [Event(None, "verdict", "word A holds 0x2")], 4)
    assert any("are left out" in text for text, _ in texts(fewer.draw(Look.of())))
    check_layout(picture)
    with pytest.raises(graven.ConfigError, match="from 0 to 0"):
        report.plot(1)
    kept = graven.crash("silo", "array", machine="cramped", transactions=10)
    with pytest.raises(graven.ConfigError, match="no violation to draw"):
        kept.plot()


# ---- the command -------------------------------------------------------------------------------

CHOICE = ("--designs", "ideal,base,silo", "--workloads", "array,btree", "--transactions", "100")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "lines"])
def test_plot_draws_what_compare_has_kept(quick, tmp_path, kind):
    assert quick("compare", *CHOICE, "--no-report").returncode == 0
    out = ("--out", "a.pdf", "--out", "a.png")
    done = quick("plot", kind, *CHOICE, *out)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    for name in ("a.pdf", "a.png", "a.csv"):
        assert f"wrote {name}" in done.stderr
        assert (tmp_path / name).stat().st_size > 100


def test_plot_lines_go_over_threads_or_a_key(quick, tmp_path):
    threads = ("--threads", "1,4")
    quick("compare", *CHOICE, *threads, "--no-report")
    assert quick("plot", "lines", *CHOICE, *threads, "--out", "a.svg").returncode == 0
    assert "relative to" not in (tmp_path / "a.svg").read_text()
    vary = ("--vary", "pm.write_ns=150,300")
    quick("compare", *CHOICE, *vary, "--no-report")
    done = quick("plot", "lines", *CHOICE, *vary, "--baseline", "base", "--out", "b.svg")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "b.svg").read_text()
    assert "pm.write_ns, ns" in text
    assert "relative to base" in text


def test_plot_draws_nothing_when_a_result_is_missing_and_says_what_makes_it(quick, tmp_path):
    quick("compare", *CHOICE, "--no-report")
    more = [word.replace("silo", "silo,fwb") for word in CHOICE]
    done = quick("plot", "bars", *more, "--out", "a.pdf")
    assert done.returncode == 2
    assert "2 of 8 results are not in" in done.stderr
    assert "fwb on array, fwb on btree; graven compare" in done.stderr
    assert not (tmp_path / "a.pdf").exists()
    command = re.search(r"graven (compare .*?) makes what is missing", done.stderr)[1]
    assert quick(*command.split()).returncode == 0
    assert quick("plot", "bars", *more, "--out", "a.pdf").returncode == 0


def test_plot_of_several_seeds_names_the_command_of_the_missing_one(quick):
    quick("compare", *CHOICE, "--no-report")
    done = quick("plot", "bars", *CHOICE, "--seeds", "1,2", "--out", "a.pdf")
    assert "6 of 12 results" in done.stderr
    assert done.stderr.count("graven compare") == 1
    assert "--seed 2 --store" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "a.gif"), "must end in .pdf, .svg, .png"),
        (("--out", "nowhere/a.pdf"), "--out: cannot write into nowhere"),
        (("--out", "a.pdf", "--width", "page"), "width: `page` is not column, text, or inches"),
        (("--out", "a.pdf", "--style", "no-style"), "style: `no-style` is neither"),
        (("--out", "a.pdf", "--seeds", "1,x"), "`1,x` is neither a number of seeds"),
        (("--out", "a.pdf", "--seeds", "2,2"), "`2,2` has a seed twice"),
        (("--out", "a.pdf", "--baseline", "lad"), "`lad` is not among the designs compared"),
        (("--out", "a.pdf", "--absolute", "--baseline", "base"), "exclude each other"),
        ((), "Missing option '--out'"),
        (("--out", "a.pdf"), "there is no store in"),
    ],
)
def test_plot_refuses(quick, arguments, message):
    done = quick("plot", "bars", *CHOICE, *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_plot_counterexample_takes_what_crash_has_kept(quick, tmp_path):
    where = ("--workload", "array", "--machine", "cramped")
    done = quick("plot", "counterexample", "--design", "ideal", *where, "--out", "a.pdf")
    assert done.returncode == 2
    assert "graven crash --design ideal --workload array --machine cramped" in done.stderr
    quick("crash", "--design", "ideal", *where, "--transactions", "10")
    done = quick("plot", "counterexample", "--design", "ideal", *where, "--out", "a.pdf")
    assert done.returncode == 0, done.stderr
    assert "verdict" in (tmp_path / "a.csv").read_text()


def test_plot_banks_reads_what_run_writes(quick, tmp_path):
    (tmp_path / "banks.csv").write_text("cycle,bank0,bank1\n100,0.5,1\n200,0,2.25\n")
    done = quick("plot", "banks", "banks.csv", "--out", "a.pdf")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.csv").read_text() == "cycle,bank0,bank1\n100.0,0.5,1.0\n200.0,0.0,2.25\n"
    done = quick("plot", "banks", "banks.csv", "--out", "banks.pdf")
    assert "banks.csv would take the place of what is read: FILE names it" in done.stderr
    wrong = {"cycle,bank0\n": "no intervals", "a,b\n1,2\n": "is not what", "": "is not"}
    for content, why in wrong.items():
        (tmp_path / "banks.csv").write_text(content)
        done = quick("plot", "banks", "banks.csv", "--out", "a.pdf")
        assert done.returncode == 2
        assert why in done.stderr


def test_plot_timeline_reads_what_run_writes(real, tmp_path):
    run = ("run", "--design", "fwb", "--workload", "hash", "--transactions", "200")
    assert real(*run, "--threads", "2", "--timeline", "t.json").returncode == 0
    done = real("plot", "timeline", "t.json", "--out", "a.pdf")
    assert done.returncode == 0, done.stderr
    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["group"] for row in rows} >= {"threads", "writes until durable", "PM", "design"}
    numbers = [row["what"] for row in rows if row["what"].startswith("transaction")]
    assert {f"transaction {number}" for number in range(100, 104)} <= set(numbers)
    done = real(*run, "--timeline", "t.json", "--timeline-transactions", "7-300")
    assert done.returncode == 2
    assert "it must be FIRST-LAST, of 0 to 199, at most 10000" in done.stderr


def test_plot_timeline_refuses_what_is_not_one(quick, tmp_path):
    whole = timeline(1, 1, 1, [(1, 0, "transaction", 100, 90)])
    without = {**whole, "traceEvents": whole["traceEvents"][:-1]}
    wrong = {**whole, "otherData": {"design": "silo"}}
    for content in ("", "[]", "{}", json.dumps(without), json.dumps(wrong)):
        (tmp_path / "t.json").write_text(content)
        done = quick("plot", "timeline", "t.json", "--out", "a.pdf")
        assert done.returncode == 2
        assert "t.json is not what `graven run --timeline` writes" in done.stderr
    assert "cannot read" in quick("plot", "timeline", "none.json", "--out", "a.pdf").stderr


def test_plot_paper_draws_what_reproduce_has_kept(quick, tmp_path):
    asked = ("paper", "silo", "fig1", "--quick", "--results", "kept", "--out", "a.svg")
    done = quick("plot", *asked)
    assert done.returncode == 2
    assert "graven reproduce silo fig1 --quick --out kept makes what is missing" in done.stderr
    quick("reproduce", "silo", "fig1", "--quick", "--out", "kept")
    done = quick("plot", *asked)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "a.svg").read_text()
    assert ">ours</text>" in text
    assert ">the paper</text>" in text
    assert "paper" in (tmp_path / "a.csv").read_text().splitlines()[0]
    assert "has no figure `fig9`" in quick("plot", "paper", "silo", "fig9", "--out", "a.svg").stderr


def test_plot_sensitivity_draws_what_explain_has_kept(quick, tmp_path):
    asked = ("sensitivity", "silo-depends", "--quick", "--results", "kept", "--out", "a.svg")
    done = quick("plot", *asked)
    assert done.returncode == 2
    assert (
        "graven explain silo-depends --quick --simulate --out kept makes what is missing"
        in done.stderr
    )
    quick("explain", "silo-depends", "--quick", "--out", "kept")
    done = quick("plot", *asked)
    assert done.returncode == 0, done.stderr
    assert "Multiples of the number by default" in (tmp_path / "a.svg").read_text()
    assert "unknown claim" in quick("plot", "sensitivity", "silo-no", "--out", "a.svg").stderr


def test_the_page_has_each_picture_of_the_gallery_with_its_commands():
    from campaigns.gallery import GALLERY, PICTURES

    page = (GALLERY.parent / "guides/plots.md").read_text()
    commands = {
        " ".join(line.split()) for line in page.splitlines() if line.startswith("    graven ")
    }
    for name, shown in PICTURES.items():
        assert f"graven plot {shown['plot']} --out {name}.svg" in commands
        assert f"](../gallery/{name}.svg)" in page
        picture = (GALLERY / f"{name}.svg").read_text()
        assert "</text>" in picture
        assert len(picture) < 200_000
    assert {path.stem for path in GALLERY.iterdir()} == set(PICTURES)


def test_lines_of_text_fit():
    with Look.of().applied():
        from graven.drawing.figures.marks import text_width

        for text in ("a long-winded title of an axis", "transactionlatencycyclesmean"):
            lines = wrapped(text, 7, 50).split("\n")
            assert len(lines) > 1
            assert all(text_width(line, 7) <= 50 for line in lines)
            assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_a_remark_in_brackets_begins_a_line():
    with Look.of().applied():
        text = "Energy of PM, mJ (lower is better)"
        assert titled(text, 7, 1000) == text
        assert titled(text, 7, 90) == "Energy of PM, mJ\n(lower is better)"
        assert wrapped(text, 7, 90) != titled(text, 7, 90)
        # Not where it takes more lines.
        text = "Energy of persistent memory (x)"
        assert titled(text, 7, 80) == "Energy of persistent\nmemory (x)"
