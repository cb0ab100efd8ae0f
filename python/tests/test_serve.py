"""The explorer: pages, addresses that say all, what is refused, and that nothing is written."""

from __future__ import annotations

import contextlib
import html
import itertools
import json
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from browsers import IS_THERE
from conftest import start, waits
from test_report import Page
from werkzeug.datastructures import MultiDict
from werkzeug.test import Client

import graven as package
from graven._engine import ConfigError
from graven.basics.errors import StoreError
from graven.serve.app import FILES, PAGES, Explorer
from graven.serve.contents import Stock, settings_of, settings_text
from graven.serve.server import listen
from graven.serve.view import View
from graven.store import Store
from graven.store.running import EXPIRES_SECONDS, FOLDER, Announcement, Running, running
from graven.store.upkeep import clean

ASKED = {"from_start": True, "transactions": 100, "threads": [1, 4]}


@pytest.fixture(scope="module")
def stocked(tmp_path_factory):
    """A store with 16 simulations and one crash; each test gets a copy of it."""
    store = tmp_path_factory.mktemp("stocked") / "store"
    package.compare("base,silo", "array,btree", store=store, **ASKED)
    slow = {"pm.write_ns": 300}
    package.compare("base,silo", "array,btree", store=store, settings=slow, **ASKED)
    package.crash("silo", "btree", transactions=10, store=store)
    return store


@pytest.fixture
def folder(stocked, tmp_path):
    """A store with 16 simulations and one crash."""
    return Path(shutil.copytree(stocked, tmp_path / "store"))


@pytest.fixture
def client(folder):
    return Client(Explorer(Stock(folder)))


def text_of(response, status=200):
    text = response.get_data(as_text=True)
    assert response.status_code == status, text
    return text


def problem(response, status=400):
    found = re.search(r'role="alert">(.*?)</p>', text_of(response, status), re.DOTALL)
    return html.unescape(found[1])


def contents(folder):
    return {
        path.relative_to(folder): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def links(text):
    return [html.unescape(found) for found in re.findall(r'(?:href|src|srcset)="(/[^"]*)"', text)]


# ---- pages -------------------------------------------------------------------------------------


def test_every_link_of_every_page_leads_somewhere_and_every_page_is_well_formed(client):
    seen, left = set(), ["/"]
    while left:
        address = left.pop()
        if address in seen:
            continue
        seen.add(address)
        response = client.get(address)
        assert response.status_code == 200, address
        if response.mimetype == "text/html":
            page = Page(text_of(response))
            assert len(page.ids) == len(set(page.ids))
            left += links(response.text)
    kinds = {address.split("?")[0].split("/")[1] for address in seen}
    assert kinds == {"", "plot", "results", "progress", "files", *(
        f"plot.{form}" for form in ("svg", "pdf", "png", "csv"))}  # fmt: skip
    assert sum(address.startswith("/results/") for address in seen) == 17


def test_the_overview_says_what_there_is(client):
    text = text_of(client.get("/"))
    for part in ("17 results", "2 designs", "2 workloads", "1 machine", "1 build", "(in use)"):
        assert part in text
    assert text.count("/results/") == 12


def test_the_list_is_narrowed_and_turned_over(client, monkeypatch):
    monkeypatch.setattr("graven.serve.app.PER_PAGE", 5)
    text = text_of(client.get("/results?design=silo&kind=simulation"))
    assert "8 results" in text
    assert "page 1 of 2" in text
    assert text.count("silo on") == 5
    assert "base on" not in text
    [older] = [link for link in links(text) if "page=2" in link]
    assert text_of(client.get(older)).count("silo on") == 3


def test_a_simulation_has_its_statistics_and_its_configuration(client, folder):
    entry = next(e for e in Stock(folder).simulations.entries if e.settings)
    text = text_of(client.get(f"/results/{entry.digest}"))
    stored = Store(folder).record(entry.digest)
    stats = json.loads(stored.result)["stats"]
    for name in stats:
        assert f"<code>{name}</code>" in text
    assert "pm.write_ns=300" in text
    assert "What is counted" not in text
    row = re.search(r'<tr class="set"><th scope="row"><code>pm.write_ns</code>.*?</tr>', text)[0]
    assert ">300 " in row


def test_a_result_of_another_kind_is_shown_whole(client, folder):
    [entry] = [e for e in Stock(folder).every.entries if e.kind == "crash"]
    text = text_of(client.get(f"/results/{entry.digest}"))
    assert "What came of it" in text
    assert "recoveries" in text


# ---- plots -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bars", "lines", "traffic", "energy", "latency"])
def test_the_address_says_all_of_a_view(client, kind):
    text = text_of(client.get(f"/plot?kind={kind}&design=silo&design=base"))
    address = html.unescape(re.search(r'readonly value="([^"]*)"', text)[1])
    again = text_of(client.get(address))
    assert again == text
    assert set(re.findall(r"[?&](\w+)=", address)) >= {
        "kind", "machine", "design", "workload", "threads", "transactions", "seed", "set", "build",
    }  # fmt: skip
    picture = address.replace("/plot?", "/plot.svg?")
    assert client.get(picture).data == client.get(picture).data


def test_a_view_keeps_what_was_asked_for(client):
    query = (
        "kind=bars&machine=silo&design=silo&workload=btree&threads=1&threads=4&transactions=100"
        "&seed=1&set=&set=pm.write_ns%3D300&metric=ipc&baseline=absolute&width=5&theme=dark"
    )
    stock = client.application.stock
    pairs = MultiDict(part.split("=") for part in query.replace("%3D", "%").split("&"))
    fixed = MultiDict((name, value.replace("%", "=")) for name, value in pairs.items(multi=True))
    view = View.of(fixed, stock)
    assert view.query().startswith(query.split("&metric")[0])
    assert view.query().endswith("&metric=ipc&baseline=absolute&width=5&theme=dark")
    text = text_of(client.get(f"/plot?{query}"))
    assert "pm.write_ns = 150.0" in text or "pm.write_ns = 150" in text
    assert client.get(f"/plot.svg?{query}").text.count('width="360pt"') == 1, "5 inches"


def test_the_numbers_are_those_of_graven_plot(quick, client, folder, tmp_path):
    done = quick(
        "plot", "bars", "--from-start", "--designs", "base,silo", "--workloads", "array,btree",
        "--threads", "1,4", "--transactions", "100", "--store", str(folder), "--out", "bars.svg",
        "--width", "text",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    query = "design=base&design=silo&threads=1&threads=4&set="
    assert client.get(f"/plot.csv?{query}").text == (tmp_path / "bars.csv").read_text()
    assert client.get(f"/plot.svg?{query}").data == (tmp_path / "bars.svg").read_bytes()


def test_files_have_their_types(client):
    begins = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG", "csv": b"metric,"}
    for form, begin in begins.items():
        response = client.get(f"/plot.{form}")
        assert response.data.startswith(begin)
        assert ("attachment" in response.headers.get("Content-Disposition", "")) == (form != "svg")
    assert "plot.svg, plot.pdf" in problem(client.get("/plot.exe"), 404)


def test_what_is_missing_is_said_with_the_command_that_makes_it(quick, client, folder):
    text = text_of(client.get("/plot?design=ideal&design=silo&threads=4&set="))
    assert "2 of 4 results are not in the store" in text
    [command] = re.findall(r"<code>(graven compare[^<]*)</code>", text)
    assert "--designs ideal --workloads array,btree" in command
    done = quick(*html.unescape(command).split()[1:])
    assert done.returncode == 0, done.stderr
    after = Client(Explorer(Stock(folder)))
    assert "not in the store" not in text_of(after.get("/plot?design=ideal&design=silo&threads=4"))


def test_several_settings_are_panels(client):
    text = text_of(client.get("/plot?set=&set=pm.write_ns%3D300&threads=4"))
    assert len(re.findall(r"<caption>pm\.write_ns = ", text)) == 2


def test_settings_are_the_same_text_both_ways():
    settings = {"pm.write_ns": "300", "workload.element_bytes": "4 KB"}
    assert settings_of(settings_text(settings)) == settings
    assert settings_of("") == {}


# ---- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("/plot?kind=pie", "kind: unknown name `pie`; known are bars, lines"),
        ("/plot?design=sillo", "design: unknown name `sillo`; did you mean silo"),
        ("/plot?workload=none", "workload: unknown name `none`"),
        ("/plot?machine=none", "machine: unknown name `none`"),
        ("/plot?threads=0", "threads: `0` is not allowed; a whole number, at least 1, is"),
        ("/plot?threads=²", "threads: `²` is not allowed"),
        ("/plot?seed=-1", "seed: `-1` is not allowed; a whole number, at least 0, is"),
        ("/plot?seed=18446744073709551616", "is not allowed"),
        ("/plot?transactions=1&transactions=2", "transactions: one value is allowed"),
        ("/plot?kind=bars&kind=lines", "kind: one value is allowed; the address has 2"),
        ("/plot?set=pm.write_ns", "is not of the form SECTION.KEY=VALUE"),
        ("/plot?set=pm.writes%3D3", "key: unknown name `pm.writes`"),
        ("/plot?build=0000", "build: unknown name `0000`"),
        ("/plot?baseline=none", "baseline: unknown name `none`"),
        ("/plot?width=huge", "width"),
        ("/plot?theme=pink", "theme"),
        ("/plot?colour=red", "parameter of the address: unknown name `colour`; known are kind"),
        ("/plot?metric=ips", "unknown statistic `ips`"),
        ("/plot?kind=traffic&metric=ipc", "known are media_write_requests"),
        ("/plot?kind=lines&over=pm.write_ns", "`pm.write_ns` does not vary"),
        ("/plot.svg?kind=pie", "kind: unknown name `pie`"),
        ("/results?design=none", "design: unknown name `none`"),
        ("/results?page=9", "page: `9` is not allowed; 1 to 1 are"),
        ("/results?page=x", "page: `x` is not allowed"),
        ("/?x=1", "parameter of the address"),
        (f"/plot?set={'x' * 40000}", "32,768 are allowed"),
    ],
)
def test_an_address_that_is_wrong_is_refused_with_what_is_allowed(client, address, message):
    assert message in problem(client.get(address))


@pytest.mark.parametrize(
    "address",
    ["/nothing", "/results/0123", "/files/app.py", "/files/..%2Fapp.py", "/files/../app.py",
     "/..%2f..%2fetc/passwd", "/files/%2e%2e/%2e%2e/catalogue.py", "//etc/passwd", "/plot/x"],
)  # fmt: skip
def test_what_is_not_there_is_a_readable_page(client, address):
    assert "there " in problem(client.get(address), 404)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_reading_is_allowed(client, method):
    response = client.open("/plot", method=method)
    assert "GET and HEAD are" in problem(response, 405)
    assert response.headers["Allow"] == "GET, HEAD"


def test_head_is_get_without_the_page(client):
    response = client.head("/")
    assert (response.status_code, response.data) == (200, b"")


def test_what_an_address_says_is_no_markup(client):
    text = text_of(client.get("/plot?design=%3Cscript%3Ealert(1)%3C/script%3E"), 400)
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text


def test_another_host_is_refused_where_names_are_known(folder):
    client = Client(Explorer(Stock(folder), {"localhost", "127.0.0.1", "::1"}))
    for host in ("localhost", "127.0.0.1:8321", "[::1]:80", "LOCALHOST:1"):
        assert client.get("/", headers={"Host": host}).status_code == 200, host
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8321", "[::2]",
                 "evil.example@localhost:x", "[x"):  # fmt: skip
        for address in (*PAGES, "/plot.svg", "/files/page.css"):
            response = client.get(address, headers={"Host": host})
            assert response.status_code == 400, (host, address)
            assert "17 results" not in response.text
    anybody = Client(Explorer(Stock(folder)))
    assert anybody.get("/", headers={"Host": "tower.example"}).status_code == 200


def test_every_answer_forbids_what_is_elsewhere(client):
    for address in ("/", "/plot", "/plot.svg", "/nothing", "/plot?x=1", "/files/serve.js"):
        policy = client.get(address).headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "http" not in policy
        assert "unsafe" not in policy
    for name in FILES:
        assert not re.search(r"https?://|@import", client.get(f"/files/{name}").text)
    for address in PAGES:
        text = client.get(address).text.replace('value="http://localhost/plot', "")
        assert not re.search(r'(?:src|href|action)="(?!/|data:)|style=', text)


# ---- nothing is written ------------------------------------------------------------------------


@pytest.mark.parametrize("indexed", [True, False])
def test_the_store_stays_as_it_is(folder, indexed):
    if not indexed:
        for index in folder.glob("index-*"):
            index.unlink()
    before = contents(folder)
    times = {path: path.stat().st_mtime_ns for path in (folder, *folder.iterdir())}
    client = Client(Explorer(Stock(folder)))
    for address in (*PAGES, "/plot.svg", "/plot.pdf", "/plot?design=ideal", "/nothing"):
        client.get(address)
    for entry in client.application.stock.every.entries:
        client.get(f"/results/{entry.digest}")
    client.application.stock.close()
    assert contents(folder) == before
    assert {path: path.stat().st_mtime_ns for path in (folder, *folder.iterdir())} == times


def test_a_store_that_may_only_be_read_is_read(folder):
    def allow(mode_of_folders, mode_of_files):
        for path in (folder, *folder.rglob("*")):
            path.chmod(mode_of_folders if path.is_dir() else mode_of_files)

    allow(0o555, 0o444)
    try:
        assert "17 results" in text_of(Client(Explorer(Stock(folder))).get("/"))
    finally:
        allow(0o755, 0o644)


def test_an_index_that_is_damaged_or_of_another_version_is_passed_over(folder):
    [index] = folder.glob("index-*.sqlite")
    sound = index.read_bytes()
    for content in (b"", b"no database", sound[: len(sound) // 2], sound[:60] + b"\x07\0\0\0\7"):
        index.write_bytes(content)
        stock = Stock(folder)
        assert len(stock.every.entries) == 17
        assert index.read_bytes() == content
        stock.close()


def test_nothing_is_simulated(client, monkeypatch):
    def refuse(*_):
        raise AssertionError("something was simulated")

    monkeypatch.setattr("graven.running.job.Job.simulation", refuse)
    text_of(client.get("/plot?design=ideal&design=silo"))
    text_of(client.get("/"))


# ---- while others write ------------------------------------------------------------------------


def test_what_is_added_put_together_or_dropped_is_shown(quick, tmp_path, monkeypatch):
    monkeypatch.setattr("graven.serve.contents.REFRESH_SECONDS", 0.0)
    folder = tmp_path / "graven-results" / "store"
    for design in ("base", "silo"):
        quick("compare", "--designs", design, "--workloads", "array,btree", "--no-report")
    stock = Stock(folder)
    client = Client(Explorer(stock))
    assert "4 results" in text_of(client.get("/"))
    quick("compare", "--designs", "ideal", "--workloads", "array", "--no-report")
    assert "5 results" in text_of(client.get("/"))
    assert "3 designs" in text_of(client.get("/"))
    assert clean(Store(folder), lambda record: "btree" not in record.result).kept == 3
    assert "3 results" in text_of(client.get("/"))
    assert "btree" not in text_of(client.get("/plot"))
    for entry in stock.every.entries:
        assert client.get(f"/results/{entry.digest}").status_code == 200


def test_results_are_read_while_writers_add_some(tmp_path, monkeypatch):
    monkeypatch.setattr("graven.serve.contents.REFRESH_SECONDS", 0.0)
    folder = tmp_path / "store"
    package.compare("base", "array", transactions=10, threads=1, store=folder)
    client = Client(Explorer(Stock(folder)))
    over = threading.Event()

    def write(design):
        for seed in range(2, 12):
            asked = {"transactions": 10, "threads": 1, "seed": seed, "store": folder}
            package.compare(design, "array", **asked)

    def read():
        while not over.is_set():
            for address in ("/", "/plot", "/results"):
                found.append(client.get(address).status_code)

    found: list[int] = []
    writers = [threading.Thread(target=write, args=[design]) for design in ("base", "silo")]
    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in (*writers, *readers):
        thread.start()
    for thread in writers:
        thread.join()
    over.set()
    for thread in readers:
        thread.join()
    assert set(found) == {200}
    assert "21 results" in text_of(client.get("/"))


# ---- stores that are none ----------------------------------------------------------------------


def test_a_store_that_is_not_there_appears_when_it_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr("graven.serve.contents.REFRESH_SECONDS", 0.0)
    folder = tmp_path / "store"
    client = Client(Explorer(Stock(folder)))
    for address in PAGES:
        assert "There is no store" in text_of(client.get(address)) or address == "/progress"
    assert problem(client.get("/plot.svg")) == "there are no simulations to draw"
    assert not folder.exists()
    package.compare("base", "array", transactions=10, threads=1, store=folder)
    assert "1 result<" in text_of(client.get("/"))


def test_an_empty_store_says_so(tmp_path):
    Store(tmp_path).ensure()
    client = Client(Explorer(Stock(tmp_path)))
    assert "0 results" in text_of(client.get("/"))
    assert "There are no simulations yet" in text_of(client.get("/plot"))


def test_a_folder_that_is_something_else_is_refused(quick, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("text")
    done = quick("serve", "--store", "docs", "--port", "0")
    assert done.returncode == 2
    assert "docs is a folder with something else than results" in done.stderr
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer" / "store.json").write_text('{"schema": 99}')
    done = quick("serve", "--store", "newer", "--port", "0")
    assert done.returncode == 2
    assert "store of schema 99" in done.stderr
    with pytest.raises(StoreError, match="schema 99"):
        Stock(tmp_path / "newer")


def test_results_of_another_build_are_shown_as_such(folder, monkeypatch):
    monkeypatch.setattr("graven.serve.view.build", lambda: "f" * 16)
    monkeypatch.setattr("graven.serve.contents.build", lambda: "f" * 16)
    client = Client(Explorer(Stock(folder)))
    text = text_of(client.get("/plot?design=ideal&design=silo&threads=4&set="))
    assert "They are of another build than the one in use" in text
    assert "graven compare" not in text
    text = text_of(client.get("/plot?build=current"))
    assert "results are not in the store" in text
    assert "graven compare" in text


def test_a_seed_beyond_what_sqlite_holds_is_shown(tmp_path):
    folder = tmp_path / "store"
    package.compare("base", "array", transactions=10, threads=1, seed=(1 << 64) - 1, store=folder)
    client = Client(Explorer(Stock(folder)))
    text = text_of(client.get("/plot"))
    assert "18446744073709551615" in text
    assert "not in the store" not in text


# ---- progress ----------------------------------------------------------------------------------

SAID = Running(
    "graven sweep sweep.toml", "simulations", platform.node(), os.getpid(),
    "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00", 30, 120, 0.25,
    ("silo on btree ×4",), 10.0, 65.0, None,
)  # fmt: skip


def say(folder, name="a.json", **changes):
    now = datetime.now(UTC).isoformat(timespec="seconds")
    (folder / FOLDER).mkdir(exist_ok=True)
    said = replace(SAID, **{"said_at": now, **changes})
    (folder / FOLDER / name).write_text(json.dumps(asdict(said)))


def test_running_commands_are_shown(client, folder):
    assert "No command is making results" in text_of(client.get("/progress"))
    say(folder, checked=5)
    for address in ("/progress", "/"):
        text = text_of(client.get(address))
        for part in ("graven sweep sweep.toml", "25%", "30 of 120 simulations", "3/s",
                     "about 1 min 5 s left", "silo on btree ×4", "5 power failures"):  # fmt: skip
            assert part in text, part


def test_what_a_killed_command_left_soon_counts_no_more(folder):
    say(folder)
    assert len(running(folder)) == 1
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    say(folder, process=ended.pid)
    assert running(folder) == []
    long_ago = datetime.now(UTC) - timedelta(seconds=EXPIRES_SECONDS + 2)
    say(folder, host="another", said_at=long_ago.isoformat())
    assert running(folder) == []
    say(folder, host="another", process=ended.pid)
    assert len(running(folder)) == 1, "another host's processes are not known"


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", "null", '{"command": 1}', json.dumps(asdict(SAID) | {"said_at": "now"}),
     json.dumps(asdict(SAID) | {"done": "x"}), json.dumps(asdict(SAID) | {"jobs": None}),
     json.dumps(asdict(SAID) | {"more": 1}), json.dumps(asdict(SAID) | {"said_at": "2026-01-01"})],
)  # fmt: skip
def test_a_file_of_progress_that_is_damaged_is_passed_over(client, folder, content):
    say(folder)
    (folder / FOLDER / "b.json").write_text(content)
    assert len(running(folder)) == 1
    assert text_of(client.get("/progress"))
    with Announcement(folder, "simulations"):
        assert not (folder / FOLDER / "b.json").exists(), "a command takes it away"
        assert (folder / FOLDER / "a.json").exists()


def test_a_command_says_how_far_it_is_until_it_ends(quick, tmp_path):
    before = quick("compare", "--designs", "base", "--workloads", "array", "--no-report")
    assert before.returncode == 0, before.stderr
    folder = tmp_path / "graven-results" / "store"
    command = ("compare", "--designs", "base,silo", "--workloads", "array,btree", "--no-report")
    process = start(tmp_path, *command, **waits(tmp_path))
    try:
        deadline = time.monotonic() + 60
        while not (found := running(folder)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        [said] = found
        assert said.command == "graven compare --designs base,silo --workloads array,btree " + (
            "--no-report"
        )
        assert (said.process, said.total, said.noun) == (process.pid, 3, "simulations")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert list((folder / FOLDER).iterdir()) == []


def test_results_are_the_same_whether_progress_can_be_said_or_not(quick, tmp_path):
    command = ("compare", "--designs", "base,silo", "--workloads", "array", "--format", "json")
    blocked = tmp_path / "blocked"
    Store(blocked / "graven-results" / "store").ensure()
    (blocked / "graven-results" / "store" / FOLDER).write_text("a file where the folder would be")
    plain = tmp_path / "plain"
    plain.mkdir()
    ran = [quick(*command, cwd=where) for where in (blocked, plain)]
    assert ran[0].returncode == ran[1].returncode == 0, ran[0].stderr
    assert ran[0].stdout == ran[1].stdout


# ---- the command -------------------------------------------------------------------------------


@contextlib.contextmanager
def served(folder, *arguments):
    process = start(folder, "serve", "--store", str(folder), "--port", "0", *arguments)
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_the_command_prints_its_address_answers_and_ends_quietly(folder):
    with served(folder) as (process, url):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url)
        with urllib.request.urlopen(url) as answer:
            assert b"17 results" in answer.read()
        asked = urllib.request.Request(url, headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(asked)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr.read() == "graven: Ctrl-C ends it\n"


def test_sigterm_ends_it_with_its_code(folder):
    with served(folder) as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143


def test_a_port_in_use_is_refused_by_name(quick, folder):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = quick("serve", "--store", str(folder), "--port", str(port))
    assert done.returncode == 2
    assert f"--port: cannot listen on 127.0.0.1, port {port}: " in done.stderr
    assert "--port 0 takes one that is free" in done.stderr


def test_a_host_that_is_not_this_one_is_refused(folder):
    stock = Stock(folder)
    with pytest.raises(ConfigError, match="--host: `no such host` is no name or address"):
        listen(stock, "no such host", 0)
    with pytest.raises(ConfigError, match=r"--port: cannot listen on 192\.0\.2\.1"):
        listen(stock, "192.0.2.1", 0)


def test_hosts_are_checked_on_the_loopback_address_alone(folder):
    stock = Stock(folder)
    for host, checked in (("127.0.0.1", True), ("localhost", True), ("0.0.0.0", False)):
        listening = listen(stock, host, 0)
        assert (listening.server.app.hosts is not None) == checked
        listening.server.server_close()


def test_options_are_completed_as_of_other_commands(quick):
    done = quick("serve", "--help")
    assert done.returncode == 0
    for option in ("--host", "--port", "--open", "--store"):
        assert option in done.stdout


# ---- in a browser ------------------------------------------------------------------------------

in_browser = pytest.mark.skipif(
    not IS_THERE and os.environ.get("GRAVEN_BROWSER") != "required",
    reason="Playwright and Chromium are not there",
)

LONG = "a-very-long-name-of-a-machine-that-goes-on-and-on-and-on-beyond-any-column-of-a-phone.toml"


@pytest.fixture
def site(tmp_path):
    """The explorer of a store with a machine of a very long name, a command that runs, and more."""
    store = tmp_path / "store"
    package.compare("base,silo", "array,btree", store=store, **ASKED)
    (tmp_path / LONG).write_text("[pm]\nwrite_ns = 200\n")
    package.compare("base,silo", "array", machine=str(tmp_path / LONG), store=store, **ASKED)
    say(store, jobs=("silo on a-workload-with-a-name-" + "x" * 80,))
    listening = listen(Stock(store), "127.0.0.1", 0)
    thread = threading.Thread(target=listening.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield listening.url, store
    listening.server.shutdown()
    thread.join()


def addresses(site):
    url, store = site
    digest = Stock(store).every.entries[0].digest
    return [url + at for at in ("", "plot", "plot?machine=silo&design=silo&design=ideal", "results",
                                f"results/{digest}", "progress", "plot?kind=pie")]  # fmt: skip


@in_browser
@pytest.mark.parametrize(("size", "scheme"), [*itertools.product([1280, 390], ["light", "dark"])])
def test_pages_fit_are_accessible_and_load_nothing_from_elsewhere(browser, site, size, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_page(viewport={"width": size, "height": 900}, color_scheme=scheme)
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    for address in addresses(site):
        said.clear()
        page.goto(address)
        page.wait_for_load_state("load")
        if "pie" not in address:
            assert said == [], address
        wide = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide <= 0, address
        found = Axe().run(page)
        assert found.violations_count == 0, f"{address}: {found.generate_report()}"
    assert [url for url in asked if not url.startswith((site[0], "data:"))] == []
    page.close()


@in_browser
def test_a_choice_is_shown_at_once_and_the_way_back_leads_back(browser, site):
    page = browser.new_page()
    page.goto(site[0] + "plot?machine=silo&threads=4")
    before = page.url
    page.locator("#choose-kind").select_option("traffic")
    page.locator(".plot img[src*='kind=traffic']").wait_for()
    assert "kind=traffic" in page.url
    page.locator("input[name=design][value=base]").uncheck()
    page.locator(".plot img:not([src*='design=base'])").wait_for()
    assert page.evaluate("document.activeElement.name") == "design"
    page.go_back()
    page.go_back()
    page.locator(".plot img[src*='kind=bars']").wait_for()
    assert page.url == before
    page.close()


@in_browser
def test_without_scripts_the_form_works(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site[0] + "plot?machine=silo&threads=4")
    page.locator("#choose-kind").select_option("energy")
    page.get_by_role("button", name="Show").click()
    assert "kind=energy" in page.url
    assert page.locator(".plot img").get_attribute("src").startswith("/plot.svg?kind=energy")
    context.close()


@in_browser
def test_progress_goes_on_by_itself(browser, site):
    page = browser.new_page()
    page.goto(site[0] + "progress")
    assert page.get_by_text("30 of 120 simulations").is_visible()
    say(site[1], done=90, fraction=0.75)
    page.get_by_text("90 of 120 simulations").wait_for(timeout=10_000)
    (site[1] / FOLDER / "a.json").unlink()
    page.get_by_text("No command is making results").wait_for(timeout=10_000)
    page.close()


@in_browser
def test_statistics_are_filtered(browser, site):
    page = browser.new_page()
    page.goto(addresses(site)[4])
    rows = page.locator("table.statistics tbody tr:visible")
    every = rows.count()
    page.get_by_label("Filter statistics").fill("media_write, ipc")
    shown = rows.locator("th").all_inner_texts()
    assert 0 < len(shown) < every
    page.get_by_label("Filter statistics").fill("")
    assert rows.count() == every
    page.close()
