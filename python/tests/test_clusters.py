"""Sweeps on a real Dask cluster and a real Slurm: the same bytes, whatever dies.

The real engine simulates. Dask is there if the package `distributed` is (`make clusters`), Slurm if
the distribution's is.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time

import pytest
from clusters import HAS_DASK, HAS_SLURM, REQUIRED, dask_cluster, free_port, slurm_cluster
from conftest import ENVIRONMENT

SWEEP = """
designs = ["base", "fwb", "silo", "hoop"]
workloads = ["hash", "queue"]
threads = [1, 2]
transactions = {transactions}
from_start = true
seeds = {seeds}
set = {{ "workload.footprint_bytes" = "1 MB" }}
vary = {{ "pm.write_ns" = [150, 300] }}
"""

dask = pytest.mark.skipif(not (HAS_DASK or REQUIRED), reason="no `distributed` (make clusters)")
slurm = pytest.mark.skipif(not (HAS_SLURM or REQUIRED), reason="no Slurm (Debian: slurm-wlm)")

CAMPAIGN = """
designs = ["silo"]
workloads = ["hash", "queue"]
machine = "cramped"
transactions = 10
crash = { every = 4 }
"""


def written(tmp_path, transactions=200, seeds=1):
    seeds = list(range(1, seeds + 1))
    (tmp_path / "sweep.toml").write_text(SWEEP.format(transactions=transactions, seeds=seeds))
    return ("sweep", "sweep.toml", "--format", "json")


def without_seconds(text):
    """Reports without the host's time."""
    return [{k: v for k, v in item.items() if k != "seconds"} for item in json.loads(text)]


def begun(tmp_path, *words, environment=ENVIRONMENT):
    return subprocess.Popen(
        [sys.executable, "-m", "graven", *words],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(process, seconds=400):
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err


def results_in(store):
    return sum(file.read_bytes().count(b"\n") for file in (store / "segments").glob("*.tsv"))


def await_results(store, number, process, told=lambda: ""):
    end = time.monotonic() + 300
    while results_in(store) < number:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, f"no {number} results in {store}\n{told()}"
        time.sleep(0.05)


# ---- Dask --------------------------------------------------------------------------------------


@dask
def test_dask_gives_the_same_bytes_though_workers_die(separate, tmp_path):
    words = written(tmp_path, seeds=3)
    here = separate(*words, "--store", "here")
    assert here.returncode == 0, here.stderr
    store = tmp_path / "there"
    with dask_cluster(tmp_path / "dask", 3) as cluster:
        process = begun(tmp_path, *words, "--store", "there", "--on", f"dask://{cluster.address}")
        dice = random.Random(7)
        for number in (5, 25, 45):
            await_results(store, number, process)
            cluster.kill_worker(dice.randrange(len(cluster.workers)))
            cluster.add_worker()
        code, out, err = ended(process)
    assert code == 0, err
    assert out == here.stdout
    assert separate("results", "verify", "--store", "there").returncode == 0
    assert len(list((store / "segments").iterdir())) > 1, "workers have kept results themselves"


@dask
def test_dask_workers_that_do_not_see_the_store_send_results_back(separate, tmp_path):
    # `store.json` without a name is a store that no worker can be sure of.
    words = written(tmp_path)
    (tmp_path / "there" / "segments").mkdir(parents=True)
    (tmp_path / "there" / "store.json").write_text('{"schema": 1}')
    with dask_cluster(tmp_path / "dask", 2) as cluster:
        on = ("--on", f"dask://{cluster.address}")
        done = separate(*words, "--store", "there", *on)
        assert done.returncode == 0, done.stderr
        assert len(list((tmp_path / "there" / "segments").iterdir())) == 1
        crashes = tmp_path / "crashes.toml"
        crashes.write_text(CAMPAIGN)
        crashed = separate("sweep", crashes.name, "--format", "json", "--store", "crashed", *on)
        compared = separate(
            "compare", "--designs", "base,silo", "--workloads", "hash", "--transactions", "200",
            "--from-start", "--format", "json", "--store", "compared", *on,
        )  # fmt: skip
        adversary = ("adversary", "--design", "silo,fwb", "--schedules", "260")
        drawn = separate(*adversary, "--format", "json", "--store", "drawn", *on)
        programs = ("check", "silo", "--transactions", "2", "--departures", "0", "--format", "json")
        checked = separate(*programs, "--store", "checked", *on)
    assert done.stdout == separate(*words, "--store", "here").stdout
    assert crashed.returncode == 0, crashed.stderr
    assert drawn.returncode == 0, drawn.stderr
    again = separate(*adversary, "--format", "json", "--store", "here").stdout
    assert without_seconds(drawn.stdout) == without_seconds(again)
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout == separate(*programs, "--store", "here").stdout
    assert (
        crashed.stdout == separate("sweep", crashes.name, "--format", "json", "--store", "c").stdout
    )
    assert len(json.loads(compared.stdout)) == 2, compared.stderr


@dask
def test_dask_is_cancelled_and_goes_on_elsewhere(separate, tmp_path):
    words = written(tmp_path, transactions=20_000)
    with dask_cluster(tmp_path / "dask", 2) as cluster:
        process = begun(tmp_path, *words, "--store", "there", "--on", f"dask://{cluster.address}")
        await_results(tmp_path / "there", 2, process)
        process.send_signal(signal.SIGTERM)
        code, _, err = ended(process)
        assert code == 143, err
        assert "the same command goes on" in err
        # What was running has stopped, and what waited never begins.
        time.sleep(1)
        had = results_in(tmp_path / "there")
        time.sleep(3)
        assert results_in(tmp_path / "there") == had < 32
    done = separate(*written(tmp_path, transactions=20_000), "--store", "there", "--on", "local")
    assert f"{had} of 32 results were there already" in done.stderr
    assert len(json.loads(done.stdout)) == 32


@dask
def test_a_dask_scheduler_that_is_not_there_is_refused(separate, tmp_path):
    done = separate(*written(tmp_path), "--on", f"dask://127.0.0.1:{free_port()}")
    assert done.returncode == 2
    assert "no scheduler of Dask answers there" in done.stderr


@dask
@pytest.mark.parametrize("seconds", [0, 5], ids=["at first", "later"])
def test_dask_workers_without_the_same_graven_are_refused(tmp_path, monkeypatch, seconds):
    """Those that come when jobs wait for workers, too, which cannot even read a job."""
    folder = tmp_path / "other" / "graven"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise ImportError('not the one')\n")
    with dask_cluster(tmp_path / "dask", 0) as cluster:
        process = begun(tmp_path, *written(tmp_path), "--on", f"dask://{cluster.address}")
        time.sleep(seconds)
        monkeypatch.setenv("PYTHONPATH", str(folder.parent))
        cluster.add_worker()
        code, _, err = ended(process)
    assert code == 2, err
    assert "cannot run Graven" in err


# ---- Slurm -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def started_nodes(tmp_path_factory):
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture
def nodes(started_nodes):
    """A Slurm that has nothing to do, and can: whatever the test before has left."""
    await_empty_queue(started_nodes)
    started_nodes.wait_until_up()
    return started_nodes


def await_empty_queue(cluster):
    end = time.monotonic() + 60
    while listed := cluster.command("squeue", "--noheader").stdout.strip():
        assert time.monotonic() < end, listed
        time.sleep(0.5)


def on_slurm(cluster, **more):
    return {**ENVIRONMENT, **cluster.environment, **more, "PYTHONPATH": ENVIRONMENT["PYTHONPATH"]}


@slurm
@pytest.mark.long
def test_slurm_gives_the_same_bytes(separate, tmp_path, nodes):
    words = written(tmp_path, seeds=3)
    process = begun(
        tmp_path, *words, "--store", "there", "--on", "slurm", environment=on_slurm(nodes)
    )
    code, out, err = ended(process)
    assert code == 0, err
    assert out == separate(*words, "--store", "here").stdout
    assert not (tmp_path / "there" / "jobs").exists(), "nothing is left of what was submitted"


@slurm
@pytest.mark.long
def test_slurm_elements_that_are_killed_requeued_or_forgotten_are_made_up_for(
    separate, tmp_path, nodes
):
    words = written(tmp_path, transactions=10_000)
    store = tmp_path / "there"
    process = begun(
        tmp_path, *words, "--store", "there", "--on", "slurm", environment=on_slurm(nodes)
    )
    await_results(store, 3, process, nodes.told)
    listed = nodes.command("squeue", "--noheader", "--array", "--format=%i|%T").stdout
    running = [line.split("|")[0] for line in listed.split() if line.endswith("RUNNING")]
    assert running
    assert nodes.command("scontrol", "requeue", running[0]).returncode == 0
    if len(running) > 1:
        nodes.command("scancel", "--signal=KILL", "--full", running[1])
    await_results(store, 8, process, nodes.told)
    nodes.kill_controller()
    time.sleep(3)
    nodes.start_controller()
    code, out, err = ended(process)
    assert code == 0, err
    assert out == separate(*words, "--store", "here").stdout
    await_empty_queue(nodes)


@slurm
@pytest.mark.long
def test_slurm_is_cancelled_and_another_command_goes_on(separate, tmp_path, nodes):
    words = written(tmp_path, transactions=10_000)
    on = (*words, "--store", "there", "--on", "slurm")
    process = begun(tmp_path, *on, environment=on_slurm(nodes))
    await_results(tmp_path / "there", 2, process, nodes.told)
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)
    assert code == 130, err
    await_empty_queue(nodes)

    # A process that is killed leaves its jobs in the queue; the next one waits for them.
    process = begun(tmp_path, *on, environment=on_slurm(nodes))
    had = results_in(tmp_path / "there")
    await_results(tmp_path / "there", had + 2, process, nodes.told)
    process.kill()
    process.communicate()
    arrays = len(list((tmp_path / "there" / "jobs").iterdir()))
    process = begun(tmp_path, *on, environment=on_slurm(nodes))
    time.sleep(6)
    if process.poll() is None:
        assert len(list((tmp_path / "there" / "jobs").iterdir())) == arrays, "nothing is sent twice"
    code, out, err = ended(process)
    assert code == 0, err
    assert out == separate(*words, "--store", "here").stdout


@slurm
@pytest.mark.long
def test_what_a_time_limit_cuts_off_is_submitted_again(separate, tmp_path, nodes):
    # All simulations are expected to be short, and so are one element; together they take longer
    # than the shortest limit that Slurm has, a minute. An array does not grow: twice as many
    # transactions take twice as long.
    (tmp_path / "paces.csv").write_text(
        "design,workload,start_s,transaction_us,crash_us\nsilo,array,0.1,0,0\n"
    )
    sweep = """
    designs = ["silo"]
    workloads = ["array"]
    threads = [1]
    transactions = {transactions}
    from_start = true
    seeds = [1, 2, 3, 4, 5, 6]
    set = {{ "workload.footprint_bytes" = "1 MB" }}
    """
    run = ("run", "--design", "silo", "--workload", "array", "--threads", "1", "--no-store")
    footprint = ("--set", "workload.footprint_bytes=1MB")
    started = time.monotonic()
    timed = separate(*run, "--transactions", "1000000", *footprint)
    assert timed.returncode == 0, timed.stderr
    # Whether an element runs them one after the other or two at a time: more than a minute in all.
    each = 1_000_000 * 25 / (time.monotonic() - started)
    (tmp_path / "sweep.toml").write_text(sweep.format(transactions=int(each)))
    words = ("sweep", "sweep.toml", "--format", "json", "--store", "there", "--on", "slurm")
    environment = on_slurm(nodes, SBATCH_TIMELIMIT="1", GRAVEN_PACES=str(tmp_path / "paces.csv"))
    process = begun(tmp_path, *words, environment=environment)
    await_results(tmp_path / "there", 1, process, nodes.told)
    (first,) = (tmp_path / "there" / "jobs").iterdir()
    log = first / "logs" / "0.log"
    while "DUE TO TIME LIMIT" not in log.read_text():
        assert process.poll() is None, process.communicate()
        time.sleep(0.2)
    had = results_in(tmp_path / "there")
    assert 0 < had < 6, "the limit came when some were done and some were not"
    time.sleep(2)
    assert "SIGTERM; what is left is submitted again" in log.read_text()
    code, out, err = ended(process)
    assert code == 0, err
    assert len(json.loads(out)) == 6
    assert separate("results", "verify", "--store", "there").returncode == 0


@slurm
@pytest.mark.long
def test_what_slurm_refuses_or_kills_each_time_is_named(tmp_path, nodes):
    words = written(tmp_path)
    environment = on_slurm(nodes, SBATCH_PARTITION="none-such")
    code, _, err = ended(begun(tmp_path, *words, "--on", "slurm", environment=environment))
    assert code == 1
    assert "Slurm refuses it" in err
    assert "Invalid partition name specified" in err


@slurm
def test_without_slurm_its_name_is_said(separate, tmp_path):
    done = separate(*written(tmp_path), "--on", "slurm", PATH="/nowhere")
    assert done.returncode == 2
    assert "there is no `sbatch` here" in done.stderr
