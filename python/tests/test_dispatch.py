"""Which job is next, whatever becomes of those that were begun; and how lists are shared out."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graven import ConfigError
from graven.engine.machine import Machine
from graven.executors.dispatch import STRAGGLER_SECONDS, TRIES, Dispatcher
from graven.executors.local import LongestFirst
from graven.executors.shards import Shard
from graven.running.job import Job
from graven.running.pool import Deferred, Pool

COSTS = st.lists(st.floats(0, 1e6, allow_nan=False), min_size=1, max_size=40)


def drained(dispatcher, now=0.0):
    taken = []
    while (at := dispatcher.take(now)) is not None:
        taken.append(at)
    return taken


@given(COSTS)
def test_the_longest_are_begun_first_and_each_once(costs):
    taken = drained(Dispatcher(costs))
    assert sorted(taken) == list(range(len(costs)))
    assert [costs[at] for at in taken] == sorted(costs, reverse=True)


@given(
    st.lists(st.sampled_from(["array", "hash", "btree", "tpcc"]), max_size=30), st.integers(1, 4)
)
def test_simulations_that_begin_alike_come_one_after_another(workloads, threads):
    machine = Machine("silo")
    jobs = {at: Job("silo", name, machine, seed=at % 2) for at, name in enumerate(workloads)}
    order = LongestFirst(threads).ordered(jobs)
    assert sorted(order) == list(jobs)
    alike = [(jobs[at].workload, jobs[at].seed) for at in order]
    begun = [alike.index(group) for group in dict.fromkeys(alike)]
    under_way = [
        sum(group in alike[place:] for group in dict.fromkeys(alike[: place + 1]))
        for place in range(len(alike))
    ]
    assert begun == sorted(begun)
    assert max(under_way, default=0) <= threads, "no more groups at a time than threads"


def test_what_comes_next_is_made_as_another_begins():
    made: list[str] = []

    class Noted(Deferred):
        def __init__(self, name):
            super().__init__(lambda: made.append(name) or Task())
            self.name = name

        def run(self):
            seen[self.name] = tuple(made)
            return super().run()

        def memory_bytes(self):
            asked.append(self.name)
            return super().memory_bytes()

    class Task:
        def run(self):
            return ""

        def memory_bytes(self):
            return 0

    seen: dict[str, tuple[str, ...]] = {}
    asked: list[str] = []
    Pool([(name, Noted(name)) for name in "abcd"], 1).run()
    assert max(map(asked.count, "abcd")) == 2, "as it is made, and as it may begin"
    assert seen == {"a": ("a", "b"), "b": ("a", "b", "c"), "c": tuple("abcd"), "d": tuple("abcd")}


@pytest.mark.parametrize(("tasks", "workers", "lent"), [(1, 4, 4), (3, 8, 2), (3, 2, 1)])
def test_threads_that_are_left_are_lent_to_the_tasks_before_they_say_what_they_need(
    tasks, workers, lent
):
    ran: list[tuple[int, int]] = []

    class Task:
        threads = needs = 1

        def lend(self, threads):
            self.threads = threads

        def memory_bytes(self):
            self.needs = self.threads
            return 0

        def run(self):
            ran.append((self.threads, self.needs))
            return ""

    pool = Pool([(str(n), Deferred(Task)) for n in range(tasks)], workers)
    assert not pool.run().failures
    assert ran == [(lent, lent)] * tasks, "what a task needs depends on its threads"


@settings(max_examples=300, deadline=None)
@given(COSTS, st.data())
def test_whatever_is_lost_every_job_ends_once_and_none_is_begun_without_end(costs, data):
    dispatcher = Dispatcher(costs)
    begun = dict.fromkeys(range(len(costs)), 0)
    ended, running, now = [], [], 0.0
    before = 0.0
    while not dispatcher.is_over:
        now += data.draw(st.floats(0, 1000))
        at = dispatcher.take(now) if data.draw(st.booleans()) or not running else None
        if at is not None:
            running.append(at)
            begun[at] += 1
        elif running:
            at = running.pop(data.draw(st.integers(0, len(running) - 1)))
            if data.draw(st.booleans()):
                if dispatcher.finish(at, now):
                    ended.append(at)
            elif not dispatcher.lose(at) and dispatcher.finish(at, now):
                ended.append(at)
        assert dispatcher.fraction >= before - 1e-9
        before = dispatcher.fraction
    assert sorted(ended) == list(range(len(costs))), "each has ended, and once"
    # As many of them beside another, as stragglers.
    assert max(begun.values()) <= 2 * TRIES
    assert dispatcher.done == len(costs)


def test_what_takes_its_workers_down_is_given_up():
    dispatcher = Dispatcher([1.0])
    for _ in range(TRIES - 1):
        assert dispatcher.take(0.0) == 0
        assert dispatcher.lose(0)
    assert dispatcher.take(0.0) == 0
    assert not dispatcher.lose(0)


def test_what_is_begun_beside_a_straggler_is_not_lost_without_end():
    dispatcher = Dispatcher([1.0] * 2)
    assert [dispatcher.take(0.0), dispatcher.take(0.0)] == [0, 1]
    dispatcher.finish(0, 1.0)
    late = 1000 * STRAGGLER_SECONDS
    for _ in range(TRIES):
        assert dispatcher.take(late) == 1
        assert dispatcher.lose(1)
    assert dispatcher.take(late) is None
    assert dispatcher.running == [1]


def test_a_straggler_is_begun_a_second_time_and_only_when_nothing_else_is_left():
    dispatcher = Dispatcher([1.0] * 3)
    assert [dispatcher.take(0.0) for _ in range(3)] == [0, 1, 2]
    dispatcher.finish(0, 1.0)
    late = STRAGGLER_SECONDS * 1.1
    assert dispatcher.take(STRAGGLER_SECONDS * 0.9) is None
    assert dispatcher.take(late) == 1
    assert dispatcher.take(late) == 2
    assert dispatcher.take(late) is None, "not a third time"
    assert dispatcher.lose(1), "the other one is still running"
    assert dispatcher.take(late * 2) == 1, "it is alone again"
    assert dispatcher.finish(1, late * 2)
    assert not dispatcher.finish(1, late * 3), "the second result is of no use"


@given(COSTS, st.integers(1, 9))
def test_shards_have_each_job_once(costs, number):
    parts = [Shard(at, number).part(costs) for at in range(1, number + 1)]
    assert sorted(at for part in parts for at in part) == list(range(len(costs)))
    loads = [sum(costs[at] for at in part) for part in parts]
    # The longest first, to whoever has least: no two differ by more than one job.
    assert max(loads) - min(loads) <= max(costs) * (1 + 1e-9)


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "/3", "1/", "a/b", "-1/3", "1/0", "1/2/3", ""])
def test_a_part_that_there_is_not_is_refused(text):
    with pytest.raises(ConfigError, match=f"`{text}` is not a part such as 1/8"):
        Shard.parse(text)


class Waiting:
    """A task that ends when it may."""

    def __init__(self, may_end):
        self.may_end = may_end

    def run(self):
        assert self.may_end.wait(60)
        return "{}"

    def cancel(self):
        self.may_end.set()

    def progress(self):
        return (0, 0)


def test_progress_is_by_what_tasks_cost():
    at_once, later = threading.Event(), threading.Event()
    at_once.set()
    seen = []

    def observe(snapshot):
        seen.append((snapshot.done, round(snapshot.fraction, 3)))
        if snapshot.done == 1:
            later.set()

    tasks = [("short", Waiting(at_once)), ("long", Waiting(later))]
    Pool(tasks, 1, costs=[1.0, 9.0]).run(observe)
    assert set(seen) <= {(0, 0.0), (1, 0.1), (2, 1.0)}
    assert (1, 0.1) in seen
