"""`graven litmus`: rows, timelines and exit codes."""

from __future__ import annotations

import signal

import pytest
from conftest import LITMUS, documents, start, stopped

import graven as package

WRONG = LITMUS.replace("design silo\nviolates ideal", "design ideal")
BAD = 'graven litmus 1\ntitle "x"\nnonsense A\n'


@pytest.fixture
def programs(tmp_path):
    for name, text in {"a": LITMUS, "b": LITMUS, "wrong": WRONG}.items():
        (tmp_path / f"{name}.litmus").write_text(text)
    return tmp_path


def test_what_is_expected_is_exit_code_0(quick, programs):
    del programs
    done = quick("litmus", "a.litmus")
    assert done.returncode == 0, done.stderr
    for text in ("a.litmus", "silo", "kept", "ideal", "VIOLATED", "2 results of 1 program, all"):
        assert text in done.stdout
    assert "A: 0x1 -> 0x2" not in done.stdout


def test_what_is_not_expected_is_told_and_exit_code_1(quick, programs):
    del programs
    done = quick("litmus", "wrong.litmus")
    assert done.returncode == 1
    for text in ("NO: must be kept", "A: 0x1 -> 0x2", "1 not as expected"):
        assert text in done.stdout
    assert "A: 0x1" not in quick("litmus", "wrong.litmus", "--no-timeline").stdout
    assert "A: 0x1" in quick("litmus", "a.litmus", "--timeline").stdout


def test_designs_may_be_others(quick, programs):
    del programs
    done = quick("litmus", "a.litmus", "--design", "base", "--design", "lad", "--format", "json")
    [found] = documents(done.stdout)
    assert [item["design"] for item in found["results"]] == ["base", "lad"]
    assert "A: 0x1 -> 0x2" in quick("litmus", "a.litmus", "--design", "ideal").stdout


def test_a_folder_is_all_its_programs(quick, programs):
    (programs / "notes.txt").write_text("no program")
    (programs / "deeper").mkdir()
    (programs / "wrong.litmus").rename(programs / "deeper" / "wrong.litmus")
    done = quick("litmus", ".", "--format", "json")
    assert done.returncode == 1
    found = documents(done.stdout)
    assert [item["file"] for item in found] == ["a.litmus", "b.litmus", "deeper/wrong.litmus"]
    assert list(found[0]) == ["file", "title", "results", "left_out"]
    assert found[0]["left_out"] == {}
    result = found[0]["results"][1]
    assert (result["expected"], result["as_expected"]) == ("violated", True)
    assert result["violations"][0]["what"].startswith("word 0x1000")


def test_every_program_that_cannot_be_read_is_named(quick, programs):
    (programs / "bad.litmus").write_text("graven litmus 1\nnonsense A\n")
    (programs / "old.litmus").write_text("graven litmus 0\n")
    (programs / "empty").mkdir()
    done = quick("litmus", "a.litmus", "bad.litmus", "none.litmus", "old.litmus", FAULT_FAIL="*")
    assert done.returncode == 2
    assert done.stdout == ""
    for line, begin in zip(
        done.stderr.splitlines(),
        [
            "bad.litmus:2:1: `nonsense` is not a statement; allowed are title, design",
            "none.litmus: No such file or directory",
            "old.litmus:1:15: this file is of version 0; this program reads version 1",
        ],
        strict=True,
    ):
        assert line.startswith(f"graven: error: {begin}")
    done = quick("litmus", "empty")
    assert done.returncode == 2
    assert "empty: there is no *.litmus in this folder" in done.stderr
    (programs / "latin.litmus").write_bytes(b"graven litmus 1\n# \xe9\n")
    assert "not UTF-8" in quick("litmus", "latin.litmus").stderr
    assert "unknown design `nope`" in quick("litmus", "a.litmus", "--design", "nope").stderr
    assert quick("litmus").returncode == 2


FOR_ALL = """graven litmus 1
title "a small log region"
set pm.log_region_bytes = 64 KB
A = 1
thread
  begin
  A = 2
  commit
"""


def test_designs_that_a_program_for_all_does_not_fit_are_left_out(quick, programs):
    (programs / "small.litmus").write_text(FOR_ALL)
    done = quick("litmus", "small.litmus", "--format", "json")
    assert done.returncode == 0, done.stderr
    [found] = documents(done.stdout)
    assert set(found["left_out"]) >= {"lsm", "osp"}
    assert {"base", "fwb"} <= {result["design"] for result in found["results"]}
    assert found["left_out"].keys().isdisjoint(result["design"] for result in found["results"])
    why = 'statement `set`: `pm.log_region_bytes` = "64 KB" does not fit'
    for design in found["left_out"]:
        assert f"left out: {design} in small.litmus: {why}" in done.stderr
    # A result that is kept says so again.
    again = quick("litmus", "small.litmus")
    assert "results were there already" in again.stderr
    assert f"left out: osp in small.litmus: {why}" in again.stderr


@pytest.mark.parametrize(
    ("text", "design", "message"),
    [
        (FOR_ALL, "osp,base", "small.litmus: osp: statement `set`: `pm.log_region_bytes`"),
        (FOR_ALL, "osp", "small.litmus: statement `set`: `pm.log_region_bytes`"),
        (FOR_ALL.replace("A = 1", "design base osp\nA = 1"), None, "small.litmus: osp: statement"),
        (FOR_ALL.replace("A = 1", "violates osp\nA = 1"), None, "small.litmus: statement `set`"),
        (FOR_ALL, "osp,lsm", "small.litmus: it fits none of 2 designs; osp: statement `set`: "),
        (FOR_ALL.replace("64 KB", "32 MB"), None, "small.litmus: statement `set`: `pm.log_region"),
        (FOR_ALL.replace("64 KB", "0"), None, "`pm.log_region_bytes` = 0 is not allowed"),
        (FOR_ALL.replace("log_region_bytes", "nope"), None, "statement `set`: unknown key"),
    ],
)
def test_designs_that_are_named_have_to_fit(quick, programs, text, design, message):
    (programs / "small.litmus").write_text(text)
    done = quick("litmus", "small.litmus", *([] if design is None else ["--design", design]))
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_an_interrupt(programs):
    slow = {"FAULT_SECONDS": "600", "FAULT_STARTED": str(programs)}
    process = start(programs, "litmus", "a.litmus", "--format", "json", **slow)
    stdout, stderr = stopped(process, programs / "litmus-program", signal.SIGINT, 130)
    assert documents(stdout) == []
    assert "interrupted: 0 of 1 programs had finished" in stderr


def test_from_python(programs):
    report = package.litmus(LITMUS)
    assert (report.file, report.title, report.as_expected) == ("program", "a word", True)
    assert [result.verdict for result in report.results] == ["kept", "violated"]
    assert package.litmus(programs / "wrong.litmus").as_expected is False
    [result] = package.litmus(str(programs / "a.litmus"), design="base").results
    assert result.to_dict()["expected"] == "kept"
    with pytest.raises(package.ConfigError, match=r"program:3:1: `nonsense` is not a statement"):
        package.litmus(BAD)
    with pytest.raises(package.ConfigError, match=r"none\.litmus: No such file"):
        package.litmus("none.litmus")


def test_programs_that_come_with_graven_have_names(real, tmp_path):
    done = real("litmus", "silo/undo-order", "--no-store")
    assert done.returncode == 0, done.stderr
    assert "silo/undo-order.litmus" in done.stdout
    [listed] = [
        item
        for item in documents(real("list", "litmus", "--format", "json").stdout)
        if item["name"] == "silo/undo-order"
    ]
    assert listed["designs"] == ["silo"]
    assert listed["title"].startswith("Silo §III-F and §III-G: a word overflows")
    assert "undo-order" in real("list", "litmus").stdout
    assert package.litmus("silo/undo-order", store=None).as_expected
    # What is in the current folder is meant first.
    (tmp_path / "silo").mkdir()
    done = real("litmus", "silo")
    assert done.returncode == 2
    assert "no *.litmus in this folder" in done.stderr
    assert "No such file" in real("litmus", "silo/none-such").stderr
    assert "No such file" in real("litmus", "../silo").stderr


def test_every_program_that_comes_with_graven_has_a_title(real):
    listed = documents(real("list", "litmus", "--format", "json").stdout)
    assert len(listed) >= 98
    assert all(item["title"] for item in listed)
