"""`graven litmus`: rows, timelines and exit codes."""

from __future__ import annotations

import signal

import pytest
from conftest import await_file, documents
from test_compare import start

import graven as package

GOOD = "graven litmus 1\ntitle x\ndesign silo\nviolate ideal\n"
WRONG = "graven litmus 1\ndesign ideal\n"
BAD = "graven litmus 1\ntitle x\nnonsense A\n"


@pytest.fixture
def graven(quick):
    return quick


@pytest.fixture
def programs(tmp_path):
    for name, text in {"a": GOOD, "b": GOOD, "wrong": WRONG}.items():
        (tmp_path / f"{name}.litmus").write_text(text)
    return tmp_path


def test_what_is_expected_is_exit_code_0(graven, programs):
    del programs
    done = graven("litmus", "a.litmus")
    assert done.returncode == 0, done.stderr
    for text in ("a.litmus", "silo", "kept", "ideal", "VIOLATED", "2 results of 1 program, all"):
        assert text in done.stdout
    assert "A: 0x2 -> 0x0" not in done.stdout


def test_what_is_not_expected_is_told_and_exit_code_1(graven, programs):
    del programs
    done = graven("litmus", "wrong.litmus")
    assert done.returncode == 1
    for text in ("NO: must be kept", "A: 0x2 -> 0x0", "1 not as expected"):
        assert text in done.stdout
    assert "A: 0x2" not in graven("litmus", "wrong.litmus", "--no-timeline").stdout
    assert "A: 0x2" in graven("litmus", "a.litmus", "--timeline").stdout


def test_designs_may_be_others(graven, programs):
    del programs
    done = graven("litmus", "a.litmus", "--design", "base", "--design", "lad", "--format", "json")
    [found] = documents(done.stdout)
    assert [item["design"] for item in found["results"]] == ["base", "lad"]
    assert "A: 0x2 -> 0x0" in graven("litmus", "a.litmus", "--design", "ideal").stdout


def test_a_folder_is_all_its_programs(graven, programs):
    (programs / "notes.txt").write_text("no program")
    (programs / "deeper").mkdir()
    (programs / "wrong.litmus").rename(programs / "deeper" / "wrong.litmus")
    done = graven("litmus", ".", "--format", "json")
    assert done.returncode == 1
    found = documents(done.stdout)
    assert [item["file"] for item in found] == ["a.litmus", "b.litmus", "deeper/wrong.litmus"]
    assert list(found[0]) == ["file", "title", "results"]
    result = found[0]["results"][1]
    assert (result["expected"], result["as_expected"]) == ("violated", True)
    assert result["violations"][0]["what"].startswith("word 0x1000")


def test_every_program_that_cannot_be_read_is_named(graven, programs):
    (programs / "bad.litmus").write_text("graven litmus 1\nnonsense A\n")
    (programs / "old.litmus").write_text("graven litmus 0\n")
    (programs / "empty").mkdir()
    done = graven(
        "litmus", "a.litmus", "bad.litmus", "none.litmus", "old.litmus", FAKE_SECONDS="60"
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "graven: error: bad.litmus:2:1: expected a statement, found `nonsense`",
        "graven: error: none.litmus: No such file or directory",
        "graven: error: old.litmus:1:1: expected `graven litmus 1`, found `graven litmus 0`",
    ]
    done = graven("litmus", "empty")
    assert done.returncode == 2
    assert "empty: there is no *.litmus in this folder" in done.stderr
    (programs / "latin.litmus").write_bytes(b"graven litmus 1\n# \xe9\n")
    assert "not UTF-8" in graven("litmus", "latin.litmus").stderr
    assert "unknown design `nope`" in graven("litmus", "a.litmus", "--design", "nope").stderr
    assert graven("litmus").returncode == 2


def test_an_interrupt(programs):
    slow = {"FAKE_SECONDS": "600", "FAKE_STARTED": str(programs)}
    process = start(programs, "litmus", "a.litmus", "--format", "json", **slow)
    await_file(programs / "litmus-program")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert documents(stdout) == []
    assert "interrupted: 0 of 1 programs had finished" in stderr


def test_from_python(programs):
    report = package.litmus(GOOD)
    assert (report.file, report.title, report.as_expected) == ("program", "a title", True)
    assert [result.verdict for result in report.results] == ["kept", "violated"]
    assert package.litmus(programs / "wrong.litmus").as_expected is False
    [result] = package.litmus(str(programs / "a.litmus"), design="base").results
    assert result.to_dict()["expected"] == "kept"
    with pytest.raises(package.ConfigError, match=r"program:3:1: expected a statement"):
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
    with pytest.raises(
        package.ConfigError, match=r"silo/undo-order\.litmus:3"
    ):  # the fake engine's
        package.litmus("silo/undo-order", store=None)
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
