"""`graven powerfail`: judges of each kind, limits, states, recoveries, input that is refused.

Bug class: a violation is told wrongly, a judge is asked wrongly or believed too much.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from campaigns.kinds import SOURCES

pytestmark = [pytest.mark.usefixtures("tools"), pytest.mark.checkout]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Gives a program of a kind, or its twin."""
    folder = tmp_path_factory.mktemp("programs")

    def compiled(source, *flags):
        path = folder / "".join((source, *flags))
        if not path.exists():
            command = ["cc", "-g", "-O1", "-pthread", *flags, "-o", path]
            subprocess.run([*command, SOURCES / f"{source}.c"], check=True)
        return path

    return compiled


@pytest.fixture
def trace(program, real, tmp_path):
    """Gives the trace of a program of a kind, or of its twin."""

    def captured(source, *flags):
        for before in tmp_path.glob("pool*"):
            before.unlink()
        to = tmp_path / f"{source}{''.join(flags)}.gvt"
        done = real(
            *("capture", "--only-pm", "--pm-file", "*/pool*", "--to", str(to), "--"),
            *(str(program(source, *flags)), "run", str(tmp_path / "pool")),
        )
        assert done.returncode == 0, done.stderr
        return to

    return captured


@pytest.fixture
def forgetful(trace, program):
    """A trace with a missing flush, and the command that checks it."""
    return str(trace("missing_flush")), f"{program('missing_flush')} check {{image}}"


def edges(done):
    return re.findall(r"^\d+\. (.*?)  \(", done.stdout, re.MULTILINE)


def test_a_violation_is_a_story(forgetful, real):
    trace, check = forgetful
    done = real("powerfail", trace, "--verify", check, "--timeline")
    assert done.returncode == 1, done.stderr
    assert edges(done) == [
        "what missing_flush.c:19 (append) stores is durable without what missing_flush.c:15 "
        "(append) stores"
    ]
    for said in (
        "missing: missing_flush.c:15 (append), thread 0: pool+0x40 = 0x64 (was 0x0)",
        "left: missing_flush.c:19 (append), thread 0: pool+0x0 = 0x1 (was 0x0)",
        "power fails behind missing_flush.c:20 (append)",
        "flush the line of missing_flush.c:15 (append) and execute a fence before",
        "with that change none fails so",
        "stores 0x1 (was 0x0) at pool+0x0  <- left",
        "all images that the model allows were judged",
        "model x86-adr, since the program executes clflushopt",
    ):
        assert said in done.stdout, said


def test_the_image_of_a_violation_is_kept_and_judged_again(forgetful, real, tmp_path):
    trace, check = forgetful
    kept = tmp_path / "kept"
    first = json.loads(
        real("powerfail", trace, "--verify", check, "--keep", str(kept), "--format", "json").stdout
    )
    program = check.split()[0]
    assert subprocess.run([program, "check", kept / "pool"], check=False).returncode == 1
    image = first["violations"][0]["image"]
    again = real("powerfail", trace, "--verify", check, "--only", image)
    assert (again.returncode, again.stdout.startswith(f"image {image}: refused: ")) == (1, True)
    whole = real("powerfail", trace, "--verify", check, "--only", image.partition(":")[0])
    assert (whole.returncode, whole.stdout) == (0, f"image {image.partition(':')[0]}: good\n")


def test_reports_have_the_violation(forgetful, real, tmp_path):
    trace, check = forgetful
    page, sarif = tmp_path / "page.html", tmp_path / "found.sarif"
    written = ("--report", str(page), "--sarif", str(sarif))
    done = real("powerfail", trace, "--verify", check, *written)
    assert done.returncode == 1, done.stderr
    assert "missing_flush.c:15 (append)" in page.read_text()
    result = json.loads(sarif.read_text())["runs"][0]["results"][0]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert (region, len(result["relatedLocations"])) == ({"startLine": 15}, 2)


def test_equal_seeds_give_equal_reports_on_any_number_of_workers(forgetful, real):
    trace, check = forgetful
    options = ("--images", "60", "--format", "json", "--seed", "3")
    one, two = (
        json.loads(real("powerfail", trace, "--verify", check, *options, "--jobs", jobs).stdout)
        for jobs in ("1", "2")
    )
    assert one == two
    assert (one["counts"]["images"], one["counts"]["end"]) == (60, "images")


def test_a_state_continues_without_judging_twice(forgetful, real, tmp_path):
    trace, check = forgetful
    log, state = tmp_path / "log", str(tmp_path / "state.json")
    checked = f"sh -c 'echo >>{log}; exec {check.replace('{image}', '$0')}' {{image}}"
    whole = json.loads(real("powerfail", trace, "--verify", check, "--format", "json").stdout)
    options = ("--verify", checked, "--no-mend", "--state", state, "--format", "json")
    real("powerfail", trace, *options, "--images", "50")
    before = len(log.read_text())
    done = json.loads(real("powerfail", trace, *options).stdout)
    assert done["counts"]["images"] == whole["counts"]["images"]
    assert before < len(log.read_text()) < before + whole["counts"]["images"]
    other = real("powerfail", trace, "--verify", check, "--state", state)
    assert (other.returncode, "of another trace, model or judge" in other.stderr) == (2, True)


SERVER = """
import socket, subprocess, sys
if subprocess.run([sys.argv[1], "check", sys.argv[2]]).returncode:
    sys.exit("refuses the file")
with socket.create_server(("127.0.0.1", int(sys.argv[3]))) as server:
    while True:
        connection, _ = server.accept()
        with connection:
            if connection.recv(100):
                connection.sendall(b"+PONG\\r\\n")
"""


def test_servers_judge(trace, program, real, tmp_path):
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    for source, flags, expected in (
        ("missing_flush", (), 1),
        ("missing_flush", ("-DREPAIRED",), 0),
    ):
        serve = f"{sys.executable} -S {script} {program(source, *flags)} {{image}} {{port}}"
        options = ("--serve", serve, "--ask", "redis", "--images", "12", "--no-mend")
        done = real("powerfail", str(trace(source, *flags)), *options)
        assert done.returncode == expected, done.stderr
        assert ("refuses the file" in done.stdout) == bool(expected)


def test_a_judge_has_files_of_its_own(trace, program, real):
    check = f"{program('missing_flush', '-DREPAIRED')} check {{image}}"
    leaves = "test ! -e {folder}/mark && echo left >{folder}/mark && echo more >>{image}"
    options = ("--verify", check, "--verify", leaves, "--jobs", "1")
    done = real("powerfail", str(trace("missing_flush", "-DREPAIRED")), *options)
    assert (done.returncode, "0 violations" in done.stdout) == (0, True), done.stdout


def test_a_judge_that_hangs_or_crashes_refuses(forgetful, real):
    trace, check = forgetful
    program = check.split()[0]
    for how, said in (("sleep 60", "had not ended after 1.5 s"), ("kill -SEGV $$", "SIGSEGV")):
        judge = f"{program} check {{image}} || {how}"
        options = ("--verify", judge, "--command-limit", "1.5", "--images", "6", "--no-mend")
        done = real("powerfail", trace, *options)
        assert (done.returncode, said in done.stdout) == (1, True), done.stdout


def test_a_recovery_of_an_image_that_is_bad_already_is_left_out(trace, program, real):
    of = program("missing_flush")
    options = ("--verify", f"{of} check {{image}}", "--recover", f"{of} recover {{image}}")
    done = real("powerfail", str(trace("missing_flush")), *options)
    assert done.returncode == 1, done.stderr
    assert len(edges(done)) == 1


REFUSED = [
    ((), "name a judge: --verify, --verify-like, --loop, --serve or --dump"),
    (("--verify", "true"), "names no files; allowed: {image} or {folder} in it"),
    (("--verify", "false {image}"), "refuses the files after a run in which power did not fail"),
    (("--verify", "/nonexistent/check {image}"), "not found"),
    (("--loop", "/nonexistent/check"), "ended"),
    (("--loop", "while read x; do echo ok; echo ok; done"), "more than one line"),
    (("--dump", "cat {image}"), "the trace has no operations to compare states of"),
    (("--verify", "true {image}", "--recover", "cd {folder} && true"), "needs a shell for &&"),
    (("--verify", "true {image}", "--recover", "/nonexistent {image}"), "is no program"),
    (("--serve", "true {image}"), "names no port"),
    (("--verify", "true {image}", "--ask", "redis"), "--ask goes with --serve"),
    (("--verify", "true {image}", "--only", "x"), "is no name of an image"),
    (("--verify", "true {image}", "--only", "999999"), "there is no image 999999"),
    (("--verify", "true {image}", "--pm-file", "x"), "options of captures do not go with it"),
    (("--verify", "true {image}", "--model", "x86"), "--model"),
]


@pytest.mark.parametrize(("options", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_cannot_be_judged_is_refused(trace, real, options, said):
    done = real("powerfail", str(trace("missing_flush")), *options)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr + done.stdout
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_judge_that_contradicts_itself_is_refused(trace, real, tmp_path):
    flips = f"if test -e {tmp_path}/flag; then rm {tmp_path}/flag; else touch {tmp_path}/flag"
    judge = f"{flips}; fi; test -e {tmp_path}/flag && test -n {{image}}"
    done = real("powerfail", str(trace("missing_flush")), "--verify", judge, "--jobs", "1")
    assert done.returncode == 2
    assert "what it says means nothing" in done.stderr


def test_traces_without_a_history_are_refused(real, tmp_path):
    trace = tmp_path / "plain.gvt"
    recorded = ("--design", "silo", "--workload", "hash", "--transactions", "2")
    assert real("trace", "record", str(trace), *recorded).returncode == 0
    done = real("powerfail", str(trace), "--verify", "true {image}")
    assert (done.returncode, "no trace of a captured program" in done.stderr) == (2, True)


def test_folders_of_killed_processes_are_removed(forgetful, real):
    trace, check = forgetful
    # No process has so high a number.
    folder = Path("/dev/shm/graven-left-999999999-0")
    folder.mkdir(exist_ok=True)
    real("powerfail", trace, "--verify", check, "--images", "2", "--no-mend")
    assert not folder.exists()
