"""A real browser for tests: Playwright and a Chromium of the system's."""

from __future__ import annotations

import contextlib
import shutil

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome")
                 if (path := shutil.which(name))), None)  # fmt: skip
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def playwright():
    try:
        from playwright import sync_api
    except ImportError:
        return None
    return sync_api


IS_THERE = CHROMIUM is not None and playwright() is not None


@contextlib.contextmanager
def launched():
    with playwright().sync_playwright() as found:
        chromium = found.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()
