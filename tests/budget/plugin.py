"""A plugin for pytest that logs the CPU seconds of each test.

Processes that a test waited for count as its own. What a fixture of a module or a session takes to
be set up counts as the fixture's, not as that of the test that happens to ask for it first: which
one does depends on how tests are dealt out. The plugin is loaded by `-p tests.budget.plugin`, and
writes to the file that `GRAVEN_CPU_LOG` names.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

SHARED = ("module", "package", "session")
"""Scopes of fixtures that several tests share."""

_of_fixtures = 0.0
"""Seconds of shared fixtures that the present test has had set up."""


def _seconds() -> float:
    return sum(os.times()[:4])


def _log(seconds: float, name: str) -> None:
    log = os.environ.get("GRAVEN_CPU_LOG")
    if log:
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(f"{seconds:.3f} {name}\n")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object],
) -> Generator[None, object, object]:
    """Measures a fixture that tests share; those that it asks for are their own."""
    global _of_fixtures
    before, others = _seconds(), _of_fixtures
    result = yield
    if fixturedef.scope in SHARED:
        own = _seconds() - before - (_of_fixtures - others)
        _of_fixtures += own
        _log(own, f"{fixturedef.baseid or 'fixtures'}::{fixturedef.argname} (fixture)")
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measures a test with what sets it up."""
    global _of_fixtures
    before, _of_fixtures = _seconds(), 0.0
    result = yield
    _log(_seconds() - before - _of_fixtures, item.nodeid)
    return result
