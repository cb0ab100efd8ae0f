"""`graven check` on the real engine: tables, documents, states and refusals."""

from __future__ import annotations

import json

import pytest

from graven.laboratory.state_file import sealed

SMALL = ("--transactions", "1", "--departures", "1")


def test_a_sound_design_is_kept_and_the_table_says_of_how_much(real):
    done = real("check", "silo", "lad", *SMALL)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("kept") == 2
    assert "up to 1 departures from the usual run" in " ".join(done.stdout.split())


def test_a_mutant_is_violated_and_its_program_replays(real, tmp_path):
    done = real("check", "lad", *SMALL, "--mutant", "commit-before-lines", "--format", "json")
    assert done.returncode == 1, done.stderr
    (found,) = json.loads(done.stdout)
    violation = found["violation"]
    assert "committed" in violation["what"]
    assert "verdict" in violation["timeline"]
    (tmp_path / "found.litmus").write_text(violation["program"])
    replayed = real("litmus", "found.litmus")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr


def test_a_design_is_scaled_down_unless_it_is_asked_for_in_full_size(real):
    def checked(*arguments):
        done = real("check", "silo", *SMALL, *arguments, "--format", "json")
        assert done.returncode == 0, done.stderr
        (found,) = json.loads(done.stdout)
        return found

    down, full = checked(), checked("--full-size")
    assert (down["full_size"], full["full_size"]) == (False, True)
    assert down["settings"]["silo.log_buffer_entries"] == "1"
    assert full["settings"] == {}
    assert down["covered"]["log-buffer-exactly-full"] > 0 == full["covered"]["overflow"]
    own = checked("--set", "silo.log_buffer_entries=2")["settings"]
    assert own == {**down["settings"], "silo.log_buffer_entries": "2"}


def test_the_table_says_which_sizes_a_design_had(real):
    done = real("check", "silo", *SMALL)
    assert "silo, scaled down: silo.log_buffer_entries = 1" in " ".join(done.stdout.split())
    done = real("check", "silo", *SMALL, "--full-size")
    assert "silo, default sizes" in done.stdout


def test_a_replay_has_the_sizes_of_the_check(real):
    done = real("check", "lad", *SMALL, "--mutant", "commit-before-lines", "--format", "json")
    (found,) = json.loads(done.stdout)
    for key, value in found["settings"].items():
        assert f"set {key} = {value}\n" in found["violation"]["program"]


def test_a_check_goes_on_from_its_state_and_comes_to_the_same(real, tmp_path):
    arguments = ("check", "undo-clwb", "--transactions", "2", "--departures", "0")
    whole = real(*arguments, "--format", "json")
    path = tmp_path / "states" / "check.json"
    assert real(*arguments, "--state", str(path)).returncode == 0
    state = json.loads(path.read_text())["state"]
    parts = state["designs"]["undo-clwb"]
    assert len(parts) > 3
    for first in ("16", "32"):
        del parts[first]
    path.write_text(sealed(state))
    again = real(*arguments, "--state", str(path), "--format", "json")
    assert again.stdout == whole.stdout
    assert sorted(json.loads(path.read_text())["state"]["designs"]["undo-clwb"]) == sorted(
        [*parts, "16", "32"]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("silo", "--transactions", "9"), "transactions: 9 is not allowed; from 1 to 6"),
        (("silo", "--words", "2,x"), "2,x is not of the form N,N"),
        (("silo", "--mutant", "nothing"), "unknown mutant `nothing`"),
        (("nobody",), "unknown design `nobody`"),
        (("silo", "--set", "silo.log_bytes_per_thread=1"), "silo.log_bytes_per_thread"),
    ],
)
def test_what_cannot_be_checked_is_refused_with_what_is_allowed(real, arguments, message):
    done = real("check", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_designs_that_settings_do_not_fit_are_left_out_unless_they_are_named(real):
    tiny = ("--transactions", "1", "--departures", "0", "--set", "lsm.segment_bytes=1 KB")
    done = real("check", "all", *tiny, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert 'left out: lsm: --set: `lsm.segment_bytes` = "1 KB" does not fit' in done.stderr
    there = {item["design"] for item in json.loads(done.stdout)}
    assert "silo" in there
    assert "lsm" not in there
    for named in (("silo", "lsm"), ("all", "lsm")):
        done = real("check", *named, *tiny)
        assert done.returncode == 2
        assert "error: lsm: --set: `lsm.segment_bytes`" in done.stderr


def test_a_violation_is_told_once_for_each_design_as_it_is_found(real):
    run = ("check", "lad", "--transactions", "2", "--mutant", "uncommitted-saved", "--no-store")
    done = real(*run, "--format", "json")
    assert done.returncode == 1
    said = "graven: lad with uncommitted-saved violates its guarantee: "
    assert done.stderr.count(said) == 1
    [found] = json.loads(done.stdout)
    assert found["violation"] is not None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "check.json: it is no JSON document"),
        ("[" * 100_000, "check.json: it is no JSON document"),
        ('{"format": 1}', "check.json: it is no state that Graven has written"),
        ('{"sha256": "0", "state": {}}', "check.json: it was changed since it was written"),
        (sealed([]), "check.json: the state is of another format than 2"),
        (sealed({"format": 7}), "check.json: the state is of another format than 2"),
        (sealed({"format": 2}), "check.json: the state is of version None"),
    ],
)
def test_a_state_that_is_none_is_refused_and_stays(real, tmp_path, content, message):
    path = tmp_path / "check.json"
    path.write_text(content)
    done = real("check", "silo", *SMALL, "--state", str(path))
    assert done.returncode == 2
    assert message in done.stderr
    assert path.read_text() == content


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        (None, None, "`designs`"),
        (None, {"silo": []}, "`silo` has no parts"),
        ("0x0", {}, "part `0x0` of `silo` is not what a part is"),
        ("0", {"programs": "1"}, "part `0` of `silo`"),
        ("0", {"programs": -1}, "part `0` of `silo`"),
        ("0", {"torn": None}, "part `0` of `silo`"),
        ("0", {"refusal": 3}, "part `0` of `silo`"),
        ("0", "refusal", "part `0` of `silo`"),
        ("0", "violation", "part `0` of `silo`"),
        ("0", {"violation": {"what": "x"}}, "part `0` of `silo`"),
        ("0", {"violation": {"what": "x", "program": None, "timeline": 3}}, "part `0` of `silo`"),
    ],
)
def test_a_state_that_is_damaged_inside_is_refused(real, tmp_path, part, value, message):
    path = tmp_path / "check.json"
    assert real("check", "silo", *SMALL, "--state", str(path)).returncode == 0
    state = json.loads(path.read_text())["state"]
    if part is None:
        state["designs"] = value
    else:
        parts = state["designs"]["silo"]
        parts[part] = {**parts["0"], **(value if isinstance(value, dict) else {})}
        if isinstance(value, str):
            del parts[part][value]
    path.write_text(sealed(state))
    done = real("check", "silo", *SMALL, "--state", str(path))
    assert done.returncode == 2, done.stderr
    assert "check.json: the state " in done.stderr
    assert message in done.stderr


def test_a_state_that_is_no_text_is_refused(real, tmp_path):
    (tmp_path / "check.json").write_bytes(b"\xff\xfe")
    done = real("check", "silo", *SMALL, "--state", "check.json")
    assert (done.returncode, "check.json: it is not UTF-8" in done.stderr) == (2, True)


def test_a_digit_that_is_changed_in_a_state_is_not_believed(real, tmp_path):
    path = tmp_path / "check.json"
    assert real("check", "silo", *SMALL, "--state", str(path)).returncode == 0
    text = path.read_text()
    place = text.index('"programs": ') + len('"programs": ')
    changed = text[:place] + str(int(text[place]) ^ 1) + text[place + 1 :]
    path.write_text(changed)
    done = real("check", "silo", *SMALL, "--state", str(path))
    assert done.returncode == 2
    assert "--state" in done.stderr
    assert "check.json: it was changed since it was written" in done.stderr
    assert path.read_text() == changed


def test_a_state_of_another_bound_is_refused(real, tmp_path):
    path = tmp_path / "check.json"
    assert real("check", "silo", *SMALL, "--state", str(path)).returncode == 0
    done = real("check", "silo", "--transactions", "1", "--state", str(path))
    assert done.returncode == 2
    assert "another bound, mutant or settings" in done.stderr


def test_faults_are_survived_reported_or_lost(real):
    done = real("faults", "silo", "undo-clwb", "--schedules", "12", "--format", "json")
    assert done.returncode == 0, done.stderr
    reports = json.loads(done.stdout)
    assert [report["design"] for report in reports] == ["silo", "undo-clwb"]
    for report in reports:
        fates = {fate["fault"]: fate for fate in report["fates"]}
        assert fates["lost-drain-4"]["lost"] >= fates["lost-drain-1"]["lost"] > 0
        assert fates["poisoned-log"]["reported"] > 0
        assert fates["poisoned-data"]["reported"] > 0
    table = real("faults", "silo", "--schedules", "5")
    assert "poisoned-data" in table.stdout
    drawn = real("faults", "silo", "--schedules", "5", "--draw", "threads=1")
    assert drawn.returncode == 0, drawn.stderr
    assert drawn.stdout != table.stdout
    assert real("faults", "nobody").returncode == 2
    refused = real("faults", "silo", "--draw", "threats=1")
    assert refused.returncode == 2
    assert "threats" in refused.stderr
