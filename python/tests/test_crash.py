"""`graven crash`: verdicts, files, exit codes, and campaigns that go on.

The scheduler of campaigns is the engine's; its own tests are in `crates/lab/src/campaign`.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import engine_hook
import pytest
from conftest import ENVIRONMENT, await_file, documents, start, stopped, waits

import graven as package
from graven import _engine
from graven.laboratory import adversary
from graven.laboratory.adversary import AdversaryCampaign, AdversaryRequest, Blocks, Schedules
from graven.laboratory.state_file import sealed
from graven.running import progress

RUN = ("crash", "--design", "silo", "--workload", "btree", "--transactions", "20")
CRAMPED = ("--machine", "cramped", "--threads", "2")
LITERAL = (
    "crash",
    "--design",
    "silo-literal",
    "--workload",
    "btree",
    "--transactions",
    "30",
    *CRAMPED,
)
MUTANT = "battery-too-small"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def convicted(monkeypatch):
    """Reports call every design sound and safe, and so what is violated is a finding."""
    run = engine_hook.Campaign.run

    def convict(task):
        text = run(task)
        return text.replace('"sound":false', '"sound":true').replace('"safe":false', '"safe":true')

    monkeypatch.setattr(engine_hook.Campaign, "run", convict)


def reports(done):
    assert done.stdout, done.stderr
    return documents(done.stdout)


def timeless(text):
    """A report without the host's time."""
    return [{k: v for k, v in item.items() if k != "seconds"} for item in documents(text)]


def test_a_design_that_keeps_its_promise(quick, tmp_path):
    done = quick(*RUN, "--no-store")
    assert done.returncode == 0, done.stderr
    assert "kept" in done.stdout
    assert "silo: this campaign says nothing about: shared-line, hand-over" in done.stdout
    assert "power failures in" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_by_default_every_sound_design_runs_every_micro_workload(quick):
    done = quick("crash", FAULT_FAIL="*")
    sound = [d.name for d in package.catalogue().designs if d.safe and d.guarantee != "none"]
    micro = package.catalogue().workload_groups()["micro"]
    assert set(re.findall(r"error: (\S+) on (\S+): cycle 1234", done.stderr)) == {
        (design, workload) for design in sound for workload in micro
    }


def test_designs_without_room_are_left_out_unless_they_are_named(quick):
    cramped = ("--machine", "cramped", "--set", "pm.log_region_bytes=256KB")
    run = ("crash", "--workload", "array", "--transactions", "2", *cramped, "--format", "json")
    done = quick(*run)
    assert done.returncode == 0, done.stderr
    left = re.findall(r"left out: (\S+) on array: .*does not fit", done.stderr)
    assert "opt-undo" in left
    there = {report["design"] for report in reports(done)}
    assert "base" in there
    assert there.isdisjoint(left)
    done = quick(*run, "--designs", "base,opt-undo")
    assert done.returncode == 2
    assert "opt-undo on array" in done.stderr
    assert not done.stdout


def test_designs_that_settings_do_not_fit_are_left_out_of_schedules_unless_they_are_named(real):
    small = ("--set", "pm.log_region_bytes=128 KB")
    run = ("adversary", "--schedules", "2", *small, "--format", "json")
    done = real(*run)
    assert done.returncode == 0, done.stderr
    left = re.findall(r"left out: (\S+): --set: .*does not fit", done.stderr)
    assert "osp" in left
    there = {report["design"] for report in reports(done)}
    assert "silo" in there
    assert there.isdisjoint(left)
    again = real(*run)
    assert "2 were done" not in again.stderr
    assert timeless(again.stdout) == timeless(done.stdout)
    done = real(*run, "--design", "silo,osp")
    assert done.returncode == 2
    assert "error: osp: --set: `pm.log_region_bytes`" in done.stderr
    assert not done.stdout
    done = real("adversary", "--set", "pm.log_region_bytes=0")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("convicted")
def test_a_violation_of_a_sound_design_is_told_and_kept(quick, tmp_path):
    done = quick(*LITERAL)
    assert done.returncode == 1
    for text in ("VIOLATED", "fails (crash point ", "verdict"):
        assert text in done.stdout
    file = "graven-results/silo-literal-btree.litmus"
    assert f"Replay: graven litmus {file}\n" in done.stdout
    assert (tmp_path / file).read_text().startswith("graven litmus 1\n")


@pytest.mark.parametrize("form", ["table", "json"])
def test_a_violation_is_said_on_standard_error_as_it_is_found(real, form):
    more = ("--jobs", "1", "--format", form)
    done = real("adversary", "--design", "silo-literal,osp-literal", "--schedules", "300", *more)
    said = (
        r"graven: (\S+) under the adversary violates its guarantee: .* \(seed (\d+), crash point "
    )
    told = dict(re.findall(said, done.stderr))
    assert set(told) == {"silo-literal", "osp-literal"}
    if form == "json":
        first = {item["design"]: item["violations"][0]["seed"] for item in reports(done)}
        assert told == {design: str(seed) for design, seed in first.items()}
    done = real(*LITERAL, "--workload", "queue", "--mutant", "commit-not-marked", *more)
    for workload in ("btree", "queue"):
        said = (
            f"graven: silo-literal on {workload} ×2 with commit-not-marked violates its guarantee: "
        )
        assert done.stderr.count(said) == 1
    if form == "json":
        assert len(reports(done)) == 2


def test_observers_are_told_what_was_found():
    found = []
    package.crash(
        "silo-literal",
        "btree",
        machine="cramped",
        transactions=30,
        observe=lambda snapshot: found.extend(snapshot.found),
    )
    [line] = found
    assert re.match(r"silo-literal on btree violates its guarantee: .* \(crash point \d+, ", line)


def test_minimising_has_a_limit_and_may_be_left_out(real, tmp_path):
    limit = "Minimising has reached its limit after 10 runs and "
    as_found = "The program is as it was found: it is not minimised."
    for run in (LITERAL, ("adversary", "--design", "silo-literal", "--schedules", "100")):
        kind = "adversary" if run[0] == "adversary" else "btree"
        file = tmp_path / f"graven-results/silo-literal-{kind}.litmus"
        lines = {}
        for given, said in (((), None), (("10",), limit), (("0",), as_found)):
            more = ("--minimise", *given) if given else ()
            done = real(*run, *more)
            assert done.returncode == 0, done.stderr
            assert said is None or said in " ".join(done.stdout.split())
            assert ("inimis" in done.stdout) is (said is not None)
            lines[given] = len(file.read_text().splitlines())
            again = real("litmus", str(file))
            assert again.returncode == 0, again.stdout
        assert lines[()] < lines["10",] < lines["0",]
    assert "0<=x<=1000000" in real(*LITERAL, "--minimise", "-1").stderr


def test_minimising_has_a_limit_from_python_too():
    drawn = package.adversary("silo-literal", schedules=10, minimise=0).violations[0]
    limited = package.adversary("silo-literal", schedules=10, minimise=10).violations[0]
    assert drawn.minimised is None
    assert (limited.minimised["ended"], limited.minimised["runs"]) == ("limit", 10)
    run = ("silo-literal", "btree")
    how = {"machine": "cramped", "transactions": 30}
    assert package.crash(*run, **how, minimise=0).violations[0].minimised is None
    assert package.crash(*run, **how).violations[0].minimised["ended"] == "least"
    with pytest.raises(package.ConfigError, match="minimise: -1"):
        package.crash(*run, minimise=-1)


def test_a_state_of_another_limit_is_refused(real, tmp_path):
    run = ("adversary", "--design", "silo-literal", "--schedules", "10", "--state", "state.json")
    assert real(*run).returncode == 0
    done = real(*run, "--minimise", "0")
    assert done.returncode == 2
    assert "--minimise was not given, is 0" in done.stderr
    del tmp_path


DOCUMENTED = re.compile(r"graven (?:crash|adversary|check) [^\n#`]*--mutant [^\n#`]*")
"""Commands of the documentation that must find a mutant; a comment may follow two spaces."""


def _documented():
    texts = [path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]]
    texts += [path.read_text() for path in Path(package.__file__).parent.glob("cli/*.py")]
    found = (re.split(r"\s{2,}", text)[0] for of in texts for text in DOCUMENTED.findall(of))
    return sorted({command for command in found if not re.search("[A-Z]{4}", command)})


@pytest.mark.parametrize("command", _documented())
def test_mutants_of_the_documentation_fall_at_once(real, command):
    done = real(*shlex.split(command)[1:], "--format", "json", "--no-store")
    assert done.returncode == (1 if " check " in command else 0), done.stderr
    [found] = reports(done)
    if " check " in command:
        assert found["violation"] is not None
        assert found["programs_done"] <= 100
    else:
        assert found["violations"]
        assert found["recoveries"] <= 100_000
        assert found.get("next_seed", 0) <= 50


def test_a_violation_of_an_unsafe_design_is_no_failure(quick):
    done = quick("crash", "--design", "ideal", "--workload", "array")
    assert done.returncode == 0
    assert "ideal †" in done.stdout
    assert "VIOLATED" in done.stdout


@pytest.mark.parametrize(("more", "workload", "code"), [(CRAMPED, "queue", 0), ((), "btree", 1)])
def test_a_mutant_must_be_violated(quick, tmp_path, more, workload, code):
    run = ("crash", "--design", "silo", "--workload", workload, "--transactions", "200")
    done = quick(*run, "--mutant", MUTANT, *more)
    assert done.returncode == code
    assert ("SURVIVED" in done.stdout) is (code == 1)
    kept = tmp_path / f"graven-results/silo-{MUTANT}-{workload}.litmus"
    assert kept.exists() is (code == 0)


def test_a_design_that_does_not_go_on_is_refused(quick):
    small = ("--set", "pm.log_region_bytes=4 KB")
    done = quick("crash", "--design", "fwb", *RUN[3:5], "--transactions", "200", *small)
    assert done.returncode == 2
    assert "fwb on btree refused the run: the log of 126 slots is full" in done.stdout


def test_the_engine_failing_is_a_failure(quick):
    done = quick(*RUN, "--workload", "hash", FAULT_FAIL="silo")
    assert done.returncode == 1
    assert "silo on hash: cycle 1234" in done.stderr
    assert "Traceback" not in done.stderr


def test_json_is_a_list_of_reports(quick, tmp_path):
    done = quick(*LITERAL, "--workload", "hash", "--format", "json")
    found = reports(done)
    assert [(item["design"], item["workload"]) for item in found] == [
        ("silo-literal", "btree"),
        ("silo-literal", "hash"),
    ]
    first = found[0]
    assert list(first)[:2] == ["design", "workload"]
    assert list(first)[-1] == "seconds"
    assert first["threads"] == 2
    assert first["recoveries"] > first["crash_points"] > 0
    assert first["not_covered"] == [name for name, times in first["covered"].items() if not times]
    assert first["shares"]["in_flight"] == 4
    [violation] = first["violations"]
    last = violation["timeline"][-1]
    assert (last["cycle"], last["who"]) == (None, "verdict")
    assert sorted(path.name for path in (tmp_path / "graven-results").iterdir()) == [
        *(f"silo-literal-{item['workload']}.litmus" for item in found if item["violations"]),
        "store",
    ]


def test_sampling_is_said_and_thins_out_the_other_forms(quick):
    done = quick(*RUN, "--sample", "10")
    assert "Sampled: of 10 crash points, power failed at one." in done.stdout
    assert reports(quick(*RUN, "--sample", "10", "--format", "json"))[0]["every"] == 10


@pytest.mark.parametrize(
    ("failure_modes", "shares"),
    [
        ("none", (0, 0, 0, 0)),
        ("all", (1, 4, 256, 65536)),
        ("torn", (1, 0, 0, 0)),
        ("torn=3,recovery=16,structures", (3, 0, 16, 65536)),
    ],
)
def test_forms_have_shares(quick, failure_modes, shares):
    [found] = reports(
        quick(*RUN, "--failure-modes", failure_modes, "--recovery-depth", "5", "--format", "json")
    )
    given = found["shares"]
    assert (given["torn"], given["in_flight"], given["recovery"], given["structures"]) == shares
    assert given["recovery_depth"] == 5


def test_lives_are_of_runs_and_said_in_their_reports(quick):
    for given, lives in (((), 1), (("--lives", "3"), 3), (("--lives", "0"), 0)):
        [found] = reports(quick(*RUN, *given, "--format", "json"))
        assert found["lives"] == lives
    assert "0<=x<=8" in quick(*RUN, "--lives", "9").stderr
    done = quick("adversary", "--lives", "2")
    assert done.returncode == 2
    assert "No such option '--lives'" in done.stderr


def test_the_replay_may_go_elsewhere(quick, tmp_path):
    done = quick(*LITERAL, "--no-store", "--replay", "mine.litmus")
    assert "graven litmus mine.litmus" in done.stdout
    assert (tmp_path / "mine.litmus").exists()
    assert not (tmp_path / "graven-results").exists()


@pytest.mark.usefixtures("convicted")
def test_a_replay_that_cannot_be_written_keeps_what_was_found(quick, tmp_path):
    (tmp_path / "graven-results").write_text("a file")
    done = quick(*LITERAL, "--store", "elsewhere")
    assert done.returncode == 1
    assert "VIOLATED" in done.stdout
    assert "cannot write into graven-results" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--design", "nope"], "unknown design `nope`; known are ideal, base"),
        (["--workload", "nope"], "unknown workload `nope`"),
        (["--machine", "nope"], "unknown machine `nope`"),
        (["--set", "pm.nope=1"], "--set: unknown key `pm.nope`"),
        (["--mutant", MUTANT], f"--mutant {MUTANT} is of one design"),
        (["--design", "base", "--mutant", MUTANT], f"unknown mutant `{MUTANT}`"),
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
def test_bad_input_is_one_line_and_exit_code_2(quick, tmp_path, arguments, message):
    _refused(quick("crash", *arguments, FAULT_FAIL="*"), tmp_path, message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--design", "nope"], "unknown design `nope`"),
        (["--workload", "hash"], "No such option '--workload'"),
        (["--schedules", "0"], "--schedules"),
        (["--set", "pm.nope=1"], "unknown key `pm.nope`"),
        (["--mutant", MUTANT], f"--mutant {MUTANT} is of one design"),
        (["--replay", "x.litmus"], "--replay is for one design"),
    ],
)
def test_bad_input_of_the_adversary_is_too(quick, tmp_path, arguments, message):
    _refused(quick("adversary", *arguments, FAULT_FAIL="*"), tmp_path, message)


def _refused(done, tmp_path, message):
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_schedules(quick, tmp_path):
    done = quick("adversary", "--design", "osp,ideal", "--schedules", "20")
    assert done.returncode == 0, done.stderr
    for text in ("schedules", "20", "kept", "VIOLATED", "seed 1, crash point", "steal"):
        assert text in done.stdout
    assert (tmp_path / "graven-results" / "ideal-adversary.litmus").exists()


class Failing:
    """A campaign of schedules in which those of one design fail."""

    made = _engine.AdversaryCampaign

    def __init__(self, *arguments):
        self._campaign = self.made(*arguments)

    def __getattr__(self, name):
        return getattr(self._campaign, name)

    def wait(self, seconds):
        found = json.loads(self._campaign.wait(seconds))
        return json.dumps(found | {"failures": [{"design": "lad", "message": "cycle 1234"}]})


def test_a_chunk_that_fails_is_a_failure_and_the_rest_is_kept(quick, monkeypatch):
    monkeypatch.setattr(_engine, "AdversaryCampaign", Failing)
    done = quick("adversary", "--design", "lad,osp", "--schedules", "20")
    assert done.returncode == 1
    assert "lad: cycle 1234" in done.stderr
    assert "osp" in done.stdout


REAL = ("adversary", "--design", "undo-clwb,silo-literal", "--schedules", "300")
"""A sound design and one that is violated, in two parts each."""


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
    assert (sound["first_seed"], sound["seeds"], sound["next_seed"]) == (8, 300, 308)
    [violation] = literal["violations"]
    assert literal["next_seed"] == violation["seed"] + 1


def test_a_campaign_goes_on_where_it_was_interrupted(real, tmp_path):
    seeds = ("adversary", "--design", "undo-clwb,silo-literal", "--schedules", "500")
    arguments = (*seeds, "--state", "deep/state.json", "--format", "json")
    # It is saved as soon as there is anything, which is long before its end.
    script = "from graven.cli import adversary, main; adversary.SAVE_SECONDS = 0.0; main()"
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
    assert "of 1,000 schedules were done; the same command goes on" in stderr
    part = documents(stdout)[0]
    assert 1 < part["next_seed"] < 501
    assert part["next_seed"] % 250 == 1

    done = real(*arguments)
    assert done.returncode == 0, done.stderr
    assert "of 1,000 schedules were done\n" in done.stderr
    whole = real(*seeds, "--format", "json")
    assert timeless(done.stdout) == timeless(whole.stdout)

    again = real(*arguments)
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert "1,000 of 1,000 schedules were done" in again.stderr


def test_another_state_is_refused(real, tmp_path):
    arguments = (*REAL[:3], "--schedules", "20", "--state", "state.json")
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
    done = real("adversary", "--design", "osp", *arguments[3:], "--set", "pm.banks=2")
    assert done.returncode == 2
    message = "--design was undo-clwb,silo-literal, is osp; --set was not given, is pm.banks=2"
    assert message in done.stderr
    state.write_bytes(b"\xff")
    assert "--state: state.json: it is not UTF-8 text" in real(*arguments).stderr


def test_an_interrupt_keeps_the_runs_that_have_finished(tmp_path):
    arguments = ("crash", "--design", "base,silo", "--workload", "array", "--transactions", "10")
    process = start(tmp_path, *arguments, "--format", "json", "--jobs", "1", **waits(tmp_path))
    stdout, stderr = stopped(process, tmp_path / "silo-array", signal.SIGINT, 130)
    assert [item["design"] for item in documents(stdout)] == ["base"]
    assert "interrupted: 1 of 2 runs had finished" in stderr


def test_progress_with_rate_and_time_left_on_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "graven",
            "adversary",
            "--design",
            "hwl",
            *("--schedules", "400"),
            *("--jobs", "1"),
        ],
        cwd=tmp_path,
        env={**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "150"},
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
    assert b"of 400 schedules" in shown
    counts = [int(count) for count in re.findall(rb"hwl (\d+) of 400", shown)]
    assert any(count % 250 for count in counts), counts
    assert b"power failures/s, about" in shown


def test_progress_without_a_terminal_counts_the_schedules_of_each_design(monkeypatch, capsys):
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    plan = AdversaryRequest(("osp", "lad"), Schedules(120))
    with progress.Display("schedules") as display:
        AdversaryCampaign.prepare(plan).run(workers=2, observe=display)
    lines = capsys.readouterr().err.splitlines()
    assert all(re.match(r"graven: \d+ of 240 schedules, \d+%", line) for line in lines)
    told = [re.findall(r"(osp|lad) (\d+) of 120", line) for line in lines]
    assert {design for line in told for design, _ in line} == {"osp", "lad"}
    assert any(0 < int(count) < 120 for line in told for _, count in line)


def test_from_python():
    report = package.crash("ideal", "array", transactions=10, every=2, pm__write_ns=5)
    assert report.verdict == "violated"
    assert (report.every, report.settings) == (2, {"pm.write_ns": "5"})
    assert report.violations[0].timeline[-1].who == "verdict"
    assert report.to_dict()["violations"][0]["left_out"] == report.violations[0].left_out
    found = package.adversary("osp", schedules=20, jobs=2)
    assert (found.verdict, found.schedules) == ("kept", 20)
    with pytest.raises(package.ConfigError, match="unknown mutant"):
        package.adversary("silo", schedules=10, mutant="nope")
    with pytest.raises(package.ConfigError, match="schedules: 0"):
        package.adversary("silo", schedules=0)


def test_a_failure_raises(monkeypatch):
    monkeypatch.setenv("FAULT_FAIL", "silo")
    with pytest.raises(package.SimulationError, match="silo on array: cycle 1234"):
        package.crash("silo", "array")


@pytest.mark.parametrize(("design", "seeds", "first"), [("osp", 90, 7), ("silo-literal", 60, 1)])
def test_schedules_in_blocks_come_to_what_they_come_to_as_a_whole(
    monkeypatch, design, seeds, first
):
    monkeypatch.setattr(adversary, "BLOCK", 25)
    plan = AdversaryRequest((design,), Schedules(seeds, first))
    [whole] = AdversaryCampaign.prepare(plan).run().reports
    [added] = Blocks.of(plan).run().reports
    assert replace(added, seconds=whole.seconds) == whole
    assert len(whole.violations) == (design == "silo-literal")
