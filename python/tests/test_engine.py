"""The real engine through the real command: small, end to end."""

from __future__ import annotations

import re

import pytest
from conftest import PACKAGE, documents
from test_compare import FIXED_STATS

from graven.results.comparison import METRICS

QUICK = (
    "--transactions", "200", "--threads", "2", "--set", "workload.footprint_bytes=1 MB",
    # Before the region of a comparison in steady state.
    "--set", "region.fast_forward_transactions=2000", "--set", "region.warm_up_transactions=200",
)  # fmt: skip
PAIR = ("--designs", "ideal,base", "--workloads", "array,queue")


def test_compare_twice_and_from_another_folder(real, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    first = real("compare", *PAIR, *QUICK, "--format", "json")
    assert first.returncode == 0, first.stderr
    again = real("compare", *PAIR, *QUICK, "--format", "json", cwd=tmp_path / "elsewhere")
    assert first.stdout == again.stdout
    records = documents(first.stdout)
    assert len(records) == 4
    for record in records:
        assert set(record["stats"]) >= FIXED_STATS
        assert record["stats"]["committed_transactions"] == record["transactions"] == 200
        assert record["safe"] is (record["design"] != "ideal")


def test_compare_writes_everything(real, tmp_path):
    done = real("compare", *PAIR, *QUICK, "--out", "results")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "results").iterdir())) == 4
    assert "relative to base" in done.stdout


MACHINE = """extends = "silo"
[comparison]
designs = ["ideal", "base"]
workloads = ["array", "queue"]
threads = [3]
transactions = 300
baseline = "ideal"
vary = { "workload.element_bytes" = ["64 B", 1024] }
"""


def test_a_machine_says_what_is_compared_on_it(real, tmp_path):
    (tmp_path / "mine.toml").write_text(MACHINE)
    arguments = ("compare", "--machine", "mine.toml", *QUICK)
    done = real(*arguments, "--out", "results")
    assert done.returncode == 0, done.stderr
    assert "relative to ideal" in done.stdout
    assert done.stdout.count("workload.element_bytes = 1 KB\n") == len(METRICS)
    records = documents((tmp_path / "results" / "results.json").read_text())
    assert [(r["design"], r["varied"]["workload.element_bytes"]) for r in records] == [
        (design, size)
        for size in ("64 B", "1 KB")
        for _ in range(2)
        for design in ("ideal", "base")
    ]
    writes = [record["stats"]["media_bytes_written"] for record in records]
    assert sum(writes[4:]) > 2 * sum(writes[:4])
    # Options take the place of what the file says of threads and transactions.
    assert {(record["threads"], record["transactions"]) for record in records} == {(2, 200)}
    # Each combination gives what it gives by itself.
    alone = ("--designs", "base", "--workloads", "queue", "--set", "workload.element_bytes=1 KB")
    [record] = documents(real(*arguments, *alone, "--format", "json").stdout)
    assert "varied" not in record
    assert record["stats"] == records[-1]["stats"]


def test_a_combination_that_does_not_fit_is_refused(real, tmp_path):
    def refused(*arguments):
        done = real("compare", *PAIR, *QUICK, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        return done.stderr

    assert "--vary: `pm.row_hit_ns` = 500.0 does not fit" in refused(
        "--vary", "pm.row_hit_ns=1,500"
    )
    assert '"4 KB" is there' in refused("--vary", "workload.element_bytes=4 KB,4096")
    assert "--vary: unknown key `pm.nope`" in refused("--vary", "pm.nope=1,2")
    (tmp_path / "mine.toml").write_text("[comparison]\nvary = { pm.row_hit_ns = [1, 500] }\n")
    message = "mine.toml, [comparison] vary: `pm.row_hit_ns` = 500.0 does not fit"
    assert message in refused("--machine", "mine.toml")
    (tmp_path / "mine.toml").write_text('[comparison]\ndesigns = ["sillo"]\n')
    assert 'mine.toml: `comparison.designs` = "sillo"' in refused("--machine", "mine.toml")


def test_every_statistic_is_declared(real):
    stats = documents(real("list", "stats", "--format", "json").stdout)
    declared = {statistic["name"] for statistic in stats}
    assert declared >= FIXED_STATS
    run = real("run", "--design", "base", "--workload", "array", *QUICK, "--format", "json")
    [record] = documents(run.stdout)
    undeclared = {name for name in record["stats"] if "." not in name} - declared
    assert undeclared == set()


def test_a_run_can_be_replayed_on_the_memory_alone(real):
    run = ("run", "--design", "base", "--workload", "array", *QUICK, "--request-trace", "t.nvt")
    done = real(*run)
    assert done.returncode == 0, done.stderr
    replay = real("memory", "t.nvt", "--format", "json")
    assert replay.returncode == 0, replay.stderr
    assert documents(replay.stdout)["stats"]["media_write_requests"] > 0


def test_a_replay_prints_what_the_recorded_run_printed(real):
    what = ("--design", "silo", "--workload", "btree", *QUICK, "--format", "json")
    live, recorded = real("run", *what), real("trace", "record", "t.gvt", *what)
    assert recorded.returncode == 0, recorded.stderr
    replay = real("trace", "replay", "t.gvt", "--format", "json")
    assert replay.returncode == 0, replay.stderr
    assert live.stdout == recorded.stdout
    # A replay has the configuration from the trace; what of it was set is not there.
    [before], [after] = documents(recorded.stdout), documents(replay.stdout)
    assert before.pop("settings")
    assert "settings" not in after
    assert before == after
    for name in ("c", "c.xz", "c.gz"):
        assert real("trace", "convert", "t.gvt", "--to", name).returncode == 0
    done = real("trace", "convert", "c", "c.xz", "c.gz", "--to", "u.gvt")
    assert done.returncode == 0, done.stderr
    info = documents(real("trace", "info", "u.gvt", "--format", "json").stdout)
    first, second, third = info["threads"]
    assert first["operations"] == second["operations"] == third["operations"] > 0


def test_a_run_writes_the_loads_of_its_banks(real, tmp_path):
    run = ("run", "--design", "base", "--workload", "array", *QUICK, "--bank-loads", "b.csv")
    done = real(*run, "--format", "json")
    assert done.returncode == 0, done.stderr
    [record] = documents(done.stdout)
    first, *intervals = (tmp_path / "b.csv").read_text().splitlines()
    assert first.split(",") == ["cycle", *(f"bank{bank}" for bank in range(8))]
    assert len(intervals) == record["stats"]["cycles"] // 10_000
    loads = [sum(map(float, line.split(",")[1:])) / 8 for line in intervals]
    assert sum(loads) / len(loads) == pytest.approx(record["stats"]["bank_load_mean"], rel=0.1)


def test_a_run_writes_its_requests_in_nvmains_format(real, tmp_path):
    run = ("run", "--design", "base", "--workload", "array", *QUICK, "--request-trace", "t.nvt")
    done = real(*run)
    assert done.returncode == 0, done.stderr
    first, *requests = (tmp_path / "t.nvt").read_text().splitlines()
    assert first == "NVMV1"
    assert requests
    for request in requests:
        cycle, operation, address, data, old, thread = request.split()
        assert int(cycle) >= 0
        assert operation in "RW"
        assert int(address, 16) % 64 == 0
        assert len(bytes.fromhex(data)) == len(bytes.fromhex(old)) == 64
        assert thread == "0"


def test_bad_input_is_refused_by_the_engine(real):
    for arguments in (["--designs", "nope"], ["--set", "pm.nope=1"], ["--threads", "1000"]):
        done = real("compare", *arguments)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1


def test_lists(real):
    for what in ("designs", "workloads", "machines", "stats", "parameters", "mutants", "states"):
        assert real("list", what, "--verbose").returncode == 0


CRASH = ("crash", "--machine", "cramped", "--workload", "queue", "--threads", "2")


def test_a_literal_design_is_violated_and_its_replay_confirms_it(real):
    done = real(*CRASH, "--design", "silo-literal", "--workload", "btree")
    assert done.returncode == 0, done.stderr
    assert "VIOLATED" in done.stdout
    replay = real("litmus", "graven-results/silo-literal-btree.litmus", "--format", "json")
    assert replay.returncode == 0, replay.stderr
    [result] = documents(replay.stdout)[0]["results"]
    assert (result["expected"], result["as_expected"]) == ("violated", True)
    assert result["violations"][0]["timeline"][-1]["who"] == "verdict"
    repaired = real("litmus", "graven-results/silo-literal-btree.litmus", "--design", "silo")
    assert repaired.returncode == 0, repaired.stdout


def test_an_unsafe_design_is_violated_and_a_sound_one_is_not(real):
    done = real(*CRASH, "--design", "ideal,silo", "--transactions", "200", "--format", "json")
    assert done.returncode == 0, done.stderr
    ideal, silo = documents(done.stdout)
    assert (ideal["sound"], len(ideal["violations"])) == (False, 1)
    assert (silo["sound"], silo["violations"]) == (True, [])
    assert silo["recoveries"] > silo["crash_points"] > 1000
    assert set(silo["not_covered"]) == {k for k, count in silo["covered"].items() if count == 0}


def test_a_mutant_is_violated(real):
    done = real(*CRASH, "--design", "silo", "--mutant", "battery-too-small")
    assert done.returncode == 0, done.stderr
    assert "VIOLATED" in done.stdout
    replay = real("litmus", "graven-results/silo-battery-too-small-queue.litmus")
    assert replay.returncode == 0, replay.stdout


def test_a_machine_of_the_users_own_can_be_replayed(real, tmp_path):
    (tmp_path / "mine.toml").write_text('extends = "cramped"\n[silo]\nlog_buffer_entries = 3\n')
    done = real(*CRASH, "--workload", "btree", "--design", "silo-literal", "--machine", "mine.toml")
    assert "VIOLATED" in done.stdout, done.stderr
    assert real("litmus", "graven-results").returncode == 0


def test_the_adversary_violates_the_literal_design_and_not_the_repaired_one(real):
    designs = ("--design", "silo-literal,silo", "--schedules", "50", "--format", "json")
    done = real("adversary", *designs)
    assert done.returncode == 0, done.stderr
    literal, repaired = documents(done.stdout)
    [violation] = literal["violations"]
    assert literal["next_seed"] == violation["seed"] + 1
    assert (repaired["violations"], repaired["next_seed"]) == ([], 51)
    assert real("litmus", "graven-results/silo-literal-adversary.litmus").returncode == 0


def test_mutants_are_killed_and_survivors_are_named(real):
    done = real("mutants", "silo", "--only", "reported-early", "--format", "json")
    assert done.returncode == 0, done.stderr
    trials = documents(done.stdout)
    assert trials
    for trial in trials:
        assert trial["class"] == "dependency"
        assert trial["kill"]["seed"] == trial["schedules"] >= 1
    table = real("mutants", "silo", "--only", "own", "--schedules", "1")
    assert table.returncode == 1
    assert "SURVIVED" in table.stdout
    assert "Killed" in table.stdout
    assert real("mutants", "silo", "--only", "nothing").returncode == 2


def test_programs_kill_the_mutants_that_they_are_for(real, tmp_path):
    arguments = ("mutants", "redo-clwb", "--only", "slots-used", "--schedules", "1")
    assert real(*arguments).returncode == 1
    done = real(
        *arguments, "--programs", str(PACKAGE / "laboratory/litmus_programs"), "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    [trial] = documents(done.stdout)
    assert (trial["kill"]["by"], trial["kill"]["seed"]) == ("litmus program", None)
    assert real(*arguments, "--programs", str(tmp_path)).returncode == 2


def test_small_programs_kill_what_a_few_schedules_do_not(real):
    arguments = ("mutants", "undo-clwb", "--only", "own", "--schedules", "1", "--format", "json")
    before = documents(real(*arguments).stdout)
    after = documents(real(*arguments, "--check").stdout)
    survived = {trial["mutant"] for trial in before if trial["kill"] is None}
    killed = {t["mutant"] for t in after if t["kill"] and t["kill"]["by"] == "small programs"}
    assert killed
    assert killed <= survived
    assert [t for t in after if t["mutant"] not in survived] == [
        t for t in before if t["mutant"] not in survived
    ]


def test_mutants_that_help_texts_name_are_there(real):
    known = {
        d["name"]: {m["name"] for m in d["mutants"]}
        for d in documents(real("list", "designs", "--format", "json").stdout)
    }
    found = 0
    for command in ("crash", "check", "mutants"):
        text = real(command, "--help").stdout
        for line in (line for line in text.splitlines() if re.search(r"--mutant [a-z]", line)):
            [design] = [word for word in re.split(r"[ ,]+", line) if word in known]
            name = re.search(r"--mutant ([a-z-]+)", line)[1]
            assert name in known[design], line
            found += 1
    assert found == 2


def test_an_operator_is_a_mutant(real):
    done = real(
        "adversary", "--design", "silo", "--mutant", "recovery-skips(home,all)",
        "--schedules", "20", "--format", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert documents(done.stdout)[0]["violations"]
    unknown = real("adversary", "--design", "silo", "--mutant", "unordered(", "--schedules", "2")
    assert unknown.returncode == 2
    assert "mutation operator" in unknown.stderr


def test_a_malformed_litmus_program_is_named_with_line_and_column(real, tmp_path):
    (tmp_path / "x.litmus").write_text('graven litmus 1\ntitle "x"\n\nA = 1\n\nthread\n  bogin\n')
    done = real("litmus", "x.litmus")
    assert done.returncode == 2
    assert done.stderr.startswith("graven: error: x.litmus:7:3: ")


def test_variants_that_are_not_compared_by_default(real, tmp_path):
    designs = documents(real("list", "designs", "--format", "json").stdout)
    [literal] = [design for design in designs if design["name"] == "silo-literal"]
    assert (literal["default"], literal["safe"], literal["guarantee"]) == (False, False, "durable")
    # Its file says nothing of what is compared.
    (tmp_path / "plain.toml").write_text('title = "the defaults"\n')
    machine = ("--machine", "plain.toml")
    done = real("compare", *machine, "--workloads", "queue", *QUICK, "--format", "json")
    assert done.returncode == 0, done.stderr
    compared = {record["design"] for record in documents(done.stdout)}
    assert compared == {design["name"] for design in designs if design["default"]}


RECOVERY = ("recovery_ms", "recovery_ms_max", "recovery_bytes_read", "recovery_bytes_written")


def test_recovery_is_timed_if_it_is_asked_for(real):
    run = ("run", "--design", "base", "--workload", "array", *QUICK, "--format", "json")
    [plain] = documents(real(*run).stdout)
    [timed] = documents(real(*run, "--recovery", "3").stdout)
    assert not any(name.startswith("recovery_") for name in plain["stats"])
    assert timed["stats"]["recovery_failures"] == 3
    assert all(timed["stats"][name] > 0 for name in RECOVERY)
    assert timed["stats"]["recovery_ms"] <= timed["stats"]["recovery_ms_max"]
    # The run itself is the same, and so is a recovery after one failure of one's own choice.
    assert {**timed["stats"], **plain["stats"]} == timed["stats"]
    half = documents(real(*run, "--recovery", "1").stdout)
    at = documents(real(*run, "--set", "recovery.at_percent=50").stdout)
    assert half[0]["stats"]["recovery_ms"] == at[0]["stats"]["recovery_ms"]


def test_a_comparison_has_a_column_for_recovery(real):
    compare = ("compare", *PAIR, *QUICK, "--no-report")
    assert "Recovery time" not in real(*compare).stdout
    assert "Recovery time" in real(*compare, "--recovery", "2").stdout
    missing = real(*compare, "--metrics", "recovery_ms")
    assert missing.returncode == 2
    assert "`recovery_ms` is there only if recovery is timed" in missing.stderr
    twice = real(*compare, "--recovery", "2", "--set", "recovery.at_cycle=100")
    assert twice.returncode == 2
    assert "recovery.at_cycle = 100 is set" in twice.stderr


def test_a_replay_of_a_trace_times_the_same_recovery(real):
    run = ("--design", "fwb", "--workload", "array", *QUICK, "--set", "recovery.points=2")
    recorded = real("trace", "record", "t.gvt", *run, "--format", "json")
    assert recorded.returncode == 0, recorded.stderr
    [first] = documents(recorded.stdout)
    [again] = documents(real("trace", "replay", "t.gvt", "--format", "json").stdout)
    assert first["stats"] == again["stats"]
    assert first["stats"]["recovery_ms"] > 0
