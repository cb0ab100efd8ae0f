"""The result store: nothing acknowledged is lost, nothing damaged is believed."""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graven.basics.errors import OutputError, StoreError
from graven.store import DamagedRecord, Request, Store, StoredRecord, disk
from graven.store.index import QueryError
from graven.store.store import ABOUT, SEGMENTS
from graven.store.stored import SCHEMA, NewerRecord, digest_of
from graven.store.upkeep import clean, merge, verify

HERE = Path(__file__).parent

FEW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def request(number, **more):
    return Request("simulation", {"version": "1", "spec": {"seed": number}, **more})


def result(number):
    return json.dumps({"stats": {"cycles": number * 7}, "text": f"of {number}"})


def filled(folder, numbers, **more):
    store = Store(folder)
    for number in numbers:
        store.put(request(number, **more), result(number), 0.5)
    store.close()
    return store


def held(folder, numbers, warn=None):
    """Which of these results a store that is opened anew has; none may be another one."""
    store = Store(folder, warn)
    found = {number: store.get(request(number).digest) for number in numbers}
    store.close()
    assert all(text in (None, result(number)) for number, text in found.items())
    return {number for number, text in found.items() if text is not None}


def the_segments(folder):
    return sorted((folder / SEGMENTS).glob("*.tsv"))


# ---- records -------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(), st.dictionaries(st.text(), JSON, max_size=4), JSON, st.none() | st.floats(0, 1e9))
@FEW
def test_a_record_is_read_as_it_was_written(kind, asked, came, host_s):
    text = json.dumps(came, ensure_ascii=False, indent=2)
    record = StoredRecord.now(Request(kind, asked), text, host_s)
    line = record.line()
    assert line.count(b"\n") == 1
    assert line.isascii()
    again = StoredRecord.parse(line)
    assert json.loads(again.result) == came
    assert again.request == record.request
    assert again.request.digest == record.request.digest
    assert again.line() == line


@pytest.mark.parametrize("written", ['"of §III-C"', '"€ 𝄞"', '{\n  "d":\t"e"\n}', '"\\u00a7"'])
def test_a_result_keeps_its_digits(written):
    text = '{"a":1.50,"b":1e3,"c":0.1000,"d":%s}' % written  # noqa: UP031 - braces
    result = StoredRecord.parse(StoredRecord.now(request(1), text, None).line()).result
    assert result.startswith('{"a":1.50,"b":1e3,"c":0.1000,"d":')
    assert json.loads(result) == json.loads(text)
    if text.isascii() and "\n" not in text:
        assert result == text


def test_the_digest_is_of_all_that_was_asked_for():
    asked = {"spec": {"design": "silo", "seed": 1}}
    assert digest_of("simulation", asked) != digest_of("crash", asked)
    other = {"spec": {"design": "silo", "seed": 2}}
    assert digest_of("simulation", asked) != digest_of("simulation", other)
    turned = {"spec": {"seed": 1, "design": "silo"}}
    assert digest_of("simulation", asked) == digest_of("simulation", turned)


# ---- keeping and finding -------------------------------------------------------------------------


def test_what_is_kept_is_found_by_this_process_and_the_next(tmp_path):
    store = Store(tmp_path / "store")
    assert store.get(request(1).digest) is None
    assert not (tmp_path / "store").exists(), "asking makes nothing"
    store.put(request(1), result(1), 0.25)
    assert store.get(request(1).digest) == result(1)
    assert held(tmp_path / "store", [1, 2]) == {1}
    assert Store(tmp_path / "store").record(request(1).digest).host_s == 0.25


def test_two_stores_see_what_the_other_adds(tmp_path):
    first, second = Store(tmp_path), Store(tmp_path)
    first.put(request(1), result(1))
    second.put(request(2), result(2))
    first.refresh()
    second.refresh()
    for store in (first, second):
        assert store.missing(request(n).digest for n in (1, 2, 3)) == 1
    assert len(the_segments(tmp_path)) == 2, "each writer has a segment of its own"


def test_queries_see_designs_settings_and_statistics(tmp_path):
    store = Store(tmp_path)
    spec = {"design": "silo", "workload": "hash", "machine": {"preset": "silo"}, "seed": 2**63,
            "set": [["pm.write_ns", "300"]]}  # fmt: skip
    ran = {"threads": 8, "transactions": 100, "stats": {"cycles": 12, "ipc": 0.5, "digest": "ab"}}
    store.put(Request("simulation", {"spec": spec, "build": "b"}), json.dumps(ran), 1.0)
    store.refresh()
    row = store.index.ask(
        "SELECT design, workload, machine, threads, transactions, seed, build,"
        " settings ->> '$.\"pm.write_ns\"' FROM results"
    )
    assert row == [("silo", "hash", "silo", 8, 100, str(2**63), "b", "300")]
    values = dict(store.index.ask("SELECT name, value FROM statistics"))
    assert values == {"cycles": 12, "ipc": 0.5, "digest": "ab"}


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_statistic_that_is_no_number_is_null_in_queries(tmp_path, value):
    store = Store(tmp_path)
    store.put(request(1), '{"stats":{"cycles":7,"ratio":%s}}' % value)  # noqa: UP031 - braces
    store.refresh()
    answer = store.index.query("SELECT name, value FROM statistics ORDER BY 1")
    assert answer.rows == [("cycles", 7), ("ratio", None)]


def test_the_same_result_twice_is_one(tmp_path):
    filled(tmp_path, [1, 2])
    filled(tmp_path, [2, 3])
    store = Store(tmp_path)
    assert sorted(record.request.asked["spec"]["seed"] for record in store.records()) == [1, 2, 3]
    assert len(store.index.ask("SELECT * FROM results")) == 3
    found = verify(store)
    assert (found.segments, found.records, found.again) == (2, 3, 1)
    assert found.is_sound


def test_results_that_contradict_each_other_are_found(tmp_path):
    filled(tmp_path, [1])
    Store(tmp_path).put(request(1), result(2))
    found = verify(Store(tmp_path))
    assert found.contradictions == [request(1).digest]
    assert not found.is_sound


# ---- damage --------------------------------------------------------------------------------------


@given(st.data())
@FEW
def test_whatever_happens_to_a_segment_no_wrong_result_is_returned(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("store")
    filled(folder, range(5))
    [segment] = the_segments(folder)
    content = bytearray(segment.read_bytes())
    if data.draw(st.booleans(), "indexed before"):
        assert held(folder, range(5)) == set(range(5))
    lines = bytes(content).splitlines(keepends=True)
    start = data.draw(st.integers(0, len(content) - 1), "where")
    kind = data.draw(st.sampled_from(["bit", "bytes", "cut", "hole", "lost", "doubled"]), "what")
    if kind == "bit":
        content[start] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "bytes":
        noise = data.draw(st.binary(min_size=1, max_size=300))
        content[start : start + len(noise)] = noise
    elif kind == "cut":
        del content[start:]
    elif kind == "hole":
        end = min(len(content), start + 4096)
        content[start:end] = bytes(end - start)
    else:
        end = data.draw(st.integers(start, len(content)))
        content[start:end] = b"" if kind == "lost" else content[start:end] * 2
    segment.write_bytes(content)
    whole = {n for n, line in enumerate(lines) if line in bytes(content).splitlines(keepends=True)}
    warned = []
    there = held(folder, range(5), warned.append)
    assert there <= whole
    if kind in ("bit", "cut") or not (folder / SEGMENTS).exists():
        assert there == whole, "one damaged record takes no other with it, but for a lost end"
    # The lost ones are made again, and the store goes on.
    filled(folder, set(range(5)) - there)
    assert held(folder, range(5)) == set(range(5))


def test_every_byte_of_a_record_is_checked():
    line = StoredRecord.now(request(1), result(1), 0.5).line()
    for at, flip in itertools.product(range(len(line)), (1, 0x20, 0x80)):
        changed = bytearray(line)
        changed[at] ^= flip
        with pytest.raises(DamagedRecord):
            StoredRecord.parse(bytes(changed))
    for end in range(len(line)):
        with pytest.raises(DamagedRecord):
            StoredRecord.parse(line[:end])


def sealed(body):
    return hashlib.sha256(body).hexdigest().encode() + b"\t" + body + b"\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"{", b"["),
        (b'"schema":1,', b""),
        (b'"schema":1', b'"schema":"1"'),
        (b'"schema":1', b'"schema":' + b"[" * 100_000),
        (b'"kind":"simulation"', b'"kind":3'),
        (b'"asked":', b'"asked":7,"x":'),
        (b'"host_s":0.5', b'"host_s":"0.5"'),
        (b'"written_at":"2', b'"written_at":"x'),
        (b"seed", b"s\xe9ed"),
        (b'{"stats"', b'{"stats'),
    ],
)
def test_a_line_that_is_no_record_for_all_its_checksum_is_damaged(tmp_path, old, new):
    filled(tmp_path, [1, 2, 3])
    [segment] = the_segments(tmp_path)
    first, second, third = segment.read_bytes().splitlines(keepends=True)
    body = second.partition(b"\t")[2][:-1]
    assert old in body
    segment.write_bytes(first + sealed(body.replace(old, new, 1)) + third)
    for index in tmp_path.glob("index-*"):
        index.unlink()
    warned = []
    assert held(tmp_path, [1, 2, 3], warned.append) == {1, 3}
    assert "it has not what a re" in warned[0]
    clean(Store(tmp_path))
    filled(tmp_path, [2])
    assert held(tmp_path, [1, 2, 3]) == {1, 2, 3}


def test_a_query_of_a_damaged_index_is_asked_of_a_new_one(tmp_path):
    filled(tmp_path, range(3))
    held(tmp_path, range(3))
    ask = "SELECT value FROM statistics WHERE name = 'cycles' ORDER BY 1"
    for value in ("{", b"\xff\xfe"):
        with sqlite3.connect(*tmp_path.glob("index-*.sqlite")) as connection:
            changed = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
            connection.execute(f"UPDATE records SET statistics = {changed}", [value])
            connection.execute("UPDATE segments SET indexed = indexed")
        store = Store(tmp_path)
        assert store.index.query(ask).rows == [(0,), (7,), (14,)]
        store.close()
    with sqlite3.connect(*tmp_path.glob("index-*.sqlite")) as connection:
        connection.execute("UPDATE segments SET indexed = 'x'")
    assert held(tmp_path, range(3)) == {0, 1, 2}
    store = Store(tmp_path)
    before = store.index._connection
    with pytest.raises(QueryError, match="no such column: nope"):
        store.index.query("SELECT nope FROM results")
    with pytest.raises(QueryError, match="readonly"):
        store.index.query("DELETE FROM records")
    assert store.index._connection is not None
    assert before in (None, store.index._connection), "what is refused does not cost an index"


def test_damage_is_named_once_and_the_result_made_again(tmp_path):
    filled(tmp_path, [1, 2, 3])
    held(tmp_path, [1])  # indexes
    [segment] = the_segments(tmp_path)
    segment.write_bytes(segment.read_bytes().replace(b"of 2", b"of 7"))
    warned = []
    store = Store(tmp_path, warned.append)
    assert store.get(request(2).digest) is None
    assert store.get(request(2).digest) is None
    assert store.get(request(3).digest) == result(3)
    [text] = warned
    assert segment.name in text
    assert "checksum" in text
    assert [why for _, why in store.index.damaged()] == ["its checksum is of something else"]
    store.put(request(2), result(2))
    assert held(tmp_path, [1, 2, 3]) == {1, 2, 3}
    assert len(verify(Store(tmp_path)).damaged) == 1


def test_a_damaged_record_gives_way_to_another_of_the_same(tmp_path):
    filled(tmp_path, [1])
    filled(tmp_path, [1])
    held(tmp_path, [1])
    segment = the_segments(tmp_path)[0]
    segment.write_bytes(b"x" * segment.stat().st_size)
    assert held(tmp_path, [1]) == {1}


@pytest.mark.parametrize("content", [b"", b"garbage", b"SQLite format 3\0" + bytes(4000)])
def test_a_broken_index_is_made_anew(tmp_path, content):
    filled(tmp_path, range(20))
    held(tmp_path, range(20))
    [index] = tmp_path.glob("index-*.sqlite")
    index.write_bytes(content)
    assert held(tmp_path, range(20)) == set(range(20))


def test_an_index_that_is_damaged_inside_is_never_believed(tmp_path):
    filled(tmp_path, range(200))
    held(tmp_path, range(200))
    [index] = tmp_path.glob("index-*.sqlite")
    content = index.read_bytes()
    random.seed(1)
    for _ in range(20):
        changed = bytearray(content)
        for _ in range(20):
            changed[random.randrange(100, len(changed))] = random.randrange(256)
        index.write_bytes(changed)
        held(tmp_path, range(200))  # which looks at what is returned


def test_an_index_with_other_views_is_made_anew(tmp_path):
    filled(tmp_path, range(20))
    held(tmp_path, range(20))
    [index] = tmp_path.glob("index-*.sqlite")
    content = index.read_bytes()
    place = content.index(b"workload", content.index(b"CREATE VIEW results"))
    index.write_bytes(content[:place] + b"wmrkload" + content[place + 8 :])
    store = Store(tmp_path)
    store.refresh()
    assert len(store.index.query("SELECT workload FROM results").rows) == 20


def test_an_index_whose_damage_is_no_text_is_made_anew(tmp_path):
    """SQLite quotes what it finds in the schema, and Python cannot say it."""
    filled(tmp_path, range(20))
    held(tmp_path, range(20))
    [index] = tmp_path.glob("index-*.sqlite")
    content = index.read_bytes()
    assert content.count(b"CREATE VIEW results") == 1
    index.write_bytes(content.replace(b"CREATE VIEW results", b"CREATE \xdd\xff\xfeW results"))
    assert held(tmp_path, range(20)) == set(range(20))


@pytest.mark.parametrize("column", ["segment", "offset", "length"])
@pytest.mark.parametrize(
    "value", [-1, 0, 1, 1 << 62, 0.5, "x", "../x.tsv", "a\0b", b"x", "x" * 999]
)
def test_places_of_an_index_that_are_none_are_never_believed(tmp_path, column, value):
    filled(tmp_path, range(3))
    held(tmp_path, range(3))
    [index] = tmp_path.glob("index-*.sqlite")
    with sqlite3.connect(index) as connection:
        connection.execute(f"UPDATE OR IGNORE records SET {column} = ? WHERE rowid = 2", [value])
        [segment] = [path.name for path in the_segments(tmp_path)]
        connection.execute("INSERT INTO damaged VALUES (?, ?, ?, 'x')", [segment, value, value])
    assert {0, 2} <= held(tmp_path, range(3))
    store = Store(tmp_path)
    assert len(list(store.records())) >= 2
    store.index.damaged()


def test_an_index_of_another_version_is_made_anew(tmp_path):
    filled(tmp_path, [1])
    held(tmp_path, [1])
    [index] = tmp_path.glob("index-*.sqlite")
    with sqlite3.connect(index) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.execute("DROP VIEW statistics")
    assert held(tmp_path, [1]) == {1}
    store = Store(tmp_path)
    store.refresh()
    assert store.index.ask("SELECT name, value FROM statistics") == [("cycles", 7)]


def test_a_record_of_a_newer_schema_is_left_alone(tmp_path, monkeypatch):
    filled(tmp_path, [1])
    monkeypatch.setattr("graven.store.stored.SCHEMA", SCHEMA + 1)
    filled(tmp_path, [2])
    monkeypatch.undo()
    assert held(tmp_path, [1, 2]) == {1}
    [newer] = [s for s in the_segments(tmp_path) if b'"schema":2' in s.read_bytes()]
    with pytest.raises(NewerRecord, match="schema is 2; this version knows 1"):
        StoredRecord.parse(newer.read_bytes())
    clean(Store(tmp_path))
    monkeypatch.setattr("graven.store.stored.SCHEMA", SCHEMA + 1)
    for index in tmp_path.glob("index-*"):
        index.unlink()
    assert held(tmp_path, [1, 2]) == {1, 2}, "cleaning keeps what it does not know"


def test_a_store_of_a_newer_schema_is_refused(tmp_path):
    filled(tmp_path, [1])
    (tmp_path / ABOUT).write_text(json.dumps({"schema": 9}))
    with pytest.raises(StoreError, match="schema 9; this version knows 1"):
        Store(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", "\0" * 40])
def test_a_broken_description_says_what_to_do(tmp_path, text):
    filled(tmp_path, [1])
    (tmp_path / ABOUT).write_text(text)
    with pytest.raises(StoreError, match=r"store\.json is not what a store has there"):
        Store(tmp_path)
    (tmp_path / ABOUT).unlink()
    assert held(tmp_path, [1]) == {1}


# ---- errors of the host --------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["append", "synchronise", "create"])
def test_after_an_error_a_writer_begins_another_segment(tmp_path, monkeypatch, operation):
    store = Store(tmp_path)
    store.put(request(1), result(1))
    store._writer.close() if operation == "create" else None
    real = getattr(disk, operation)

    def fails(*arguments):
        if operation == "append":
            real(arguments[0], arguments[1][:50])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk, operation, fails)
    with pytest.raises(OutputError, match=r"segments: No space left on device"):
        store.put(request(2), result(2))
    monkeypatch.undo()
    store.put(request(3), result(3))
    assert {1, 3} <= held(tmp_path, [1, 2, 3])
    assert verify(Store(tmp_path)).is_sound, "what was cut off is not damage"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_that_may_only_be_read_is_read(tmp_path):
    filled(tmp_path, [1])
    for path in (tmp_path, tmp_path / SEGMENTS):
        path.chmod(0o555)
    try:
        assert held(tmp_path, [1]) == {1}
    finally:
        for path in (tmp_path, tmp_path / SEGMENTS):
            path.chmod(0o755)


def test_where_no_index_can_be_written_one_is_made_in_memory(tmp_path, monkeypatch):
    filled(tmp_path, [1])
    monkeypatch.setattr("graven.store.store.file_of", lambda _: tmp_path / "missing" / "index")
    assert held(tmp_path, [1]) == {1}


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot make the store"):
        Store(tmp_path / "file" / "store").put(request(1), result(1))


# ---- upkeep --------------------------------------------------------------------------------------


def test_cleaning_puts_segments_together_and_damage_aside(tmp_path):
    for number in range(5):
        filled(tmp_path, [number, 99])
    segment = the_segments(tmp_path)[0]
    segment.write_bytes(segment.read_bytes().replace(b"of 99", b"of 98"))
    done = clean(Store(tmp_path))
    assert (done.before, done.kept, done.dropped, done.set_aside) == (5, 6, 3, 1)
    assert len(the_segments(tmp_path)) == 1
    [aside] = (tmp_path / "damaged").iterdir()
    assert b"of 98" in aside.read_bytes()
    assert verify(Store(tmp_path)).is_sound
    assert held(tmp_path, [0, 1, 2, 3, 4, 99]) == {0, 1, 2, 3, 4, 99}


def test_cleaning_leaves_segments_alone_that_are_being_written(tmp_path):
    filled(tmp_path, [1])
    writer = Store(tmp_path)
    writer.put(request(2), result(2))
    done = clean(Store(tmp_path))
    assert (done.before, done.left_alone) == (1, 1)
    writer.put(request(3), result(3))
    assert held(tmp_path, [1, 2, 3]) == {1, 2, 3}


def test_cleaning_removes_what_a_killed_process_left_behind(tmp_path):
    filled(tmp_path, [1])
    [segment] = the_segments(tmp_path)
    left = segment.with_name(f".{segment.name}")
    left.write_bytes(segment.read_bytes()[:100])
    assert held(tmp_path, [1]) == {1}
    assert verify(Store(tmp_path)).segments == 1, "it is no segment"
    descriptor = os.open(left, os.O_RDWR)
    assert disk.hold(descriptor), "a process that puts segments together"
    assert clean(Store(tmp_path)).left_behind == 0
    assert left.exists()
    os.close(descriptor)
    assert clean(Store(tmp_path)).left_behind == 1
    assert not left.exists()
    assert held(tmp_path, [1]) == {1}


def test_a_store_that_is_open_finds_what_was_moved(tmp_path):
    filled(tmp_path, range(4))
    reader = Store(tmp_path)
    assert reader.get(request(1).digest) == result(1)
    filled(tmp_path, range(4, 6))
    clean(Store(tmp_path))
    assert all(reader.get(request(n).digest) == result(n) for n in range(4))
    reader.refresh()
    assert reader.get(request(5).digest) == result(5)


def test_cleaning_drops_what_is_not_wanted(tmp_path):
    filled(tmp_path, range(3), build="old")
    filled(tmp_path, range(3), build="new")
    done = clean(Store(tmp_path), lambda record: record.request.asked["build"] == "new")
    assert (done.kept, done.dropped) == (3, 3)
    assert done.bytes_after < done.bytes_before


def test_merging_takes_what_is_missing(tmp_path):
    filled(tmp_path / "a", [1, 2])
    filled(tmp_path / "b", [2, 3])
    [segment] = the_segments(tmp_path / "b")
    segment.write_bytes(segment.read_bytes() + b"torn")
    assert merge(Store(tmp_path / "a"), Store(tmp_path / "b")) == (1, 1)
    assert held(tmp_path / "a", [1, 2, 3]) == {1, 2, 3}
    assert held(tmp_path / "b", [1, 2, 3]) == {2, 3}
    assert merge(Store(tmp_path / "new"), Store(tmp_path / "nothing")) == (0, 0)


# ---- power failures of the host ------------------------------------------------------------------


class Recorded:
    """What a store does to the disk, as a list; and what a power failure could leave of it.

    A file's content and the names in a folder are sure once they have been synchronised. Before
    that, of what was appended any prefix may be there, with or without bytes that were never
    written in its place (zeros), and each change of a folder may have reached the disk or not.
    """

    def __init__(self, monkeypatch):
        self.done = []
        self.names = {}
        for name in ("create", "append", "synchronise", "synchronise_folder", "replace", "remove",
                     "make_folder"):  # fmt: skip
            monkeypatch.setattr(disk, name, self._recorded(name, getattr(disk, name)))

    def _recorded(self, name, real):
        def call(*arguments):
            came = real(*arguments)
            if name == "create":
                self.names[came] = arguments[0]
                self.done.append((name, arguments[0]))
            elif name in ("append", "synchronise"):
                self.done.append((name, self.names[arguments[0]], *arguments[1:]))
            else:
                self.done.append((name, *arguments))
            return came

        return call

    def acknowledge(self, what):
        self.done.append(("acknowledged", what))

    def states(self, choose, root):
        """After each step: what must be there, and folders that could be there."""
        for end in range(len(self.done) + 1):
            for _ in range(3):
                yield self._state(self.done[:end], choose, root)

    def _state(self, done, choose, root):
        sure, content, acknowledged = {}, {}, set()
        pending = []  # changes of names, each with its folder, in order

        def apply(names, change):
            kind, *paths = change
            if kind == "create":
                names[paths[0]] = paths[1]
            elif kind == "replace":
                if paths[0] in names:
                    names[paths[1]] = names.pop(paths[0])
            else:
                names.pop(paths[0], None)

        now = {}
        for name, *arguments in done:
            if name == "create":
                file = [b"", b""]  # what is sure, and what was appended since
                change = ("create", arguments[0], len(content))
                content[len(content)] = file
                pending.append((arguments[0].parent, change))
                apply(now, change)
            elif name == "append":
                content[now[arguments[0]]][1] += bytes(arguments[1])
            elif name == "synchronise":
                file = content[now[arguments[0]]]
                file[0], file[1] = file[0] + file[1], b""
            elif name in ("replace", "remove"):
                change = (name, *arguments)
                pending.append((arguments[0].parent, change))
                apply(now, change)
            elif name == "synchronise_folder":
                for folder, change in pending:
                    if folder == arguments[0]:
                        apply(sure, change)
                pending = [(folder, change) for folder, change in pending if folder != arguments[0]]
            elif name == "acknowledged":
                acknowledged.add(arguments[0])
        after = dict(sure)
        for _, change in pending:
            if choose.random() < 0.5:
                apply(after, change)
        found = {}
        for path, file in after.items():
            kept, loose = content[file]
            length = choose.randint(0, len(loose))
            tail = loose[:length]
            if choose.random() < 0.3:
                tail = tail[: length // 2] + bytes(length - length // 2)
            found[path.relative_to(root)] = kept + tail
        return acknowledged, found


def leave(folder, found):
    (folder / SEGMENTS).mkdir(parents=True)
    for path, content in found.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def test_no_power_failure_of_the_host_loses_what_was_acknowledged(tmp_path, monkeypatch):
    folder = tmp_path / "store"
    recorded = Recorded(monkeypatch)
    numbers = range(6)

    def put(store, number):
        store.put(request(number), result(number))
        recorded.acknowledge(number)

    one, two = Store(folder), Store(folder)
    for number, store in zip(range(4), itertools.cycle([one, two]), strict=False):
        put(store, number)
    one.close()
    two.close()
    clean(Store(folder))
    three = Store(folder)
    put(three, 4)
    put(three, 5)
    three.close()
    clean(Store(folder))
    monkeypatch.undo()
    choose, tried = random.Random(1), 0
    for at, (acknowledged, found) in enumerate(recorded.states(choose, folder)):
        left = tmp_path / f"left-{at}"
        leave(left, found)
        assert acknowledged <= held(left, numbers), (at, found.keys())
        assert not verify(Store(left)).contradictions
        filled(left, numbers)
        assert held(left, numbers) == set(numbers)
        tried += 1
    assert tried > 100


@pytest.mark.parametrize("left_out", ["synchronise", "synchronise_folder"])
def test_that_test_finds_a_store_that_does_not_synchronise(tmp_path, monkeypatch, left_out):
    monkeypatch.setattr(disk, left_out, lambda *_: None)
    folder = tmp_path / "store"
    recorded = Recorded(monkeypatch)
    store = Store(folder)
    for number in range(3):
        store.put(request(number), result(number))
        recorded.acknowledge(number)
    store.close()
    monkeypatch.undo()
    recorded.done = [step for step in recorded.done if step[0] != left_out]
    lost = 0
    for at, (acknowledged, found) in enumerate(recorded.states(random.Random(1), folder)):
        left = tmp_path / f"left-{at}"
        leave(left, found)
        lost += not acknowledged <= held(left, range(3))
    assert lost > 0


# ---- several at once -----------------------------------------------------------------------------

WRITER = """
import sys, time
sys.path[:0] = [{python!r}, {tests!r}]
from test_store import request, result
from graven.store import Store
from pathlib import Path
store = Store(Path({folder!r}))
for number in range({first}, {last}):
    store.put(request(number), result(number))
    print(number, flush=True)
"""


def writer(folder, first, last):
    code = WRITER.format(
        python=str(HERE.parent), tests=str(HERE), folder=str(folder), first=first, last=last
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def test_processes_that_are_killed_lose_nothing_they_have_acknowledged(tmp_path):
    random.seed(2)
    acknowledged = set()
    for attempt in range(8):
        process = writer(tmp_path, attempt * 1000, attempt * 1000 + 1000)
        for _ in range(random.randrange(1, 60)):
            acknowledged.add(int(process.stdout.readline()))
        process.send_signal(signal.SIGKILL)
        acknowledged |= {int(line) for line in process.stdout.read().split()}
        process.wait()
    assert acknowledged <= held(tmp_path, range(8000))
    assert verify(Store(tmp_path)).is_sound


@pytest.mark.parametrize("lets_go", [True, False])
def test_a_writer_does_not_write_into_a_segment_that_was_cleaned_away(
    tmp_path, monkeypatch, lets_go
):
    """Cleaning comes between making a file and holding it, and is over, or is not."""
    create, first = disk.create, []

    def create_and_lose(path):
        descriptor = create(path)
        if path.suffix == ".tsv" and not first:
            first.append(path)
            taken = disk.take(path)
            disk.remove(path)
            if lets_go:
                os.close(taken)
        return descriptor

    monkeypatch.setattr(disk, "create", create_and_lose)
    store = Store(tmp_path)
    for number in range(3):
        store.put(request(number), result(number))
    store.close()
    assert first
    assert held(tmp_path, range(3)) == {0, 1, 2}


def test_several_processes_write_while_others_clean(tmp_path):
    processes = [writer(tmp_path, first * 50, first * 50 + 120) for first in range(4)]
    stop = threading.Event()
    cleaned = []

    def cleaning():
        while not stop.is_set():
            cleaned.append(clean(Store(tmp_path)).before)

    thread = threading.Thread(target=cleaning)
    thread.start()
    assert [process.wait() for process in processes] == [0] * 4
    for process in processes:
        process.stdout.close()
    stop.set()
    thread.join()
    assert held(tmp_path, range(270)) == set(range(270))
    clean(Store(tmp_path))
    assert len(the_segments(tmp_path)) == 1
    assert verify(Store(tmp_path)).is_sound


def test_threads_share_a_store(tmp_path):
    store = Store(tmp_path)

    def work(first):
        for number in range(first, 200, 4):
            store.put(request(number), result(number))
            assert store.get(request(number).digest) == result(number)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(the_segments(tmp_path)) == 1
    assert held(tmp_path, range(200)) == set(range(200))
