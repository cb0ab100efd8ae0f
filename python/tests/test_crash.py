"""`graven crash`: verdicts, files, exit codes, and campaigns that go on.

Campaigns of schedules that add up, go on or are refused run on the real engine, which has their
scheduler; its own tests are in `crates/lab/src/campaign`.
"""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys

import pytest
from conftest import ENVIRONMENT, HERE, await_file, documents
from test_compare import start

import graven as package
from graven.laboratory.state_file import sealed

RUN = ("crash", "--design", "silo", "--workload", "btree")
SCHEDULES = ("adversary", "--design", "silo", "--schedules", "1000")


@pytest.fixture
def graven(quick):
    return quick


def reports(done):
    assert done.stdout, done.stderr
    return documents(done.stdout)


def timeless(text):
    """A report without the host's time."""
    return [{k: v for k, v in item.items() if k != "seconds"} for item in documents(text)]


def test_a_design_that_keeps_its_promise(graven, tmp_path):
    done = graven(*RUN, "--no-store")
    assert done.returncode == 0, done.stderr
    assert "kept" in done.stdout
    assert "silo: this campaign says nothing about: id-wrap, overflow." in done.stdout
    assert "power failures in" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_by_default_every_sound_design_runs_every_micro_workload(graven):
    found = reports(graven("crash", "--format", "json"))
    assert {item["design"] for item in found} == {"base", "fwb", "lad", "silo", "hoop"}
    assert len({item["workload"] for item in found}) == 5
    assert len(found) == 25


def test_a_violation_of_a_sound_design_is_told_and_kept(graven, tmp_path):
    done = graven(*RUN, FAKE_CONVICT="silo")
    assert done.returncode == 1
    for text in ("VIOLATED", "word 0x1000 holds 0x2", "torn 0x3", "A: 0x2 -> 0x0", "4 events are"):
        assert text in done.stdout
    file = "graven-results/silo-btree.litmus"
    assert f"Replay: graven litmus {file}\n" in done.stdout
    assert (tmp_path / file).read_text().startswith("graven litmus 1\n")


def test_a_violation_of_an_unsafe_design_is_no_failure(graven):
    done = graven("crash", "--design", "ideal", "--workload", "array")
    assert done.returncode == 0
    assert "ideal †" in done.stdout
    assert "VIOLATED" in done.stdout


@pytest.mark.parametrize(("mutant", "code"), [("no-tuple", 0), ("harmless", 1)])
def test_a_mutant_must_be_violated(graven, tmp_path, mutant, code):
    done = graven(*RUN, "--mutant", mutant)
    assert done.returncode == code
    assert ("SURVIVED" in done.stdout) is (code == 1)
    assert (tmp_path / f"graven-results/silo-{mutant}-btree.litmus").exists() is (code == 0)


def test_a_design_that_does_not_go_on_is_refused(graven):
    done = graven(*RUN, FAKE_REFUSE="silo")
    assert done.returncode == 2
    assert "silo on btree refused the run: a transaction does not fit the log" in done.stdout


def test_the_engine_failing_is_a_failure(graven):
    done = graven(*RUN, "--workload", "hash", FAKE_FAIL="silo")
    assert done.returncode == 1
    assert "silo on hash: cycle 1234" in done.stderr
    assert "Traceback" not in done.stderr


def test_json_is_a_list_of_reports(graven, tmp_path):
    done = graven(*RUN, "--workload", "hash", "--format", "json", FAKE_CONVICT="silo")
    found = reports(done)
    assert [(item["design"], item["workload"]) for item in found] == [
        ("silo", "btree"),
        ("silo", "hash"),
    ]
    first = found[0]
    assert list(first)[:2] == ["design", "workload"]
    assert list(first)[-1] == "seconds"
    assert (first["crash_points"], first["recoveries"], first["threads"]) == (3000, 6000, 8)
    assert first["covered"] == {"steal": 3000, "id-wrap": 0, "overflow": 0}
    assert first["not_covered"] == ["id-wrap", "overflow"]
    assert first["shares"]["in_flight"] == 4
    [violation] = first["violations"]
    assert violation["timeline"][1] == {
        "cycle": None,
        "who": "verdict",
        "what": "word A holds 0x2",
    }
    assert sorted(path.name for path in (tmp_path / "graven-results").iterdir()) == [
        "silo-btree.litmus",
        "silo-hash.litmus",
        "store",
    ]


def test_sampling_is_said_and_thins_out_the_other_forms(graven):
    done = graven(*RUN, "--sample", "10")
    assert "Sampled: of 10 crash points, power failed at one." in done.stdout
    assert reports(graven(*RUN, "--sample", "10", "--format", "json"))[0]["every"] == 10


@pytest.mark.parametrize(
    ("failure_modes", "shares"),
    [
        ("none", (0, 0, 0, 0)),
        ("all", (1, 4, 256, 65536)),
        ("torn", (1, 0, 0, 0)),
        ("torn=3,recovery=16,structures", (3, 0, 16, 65536)),
    ],
)
def test_forms_have_shares(graven, failure_modes, shares):
    [found] = reports(
        graven(*RUN, "--failure-modes", failure_modes, "--recovery-depth", "5", "--format", "json")
    )
    given = found["shares"]
    assert (given["torn"], given["in_flight"], given["recovery"], given["structures"]) == shares
    assert given["recovery_depth"] == 5


def test_lives_are_of_runs_and_said_in_their_reports(graven):
    for given, lives in (((), 1), (("--lives", "3"), 3), (("--lives", "0"), 0)):
        [found] = reports(graven(*RUN, *given, "--format", "json"))
        assert found["lives"] == lives
    assert "0<=x<=8" in graven(*RUN, "--lives", "9").stderr
    done = graven("adversary", "--lives", "2")
    assert done.returncode == 2
    assert "No such option '--lives'" in done.stderr


def test_the_replay_may_go_elsewhere(graven, tmp_path):
    done = graven(*RUN, "--no-store", "--replay", "mine.litmus", FAKE_CONVICT="silo")
    assert "graven litmus mine.litmus" in done.stdout
    assert (tmp_path / "mine.litmus").exists()
    assert not (tmp_path / "graven-results").exists()


def test_a_replay_that_cannot_be_written_keeps_what_was_found(graven, tmp_path):
    (tmp_path / "graven-results").write_text("a file")
    done = graven(*RUN, "--store", "elsewhere", FAKE_CONVICT="silo")
    assert done.returncode == 1
    assert "word A holds 0x2" in done.stdout
    assert "cannot write into graven-results" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--design", "nope"], "unknown design `nope`; known are ideal, base"),
        (["--workload", "nope"], "unknown workload `nope`"),
        (["--machine", "nope"], "unknown machine `nope`"),
        (["--set", "pm.nope=1"], "--set: unknown key `pm.nope`"),
        (["--mutant", "no-tuple"], "--mutant no-tuple is of one design"),
        (["--design", "base", "--mutant", "no-tuple"], "unknown mutant `no-tuple`"),
        (
            ["--failure-modes", "torn,half"],
            "`half` is no failure mode; allowed are torn, in-flight",
        ),
        (["--failure-modes", "torn=0"], "`torn=0` is no failure mode"),
        (["--replay", "x.litmus"], "--replay is for one design and one workload"),
        (["--design", "silo", "--workload", "hash", "--replay", "no/x"], "cannot write into no"),
        (["--schedules", "5"], "No such option '--schedules'"),
        (
            ["--adversary", "--design", "silo", "--seeds", "5"],
            "a command of its own: graven adversary --design silo --schedules 5",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(graven, tmp_path, arguments, message):
    _refused(graven("crash", *arguments, FAKE_SECONDS="60"), tmp_path, message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--design", "nope"], "unknown design `nope`"),
        (["--workload", "hash"], "No such option '--workload'"),
        (["--schedules", "0"], "--schedules"),
        (["--set", "pm.nope=1"], "unknown key `pm.nope`"),
        (["--mutant", "no-tuple"], "--mutant no-tuple is of one design"),
        (["--replay", "x.litmus"], "--replay is for one design"),
    ],
)
def test_bad_input_of_the_adversary_is_too(graven, tmp_path, arguments, message):
    _refused(graven("adversary", *arguments, FAKE_SECONDS="60"), tmp_path, message)


def _refused(done, tmp_path, message):
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_schedules(graven, tmp_path):
    done = graven("adversary", "--design", "silo,ideal", "--schedules", "600")
    assert done.returncode == 0, done.stderr
    for text in ("schedules", "600", "kept", "VIOLATED", "seed 1, crash point 2", "steal"):
        assert text in done.stdout
    assert (tmp_path / "graven-results" / "ideal-adversary.litmus").exists()


def test_a_chunk_that_fails_is_a_failure_and_the_rest_is_kept(graven):
    done = graven("adversary", "--design", "lad,silo", "--schedules", "500", FAKE_FAIL="lad")
    assert done.returncode == 1
    assert "lad: cycle 1234" in done.stderr
    assert "silo" in done.stdout


REAL = ("adversary", "--design", "osp,silo-literal", "--schedules", "600")
"""A sound design and one that is violated."""


@pytest.mark.engine
def test_schedules_are_added_up_the_same_on_any_number_of_threads(real):
    texts = [
        real(*REAL, "--first-seed", "8", "--jobs", jobs, "--format", "json").stdout
        for jobs in ("1", "3")
    ]
    assert timeless(texts[0]) == timeless(texts[1])
    sound, literal = documents(texts[0])
    assert list(sound)[:2] == ["design", "workload"]
    assert list(sound)[-1] == "seconds"
    assert (sound["workload"], sound["violations"]) == ("adversary", [])
    assert (sound["first_seed"], sound["seeds"], sound["next_seed"]) == (8, 600, 608)
    [violation] = literal["violations"]
    assert literal["next_seed"] == violation["seed"] + 1


@pytest.mark.engine
def test_a_campaign_goes_on_where_it_was_interrupted(real, tmp_path):
    seeds = ("adversary", "--design", "osp,silo-literal", "--schedules", "2000")
    arguments = (*seeds, "--state", "deep/state.json", "--format", "json")
    # It is saved as soon as there is anything, which is long before its end.
    script = "from graven.cli import crash, main; crash.SAVE_SECONDS = 0.0; main()"
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments, "--jobs", "1"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        await_file(tmp_path / "deep" / "state.json")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "of 4,000 schedules were done; the same command goes on" in stderr
    part = documents(stdout)[0]
    assert 1 < part["next_seed"] < 2001
    assert part["next_seed"] % 250 == 1

    done = real(*arguments)
    assert done.returncode == 0, done.stderr
    assert "of 4,000 schedules were done\n" in done.stderr
    whole = real(*seeds, "--format", "json")
    assert timeless(done.stdout) == timeless(whole.stdout)

    again = real(*arguments)
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert "4,000 of 4,000 schedules were done" in again.stderr


@pytest.mark.engine
def test_another_state_is_refused(real, tmp_path):
    arguments = (*REAL, "--state", "state.json")
    assert real(*arguments).returncode == 0
    state = tmp_path / "state.json"
    whole = json.loads(state.read_text())["state"]
    assert list(whole) == ["format", "version", "arguments", "reports"]
    for text, message in (
        (sealed(whole | {"format": 0}), "it has format 0"),
        (sealed(whole | {"version": "0.0"}), "it is of Graven 0.0, this is 0.1"),
        (sealed(whole | {"arguments": None}), "it is not the state of a campaign"),
        (sealed(whole | {"reports": 5}), "it is not the state of a campaign"),
        ("{", "it is no JSON document"),
        (
            state.read_text().replace('"crash_points": ', '"crash_points": 1', 1),
            "it was changed since",
        ),
    ):
        state.write_text(text)
        done = real(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"--state: state.json: {message}" in done.stderr
        assert "; give what it was begun with, or another file" in done.stderr
        assert state.read_text() == text
    state.write_text(sealed(whole))
    done = real("adversary", "--design", "osp", *REAL[3:], "--state", "state.json",
                "--set", "pm.banks=2")  # fmt: skip
    assert done.returncode == 2
    message = "--design was osp,silo-literal, is osp; --set was not given, is pm.banks=2"
    assert message in done.stderr
    state.write_bytes(b"\xff")
    assert "--state: state.json: it is not UTF-8 text" in real(*arguments).stderr


def test_an_interrupt_keeps_the_designs_that_have_finished(tmp_path):
    slow = {"FAKE_SECONDS": "600", "FAKE_SLOW": "silo", "FAKE_STARTED": str(tmp_path)}
    arguments = ("--design", "base,silo", "--schedules", "600", "--format", "json")
    process = start(tmp_path, "adversary", *arguments, **slow)
    await_file(tmp_path / "silo-1")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert [item["design"] for item in documents(stdout)] == ["base"]
    assert "interrupted: 600 of 1,200 schedules were done; the same command" in stderr


def test_an_interrupt_keeps_the_runs_that_have_finished(tmp_path):
    slow = {"FAKE_SECONDS": "600", "FAKE_SLOW": "silo", "FAKE_STARTED": str(tmp_path)}
    arguments = ("--design", "base,silo", "--workload", "array", "--format", "json", "--jobs", "1")
    process = start(tmp_path, "crash", *arguments, **slow)
    await_file(tmp_path / "silo-array")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert [item["design"] for item in documents(stdout)] == ["base"]
    assert "interrupted: 1 of 2 runs had finished" in stderr


def test_progress_with_rate_and_time_left_on_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, HERE / "fake_graven.py", *SCHEDULES, "--jobs", "1"],
        cwd=tmp_path,
        env={**ENVIRONMENT, "FAKE_SECONDS": "1", "TERM": "xterm", "COLUMNS": "150"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                chunk = os.read(ours, 4096)
            except OSError:
                break
            if not chunk:
                break
            shown += chunk
    assert process.returncode == 0
    assert b"of 1000 schedules" in shown
    assert b"power failures/s, about" in shown


def test_from_python():
    report = package.crash("ideal", "array", transactions=10, every=2, pm__write_ns=5)
    assert report.verdict == "violated"
    assert (report.crash_points, report.every, report.settings) == (30, 2, {"pm.write_ns": "5"})
    assert report.violations[0].timeline[0].who == "thread 0"
    assert report.to_dict()["violations"][0]["left_out"] == 4
    found = package.adversary("silo", schedules=600, jobs=2)
    assert (found.verdict, found.schedules) == ("kept", 600)
    with pytest.raises(package.ConfigError, match="unknown mutant"):
        package.adversary("silo", schedules=10, mutant="nope")
    with pytest.raises(package.ConfigError, match="schedules: 0"):
        package.adversary("silo", schedules=0)


def test_a_failure_raises(monkeypatch):
    monkeypatch.setenv("FAKE_FAIL", "silo")
    with pytest.raises(package.SimulationError, match="silo on array: cycle 1234"):
        package.crash("silo", "array")


BLOCKS = """
import dataclasses, json, sys
from graven.laboratory import adversary
from graven.laboratory.adversary import AdversaryCampaign, AdversaryRequest, Blocks, Schedules

adversary.BLOCK = 25
for design, mutant, seeds, first in (("silo", None, 90, 7), ("silo", "no-tuple", 60, 201)):
    plan = AdversaryRequest((design,), Schedules(seeds, first), mutant)
    [whole] = AdversaryCampaign.prepare(plan).run().reports
    [added] = Blocks.of(plan).run().reports
    assert dataclasses.replace(added, seconds=whole.seconds) == whole, (whole, added)
    assert len(whole.violations) == (mutant is not None)
"""


@pytest.mark.engine
@pytest.mark.usefixtures("real_engine")
def test_schedules_in_blocks_come_to_what_they_come_to_as_a_whole(environment):
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
