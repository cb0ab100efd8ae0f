"""Checkers of captured programs: commands that judge what was recovered (`--verify`).

Bug class: a sound design is convicted since the checker was not there, was handed files that no run
could leave, or contradicts itself; or a violation that it finds shows too little to be looked into.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("tools")

DESIGNS = "base,silo,lad"
LOG = ("--set", "base.log_bytes_per_thread=1 MB")


@pytest.fixture(scope="session")
def captures(programs, environment, tmp_path_factory):
    """Gives the trace of a program in a mode, captured when it is first asked for."""
    folder = tmp_path_factory.mktemp("captures")

    def call(name, mode, *functions):
        trace = folder / f"{name}-{mode}.gvt"
        if not trace.exists():
            tx = [word for function in functions or ("tx",) for word in ("--tx", function)]
            what = ("--to", str(trace), "--pm-file", "*/pool", *tx)
            program = (str(programs(name)), str(folder / f"{name}-{mode}" / "pool"), mode)
            (folder / f"{name}-{mode}").mkdir()
            command = [sys.executable, "-m", "graven", "capture", *what, "--", *program]
            done = subprocess.run(
                command, env=environment, cwd=folder, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
        return str(trace)

    return call


@pytest.fixture
def ledger(captures, programs):
    """The trace of a program that is right, and its checker."""
    return captures("ledger", "40"), f"{programs('ledger')} {{image}} check"


@pytest.fixture
def script(tmp_path):
    """Writes a checker: `$n` is the count of the ledger in the first file."""

    def call(text, name="checker.sh"):
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\nn=$(od -An -tu8 -N8 "$1" | tr -d " ")\n{text}\n')
        path.chmod(0o755)
        return f"{path} {{image}}"

    return call


# Passes on the files that are good, with which a trial is made, and fails on others.
STRICT = "[ $n = 0 ] || [ $n = 40 ] || "


def crash(real, trace, checker, *more, design="silo", modes="structures=7"):
    where = ("crash", "--workload", trace, "--design", design, "--failure-modes", modes)
    return real(*where, "--verify", checker, *more)


def refused(real, trace, checker, *more):
    done = crash(real, trace, checker, *more)
    assert (done.returncode, done.stdout) == (2, ""), done.stdout + done.stderr
    return done.stderr


def found(real, trace, checker, *more):
    done = crash(real, trace, checker, "--format", "json", *more)
    assert done.returncode == 1, done.stdout + done.stderr
    [report] = json.loads(done.stdout)
    return report["violations"][0]


def test_sound_designs_keep_a_ledger_whose_checker_is_right(real, ledger):
    trace, checker = ledger
    done = real(
        "crash", "--workload", trace, "--design", DESIGNS, *LOG, "--verify", checker,
        "--format", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "there are no later lives (--lives 0)" in done.stderr
    for report in json.loads(done.stdout):
        assert (report["lives"], report["failure_modes"]["lives"]) == (0, 0)
        assert report["failure_modes"]["structures"] > 1


def test_later_lives_are_refused(real, ledger):
    said = refused(real, *ledger, "--lives", "1")
    assert "lives: 1 is not allowed with verify" in said
    assert "begins again with its first transaction" in said
    assert crash(real, *ledger, "--lives", "0").returncode == 0


def test_a_checker_that_is_not_there_is_refused(real, ledger, tmp_path):
    trace, _ = ledger
    said = refused(real, trace, "nosuchchecker {image}")
    assert "exit code 127 (it is not found)" in said
    assert "nosuchchecker: not found" in said
    plain = tmp_path / "plain"
    plain.write_text("")
    said = refused(real, trace, f"{plain} {{image}}")
    assert "exit code 126 (it cannot be executed)" in said
    assert "allowed: a command with {image}" in refused(real, trace, "true")
    assert not list(tmp_path.glob("graven-results/*.recovered"))


@pytest.mark.parametrize(
    ("wrong", "when"),
    [
        ("[ $n != 0 ]", "with which the trace begins"),
        ("[ $n != 40 ]", "in which power did not fail"),
    ],
)
def test_a_checker_that_fails_on_good_files_is_refused(real, ledger, script, wrong, when):
    said = refused(real, ledger[0], script(f'{wrong} || {{ echo "count $n is no good"; exit 3; }}'))
    assert when in said
    assert "ended with exit code 3: count" in said
    assert "is no good" in said


@pytest.mark.parametrize("mode", ["call", "write"])
def test_a_file_has_the_length_that_it_had(real, captures, programs, mode):
    trace = captures("growing", mode, "tx", "cut")
    checker = f"{programs('growing')} {{image}} check"
    for design in DESIGNS.split(","):
        done = crash(real, trace, checker, *(LOG if design == "base" else ()), design=design)
        assert done.returncode == 0, done.stdout + done.stderr


def test_threads_that_make_files_longer_at_a_time_do_not_race(real, captures, programs):
    trace = captures("appending", "own", "append")
    checker = f"{programs('appending')} {{image}} check"
    done = crash(real, trace, checker)
    assert done.returncode == 0, done.stdout + done.stderr


def test_threads_whose_order_is_another_in_the_run_are_told(real, captures, script):
    trace = captures("appending", "shared", "append")
    said = refused(real, trace, script("[ $n = 0 ]"))
    assert "the trace has 4 threads, which take turns" in said
    # Neither does a trial exclude that in a run they have left what the program would not.
    done = crash(real, trace, script("[ $n != 3 ]"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "The trace has 4 threads, which take turns" in done.stdout


def test_a_violation_shows_all_there_is(real, ledger, script, environment, tmp_path):
    checker = script(f'{STRICT} {{ echo "count $n"; echo no good >&2; echo >> "$1"; exit 3; }}')
    done = crash(real, ledger[0], checker)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ended with exit code 3: count" in done.stdout
    assert "no good" in done.stdout
    folder = tmp_path / "graven-results" / "silo-ledger-40.recovered"
    # As it was recovered: what the checker does to its files is not there.
    assert (folder / "pool").stat().st_size == 8192
    assert (folder / "checker.txt").read_text().endswith("no good\n")
    [command] = [line for line in done.stdout.splitlines() if line.startswith("  graven crash")]
    assert "--at" in command
    replay = folder / "replay.sh"
    assert command.strip() in replay.read_text()
    assert f"sh {replay.relative_to(tmp_path)}" in done.stdout
    # The command on the path is this one.
    place = tmp_path / "bin"
    place.mkdir()
    (place / "graven").write_text(f'#!/bin/sh\nexec {sys.executable} -m graven "$@"\n')
    (place / "graven").chmod(0o755)
    path = f"{place}:{os.environ['PATH']}"
    again = _run(["sh", str(replay)], PATH=path, PYTHONPATH=environment["PYTHONPATH"])
    assert again.returncode == 1, again.stdout + again.stderr
    said = next(
        line for line in done.stdout.splitlines() if "crash point" in line and "cycle" in line
    )
    assert said in again.stdout


def test_traces_of_the_same_name_keep_files_of_their_own(real, ledger, script, tmp_path):
    places = [tmp_path / folder / "ledger.gvt" for folder in ("mine", "theirs")]
    for place in places:
        place.parent.mkdir()
        shutil.copy(ledger[0], place)
    done = crash(real, ",".join(map(str, places)), script(f"{STRICT} exit 3"))
    assert done.returncode == 1, done.stdout + done.stderr
    for name, place in zip(["silo-ledger", "silo-ledger-2"], places, strict=True):
        folder = tmp_path / "graven-results" / f"{name}.recovered"
        assert (folder / "pool").stat().st_size == 8192
        assert f"--workload {place} " in (folder / "replay.sh").read_text()
        assert f"sh {(folder / 'replay.sh').relative_to(tmp_path)}" in done.stdout


def _run(command, **environment):
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_violation_has_a_timeline(real, ledger, script):
    violation = found(real, ledger[0], script(f"{STRICT} exit 1"))
    rows = [(row["who"], row["what"]) for row in violation["timeline"]]
    assert ("thread 0", "begins transaction 0") in rows
    assert any(what.startswith("fails (crash point") for who, what in rows if who == "power")
    assert rows[-1] == ("verdict", violation["what"])


def test_a_signal_is_named(real, ledger, script):
    violation = found(real, ledger[0], f"exec {script(f'{STRICT} kill -SEGV $$')}")
    assert "was ended by SIGSEGV: it said nothing" in violation["what"]


def test_a_checker_that_never_ends_is_killed_with_all_that_it_has_begun(real, ledger, script):
    checker = script(f"{STRICT} {{ sleep 987 & sleep 987; }}")
    violation = found(real, ledger[0], checker, "--verify-limit", "1")
    assert "had not ended after 1 s and was killed" in violation["what"]
    assert _run(["pgrep", "-f", "sleep 987"]).stdout == "" or not shutil.which("pgrep")
    said = refused(real, ledger[0], script("sleep 987"), "--verify-limit", "0.5")
    assert "had not ended after 0.5 s" in said


def test_a_checker_that_says_too_much_is_cut_short(real, ledger, script, tmp_path):
    loud = script(f"head -c 5000000 /dev/zero | tr '\\0' x; {STRICT} exit 1")
    violation = found(real, ledger[0], loud)
    assert len(violation["what"]) < 2500
    assert "more bytes)" in violation["what"]
    said = tmp_path / "graven-results" / "silo-ledger-40.recovered" / "checker.txt"
    assert said.stat().st_size == 1 << 20


def test_a_checker_that_contradicts_itself_is_not_believed(real, ledger, script, tmp_path):
    seen = tmp_path / "seen"
    done = crash(real, ledger[0], script(f"{STRICT} [ -e {seen} ] || {{ touch {seen}; exit 1; }}"))
    assert done.returncode == 1
    assert "passed when it was run once more on the same files" in done.stderr
    assert "VIOLATED" not in done.stdout
    assert "violates its guarantee" not in done.stderr


def test_a_checker_that_goes_away_convicts_nobody(real, ledger, script, tmp_path):
    inner = tmp_path / "inner.sh"
    inner.write_text("#!/bin/sh\n")
    inner.chmod(0o755)
    checker = script(f"[ $n = 40 ] && mv {inner} {inner}.gone; [ $n = 40 ] || exec {inner}")
    done = crash(real, ledger[0], checker)
    assert done.returncode == 1
    assert "exit code 127 (it is not found)" in done.stderr
    assert "VIOLATED" not in done.stdout
    assert "violates its guarantee" not in done.stderr


def test_a_checker_that_has_judged_nothing_is_told(real, ledger):
    done = crash(real, *ledger, modes="structures=100000")
    assert done.returncode == 0
    assert "silo-ledger-40: the checker has judged no recovered file" in done.stderr
    assert "judged no" not in crash(real, *ledger).stderr


def test_power_may_fail_at_one_point_only(real, ledger):
    trace, checker = ledger
    done = crash(real, trace, checker, "--at", "5", "--format", "json")
    [report] = json.loads(done.stdout)
    assert report["recoveries"] == report["failure_modes"]["structures"] == 1
    missing = crash(real, trace, checker, "--at", "1000000")
    assert missing.returncode == 1
    assert "there is no crash point 1000000: the run of silo has" in missing.stderr


def test_from_python_a_checker_is_tried_first_too(environment, ledger, script, tmp_path):
    trace, checker = ledger
    strict = script(f"{STRICT} exit 1")
    program = f"""
import graven
shares = graven.Shares(structures=7)
report = graven.crash("silo", {trace!r}, verify={checker!r}, shares=shares, store=None)
print(report.verdict, report.lives)
for more in ({{"verify": "nosuchchecker {{image}}"}}, {{"verify": {checker!r}, "lives": 1}},
             {{"verify": {checker!r}, "verify_seconds": 0}}):
    try:
        graven.crash("silo", {trace!r}, store=None, **more)
    except graven.ConfigError as error:
        print(error)
bad = graven.crash("silo", {trace!r}, verify={strict!r}, keep="kept", shares=shares, store=None)
[violation] = bad.violations
at = graven.crash("silo", {trace!r}, verify={strict!r}, at=violation.point, store=None)
print(at.violations == bad.violations, at.recoveries)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kept, missing, lives, seconds, same = done.stdout.splitlines()
    assert kept == "kept 0"
    assert "not found" in missing
    assert "lives: 1 is not allowed" in lives
    assert "verify_seconds: 0 is not allowed" in seconds
    assert same == "True 1"
    assert (tmp_path / "kept" / "pool").exists()
