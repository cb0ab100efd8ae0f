"""What limits a process, what simulations need, and that they begin and end within it."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest
from conftest import documents, python

from graven import ConfigError
from graven.running import host_memory
from graven.running.host_memory import LIMIT_VARIABLE, Limit, size_of
from graven.running.pool import Pool

MB, GB = 1 << 20, 1 << 30


def files(root: Path, texts: dict[str, str]) -> Path:
    """A folder with such files, in place of `/`."""
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


MEMINFO = {"proc/meminfo": "MemTotal:  9000 kB\nMemAvailable:    8192 kB\n"}


@pytest.fixture
def unlimited(monkeypatch):
    """No limit of address space, whatever the tests are run under."""
    monkeypatch.setattr(host_memory, "resource", None)


@pytest.mark.usefixtures("unlimited")
def test_without_proc_no_limit_is_known(tmp_path):
    assert host_memory.limit(root=tmp_path) is None


@pytest.mark.usefixtures("unlimited")
def test_what_the_host_has_left_is_a_limit(tmp_path):
    found = host_memory.limit(root=files(tmp_path, MEMINFO))
    assert found == Limit(8 * MB, "the memory that the host has available")


@pytest.mark.usefixtures("unlimited")
def test_the_least_of_all_groups_counts_without_files_that_are_cached(tmp_path):
    top = "sys/fs/cgroup"
    texts = {
        "proc/self/cgroup": "0::/user/job\n",
        f"{top}/user/job/memory.max": "max\n",
        f"{top}/user/job/memory.current": "5\n",
        f"{top}/user/memory.max": f"{4 * MB}\n",
        f"{top}/user/memory.current": f"{3 * MB}\n",
        f"{top}/user/memory.stat": f"anon 7\ninactive_file {MB}\n",
        **MEMINFO,
    }
    found = host_memory.limit(root=files(tmp_path, texts))
    assert found == Limit(2 * MB, "the memory limit of the control group /user")


@pytest.mark.usefixtures("unlimited")
def test_groups_of_version_1_and_of_containers(tmp_path):
    top = "sys/fs/cgroup/memory"
    texts = {
        # The path is the host's; the container sees its own group at the top.
        "proc/self/cgroup": "5:cpu:/\n4:cpuacct,memory:/docker/abc\n",
        f"{top}/memory.limit_in_bytes": f"{6 * MB}\n",
        f"{top}/memory.usage_in_bytes": f"{7 * MB}\n",
    }
    found = host_memory.limit(root=files(tmp_path, texts))
    assert found == Limit(0, "the memory limit of the control group /")
    files(tmp_path, {f"{top}/memory.limit_in_bytes": "9223372036854771712\n"})
    assert host_memory.limit(root=tmp_path) is None


def test_the_limit_of_address_space_is_what_is_left_of_it(tmp_path, monkeypatch):
    class Resource:
        RLIMIT_AS, RLIM_INFINITY = 9, -1

        @staticmethod
        def getrlimit(_: int) -> tuple[int, int]:
            return 5 * MB, -1

    monkeypatch.setattr(host_memory, "resource", Resource)
    texts = {"proc/self/status": "Name: x\nVmSize:\t    1024 kB\n", **MEMINFO}
    found = host_memory.limit(root=files(tmp_path, texts))
    assert found == Limit(4 * MB, "the limit of address space (ulimit -v)", of_address_space=True)


def test_sizes_are_read_as_everywhere(monkeypatch):
    texts = {"8 GB": 8 * GB, "8GB": 8 * GB, "1.5 mb": 3 * MB // 2, "4096": 4096, "2 B": 2}
    assert {text: size_of(text) for text in texts} == texts
    for text in ("8 GiB", "-1", "lots", "1 2"):
        monkeypatch.setenv(LIMIT_VARIABLE, text)
        with pytest.raises(ConfigError, match="a size is wanted"):
            host_memory.limit()


class Need:
    """A task that needs memory, and ends when it is let."""

    def __init__(self, need: int, log: list[str], name: str, until: threading.Event) -> None:
        self.need, self.log, self.name, self.until = need, log, name, until

    def run(self) -> str:
        self.log.append(self.name)
        assert self.until.wait(30)
        self.log.append(f"{self.name} ends")
        return self.name

    def cancel(self) -> None:
        self.until.set()

    def progress(self) -> tuple[int, int]:
        return (0, 0)

    def memory_bytes(self) -> int:
        return self.need


def test_what_does_not_fit_waits_and_what_never_fits_is_refused():
    log: list[str] = []
    over, go = threading.Event(), threading.Event()
    go.set()
    needs = {"a": (60, over), "b": (50, go), "c": (40, go), "d": (0, go), "e": (101, go)}
    tasks = [(name, Need(need, log, name, until)) for name, (need, until) in needs.items()]
    looks = iter(range(3))
    # `a` runs until the pool has been looked at some times, in which nothing else has begun.
    limits = iter([Limit(100, "a test")])
    # It is found once: what runs takes its memory little by little.
    pool = Pool(tasks, 2, lambda: next(limits))
    outcome = pool.run(lambda _: over.set() if next(looks, None) is None else None)
    assert list(outcome.texts.items()) == [(0, "a"), (1, "b"), (2, "c"), (3, "d")]
    assert log.index("b") > log.index("a ends")
    [failure] = outcome.failures
    assert failure.label == "e"
    assert isinstance(failure.error, ConfigError)
    for text in ("needs up to 0.0 MB", "a test leaves", "footprint_bytes", LIMIT_VARIABLE):
        assert text in failure.message


def test_without_memory_for_a_thread_all_tasks_fail(monkeypatch):
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    go = threading.Event()
    outcome = Pool([(name, Need(0, [], name, go)) for name in "ab"], 2).run()
    assert [f.message for f in outcome.failures] == ["out of memory: can't start new thread"] * 2


# The real engine, in other processes.

MEASURE = """
import json, resource, sys
from graven.engine.machine import Machine
from graven.running.job import Job

def kilobytes(key):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key + ":"))

design, workload, machine, threads, transactions, *settings = sys.argv[1:]
pairs = tuple(tuple(text.split("=", 1)) for text in settings)
job = Job(design, workload, Machine.find(machine), int(threads), int(transactions), settings=pairs)
task = job.simulation()
estimate, before = task.memory_bytes(), kilobytes("VmRSS")
task.run()
print(json.dumps([estimate, (kilobytes("VmHWM") - before) * 1024]))
"""

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is measured by /proc"
)


def measured(*arguments: object) -> tuple[int, int]:
    """The estimate of a simulation, and what it took at most, in bytes."""
    done = python("-c", MEASURE, *arguments)
    assert done.returncode == 0, done.stderr
    estimate, peak = json.loads(done.stdout)
    return estimate, peak


SMALL = 64 * MB
"""What takes less may be estimated at several times as much: a constant is in it."""


def check_estimate(*arguments: object, times: float = 3.0) -> None:
    """Never less than what is measured, and of what is not small not more than so many times it."""
    estimate, peak = measured(*arguments)
    assert peak <= estimate
    assert peak < SMALL or estimate <= times * peak


@needs_proc
@pytest.mark.parametrize(
    "arguments",
    [
        ("silo", "array", "silo", 4, 2000),
        ("hoop", "hash", "silo", 8, 20_000),
        ("morlog-slde", "btree", "morlog", 4, 2000),
        ("silo", "hash", "cramped", 2, 500),
        ("base", "rbtree", "silo", 2, 2000, "recovery.points=2"),
    ],
    ids=lambda arguments: "-".join(map(str, arguments[:3])),
)
def test_a_simulation_takes_no_more_than_is_estimated(arguments):
    check_estimate(*arguments)


@needs_proc
@pytest.mark.parametrize(
    ("design", "workload"), [("opt-redo", "vector"), ("hoop", "btree"), ("osp", "hash")]
)
def test_words_that_are_updated_are_estimated_as_such(design, workload):
    """Not the whole elements, which would be many times as much."""
    settings = (
        "workload.element_bytes=1 KB",
        "workload.update_bytes=8 B",
        "workload.insert_percent=0",
        "workload.operations_per_transaction=8",
    )
    check_estimate(design, workload, "hoop", 8, 20_000, *settings, times=4.0)


@needs_proc
@pytest.mark.long
@pytest.mark.parametrize("footprint", ["256 MB", "1 GB"])
@pytest.mark.parametrize("workload", ["array", "hash", "btree", "ycsb"])
def test_estimates_hold_for_footprints(workload, footprint):
    check_estimate("silo", workload, "silo", 4, 5000, f"workload.footprint_bytes={footprint}")


@needs_proc
@pytest.mark.long
@pytest.mark.parametrize("design", ["silo", "hoop", "lsm", "morlog-slde", "osp", "undo-clwb"])
def test_estimates_hold_for_long_runs(design):
    # How many nodes of the index of `lsm` will be live is not known before.
    check_estimate(design, "hash", "silo", 8, 200_000, times=4.0 if design == "lsm" else 3.0)


UNDER_LIMIT = """
import resource, sys
import graven.cli.group
megabytes, *arguments = sys.argv[1:]
size = next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmSize:")) << 10
limit = size + (int(megabytes) << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.argv = ["graven", *arguments]
graven.cli.main()
"""


def under_limit(megabytes: int, *arguments: str, cwd: Path, **environment: str):
    """The command with so much more address space than it has after its imports."""
    return python("-c", UNDER_LIMIT, megabytes, *arguments, cwd=cwd, **environment)


RUN = ("run", "--design", "silo", "--threads", "2", "--transactions", "500", "--no-store")
LARGE = ("--set", "workload.footprint_bytes=1 GB")
TRY_ANYWAY = {LIMIT_VARIABLE: "1 TB"}


@needs_proc
def test_what_does_not_fit_is_refused_before_it_starts(tmp_path):
    done = under_limit(1000, *RUN, "--workload", "array", *LARGE, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    for text in ("needs up to 2.1 GB", "ulimit -v", "footprint_bytes", LIMIT_VARIABLE):
        assert text in done.stderr


@needs_proc
def test_an_image_that_the_host_refuses_ends_a_simulation_and_not_the_process(tmp_path):
    done = under_limit(1000, *RUN, "--workload", "array", *LARGE, cwd=tmp_path, **TRY_ANYWAY)
    assert done.returncode == 1, done.stderr
    assert "out of memory" in done.stderr


@needs_proc
def test_others_of_a_comparison_go_on_and_are_kept(tmp_path):
    done = under_limit(
        900,
        *("compare", "--designs", "base,silo", "--workloads", "array", "--threads", "2"),
        *("--transactions", "300", "--vary", "workload.footprint_bytes=1 MB,4 GB,2 MB"),
        *("--format", "json", "--no-report", "--jobs", "2", "--out", "out.json"),
        cwd=tmp_path,
    )
    assert done.returncode == 1, done.stderr
    records = documents((tmp_path / "out.json").read_text())
    sizes = [(r["design"], r["config"]["workload"]["footprint_bytes"]) for r in records]
    assert sizes == [(d, f"{size} MB") for size in (1, 2) for d in ("base", "silo")]
    assert done.stderr.count("needs up to") == 2


@needs_proc
def test_a_limit_of_ones_own_takes_the_place_of_the_hosts(real):
    arguments = (*RUN, "--workload", "array")
    done = real(*arguments, **{LIMIT_VARIABLE: "100 MB"})
    assert done.returncode == 2
    assert f"{LIMIT_VARIABLE} leaves 100.0 MB" in done.stderr
    assert real(*arguments, **{LIMIT_VARIABLE: "400 MB"}).returncode == 0
    done = real(*arguments, **{LIMIT_VARIABLE: "much"})
    assert done.returncode == 2
    assert "a size is wanted" in done.stderr


@needs_proc
def test_a_crash_campaign_says_what_it_needs(real):
    arguments = ("crash", "--design", "silo", "--workload", "array", "--no-store")
    done = real(*arguments, **{LIMIT_VARIABLE: "30 MB"})
    assert done.returncode == 1
    assert "needs up to" in done.stderr


ADVERSARY = ("adversary", "--no-store", "--jobs")


@needs_proc
@pytest.mark.parametrize("megabytes", [64, 450])
def test_schedules_that_do_not_fit_are_refused_before_they_start(megabytes, tmp_path):
    words = (*ADVERSARY, "2", "--design", "silo,hoop,lsm", "--schedules", "500")
    done = under_limit(megabytes, *words, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    for text in ("a schedule of the adversary needs up to", "ulimit -v", LIMIT_VARIABLE):
        assert text in done.stderr


@needs_proc
def test_schedules_take_as_many_workers_as_fit(tmp_path):
    # Two would need more address space than there is; one does not.
    words = (*ADVERSARY, "2", "--design", "silo", "--schedules", "250")
    done = under_limit(1100, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


MEASURED = """
import sys
import graven.cli, graven.cli.adversary
def peak(): return next(int(l.split()[1]) for l in open("/proc/self/status") if "VmHWM" in l)
before = peak()
sys.argv = ["graven", *sys.argv[1:]]
try:
    graven.cli.main()
finally:
    print("peak", peak() - before, file=sys.stderr)
"""


@needs_proc
@pytest.mark.long
@pytest.mark.parametrize(
    # The schedule of `hoop` that takes much comes late.
    ("design", "schedules"),
    [("silo", 600), ("hoop", 1500), ("lsm", 600), ("osp", 600)],
)
def test_schedules_take_no_more_memory_than_is_said(design, schedules, tmp_path):
    words = (*ADVERSARY, "1", "--design", design, "--schedules", schedules)
    refused = under_limit(4000, *words, cwd=tmp_path, **{LIMIT_VARIABLE: "1 MB"})
    most = size_of(re.search(r"needs up to ([\d.]+ MB)", refused.stderr)[1])
    done = python("-c", MEASURED, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    measured = int(done.stderr.split("peak")[1]) << 10
    assert most / 4 < measured < most
