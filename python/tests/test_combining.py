"""Comparisons that were made apart are one table if they are comparable, and else refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

import graven

SIZE = {"transactions": 100, "threads": 4}
FEW = ("--workloads", "array,btree", "--transactions", "100", "--threads", "4")


def made(designs, **more):
    return graven.compare(designs, "array,btree", **{**SIZE, **more})


def test_two_comparisons_are_one():
    both = made("base,silo") + made("base,lad")
    whole = made("base,silo,lad")
    assert both.designs == whole.designs
    one, other = both.normalised("base"), whole.normalised("base")
    assert [one.mean("cycles", d, 4) for d in whole.designs] == [
        other.mean("cycles", d, 4) for d in whole.designs
    ]
    assert len(both) == len(whole)


def test_several_are_put_together_with_seeds_and_variants():
    mine = {"mine": ("silo", {"silo.log_buffer_entries": 2})}
    both = graven.combine(
        made("base", seeds=2), made("silo", seeds=2), made("lad", seeds=2, variants=mine)
    )
    assert both.designs == ["base", "silo", "lad", "mine"]
    assert both.seeds == [1, 2]
    assert both.variants["mine"].design == "silo"


def test_other_workloads_are_added():
    both = graven.compare("base", "array", **SIZE) + graven.compare("base", "btree", **SIZE)
    assert both.workloads == ["array", "btree"]


def test_a_key_that_only_one_design_reads_may_differ():
    both = made("base") + made("silo", silo__log_buffer_entries=2)
    assert both.designs == ["base", "silo"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"machine": "cramped"}, "machine is silo and cramped"),
        ({"threads": 2}, "threads is 4 and 2"),
        ({"threads": [2, 4]}, "threads is 4 and 2, 4"),
        ({"transactions": 200}, "transactions is 100 and 200"),
        ({"seed": 2}, "seed is 1 and 2"),
        ({"pm__write_ns": 300}, "pm.write_ns is 150 and 300"),
        ({"workload__element_bytes": "4 KB"}, "workload.element_bytes is 64 B and 4 KB"),
        ({"vary": {"pm.write_ns": [1, 2]}}, "what is varied is nothing and pm.write_ns = 1"),
    ],
)
def test_what_is_not_comparable_is_refused(more, said):
    with pytest.raises(graven.ConfigError, match=f"combine: not comparable: {said}"):
        made("base") + made("lad", **more)


def test_another_version_is_refused():
    one, other = made("base"), made("lad")
    old = replace(other, records=tuple(replace(r, version="0.1") for r in other))
    with pytest.raises(graven.ConfigError, match=rf"version is {graven.__version__} and 0\.1"):
        one + old


def test_one_name_is_of_one_thing():
    with pytest.raises(graven.ConfigError, match=r"silo\.log_buffer_entries of silo is 20 and 2"):
        made("silo") + made("silo", silo__log_buffer_entries=2)
    two = [{"mine": ("silo", {"silo.log_buffer_entries": n})} for n in (2, 4)]
    with pytest.raises(graven.ConfigError, match="the variant mine is not the same in both"):
        made("base", variants=two[0]) + made("base", variants=two[1])


def test_results_that_contradict_each_other_are_refused():
    one = made("base")
    wrong = replace(one, records=tuple(replace(r, stats={**r.stats, "cycles": 1}) for r in one))
    with pytest.raises(graven.ConfigError, match="two results of base on array with 4 threads"):
        one + wrong


def test_only_comparisons_are_put_together():
    with pytest.raises(graven.ConfigError, match="combine: there are no results"):
        graven.combine()
    with pytest.raises(graven.ConfigError, match=r"combine: 3 is not a graven\.Comparison"):
        graven.combine(made("base"), 3)
    with pytest.raises(TypeError):
        made("base") + 3


@pytest.mark.parametrize("ending", ["json", "csv", "parquet"])
def test_the_command_puts_a_file_beside_its_own(quick, tmp_path, ending):
    quick("compare", "--designs", "base,lad", *FEW, "--out", f"theirs.{ending}", "--no-report")
    done = quick(
        "compare", "--designs", "base,silo", *FEW, "--with", f"theirs.{ending}",
        "--baseline", "lad", "--metrics", "ipc",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "relative to lad" in done.stdout
    for name in ("base", "silo", "lad"):
        assert f"\n {name} " in done.stdout
    assert "--designs base,silo,lad" in (tmp_path / "report.html").read_text()


def test_the_command_refuses_what_is_not_comparable(quick):
    quick("compare", "--designs", "lad", *FEW, "--out", "theirs.json", "--no-report",
          "--set", "pm.write_ns=300")  # fmt: skip
    done = quick("compare", "--designs", "base", *FEW, "--with", "theirs.json")
    assert done.returncode == 2
    assert "--with theirs.json: not comparable: pm.write_ns is 150 and 300" in done.stderr


def test_a_file_that_is_not_there_is_refused_before_anything_runs(quick):
    done = quick("compare", "--designs", "base", *FEW, "--with", "no.json", FAULT_FAIL="*")
    assert done.returncode == 2
    assert "--with: cannot read no.json" in done.stderr
