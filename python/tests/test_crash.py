"""`graven crash`: verdicts, files, exit codes, and campaigns that go on."""

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
from graven.schedules import AdversaryCampaign, AdversaryRequest

RUN = ("crash", "--design", "silo", "--workload", "btree")
SCHEDULES = ("crash", "--adversary", "--design", "silo", "--seeds", "1000")


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
    done = graven(*RUN)
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


def test_the_replay_may_go_elsewhere(graven, tmp_path):
    done = graven(*RUN, "--replay", "mine.litmus", FAKE_CONVICT="silo")
    assert "graven litmus mine.litmus" in done.stdout
    assert (tmp_path / "mine.litmus").exists()
    assert not (tmp_path / "graven-results").exists()


def test_a_replay_that_cannot_be_written_keeps_what_was_found(graven, tmp_path):
    (tmp_path / "graven-results").write_text("a file")
    done = graven(*RUN, FAKE_CONVICT="silo")
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
        (["--seeds", "5"], "--seeds needs --adversary"),
        (["--state", "x"], "--state needs --adversary"),
        (["--adversary", "--workload", "hash"], "--workload does not go with --adversary"),
        (["--adversary", "--machine", "cramped"], "--machine does not go with --adversary"),
        (["--adversary", "--threads", "2"], "--threads does not go with --adversary"),
        (["--adversary", "--transactions", "2"], "--transactions does not go with --adversary"),
        (["--adversary", "--sample", "2"], "--sample does not go with --adversary"),
        (["--adversary", "--seeds", "0"], "--seeds"),
        (["--adversary", "--set", "pm.nope=1"], "unknown key `pm.nope`"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(graven, tmp_path, arguments, message):
    done = graven("crash", *arguments, FAKE_SECONDS="60")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_schedules_are_added_up_the_same_on_any_number_of_threads(graven):
    texts = [
        graven(*SCHEDULES, "--first-seed", "8", "--jobs", jobs, "--format", "json").stdout
        for jobs in ("1", "3")
    ]
    assert timeless(texts[0]) == timeless(texts[1])
    [found] = documents(texts[0])
    assert found["workload"] == "adversary"
    assert found["crash_points"] == sum(seed % 7 + 1 for seed in range(8, 1008))
    assert (found["first_seed"], found["seeds"], found["next_seed"]) == (8, 1000, 1008)
    assert found["runs"] == 1000


def test_schedules_end_with_the_lowest_seeds_that_violate(graven):
    lying = {"FAKE_CONVICT": "silo", "FAKE_SEEDS": "260,300,740,990"}
    done = graven(*SCHEDULES, "--jobs", "4", "--format", "json", **lying)
    assert done.returncode == 1
    [found] = documents(done.stdout)
    assert [item["seed"] for item in found["violations"]] == [260]
    assert found["next_seed"] == 261
    more = graven(*SCHEDULES, "--jobs", "4", "--violations", "3", "--format", "json", **lying)
    [found] = documents(more.stdout)
    assert [item["seed"] for item in found["violations"]] == [260, 300, 740]


def test_a_table_of_schedules(graven, tmp_path):
    done = graven("crash", "--adversary", "--design", "silo,ideal", "--seeds", "600")
    assert done.returncode == 0, done.stderr
    for text in ("schedules", "600", "kept", "VIOLATED", "seed 1, crash point 2", "steal"):
        assert text in done.stdout
    assert (tmp_path / "graven-results" / "ideal-adversary.litmus").exists()


def test_a_campaign_goes_on_where_it_was_interrupted(graven, tmp_path):
    whole = graven(*SCHEDULES, "--format", "json")
    arguments = (*SCHEDULES, "--jobs", "1", "--state", "deep/state.json", "--format", "json")
    slow = {"FAKE_SECONDS": "600", "FAKE_SLOW": "silo-501", "FAKE_STARTED": str(tmp_path)}
    process = start(tmp_path, *arguments, **slow)
    await_file(tmp_path / "silo-501")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "interrupted: 500 of 1,000 schedules were done; the same command goes on" in stderr
    assert documents(stdout)[0]["next_seed"] == 501
    (tmp_path / "silo-501").unlink()

    done = graven(*arguments, FAKE_SECONDS="0.01", FAKE_STARTED=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "500 of 1,000 schedules were done" in done.stderr
    assert timeless(done.stdout) == timeless(whole.stdout)
    assert {path.name for path in tmp_path.glob("silo-*")} == {"silo-501", "silo-751"}

    again = graven(*arguments, FAKE_SECONDS="60")
    assert timeless(again.stdout) == timeless(whole.stdout)


def test_a_finished_campaign_with_a_violation_stays_finished(graven):
    arguments = (*SCHEDULES, "--state", "state.json", "--format", "json")
    first = graven(*arguments, FAKE_CONVICT="silo", FAKE_SEEDS="300")
    assert first.returncode == 1
    again = graven(*arguments, FAKE_SECONDS="60")
    assert (again.returncode, again.stdout) == (1, first.stdout)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 0}, "it has format 0"),
        ({"version": "0.9"}, "it is of Graven 0.9, this is 0.0-fake"),
        ({"arguments": None}, "it is not the state of a campaign"),
        ({"reports": 5}, "it is not the state of a campaign"),
    ],
)
def test_another_state_is_refused(graven, tmp_path, change, message):
    arguments = (*SCHEDULES, "--state", "state.json")
    assert graven(*arguments).returncode == 0
    state = tmp_path / "state.json"
    state.write_text(json.dumps(json.loads(state.read_text()) | change))
    before = state.read_text()
    done = graven(*arguments, FAKE_SECONDS="60")
    assert done.returncode == 2
    assert message in done.stderr
    assert state.read_text() == before


def test_a_state_of_other_arguments_is_refused_with_what_differs(graven, tmp_path):
    assert graven(*SCHEDULES, "--state", "state.json").returncode == 0
    other = ("crash", "--adversary", "--design", "silo,lad", "--seeds", "1000", "--state")
    done = graven(*other, "state.json", "--mutant", "x")
    assert "is of one design" in done.stderr
    done = graven(*other, "state.json", "--set", "pm.write_ns=5")
    assert done.returncode == 2
    assert "--design was silo, is silo,lad; --set was not given, is pm.write_ns=5" in done.stderr
    (tmp_path / "state.json").write_text("{")
    done = graven(*SCHEDULES, "--state", "state.json")
    assert done.returncode == 2
    assert "--state: cannot read state.json" in done.stderr


def test_a_chunk_that_fails_is_a_failure_and_the_rest_is_kept(graven):
    done = graven("crash", "--adversary", "--design", "lad,silo", "--seeds", "500", FAKE_FAIL="lad")
    assert done.returncode == 1
    assert "lad: cycle 1234" in done.stderr
    assert "silo" in done.stdout


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
        env={**ENVIRONMENT, "FAKE_SECONDS": "0.3", "TERM": "xterm", "COLUMNS": "150"},
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
    found = package.adversary("silo", seeds=600, jobs=2)
    assert (found.verdict, found.schedules) == ("kept", 600)
    with pytest.raises(package.ConfigError, match="unknown mutant"):
        package.adversary("silo", seeds=10, mutant="nope")
    with pytest.raises(package.ConfigError, match="seeds: 0"):
        package.adversary("silo", seeds=0)


def test_a_failure_raises(monkeypatch):
    monkeypatch.setenv("FAKE_FAIL", "silo")
    with pytest.raises(package.SimulationError, match="silo on array: cycle 1234"):
        package.crash("silo", "array")


def test_a_state_is_read_back_as_it_was_written():
    plan = AdversaryRequest(("ideal", "silo"), 600)
    campaign = AdversaryCampaign.prepare(plan)
    campaign.run(workers=2)
    state = json.loads(json.dumps(campaign.state()))
    again = AdversaryCampaign.prepare(plan, state)
    assert again.reports == campaign.reports
    assert again.schedules == again.total == 1200
