"""The Python interface."""

from __future__ import annotations

import math
import os
import pickle
import signal
import threading

import pytest
from conftest import LITMUS, await_file

import graven
import graven.api
from graven.results.comparison import _title
from graven.results.intervals import geometric_mean
from graven.running.pool import Pool


def test_run_returns_a_record():
    record = graven.run("silo", "btree", threads=2, transactions=50, pm__write_ns=300)
    assert record.stats["committed_transactions"] == 50
    assert record.config["pm"]["write_ns"] == 300.0
    assert record.threads == 2


def test_settings_may_be_a_mapping_or_keywords():
    one = graven.run("silo", "btree", settings={"pm.write_ns": 300})
    other = graven.run("silo", "btree", pm__write_ns=300)
    assert one == other


def test_a_machine_may_be_a_path(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("")
    assert graven.run("silo", "btree", machine=path).machine == "mine.toml"


def test_errors_carry_the_messages_of_the_command():
    with pytest.raises(graven.ConfigError, match="unknown design `nope`; known are"):
        graven.run("nope", "btree")
    with pytest.raises(ValueError, match="unknown key"):
        graven.run("silo", "btree", pm__nope=1)


def test_errors_are_called_what_they_are_imported_as():
    for kind in (graven.ConfigError, graven.SimulationError, graven.TraceError, graven.Cancelled):
        copy = pickle.loads(pickle.dumps(kind("why")))
        assert (type(copy), str(copy)) == (kind, "why")
        assert repr(kind) == f"<class 'graven.{kind.__name__}'>"


@pytest.mark.parametrize(
    "called",
    [
        lambda store: graven.run("silo", "array", store=store),
        lambda store: graven.compare("silo", "array", store=store),
        lambda store: graven.crash("silo", "array", machine="cramped", store=store),
        lambda store: graven.litmus(LITMUS, store=store),
    ],
)
def test_a_result_that_cannot_be_kept_is_no_failed_simulation(tmp_path, called):
    file = tmp_path / "file"
    file.write_text("not a folder")
    with pytest.raises(graven.OutputError, match="cannot make the store"):
        called(file)
    later = tmp_path / "later"
    later.mkdir()
    (later / "store.json").write_text('{"schema": 99}')
    with pytest.raises(graven.StoreError, match="a store of schema 99"):
        called(later)


@pytest.mark.parametrize("file", ["request_trace", "bank_loads", "timeline"])
def test_a_file_that_cannot_be_written_is_named_before_anything_runs(tmp_path, file):
    where = tmp_path / "nowhere" / "out.grt"
    with pytest.raises(graven.OutputError, match=r"nowhere: No such file or directory$"):
        graven.run("silo", "array", store=tmp_path / "kept", **{file: where})
    assert not (tmp_path / "kept").exists()


def test_what_is_shown_of_results_is_one_short_line():
    shown = [
        graven.catalogue(),
        graven.cost("silo"),
        graven.crash("ideal", "array", machine="cramped", transactions=10),
        graven.adversary("silo", schedules=2),
        *graven.litmus(LITMUS).results,
    ]
    for item in shown:
        assert len(repr(item)) < 120, repr(item)
        assert repr(item).startswith(f"<{type(item).__name__}: ")
    violation = shown[2].violations[0]
    assert "timeline" not in repr(violation)
    assert "replay" not in repr(violation)


def test_a_failed_simulation_raises_with_the_others_attached(monkeypatch):
    monkeypatch.setenv("FAULT_FAIL", "silo")
    with pytest.raises(graven.SimulationError, match="silo on array: cycle 1234") as caught:
        graven.compare(["base", "silo"], "array")
    assert caught.value.comparison.designs == ["base"]


def test_an_interrupt_raises_with_the_finished_ones_attached(monkeypatch, tmp_path):
    monkeypatch.setenv("FAULT_SLOW", "silo")
    monkeypatch.setenv("FAULT_SECONDS", "600")
    monkeypatch.setenv("FAULT_STARTED", str(tmp_path))

    def interrupt():
        await_file(tmp_path / "silo-array")
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(graven.Interrupted, match="after 1 finished") as caught:
        graven.compare(["base", "silo"], "array", jobs=1)
    assert caught.value.comparison.designs == ["base"]


def test_records_are_in_the_order_asked_for_whatever_finishes_first(monkeypatch):
    monkeypatch.setenv("FAULT_SLOW", "base")
    monkeypatch.setenv("FAULT_SECONDS", "0.4")
    result = graven.compare(["base", "silo", "lad"], "array", jobs=3)
    assert result.designs == ["base", "silo", "lad"]


def test_a_panic_of_the_engine_is_a_failed_simulation():
    class Panic(BaseException):
        pass

    class Broken:
        def run(self):
            raise Panic("index out of bounds")

        def cancel(self):
            pass

        def progress(self):
            return (0, 0)

    outcome = Pool([("broken", Broken())], 1).run()
    assert outcome.failures[0].message == "internal error of the engine: index out of bounds"


def test_frames(comparison):
    frame = comparison.to_pandas()
    assert list(frame["design"]) == ["ideal", "base", "silo"] * 2
    assert frame["config.pm.write_ns"].iloc[0] == 150.0
    assert comparison.to_arrow().num_rows == 6


def test_whole_numbers_beyond_63_bits_survive():
    table = graven.results.formats.arrow_table([{"x": (1 << 64) - 1}, {"x": None}, {"x": 3}])
    assert table.column("x").to_pylist() == [(1 << 64) - 1, None, 3]


def test_normalised_values_and_means(comparison):
    over = comparison.normalised("base")
    stat = "throughput_tx_per_s"
    ratios = [
        comparison.number(stat, "silo", w, 8) / comparison.number(stat, "base", w, 8)
        for w in ("array", "btree")
    ]
    assert over.value(stat, "silo", "array", 8) == ratios[0]
    assert over.mean(stat, "silo", 8) == pytest.approx(math.sqrt(ratios[0] * ratios[1]))
    assert over.mean(stat, "base", 8) == 1.0
    frame = over.to_pandas()
    assert set(frame["workload"]) == {"array", "btree", "mean"}
    with pytest.raises(graven.ConfigError, match="`lad` is not among the designs compared"):
        comparison.normalised("lad")


def test_a_mean_is_only_of_whole_rows(comparison):
    fewer = graven.Comparison(comparison.records[:-1])
    over = fewer.normalised("base")
    assert over.value("cycles", "silo", "array", 8) is not None
    assert over.mean("cycles", "silo", 8) is None
    assert over.mean("cycles", "ideal", 8) is not None


SIZES = {"workload.element_bytes": ["64 B", "4 KB"]}


def test_each_combination_is_relative_to_the_baseline_in_it():
    comparison = graven.compare("base,silo", "array,btree", vary=SIZES)
    over, stat = comparison.normalised("base"), "throughput_tx_per_s"
    assert comparison.varied == SIZES
    means = []
    for number, size in enumerate(SIZES["workload.element_bytes"]):
        part = over.at({"workload.element_bytes": size})
        records = comparison.records[4 * number : 4 * number + 4]
        base_array, silo_array, base_btree, silo_btree = (r.number(stat) for r in records)
        ratios = [silo_array / base_array, silo_btree / base_btree]
        assert [part.value(stat, "silo", w, 8) for w in ("array", "btree")] == ratios
        means.append(part.mean(stat, "silo", 8))
        assert means[-1] == pytest.approx(math.sqrt(ratios[0] * ratios[1]))
        assert part.arithmetic_mean(stat, "silo", 8) == pytest.approx(sum(ratios) / 2)
    assert means[0] != pytest.approx(means[1])
    frame = over.to_pandas()
    assert list(frame)[:3] == ["metric", "threads", "config.workload.element_bytes"]
    kept = (frame["metric"] == stat) & (frame["workload"] == "mean") & (frame["design"] == "silo")
    assert list(frame[kept]["value"]) == means


def test_one_combination_must_be_chosen():
    comparison = graven.compare("base", "array", vary={"pm.write_ns": "150,300"})
    with pytest.raises(graven.ConfigError, match=r"choose with `at` from pm.write_ns = 150; pm"):
        comparison.find("base", "array", 8)
    with pytest.raises(graven.ConfigError, match=r"no results with pm.write_ns = 7; there are: pm"):
        comparison.at({"pm.write_ns": 7})
    record = comparison.at({"pm.write_ns": 300}).find("base", "array", 8)
    assert record == comparison.records[1]


def test_a_combination_without_a_workload_has_no_mean():
    whole = graven.compare("base,silo", "array,btree", vary=SIZES)
    fewer = graven.Comparison(whole.records[:-2]).normalised("base")
    small, large = fewer.parts()
    assert small.mean("cycles", "silo", 8) is not None
    assert large.comparison.workloads == ["array", "btree"]
    assert large.mean("cycles", "silo", 8) is None


def test_a_machine_says_what_is_compared_unless_the_caller_does():
    said = graven.compare(machine="morlog", transactions=10, threads=1)
    designs = ["fwb-crade", "fwb-unsafe", "fwb-slde", "morlog-crade", "morlog-slde", "morlog-dp"]
    assert (said.designs, said.workloads) == (
        designs,
        ["btree", "hash", "queue", "rbtree", "sdg", "sps"],
    )
    assert said.varied == SIZES
    assert said.normalised().baseline == "fwb-crade"
    own = graven.compare("base,silo", "array", machine="morlog", vary={})
    assert (own.designs, own.varied) == (["base", "silo"], {})
    assert own.normalised().baseline == "base"


def test_a_machine_says_how_many_threads_and_transactions(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[comparison]\nthreads = [2, 4]\ntransactions = 300\n")
    said = graven.compare("base", "array", machine=path)
    assert (said.threads, [r.transactions for r in said.records]) == ([2, 4], [300, 300])
    own = graven.compare("base", "array", machine=path, threads=1, transactions=100)
    assert (own.threads, [r.transactions for r in own.records]) == ([1], [100])


def test_a_variation_is_of_any_values():
    comparison = graven.compare("base", "array", vary={"pm.write_ns": (150, 300.0)})
    assert comparison.varied == {"pm.write_ns": [150.0, 300.0]}
    with pytest.raises(graven.ConfigError, match="settings gives it one value"):
        graven.compare("base", "array", vary={"pm.write_ns": [1]}, pm__write_ns=2)


@pytest.mark.parametrize(
    ("values", "mean"), [([2.0, 8.0], 4.0), ([1.0, None], None), ([0.0, 1.0], None), ([], None)]
)
def test_geometric_mean(values, mean):
    found = geometric_mean(values)
    assert found == mean if mean is None else found == pytest.approx(mean)


def test_groups_of_workloads():
    assert graven.api.options.workload_names("all") == graven.catalogue().workload_names
    macro = graven.catalogue().workload_groups()["macro"]
    assert graven.api.options.workload_names(["macro", "array", "micro"])[: len(macro) + 2] == [
        *macro, "array", "btree",
    ]  # fmt: skip
    assert graven.api.options.design_names("all") == [
        design.name for design in graven.catalogue().designs
    ]


@pytest.mark.parametrize(
    ("stat", "title"),
    [
        ("pm_energy_pj", "PM energy"),
        ("ipc", "IPC"),
        ("cycles", "Cycles"),
        ("llc_misses", "LLC misses"),
        ("stall_mshr_cycles", "Stall MSHR"),
        ("write_energy_pj", "Write energy"),
    ],
)
def test_titles_of_statistics_are_words(stat, title):
    assert _title(stat) == title


def test_memory(tmp_path):
    path = tmp_path / "trace"
    path.write_text("0x40 READ 5\n")
    record = graven.memory(path)
    assert (record.requests, record.stats["reads"]) == (1, 1)
    path.write_text("nonsense")
    with pytest.raises(graven.TraceError, match="trace: line 1: expected"):
        graven.memory(path)
