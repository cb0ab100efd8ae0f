"""A plugin for pytest that logs the CPU seconds of each test.

Processes that a test waited for count as its own. It is loaded by `-p tests.budget.plugin`, and
writes to the file that `GRAVEN_CPU_LOG` names.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest


def _seconds() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measures a test with what sets it up."""
    before = _seconds()
    result = yield
    log = os.environ.get("GRAVEN_CPU_LOG")
    if log:
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(f"{_seconds() - before:.3f} {item.nodeid}\n")
    return result
