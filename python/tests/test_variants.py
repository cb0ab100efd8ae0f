"""Variants: a design with settings of its own, under a name of its own, beside the others."""

from __future__ import annotations

import csv
import io

import pytest
from conftest import documents

import graven
from graven.api.sweeps import Sweep
from graven.drawing.palette import design_styles
from graven.engine.variants import parsed

SMALL = ("--designs", "base,silo", "--workloads", "array,btree", "--transactions", "100")
MEMBERS = {"unsafe-redo", "unsafe-undo"}
MINE = ("--design-as", "mine=silo,silo.log_buffer_entries=2")


def records_of(done):
    assert done.returncode == 0, done.stderr
    return documents(done.stdout)


def test_a_variant_stands_beside_its_design_with_one_baseline(quick):
    done = quick("compare", *SMALL, *MINE, "--metrics", "media_write_requests", "--no-report")
    assert done.returncode == 0, done.stderr
    first = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    assert [word for word in first if word in ("base", "silo", "mine")] == ["base", "silo", "mine"]
    assert done.stdout.count("relative to base") == 1


def test_records_have_the_name_and_the_design(quick):
    records = records_of(quick("compare", *SMALL, *MINE, "--format", "json"))
    assert [r["design"] for r in records] == ["base", "silo", "mine"] * 2
    mine, silo = records[2], records[1]
    assert mine["simulated"] == "silo"
    assert mine["variant"] == {"silo.log_buffer_entries": 2}
    assert "simulated" not in silo
    assert "variant" not in silo
    writes = [record["stats"]["media_write_requests"] for record in (silo, mine)]
    assert writes[1] > writes[0]


def test_settings_of_all_are_the_variants_too_unless_it_has_its_own(quick):
    both = ("--set", "pm.write_ns=300", "--set", "silo.log_buffer_entries=5")
    records = records_of(quick("compare", *SMALL, *MINE, *both, "--out", "r.json", "--no-report",
                               "--format", "json"))  # fmt: skip
    by_name = {record["design"]: record for record in records}
    assert by_name["silo"]["settings"] == {"pm.write_ns": 300.0, "silo.log_buffer_entries": 5}
    assert by_name["mine"]["settings"] == {"pm.write_ns": 300.0}
    assert by_name["mine"]["variant"] == {"silo.log_buffer_entries": 2}


def test_several_variants_and_a_place_among_the_designs(quick):
    more = ("--design-as", "slow=base,pm.write_ns=300")
    names = ("--designs", "slow,base,mine", *SMALL[2:])
    records = records_of(quick("compare", *names, *MINE, *more, "--format", "json"))
    assert [r["design"] for r in records] == ["slow", "base", "mine"] * 2


def test_a_variant_can_be_the_baseline(quick):
    done = quick("compare", *SMALL, *MINE, "--baseline", "mine", "--no-report")
    assert done.returncode == 0, done.stderr
    assert "relative to mine" in done.stdout


def test_one_baseline_in_all_combinations(quick):
    vary = ("--vary", "pm.write_ns=150,300")
    done = quick("compare", *SMALL, *MINE, *vary, "--format", "json")
    records = records_of(done)
    assert len(records) == 12
    assert {(r["design"], r["varied"]["pm.write_ns"]) for r in records} >= {
        ("mine", 150.0),
        ("mine", 300.0),
    }


def test_a_variant_of_a_name_for_several_is_the_fastest_of_them(quick):
    slow = ("--design-as", "slow=unsafe-base,pm.write_ns=300")
    records = records_of(quick("compare", *SMALL, *slow, "--format", "json"))
    assert {r["simulated"] for r in records if r["design"] == "slow"} <= MEMBERS


def test_the_member_that_stands_for_a_name_is_in_the_record(quick):
    names = ("--designs", "base,unsafe-base", *SMALL[2:])
    records = records_of(quick("compare", *names, "--format", "json"))
    assert [r.get("simulated") in MEMBERS for r in records] == [False, True] * 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mine", "`mine` is not of the form NAME=DESIGN,SECTION.KEY=VALUE"),
        ("mine=", "not of the form"),
        ("mine=silo,x", "not of the form"),
        ("silo=silo", "--design-as silo: the name is taken by a design"),
        ("unsafe-base=silo", "the name is taken"),
        ("all=silo", "the name stands for something else"),
        ("a b=silo", "`a b` is not allowed as a name"),
        ("mine=sillo", "--design-as mine: design: unknown name `sillo`; did you mean silo?"),
        ("mine=silo,silo.log_buffer_entries=", "`silo.log_buffer_entries` has no value"),
        ("mine=silo,pm.write_ns=1,pm.write_ns=2", "`pm.write_ns` is set twice"),
        ("mine=base,silo.log_buffer_entries=2", "base does not read `silo.log_buffer_entries`"),
        ("mine=silo,pm.no=2", "--design-as mine: unknown key `pm.no`"),
        ("mine=silo,pm.write_ns=1,2", '--design-as mine: `pm.write_ns` = "1,2" is not allowed'),
        ("mine=silo,core.count=2", "--design-as mine: `core.count` does not fit: --vary varies"),
    ],
)
def test_what_is_not_allowed_is_refused_with_one_message(quick, text, said):
    done = quick("compare", *SMALL, "--design-as", text, "--vary", "core.count=1,2")
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_two_variants_have_two_names(quick):
    done = quick("compare", *SMALL, *MINE, *MINE)
    assert done.returncode == 2
    assert "--design-as mine: the name is taken by another variant" in done.stderr


def test_a_comma_within_a_value_belongs_to_it():
    name, variant = parsed("mine = silo , pm.write_ns = 1,000 , core.count=2")
    assert name == "mine"
    assert variant.design == "silo"
    assert variant.settings == {"pm.write_ns": "1,000", "core.count": "2"}


def test_in_python_a_variant_is_a_pair_or_a_variant():
    own = {"silo.log_buffer_entries": 2}
    pair = graven.compare("base,silo", "array", transactions=100, variants={"mine": ("silo", own)})
    one = graven.Variant("silo", own)
    item = graven.compare("base,silo", "array", transactions=100, variants={"mine": one})
    assert pair.records == item.records
    assert pair.variants == {"mine": one}
    assert pair.find("mine", "array", 8).simulated == "silo"


@pytest.mark.parametrize("given", [{"mine": "silo"}, {"mine": ("silo", 3)}, ["mine"], {"m": 1}])
def test_in_python_anything_else_is_refused(given):
    with pytest.raises(graven.ConfigError, match="variants"):
        graven.compare("base", "array", transactions=100, variants=given)


@pytest.mark.parametrize("ending", ["json", "csv", "parquet"])
def test_files_keep_the_design_and_what_was_set(tmp_path, ending):
    result = graven.compare(
        "base,silo",
        "array",
        transactions=100,
        variants={"mine": ("silo", {"silo.log_buffer_entries": 2})},
        pm__write_ns=300,
    )
    file = tmp_path / f"results.{ending}"
    result.save(file)
    again = graven.load(file)
    assert again.variants == result.variants
    for old, new in zip(result, again, strict=True):
        assert (old.simulated, old.variant, old.settings) == (
            new.simulated,
            new.variant,
            new.settings,
        )


def test_rows_without_the_configuration_say_what_was_set(quick):
    done = quick("compare", *SMALL, *MINE, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["simulated"] for row in rows[:3]] == ["", "", "silo"]
    assert rows[2]["variant"] == '{"silo.log_buffer_entries": 2}'


def test_a_variants_result_is_that_of_its_design_with_these_settings(quick):
    quick("compare", "--from-start", *SMALL, *MINE, "--no-report")
    done = quick(
        "run", "--design", "silo", "--workload", "array", "--transactions", "100",
        "--set", "silo.log_buffer_entries=2",
    )  # fmt: skip
    assert "1 of 1 results were there already" in done.stderr


def test_the_report_names_what_it_sets_and_the_command(quick, tmp_path):
    done = quick("compare", *SMALL, *MINE)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text()
    assert "silo with silo.log_buffer_entries = 2" in page
    assert "--design-as mine=silo,silo.log_buffer_entries=2" in page


def test_a_variant_is_drawn_as_a_safe_design_and_leaves_others_their_colours():
    alone = design_styles(["base", "silo"])
    styles = design_styles(["mine", "base", "silo"])
    assert {name: styles[name] for name in alone} == alone
    assert not styles["mine"].hatched
    assert styles["mine"].colour not in {style.colour for style in alone.values()}
    assert design_styles(["mine"], {"mine"})["mine"].hatched


def test_pictures_find_variants_and_say_the_command_that_makes_them(quick, tmp_path):
    plot = ("plot", "bars", *SMALL, *MINE, "--out", "bars.svg")
    done = quick(*plot)
    assert done.returncode == 2
    assert "--design-as mine=silo,silo.log_buffer_entries=2" in done.stderr
    assert quick("compare", *SMALL, *MINE, "--no-report").returncode == 0
    done = quick(*plot)
    assert done.returncode == 0, done.stderr
    assert "mine" in (tmp_path / "bars.csv").read_text()


SWEEP = """
designs = ["base"]
workloads = ["array"]
transactions = 100
[variants.mine]
design = "silo"
set = { "silo.log_buffer_entries" = 2 }
"""


def test_a_sweep_has_variants(tmp_path):
    sweep = Sweep.parse(SWEEP, "sweep.toml", tmp_path)
    assert [job.name for job in sweep.jobs] == ["base", "mine"]
    (tmp_path / "sweep.toml").write_text(SWEEP)
    records = graven.sweep(tmp_path / "sweep.toml", store=tmp_path / "store")
    assert [(r.design, r.simulated) for r in records] == [("base", "base"), ("mine", "silo")]


def test_a_sweep_that_is_crashed_has_them_too(tmp_path):
    (tmp_path / "sweep.toml").write_text(f"crash = {{}}\n{SWEEP}")
    reports = graven.sweep(tmp_path / "sweep.toml", store=tmp_path / "store")
    assert [report.called for report in reports] == ["base", "mine"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('variants = "silo"', "sweep.toml: `variants` = 'silo' is not allowed; a table"),
        ('[variants]\nmine = "silo"', r"is not allowed; tables, \[variants.NAME\]"),
        ("[variants.mine]\nset = {}", "sweep.toml, variants, mine: `design` is missing"),
        ('[variants.mine]\ndesign = "silo"\nx = 1', "variants, mine: unknown key `x`"),
        ('[variants.base]\ndesign = "silo"', "the name is taken"),
    ],
)
def test_a_sweeps_variants_are_checked(tmp_path, text, said):
    with pytest.raises(graven.ConfigError, match=said):
        Sweep.parse(text, "sweep.toml", tmp_path)


def test_a_variant_is_crashed_under_its_name(quick):
    done = quick(
        "crash", "--design", "base", *MINE, "--workload", "array", "--transactions", "50",
        "--format", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    base, mine = documents(done.stdout)
    assert (mine["design"], mine["variant"]) == ("silo", "mine")
    assert mine["settings"] == {"silo.log_buffer_entries": "2"}
    assert "variant" not in base
    done = quick("crash", *MINE, "--workload", "array", "--transactions", "50")
    assert " mine " in done.stdout
    assert " silo " not in done.stdout


def test_the_adversary_has_none(quick):
    done = quick("adversary", *MINE)
    assert done.returncode == 2
    assert "No such option '--design-as'" in done.stderr
