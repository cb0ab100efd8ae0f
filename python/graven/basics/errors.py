"""Errors that the package raises itself, beside those of the engine."""


class OutputError(Exception):
    """A file cannot be written; the message names it and says why.

    Examples:
        >>> result = graven.compare("base,silo", "hash", transactions=100, from_start=True)
        >>> result.save("nowhere/results.json")
        Traceback (most recent call last):
            ...
        graven.OutputError: cannot write nowhere/results.json: No such file or directory
    """


class OutputRefusedError(OutputError):
    """A file could not be written if something had run; nothing has."""


class StoreError(Exception):
    """A folder cannot be used as a store of results; the message names it and says why.

    Examples:
        >>> from pathlib import Path
        >>> Path("kept").mkdir()
        >>> written = Path("kept", "store.json").write_text('{"schema": 99}')
        >>> graven.run("silo", "hash", transactions=100, store="kept")
        Traceback (most recent call last):
            ...
        graven.StoreError: kept is a store of schema 99; this version knows 1: use a
        newer Graven, or another folder
    """


class CaptureError(Exception):
    """A program cannot be captured; the message says why."""
