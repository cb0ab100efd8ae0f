"""Options for names: the singular and the plural are the same, and so is an argument."""

import pytest
from conftest import documents

SMALL = ("--transactions", "20", "--format", "json")


def names(done):
    assert done.returncode == 0, done.stderr
    return [item["design"] for item in documents(done.stdout)]


@pytest.mark.parametrize("spelled", ["--design", "--designs"])
def test_a_comparison_takes_both(quick, spelled):
    rest = ("--workload", "array", "--from-start", *SMALL)
    assert names(quick("compare", spelled, "base,silo", *rest)) == ["base", "silo"]
    assert names(quick("compare", spelled, "base", spelled, "silo", *rest)) == ["base", "silo"]


def test_one_simulation_takes_both_and_one_name(quick):
    assert quick("run", "--designs", "silo", "--workloads", "array", *SMALL).returncode == 0
    several = quick("run", "--design", "base,silo", "--workload", "array", *SMALL)
    assert several.returncode == 2
    assert "--design: `base,silo` is several; give one" in several.stderr


def test_metrics_take_both(quick):
    of = ("--design", "base", "--workload", "array", "--transactions", "20", "--from-start")
    for spelled in ("--metric", "--metrics"):
        done = quick("compare", *of, spelled, "ipc", "--no-report")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("relative to") == 1


@pytest.mark.parametrize("command", ["check", "faults", "cost", "mutants"])
def test_a_design_is_an_argument_or_an_option(quick, command):
    small = {"check": ("--transactions", "1"), "faults": ("--schedules", "1")}
    small |= {"mutants": ("--schedules", "1", "--only", "own"), "cost": ()}
    found = [
        quick(command, *given, *small[command], "--format", "json")
        for given in (("silo",), ("--design", "silo"), ("--designs", "silo"))
    ]
    assert len({done.stdout for done in found}) == 1
    assert {done.returncode for done in found} <= {0, 1}, found[0].stderr
    missing = quick(command)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "DESIGN" in missing.stderr
