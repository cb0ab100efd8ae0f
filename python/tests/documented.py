"""Runs examples of the documentation on the real engine: another process of `test_documented`.

It reads a request as a line of JSON, and answers with one. A request has a `name`, an empty
`folder`, and either the `text` of a docstring with its `file` and `line`, or the `blocks` of a
page, each the code and its line, with `sizes` for runs of which the page says none. An answer has
how many examples were `tried`, and what `failed`.
"""

from __future__ import annotations

import contextlib
import doctest
import functools
import io
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path

import graven

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def answer(request, reproduced):
    """What came of a request; what papers' experiments gave is there from other requests."""
    folder = Path(request["folder"])
    results = folder / "graven-results"
    results.mkdir()
    (results / "reproduce").symlink_to(reproduced)
    os.environ["GRAVEN_STORE"] = str(results / "store")
    os.chdir(folder)
    if "text" in request:
        test = doctest.DocTestParser().get_doctest(
            request["text"], {"graven": graven}, request["name"], request["file"], request["line"]
        )
        return examples(test)
    with sized(request["sizes"]):
        return blocks(request["file"], request["blocks"])


@contextlib.contextmanager
def sized(sizes):
    """Runs and comparisons that do not say otherwise are of these sizes."""
    usual = {name: getattr(graven, name) for name in ("run", "compare")}
    for name, function in usual.items():
        setattr(graven, name, functools.partial(function, **sizes))
    yield
    for name, function in usual.items():
        setattr(graven, name, function)


def examples(test):
    """Runs the lines with `>>>`, and compares what they show."""
    said = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False, optionflags=OPTIONS)
    tried = runner.run(test, out=said.write).attempted
    return {"tried": tried, "failed": said.getvalue()}


def blocks(file, found):
    """Runs the code of a page, block by block; what it prints is not compared."""
    names = {"graven": graven}
    for tried, (line, code) in enumerate(found):
        if ">>>" in code:
            test = doctest.DocTestParser().get_doctest(code, names, file, file, line)
            came = examples(test)
            names = {**test.globs, **names}
            if came["failed"]:
                return came
            continue
        try:
            # Lines are those of the page.
            exec(compile("\n" * line + code, file, "exec"), names)
        except BaseException:
            return {"tried": tried, "failed": traceback.format_exc()}
    return {"tried": len(found), "failed": ""}


def main():
    channel = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    with tempfile.TemporaryDirectory(prefix="graven-reproduced-") as reproduced:
        for line in sys.stdin:
            with contextlib.redirect_stdout(sys.stderr):
                came = answer(json.loads(line), reproduced)
            print(json.dumps(came), file=channel, flush=True)


if __name__ == "__main__":
    main()
