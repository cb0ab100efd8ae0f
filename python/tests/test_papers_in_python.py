"""The papers from Python: figures, claims, what moves one; tables of other libraries; notebooks."""

from __future__ import annotations

import sys
import types

import pytest

import graven
from graven.running import progress
from graven.running.pool import Snapshot


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_reproduction_has_what_the_command_writes(quick):
    found = graven.reproduce("silo", quick=True, folder="kept")
    done = quick("reproduce", "silo", "--claims", "--quick", "--format", "json", "--out", "kept")
    assert "results were there already" in done.stderr
    assert [claim.id in done.stdout for claim in found.claims] == [True] * len(found.claims)
    assert [figure.found.figure.id for figure in found] == list(found.figures)
    assert found.to_arrow().num_rows == len(found.claims)
    html = found._repr_html_()
    assert found.claims[0].id in html


def test_a_figure_has_the_papers_numbers_beside_ours():
    figure = graven.reproduce("silo", "fig1", quick=True)["fig1"]
    assert repr(figure).startswith("<Figure fig1: ")
    printed = [row for row in figure.rows if row["printed"] is not None]
    assert printed
    assert all(row["value"] is not None for row in figure.rows)
    assert figure.to_pandas().columns[:2].tolist() == ["panel", "design"]
    assert "(paper " in figure._repr_html_()
    written = figure.plot(width="text").save("fig1.svg")
    assert [path.name for path in written] == ["fig1.svg", "fig1.csv"]


def test_what_moves_a_claim_comes_most_first():
    found = graven.explain("silo-depends", quick=True)
    factors = [max(m.factor, 1 / m.factor) for m in found.moves if m.factor]
    assert factors == sorted(factors, reverse=True)
    assert found.claim.id in repr(found)
    assert found.moves[0].name in found._repr_html_()
    found.plot(theme="dark").save("moved.png")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: graven.reproduce("gem5"), "unknown paper `gem5`"),
        (lambda: graven.reproduce("silo", "fig99"), "figure"),
        (lambda: graven.reproduce("silo", readings="some"), "readings"),
        (lambda: graven.reproduce("silo", quick=1), "quick: 1 is neither True nor False"),
        (lambda: graven.explain("no-claim"), "unknown claim `no-claim`"),
        (lambda: graven.reproduce("silo", "fig1", quick=True)["fig9"], "figure"),
        (lambda: graven.reproduce("silo", "fig1", observe=1), "observe"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(graven.ConfigError, match=message):
        call()


def test_a_failed_simulation_says_so(monkeypatch):
    monkeypatch.setenv("FAULT_FAIL", "silo")
    with pytest.raises(graven.SimulationError, match="silo on "):
        graven.reproduce("silo", "fig1", quick=True)


# ---- tables of other libraries -----------------------------------------------------------------


@pytest.fixture
def result():
    return graven.compare("base,silo", "array,btree", threads=[1, 2], transactions=100)


def test_results_over_axes(result):
    pytest.importorskip("xarray")
    found = result.to_xarray()
    assert dict(found.sizes) == {"design": 2, "workload": 2, "threads": 2}
    there = found["throughput_tx_per_s"].sel(design="silo", workload="btree", threads=2).item()
    assert there == result.number("throughput_tx_per_s", "silo", "btree", 2)
    varied = graven.compare("silo", "array", vary={"pm.write_ns": [100, 200]}, transactions=100)
    assert "config.pm.write_ns" in varied.to_xarray().sizes
    twice = graven.Comparison((*result.records, *result.records))
    with pytest.raises(graven.ConfigError, match="several results at"):
        twice.to_xarray()


def test_results_in_polars(result):
    pytest.importorskip("polars")
    assert result.to_polars().height == len(result)
    assert result.normalised("base").to_polars().columns[:2] == ["metric", "threads"]


@pytest.mark.parametrize(
    ("library", "method"),
    [("pandas", "to_pandas"), ("polars", "to_polars"), ("xarray", "to_xarray")],
)
def test_a_library_that_is_missing_is_named(result, library, method, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f"{method}.* needs {library}.*pip install {library}"):
        getattr(result, method)()


# ---- notebooks ---------------------------------------------------------------------------------


def test_a_notebook_shows_progress_under_the_cell(monkeypatch):
    shown = []
    handle = types.SimpleNamespace(update=lambda page: shown.append(page))
    display = types.SimpleNamespace(
        HTML=lambda text: text, display=lambda page, **_: (shown.append(page), handle)[1]
    )
    shell = types.SimpleNamespace(kernel=object())
    ipython = types.SimpleNamespace(get_ipython=lambda: shell, display=display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    graven.compare("base,silo", "array", transactions=100, store=None)
    assert shown
    assert "<progress" in shown[-1]
    assert "2 of 2, 100%" in shown[-1]
    del shell.kernel
    assert progress.of_notebook() is None


def test_without_a_notebook_nothing_is_shown(capsys):
    assert progress.of_notebook() is None
    graven.compare("base", "array", transactions=100, store=None)
    assert capsys.readouterr() == ("", "")


def test_a_snapshot_as_an_element():
    text = progress.Bar.html(Snapshot(3, 4, 0.75, ("silo on <array>",), 10.0))
    assert 'value="0.7500"' in text
    assert "3 of 4, 75%" in text
