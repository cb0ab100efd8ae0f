"""Litmus programs for persistency models, and the list of models."""

from __future__ import annotations

import pytest
from conftest import documents

import graven as package

PROGRAM = """graven litmus 1
title "a write-back without a fence"
model x86-adr
x = 0
y = 0
thread
  x = 1
  clwb x
  y = 1
allows: y = 1, x = 0
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "mine.litmus"
    path.write_text(PROGRAM)
    return path


def test_an_image_that_is_allowed_as_the_program_says(real, program, monkeypatch):
    monkeypatch.chdir(program.parent)
    done = real("litmus", program.name, "--no-store")
    assert done.returncode == 0, done.stderr
    for text in ("mine.litmus", "y = 1, x = 0", "x86-adr", "allowed", "1 answer of 1 program, all"):
        assert text in done.stdout


def test_another_answer_than_the_program_says_is_exit_code_1(real, program):
    program.write_text(PROGRAM.replace("allows", "forbids"))
    done = real("litmus", str(program), "--no-store")
    assert done.returncode == 1
    assert "NO: must be forbidden" in done.stdout
    assert "thread 0: y = 1\n  power fails, and leaves x = 0, y = 1" in done.stdout
    assert "power fails" not in real("litmus", str(program), "--no-timeline", "--no-store").stdout
    assert "1 not as expected" in done.stdout


def test_other_models_may_be_asked(real, program):
    done = real("litmus", str(program), "--model", "x86-eadr", "--format", "json", "--no-store")
    assert done.returncode == 0, done.stderr
    [report] = documents(done.stdout)
    [answer] = report["answers"]
    assert answer == {
        "model": "x86-eadr",
        "image": "y = 1, x = 0",
        "answer": "forbidden",
        "order": [],
        "expected": None,
        "as_expected": True,
    }


def test_what_does_not_fit_is_refused(real, program):
    def refused(*arguments: str) -> str:
        done = real("litmus", *arguments)
        assert done.returncode == 2
        return done.stderr

    assert "arm-pop has other instructions than x86-adr" in refused(
        str(program), "--model", "arm-pop"
    )
    unknown = refused(str(program), "--model", "arm")
    assert 'there is no persistency model "arm"; allowed: x86-adr, x86-adr-amd' in unknown
    assert "silo is a design" in refused(str(program), "--design", "silo")
    assert "x86-adr is a persistency model" in refused("any/aba", "--model", "x86-adr")
    program.write_text(PROGRAM.replace("clwb x", "dsb"))
    assert "mine.litmus:8:3: `dsb` is an instruction of Arm" in refused(str(program))


def test_from_python(program):
    report = package.litmus(program)
    assert (report.results, report.as_expected) == ((), True)
    [answer] = report.answers
    assert (answer.model, answer.answer, answer.expected) == ("x86-adr", "allowed", "allowed")
    assert list(report.to_dict()) == ["file", "title", "answers"]


def test_models_are_listed(real):
    [listed] = [
        item
        for item in documents(real("list", "models", "--format", "json").stdout)
        if item["name"] == "arm-pop"
    ]
    assert [rule["name"] for rule in listed["rules"]][:2] == ["coherence", "cleans of a line"]
    assert "loads first" in real("list", "models", "--verbose").stdout
